//! A deployment that is known before a search: what cannot be better is left out from the start.

use super::candidate::Candidate;
use super::outcome::Outcome;
use super::point::{Point, place};
use super::problem::Problem;
use super::run::{Control, run, run_above};
use crate::spec::objective::Direction;

/// How much worse than the known deployment a result may be: what is as good is found as without it.
const SLACK: f64 = 1e-9;

/// Solves a problem of which only the optimum is needed, and of which `known` is probably a solution. The result is that
/// of [`run`].
pub fn run_with_hint(problem: &Problem, known: Option<&Candidate>, control: &Control) -> Outcome {
    let point = known.filter(|_| problem.only_best()).and_then(|known| floor(problem, known));
    let Some(point) = point else { return run(problem, control) };
    let found = run_above(problem, Some(&point), control);
    // One that the search space does not have left out what is best.
    let reached = found.best.as_ref().is_some_and(|best| problem.is_better(&best.point, &point));
    if reached || (control.stop)() { found } else { run(problem, control) }
}

/// A point that the known deployment is better than.
fn floor(problem: &Problem, known: &Candidate) -> Option<Point> {
    if known.pools.len() > 2 {
        return None;
    }
    let aim = problem.aims.first()?;
    let mut point = known.measure(problem, &known.instances(problem));
    if problem.missed(&point).is_some() {
        return None;
    }
    point[place(aim.metric)] *= match aim.direction {
        Direction::Minimize => 1.0 + SLACK,
        Direction::Maximize => 1.0 - SLACK,
    };
    Some(point)
}
