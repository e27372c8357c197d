//! The effect of each override of a scenario: its metrics with and without it, at the same deployment.

use super::given_plan::planned_problem;
use crate::report::answer::estimate_deployment;
use crate::report::audit::{AuditedOverride, OverrideEffect};
use crate::report::result::ReportedDeployment;
use crate::spec::objective::METRICS;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;

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
    let (_, problem, candidate) = planned_problem(catalog, &plain).ok()?;
    Some(estimate_deployment(&problem, &candidate))
}
