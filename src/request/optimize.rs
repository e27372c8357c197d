//! `optimize`: the best deployment and the Pareto front.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RequestControl;
use super::checked::{checked, is_due};
use super::inputs::{lower_format, report_inputs, why};
use super::launch::launch;
use super::overrides::override_effects;
use super::remedy::{InfeasibleProblem, of_each_runtime};
use super::simulate::SimulatedTraffic;
use crate::report::answer::{optimize_result, report_deployment};
use crate::report::audit::AuditSection;
use crate::report::compared::{PlainPlan, RuntimeTrial};
use crate::report::evidence::{SimplerChoice, UntriedPlan};
use crate::report::proof::{Proof, gap_between};
use crate::report::result::{OptimizeResult, ReportedDeployment};
use crate::search::decide::{PlanDecision, decide};
use crate::search::layouts::Layouts;
use crate::search::outcome::{EvaluatedCandidate, Outcome, Status};
use crate::search::point::place;
use crate::search::problem::Problem;
use crate::search::run::{Control, run};
use crate::search::simpler::SimplerPlan;
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::front_points::{DEFAULT_FRONT_POINTS, FrontPoints};
use crate::spec::objective::{Direction, Metric, MetricInput};
use crate::spec::precision::ANY;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::resolved_scenario::ResolvedScenario;

/// A request of `optimize`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OptimizeRequest {
    /// The problem.
    pub scenario: Scenario,
    /// Whether to add the best of each strategy, the load at which the runner-up wins, and the sensitivity to
    /// constraints.
    pub why: bool,
    /// Whether to simulate the best plans request by request; if absent, where the SLOs are on a percentile of requests
    /// that come at a rate.
    pub check: Option<bool>,
    /// Maximum number of points of the front, 1000 if absent, or `all`. A longer front is thinned to points that
    /// represent it.
    pub max_front_points: Option<FrontPoints>,
}

impl OptimizeRequest {
    /// The request for the best deployment alone: no front is listed.
    pub(crate) fn best_of(scenario: Scenario) -> OptimizeRequest {
        OptimizeRequest {
            scenario,
            check: Some(false),
            max_front_points: Some(0.into()),
            ..OptimizeRequest::default()
        }
    }
}

/// Finds the best deployment; if infeasible, the reasons and remedies. The runtime `any` compares all runtimes that
/// are measured on the devices.
pub fn optimize(
    catalog: &Catalog,
    request: &OptimizeRequest,
    control: &RequestControl,
) -> Result<OptimizeResult, Error> {
    optimize_under(catalog, request, &SimulatedTraffic::default(), control)
}

/// The same, with the best plans simulated under this traffic, where they are.
pub(super) fn optimize_under(
    catalog: &Catalog,
    request: &OptimizeRequest,
    traffic: &SimulatedTraffic,
    control: &RequestControl,
) -> Result<OptimizeResult, Error> {
    let scenario = &request.scenario;
    let any = scenario.runtime.as_deref() == Some(ANY);
    let (shown, compared) = match any {
        true => best_runtime(catalog, request, control)?,
        false => (on_runtime(catalog, request, control)?, vec![]),
    };
    if shown.result.status != Status::Infeasible {
        return with_check(catalog, (request, traffic), shown, control);
    }
    let RuntimeAnswer { resolved, problem, result, .. } = shown;
    let problems = if any { compared } else { vec![problem] };
    let (problems, resolved) = (&problems[..], &resolved);
    let infeasible = InfeasibleProblem { catalog, scenario, resolved, problems, control: &control.search };
    let conflict = Some(infeasible.conflict());
    Ok(OptimizeResult { conflict, scenario: Some(scenario.clone()), ..result })
}

/// The result with its best plans simulated, where that is due, and with the one of them that is to be shown.
fn with_check(
    catalog: &Catalog,
    (request, traffic): (&OptimizeRequest, &SimulatedTraffic),
    answer: RuntimeAnswer,
    control: &RequestControl,
) -> Result<OptimizeResult, Error> {
    let due = request.check.unwrap_or_else(|| is_due(&request.scenario));
    let result = &answer.result;
    let Some(best) = result.best.as_ref().filter(|_| due) else { return Ok(answer.result) };
    // Of several runtimes, the one whose result is shown.
    let scenario = Scenario { runtime: Some(result.question.runtime.clone()), ..request.scenario.clone() };
    let plans = std::iter::once(best).chain(&result.alternatives);
    let check = checked(catalog, (&scenario, traffic), result.question.optimize.first(), plans, control);
    let result = match (check.shown as usize).checked_sub(1) {
        Some(alternative) => {
            let request = OptimizeRequest { scenario, ..request.clone() };
            let shown = answer.outcome.alternatives[alternative].clone();
            let answer = shown_instead(catalog, &request, answer, shown, control)?;
            OptimizeResult { simpler: None, ..answer.result }
        }
        None => answer.result,
    };
    Ok(OptimizeResult { checked: Some(check), ..result })
}

