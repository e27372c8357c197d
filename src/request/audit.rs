//! `audit`: the assumptions of a prediction, by their effect.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RequestControl;
use super::build_candidate::candidate;
use super::estimate::{EstimateRequest, estimate, with_plan};
use super::inputs::report_inputs;
use super::optimize::{OptimizeRequest, at, optimize};
use crate::report::answer::estimate_deployment;
use crate::report::audit::{AuditReport, AuditSection, AuditedOverride, OverrideEffect, audit as audited};
use crate::report::result::ReportedDeployment;
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::objective::METRICS;
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
    let (resolved, plan) = with_plan(catalog, &scenario)?;
    let problem = resolved.problem()?;
    let candidate = candidate(&problem, &plan)?;
    let given = estimate(catalog, &EstimateRequest::of(scenario.clone()), control)?;
    if given.candidate.metrics.is_none() {
        let found = format!("a deployment that does not run: {}", given.candidate.violations.join("; "));
        return Err(Error::new("audit", found, "a deployment that runs", "change the plan, or omit it"));
    }
    let asked = (scenario.clone(), report_inputs(&resolved, &problem), given.candidate.notation.clone());
    let report = audited(&problem, &candidate, asked);
    let overrides = override_effects(catalog, &scenario, &given.candidate);
    Ok(AuditReport { section: AuditSection { overrides, ..report.section }, ..report })
}

/// The scenario with a deployment: the given one, or the best.
fn planned(catalog: &Catalog, scenario: &Scenario, control: &RequestControl) -> Result<Scenario, Error> {
    if scenario.deployment.as_ref().is_some_and(Deployment::is_stated) {
        return Ok(scenario.clone());
    }
    let request = OptimizeRequest {
        scenario: scenario.clone(),
        max_front_points: Some(0),
        ..OptimizeRequest::default()
    };
    let best = optimize(catalog, &request, control)?.best.ok_or_else(|| {
        let fix = "pose it without `audit` to see why, and what would change it";
        Error::new("audit", "no deployment that meets the limits", "a feasible problem", fix)
    })?;
    Ok(at(scenario, &best))
}

/// Each override of a scenario with a deployment, and the metrics that it changes at that deployment.
pub fn override_effects(
    catalog: &Catalog,
    scenario: &Scenario,
    with: &ReportedDeployment,
) -> Vec<AuditedOverride> {
    let overrides = scenario.set.iter().flatten();
    let effects = |one: &String| {
        let plain = without(catalog, scenario, one);
        let each = METRICS.iter().filter_map(|entry| {
            let now = with.figure(entry.metric)?;
            let before = plain.as_ref().and_then(|plain| plain.figure(entry.metric));
            let column = entry.column.to_owned();
            (before != Some(now)).then_some(OverrideEffect { column, with: now, without: before })
        });
        each.collect()
    };
    overrides.map(|one| AuditedOverride { set: one.clone(), effects: effects(one) }).collect()
}

/// The deployment of a scenario, without one of its overrides; none if it does not resolve then.
fn without(catalog: &Catalog, scenario: &Scenario, one: &str) -> Option<ReportedDeployment> {
    let others: Vec<String> = scenario.set.iter().flatten().filter(|other| *other != one).cloned().collect();
    let plain = Scenario { set: (!others.is_empty()).then_some(others), ..scenario.clone() };
    let (resolved, plan) = with_plan(catalog, &plain).ok()?;
    let problem = resolved.problem().ok()?;
    let candidate = candidate(&problem, &plan).ok()?;
    Some(estimate_deployment(&problem, &candidate))
}
