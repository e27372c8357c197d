//! Checks if a deployment is valid: plans, stages, device domains and memory. Independent of the search.

use crate::plan::legal::check;
use crate::plan::parallel::Phase;
use crate::quantity::read::Plain;
use crate::search::candidate::Candidate;
use crate::search::problem::Problem;
use crate::serving::admission::residency;
use crate::spec::role::Role;

/// Whether `candidate` is valid, independent of latencies.
pub fn runs(problem: &Problem, candidate: &Candidate) -> bool {
    problem.space.has(candidate)
        && legal(problem, candidate)
        && placed(problem, candidate)
        && held(problem, candidate)
}

/// Every plan is legal, every layer is in one stage, and both prefill and decode have a pool.
fn legal(problem: &Problem, candidate: &Candidate) -> bool {
    let limits = problem.legal_limits(&problem.formats[candidate.formats]);
    let layers = problem.graph.layers.value;
    let plans = candidate.pools.iter().all(|pool| {
        let sum: u64 = pool.stages.iter().map(|held| u64::from(*held)).sum();
        let stages = pool.stages.len() as u64 == pool.plan.pp && sum == layers;
        stages
            && pool.stages.iter().all(|held| *held > 0)
            && pool.replicas > 0
            && pool.concurrency > 0
            && check(&problem.graph, &pool.plan, &limits).is_ok()
    });
    let any = |role| candidate.pools.iter().any(|pool| pool.role == role);
    let disaggregated = any(Role::Prefill) || any(Role::Decode);
    let can =
        problem.workload.lengths.osl > 1 && problem.cluster.devices() > 1 && problem.runtime.has("disagg");
    let kv = &problem.formats[candidate.formats].kv;
    plans
        && problem.one_format(candidate).is_ok()
        && problem.runtime.forbids(kv, &candidate.workers()).is_none()
        && (problem.custom_router || candidate.is_plain())
        && (!disaggregated || (any(Role::Prefill) && any(Role::Decode) && can))
        && loaded(problem, candidate)
}

/// Every instance has a concurrency of at least one.
fn loaded(problem: &Problem, candidate: &Candidate) -> bool {
    let Some(requests) = problem.traffic.requests() else { return true };
    let decoding = candidate.pools.iter().filter(|pool| pool.role != Role::Prefill);
    decoding.map(|pool| pool.replicas).sum::<u64>() <= requests
}

/// Whether the instances fit, first-fit by decreasing size: inside a unit of the innermost tier, on whole units of
/// one node, or on whole nodes.
fn placed(problem: &Problem, candidate: &Candidate) -> bool {
    let (unit, block, all) = (problem.cluster.domain(), problem.cluster.block(), problem.cluster.devices());
    let mut sizes: Vec<(u64, u64)> =
        candidate.pools.iter().map(|pool| (pool.plan.devices(), pool.replicas)).collect();
    if sizes.iter().any(|(devices, replicas)| devices.saturating_mul(*replicas) > all) {
        return false;
    }
    sizes.sort_by(|a, b| b.cmp(a));
    // Free devices of each unit; a node may end in a partial unit.
    let mut node = vec![unit; (block / unit) as usize];
    node.extend(Some(block % unit).filter(|rest| *rest > 0));
    let full = node.clone();
    let mut free = vec![node; (all / block) as usize];
    for devices in sizes.into_iter().flat_map(|(devices, replicas)| (0..replicas).map(move |_| devices)) {
        let units = devices.div_ceil(unit) as usize;
        let found = if devices <= unit {
            free.iter_mut().flatten().find(|left| **left >= devices).map(|left| *left -= devices)
        } else if units as u64 <= block / unit {
            let whole = |node: &Vec<u64>| node.iter().filter(|left| **left == unit).count() >= units;
            free.iter_mut().find(|node| whole(node)).map(|node| {
                node.iter_mut().filter(|left| **left == unit).take(units).for_each(|left| *left = 0);
            })
        } else {
            let nodes = devices.div_ceil(block) as usize;
            let there = free.iter().filter(|node| **node == full).count() >= nodes;
            let mut empty = free.iter_mut().filter(|node| **node == full);
            there.then(|| {
                empty.by_ref().take(nodes).for_each(|node| node.iter_mut().for_each(|left| *left = 0))
            })
        };
        if found.is_none() {
            return false;
        }
    }
    true
}

/// Whether the memory of the fullest device of every pool suffices.
fn held(problem: &Problem, candidate: &Candidate) -> bool {
    let machine = problem.formats[candidate.formats].plain();
    candidate.pools.iter().zip(candidate.instances(problem)).all(|(pool, instance)| {
        let phase = if pool.role == Role::Prefill { Phase::Prefill } else { Phase::Decode };
        let held = residency(&Plain, &instance, phase, machine, problem.terms(), pool.concurrency);
        held.total.value() <= held.usable.value()
    })
}
