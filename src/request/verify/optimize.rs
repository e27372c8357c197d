//! Verification of a saved optimum: every row estimated again, the laws of its numbers, the objective, the front,
//! random deployments, and the search itself.

use serde_json::{Value, json};

use super::row::evaluated;
use super::{CheckResult, RandomSample, Rerun, differences, faults, no_problem, question, read, search};
use crate::quantity::tolerance::SUMMED;
use crate::report::answer::{leaves, plan};
use crate::report::audit::{AuditSection, section};
use crate::report::detail::detail;
use crate::report::notation::notation;
use crate::report::number::requests;
use crate::report::reporter::Reporter;
use crate::report::result::{OptimizeResult, ReportedDeployment};
use crate::report::verify::Verified;
use crate::request::UNCONTROLLED;
use crate::request::optimize::{OptimizeRequest, optimize};
use crate::search::outcome::{EvaluatedCandidate, Status};
use crate::search::pareto::beats;
use crate::search::point::place;
use crate::search::problem::Problem;
use crate::search::ratio::MixProgram;
use crate::search::sample::sample;
use crate::spec::error::Error;
use crate::spec::front_points::{Every, FrontPoints};
use crate::spec::objective::Direction;
use crate::spec::precision::ANY;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::resolved_scenario::ResolvedScenario;

/// The problem of a saved optimum, and the result of a complete search.
pub struct OptimizeRerun {
    pub problem: Problem,
    pub fresh: OptimizeResult,
}

impl Rerun for OptimizeRerun {
    fn check(&self, saved: &Value, sample: RandomSample) -> Result<Verified, Error> {
        Ok(Verified::of(self.checks(&read(saved)?, sample), sample.seed))
    }
}

impl OptimizeRerun {
    /// Solves the problem of `saved` again. Optional parts are computed only if `saved` has them.
    pub fn solve(catalog: &Catalog, saved: &OptimizeResult) -> Result<OptimizeRerun, Error> {
        let mut scenario = saved.scenario.clone().ok_or_else(no_problem)?;
        if !saved.runtimes.is_empty() {
            scenario.runtime = Some(ANY.to_string());
        }
        let requested = saved.front_thinning.as_ref().map(|thinning| thinning.requested);
        let max_front_points = requested.or(Some(FrontPoints::Every(Every::All)));
        let check = Some(saved.checked.is_some());
        let request = OptimizeRequest { scenario, why: saved.why.is_some(), check, max_front_points };
        let fresh = optimize(catalog, &request, &UNCONTROLLED)?;
        // Of several runtimes, the one whose result is shown.
        let named = match fresh.runtimes.is_empty() {
            true => request.scenario,
            false => Scenario { runtime: Some(fresh.question.runtime.clone()), ..request.scenario },
        };
        let problem = ResolvedScenario::resolve(catalog, &named)?.problem()?;
        let problem = problem.with_measured_only(fresh.proof.space.measured_kinds_only);
        let conflict = fresh.conflict.filter(|_| saved.conflict.is_some());
        Ok(OptimizeRerun { problem, fresh: OptimizeResult { conflict, ..fresh } })
    }

    fn checks(&self, saved: &OptimizeResult, drawn: RandomSample) -> Vec<CheckResult> {
        let (problem, fresh) = (&self.problem, &self.fresh);
        let mut resolved = differences("question", &saved.question, &fresh.question);
        resolved.extend(differences("scenario", &saved.scenario, &fresh.scenario));
        let (best, best_check) = evaluated(problem, "best", &saved.best);
        let (others, others_check) = evaluated(problem, "alternative", &saved.alternatives);
        let (front, front_check) = evaluated(problem, "front", &saved.front);
        let best = best.into_iter().next();
        // The proof is of the optimum of the formulas.
        let (formulas, formulas_check) = evaluated(problem, "formulas_best", &saved.formulas_best);
        let optimum = formulas.into_iter().next().or_else(|| best.clone());
        let optimum = optimum.as_ref();
        let rows: Vec<&EvaluatedCandidate> = others.iter().chain(&front).collect();
        let opened = best.as_ref().map_or_else(Vec::new, |best| detailed(problem, (saved, fresh), best));
        let on_front = on_front(problem, saved, optimum, &front);
        vec![
            question(faults(resolved)),
            best_check,
            formulas_check,
            others_check,
            front_check,
            CheckResult::new(
                "detail: times, memory, constraints and assumptions, from the formulas",
                1,
                opened,
            ),
            CheckResult::new(
                "objective: no row of the result is better than its best",
                rows.len(),
                [status(saved), better(problem, optimum, &rows)].concat(),
            ),
            CheckResult::new(
                "front: the best is on it or dominated on stated axes, and no row is dominated by another",
                front.len(),
                on_front,
            ),
            CheckResult::new(
                "simulation: the best plans, request by request",
                saved.checked.as_ref().map_or(0, |checked| checked.plans.len()),
                faults(differences("checked", &saved.checked, &fresh.checked)),
            ),
            sampled(problem, saved, optimum, drawn),
            programs(&fresh.programs),
            CheckResult::new(
                "proof: the bound and the gap agree with the best",
                1,
                proved(problem, saved, optimum),
            ),
            if stopped(saved) {
                let what = "search: a complete search contradicts neither the bound nor the best";
                CheckResult::new(what, 1, self.contradicted(saved, optimum))
            } else {
                search(saved, fresh)
            },
        ]
    }

