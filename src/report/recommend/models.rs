//! Models that one system serves: longest context and number of users of each.
//!
//! Families are ordered by age and size: first those that no other family beats in both, the largest first; then those
//! that only these beat; and so on. Quality is not compared: there are no measurements of it here.

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
    /// Models served: families in order of age and size, and the largest model of each first.
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

impl ServedModel {
    /// Whether it is newer than another; a model without a known date is older than all others.
    fn newer(&self, other: &ServedModel) -> bool {
        self.released > other.released
    }
}

/// The models by family. The first of a family is its largest model; `models` are sorted by size.
fn by_family(models: Vec<ServedModel>) -> Vec<ServedModel> {
    let mut families: Vec<Vec<ServedModel>> = Vec::new();
    for model in models {
        match families.iter_mut().find(|family| family[0].family == model.family) {
            Some(family) => family.push(model),
            None => families.push(vec![model]),
        }
    }
    let mut ordered = Vec::new();
    while !families.is_empty() {
        let beaten = |one: &[ServedModel]| {
            let larger = |other: &[ServedModel]| other[0].parameters > one[0].parameters;
            families.iter().any(|other| larger(other) && other[0].newer(&one[0]))
        };
        let beaten: Vec<bool> = families.iter().map(|one| beaten(one)).collect();
        let layers = families.into_iter().zip(beaten);
        let (later, first): (Vec<_>, Vec<_>) = layers.partition(|(_, beaten)| *beaten);
        ordered.extend(first.into_iter().flat_map(|(family, _)| family));
        families = later.into_iter().map(|(family, _)| family).collect();
    }
    ordered
}

/// Sorts the result.
pub fn serves(
    (scenario, sought): (Scenario, Requirements),
    mut models: Vec<ServedModel>,
    missed: Vec<RejectedBuild>,
    looked: SearchSummary,
) -> ServedModels {
    models.sort_by(|a, b| b.parameters.cmp(&a.parameters).then_with(|| a.build.model.cmp(&b.build.model)));
    let models = by_family(models);
    let by = |figure: fn(&ServedModel) -> u64| {
        let mut order: Vec<&ServedModel> = models.iter().collect();
        // Ties are broken by the order of the models.
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
        launch: None,
    }
}
