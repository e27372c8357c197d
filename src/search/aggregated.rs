//! Aggregated deployments: replicas of one instance configuration, searched at every concurrency.

mod free;
pub mod replicas;
pub mod strategies;

use std::collections::BTreeMap;

use super::candidate::Candidate;
use super::hosting::most_replicas;
use super::outcome::{Census, EvaluatedCandidate};
use super::packing::Item;
use super::pareto::ParetoFront;
use super::point::{Point, place};
use super::problem::{Problem, Traffic};
use super::shape::{PreparedShape, least};
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
    pub replicas: u64,
    /// Concurrency of each replica.
    pub concurrency: u64,
}

impl AggregatedKey {
    pub fn candidate(&self, shapes: &Shapes) -> Candidate {
        shapes[self.shape].replicated(self.replicas, self.concurrency)
    }
}

/// Properties that replicas have in common where they can replace each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplicaSize {
    /// Index of the format pair.
    pub formats: usize,
    /// Devices of a replica.
    pub devices: u64,
    /// The number of replicas, where those on a node share its host and others may not replace them.
    pub sharing: Option<u64>,
}

pub struct Incumbents {
    pub front: ParetoFront<AggregatedKey>,
    /// Single replicas that several of another may replace.
    pub instances: InstanceFronts,
    /// The best deployment, in its best number of replicas; with unlimited traffic.
    pub leader: Option<Point>,
    /// Best result of each size. Replicas of equal size can replace each other.
    pub best: BTreeMap<ReplicaSize, (Point, AggregatedKey)>,
    /// Best result of each strategy, for the list of alternatives.
    pub strategies: Strategies,
    pub census: Census,
    /// The infeasible candidate that misses its SLO by the least.
    pub nearest: Option<(f64, Point, AggregatedKey, Infeasible)>,
}

impl Incumbents {
    pub fn new(problem: &Problem) -> Incumbents {
        Incumbents::with_front(problem, ParetoFront::of(problem))
    }

