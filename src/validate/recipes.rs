//! Launch flags of published servers, for rows that do not state them.

use std::sync::LazyLock;

use serde::Deserialize;

use super::measured_traffic::MeasuredTraffic;
use super::replayed::TableLayout;

/// The attention ranks of the servers of a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecipeRanks {
    One,
    Several,
}

/// The runs that a recipe is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecipeLayout {
    Sessions,
    Points,
    Served,
}

/// The part of a row that decides its recipe.
#[derive(Clone, Copy)]
pub(super) struct RecipeRow<'a> {
    pub layout: TableLayout,
    pub source: &'a str,
    /// Year, month and day, with hyphens.
    pub date: &'a str,
    pub model: &'a str,
    pub hardware: &'a str,
    pub runtime: &'a str,
    pub weight_format: &'a str,
    pub tp: u64,
    /// Attention ranks.
    pub ranks: u64,
    /// Nominal prompt and output.
    pub lengths: [u64; 2],
    pub clients: u64,
    pub pools: usize,
}

/// Launch flags that the closed form knows too.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecipeFlags {
    pub held: Option<HeldByRecipe>,
    /// Tokens of a step of a rank.
    pub step_tokens: Option<u64>,
}

/// How long a server holds prompts back: steps, and the part of a step's tokens at which it no longer does.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldByRecipe {
    pub steps: u32,
    pub tokens_ratio: f64,
}

/// The flags of the servers of one publisher, model and layout.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedRecipe {
    publisher: Option<String>,
    layout: RecipeLayout,
    runtime: String,
    model: String,
    hardware: Vec<String>,
    ranks: Option<RecipeRanks>,
    pub kv_format: Option<String>,
    step_tokens: Option<u64>,
    step_prompts: Option<u64>,
    whole_prompts_below: Option<u64>,
    prefill_interval: Option<u64>,
    long_prompt_threshold: Option<u64>,
    delayed_passes: Option<u64>,
    decodes_after_prefill: Option<u64>,
    requests_per_client: Option<u64>,
    weight_format: Option<String>,
    lengths: Option<[u64; 2]>,
    tp_below: Option<u64>,
    clients_from: Option<u64>,
    since: Option<String>,
    held: Option<HeldByRecipe>,
    source: String,
}

/// All of them.
#[derive(Debug, Deserialize)]
struct PublishedRecipes {
    recipes: Vec<PublishedRecipe>,
}

static RECIPES: LazyLock<PublishedRecipes> = LazyLock::new(|| {
    serde_json::from_str(include_str!("recipes.json")).expect("the recipes of the program are JSON")
});

/// Publishers whose servers these are, as sources of rows name them.
const PUBLISHERS: [&str; 3] = ["InferenceX", "InferenceMAX", "aisimulate"];

