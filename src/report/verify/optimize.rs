//! A saved answer of a search held against what its own question comes to: every row evaluated again, the laws that its
//! numbers keep, the objective, the front, deployments drawn at random, and the search itself. Knows no file.

use serde_json::Value;

use super::row::evaluated;
use super::{CLOSE, CheckResult, Verified, differences, figure, rows, unlike, value, whole};
use crate::report::answer::{assumptions, leaves, plan};
use crate::report::detail::detail;
use crate::report::number::requests;
use crate::report::result::OptimizeResult;
use crate::search::outcome::EvaluatedCandidate;
use crate::search::point::{Point, before, place};
use crate::search::problem::Problem;
use crate::search::sample::sample;
use crate::spec::objective::{Direction, Metric};

fn dominates(a: &Point, b: &Point, axes: &[Metric]) -> bool {
    let cost = |point: &Point, axis: &Metric| {
        let value = point[*axis as usize];
        if axis.entry().direction == Direction::Minimize { value } else { -value }
    };
    axes.iter().all(|axis| cost(a, axis) <= cost(b, axis))
        && axes.iter().any(|axis| {
            let (x, y) = (cost(a, axis), cost(b, axis));
            x < y && (x - y).abs() > CLOSE * y.abs()
        })
}

/// Whether `a` is better than `b` in the first aim, by more than rounding.
fn ahead(problem: &Problem, a: f64, b: f64) -> bool {
    let smaller = problem.aims.first().is_some_and(|aim| aim.direction == Direction::Minimize);
    let hair = CLOSE * b.abs();
    if smaller { a < b - hair } else { a > b + hair }
}

/// The value of the first objective, in the units of results.
fn aimed(problem: &Problem, found: &EvaluatedCandidate) -> Option<f64> {
    let metric = problem.aims.first()?.metric;
    let value = found.point[metric as usize] / metric.entry().scale;
    value.is_finite().then_some(value)
}

/// The bound and the gap against the best.
fn proved(problem: &Problem, saved: &Value, best: Option<&EvaluatedCandidate>) -> Vec<String> {
    let proof = &saved["proof"];
    let Some((found, bound)) = best.and_then(|best| aimed(problem, best)).zip(proof["bound"].as_f64()) else {
        return vec![];
    };
    let mut faults = Vec::new();
    if ahead(problem, found, bound) {
        faults.push(format!("proof.bound: saved {bound}, the best has {found}"));
    }
    let gap = if found == bound { 0.0 } else { (found - bound).abs() / found.abs() };
    if (figure(proof, "gap") - gap).abs() > CLOSE || proof["gap"].is_null() {
        faults.push(format!("proof.gap: saved {}, recomputed {gap}", proof["gap"]));
    }
    if saved["status"] == "optimal" && gap > CLOSE {
        faults.push(format!("status: saved optimal, the gap is {gap}"));
    }
    faults
}

/// Compares best and bound of a stopped search with those of a complete one.
fn beyond(
    problem: &Problem,
    saved: &Value,
    fresh: &OptimizeResult,
    best: Option<&EvaluatedCandidate>,
) -> Vec<String> {
    let (bound, reached) = (saved["proof"]["bound"].as_f64(), fresh.proof.bound);
    let mut faults = Vec::new();
    if let Some((bound, reached)) =
        bound.zip(reached).filter(|(bound, reached)| ahead(problem, *reached, *bound))
    {
        faults.push(format!("proof.bound: saved {bound}, a new search reaches {reached}"));
    }
    let found = best.and_then(|best| aimed(problem, best));
    if let Some((found, reached)) =
        found.zip(reached).filter(|(found, reached)| ahead(problem, *found, *reached))
    {
        faults.push(format!("best: saved {found}, the proved bound is {reached}"));
    }
    faults
}

/// Re-evaluates the details and assumptions of the best.
fn laid_open(problem: &Problem, saved: &Value, best: &EvaluatedCandidate) -> Vec<String> {
    let leaves = leaves(problem, &best.candidate);
    let mut faults = Vec::new();
    let fresh = value(&detail(problem, &best.candidate, &leaves));
    differences("detail", &saved["detail"], &fresh, &mut faults);
    differences("assumptions", &saved["assumptions"], &value(&assumptions(&leaves)), &mut faults);
    faults
}

