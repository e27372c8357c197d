//! Launch flags of published servers, for rows that do not state them.

use std::sync::LazyLock;

use serde::Deserialize;

use super::measured::MeasuredTraffic;
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
const PUBLISHERS: [&str; 2] = ["InferenceX", "aisimulate"];

impl PublishedRecipe {
    /// The recipe of a row, if there is one: of its layout, its source, its model, hardware and runtime, and its number
    /// of attention ranks.
    pub fn of(
        layout: TableLayout,
        source: &str,
        [model, hardware, runtime]: [&str; 3],
        ranks: u64,
    ) -> Option<&'static PublishedRecipe> {
        let layout = match layout {
            TableLayout::Sessions => RecipeLayout::Sessions,
            TableLayout::Points => RecipeLayout::Points,
            _ => return None,
        };
        if !PUBLISHERS.iter().any(|publisher| source.contains(publisher)) {
            return None;
        }
        let (model, ranks) =
            (model.to_lowercase(), if ranks > 1 { RecipeRanks::Several } else { RecipeRanks::One });
        RECIPES.recipes.iter().find(|recipe| {
            recipe.layout == layout
                && model.contains(&recipe.model)
                && runtime.to_lowercase().starts_with(&recipe.runtime)
                && recipe.hardware.iter().any(|one| one == hardware)
                && recipe.ranks.is_none_or(|those| those == ranks)
                && recipe.publisher.as_ref().is_none_or(|publisher| source.contains(publisher.as_str()))
        })
    }

    /// Tokens of a step of a rank, for prompts of this nominal length.
    fn step_tokens(&self, nominal: u64) -> Option<u64> {
        self.step_tokens.or(self.step_prompts.map(|prompts| prompts.saturating_mul(nominal)))
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
        let of = |layout, source, model, ranks| {
            PublishedRecipe::of(layout, source, [model, "nvidia-b300-sxm", "sglang"], ranks)
        };
        let (url, glm) = ("https://github.com/SemiAnalysisAI/InferenceX/pull/1", "nvidia/GLM-5.2-NVFP4");
        let tokens = |ranks| of(TableLayout::Sessions, url, glm, ranks).and_then(|it| it.step_tokens(1));
        assert_eq!((tokens(1), tokens(8)), (Some(8192), Some(4096)));
        assert!(of(TableLayout::Points, url, glm, 8).is_none());
        assert!(of(TableLayout::Wide, url, glm, 8).is_none());
        assert!(of(TableLayout::Sessions, "https://example.org", glm, 8).is_none());
        let m3 = ["nvidia/MiniMax-M3-NVFP4", "nvidia-b300-sxm", "vllm"];
        let m3 = PublishedRecipe::of(TableLayout::Points, url, m3, 1).unwrap();
        assert_eq!((m3.step_tokens(1024), m3.kv_format.as_deref()), (Some(2048), Some("fp8")));
    }
}
