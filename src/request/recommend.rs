//! `recommend`: hardware to buy or rent for a model, or models for a machine.

pub mod explore;
pub mod requirements;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RequestControl;
use crate::report::recommend::report::RecommendReport;
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use explore::{for_hardware, for_model};

/// A request of `recommend`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RecommendRequest {
    /// Target output tokens per second for every user; from the TPOT SLO of the workload if absent.
    pub target_tok_s: Option<f64>,
    /// Users, each with one concurrent request.
    pub users: u64,
    /// Context length in tokens, earlier turns included, e.g. `32k`.
    pub context: Option<String>,
    /// Maximum purchase price, e.g. `15000usd`.
    pub budget: Option<String>,
    /// Maximum cost per hour, e.g. `20usd`.
    pub budget_hour: Option<String>,
    /// Maximum power of the devices, in watts.
    pub max_watts: Option<f64>,
    /// Vendors, classes, generations, devices or systems to consider.
    pub only: Vec<String>,
    /// The problem: with `hardware` and without `model`, models for that machine are recommended.
    pub scenario: Scenario,
}

impl Default for RecommendRequest {
    fn default() -> RecommendRequest {
        RecommendRequest {
            target_tok_s: None,
            users: 1,
            context: None,
            budget: None,
            budget_hour: None,
            max_watts: None,
            only: vec![],
            scenario: Scenario::default(),
        }
    }
}

pub fn recommend(
    catalog: &Catalog,
    request: &RecommendRequest,
    control: &RequestControl,
) -> Result<RecommendReport, Error> {
    let catalog = &*catalog.overridden_by_name(&request.scenario)?;
    let (scenario, mut sought) = request.requirements(catalog)?;
    Ok(if scenario.model.is_none() && scenario.hardware.is_some() {
        RecommendReport::Models(Box::new(for_hardware(catalog, &scenario, &mut sought, control)?))
    } else {
        RecommendReport::Hardware(Box::new(for_model(catalog, &scenario, &mut sought, control)?))
    })
}
