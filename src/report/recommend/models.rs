//! Models that one system serves: longest context and number of users of each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, RejectedBuild, Requirements, SearchSummary};
use crate::spec::scenario::Scenario;

/// A model that the system serves.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ServedModel {
    /// Its parameters.
    pub parameters: u64,
    /// Longest context at which the stated users are still served within the limits, in powers of two or
    /// what the model states; what is beyond the new prompt tokens of a request is cached.
    pub longest_context_tokens: u64,
    /// Its deployment.
    pub build: Build,
}

/// The result.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ServedModels {
    /// The scenario of every model, so that the result can be verified.
    pub scenario: Scenario,
    /// The requirements.
    pub sought: Requirements,
    /// Models served, the largest first.
    pub models: Vec<ServedModel>,
    /// Names of those with the longest context, the longest first.
    pub longest_contexts: Vec<String>,
    /// Names of those with the most users, the most first.
    pub most_users: Vec<String>,
    /// Rejected models, with reasons.
    pub missed: Vec<RejectedBuild>,
    /// Models and searches considered.
    pub looked: SearchSummary,
}

impl ServedModels {
    /// Whether the machine serves any model.
    pub fn serves(&self) -> bool {
        !self.models.is_empty()
    }
}

/// Sorts the result.
pub fn serves(
    (scenario, sought): (Scenario, Requirements),
    mut models: Vec<ServedModel>,
    missed: Vec<RejectedBuild>,
    looked: SearchSummary,
) -> ServedModels {
    models.sort_by(|a, b| b.parameters.cmp(&a.parameters).then_with(|| a.build.model.cmp(&b.build.model)));
    let by = |figure: fn(&ServedModel) -> u64| {
        let mut order: Vec<&ServedModel> = models.iter().collect();
        // Ties are broken by model size.
        order.sort_by_key(|held| std::cmp::Reverse(figure(held)));
        order.iter().map(|held| held.build.model.clone()).collect::<Vec<_>>()
    };
    ServedModels {
        longest_contexts: by(|held| held.longest_context_tokens),
        most_users: by(|held| held.build.most_users),
        scenario,
        sought,
        models,
        missed,
        looked,
    }
}