/// The answer with another plan in place of the optimum of the formulas, which is the first alternative then.
fn shown_instead(
    catalog: &Catalog,
    request: &OptimizeRequest,
    answer: RuntimeAnswer,
    shown: EvaluatedCandidate,
    control: &RequestControl,
) -> Result<RuntimeAnswer, Error> {
    let RuntimeAnswer { resolved, problem, mut outcome, result, miss } = answer;
    outcome.alternatives.retain(|one| one.candidate != shown.candidate);
    let optimum = outcome.best.replace(shown);
    outcome.alternatives.splice(0..0, optimum);
    let layouts = request.why.then(|| Layouts::shared_until(&problem, control.search.stop));
    let fresh = reported(catalog, request, (&resolved, &problem), (&outcome, layouts.as_ref()), control)?;
    let result = OptimizeResult {
        formulas_best: result.formulas_best.or(result.best),
        best: fresh.best,
        alternatives: fresh.alternatives,
        detail: fresh.detail,
        audit: fresh.audit,
        launch: fresh.launch,
        why: fresh.why,
        plain: fresh.plain,
        lower_format: fresh.lower_format,
        ..result
    };
    Ok(RuntimeAnswer { resolved, problem, outcome, result, miss })
}

struct RuntimeAnswer {
    resolved: ResolvedScenario,
    problem: Problem,
    outcome: Outcome,
    result: OptimizeResult,
    /// Without an optimum: the factor by which the nearest deployment misses an SLO.
    miss: f64,
}

impl RuntimeAnswer {
    /// Whether it is shown before another: by the objective; without an optimum, what is open before what is not, then
    /// the nearest miss.
    fn is_before(&self, other: &RuntimeAnswer) -> bool {
        let rank = |answer: &RuntimeAnswer| u8::from(answer.result.status == Status::Infeasible);
        match (&self.result.best, &other.result.best) {
            (None, None) => (rank(self), self.miss) < (rank(other), other.miss),
            _ => self.result.is_better(&other.result),
        }
    }
}

/// The best result over all runtimes that are measured on the devices, and the problem of each; its scenario names the
/// runtime.
fn best_runtime(
    catalog: &Catalog,
    request: &OptimizeRequest,
    control: &RequestControl,
) -> Result<(RuntimeAnswer, Vec<Problem>), Error> {
    let (mut trials, mut problems, mut bounds) = (Vec::new(), Vec::new(), Vec::new());
    let mut best: Option<RuntimeAnswer> = None;
    let mut refused = None;
    for scenario in of_each_runtime(catalog, &request.scenario)? {
        let runtime = scenario.runtime.clone().unwrap_or_default();
        let found = match on_runtime(catalog, &OptimizeRequest { scenario, ..request.clone() }, control) {
            Ok(found) => found,
            Err(fault) => {
                let reason = Some(fault.found.clone());
                trials.push(RuntimeTrial { runtime, status: None, objective: None, reason });
                refused.get_or_insert(fault);
                continue;
            }
        };
        let result = &found.result;
        let aim = result.question.optimize.first().map(|aim| aim.metric);
        let objective = aim.zip(result.best.as_ref()).and_then(|(aim, best)| best.figure(aim));
        trials.push(RuntimeTrial { runtime, status: Some(result.status), objective, reason: None });
        problems.push(found.problem.clone());
        bounds.push((result.status, result.proof.clone()));
        if best.as_ref().is_none_or(|known| found.is_before(known)) {
            best = Some(found);
        }
    }
    let Some(shown) = best else {
        return Err(refused.unwrap_or_else(|| {
            let fix = "name one with --runtime";
            Error::new("runtime", "none measured on these devices", "a measured runtime", fix)
        }));
    };
    let result = OptimizeResult { runtimes: trials, ..over_all(shown.result, &bounds) };
    Ok((RuntimeAnswer { result, ..shown }, problems))
}

/// The best result with the bound of all runtimes: where the search of one was stopped, it is not proved.
fn over_all(shown: OptimizeResult, all: &[(Status, Proof)]) -> OptimizeResult {
    let stopped = |status: &Status| matches!(status, Status::Feasible | Status::Unknown);
    if shown.status != Status::Optimal || !all.iter().any(|(status, _)| stopped(status)) {
        return shown;
    }
    let open = all.iter().filter(|(status, _)| *status != Status::Infeasible);
    let bounds: Option<Vec<f64>> = open.map(|(_, proof)| proof.bound).collect();
    let aim = shown.question.optimize.first();
    let smaller = aim.is_some_and(|aim| aim.direction == Direction::Minimize);
    let bound = bounds.and_then(|all| all.into_iter().reduce(if smaller { f64::min } else { f64::max }));
    let found = aim.zip(shown.best.as_ref()).and_then(|(aim, best)| best.figure(aim.metric));
    let gap = found.zip(bound).map(|(found, bound)| gap_between(found, bound));
    let mut parts = all.iter().map(|(_, proof)| proof);
    let open = parts.find(|proof| proof.stopped_by.is_some());
    let proof = Proof {
        bound,
        gap: gap.filter(|gap| gap.is_finite()),
        proved_by: open.map_or_else(|| shown.proof.proved_by.clone(), |proof| proof.proved_by.clone()),
        stopped_by: open.and_then(|proof| proof.stopped_by),
        ..shown.proof
    };
    OptimizeResult { status: Status::Feasible, proof, ..shown }
}

