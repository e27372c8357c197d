//! Host memory shared by several members: exact, by branch and bound over the share of each member.
//!
//! The dynamic programs only support memory of a single member. Each is solved with limits on the share of every
//! member; where the result exceeds the memory of a host, the range of one share is divided in two, and both halves
//! are solved.

use super::PlacementInfeasible;
use super::chain::{Chain, Stage};
use super::feasibility::min_host_memory;

/// Maximum number of program solves; beyond it, the best result so far is returned with its bound.
const MOST_SOLVES: u64 = 4_000;

/// The result of a program under limits.
#[derive(Clone, Debug)]
pub struct BoundedSolution<S> {
    /// Objective value, minimised.
    pub objective: f64,
    /// Lower bound under these limits.
    pub bound: f64,
    pub stages: Vec<Stage>,
    pub solution: S,
}

#[derive(Clone, Debug)]
pub struct HostSplit<S> {
    pub best: BoundedSolution<S>,
    /// Limit on host memory of each member in it, in pages.
    pub parts: Vec<u64>,
    /// Lower bound over all placements.
    pub bound: f64,
}

/// Range of the share of each member, and a lower bound within it.
#[derive(Clone)]
struct BranchNode {
    least: Vec<u64>,
    most: Vec<u64>,
    bound: f64,
}

/// The largest share of each member of `chain` if the others take at least their minimum.
fn parts(chain: &Chain, node: &BranchNode) -> Vec<u64> {
    let mut parts = node.most.clone();
    for host in &chain.hosts {
        let taken: u64 = host.members.iter().map(|(member, devices)| devices * node.least[*member]).sum();
        for &(member, devices) in &host.members {
            let own = devices * node.least[member];
            parts[member] = parts[member].min((host.pages.saturating_sub(taken - own)) / devices);
        }
    }
    parts
}

/// Pages that each member takes in `stages`, up to its share; the rest goes to disk.
fn taken(chain: &Chain, stages: &[Stage], parts: &[u64]) -> Vec<u64> {
    let mut taken = vec![0; chain.members.len()];
    for stage in stages {
        taken[stage.member] = chain.over(stage).min(parts[stage.member]);
    }
    taken
}

/// The member whose range is divided, and after which page; `None` where every host suffices.
fn divide(chain: &Chain, node: &BranchNode, taken: &[u64]) -> Option<(usize, u64)> {
    chain.hosts.iter().find_map(|host| {
        let all: u64 = host.members.iter().map(|(member, devices)| devices * taken[*member]).sum();
        if all <= host.pages {
            return None;
        }
        let free = host.members.iter().filter(|(member, _)| taken[*member] > node.least[*member]);
        let &(member, devices) =
            free.max_by_key(|(member, devices)| devices * (taken[*member] - node.least[*member]))?;
        // The amount that the others leave.
        let left = host.pages.saturating_sub(all - devices * taken[member]) / devices;
        Some((member, left.max(node.least[member]).min(taken[member] - 1)))
    })
}

/// Whether the minimum shares of all members fit.
fn possible(chain: &Chain, least: &[u64]) -> bool {
    chain.hosts.iter().all(|host| {
        host.members.iter().map(|(member, devices)| devices * least[*member]).sum::<u64>() <= host.pages
    })
}

/// A first solution with its host memory for each member: equal shares; where these are infeasible, the placement
/// with the least host memory, which decides feasibility.
fn first_split<S>(
    chain: &Chain,
    most: &[u64],
    solve: &mut impl FnMut(&[u64]) -> Result<BoundedSolution<S>, PlacementInfeasible>,
) -> Result<Option<(BoundedSolution<S>, Vec<u64>)>, PlacementInfeasible> {
    let mut equal = most.to_vec();
    for host in &chain.hosts {
        let devices: u64 = host.members.iter().map(|(_, devices)| devices).sum();
        for (member, _) in &host.members {
            equal[*member] = equal[*member].min(host.pages / devices.max(1));
        }
    }
    if let Ok(found) = solve(&equal) {
        return Ok(Some((found, equal)));
    }
    let Some(least) = min_host_memory(chain) else { return Ok(None) };
    let parts = least?.parts;
    Ok(solve(&parts).ok().map(|found| (found, parts)))
}

/// The best placement on members of `chain` that share hosts, until `stop` ends the search. `solve` solves a program
/// with a limit on host memory for each member, in pages.
pub fn share<S>(
    chain: &Chain,
    stop: &dyn Fn() -> bool,
    mut solve: impl FnMut(&[u64]) -> Result<BoundedSolution<S>, PlacementInfeasible>,
) -> Result<HostSplit<S>, PlacementInfeasible> {
    let all = |member: usize| chain.members[member].spill.map_or(0, |spill| spill.pages);
    let members = chain.members.len();
    let root = BranchNode {
        least: vec![0; members],
        most: (0..members).map(all).collect(),
        bound: f64::NEG_INFINITY,
    };
    let mut best = first_split(chain, &root.most, &mut solve)?;
    let (mut open, mut solves, mut why, mut unseen) = (vec![root], 1, None, false);
    let mut bound = f64::INFINITY;
    while let Some(next) = (0..open.len()).min_by(|a, b| open[*a].bound.total_cmp(&open[*b].bound)) {
        let node = open.swap_remove(next);
        let known = best.as_ref().map_or(f64::INFINITY, |(best, _)| best.objective);
        if node.bound >= known {
            break;
        }
        if solves >= MOST_SOLVES || solves > 1 && stop() {
            (bound, unseen) = (bound.min(node.bound), true);
            break;
        }
        solves += 1;
        let parts = parts(chain, &node);
        let found = match solve(&parts) {
            Ok(found) => found,
            Err(refusal) => {
                if matches!(refusal, PlacementInfeasible::Stopped { .. }) {
                    (bound, unseen) = (bound.min(node.bound), true);
                }
                why.get_or_insert(refusal);
                continue;
            }
        };
        if found.bound >= known {
            continue;
        }
        let taken = taken(chain, &found.stages, &parts);
        let Some((member, after)) = divide(chain, &node, &taken) else {
            // An unproved result within these limits may be as low as its bound.
            if found.bound < found.objective {
                bound = bound.min(found.bound);
            }
            if found.objective < known {
                best = Some((found, taken));
            }
            continue;
        };
        let mut fewer = BranchNode { bound: found.bound, ..node.clone() };
        fewer.most[member] = after;
        open.push(fewer);
        let mut more = BranchNode { bound: found.bound, ..node };
        more.least[member] = after + 1;
        if possible(chain, &more.least) {
            open.push(more);
        }
    }
    // An incomplete search leaves feasibility undecided.
    let why = if unseen { Some(PlacementInfeasible::Stopped { bound: 0 }) } else { why };
    let (best, parts) = best.ok_or_else(|| why.unwrap_or(PlacementInfeasible::WholeLayers { held: None }))?;
    let bound = bound.min(best.objective);
    Ok(HostSplit { best, parts, bound })
}
