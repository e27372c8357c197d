//! Analysis of an infeasible placement: conflicting constraints, the nearest placement, and the additional memory
//! that suffices.

use super::bottleneck::{BoundSearch, MOST_LAYERS, MinMaxStage};
use super::chain::{Chain, Member, SegmentCost, Stage};
use super::feasibility::{min_host_memory, quick_feasibility};
use super::{PlacementInfeasible, device_classes, least_sum};
use crate::search::conflict::irreducible;
use crate::search::shape::largest;

/// A constraint known to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementLimit {
    /// Links: members are connected by these links only.
    Links,
    Hosts,
    Cache,
    Weights,
    /// The memory of a member and of all identical ones; index of the first of them.
    Memory(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitConflict {
    /// Dropping any one of them makes the others feasible.
    pub limits: Vec<PlacementLimit>,
    /// Constraints that are not part of the conflict.
    pub innocent: Vec<PlacementLimit>,
    /// Dropping one of `limits` does not suffice, as other conflicts exist.
    pub several: bool,
}

/// An infeasible placement under the smallest common limit on missing memory per member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearestPlacement {
    pub stages: Vec<Stage>,
    /// Missing pages of each stage.
    pub lacks: Vec<u64>,
}

/// Whether a placement is known to fit.
pub fn holds(chain: &Chain) -> bool {
    decided(chain) == Some(true)
}

/// Whether any placement fits; `None` where the search stopped before it was decided.
pub fn decided(chain: &Chain) -> Option<bool> {
    if let Some(feasible) = quick_feasibility(chain) {
        return Some(feasible);
    }
    let refused = |why: PlacementInfeasible| {
        if matches!(why, PlacementInfeasible::Stopped { .. }) { None } else { Some(false) }
    };
    if let Some(least) = min_host_memory(chain) {
        return least.map_or_else(refused, |_| Some(true));
    }
    // For shared hosts, only the program for sums decides how members divide the memory.
    if chain.layers > MOST_LAYERS || !chain.hosts.is_empty() {
        return least_sum(chain).map_or_else(refused, |_| Some(true));
    }
    match MinMaxStage::new(chain, &device_classes(chain)).any() {
        BoundSearch::Found(_) => Some(true),
        BoundSearch::Nothing => Some(false),
        BoundSearch::Stopped => None,
    }
}

/// Upper bound of the pages of any segment.
fn all(chain: &Chain) -> u64 {
    let most = |member: &Member| {
        let (pages, _) = member.pages(chain.layers, 0, chain.layers);
        pages + member.copy
    };
    chain.members.iter().map(most).max().unwrap_or_default()
}

/// `member` with each part of its pages recomputed from it and from the same member without a KV cache.
fn parts(member: &Member, lean: &Member, pages: impl Fn(u64, u64) -> u64) -> Member {
    let part =
        |full: SegmentCost, lean: SegmentCost| SegmentCost { pages: pages(full.pages, lean.pages), ..full };
    let layers: Vec<SegmentCost> =
        member.layers.iter().zip(&lean.layers).map(|(a, b)| part(*a, *b)).collect();
    Member {
        experts: member
            .experts
            .iter()
            .zip(&layers)
            .map(|(experts, held)| *experts.min(&held.pages))
            .collect(),
        layers,
        first: part(member.first, lean.first),
        last: part(member.last, lean.last),
        copy: pages(member.copy, lean.copy),
        base: pages(member.base, lean.base),
        ..member.clone()
    }
}

