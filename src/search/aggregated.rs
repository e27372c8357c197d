//! Aggregated deployments: replicas of one instance configuration, searched at every concurrency.

mod free;
pub mod replicas;
pub mod strategies;

use std::collections::BTreeMap;

use super::candidate::{Candidate, PoolPlan, PoolRole};
use super::hosting::most_replicas;
use super::outcome::{Census, EvaluatedCandidate};
use super::packing::Item;
use super::pareto::ParetoFront;
use super::point::{Point, place};
use super::problem::{Problem, Traffic};
use super::shape::{InstanceConfig, PreparedShape, least};
use super::shapes::Shapes;
use crate::plan::infeasible::Infeasible;
use crate::spec::objective::Metric;
use replicas::{InstanceFronts, replica_ends, replicated};
use strategies::Strategies;

/// Compact key of a deployment of one instance configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AggregatedKey {
    /// Index of the instance configuration.
    pub shape: usize,
    /// Number of replicas.
    pub replicas: u64,
    /// Concurrency of each replica.
    pub concurrency: u64,
}

impl AggregatedKey {
    /// The full candidate.
    pub fn candidate(&self, shapes: &Shapes) -> Candidate {
        let shape = &shapes[self.shape];
        let pool = PoolPlan {
            role: PoolRole::Aggregated,
            plan: shape.plan,
            stages: shape.stages.clone(),
            replicas: self.replicas,
            concurrency: self.concurrency,
        };
        Candidate { formats: shape.formats, pools: vec![pool], offload: shape.offload }
    }
}

/// Best results found so far.
pub struct Incumbents {
    /// Pareto front found so far.
    pub front: ParetoFront<AggregatedKey>,
    /// Single replicas that several of another may replace.
    pub instances: InstanceFronts,
    /// The best deployment, in its best number of replicas; with unlimited traffic.
    pub leader: Option<Point>,
    /// Best result per (format pair, devices per replica). Replicas of equal size can replace each other.
    pub best: BTreeMap<(usize, u64), (Point, AggregatedKey)>,
    /// Best result of each strategy, for the list of alternatives.
    pub strategies: Strategies,
    /// Counts of evaluated, pruned and rejected candidates.
    pub census: Census,
    /// The infeasible candidate that misses its SLO by the least.
    pub nearest: Option<(f64, Point, AggregatedKey, Infeasible)>,
}

impl Incumbents {
    /// Empty results.
    pub fn new(problem: &Problem) -> Incumbents {
        Incumbents::over(problem, &problem.distinct_axes())
    }

    /// Empty results, with a front over `axes`.
    fn over(problem: &Problem, axes: &[Metric]) -> Incumbents {
        Incumbents {
            front: ParetoFront::new(axes),
            instances: InstanceFronts::new(problem),
            leader: None,
            best: BTreeMap::new(),
            strategies: Strategies::default(),
            census: Census::default(),
            nearest: None,
        }
    }

    /// Merges two sets of results. The order of the arguments does not matter.
    pub fn merged(mut self, problem: &Problem, mut other: Incumbents) -> Incumbents {
        if other.front.len() > self.front.len() {
            std::mem::swap(&mut self, &mut other);
        }
        self.front.merge(other.front);
        self.instances.merge(other.instances);
        other.leader.into_iter().for_each(|point| self.lead(problem, point));
        self.census.add(other.census);
        let better = |new: &(Point, AggregatedKey), old: &(Point, AggregatedKey)| ahead(problem, new, old);
        for (place, found) in other.best {
            keep(&mut self.best, place, found, better);
        }
        self.strategies.merge(problem, other.strategies);
        if let Some(near) = other.nearest {
            self.near(near);
        }
        self
    }

    /// Adds a point to the front, unless one of `known` keeps it off.
    fn show(&mut self, known: &Incumbents, point: Point, key: AggregatedKey) {
        if known.front.admits(&point, &key) {
            self.front.insert(point, key);
        }
    }

    /// Configurations that the results refer to.
    pub fn shapes(&self) -> impl Iterator<Item = usize> {
        let best = self.best.values().map(|(_, key)| key);
        let keys = self.front.keys().chain(best).chain(self.strategies.iter().map(|(_, key)| key));
        keys.chain(self.nearest.iter().map(|(_, _, key, _)| key)).map(|key| key.shape)
    }

    /// Offers a point to be the best of all.
    fn lead(&mut self, problem: &Problem, point: Point) {
        if self.leader.as_ref().is_none_or(|leader| problem.is_better(&point, leader)) {
            self.leader = Some(point);
        }
    }

