//! `estimate`: evaluates one given deployment with the metrics of `optimize`.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RequestControl;
use super::build_candidate::candidate;
use super::command::{GivenCommand, of_command};
use super::given_plan::with_plan;
use super::inputs::report_inputs;
use super::launch::launch;
use super::optimize::at;
use super::overrides::override_effects;
use super::remedy::of_each_runtime;
use crate::launch::settings_file::NamedFiles;
use crate::launch::shell::CommandVariables;
use crate::report::answer::estimate_result;
use crate::report::audit::AuditSection;
use crate::report::number::requests;
use crate::report::result::{EstimateResult, ReportedDeployment};
use crate::search::problem::{Problem, Traffic};
use crate::spec::error::Error;
use crate::spec::objective::LatencyLimits;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;

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
    /// Values of variables of the shell that the command leaves open, by name.
    #[serde(skip_serializing_if = "CommandVariables::is_empty")]
    pub command_variables: CommandVariables,
}

impl EstimateRequest {
    /// A command with its files and variables.
    fn command_text<'a>(&'a self, text: &'a str) -> GivenCommand<'a> {
        GivenCommand::of(text, &self.command_files).with(&self.command_variables)
    }

    /// An estimate of what the scenario deploys.
    pub fn of(scenario: Scenario) -> EstimateRequest {
        EstimateRequest { scenario, ..EstimateRequest::default() }
    }
}

/// Evaluates the deployment; with the runtime `any`, by the runtime that is best for it.
pub fn estimate(
    catalog: &Catalog,
    request: &EstimateRequest,
    _: &RequestControl,
) -> Result<EstimateResult, Error> {
    if let Some(command) = &request.command {
        return of_command(catalog, &request.command_text(command), &request.scenario);
    }
    let scenarios = of_each_runtime(catalog, &request.scenario)?;
    let several = scenarios.len() > 1;
    let mut best: Option<EstimateResult> = None;
    let mut refused = None;
    for scenario in scenarios {
        match on_runtime(catalog, scenario) {
            Ok(found) if best.as_ref().is_none_or(|known| is_better(&found, known)) => best = Some(found),
            Ok(_) => {}
            Err(fault) if several => {
                refused.get_or_insert(fault);
            }
            Err(fault) => return Err(fault),
        }
    }
    let none = || Error::new("runtime", "none", "a runtime of these devices", "name one with --runtime");
    best.ok_or_else(|| refused.unwrap_or_else(none))
}

/// Whether an estimate is better than one by another runtime: one that violates nothing, then by the objective.
fn is_better(found: &EstimateResult, known: &EstimateResult) -> bool {
    let (a, b) = (&found.candidate, &known.candidate);
    let broken =
        |candidate: &ReportedDeployment| (candidate.metrics.is_none(), !candidate.violations.is_empty());
    match broken(a).cmp(&broken(b)) {
        Ordering::Equal => a.is_better(b, &found.question.optimize),
        order => order.is_lt(),
    }
}

fn on_runtime(catalog: &Catalog, scenario: Scenario) -> Result<EstimateResult, Error> {
    let (resolved, plan) = with_plan(catalog, &scenario)?;
    let problem = resolved.problem()?;
    let candidate = candidate(&problem, &plan)?;
    let result = estimate_result(&problem, report_inputs(&resolved, &problem), &candidate);
    let written = (&candidate, &result.candidate);
    let launch = match result.candidate.metrics {
        Some(_) => Some(launch(catalog, (&resolved, &problem), written, &scenario)?),
        None => None,
    };
    let overrides = override_effects(catalog, &at(&scenario, &result.candidate), &result.candidate);
    let audit = result.audit.map(|audit| AuditSection { overrides, ..audit });
    let open = problem.traffic == Traffic::Free && plan.leaves_load_open();
    let chosen_load = (open && result.candidate.metrics.is_some())
        .then(|| chosen_load(&result.candidate, &problem, &resolved.objective.id));
    Ok(EstimateResult { scenario: Some(scenario), launch, audit, chosen_load, ..result })
}

fn chosen_load(chosen: &ReportedDeployment, problem: &Problem, objective: &str) -> String {
    let load = format!("{} concurrent", requests(chosen.concurrency));
    if !chosen.violations.is_empty() {
        return format!("{load}, one request per attention rank: no load of this plan meets the SLOs");
    }
    let within = if problem.limits == LatencyLimits::default() { "" } else { " within the SLOs" };
    format!("{load}, chosen as the best load of this plan for {objective}{within}")
}
