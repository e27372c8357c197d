//! `deploy`: the commands and files that launch a given deployment, or the best one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RequestControl;
use super::estimate::{EstimateRequest, estimate};
use super::optimize::{OptimizeRequest, optimize};
use crate::report::launch::LaunchReport;
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

/// The launch of a deployment.
///
/// # Errors
/// The problem is faulty, or nothing meets its limits.
pub fn deploy(
    catalog: &Catalog,
    request: &DeployRequest,
    control: &RequestControl,
) -> Result<LaunchReport, Error> {
    let scenario = request.scenario.clone();
    let launch = if scenario.deployment.as_ref().is_some_and(Deployment::is_stated) {
        estimate(catalog, &EstimateRequest::of(scenario), control)?.launch
    } else {
        let request =
            OptimizeRequest { scenario, max_front_points: Some(0.into()), ..OptimizeRequest::default() };
        optimize(catalog, &request, control)?.launch
    };
    launch.ok_or_else(|| {
        let fix = "pose it without `deploy` to see why, and what would change it";
        Error::new("deploy", "no deployment that meets the limits", "a feasible problem", fix)
    })
}
