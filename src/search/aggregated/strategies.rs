//! The best deployment of each strategy, as many as an answer may list.

use super::{AggregatedKey, precedes};
use crate::plan::parallel::ParallelPlan;
use crate::search::point::Point;
use crate::search::problem::Problem;

/// Strategies that are kept: more than an answer lists, of which some may be the best's.
const KEPT: usize = 16;

/// The best strategies: the best result of each plan, best first.
#[derive(Clone, Debug, Default)]
pub struct Strategies {
    best: Vec<(ParallelPlan, Point, AggregatedKey)>,
}

impl Strategies {
    pub fn offer(&mut self, problem: &Problem, plan: ParallelPlan, found: (Point, AggregatedKey)) {
        let before = |a: &(Point, AggregatedKey), b: &(ParallelPlan, Point, AggregatedKey)| {
            precedes(problem, a, &(b.1, b.2))
        };
        if self.best.len() == KEPT && !before(&found, &self.best[KEPT - 1]) {
            return;
        }
        if let Some(at) = self.best.iter().position(|one| one.0 == plan) {
            if !before(&found, &self.best[at]) {
                return;
            }
            self.best.remove(at);
        }
        let place = self.best.partition_point(|one| !before(&found, one));
        self.best.insert(place, (plan, found.0, found.1));
        self.best.truncate(KEPT);
    }

    pub fn merge(&mut self, problem: &Problem, other: Strategies) {
        other.best.into_iter().for_each(|(plan, point, key)| self.offer(problem, plan, (point, key)));
    }

    /// The best result of each plan, best first.
    pub fn iter(&self) -> impl Iterator<Item = (&Point, &AggregatedKey)> {
        self.best.iter().map(|(_, point, key)| (point, key))
    }
}
