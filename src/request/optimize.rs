//! `optimize`: the best deployment and the Pareto front.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RequestControl;
use super::inputs::{lower_format, report_inputs, why};
use super::launch::launch;
use super::overrides::override_effects;
use super::remedy::InfeasibleProblem;
use crate::report::answer::{optimize_result, report_deployment};
use crate::report::audit::AuditSection;
use crate::report::compared::{PlainPlan, RuntimeTrial};
use crate::report::proof::Proof;
use crate::report::result::{OptimizeResult, ReportedDeployment};
use crate::search::layouts::Layouts;
use crate::search::outcome::{EvaluatedCandidate, Status};
use crate::search::point::place;
use crate::search::problem::Problem;
use crate::search::run::{Control, run, run_with};
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::front_points::{DEFAULT_FRONT_POINTS, FrontPoints};
use crate::spec::precision::ANY;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::resolved_scenario::{DEFAULT_HARDWARE, ResolvedScenario};

/// A request of `optimize`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OptimizeRequest {
    /// The problem.
    pub scenario: Scenario,
    /// Whether to add the best of each strategy, the load at which the runner-up wins, and the sensitivity to
    /// constraints.
    pub why: bool,
    /// Maximum number of points of the front, 1000 if absent, or `all`. A longer front is thinned to points that
    /// represent it.
    pub max_front_points: Option<FrontPoints>,
}

/// Finds the best deployment; if infeasible, the reasons and remedies. The runtime `any` compares all runtimes that
/// are measured on the devices.
///
/// # Errors
/// The problem is faulty.
pub fn optimize(
    catalog: &Catalog,
    request: &OptimizeRequest,
    control: &RequestControl,
) -> Result<OptimizeResult, Error> {
    match request.scenario.runtime.as_deref() {
        Some(ANY) => best_runtime(catalog, request, control),
        _ => on_runtime(catalog, request, control),
    }
}

/// The best result over all runtimes that are measured on the devices; its scenario names the runtime.
fn best_runtime(
    catalog: &Catalog,
    request: &OptimizeRequest,
    control: &RequestControl,
) -> Result<OptimizeResult, Error> {
    let hardware = request.scenario.hardware.as_deref().unwrap_or(DEFAULT_HARDWARE);
    let cluster = catalog.hardware(hardware)?;
    let mut trials = Vec::new();
    let mut best: Option<OptimizeResult> = None;
    let mut refused = None;
    for id in catalog.compared_runtimes(&cluster)? {
        let scenario = Scenario { runtime: Some(id.clone()), ..request.scenario.clone() };
        let result = match on_runtime(catalog, &OptimizeRequest { scenario, ..request.clone() }, control) {
            Ok(result) => result,
            Err(fault) => {
                trials.push(RuntimeTrial {
                    runtime: id,
                    status: None,
                    objective: None,
                    reason: Some(fault.found.clone()),
                });
                refused.get_or_insert(fault);
                continue;
            }
        };
        let aim = result.question.optimize.first().map(|aim| aim.metric);
        let objective = aim.zip(result.best.as_ref()).and_then(|(aim, best)| best.figure(aim));
        trials.push(RuntimeTrial { runtime: id, status: Some(result.status), objective, reason: None });
        if best.as_ref().is_none_or(|known| result.is_better(known)) {
            best = Some(result);
        }
    }
    match best {
        Some(best) => Ok(OptimizeResult { runtimes: trials, ..best }),
        None => Err(refused.unwrap_or_else(|| {
            let fix = "name one with --runtime";
            Error::new(
                "runtime",
                format!("none measured on {}", cluster.device.name),
                "a measured runtime",
                fix,
            )
        })),
    }
}

fn on_runtime(
    catalog: &Catalog,
    request: &OptimizeRequest,
    control: &RequestControl,
) -> Result<OptimizeResult, Error> {
    let scenario = &request.scenario;
    let resolved = &ResolvedScenario::resolve(catalog, scenario)?;
    let problem = &resolved.problem()?;
    // Further searches share the plans that the first has sharded.
    let layouts = if request.why { Layouts::shared(problem) } else { Layouts::new(problem) };
    let outcome = run_with(problem, &layouts, &control.search);
    let stopped = matches!(outcome.status, Status::Feasible | Status::Unknown);
    if stopped && (control.stopped_by)().is_none() {
        return Err(Error::new(
            "optimize",
            "a stopped search",
            "one that is not abandoned",
            "send the request again",
        ));
    }
    let lower = lower_format(resolved, (problem, &outcome), &control.search)?;
    let most = request.max_front_points.unwrap_or(FrontPoints::AtMost(DEFAULT_FRONT_POINTS));
    let report = optimize_result(problem, report_inputs(resolved, problem), &outcome, lower, most);
    let best_found = outcome.best.as_ref();
    let best = best_found.filter(|_| request.why && !stopped);
    let conflict = (outcome.status == Status::Infeasible).then(|| {
        InfeasibleProblem { catalog, scenario, resolved, problem, control: &control.search }.conflict()
    });
    let launch = match (best_found, &report.best) {
        (Some(best), Some(reported)) => {
            Some(launch(catalog, (resolved, problem), (&best.candidate, reported), scenario)?)
        }
        _ => None,
    };
    let audit = report.audit.zip(report.best.as_ref()).map(|(audit, best)| {
        let overrides = override_effects(catalog, &at(scenario, best), best);
        AuditSection { overrides, ..audit }
    });
    Ok(OptimizeResult {
        audit,
        launch,
        proof: Proof { stopped_by: (control.stopped_by)().filter(|_| stopped), ..report.proof },
        scenario: Some(scenario.clone()),
        why: best.and_then(|best| why(problem, (best, &outcome.front), &layouts, &control.search)),
        conflict,
        plain: best_found.filter(|_| !stopped).and_then(|best| plain(problem, best, &control.search)),
        ..report
    })
}

/// The scenario with a deployment that was found for it.
pub fn at(scenario: &Scenario, found: &ReportedDeployment) -> Scenario {
    let deployment = Deployment { plan: Some(found.notation.clone()), ..Deployment::default() };
    Scenario { deployment: Some(deployment), ..scenario.clone() }
}

/// The best plan of like workers, where `best` needs a router with weights.
fn plain(problem: &Problem, best: &EvaluatedCandidate, control: &Control) -> Option<PlainPlan> {
    if best.candidate.is_plain() {
        return None;
    }
    let mut like = problem.clone();
    like.custom_router = false;
    like.axes.clear();
    let found = run(&like, control).best?;
    let metric = problem.aims.first()?.metric;
    let reported = report_deployment(problem, &found.candidate);
    Some(PlainPlan {
        notation: reported.notation,
        label: reported.plan.label,
        value: found.point[place(metric)],
        best: best.point[place(metric)],
    })
}
