//! Bound on candidates that a stopped search did not evaluate: the pruning bounds over the remaining space, for the
//! first objective term.

use super::physical_bound::physical_bound;
use super::point::{Point, ideal, place};
use super::problem::{Problem, Traffic};
use super::shape::PreparedShape;
use super::shapes::Shapes;
use crate::spec::objective::{Direction, Metric};

/// Configurations that a stopped search still lays out for its bound: it has to end.
pub const MOST_BOUNDED: usize = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RemainingBound {
    /// Bound on the first objective term, in base units; `None` if nothing feasible remains.
    best: Option<f64>,
    /// Part of the remaining space has no known bound.
    unknown: bool,
}

/// The better of two values of the first objective term.
fn better(problem: &Problem, a: f64, b: f64) -> f64 {
    let smaller = problem.objective.first().is_some_and(|term| term.direction == Direction::Minimize);
    if smaller { a.min(b) } else { a.max(b) }
}

impl RemainingBound {
    pub const UNKNOWN: RemainingBound = RemainingBound { best: None, unknown: true };

    /// Bound of every configuration alone, or of a mix of them; unknown where there are too many to lay out after a stop.
    pub fn of_any(problem: &Problem, shapes: &Shapes) -> RemainingBound {
        if shapes.total > MOST_BOUNDED as u64 || !shapes.is_whole() {
            return RemainingBound::UNKNOWN;
        }
        let mut bound = RemainingBound::default();
        for (_, shape) in shapes.iter() {
            bound.shape(&PreparedShape::of(problem, shape.clone()));
        }
        bound
    }

    /// Adds an instance configuration, alone or mixed with others: no metric is better than that of one request
    /// alone, or of the maximum concurrency.
    pub fn shape(&mut self, prepared: &PreparedShape) {
        let problem = prepared.problem;
        let (shape, devices) = (&prepared.shape, prepared.shape.plan.devices());
        if shape.fits == 0 {
            return;
        }
        if matches!(problem.traffic, Traffic::Rate(_)) {
            // A mean concurrency below one may have a lower latency than one request alone.
            self.unknown = true;
            return;
        }
        let alone = prepared.free(1, prepared.concurrency(1));
        let mut best = ideal(&alone, shape.fits as f64, problem.idle(devices).watts, f64::INFINITY);
        // The throughput of any configurations on all devices is at most that of the best of them per device.
        let all = problem.cluster.devices() as f64;
        best[place(Metric::OutputTokS)] = best[place(Metric::OutputTokSPerDevice)] * all;
        self.point(problem, &best);
    }

    /// Adds candidates that are no better than `point` in any metric.
    pub fn point(&mut self, problem: &Problem, point: &Point) {
        if problem.missed(point, problem.least_margin()).is_some() {
            return;
        }
        if let Some(value) = problem.objective_value(point) {
            self.best = Some(self.best.map_or(value, |best| better(problem, best, value)));
        }
    }

    pub fn with(self, problem: &Problem, other: RemainingBound) -> RemainingBound {
        let best = match (self.best, other.best) {
            (Some(a), Some(b)) => Some(better(problem, a, b)),
            (a, b) => a.or(b),
        };
        RemainingBound { best, unknown: self.unknown || other.unknown }
    }

    /// The bound on all candidates; `found` is the best one evaluated.
    pub fn bound(self, problem: &Problem, found: Option<&Point>) -> Option<f64> {
        let found = found.and_then(|point| problem.objective_value(point));
        let left = match (self.best, self.unknown) {
            (None, false) => return found,
            (best, false) => best,
            (_, true) => None,
        };
        let physical = problem.objective_value(&physical_bound(problem));
        let tighter = match (left, physical) {
            (Some(a), Some(b)) if better(problem, a, b) == a => Some(b),
            (left, physical) => left.or(physical),
        };
        tighter.map(|bound| found.map_or(bound, |found| better(problem, bound, found)))
    }
}
