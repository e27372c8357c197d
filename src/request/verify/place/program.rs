//! The second argument for a placement: the optimum of its mixed-integer programs.

use super::super::CheckResult;
use crate::quantity::tolerance::OPTIMA;
use crate::report::place::PlacementResult;
use crate::search::outcome::Status;
use crate::search::placement::evaluate::PlacementEvaluator;
use crate::search::placement::program::ProgramOptimum;
use crate::search::placement::solve::PlacementTime;

/// Solves the programs of an answer and compares their optimum with it; `None` where it has too many devices, or is
/// stopped.
pub(super) fn check(
    sets: &[Vec<PlacementEvaluator>; 2],
    saved: &PlacementResult,
    aim: PlacementTime,
) -> Option<CheckResult> {
    if !matches!(saved.status, Status::Optimal | Status::Infeasible) {
        return None;
    }
    let placed = saved.placement.as_ref();
    let known = placed.map(|placed| 1e-3 * placed.objective_ms);
    let mut all = ProgramOptimum::default();
    for evaluator in sets.iter().flatten() {
        all = all.and(evaluator.program_optimum(aim, known)?);
    }
    let what = format!(
        "program: of {} mixed-integer programs of stages, one for each order of devices, {} are solved; none \
         contradicts the answer",
        all.programs, all.decided
    );
    Some(CheckResult::new(what, all.decided, contradictions(&all, saved)))
}

/// An optimum below the bound, or above the answer.
fn contradictions(all: &ProgramOptimum, saved: &PlacementResult) -> Vec<String> {
    let best = all.best.as_ref().map(|(seconds, _)| 1e3 * seconds);
    let Some(placed) = &saved.placement else {
        let fits = |ms: f64| format!("placement: none is saved, a program finds one of {ms} ms");
        return best.map(fits).into_iter().collect();
    };
    let all_of = saved.theoretical.as_ref().map(|better| &better.certificate).or(saved.certificate.as_ref());
    let bound = all_of.map_or(0.0, |proof| proof.lower_bound_ms);
    let mut faults = Vec::new();
    if let Some(ms) = best.filter(|ms| *ms < bound * (1.0 - OPTIMA)) {
        faults.push(format!("certificate.lower_bound_ms: saved {bound}, a program reaches {ms} ms"));
    }
    // Devices that hold the same layers are outside the programs.
    let single = placed.stages.iter().all(|stage| stage.copies.is_empty());
    let objective = placed.objective_ms;
    let reached = best.unwrap_or(f64::INFINITY);
    if single && all.is_complete() && objective * (1.0 + OPTIMA) < reached {
        faults.push(format!("objective: saved {objective} ms, the optimum of the programs is {reached} ms"));
    }
    faults
}
