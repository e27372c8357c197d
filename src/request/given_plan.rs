//! A scenario with its given plan: the problem, and the plan read from the deployment.

use super::build_candidate::candidate;
use crate::search::candidate::Candidate;
use crate::search::problem::Problem;
use crate::spec::error::Error;
use crate::spec::notation::PlanText;
use crate::spec::precision::FormatOption;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::resolved_scenario::ResolvedScenario;

/// The problem and its given plan; an empty plan is one replica on one device. Formats of the plan are added to those
/// of the problem.
pub fn with_plan(catalog: &Catalog, scenario: &Scenario) -> Result<(ResolvedScenario, PlanText), Error> {
    with_plan_of(scenario, |scenario| ResolvedScenario::resolve(catalog, scenario))
}

/// The problem with the candidate of its given plan.
pub fn planned_problem(
    catalog: &Catalog,
    scenario: &Scenario,
) -> Result<(ResolvedScenario, Problem, Candidate), Error> {
    let (resolved, plan) = with_plan(catalog, scenario)?;
    let problem = resolved.problem()?;
    let candidate = candidate(&problem, &plan)?;
    Ok((resolved, problem, candidate))
}

/// The same as [`with_plan`] with another way to resolve a scenario, whose deployment it may ignore.
pub fn with_plan_of<R: AsRef<ResolvedScenario>>(
    scenario: &Scenario,
    resolve: impl Fn(&Scenario) -> Result<R, Error>,
) -> Result<(R, PlanText), Error> {
    let plan = scenario.deployment.clone().unwrap_or_default().text()?;
    let of = |id: &Option<String>, known: &[FormatOption]| {
        id.as_ref().is_none_or(|id| known.iter().any(|choice| choice.format.id == *id))
    };
    let has = |of_problem: &ResolvedScenario| {
        let prefill = of_problem.prefill_weights.as_slice();
        of(&plan.weights, &of_problem.weight_formats)
            && of(&plan.prefill_weights, prefill)
            && of(&plan.kv, &of_problem.kv_formats)
    };
    match resolve(scenario) {
        Ok(found) if has(found.as_ref()) => return Ok((found, plan)),
        Ok(_) => {}
        // The checkpoint's own format does not run here; the plan may name another.
        Err(fault) if plan.weights.is_some() && fault.key == "weight-format" => {}
        Err(fault) => return Err(fault),
    }
    let named = |key: &str, stated: &Option<String>, named: &Option<String>| match (stated, named) {
        (Some(stated), Some(named)) if stated != named && stated != "any" => {
            let found = format!("`{named}` in the plan, `{stated}` as a flag");
            Err(Error::new(key, found, "one of them", format!("omit --{key}")))
        }
        _ => Ok(named.clone().or(stated.clone())),
    };
    let scenario = Scenario {
        weight_format: named("weight-format", &scenario.weight_format, &plan.weights)?,
        prefill_weight_format: named(
            "prefill-weight-format",
            &scenario.prefill_weight_format,
            &plan.prefill_weights,
        )?,
        kv_format: named("kv-format", &scenario.kv_format, &plan.kv)?,
        ..scenario.clone()
    };
    let found = resolve(&scenario)?;
    let resolved = found.as_ref();
    // A format may have several names.
    let id = |named: &Option<String>, known: &[FormatOption]| {
        named.as_ref().and(known.first()).map(|choice| choice.format.id.clone())
    };
    let (weights, kv) = (id(&plan.weights, &resolved.weight_formats), id(&plan.kv, &resolved.kv_formats));
    // The problem has it; a plan in the format of the others needs no name for it.
    Ok((found, PlanText { weights, prefill_weights: None, kv, ..plan }))
}
