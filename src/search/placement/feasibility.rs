//! Feasibility: fast tests first, and where members share a host, the placement with the least host memory.
//!
//! Uses pages only: times do not affect feasibility.

use super::chain::{Chain, Member, SegmentCost, SharedHost, Spill, Stage};
use super::{PlacementInfeasible, known, least_sum_shared};
use crate::search::run::UNWATCHED;

/// A placement, and the host memory that each member takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinHostMemory {
    pub stages: Vec<Stage>,
    /// Pages of host memory, by member.
    pub parts: Vec<u64>,
}

/// A layer that fits on no member, even alone; the member with the most memory, and the missing pages.
pub fn too_large(chain: &Chain) -> Option<(usize, usize, u64)> {
    let lacks = |member: usize, layer: usize| {
        let held = &chain.members[member];
        let (all, _) = held.pages(chain.layers, layer, layer + 1);
        // With the embedding on the same member, the head needs no copy of it.
        let head_alone = layer > 0 && layer + 1 == chain.layers;
        let all = all - if head_alone { held.copy } else { 0 };
        let deeper = [held.spill, held.disk].into_iter().flatten().map(|spill| spill.pages);
        all.saturating_sub(held.usable + deeper.sum::<u64>())
    };
    (0..chain.layers).find_map(|layer| {
        let (short, member) = (0..chain.members.len()).map(|member| (lacks(member, layer), member)).min()?;
        (short > 0).then_some((layer, member, short))
    })
}

/// Minimum pages of layers and ends, and the pages that all members have for them.
pub fn needed(chain: &Chain) -> (u64, u64) {
    let members = &chain.members;
    let least = |of: &dyn Fn(usize) -> u64| (0..members.len()).map(of).min().unwrap_or_default();
    let layers: u64 = (0..chain.layers).map(|layer| least(&|k| members[k].layers[layer].pages)).sum();
    let needed = layers + least(&|k| members[k].first.pages) + least(&|k| members[k].last.pages);
    let deeper = |at: usize| {
        let shared = chain.hosts.iter().any(|host| host.members.iter().any(|(member, _)| *member == at));
        let own = if shared { 0 } else { members[at].spill.map_or(0, |spill| spill.pages) };
        own + members[at].disk.map_or(0, |disk| disk.pages)
    };
    let free = |at: usize| members[at].usable.saturating_sub(members[at].base) + deeper(at);
    let hosts: u64 = chain.hosts.iter().map(|host| host.pages).sum();
    (needed, (0..members.len()).map(free).sum::<u64>() + hosts)
}

/// Feasibility where a fast test decides it: the total memory of all layers and members, or a heuristic placement.
pub fn quick_feasibility(chain: &Chain) -> Option<bool> {
    let (needed, available) = needed(chain);
    if needed > available || too_large(chain).is_some() {
        return Some(false);
    }
    known(chain).iter().any(|stages| chain.sum(stages).is_ok()).then_some(true)
}

/// `chain` with use of the pages of `host` as the only cost.
fn in_pages(chain: &Chain, host: &SharedHost) -> Chain {
    let bare = |part: &SegmentCost| SegmentCost { ticks: 0, ..*part };
    let free = |spill: Spill| Spill { ticks_per_page: 0, ticks_per_expert_page: 0, ..spill };
    let one = |(at, member): (usize, &Member)| {
        let devices = host.members.iter().find(|(member, _)| *member == at).map(|(_, devices)| *devices);
        let (spill, disk) = match devices {
            // Disk first: each device has its own.
            Some(devices) => {
                let paid = |spill: Spill| Spill {
                    pages: spill.pages.min(host.pages / devices.max(1)),
                    ticks_per_page: devices,
                    ticks_per_expert_page: devices,
                };
                (member.disk.map(free), member.spill.map(paid))
            }
            None => (member.spill.map(free), member.disk.map(free)),
        };
        Member {
            layers: member.layers.iter().map(bare).collect(),
            first: bare(&member.first),
            last: bare(&member.last),
            host: 0,
            spill,
            disk,
            ..member.clone()
        }
    };
    let link = |link: &Option<u64>| link.map(|_| 0);
    Chain {
        layers: chain.layers,
        members: chain.members.iter().enumerate().map(one).collect(),
        links: chain.links.iter().map(|row| row.iter().map(link).collect()).collect(),
        hosts: vec![],
    }
}

/// The placement with the least use of the one host that members share; `None` where they share none, or several.
///
/// # Errors
/// Even that exceeds the host memory, or nothing fits with unlimited host memory.
pub fn min_host_memory(chain: &Chain) -> Option<Result<MinHostMemory, PlacementInfeasible>> {
    let [host] = chain.hosts.as_slice() else { return None };
    let found = match least_sum_shared(&in_pages(chain, host), &UNWATCHED) {
        Ok(found) => found,
        Err(why) => return Some(Err(why)),
    };
    if found.ticks > host.pages {
        return Some(Err(PlacementInfeasible::WholeLayers { held: None }));
    }
    let mut parts = vec![0; chain.members.len()];
    for stage in found.stages.iter().filter(|stage| host.members.iter().any(|(at, _)| *at == stage.member)) {
        let deeper = chain.members[stage.member].disk.map_or(0, |disk| disk.pages);
        parts[stage.member] = chain.over(stage).saturating_sub(deeper);
    }
    // A member without a shared host may take all of its own.
    for (at, member) in chain.members.iter().enumerate() {
        if host.members.iter().all(|(shared, _)| *shared != at) {
            parts[at] = member.spill.map_or(0, |spill| spill.pages);
        }
    }
    Some(Ok(MinHostMemory { stages: found.stages, parts }))
}