fn on_runtime(
    catalog: &Catalog,
    request: &OptimizeRequest,
    control: &RequestControl,
) -> Result<RuntimeAnswer, Error> {
    let scenario = &request.scenario;
    let resolved = ResolvedScenario::resolve(catalog, scenario)?;
    let problem = resolved.problem()?;
    known_axes(&resolved, &problem)?;
    // Further searches share the plans that the first has sharded.
    let stop = control.search.stop;
    let layouts =
        if request.why { Layouts::shared_until(&problem, stop) } else { Layouts::until(&problem, stop) };
    let PlanDecision { problem, outcome, untried, simpler } = decide(problem, &layouts, &control.search);
    if is_stopped(&outcome) && (control.stopped_by)().is_none() {
        let expected = "one that is not abandoned";
        return Err(Error::new("optimize", "a stopped search", expected, "send the request again"));
    }
    let explained = Some(&layouts).filter(|_| request.why);
    let result = reported(catalog, request, (&resolved, &problem), (&outcome, explained), control)?;
    let nearest = outcome
        .nearest
        .as_ref()
        .map(|(found, _)| problem.filled(&found.point, found.candidate.margin(&problem)));
    drop(layouts);
    let untried = untried.zip(problem.objective.first()).map(|(found, term)| UntriedPlan {
        deployment: report_deployment(&problem.clone().with_measured_only(false), &found.candidate),
        metric: term.metric,
    });
    let result = OptimizeResult { untried, ..result };
    let miss = nearest.unwrap_or(f64::INFINITY);
    let answer = RuntimeAnswer { miss, result, outcome, resolved, problem };
    let Some(SimplerPlan { found, wins }) = simpler else { return Ok(answer) };
    let mut answer = shown_instead(catalog, request, answer, found, control)?;
    answer.result.simpler =
        answer.problem.objective.first().map(|term| SimplerChoice { wins, metric: term.metric });
    Ok(answer)
}

fn is_stopped(outcome: &Outcome) -> bool {
    matches!(outcome.status, Status::Feasible | Status::Unknown)
}

/// The result of a search. Why the best is the best is in it where `layouts` are given.
fn reported(
    catalog: &Catalog,
    request: &OptimizeRequest,
    (resolved, problem): (&ResolvedScenario, &Problem),
    (outcome, layouts): (&Outcome, Option<&Layouts>),
    control: &RequestControl,
) -> Result<OptimizeResult, Error> {
    let scenario = &request.scenario;
    let stopped = is_stopped(outcome);
    let lower = lower_format(resolved, (problem, outcome), &control.search)?;
    let most = request.max_front_points.unwrap_or(FrontPoints::AtMost(DEFAULT_FRONT_POINTS));
    let report = optimize_result(problem, report_inputs(resolved, problem), outcome, lower, most);
    let best_found = outcome.best.as_ref();
    let explained = best_found.filter(|_| !stopped).zip(layouts);
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
        why: explained
            .and_then(|(best, layouts)| why(problem, (best, &outcome.front), layouts, &control.search)),
        plain: best_found.filter(|_| !stopped).and_then(|best| plain(problem, best, &control.search)),
        ..report
    })
}

/// Checks that every stated axis of the front has values: no front is over fewer axes than were stated.
fn known_axes(resolved: &ResolvedScenario, problem: &Problem) -> Result<(), Error> {
    let unknown = |axis: &&Metric| problem.stated_axes && !problem.axes.contains(axis);
    let Some(axis) = resolved.objective.pareto.iter().find(unknown) else { return Ok(()) };
    let (missing, fix) = match axis.entry().needs {
        MetricInput::Price => ("price", "set one with --usd-per-device-hour, or omit the metric"),
        MetricInput::Power | MetricInput::Nothing => ("power", "omit the metric"),
    };
    let found = format!("{}, for {} without a known {missing}", axis.entry().name, resolved.cluster.name);
    Err(Error::new("pareto", found, format!("a metric that needs no {missing}"), fix))
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
    let metric = problem.objective.first()?.metric;
    let reported = report_deployment(problem, &found.candidate);
    Some(PlainPlan {
        notation: reported.notation,
        label: reported.plan.label,
        value: found.point[place(metric)],
        best: best.point[place(metric)],
    })
}