    fn with_front(problem: &Problem, front: ParetoFront<AggregatedKey>) -> Incumbents {
        Incumbents {
            front,
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
        if other.front.count() > self.front.count() {
            std::mem::swap(&mut self, &mut other);
        }
        self.front.merge(other.front);
        self.instances.merge(other.instances);
        other.leader.into_iter().for_each(|point| self.lead(problem, point));
        self.census.add(other.census);
        other.best.into_iter().for_each(|(size, found)| self.keep(problem, size, found));
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

    /// Keeps the best result of a size.
    fn keep(&mut self, problem: &Problem, size: ReplicaSize, found: (Point, AggregatedKey)) {
        let known = self.best.entry(size).or_insert(found);
        if precedes(problem, &found, known) {
            *known = found;
        }
    }

    fn near(&mut self, near: (f64, Point, AggregatedKey, Infeasible)) {
        if self.nearest.as_ref().is_none_or(|known| (near.0, near.2) < (known.0, known.2)) {
            self.nearest = Some(near);
        }
    }
}

/// Whether `a` is better under the objective. Ties go to the smaller key.
fn precedes(problem: &Problem, a: &(Point, AggregatedKey), b: &(Point, AggregatedKey)) -> bool {
    problem.compare(&a.0, &b.0).then_with(|| a.1.cmp(&b.1)).is_lt()
}

/// Whether a deployment may mix instance configurations: with a router that has weights, where total throughput counts.
pub fn mixes(problem: &Problem) -> bool {
    problem.custom_router
        && problem.traffic == Traffic::Free
        && problem.objective.first().is_some_and(|term| term.metric == Metric::OutputTokS)
}

/// Why a configuration serves no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadEnd {
    /// Its memory: offloading may serve more.
    Memory,
    /// The latency SLOs, the traffic or the rules.
    Other,
}

/// Whether a load is served within the SLOs, here or by another configuration. If not, fewer replicas do not serve it
/// either.
type Served = Result<(), LoadEnd>;

/// Evaluates one instance configuration at every load. What cannot improve on `known` is left out.
pub fn explore(
    prepared: &PreparedShape,
    index: usize,
    known: &Incumbents,
    survey: &mut Incumbents,
) -> LoadEnd {
    let (problem, shape) = (prepared.problem, &prepared.shape);
    if !shape.roles.aggregated {
        return LoadEnd::Other;
    }
    if shape.fits == 0 {
        return LoadEnd::Memory;
    }
    let at_load = |replicas: u64, concurrency: u64, survey: &mut Incumbents| {
        explore_load(prepared, AggregatedKey { shape: index, replicas, concurrency }, (known, survey))
    };
    match problem.traffic {
        Traffic::Free => {
            free::explore(prepared, index, (known, survey));
            let most = prepared.concurrency(shape.fits);
            let late = prepared.missed(&prepared.at(1, most), most).is_some();
            if late { LoadEnd::Other } else { LoadEnd::Memory }
        }
        Traffic::InFlight(_) => {
            let requests = problem.traffic.slots().unwrap_or(1);
            let most = most_replicas(problem, shape).min(requests);
            fewer_and_fewer(most, survey, |replicas, survey| {
                at_load(replicas, requests.div_ceil(replicas), survey)
            })
        }
        Traffic::Rate(rate) => fewer_and_fewer(most_replicas(problem, shape), survey, |replicas, survey| {
            match carrying(prepared, rate / replicas as f64) {
                Ok(concurrency) => at_load(replicas, concurrency, survey),
                Err(reason) => {
                    survey.census.candidates += 1;
                    survey.census.reject(&reason);
                    Err(LoadEnd::Memory)
                }
            }
        }),
    }
}

/// Evaluates replica counts from `most` down, as long as `serves` says that they serve the traffic: each of fewer replicas
/// has a higher load, and so no lower latency.
fn fewer_and_fewer(
    most: u64,
    survey: &mut Incumbents,
    mut serves: impl FnMut(u64, &mut Incumbents) -> Served,
) -> LoadEnd {
    for replicas in (1..=most).rev() {
        if let Err(end) = serves(replicas, survey) {
            survey.census.discard("latency_limit", replicas - 1);
            return end;
        }
    }
    LoadEnd::Other
}

/// The smallest concurrency at which one replica sustains `rate` requests per second.
fn carrying(prepared: &PreparedShape, rate: f64) -> Result<u64, Infeasible> {
    // Evaluated at the largest concurrency that fits, whatever rate it sustains.
    let flow = |requests: u64| {
        let concurrency = prepared.concurrency(requests);
        concurrency as f64 / prepared.filled(concurrency)
    };
    let below = prepared.shape.from - 1;
    if below > 0 && flow(below) >= rate {
        return Ok(prepared.concurrency(below));
    }
    let enough = least(prepared.shape.fits, prepared.shape.plan.pp, |requests| {
        requests > below && flow(requests) >= rate
    });
    let carried = || flow(prepared.shape.fits);
    let enough = enough.ok_or_else(|| Infeasible::TooMuchTraffic { carried: carried(), required: rate })?;
    Ok(prepared.concurrency(enough))
}

/// Evaluates one replica count at one load. Loads below those of the configuration are served by another.
fn explore_load(
    prepared: &PreparedShape,
    key: AggregatedKey,
    (known, survey): (&Incumbents, &mut Incumbents),
) -> Served {
    let AggregatedKey { replicas, concurrency, .. } = key;
    if concurrency < prepared.lowest() {
        return Ok(());
    }
    survey.census.candidates += 1;
    if concurrency > prepared.concurrency(prepared.shape.fits) {
        let reason = "concurrency exceeds the KV cache capacity";
        survey.census.refuse("out_of_memory", 1, reason);
        return Err(LoadEnd::Memory);
    }
    survey.census.evaluated += 1;
    let point = prepared.at(replicas, concurrency);
    match prepared.missed(&point, concurrency) {
        Some(reason) => {
            record_miss(survey, point, key, reason);
            Err(LoadEnd::Other)
        }
        None => {
            visit(prepared, (known, survey), point, key);
            Ok(())
        }
    }
}

fn record_miss(survey: &mut Incumbents, point: Point, key: AggregatedKey, reason: Infeasible) {
    survey.census.reject(&reason);
    if let Some(filled) = reason.filled() {
        survey.near((filled, point, key, reason));
    }
}

fn visit(
    prepared: &PreparedShape,
    (known, survey): (&Incumbents, &mut Incumbents),
    point: Point,
    key: AggregatedKey,
) {
    let (problem, shape) = (prepared.problem, &prepared.shape);
    survey.show(known, point, key);
    let sharing = shape.per_node.map(|_| key.replicas);
    let size = ReplicaSize { formats: shape.formats, devices: shape.plan.devices(), sharing };
    survey.keep(problem, size, (point, key));
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
        let ends = |(size, best): (&ReplicaSize, &(Point, AggregatedKey))| match size.sharing {
            Some(replicas) => vec![found(best, replicas)],
            None => {
                replica_ends(problem, &shapes[best.1.shape]).map(|replicas| found(best, replicas)).collect()
            }
        };
        return survey.best.iter().flat_map(ends).collect();
    }
    // Replicas that share a host are not mixed with others.
    let shared = survey.best.iter().filter_map(|(size, best)| Some(found(best, size.sharing?)));
    let mut deployments: Vec<EvaluatedCandidate> = shared.collect();
    for formats in 0..problem.formats.len() {
        let alike = |size: &ReplicaSize| size.formats == formats && size.sharing.is_none();
        let rows: Vec<_> = survey.best.iter().filter(|(size, _)| alike(size)).collect();
        let value = |point: &Point| point[place(Metric::OutputTokS)];
        let items: Vec<Item> = rows
            .iter()
            .map(|(size, (point, _))| Item { devices: size.devices, value: value(point) })
            .collect();
        let counts = problem.capacity().pack(&items);
        let pools = rows.iter().zip(&counts).filter(|(_, count)| **count > 0).flat_map(
            |((_, (_, key)), &replicas)| AggregatedKey { replicas, ..*key }.candidate(shapes).pools,
        );
        let pools: Vec<_> = pools.collect();
        if let Some((_, (_, key))) = rows.first().filter(|_| !pools.is_empty()) {
            let candidate = Candidate { pools, ..key.candidate(shapes) };
            deployments.push(EvaluatedCandidate::measured(problem, candidate));
        }
    }
    deployments
}

/// The best load of one replica with unlimited traffic; none where no load meets the SLOs.
pub fn best_load(prepared: &PreparedShape) -> Option<(Point, AggregatedKey)> {
    let problem = prepared.problem;
    if prepared.shape.fits == 0 {
        return None;
    }
    // Without axes no load is on a front, so that only the best is searched.
    let [none, mut alone] = [(); 2].map(|()| Incumbents::with_front(problem, ParetoFront::new(&[])));
    free::explore(prepared, 0, (&none, &mut alone));
    alone.best.pop_first().map(|(_, best)| best)
}

/// The strategies of an answer with the best load of each, which a search may have left out for those of others.
pub fn strategies(problem: &Problem, shapes: &Shapes, survey: &Incumbents) -> Vec<EvaluatedCandidate> {
    let best = |(point, key): (&Point, &AggregatedKey)| {
        let (mut point, mut key) = (*point, *key);
        if problem.traffic == Traffic::Free && !problem.only_best() {
            let prepared = PreparedShape::of(problem, shapes.shared(key.shape).clone());
            if let Some((best, load)) = best_load(&prepared) {
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
