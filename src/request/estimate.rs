//! `estimate`: evaluates one given deployment with the metrics of `optimize`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RequestControl;
use super::audit::override_effects;
use super::build_candidate::candidate;
use super::command::of_command;
use super::inputs::report_inputs;
use super::launch::launch;
use crate::launch::settings_file::NamedFiles;
use crate::report::answer::estimate_result;
use crate::report::audit::AuditSection;
use crate::report::result::EstimateResult;
use crate::spec::error::Error;
use crate::spec::notation::PlanText;
use crate::spec::precision::FormatOption;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::resolved_scenario::ResolvedScenario;

/// A request of `estimate`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EstimateRequest {
    /// The problem, with its `deployment`.
    pub scenario: Scenario,
    /// A launch command, a script or a manifest that starts the deployment; fields of the scenario take precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Settings files that the command names, by name without folders: their text.
    #[serde(skip_serializing_if = "NamedFiles::is_empty")]
    pub command_files: NamedFiles,
}

impl EstimateRequest {
    /// The request for a scenario.
    pub fn of(scenario: Scenario) -> EstimateRequest {
        EstimateRequest { scenario, ..EstimateRequest::default() }
    }
}

/// Evaluates the deployment.
///
/// # Errors
/// The problem or the deployment is faulty.
pub fn estimate(
    catalog: &Catalog,
    request: &EstimateRequest,
    _control: &RequestControl,
) -> Result<EstimateResult, Error> {
    if let Some(command) = &request.command {
        return of_command(catalog, command, &request.command_files, &request.scenario);
    }
    let (resolved, plan) = with_plan(catalog, &request.scenario)?;
    let problem = resolved.problem()?;
    let candidate = candidate(&problem, &plan)?;
    let result = estimate_result(&problem, report_inputs(&resolved, &problem), &candidate);
    let result = EstimateResult { scenario: Some(request.scenario.clone()), ..result };
    let written = (&candidate, &result.candidate);
    let launch = launch(catalog, (&resolved, &problem), written, &request.scenario)?;
    let overrides = override_effects(catalog, &request.scenario, &result.candidate);
    let audit = result.audit.map(|audit| AuditSection { overrides, ..audit });
    Ok(EstimateResult { launch: Some(launch), audit, ..result })
}

/// The problem and its given plan; an empty plan is one replica on one device. Formats of the plan are added to those
/// of the problem.
///
/// # Errors
/// The problem or the plan is faulty.
pub fn with_plan(catalog: &Catalog, scenario: &Scenario) -> Result<(ResolvedScenario, PlanText), Error> {
    with_plan_of(scenario, |scenario| ResolvedScenario::resolve(catalog, scenario))
}

/// The same with another way to resolve a scenario, whose deployment it may ignore.
///
/// # Errors
/// The problem or the plan is faulty.
pub fn with_plan_of<R: AsRef<ResolvedScenario>>(
    scenario: &Scenario,
    resolve: impl Fn(&Scenario) -> Result<R, Error>,
) -> Result<(R, PlanText), Error> {
    let found = resolve(scenario)?;
    let resolved = found.as_ref();
    let plan = scenario.deployment.clone().unwrap_or_default().text()?;
    let of = |id: &Option<String>, known: &[FormatOption]| {
        id.as_ref().is_none_or(|id| known.iter().any(|choice| choice.format.id == *id))
    };
    if of(&plan.weights, &resolved.weight_formats) && of(&plan.kv, &resolved.kv_formats) {
        return Ok((found, plan));
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
    Ok((found, PlanText { weights, kv, ..plan }))
}

/// Whether the text is a saved result, not a deployment.
pub fn is_saved_result(text: &str) -> bool {
    serde_json::from_str(text).is_ok_and(|saved| is_result(&saved))
}

fn is_result(saved: &Value) -> bool {
    saved.get("question").is_some() || saved.get("best").is_some()
}