/// `chain` with only the constraints in `keep`; `lean` is the same chain with almost no KV cache.
pub fn only(chain: &Chain, lean: &Chain, keep: &[PlacementLimit]) -> Chain {
    let (unlimited, kinds) = (all(chain), chain.kinds());
    let kept = |limit: PlacementLimit| keep.contains(&limit);
    let one = |(at, (member, lean)): (usize, (&Member, &Member))| {
        let mut one = match (kept(PlacementLimit::Cache), kept(PlacementLimit::Weights)) {
            (true, true) => member.clone(),
            (false, true) => parts(member, lean, |_, lean| lean),
            (true, false) => parts(member, lean, |full, lean| full.saturating_sub(lean)),
            (false, false) => parts(member, lean, |_, _| 0),
        };
        if !kept(PlacementLimit::Memory(kinds[at])) {
            one.usable = one.usable.max(unlimited);
        }
        if !kept(PlacementLimit::Hosts) {
            one.spill.iter_mut().for_each(|spill| spill.pages = spill.pages.max(unlimited));
        }
        one
    };
    let link = |link: &Option<u64>| if kept(PlacementLimit::Links) { *link } else { Some(link.unwrap_or(0)) };
    Chain {
        layers: chain.layers,
        members: chain.members.iter().zip(&lean.members).enumerate().map(one).collect(),
        links: chain.links.iter().map(|row| row.iter().map(link).collect()).collect(),
        hosts: if kept(PlacementLimit::Hosts) { chain.hosts.clone() } else { vec![] },
    }
}

/// The conflicting constraints of an infeasible `chain`; `lean` is the same chain with almost no KV cache.
pub fn conflict(chain: &Chain, lean: &Chain) -> LimitConflict {
    let kinds = chain.kinds();
    let memories = (0..kinds.len()).filter(|at| kinds[*at] == *at).map(PlacementLimit::Memory);
    let spills = chain.members.iter().any(|member| member.spill.is_some());
    let hosts = spills.then_some(PlacementLimit::Hosts);
    let parted = chain.links.iter().flatten().any(Option::is_none);
    let links = parted.then_some(PlacementLimit::Links);
    // Constraints that are easier to change are dropped first, so that the rest is what binds.
    let limits: Vec<PlacementLimit> = links
        .into_iter()
        .chain([PlacementLimit::Cache])
        .chain(hosts)
        .chain(memories)
        .chain([PlacementLimit::Weights])
        .collect();
    let named = |keep: &[usize]| -> Vec<PlacementLimit> { keep.iter().map(|at| limits[*at]).collect() };
    let found =
        irreducible(limits.len(), |keep| decided(&only(chain, lean, &named(keep))).map(|holds| !holds));
    let kept = named(&found.kept);
    let innocent = limits.iter().copied().filter(|limit| !kept.contains(limit)).collect();
    let lifted = |one: &PlacementLimit| -> Vec<PlacementLimit> {
        limits.iter().copied().filter(|limit| limit != one).collect()
    };
    let several = kept.iter().any(|one| !holds(&only(chain, lean, &lifted(one))));
    LimitConflict { limits: kept, innocent, several }
}

/// The placement with the smallest additional memory, equal for every member; `None` where no amount of memory helps.
pub fn nearest(chain: &Chain) -> Option<NearestPlacement> {
    let more = |pages: u64| {
        let mut larger = chain.clone();
        larger.members.iter_mut().for_each(|member| member.usable += pages);
        larger
    };
    let pages = least(all(chain), |pages| holds(&more(pages)))?;
    let larger = more(pages);
    let groups = device_classes(&larger);
    let counted = chain.layers <= MOST_LAYERS && chain.hosts.is_empty();
    let stages = match counted.then(|| MinMaxStage::new(&larger, &groups).any()) {
        Some(BoundSearch::Found(stages)) => stages,
        _ => least_sum(&larger).ok()?.stages,
    };
    let lacks = stages.iter().map(|stage| {
        let member = &chain.members[stage.member];
        let deeper = [member.spill, member.disk].into_iter().flatten().map(|spill| spill.pages);
        chain.over(stage).saturating_sub(deeper.sum())
    });
    Some(NearestPlacement { lacks: lacks.collect(), stages })
}

/// The smallest number of additional pages for `member` and each identical member that makes the placement feasible.
pub fn more_memory(chain: &Chain, member: usize) -> Option<u64> {
    let kinds = chain.kinds();
    least(all(chain), |pages| {
        let mut larger = chain.clone();
        let like = |at: &usize| kinds[*at] == kinds[member];
        (0..kinds.len()).filter(like).for_each(|at| larger.members[at].usable += pages);
        holds(&larger)
    })
}

/// The smallest number up to `most` for which the monotone `enough` holds.
fn least(most: u64, enough: impl Fn(u64) -> bool) -> Option<u64> {
    enough(most).then(|| largest(most, |pages| !enough(pages)) + 1)
}
