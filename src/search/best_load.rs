//! The load of a given plan with unlimited traffic: the best within the SLOs, as the search chooses it.

use super::aggregated::best_load;
use super::candidate::{Candidate, PoolPlan};
use super::front_sampling::sampled;
use super::hosting::on_node;
use super::point::{Point, point};
use super::prepared::{PreparedInstance, PreparedInstances};
use super::problem::Problem;
use super::shape::{PreparedShape, largest};

/// A pool whose load is open: its index, and the requests per attention rank that fit.
pub type OpenPool = (usize, u64);

/// Sets the concurrency of the open pools. Where no load meets the SLOs it is one request per attention rank, which misses
/// them by the least.
pub fn set_best_load(problem: &Problem, candidate: &mut Candidate, open: &[OpenPool]) {
    let prepared = PreparedInstances::new(problem);
    if candidate.is_disaggregated() {
        let common = common_load(&prepared, candidate, open);
        put(&mut candidate.pools, open, common);
        return;
    }
    for (at, _) in open {
        let pool = &candidate.pools[*at];
        let bare = prepared.bare(pool);
        let shared = (candidate.offload, on_node(problem, pool.replicas));
        let replica = PreparedShape::given(problem, candidate.formats, &bare, shared).ok();
        let best = replica.and_then(|replica| best_load(&replica));
        candidate.pools[*at].concurrency = best.map_or(pool.plan.dp, |(_, key)| key.concurrency);
    }
}

/// Sets the requests per attention rank of the open pools, as far as they fit.
pub fn put(pools: &mut [PoolPlan], open: &[OpenPool], requests: u64) {
    for (at, most) in open {
        let pool = &mut pools[*at];
        pool.concurrency = requests.min(*most).max(1) * pool.plan.dp;
    }
}

/// Loads between two listed ones that are tried around the best of the listed ones.
const BETWEEN: u64 = 32;

/// The best common load of pools that depend on each other, in requests per attention rank. Latencies never fall with the
/// load, so that none above one that misses an SLO meets it.
fn common_load(prepared: &PreparedInstances, candidate: &Candidate, open: &[OpenPool]) -> u64 {
    let (problem, instances) = (prepared.problem(), prepared.of(candidate));
    let at = |requests: u64| measured(prepared, &instances, candidate, (open, requests));
    let full = open.iter().map(|(_, most)| *most).max().unwrap_or(1);
    let most = largest(full, |requests| at(requests).1);
    if most == 0 {
        return 1;
    }
    let better = |best: (u64, Point), load: u64| {
        let (point, meets) = at(load);
        if meets && problem.is_better(&point, &best.1) { (load, point) } else { best }
    };
    let listed: Vec<u64> = sampled(most, problem.front_sampling.load_steps).collect();
    let best = listed.iter().copied().fold((1, at(1).0), better);
    let place = listed.partition_point(|load| *load < best.0);
    let low = place.checked_sub(1).map_or(1, |before| listed[before]);
    let high = listed.get(place + 1).copied().unwrap_or(most);
    (low..=high).step_by((high - low).div_ceil(BETWEEN).max(1) as usize).fold(best, better).0
}

/// The metrics at a load, and whether they meet the SLOs.
fn measured(
    prepared: &PreparedInstances,
    instances: &[PreparedInstance],
    candidate: &Candidate,
    (open, requests): (&[OpenPool], u64),
) -> (Point, bool) {
    let mut probe = candidate.clone();
    put(&mut probe.pools, open, requests);
    let evaluation = prepared.evaluate(&probe, instances, &mut ());
    let problem = prepared.problem();
    let meets = problem.missed_in_pools(&evaluation, probe.margin(problem)).next().is_none();
    (point(&evaluation.metrics), meets)
}
