//! Aggregated deployments with unlimited traffic: every load of a configuration, as far as it matters.

use super::replicas::{replica_ends, replicated, shown_replicas};
use super::{AggregatedKey, Incumbents, ReplicaSize, record_miss, visit};
use crate::search::load_search::{self, LoadRange, LoadSearch};
use crate::search::point::{Point, ideal, place};
use crate::search::problem::Problem;
use crate::search::shape::PreparedShape;
use crate::spec::objective::Metric;

/// The loads of one instance configuration with unlimited traffic. A range of loads is skipped if the ideal of it can
/// improve neither the front nor the optimum.
struct FreeLoads<'a, 'q> {
    problem: &'a Problem,
    prepared: &'a PreparedShape<'q>,
    index: usize,
    /// Results of other configurations.
    known: &'a Incumbents,
    survey: &'a mut Incumbents,
    /// Replica counts that the front lists, one first.
    replicas: Vec<u64>,
    /// Replica counts of which one is best.
    ends: Vec<u64>,
    /// Devices of instances that may replace this one.
    divisors: Vec<u64>,
    /// Minimum power of a replica, in W.
    idle: f64,
}

impl FreeLoads<'_, '_> {
    /// The size of a replica of the configuration that shares nothing.
    fn size(&self) -> ReplicaSize {
        let shape = &self.prepared.shape;
        ReplicaSize { formats: shape.formats, devices: shape.plan.devices(), sharing: None }
    }

    /// Whether no load within `bound` is better than the best so far: of its size, or of all where only one is needed.
    fn behind(&self, bound: &Point) -> bool {
        let (rivals, size) = ([self.known, &*self.survey], self.size());
        let of_size = |rivals: &Incumbents| {
            rivals.best.get(&size).is_some_and(|(best, _)| !self.problem.is_better(bound, best))
        };
        let of_all = |rivals: &Incumbents| {
            let leads = |leader: &Point| {
                self.ends.iter().any(|&count| self.problem.is_better(&replicated(bound, count), leader))
            };
            self.problem.only_best() && rivals.leader.as_ref().is_some_and(|leader| !leads(leader))
        };
        rivals.iter().any(|rivals| of_size(rivals) || of_all(rivals))
    }

    /// Whether the front, or replicas of another instance, are as good as `bound` in any of `counts` replicas.
    fn covered(&self, bound: &Point, counts: &[u64]) -> bool {
        let (fewest, most) = (counts[0], counts[counts.len() - 1]);
        let (rivals, capacity) = ([self.known, &*self.survey], self.problem.capacity());
        let devices = self.size().devices;
        let replaced = |rivals: &Incumbents| {
            let with = |&size: &u64| rivals.instances.replace(capacity, (size, devices, most), bound);
            self.divisors.iter().any(with)
        };
        let mut many = replicated(bound, fewest);
        many[place(Metric::OutputTokS)] *= most as f64 / fewest as f64;
        rivals.iter().any(|rivals| replaced(rivals) || rivals.front.covers(&many))
    }
}

impl LoadSearch for FreeLoads<'_, '_> {
    type Figures = Point;

    fn see(&mut self, load: u64) -> Result<Point, Point> {
        let key =
            AggregatedKey { shape: self.index, replicas: 1, concurrency: self.prepared.concurrency(load) };
        let point = self.prepared.at(1, key.concurrency);
        if let Some(reason) = self.prepared.missed(&point, key.concurrency) {
            if load == self.prepared.shape.from {
                self.survey.census.evaluated += 1;
                record_miss(self.survey, point, key, reason);
            } else {
                self.discard("latency_limit", 1);
            }
            return Err(point);
        }
        self.survey.census.evaluated += 1;
        visit(self.prepared, (self.known, self.survey), point, key);
        for &count in &self.ends {
            let many = replicated(&point, count);
            self.survey.lead(self.problem, many);
            if count > 1 && self.prepared.shape.per_node.is_some() {
                let key = AggregatedKey { replicas: count, ..key };
                visit(self.prepared, (self.known, self.survey), many, key);
            }
        }
        if self.prepared.shape.per_node.is_none() {
            self.survey.instances.insert(self.size().devices, &point);
        }
        for &replicas in &self.replicas[1..] {
            self.survey.show(self.known, replicated(&point, replicas), AggregatedKey { replicas, ..key });
        }
        Ok(point)
    }

    fn beaten(&self, range: &LoadRange<Point>, listed: bool) -> Option<&'static str> {
        let above = range.above.map(|above| above.unwrap_or_else(|missed| missed));
        let longest = above.map_or(f64::INFINITY, |above| above[place(Metric::E2e)]);
        let gain = range.high as f64 / range.low.0 as f64;
        let bound = ideal(&range.low.1, gain, self.idle, longest);
        if !self.behind(&bound) {
            return None;
        }
        let covered = || {
            let mut groups = self.replicas.chunk_by(|one, next| one.ilog2() == next.ilog2());
            groups.all(|counts| self.covered(&bound, counts))
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
    prepared: &PreparedShape,
    index: usize,
    (known, survey): (&Incumbents, &mut Incumbents),
) {
    let (problem, shape) = (prepared.problem, &prepared.shape);
    survey.census.candidates += shape.fits + 1 - shape.from;
    let replicas = shown_replicas(problem, shape);
    let idle = problem.idle(shape.plan.devices()).watts;
    let ends = replica_ends(problem, shape).collect();
    let own = shape.plan.devices();
    let mut divisors: Vec<u64> =
        [known, &*survey].into_iter().flat_map(|rivals| rivals.instances.divisors(own)).collect();
    divisors.sort_unstable();
    divisors.dedup();
    let mut loads = FreeLoads { problem, prepared, index, known, survey, replicas, ends, divisors, idle };
    load_search::explore(&mut loads, (shape.from, shape.fits), problem.front_sampling.load_steps);
}
