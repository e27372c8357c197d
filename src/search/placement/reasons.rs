//! Why nothing fits: limits none of which can be left out, what comes nearest, and how much more memory would do.
//!
//! Knows pages and links; what they stand for is told by whoever asks.

use super::bottleneck::{BoundSearch, MOST_LAYERS, MinMaxStage};
use super::chain::{Chain, Member, SegmentCost, Stage};
use super::feasibility::{frugal, soon_told};
use super::{PlacementInfeasible, device_classes, least_sum};
use crate::search::conflict::irreducible;
use crate::search::shape::largest;

/// A limit that a user knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementLimit {
    /// Members are joined by these links only.
    Links,
    /// What lies in host memory has an end.
    Hosts,
    /// Requests keep a cache.
    Cache,
    /// The weights take what they take.
    Weights,
    /// A member's memory, and that of all that are like it: the first of them.
    Memory(usize),
}

/// Limits that conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitConflict {
    /// Leaving out any one of them, the others can be kept.
    pub limits: Vec<PlacementLimit>,
    /// Limits that are not needed for the conflict: without them all there is none, or another.
    pub innocent: Vec<PlacementLimit>,
    /// Lifting one of `limits` is not enough, as others conflict as well.
    pub several: bool,
}

/// A placement that lacks memory, the same of every member at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearestPlacement {
    /// Where the layers would be.
    pub stages: Vec<Stage>,
    /// Pages that each stage lacks.
    pub lacks: Vec<u64>,
}

/// Whether anything is known to fit.
pub fn holds(chain: &Chain) -> bool {
    decided(chain) == Some(true)
}

/// Whether anything fits at all; nothing where the search for it ended before that was known.
pub fn decided(chain: &Chain) -> Option<bool> {
    if let Some(told) = soon_told(chain) {
        return Some(told);
    }
    let told = |why: PlacementInfeasible| {
        if matches!(why, PlacementInfeasible::Stopped { .. }) { None } else { Some(false) }
    };
    if let Some(least) = frugal(chain) {
        return least.map_or_else(told, |_| Some(true));
    }
    // Who takes how much of several hosts that are shared, only the programme for sums is asked.
    if chain.layers > MOST_LAYERS || !chain.hosts.is_empty() {
        return least_sum(chain).map_or_else(told, |_| Some(true));
    }
    match MinMaxStage::new(chain, &device_classes(chain)).any() {
        BoundSearch::Found(_) => Some(true),
        BoundSearch::Nothing => Some(false),
        BoundSearch::Stopped => None,
    }
}

/// Pages that no segment exceeds.
fn all(chain: &Chain) -> u64 {
    let most = |member: &Member| {
        let (pages, _) = member.pages(chain.layers, 0, chain.layers);
        pages + member.copy
    };
    chain.members.iter().map(most).max().unwrap_or_default()
}

/// `member` with `pages` of each part worked out anew from it and its like without a cache.
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

/// `chain` with only the limits of `keep`; `lean` is the same with next to no cache.
pub fn only(chain: &Chain, lean: &Chain, keep: &[PlacementLimit]) -> Chain {
    let (room, kinds) = (all(chain), chain.kinds());
    let kept = |limit: PlacementLimit| keep.contains(&limit);
    let one = |(at, (member, lean)): (usize, (&Member, &Member))| {
        let mut one = match (kept(PlacementLimit::Cache), kept(PlacementLimit::Weights)) {
            (true, true) => member.clone(),
            (false, true) => parts(member, lean, |_, lean| lean),
            (true, false) => parts(member, lean, |full, lean| full.saturating_sub(lean)),
            (false, false) => parts(member, lean, |_, _| 0),
        };
        if !kept(PlacementLimit::Memory(kinds[at])) {
            one.usable = one.usable.max(room);
        }
        if !kept(PlacementLimit::Hosts) {
            one.spill.iter_mut().for_each(|spill| spill.pages = spill.pages.max(room));
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

/// Limits of `chain`, which holds nothing, that conflict; `lean` is the same with next to no cache.
pub fn conflict(chain: &Chain, lean: &Chain) -> LimitConflict {
    let kinds = chain.kinds();
    let memories = (0..kinds.len()).filter(|at| kinds[*at] == *at).map(PlacementLimit::Memory);
    let spills = chain.members.iter().any(|member| member.spill.is_some());
    let hosts = spills.then_some(PlacementLimit::Hosts);
    let parted = chain.links.iter().flatten().any(Option::is_none);
    let links = parted.then_some(PlacementLimit::Links);
    // What a user would sooner change is left out first, so that what stays is what binds.
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

/// What fits if every member has the least that does more of memory; nothing where no memory helps.
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

/// The least pages more for each member that is like `member`, itself included, with which anything fits.
pub fn more_memory(chain: &Chain, member: usize) -> Option<u64> {
    let kinds = chain.kinds();
    least(all(chain), |pages| {
        let mut larger = chain.clone();
        let like = |at: &usize| kinds[*at] == kinds[member];
        (0..kinds.len()).filter(like).for_each(|at| larger.members[at].usable += pages);
        holds(&larger)
    })
}

/// The least number up to `most` for which `enough`, which holds for none below and all beyond one it holds for.
fn least(most: u64, enough: impl Fn(u64) -> bool) -> Option<u64> {
    enough(most).then(|| largest(most, |pages| !enough(pages)) + 1)
}
