//! The decision between plans of measured kinds and better ones of kinds that were never measured, and between plans that
//! are equal within the error of their comparison.

use super::error_ratios::ErrorRatios;
use super::layouts::Layouts;
use super::outcome::{EvaluatedCandidate, Outcome, Status};
use super::point::{cost, cost_of};
use super::problem::Problem;
use super::run::{Control, run_with};
use super::simpler::{SimplerPlan, simpler};
use crate::spec::evidence::EvidenceRule;

/// The result of a search under a rule.
pub struct PlanDecision {
    /// The problem whose plans were searched.
    pub problem: Problem,
    pub outcome: Outcome,
    /// The best plan of all, where it is of a kind without measurement and another one is preferred.
    pub untried: Option<EvaluatedCandidate>,
    /// A simpler plan that is the answer in place of the optimum, to which it is equal within the error.
    pub simpler: Option<SimplerPlan>,
}

impl PlanDecision {
    /// The answer: the optimum, or the simpler plan in its place.
    pub fn shown(&self) -> Option<&EvaluatedCandidate> {
        self.simpler.as_ref().map(|one| &one.found).or(self.outcome.best.as_ref())
    }
}

/// Solves a problem. Of plans that are equal within the error of their comparison the simplest is the answer.
pub fn decide(problem: Problem, layouts: &Layouts, control: &Control) -> PlanDecision {
    let decision = of_kinds(problem, layouts, control);
    let PlanDecision { problem, outcome, .. } = &decision;
    let optimum = outcome.best.as_ref().filter(|_| outcome.status == Status::Optimal);
    let simpler = optimum.and_then(|best| simpler(problem, layouts, best, control));
    PlanDecision { simpler, ..decision }
}

/// The same where only the best plan is needed.
pub fn decided(problem: Problem, control: &Control) -> PlanDecision {
    let layouts = Layouts::until(&problem, control.stop);
    decide(problem, &layouts, control)
}

/// The optimum by kind. The best plan of all is preferred where its kind was measured, or where it is better than every plan
/// of a measured kind even at the worse end of its interval.
pub(super) fn of_kinds(problem: Problem, layouts: &Layouts, control: &Control) -> PlanDecision {
    let outcome = run_with(&problem, layouts, control);
    let Some(best) = outcome.best.clone().filter(|best| {
        problem.space.rule == EvidenceRule::Measured && problem.space.rows_of(&best.candidate) == 0
    }) else {
        return PlanDecision { problem, outcome, untried: None, simpler: None };
    };
    let measured = problem.clone().with_measured_only(true);
    let found = run_with(&measured, layouts, control);
    let stopped = found.status == Status::Feasible && outcome.status == Status::Optimal;
    let inside = found.best.as_ref().is_some_and(|found| is_inside(&problem, found, &best));
    match inside && !stopped {
        true => PlanDecision { problem: measured, outcome: found, untried: Some(best), simpler: None },
        false => PlanDecision { problem, outcome, untried: None, simpler: None },
    }
}

/// Whether `found` is no worse in the first objective term than the worse end of the interval of `best`.
fn is_inside(problem: &Problem, found: &EvaluatedCandidate, best: &EvaluatedCandidate) -> bool {
    let Some(term) = problem.objective.first() else { return true };
    // Without known errors nothing says that the other one is better.
    let Some(interval) = best.candidate.interval(problem) else { return true };
    let worst = ErrorRatios::worse_end(interval).metric(&best.point, term.metric);
    cost(&found.point, term.metric, term.direction) <= cost_of(worst, term.direction)
}
