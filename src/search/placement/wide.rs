//! Placement with too many distinct kinds to list the states: a heuristic placement with local search, a bound
//! without order, and where the two differ, a search between them.

use super::bound;
use super::chain::{Chain, HostOverhead, Stage};
use super::device_classes::DeviceClasses;
use super::labels::{self, LabelSearchResult};
use super::sample::neighbours_with;
use super::unordered::{ChainObjective, Counted, Piece, SegmentOption, Unordered};
use super::{Placement, PlacementInfeasible, known, refusal};
use crate::search::run::Control;

const STEPS: usize = 64;

/// Pieces in order as stages, each with its members.
pub fn realised(groups: &DeviceClasses, pieces: &[Piece]) -> Vec<(Vec<usize>, usize, usize)> {
    let kinds: Vec<usize> =
        pieces.iter().flat_map(|piece| std::iter::repeat_n(piece.kind, piece.members)).collect();
    let mut names = groups.name(&kinds).into_iter();
    let mut from = 0;
    let stage = |piece: &Piece| {
        from += piece.layers;
        (names.by_ref().take(piece.members).collect(), from - piece.layers, from)
    };
    pieces.iter().map(stage).collect()
}

/// Pieces of one member each, as stages.
pub fn stages(groups: &DeviceClasses, pieces: &[Piece]) -> Vec<Stage> {
    let one = |(members, from, to): (Vec<usize>, usize, usize)| Stage { member: members[0], from, to };
    realised(groups, pieces).into_iter().map(one).collect()
}

/// `stages` improved by local search; `None` where it is infeasible.
pub fn improved(
    groups: &DeviceClasses,
    stages: Vec<Stage>,
    cost: &dyn Fn(&[Stage]) -> Option<u64>,
    stop: &dyn Fn() -> bool,
) -> Option<(u64, Vec<Stage>)> {
    let mut best = (cost(&stages)?, stages);
    for _ in 0..STEPS {
        let free = |members: &Vec<usize>| {
            members.iter().copied().find(|member| best.1.iter().all(|stage| stage.member != *member))
        };
        // One of each set of identical unused members suffices.
        let unused: Vec<usize> = groups.members.iter().filter_map(free).collect();
        let others = neighbours_with(&best.1, &unused).into_iter();
        let next = others.filter_map(|stages| Some((cost(&stages)?, stages))).min_by_key(|(cost, _)| *cost);
        match next.filter(|(cost, _)| *cost < best.0) {
            Some(next) if !stop() => best = next,
            _ => break,
        }
    }
    Some(best)
}

/// The single-member segment options of every kind.
pub fn alone(chain: &Chain, groups: &DeviceClasses, hosts: HostOverhead) -> Vec<SegmentOption> {
    groups.kinds().map(|kind| SegmentOption::new(chain, groups, kind, (1, 1), hosts)).collect()
}

/// Members of every kind, at most the number of layers: no placement has more stages.
pub fn counts(chain: &Chain, groups: &DeviceClasses) -> Vec<usize> {
    groups.members.iter().map(|members| members.len().min(chain.layers)).collect()
}

/// The minimum sum on `size` members, or on any number, with its bound.
pub fn sum(
    chain: &Chain,
    groups: &DeviceClasses,
    size: Option<usize>,
    begin: Vec<Vec<Stage>>,
    control: &Control,
) -> LabelSearchResult {
    let ways = alone(chain, groups, HostOverhead::Once);
    let counts = counts(chain, groups);
    let counted = size.map_or(Counted::Nothing, Counted::Segments);
    let table = Unordered::new(chain.layers, &counts, &ways, ChainObjective::TotalTime, counted);
    let loose = table.as_ref().map(|table| table.least(size));
    let bound = match &loose {
        // Infeasible even with order relaxed.
        Some(None) => return LabelSearchResult { found: None, bound: u64::MAX, states: 0 },
        Some(Some((ticks, _))) => *ticks,
        None => 0,
    };
    let bound = bound.max(bound::sum(chain));
    let cost = |stages: &[Stage]| {
        let sized = size.is_none_or(|size| stages.len() == size);
        sized.then(|| chain.sum(stages).ok()).flatten()
    };
    let unordered = loose.flatten().map(|(_, pieces)| stages(groups, &pieces));
    let mut begun: Vec<(u64, Vec<Stage>)> =
        begin.into_iter().chain(unordered).filter_map(|stages| Some((cost(&stages)?, stages))).collect();
    begun.sort_by_key(|(ticks, stages)| (*ticks, stages.len()));
    begun.truncate(BEGINNINGS);
    let found = begun.into_iter().filter_map(|(_, stages)| improved(groups, stages, &cost, control.stop));
    let found = found.min_by_key(|(ticks, stages)| (*ticks, stages.len()));
    let known = found.as_ref().map_or(u64::MAX, |(ticks, _)| *ticks);
    if known <= bound {
        return LabelSearchResult { found, bound: known, states: 0 };
    }
    let searched = labels::least(chain, groups, size, known, control);
    let found = searched.found.or(found);
    let least = found.as_ref().map_or(u64::MAX, |(ticks, _)| *ticks);
    LabelSearchResult { bound: searched.bound.max(bound).min(least), found, states: searched.states }
}

/// Maximum number of placements to improve.
const BEGINNINGS: usize = 4;

/// The minimum sum found until `control` stops the search.
pub fn least_sum(
    chain: &Chain,
    groups: &DeviceClasses,
    control: &Control,
) -> Result<Placement, PlacementInfeasible> {
    let LabelSearchResult { found, bound, states: looked } = sum(chain, groups, None, known(chain), control);
    let cheap_bound = bound::sum(chain);
    match found {
        Some((ticks, stages)) => Ok(Placement {
            stages,
            ticks,
            bound,
            cheap_bound,
            states: looked,
            kinds: groups.kinds().len(),
            parts: None,
        }),
        None if bound == u64::MAX => Err(refusal(chain, groups)),
        None => Err(PlacementInfeasible::Stopped { bound }),
    }
}