    /// Compares best and bound of a stopped search with those of a complete one.
    fn contradicted(&self, saved: &OptimizeResult, best: Option<&EvaluatedCandidate>) -> Vec<String> {
        let (bound, reached) = (saved.proof.bound, self.fresh.proof.bound);
        let beyond = |(bound, reached): &(f64, f64)| is_better(&self.problem, *reached, *bound);
        let too_tight = bound
            .zip(reached)
            .filter(beyond)
            .map(|(bound, reached)| format!("proof.bound: saved {bound}, a new search reaches {reached}"));
        let found = best.and_then(|best| aimed(&self.problem, best));
        let beyond = |(found, reached): &(f64, f64)| is_better(&self.problem, *found, *reached);
        let too_good = found
            .zip(reached)
            .filter(beyond)
            .map(|(found, reached)| format!("best: saved {found}, the proved bound is {reached}"));
        too_tight.into_iter().chain(too_good).collect()
    }
}

/// The second argument for mixes of workers: the optimum of the integer program of each, solved again by branch and
/// bound, is that of the dynamic program.
fn programs(all: &[MixProgram]) -> CheckResult {
    let decided: Vec<(usize, bool)> =
        all.iter().enumerate().filter_map(|(at, one)| Some((at, one.agrees()?))).collect();
    let wrong = decided.iter().filter(|(_, agrees)| !agrees);
    let faults =
        wrong.map(|(at, _)| format!("program {}: its optimum is another than that of the search", at + 1));
    let what = format!(
        "program: of {} integer programs of worker counts, {} are solved, each with the optimum of the search",
        all.len(),
        decided.len()
    );
    CheckResult::new(what, decided.len(), faults.collect())
}

/// Whether the search was stopped: its result only claims its bound.
fn stopped(saved: &OptimizeResult) -> bool {
    matches!(saved.status, Status::Feasible | Status::Unknown)
}

/// Whether `a` is better than `b` in the first objective term, by more than rounding.
fn is_better(problem: &Problem, a: f64, b: f64) -> bool {
    let smaller = problem.objective.first().is_some_and(|aim| aim.direction == Direction::Minimize);
    let margin = SUMMED * b.abs();
    if smaller { a < b - margin } else { a > b + margin }
}

/// The value of the first objective term, in the units of results.
fn aimed(problem: &Problem, found: &EvaluatedCandidate) -> Option<f64> {
    let metric = problem.objective.first()?.metric;
    let value = found.point[place(metric)] / metric.entry().scale;
    value.is_finite().then_some(value)
}

/// The bound and the gap against the best.
fn proved(problem: &Problem, saved: &OptimizeResult, best: Option<&EvaluatedCandidate>) -> Vec<String> {
    let proof = &saved.proof;
    let Some((found, bound)) = best.and_then(|best| aimed(problem, best)).zip(proof.bound) else {
        return vec![];
    };
    let mut faults = Vec::new();
    if is_better(problem, found, bound) {
        faults.push(format!("proof.bound: saved {bound}, the best has {found}"));
    }
    let gap = if found == bound { 0.0 } else { (found - bound).abs() / found.abs() };
    if proof.gap.is_none_or(|saved| (saved - gap).abs() > SUMMED) {
        let saved = proof.gap.map_or("none".to_string(), |gap| gap.to_string());
        faults.push(format!("proof.gap: saved {saved}, recomputed {gap}"));
    }
    if saved.status == Status::Optimal && gap > SUMMED {
        faults.push(format!("status: saved optimal, the gap is {gap}"));
    }
    faults
}

