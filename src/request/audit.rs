//! `audit`: the assumptions of a prediction, by their effect.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RequestControl;
use super::estimate::{EstimateRequest, estimate};
use super::given_plan::planned_problem;
use super::inputs::report_inputs;
use super::optimize::{OptimizeRequest, at, optimize};
use super::overrides::override_effects;
use crate::report::audit::{AuditReport, AuditSection, audit as audited};
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;

/// A request of `audit`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AuditRequest {
    /// The problem; without a `deployment` the best one is audited.
    pub scenario: Scenario,
}

/// Audits the given deployment, or the best one.
///
/// # Errors
/// The problem or the deployment is faulty, or nothing meets the limits.
pub fn audit(
    catalog: &Catalog,
    request: &AuditRequest,
    control: &RequestControl,
) -> Result<AuditReport, Error> {
    let scenario = planned(catalog, &request.scenario, control)?;
    let (resolved, problem, candidate) = planned_problem(catalog, &scenario)?;
    let given = estimate(catalog, &EstimateRequest::of(scenario.clone()), control)?;
    if given.candidate.metrics.is_none() {
        let found = format!("a deployment that does not run: {}", given.candidate.violations.join("; "));
        return Err(Error::new("audit", found, "a deployment that runs", "change the plan, or omit it"));
    }
    let question = (scenario.clone(), report_inputs(&resolved, &problem), given.candidate.notation.clone());
    let report = audited(&problem, &candidate, question);
    let overrides = override_effects(catalog, &scenario, &given.candidate);
    Ok(AuditReport { section: AuditSection { overrides, ..report.section }, ..report })
}

/// The scenario with a deployment: the given one, or the best.
pub fn planned(catalog: &Catalog, scenario: &Scenario, control: &RequestControl) -> Result<Scenario, Error> {
    if scenario.deployment.as_ref().is_some_and(Deployment::is_stated) {
        return Ok(scenario.clone());
    }
    let best =
        optimize(catalog, &OptimizeRequest::best_of(scenario.clone()), control)?.best.ok_or_else(|| {
            let fix = "pose it without `audit` to see why, and what would change it";
            Error::new("audit", "no deployment that meets the limits", "a feasible problem", fix)
        })?;
    Ok(at(scenario, &best))
}