/// The best on its own front, and no row that another dominates.
fn on_front(
    problem: &Problem,
    best: Option<&EvaluatedCandidate>,
    front: &[EvaluatedCandidate],
) -> Vec<String> {
    let axes = &problem.axes;
    let beaten =
        front.iter().filter(|one| front.iter().any(|other| dominates(&other.point, &one.point, axes)));
    let mut faults: Vec<String> =
        beaten.map(|one| format!("{} is dominated by another row", plan(&one.candidate).label)).collect();
    let Some(best) = best.filter(|_| !axes.is_empty()) else { return faults };
    let same = |x: f64, y: f64| x == y || (x - y).abs() <= CLOSE * y.abs() || (x.is_nan() && y.is_nan());
    let there = |one: &EvaluatedCandidate| {
        axes.iter().all(|axis| same(one.point[place(*axis)], best.point[place(*axis)]))
    };
    if !front.iter().any(there) {
        faults.push(format!("the best, {}, is not on the front", plan(&best.candidate).label));
    }
    faults
}

/// Checks a saved result of `question`; `fresh` is the full result of a new search.
pub fn verify(
    problem: &Problem,
    saved: &Value,
    fresh: &OptimizeResult,
    (count, seed): (u64, u64),
) -> Verified {
    let mut checks = Vec::new();
    let again = value(fresh);
    let what = "question: resolves to the same inputs, with defaults";
    checks.push(CheckResult::new(what, 1, unlike(&["question", "scenario"], saved, &again)));
    let best_row: Vec<&Value> = saved.get("best").into_iter().filter(|row| !row.is_null()).collect();
    let (best, check) = evaluated(problem, "best", &best_row);
    let unread = best_row.len() != best.len();
    checks.push(check);
    let best = best.into_iter().next();
    let (others, check) = evaluated(problem, "alternative", &rows(saved, "alternatives"));
    checks.push(check);
    let (front, check) = evaluated(problem, "front", &rows(saved, "front"));
    checks.push(check);
    let opened = best.as_ref().map_or_else(Vec::new, |best| laid_open(problem, saved, best));
    checks.push(CheckResult::new("detail: times, memory and constraints, from the formulas", 1, opened));
    let status = saved["status"].as_str().unwrap_or_default();
    let solved = matches!(status, "optimal" | "feasible");
    let mut faults = Vec::new();
    if solved != (best.is_some() || unread) {
        faults.push(format!("status {status}, but {} best", if best_row.is_empty() { "no" } else { "a" }));
    }
    let told = |found: &EvaluatedCandidate| plan(&found.candidate).label;
    let better = |found: &&EvaluatedCandidate| {
        best.as_ref().is_some_and(|best| before(&found.point, &best.point, &problem.aims))
    };
    faults
        .extend(others.iter().chain(&front).filter(better).map(|found| format!("{} is better", told(found))));
    checks.push(CheckResult::new(
        "objective: no row of the result is better than its best",
        others.len() + front.len(),
        faults,
    ));
    let beaten = on_front(problem, best.as_ref().filter(|_| !rows(saved, "front").is_empty()), &front);
    let what = "front: the best is on it, and no row is dominated by another";
    checks.push(CheckResult::new(what, front.len(), beaten));
    // Samples contain no plans with host memory: they are slower than every plan that fits.
    let drawn = sample(problem, best.as_ref(), count, seed);
    let better = drawn.better.iter().map(|found| {
        let requests = requests(found.candidate.in_flight(problem));
        format!("{} at concurrency {requests} is better: {}", told(found), plan(&found.candidate).label)
    });
    // A stopped search only claims its bound.
    let stopped = matches!(status, "feasible" | "unknown");
    let faults: Vec<String> = if unread || stopped { vec![] } else { better.collect() };
    let what = format!(
        "sample: of {} random deployments, {} meet the SLOs and none is better",
        drawn.drawn, drawn.kept
    );
    checks.push(CheckResult::new(what, drawn.drawn as usize, faults));
    let what = "proof: the bound and the gap agree with the best";
    checks.push(CheckResult::new(what, 1, proved(problem, saved, best.as_ref())));
    let (what, faults) = if stopped {
        let what = "search: a complete search contradicts neither the bound nor the best";
        (what, beyond(problem, saved, fresh, best.as_ref()))
    } else {
        ("search: a new search gives the same result in every field", whole(saved, &again, &[]))
    };
    checks.push(CheckResult::new(what, 1, faults));
    Verified::of(checks, seed)
}
