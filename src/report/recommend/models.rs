//! Models that one system serves: longest context and number of users of each.
//!
//! Models are ordered by size and age, see `size_and_age`. Quality is not measured here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::launch::LaunchReport;
use super::{Build, RejectedBuild, Requirements, SearchSummary};
use crate::spec::scenario::Scenario;

/// A model that the system serves.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ServedModel {
    /// Its parameters.
    pub parameters: u64,
    /// Its family: models of one name in several sizes or versions.
    pub family: String,
    /// Month of its release, `YYYY-MM`; null if unknown.
    pub released: Option<String>,
    /// Its deployment.
    pub build: Build,
    /// Other runtimes and weight formats in which it meets the SLO, in the order of the search.
    pub others: Vec<OtherFormat>,
}

/// Another runtime and weight format of a model on the same machine.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OtherFormat {
    /// The runtime.
    pub runtime: String,
    /// The weight format.
    pub weight_format: String,
    /// Checkpoint in that format, where one is published.
    pub checkpoint: Option<String>,
    /// Output tokens per second per user, with the given users.
    pub tok_s_per_user: f64,
    /// Maximum users within the SLO.
    pub most_users: u64,
}

/// The result.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ServedModels {
    /// The scenario of every model, so that the result can be verified.
    pub scenario: Scenario,
    /// The requirements.
    pub sought: Requirements,
    /// Models served, in the order of size and age: twice the parameters, or 3.5 months later, count the same.
    pub models: Vec<ServedModel>,
    /// Names of those with the longest context, the longest first.
    pub longest_contexts: Vec<String>,
    /// Names of those with the most users, the most first.
    pub most_users: Vec<String>,
    /// Rejected models, with reasons.
    pub missed: Vec<RejectedBuild>,
    /// Models and searches considered.
    pub looked: SearchSummary,
    /// Commands and files that launch the first model; null if there is none.
    #[serde(default)]
    pub launch: Option<LaunchReport>,
}

impl ServedModels {
    /// Whether the machine serves any model.
    pub fn serves(&self) -> bool {
        !self.models.is_empty()
    }
}

/// Months in which the parameters for the same quality halve, for the best open models of their time: Xiao et al., Densing
/// law of LLMs (<https://www.nature.com/articles/s42256-025-01137-0>).
const HALVING_MONTHS: f64 = 3.5;

impl ServedModel {
    /// Its rank by size and age, in doublings: `log2(parameters) + months / 3.5`; a model without a known date comes
    /// last. This orders a list; it does not measure the quality of a model.
    fn size_and_age(&self) -> f64 {
        let months = self.released.as_deref().and_then(|date| {
            let (year, month) = date.split_once('-')?;
            Some((year.parse::<f64>().ok()? - 2000.0) * 12.0 + month.parse::<f64>().ok()?)
        });
        libm::log2(self.parameters as f64) + months.unwrap_or(0.0) / HALVING_MONTHS
    }
}

pub fn serves(
    (scenario, sought): (Scenario, Requirements),
    mut models: Vec<ServedModel>,
    missed: Vec<RejectedBuild>,
    looked: SearchSummary,
) -> ServedModels {
    models.sort_by(|a, b| {
        let order = b.size_and_age().total_cmp(&a.size_and_age());
        order.then_with(|| a.build.model.cmp(&b.build.model))
    });
    let by = |figure: fn(&ServedModel) -> u64| {
        let mut order: Vec<&ServedModel> = models.iter().collect();
        // Ties are broken by the order of the models.
        order.sort_by_key(|held| std::cmp::Reverse(figure(held)));
        order.iter().map(|held| held.build.model.clone()).collect::<Vec<_>>()
    };
    ServedModels {
        longest_contexts: by(|held| held.build.max_context_tokens as u64),
        most_users: by(|held| held.build.most_users),
        scenario,
        sought,
        models,
        missed,
        looked,
        launch: None,
    }
}
