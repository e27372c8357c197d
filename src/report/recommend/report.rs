//! A report of `recommend`: hardware for a model, or models for a machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Recommendation;
use super::models::ServedModels;
use crate::report::launch::LaunchReport;
use crate::report::rows::builds as rows;
use crate::report::svg::SvgPicture;
use crate::report::svg::recommend::{models_picture, recommend_picture};

/// A report of `recommend`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RecommendReport {
    /// Hardware for a model.
    Hardware(Box<Recommendation>),
    /// Models for a machine.
    Models(Box<ServedModels>),
}

impl RecommendReport {
    /// Whether anything meets the requirements.
    pub fn serves(&self) -> bool {
        match self {
            RecommendReport::Hardware(found) => found.serves(),
            RecommendReport::Models(found) => found.serves(),
        }
    }

    /// The launch files of the first choice.
    pub fn launch(&self) -> Option<&LaunchReport> {
        match self {
            RecommendReport::Hardware(found) => found.launch.as_ref(),
            RecommendReport::Models(found) => found.launch.as_ref(),
        }
    }

    /// A row for each build, under a header.
    pub fn csv(&self) -> String {
        match self {
            RecommendReport::Hardware(found) => rows(&found.builds),
            RecommendReport::Models(found) => rows(found.models.iter().map(|held| &held.build)),
        }
    }

    /// Builds over cost and output, or models as bars.
    pub fn picture(&self) -> SvgPicture {
        match self {
            RecommendReport::Hardware(found) => recommend_picture(found),
            RecommendReport::Models(found) => models_picture(found),
        }
    }
}
