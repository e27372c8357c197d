//! Host memory that several members share: exact, by branching on what each of them may take of it.
//!
//! The programmes know only what a member has by itself. Each is asked with limits on every member's part; where
//! its answer takes more of a host than there is, one member's part is divided in two, and both are asked. Knows
//! nothing of what the programmes minimise.

use super::PlacementInfeasible;
use super::chain::{Chain, Stage};
use super::feasibility::frugal;

/// Looks at the programmes, at most: beyond, the best so far is told with its bound.
const MOST_LOOKS: u64 = 4_000;

/// What a programme said under limits.
#[derive(Clone, Debug)]
pub struct BoundedSolution<S> {
    /// What is minimised.
    pub worth: f64,
    /// No placement under these limits is worth less.
    pub bound: f64,
    /// Where the layers are.
    pub stages: Vec<Stage>,
    /// Everything else of the answer.
    pub answer: S,
}

/// The best of all.
#[derive(Clone, Debug)]
pub struct HostSplit<S> {
    /// The answer.
    pub best: BoundedSolution<S>,
    /// Pages of host memory that each member may take in it.
    pub parts: Vec<u64>,
    /// No placement is worth less.
    pub bound: f64,
}

/// What members take at least and at most, and what no answer within is worth less than.
#[derive(Clone)]
struct BranchNode {
    least: Vec<u64>,
    most: Vec<u64>,
    bound: f64,
}

/// What each member of `chain` may take by itself, where others take at least their least.
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

/// Pages that each member takes in `stages`, no more than its part: the rest lies deeper.
fn taken(chain: &Chain, stages: &[Stage], parts: &[u64]) -> Vec<u64> {
    let mut taken = vec![0; chain.members.len()];
    for stage in stages {
        taken[stage.member] = chain.over(stage).min(parts[stage.member]);
    }
    taken
}

/// The member whose part is to be divided, and after which page; nothing where every host suffices.
fn divide(chain: &Chain, node: &BranchNode, taken: &[u64]) -> Option<(usize, u64)> {
    chain.hosts.iter().find_map(|host| {
        let all: u64 = host.members.iter().map(|(member, devices)| devices * taken[*member]).sum();
        if all <= host.pages {
            return None;
        }
        let free = host.members.iter().filter(|(member, _)| taken[*member] > node.least[*member]);
        let &(member, devices) =
            free.max_by_key(|(member, devices)| devices * (taken[*member] - node.least[*member]))?;
        // As much as the others leave of it.
        let left = host.pages.saturating_sub(all - devices * taken[member]) / devices;
        Some((member, left.max(node.least[member]).min(taken[member] - 1)))
    })
}

/// Whether the least of all members is there.
fn possible(chain: &Chain, least: &[u64]) -> bool {
    chain.hosts.iter().all(|host| {
        host.members.iter().map(|(member, devices)| devices * least[*member]).sum::<u64>() <= host.pages
    })
}

/// The best placement on members of `chain` that share hosts, as far as `stop` lets it be sought. `look` asks a
/// programme with so many pages of host memory for each member.
///
/// # Errors
/// There is none, and why the programme says so.
pub fn share<S>(
    chain: &Chain,
    stop: &dyn Fn() -> bool,
    mut look: impl FnMut(&[u64]) -> Result<BoundedSolution<S>, PlacementInfeasible>,
) -> Result<HostSplit<S>, PlacementInfeasible> {
    let all = |member: usize| chain.members[member].spill.map_or(0, |spill| spill.pages);
    let members = chain.members.len();
    let root = BranchNode {
        least: vec![0; members],
        most: (0..members).map(all).collect(),
        bound: f64::NEG_INFINITY,
    };
    // A host in equal parts is a beginning.
    let mut equal = root.most.clone();
    for host in &chain.hosts {
        let devices: u64 = host.members.iter().map(|(_, devices)| devices).sum();
        host.members
            .iter()
            .for_each(|(member, _)| equal[*member] = equal[*member].min(host.pages / devices.max(1)));
    }
    let mut best: Option<(BoundedSolution<S>, Vec<u64>)> = look(&equal).ok().map(|found| (found, equal));
    // Where nothing fits in equal parts, whatever takes least of a host tells whether anything does.
    if best.is_none()
        && let Some(least) = frugal(chain)
    {
        let parts = least?.parts;
        best = look(&parts).ok().map(|found| (found, parts));
    }
    let (mut open, mut looks, mut why, mut unseen) = (vec![root], 1, None, false);
    let mut bound = f64::INFINITY;
    while let Some(next) = (0..open.len()).min_by(|a, b| open[*a].bound.total_cmp(&open[*b].bound)) {
        let node = open.swap_remove(next);
        let worth = best.as_ref().map_or(f64::INFINITY, |(best, _)| best.worth);
        if node.bound >= worth {
            break;
        }
        if looks >= MOST_LOOKS || looks > 1 && stop() {
            (bound, unseen) = (bound.min(node.bound), true);
            break;
        }
        looks += 1;
        let parts = parts(chain, &node);
        let found = match look(&parts) {
            Ok(found) => found,
            Err(refusal) => {
                if matches!(refusal, PlacementInfeasible::Stopped { .. }) {
                    (bound, unseen) = (bound.min(node.bound), true);
                }
                why.get_or_insert(refusal);
                continue;
            }
        };
        if found.bound >= worth {
            continue;
        }
        let taken = taken(chain, &found.stages, &parts);
        let Some((member, after)) = divide(chain, &node, &taken) else {
            // What is not proved within these limits may be worth as little as its bound.
            if found.bound < found.worth {
                bound = bound.min(found.bound);
            }
            if found.worth < worth {
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
    // What was not looked at to its end may hold anything.
    let why = if unseen { Some(PlacementInfeasible::Stopped { bound: 0 }) } else { why };
    let (best, parts) = best.ok_or_else(|| why.unwrap_or(PlacementInfeasible::WholeLayers { held: None }))?;
    let bound = bound.min(best.worth);
    Ok(HostSplit { best, parts, bound })
}
