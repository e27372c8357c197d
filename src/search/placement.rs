//! Placement of layers on heterogeneous devices: which device holds which layers, and in which order. Optimal by
//! exact dynamic programs.
//!
//! Layers, members (devices or groups) and links are integers here; only [`price`] converts them from physical units.

pub mod baseline;
pub mod bottleneck;
pub mod bound;
pub mod chain;
pub mod cycle;
pub mod device_classes;
pub mod disaggregated;
pub mod evaluate;
pub mod feasibility;
pub mod labels;
pub mod min_latency;
pub mod overflow;
pub mod path;
pub mod price;
pub mod program;
pub mod reasons;
pub mod relax;
pub mod sample;
pub mod shared_hosts;
pub mod solve;
pub mod traced;
pub mod unordered;
pub mod wide;

use baseline::BaselineRule;
use bottleneck::MinMaxStage;
use chain::{Chain, Stage};
use device_classes::DeviceClasses;
use min_latency::MinLatencySearch;
use shared_hosts::{BoundedSolution, HostSplit, share};

use super::run::{Control, UNWATCHED};

/// Maximum number of table rows: 2^15 sets of 16 members, for each possible front member, with a margin. Above it,
/// the search expands only states that may improve on the best known placement.
const MOST_ROWS: usize = 1 << 21;

/// A placement with its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Stages, first to last.
    pub stages: Vec<Stage>,
    /// Objective value in ticks.
    pub ticks: u64,
    /// Lower bound of the dynamic program in ticks; below `ticks` if it was stopped.
    pub bound: u64,
    /// Independent lower bound in ticks that ignores order and links.
    pub cheap_bound: u64,
    pub states: u64,
    pub kinds: usize,
    /// Pages of host memory that each member may use, where members share a host.
    pub parts: Option<Vec<u64>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlacementInfeasible {
    /// A layer fits on no member, even alone.
    LayerTooLarge {
        layer: usize,
        /// The member with the most memory.
        member: usize,
        /// Missing pages.
        short: u64,
    },
    /// Total memory of all members is too small.
    Memory {
        /// Minimum pages of the layers and ends.
        needed: u64,
        /// Pages that members have for them.
        available: u64,
    },
    /// Total memory suffices, but not in whole layers.
    WholeLayers {
        /// Maximum number of layers that can be held, counted from the last one, where known.
        held: Option<usize>,
    },
    /// The members that could hold the model together are not connected.
    Disconnected { parts: usize },
    /// The program was stopped before it found a placement; `bound` is a lower bound.
    Stopped {
        /// Lower bound in ticks.
        bound: u64,
    },
}

/// The device classes of `chain`, with their states where these can be listed.
pub fn device_classes(chain: &Chain) -> DeviceClasses {
    DeviceClasses::counted(chain, MOST_ROWS)
}

pub fn least_sum(chain: &Chain) -> Result<Placement, PlacementInfeasible> {
    least_sum_controlled(chain, &UNWATCHED)
}

/// The minimum sum of stage times found until `control` stops the search.
pub fn least_sum_controlled(chain: &Chain, control: &Control) -> Result<Placement, PlacementInfeasible> {
    if chain.hosts.is_empty() {
        return least_sum_shared(chain, control);
    }
    let mut states = 0;
    let found = share(chain, control.stop, |parts| {
        let found = least_sum_shared(&chain.with_host_parts(parts), control)?;
        states += found.states;
        let (objective, bound) = (found.ticks as f64, found.bound as f64);
        Ok(BoundedSolution { objective, bound, stages: found.stages.clone(), solution: found })
    });
    let HostSplit { best, parts, bound } = found.map_err(|why| match why {
        PlacementInfeasible::Stopped { .. } => why,
        _ => refusal(chain, &device_classes(chain)),
    })?;
    let bound = bound.max(0.0) as u64;
    Ok(Placement { bound, states, parts: Some(parts), ..best.solution })
}

/// The minimum sum for members without shared hosts.
fn least_sum_shared(chain: &Chain, control: &Control) -> Result<Placement, PlacementInfeasible> {
    let groups = device_classes(chain);
    if !groups.listed() {
        return wide::least_sum(chain, &groups, control);
    }
    let known = known(chain).into_iter().filter_map(|stages| Some((chain.sum(&stages).ok()?, stages)));
    let known = known.min_by_key(|(ticks, _)| *ticks);
    let bound = known.as_ref().map_or(u64::MAX, |(ticks, _)| *ticks);
    let program = MinLatencySearch::with_control(chain, &groups, bound, control);
    let found = program.least().map(|(ticks, state)| (ticks, program.stages(state)));
    // The result of the program comes first: of equals it uses the fewest members.
    let best = found.into_iter().chain(known.filter(|_| !program.complete)).min_by_key(|(ticks, _)| *ticks);
    let cheap_bound = bound::sum(chain);
    let (ticks, stages) = match best {
        Some(best) => best,
        None if program.complete => return Err(refusal(chain, &groups)),
        None => return Err(PlacementInfeasible::Stopped { bound: cheap_bound }),
    };
    Ok(Placement {
        stages,
        ticks,
        bound: if program.complete { ticks } else { cheap_bound },
        cheap_bound,
        states: program.states,
        kinds: groups.kinds().len(),
        parts: None,
    })
}

/// The minimum bottleneck time of exactly `stages` stages; `None` if none is below `below`, or none was found.
#[cfg(feature = "internals")]
pub fn least_slowest(chain: &Chain, stages: usize, below: u64) -> Option<Placement> {
    let groups = device_classes(chain);
    let mut program = MinMaxStage::new(chain, &groups);
    let least = program.least(stages, below, &|| false);
    let states = program.states;
    least.found.map(|(ticks, stages)| Placement {
        stages,
        ticks,
        bound: least.bound.min(ticks),
        cheap_bound: bound::slowest(chain, None),
        states,
        kinds: groups.kinds().len(),
        parts: None,
    })
}

/// Heuristic placements: initial upper bounds.
pub fn known(chain: &Chain) -> Vec<Vec<Stage>> {
    let alone = (0..chain.members.len()).map(|member| vec![Stage { member, from: 0, to: chain.layers }]);
    let rules = [BaselineRule::Fewest, BaselineRule::BackToFront];
    let split = rules.into_iter().flat_map(|rule| baseline::placements(chain, rule));
    alone.chain(split).chain(baseline::fastest_first(chain)).collect()
}

pub fn refusal(chain: &Chain, groups: &DeviceClasses) -> PlacementInfeasible {
    if let Some((layer, member, short)) = feasibility::too_large(chain) {
        return PlacementInfeasible::LayerTooLarge { layer, member, short };
    }
    let (needed, available) = feasibility::needed(chain);
    if needed > available {
        return PlacementInfeasible::Memory { needed, available };
    }
    let members = 0..chain.members.len();
    let linked = |from: usize| {
        members.clone().filter(move |to| *to != from && chain.links[from][*to].is_some()).count()
    };
    if members.clone().any(|from| linked(from) + 1 < members.len()) {
        let alone = members.clone().filter(|from| linked(*from) == 0).count();
        return PlacementInfeasible::Disconnected { parts: alone.max(2) };
    }
    let countable = groups.listed() && chain.layers <= bottleneck::MOST_LAYERS;
    PlacementInfeasible::WholeLayers { held: countable.then(|| MinMaxStage::new(chain, groups).held()) }
}