    fn near(&mut self, near: (f64, Point, AggregatedKey, Infeasible)) {
        let closer = self.nearest.as_ref().is_none_or(|known| (near.0, near.2) < (known.0, known.2));
        if closer {
            self.nearest = Some(near);
        }
    }
}

fn keep<K: Ord>(
    map: &mut BTreeMap<K, (Point, AggregatedKey)>,
    place: K,
    found: (Point, AggregatedKey),
    better: impl Fn(&(Point, AggregatedKey), &(Point, AggregatedKey)) -> bool,
) {
    match map.get_mut(&place) {
        Some(known) if better(&found, known) => *known = found,
        Some(_) => {}
        None => {
            map.insert(place, found);
        }
    }
}

/// Whether `a` is better under the objective. Ties go to the smaller key.
fn ahead(problem: &Problem, a: &(Point, AggregatedKey), b: &(Point, AggregatedKey)) -> bool {
    problem.compare(&a.0, &b.0).then_with(|| a.1.cmp(&b.1)).is_lt()
}

/// Whether a deployment may mix instance configurations: with a router that has weights, where total throughput counts.
pub fn mixes(problem: &Problem) -> bool {
    problem.custom_router
        && problem.traffic == Traffic::Free
        && problem.aims.first().is_some_and(|aim| aim.metric == Metric::OutputTokS)
}

/// Evaluates one instance configuration at every load. What cannot improve on `known` is left out.
pub fn explore(
    problem: &Problem,
    laid: &PreparedShape,
    index: usize,
    known: &Incumbents,
    survey: &mut Incumbents,
) {
    let shape = &laid.shape;
    if shape.fits == 0 || !shape.roles.aggregated {
        return;
    }
    match problem.traffic {
        Traffic::Free => free::explore(problem, laid, index, (known, survey)),
        Traffic::InFlight(requests) => {
            let most = most_replicas(problem, shape.plan.devices(), shape.offload).min(requests);
            fewer_and_fewer(most, survey, |replicas, survey| {
                explore_load(problem, laid, index, replicas, requests.div_ceil(replicas), (known, survey))
            });
        }
        Traffic::Rate(rate) => {
            let most = most_replicas(problem, shape.plan.devices(), shape.offload);
            fewer_and_fewer(most, survey, |replicas, survey| match carrying(laid, rate / replicas as f64) {
                Ok(concurrency) => explore_load(problem, laid, index, replicas, concurrency, (known, survey)),
                Err(reason) => {
                    survey.census.candidates += 1;
                    survey.census.reject(&reason);
                    false
                }
            });
        }
    }
}

/// Evaluates replica counts from `most` down, as long as `serves` says that they serve the traffic: each of fewer replicas
/// has a higher load, and so no lower latency.
fn fewer_and_fewer(most: u64, survey: &mut Incumbents, mut serves: impl FnMut(u64, &mut Incumbents) -> bool) {
    for replicas in (1..=most).rev() {
        if !serves(replicas, survey) {
            survey.census.discard("latency_limit", replicas - 1);
            return;
        }
    }
}

/// The smallest concurrency at which one replica sustains `rate` requests per second.
fn carrying(laid: &PreparedShape, rate: f64) -> Result<u64, Infeasible> {
    // Evaluated at the largest concurrency that fits, whatever rate it sustains.
    let flow = |requests: u64| {
        let concurrency = laid.concurrency(requests);
        concurrency as f64 / laid.filled(concurrency)
    };
    let enough = least(laid.shape.fits, laid.shape.plan.pp, |requests| flow(requests) >= rate);
    let carried = || flow(laid.shape.fits);
    let enough = enough.ok_or_else(|| Infeasible::TooMuchTraffic { carried: carried(), asked: rate })?;
    Ok(laid.concurrency(enough))
}

/// Evaluates one replica count at one load. Returns whether it serves the traffic within the SLOs.
fn explore_load(
    problem: &Problem,
    laid: &PreparedShape,
    index: usize,
    replicas: u64,
    concurrency: u64,
    (known, survey): (&Incumbents, &mut Incumbents),
) -> bool {
    survey.census.candidates += 1;
    if concurrency > laid.concurrency(laid.shape.fits) {
        let reason = "concurrency exceeds the KV cache capacity";
        survey.census.refuse("out_of_memory", 1, reason);
        return false;
    }
    survey.census.evaluated += 1;
    let point = laid.at(replicas, concurrency);
    let key = AggregatedKey { shape: index, replicas, concurrency };
    let missed = problem.missed(&point);
    let serves = missed.is_none();
    match missed {
        Some(reason) => record_miss(survey, point, key, reason),
        None => visit(problem, &laid.shape, (known, survey), point, key),
    }
    serves
}

