//! `deploy`: the commands and files that launch a given deployment, or the best one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RequestControl;
use super::estimate::{EstimateRequest, estimate};
use super::optimize::{OptimizeRequest, optimize};
use crate::report::cost::CostReport;
use crate::report::launch::LaunchReport;
use crate::report::result::OptimizeResult;
use crate::report::text::infeasible::{conflict_words, verdict};
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;

/// A request of `deploy`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DeployRequest {
    /// The problem; without a `deployment` the best one is launched.
    pub scenario: Scenario,
}

/// The launch of a deployment; the reasons where it cannot run, or where nothing meets the limits.
pub fn deploy(
    catalog: &Catalog,
    request: &DeployRequest,
    control: &RequestControl,
) -> Result<LaunchReport, Error> {
    let scenario = request.scenario.clone();
    if scenario.deployment.as_ref().is_some_and(Deployment::is_stated) {
        let given = estimate(catalog, &EstimateRequest::of(scenario), control)?;
        let cost = CostReport::of(&given.candidate, &given.question);
        let refused = || LaunchReport::refused(&given.question.runtime, given.candidate.violations);
        return Ok(given.launch.map(|launch| LaunchReport { cost, ..launch }).unwrap_or_else(refused));
    }
    let best = optimize(catalog, &OptimizeRequest::best_of(scenario), control)?;
    let refused = || LaunchReport::refused(&best.question.runtime, reasons(&best));
    let cost = best.best.as_ref().and_then(|found| CostReport::of(found, &best.question));
    Ok(best.launch.clone().map(|launch| LaunchReport { cost, ..launch }).unwrap_or_else(refused))
}

/// Why nothing is launched: the verdict, and the conditions that conflict.
fn reasons(none: &OptimizeResult) -> Vec<String> {
    let conflicts = none.conflict.iter().flat_map(|conflict| &conflict.conflicts).map(conflict_words);
    std::iter::once(verdict(none).to_owned()).chain(conflicts).collect()
}