impl PublishedRecipe {
    /// The recipe of a row, if there is one: the first whose conditions it meets.
    pub fn of(row: &RecipeRow) -> Option<&'static PublishedRecipe> {
        if !PUBLISHERS.iter().any(|publisher| row.source.contains(publisher)) {
            return None;
        }
        RECIPES.recipes.iter().find(|recipe| recipe.is_for(row))
    }

    fn is_for(&self, row: &RecipeRow) -> bool {
        let layout = match row.layout {
            TableLayout::Sessions => RecipeLayout::Sessions,
            TableLayout::Points => RecipeLayout::Points,
            TableLayout::Wide if row.pools == 1 => RecipeLayout::Served,
            _ => return false,
        };
        let ranks = if row.ranks > 1 { RecipeRanks::Several } else { RecipeRanks::One };
        self.layout == layout
            && row.model.to_lowercase().contains(&self.model)
            && row.runtime.to_lowercase().starts_with(&self.runtime)
            && self.hardware.iter().any(|one| one == row.hardware)
            && self.ranks.is_none_or(|those| those == ranks)
            && self.publisher.as_ref().is_none_or(|publisher| row.source.contains(publisher.as_str()))
            && self.weight_format.as_ref().is_none_or(|format| format == row.weight_format)
            && self.lengths.is_none_or(|lengths| lengths == row.lengths)
            && self.tp_below.is_none_or(|below| row.tp < below)
            && self.clients_from.is_none_or(|from| row.clients >= from)
            && self.since.as_ref().is_none_or(|since| row.date >= since.as_str())
    }

    /// Tokens of a step of a rank, for prompts of this nominal length.
    fn step_tokens(&self, nominal: u64) -> Option<u64> {
        self.step_tokens.or(self.step_prompts.map(|prompts| prompts.saturating_mul(nominal)))
    }

    /// The flags of a server with prompts of this nominal length.
    pub fn flags(&self, nominal: u64) -> RecipeFlags {
        RecipeFlags { held: self.held, step_tokens: self.step_tokens(nominal) }
    }

    /// Gives the traffic of a row the flags that the row leaves open, for prompts of this nominal length.
    pub fn complete(&self, traffic: &mut MeasuredTraffic, nominal: u64, clients: u64) {
        traffic.max_num_batched_tokens = traffic.max_num_batched_tokens.or(self.step_tokens(nominal));
        traffic.prefill_interval = traffic.prefill_interval.or(self.prefill_interval);
        traffic.long_prompt_threshold = traffic.long_prompt_threshold.or(self.long_prompt_threshold);
        traffic.whole_prompts = self.whole_prompts_below.is_some_and(|below| clients < below);
        traffic.delayed_passes = self.delayed_passes;
        traffic.decodes_after_prefill = self.decodes_after_prefill;
        let each = self.requests_per_client.map(|each| each.saturating_mul(clients));
        traffic.requests = traffic.requests.or(each);
        traffic.assumed.push(format!("launch flags of the publisher's recipe ({})", self.source));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_that_of_its_publisher_layout_and_ranks() {
        let row = |layout, source, model, ranks| RecipeRow {
            layout,
            source,
            date: "2026-01-01",
            model,
            hardware: "nvidia-b300-sxm",
            runtime: "sglang",
            weight_format: "nvfp4",
            tp: 8,
            ranks,
            lengths: [1024, 1024],
            clients: 4,
            pools: 1,
        };
        let of = |layout, source, model, ranks| PublishedRecipe::of(&row(layout, source, model, ranks));
        let (url, glm) = ("https://github.com/SemiAnalysisAI/InferenceX/pull/1", "nvidia/GLM-5.2-NVFP4");
        let tokens = |ranks| of(TableLayout::Sessions, url, glm, ranks).and_then(|it| it.step_tokens(1));
        assert_eq!((tokens(1), tokens(8)), (Some(8192), Some(4096)));
        assert!(of(TableLayout::Points, url, glm, 8).is_none());
        assert!(of(TableLayout::Wide, url, glm, 8).is_none());
        assert!(of(TableLayout::Sessions, "https://example.org", glm, 8).is_none());
        let m3 = row(TableLayout::Points, url, "nvidia/MiniMax-M3-NVFP4", 1);
        let m3 = PublishedRecipe::of(&RecipeRow { runtime: "vllm", ..m3 }).unwrap();
        assert_eq!((m3.step_tokens(1024), m3.kv_format.as_deref()), (Some(2048), Some("fp8")));
    }

    #[test]
    fn a_recipe_counts_clients_lengths_ranks_and_dates() {
        let row = RecipeRow {
            layout: TableLayout::Wide,
            source: "SemiAnalysis InferenceX",
            date: "2025-10-29",
            model: "meta-llama/Llama-3.1-70B",
            hardware: "nvidia-h200-sxm",
            runtime: "trtllm",
            weight_format: "fp8",
            tp: 4,
            ranks: 1,
            lengths: [1024, 1024],
            clients: 4,
            pools: 1,
        };
        let steps = |row: &RecipeRow| PublishedRecipe::of(row).and_then(|it| it.held).map(|held| held.steps);
        assert_eq!(steps(&row), Some(20));
        assert_eq!(steps(&RecipeRow { tp: 8, ..row }), None);
        let long = RecipeRow { lengths: [8192, 1024], tp: 4, ..row };
        assert_eq!(PublishedRecipe::of(&long).map(|it| it.kv_format.as_deref()), Some(Some("fp8")));
        let b200 = |model, runtime, clients, date| {
            let row = RecipeRow { hardware: "nvidia-b200-sxm", model, runtime, clients, date, ..row };
            PublishedRecipe::of(&row)
        };
        let interval =
            |clients| b200("DeepSeek-R1", "sglang", clients, "2025-11-02")?.held.map(|it| it.steps);
        assert_eq!((interval(8), interval(16)), (Some(10), Some(30)));
        let kv = |date| b200("openai/gpt-oss-120b", "vllm", 4, date)?.kv_format.as_deref();
        assert_eq!((kv("2025-11-02"), kv("2025-12-20")), (None, Some("fp8")));
    }
}