fn record_miss(survey: &mut Incumbents, point: Point, key: AggregatedKey, reason: Infeasible) {
    survey.census.reject(&reason);
    if let Infeasible::LimitMissed { value, limit, .. } = reason {
        survey.near((value / limit, point, key, reason));
    }
}

fn visit(
    problem: &Problem,
    shape: &InstanceConfig,
    (known, survey): (&Incumbents, &mut Incumbents),
    point: Point,
    key: AggregatedKey,
) {
    survey.show(known, point, key);
    let better = |new: &(Point, AggregatedKey), old: &(Point, AggregatedKey)| ahead(problem, new, old);
    keep(&mut survey.best, (shape.formats, shape.plan.devices()), (point, key), better);
    survey.strategies.offer(problem, shape.plan, (point, key));
}

/// The best deployment of each replica count, or of a mix of instance configurations.
pub fn finish(problem: &Problem, shapes: &Shapes, survey: &Incumbents) -> Vec<EvaluatedCandidate> {
    let found = |(point, key): &(Point, AggregatedKey), replicas: u64| EvaluatedCandidate {
        candidate: AggregatedKey { replicas, ..*key }.candidate(shapes),
        point: replicated(point, replicas / key.replicas),
    };
    if problem.traffic != Traffic::Free {
        return survey.best.values().map(|best| found(best, best.1.replicas)).collect();
    }
    if !mixes(problem) {
        let ends = |best: &(Point, AggregatedKey)| {
            let shape = &shapes[best.1.shape];
            replica_ends(problem, shape).map(|replicas| found(best, replicas)).collect::<Vec<_>>()
        };
        return survey.best.values().flat_map(ends).collect();
    }
    let mut deployments = Vec::new();
    for formats in 0..problem.formats.len() {
        let rows: Vec<_> = survey.best.iter().filter(|((f, _), _)| *f == formats).collect();
        let value = |point: &Point| point[place(Metric::OutputTokS)];
        let items: Vec<Item> = rows
            .iter()
            .map(|((_, devices), (point, _))| Item { devices: *devices, value: value(point) })
            .collect();
        let counts = problem.capacity().pack(&items);
        let pools = rows.iter().zip(&counts).filter(|(_, count)| **count > 0).flat_map(
            |((_, (_, key)), &replicas)| AggregatedKey { replicas, ..*key }.candidate(shapes).pools,
        );
        let pools: Vec<_> = pools.collect();
        if let Some((_, (_, key))) = rows.first().filter(|_| !pools.is_empty()) {
            let candidate = Candidate { pools, ..key.candidate(shapes) };
            let point = measure(problem, &candidate);
            deployments.push(EvaluatedCandidate { candidate, point });
        }
    }
    deployments
}

/// The best load of one replica with unlimited traffic; none where no load meets the SLOs.
pub fn best_load(problem: &Problem, laid: &PreparedShape) -> Option<(Point, AggregatedKey)> {
    if laid.shape.fits == 0 {
        return None;
    }
    // Without axes no load is on a front, so that only the best is searched.
    let [none, mut alone] = [(); 2].map(|()| Incumbents::over(problem, &[]));
    free::explore(problem, laid, 0, (&none, &mut alone));
    alone.best.pop_first().map(|(_, best)| best)
}

/// The strategies of an answer with the best load of each, which a search may have left out for those of others.
pub fn strategies(problem: &Problem, shapes: &Shapes, survey: &Incumbents) -> Vec<EvaluatedCandidate> {
    let best = |(point, key): (&Point, &AggregatedKey)| {
        let (mut point, mut key) = (*point, *key);
        if problem.traffic == Traffic::Free && !problem.only_best() {
            let laid = PreparedShape::of(problem, shapes.shared(key.shape).clone());
            if let Some((best, load)) = best_load(problem, &laid) {
                (point, key) = (best, AggregatedKey { shape: key.shape, ..load });
            }
        }
        EvaluatedCandidate { candidate: key.candidate(shapes), point }
    };
    survey.strategies.iter().map(best).collect()
}

/// The metrics of a candidate, by the common evaluation function.
pub fn measure(problem: &Problem, candidate: &Candidate) -> Point {
    candidate.measure(problem, &candidate.instances(problem))
}