/// Evaluates the details and the audit of the best again.
fn detailed(
    problem: &Problem,
    (saved, fresh): (&OptimizeResult, &OptimizeResult),
    best: &EvaluatedCandidate,
) -> Vec<String> {
    let reporter = Reporter::new(problem);
    let leaves = leaves(&reporter, &best.candidate);
    let mut found = differences("detail", &saved.detail, &detail(&reporter, &best.candidate, &leaves));
    let audit = section(&reporter, &best.candidate);
    // Effects of overrides need another problem: the new search has them.
    let overrides = fresh.audit.as_ref().map_or_else(Vec::new, |audit| audit.overrides.clone());
    found.extend(differences("audit", &saved.audit, &Some(AuditSection { overrides, ..audit })));
    faults(found)
}

/// A best is saved where the status claims one, and only there.
fn status(saved: &OptimizeResult) -> Vec<String> {
    let solved = matches!(saved.status, Status::Optimal | Status::Feasible);
    let there = if saved.best.is_some() { "a" } else { "no" };
    let fault = format!("status: saved {}, with {there} best", json!(saved.status));
    if solved == saved.best.is_some() { vec![] } else { vec![fault] }
}

/// The rows that are better than the best.
fn better(problem: &Problem, best: Option<&EvaluatedCandidate>, rows: &[&EvaluatedCandidate]) -> Vec<String> {
    let beats = |found: &&&EvaluatedCandidate| {
        best.is_some_and(|best| problem.by_objective(&found.point, &best.point).is_lt())
    };
    rows.iter().filter(beats).map(|found| format!("{} is better", plan(&found.candidate).label)).collect()
}

/// No row that another dominates, and the best marked on its own front. A front over stated axes lists no best that it
/// dominates.
fn on_front(
    problem: &Problem,
    saved: &OptimizeResult,
    best: Option<&EvaluatedCandidate>,
    front: &[EvaluatedCandidate],
) -> Vec<String> {
    // By the law of the front itself: figures that differ by rounding alone are equal.
    let axes = &problem.distinct_axes();
    // The optimum may be the likelier of two to meet the SLOs.
    let likelier = |one: &EvaluatedCandidate, other: &EvaluatedCandidate| {
        !problem.stated_axes && problem.margins_met(&one.point) > problem.margins_met(&other.point)
    };
    let loses = |one: &EvaluatedCandidate, other: &EvaluatedCandidate| {
        beats(axes, &other.point, &one.point) && !likelier(one, other)
    };
    let beaten = front.iter().filter(|one| front.iter().any(|other| loses(one, other)));
    let mut faults: Vec<String> =
        beaten.map(|one| format!("{} is dominated by another row", plan(&one.candidate).label)).collect();
    let Some(best) = best.filter(|_| !axes.is_empty() && !saved.front.is_empty()) else { return faults };
    let chosen: Vec<&ReportedDeployment> = saved.front.iter().filter(|row| row.chosen).collect();
    let outside = problem.stated_axes && front.iter().any(|row| beats(axes, &row.point, &best.point));
    let own = saved.optimum().map(|best| best.notation.as_str()).unwrap_or_default();
    match &chosen[..] {
        [row] if row.notation == own => {}
        [] if outside => {}
        [] => faults.push(format!("the best, {}, is not on the front", plan(&best.candidate).label)),
        _ => faults.push(format!("the front has another row chosen than the best, {own}")),
    }
    faults
}

/// Random deployments, none of them better. They contain no plans with host memory: the new search does.
fn sampled(
    problem: &Problem,
    saved: &OptimizeResult,
    best: Option<&EvaluatedCandidate>,
    drawn: RandomSample,
) -> CheckResult {
    let sample = sample(problem, best, drawn.count, drawn.seed);
    let better = sample.better.iter().map(|found| {
        let requests = requests(found.candidate.in_flight(problem));
        format!("{} at concurrency {requests} is better", notation(problem, &found.candidate))
    });
    let unread = saved.best.is_some() && best.is_none();
    let faults = if unread || stopped(saved) { vec![] } else { better.collect() };
    let (all, kept) = (sample.drawn, sample.kept);
    let outside = match &sample.other_cuts[..] {
        [] => String::new(),
        [first, ..] => {
            let example = notation(problem, &first.candidate);
            format!("; {} with pipeline cuts outside the space, as {example}", sample.other_cuts.len())
        }
    };
    let what =
        format!("sample: of {all} random deployments, {kept} meet the SLOs and none is better{outside}");
    CheckResult::new(what, all as usize, faults)
}
