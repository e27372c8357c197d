//! Aggregated deployments with unlimited traffic: every load of a configuration, as far as it matters.

use super::{AggregatedKey, Incumbents, record_miss, replicated, visit};
use crate::search::front_sampling::sampled;
use crate::search::hosting::most_replicas;
use crate::search::load_search::{self, LoadRange, LoadSearch};
use crate::search::point::{Idle, Point, ideal, place};
use crate::search::problem::Problem;
use crate::search::shape::{InstanceConfig, PreparedShape};
use crate::spec::objective::Metric;

/// The loads of one instance configuration with unlimited traffic. A range of loads is skipped if the ideal of it can
/// improve neither the front nor the optimum.
struct FreeLoads<'a, 'q> {
    problem: &'a Problem,
    laid: &'a PreparedShape<'q>,
    index: usize,
    /// Results of other configurations.
    known: &'a Incumbents,
    survey: &'a mut Incumbents,
    /// Replica counts that the front lists, one first.
    replicas: Vec<u64>,
    /// Minimum power of a replica.
    idle: Idle,
}

impl FreeLoads<'_, '_> {
    /// Format pair and devices of the configuration.
    fn size(&self) -> (usize, u64) {
        (self.laid.shape.formats, self.laid.shape.plan.devices())
    }
}

impl LoadSearch for FreeLoads<'_, '_> {
    type Figures = Point;

    fn see(&mut self, load: u64) -> Result<Point, Point> {
        let key = AggregatedKey { shape: self.index, replicas: 1, concurrency: self.laid.concurrency(load) };
        let point = self.laid.at(1, key.concurrency);
        if let Some(reason) = self.problem.missed(&point) {
            if load == 1 {
                self.survey.census.evaluated += 1;
                record_miss(self.survey, point, key, reason);
            } else {
                self.discard("latency_limit", 1);
            }
            return Err(point);
        }
        self.survey.census.evaluated += 1;
        visit(self.problem, self.laid.shape, (self.known, self.survey), point, key);
        for &replicas in &self.replicas[1..] {
            self.survey.show(self.known, replicated(&point, replicas), AggregatedKey { replicas, ..key });
        }
        Ok(point)
    }

    fn beaten(&self, range: &LoadRange<Point>, listed: bool) -> Option<&'static str> {
        let bound = ideal(&range.low.1, (range.low.0, range.high), self.idle);
        let (rivals, size) = ([self.known, &*self.survey], self.size());
        let ahead = |rivals: &&Incumbents| {
            rivals.best.get(&size).is_some_and(|(best, _)| !self.problem.is_better(&bound, best))
        };
        if !rivals.iter().any(ahead) {
            return None;
        }
        let covered = || {
            self.replicas.chunk_by(|one, next| one.ilog2() == next.ilog2()).all(|group| {
                let (fewest, most) = (group[0], group[group.len() - 1]);
                let mut bound = replicated(&bound, fewest);
                bound[place(Metric::OutputTokS)] *= most as f64 / fewest as f64;
                rivals.iter().any(|rivals| rivals.front.covers(&bound))
            })
        };
        match listed {
            false => Some("between_listed"),
            true => covered().then_some("dominated"),
        }
    }

    fn discard(&mut self, reason: &'static str, loads: u64) {
        self.survey.census.prune(reason, loads);
    }

    fn take_between(&mut self, _: &LoadRange<Point>) -> bool {
        false
    }
}

/// Evaluates the loads of a configuration with unlimited traffic.
pub(super) fn explore(
    problem: &Problem,
    laid: &PreparedShape,
    index: usize,
    (known, survey): (&Incumbents, &mut Incumbents),
) {
    let shape = laid.shape;
    survey.census.candidates += shape.fits;
    let replicas = shown_replicas(problem, shape);
    let idle = problem.idle(shape.plan.devices());
    let mut loads = FreeLoads { problem, laid, index, known, survey, replicas, idle };
    load_search::explore(&mut loads, shape.fits, problem.front_sampling.every_load_up_to);
}

/// Replica counts that the front lists, one first: where total throughput is an axis, more replicas are never worse.
fn shown_replicas(problem: &Problem, shape: &InstanceConfig) -> Vec<u64> {
    if !problem.axes.contains(&Metric::OutputTokS) {
        return vec![1];
    }
    let most = most_replicas(problem, shape.plan.devices(), shape.offload);
    let fewer_count =
        problem.counts && [Metric::Devices, Metric::Watts].iter().any(|axis| problem.axes.contains(axis));
    let shown = sampled(most, problem.front_sampling.every_count_up_to);
    shown.filter(|&count| count == 1 || fewer_count || count == most).collect()
}
