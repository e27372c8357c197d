//! Replicated stages: several identical members each hold all layers of a stage and share its requests evenly.
//!
//! Search space: the number `n` of micro-batches is at least the number of used members and at most twice the number
//! of members, and the number of members of every stage divides it. Then only the slowest member causes waiting: a
//! stage with `r` members takes `ticks` for each of its `n / r` micro-batches, the cycle is the maximum of these, and
//! the latency of one request, the sum of all `ticks`, is no longer, as at most `n` members are on its path.

use super::{Begins, FeasibleStarts, MinMaxStage};
use crate::search::placement::chain::{Chain, HostOverhead};
use crate::search::placement::device_classes;
use crate::search::placement::device_classes::DeviceClasses;
use crate::search::placement::price::{MemberPrices, PlacementWork, PricedChain};
use crate::search::placement::unordered::{ChainObjective, Counted, SegmentOption, Unordered};
use crate::search::placement::wide::realised;
use crate::search::run::Control;
use crate::search::shape::smallest;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicatedStage {
    /// Identical members, each with all layers of the stage.
    pub members: Vec<usize>,
    /// First layer.
    pub from: usize,
    /// First layer of the next stage.
    pub to: usize,
}

/// A cycle in which every request gets a token.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodeCycle {
    /// First to last.
    pub stages: Vec<ReplicatedStage>,
    pub seconds: f64,
    /// Micro-batches in flight, and requests in each.
    pub batches: (u64, u64),
}

#[derive(Clone, Debug, PartialEq)]
pub struct CycleSearchResult {
    /// The best cycle below the known one.
    pub best: Option<DecodeCycle>,
    /// Lower bound over all replicated cycles.
    pub bound: f64,
    /// Lower bound with order and links relaxed.
    pub cheap_bound: f64,
    pub states: u64,
}

/// Priced stages of a number of members each, with the micro-batches per member and cycle.
struct GroupedStages<'a> {
    members: usize,
    turns: u64,
    bottleneck: MinMaxStage<'a>,
}

/// A stage in the search: kind and number of its members, and its layers.
type FoundStage = (usize, usize, usize, usize);

/// The search for one number of micro-batches.
struct MicroBatchSearch<'a> {
    chain: &'a Chain,
    groups: &'a DeviceClasses,
    ways: Vec<GroupedStages<'a>>,
    most: usize,
    states: u64,
}

impl MicroBatchSearch<'_> {
    fn state_without(&self, state: usize, kind: usize, members: usize) -> usize {
        (0..members).fold(state, |state, _| self.groups.without(state, kind))
    }

    /// A sequence of stages with no member above `cycle`.
    fn within(&mut self, cycle: u64) -> Option<Vec<FoundStage>> {
        let reaches: Vec<(usize, FeasibleStarts)> = self
            .ways
            .iter()
            .map(|way| (way.members, way.bottleneck.feasible_starts(cycle / way.turns)))
            .collect();
        let (groups, layers) = (self.groups, self.chain.layers);
        let mut begins: Vec<Begins> = vec![0; groups.rows()];
        for state in 1..groups.states {
            if usize::from(self.ways[0].bottleneck.sizes[state]) > self.most {
                continue;
            }
            for (kind, row) in groups.present(state) {
                for (members, reach) in &reaches {
                    if *members > groups.count(state, kind) {
                        break;
                    }
                    self.states += 1;
                    let rest = self.state_without(state, kind, *members);
                    let (onward, last) = (&reach.onward[kind], &reach.last[kind]);
                    if rest == 0 {
                        if last.front >> layers & 1 == 1 {
                            return Some(self.trace((state, kind), *members, &begins, &reaches));
                        }
                        begins[row] |= last.before(1 << layers);
                        continue;
                    }
                    for (next, behind) in groups.present(rest) {
                        if onward[next].front & begins[behind] != 0 {
                            return Some(self.trace((state, kind), *members, &begins, &reaches));
                        }
                        begins[row] |= onward[next].before(begins[behind]);
                    }
                }
            }
        }
        None
    }

    fn trace(
        &self,
        (mut state, mut kind): (usize, usize),
        first: usize,
        begins: &[Begins],
        reaches: &[(usize, FeasibleStarts)],
    ) -> Vec<FoundStage> {
        let (groups, layers) = (self.groups, self.chain.layers);
        let (mut from, mut stages) = (0, Vec::new());
        loop {
            let onward = reaches
                .iter()
                .filter(|(members, _)| {
                    *members <= groups.count(state, kind) && (from > 0 || *members == first)
                })
                .find_map(|(members, reach)| {
                    let rest = self.state_without(state, kind, *members);
                    if rest == 0 {
                        return reach.last[kind]
                            .holds(from, layers)
                            .then_some((*members, layers, rest, kind));
                    }
                    groups.present(rest).find_map(|(next, row)| {
                        let fits = &reach.onward[kind][next];
                        let to = (from + 1..layers)
                            .find(|to| begins[row] >> *to & 1 == 1 && fits.holds(from, *to))?;
                        Some((*members, to, rest, next))
                    })
                });
            let (members, to, rest, next) = onward.expect("a reached state has a predecessor");
            stages.push((kind, members, from, to));
            if rest == 0 {
                return stages;
            }
            (state, kind, from) = (rest, next, to);
        }
    }

    /// Ticks per cycle of the member with the most work, transfers included.
    fn slowest(&self, stages: &[FoundStage]) -> u64 {
        let each = stages.iter().enumerate().map(|(at, (kind, members, from, to))| {
            let way = self
                .ways
                .iter()
                .find(|way| way.members == *members)
                .expect("the stage uses a known number of members");
            let next = stages.get(at + 1).and_then(|next| way.bottleneck.links[*kind][next.0]);
            way.turns
                .saturating_mul(way.bottleneck.times[*kind][*to][*from].saturating_add(next.unwrap_or(0)))
        });
        each.max().unwrap_or(0)
    }

    /// Lower bound of the cycle up to `end` with order relaxed, and the sequence that attains it if it is feasible
    /// with order.
    fn unordered(&self, end: u64) -> (u64, Option<Vec<FoundStage>>) {
        let of = |kind: usize| {
            let way = |way: &GroupedStages| {
                SegmentOption::new(
                    way.bottleneck.chain,
                    self.groups,
                    kind,
                    (way.members, way.turns),
                    HostOverhead::Each,
                )
            };
            self.ways.iter().map(way).collect::<Vec<SegmentOption>>()
        };
        let ways: Vec<SegmentOption> = self.groups.kinds().flat_map(of).collect();
        let counts: Vec<usize> =
            self.groups.members.iter().map(|members| members.len().min(self.most)).collect();
        let table = |counted| {
            Unordered::new(self.chain.layers, &counts, &ways, ChainObjective::SlowestStage, counted)
        };
        // Without a count of members, the result may use too many.
        let table = table(Counted::Members(self.most)).or_else(|| table(Counted::Nothing));
        let Some(table) = table else { return (0, None) };
        let Some((bound, pieces)) = table.least(None) else { return (end, None) };
        let found: Vec<FoundStage> = realised(self.groups, &pieces)
            .into_iter()
            .zip(&pieces)
            .map(|((_, from, to), piece)| (piece.kind, piece.members, from, to))
            .collect();
        let members: usize = pieces.iter().map(|piece| piece.members).sum();
        let joined = |pair: &[FoundStage]| self.groups.link(self.chain, pair[0].0, pair[1].0).is_some();
        let holds = members <= self.most && found.windows(2).all(joined) && self.slowest(&found) < end;
        (bound.min(end), holds.then_some(found))
    }

    /// Lower bound of the cycle by member capacity, up to `end`.
    fn floor(&self, end: u64) -> u64 {
        smallest(0, end, |cycle| self.holds_all(cycle))
    }

    /// Whether the members could hold all layers with no member above `cycle`: order and links relaxed.
    fn holds_all(&self, cycle: u64) -> bool {
        // In parts of a layer that every number of members divides.
        const PARTS: usize = 720_720;
        let max_layers = |kind: usize, way: &GroupedStages| {
            let member = self.groups.face(kind);
            super::super::bound::max_layers(way.bottleneck.chain, member, cycle / way.turns) * PARTS
                / way.members
        };
        let held = self.groups.kinds().map(|kind| {
            let count = self.groups.members[kind].len();
            let usable = self.ways.iter().filter(|way| way.members <= count);
            count * usable.map(|way| max_layers(kind, way)).max().unwrap_or(0)
        });
        held.sum::<usize>() >= self.chain.layers * PARTS
    }
}

/// The shortest cycle of a number of micro-batches, in ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortestCycle {
    /// The best sequence found, with its ticks.
    pub found: Option<(u64, Vec<ReplicatedStage>)>,
    pub bound: u64,
    /// Lower bound with order and links relaxed.
    pub cheap_bound: u64,
    pub states: u64,
}

/// The shortest cycle below `end` of `flying` micro-batches. `chains` are the same members priced for each number of
/// members per stage, one member first. Every number of members divides the number of micro-batches.
///
/// Where the states cannot be listed, order is relaxed, and only a result that is feasible with order is returned.
pub fn shortest_cycle(chains: &[(u64, Chain)], flying: u64, end: u64, control: &Control) -> ShortestCycle {
    let groups = chains.first().map(|(_, chain)| device_classes(chain)).unwrap_or_default();
    shortest_cycle_among(chains, &groups, (flying, end), control)
}

/// The same for known kinds of members.
pub fn shortest_cycle_among(
    chains: &[(u64, Chain)],
    groups: &DeviceClasses,
    (flying, end): (u64, u64),
    control: &Control,
) -> ShortestCycle {
    let Some((_, chain)) = chains.first() else {
        return ShortestCycle { found: None, bound: end, cheap_bound: end, states: 0 };
    };
    let ways = chains.iter().map(|(size, chain)| GroupedStages {
        members: *size as usize,
        turns: flying / size,
        bottleneck: MinMaxStage::new(chain, groups),
    });
    let ways = ways.collect();
    let mut dealt = MicroBatchSearch { chain, groups, ways, most: flying as usize, states: 0 };
    let cheap_bound = dealt.floor(end);
    let wide = !groups.listed() || chain.layers > super::MOST_LAYERS;
    let (bound, found) = match cheap_bound < end {
        true if wide => dealt.unordered(end),
        true => shortest(&mut dealt, (cheap_bound, end), control),
        false => (end, None),
    };
    let found = found.map(|stages| (dealt.slowest(&stages), named(groups, &stages)));
    ShortestCycle { found, bound: bound.max(cheap_bound), cheap_bound, states: dealt.states }
}

/// The shortest cycle with replicated stages, if it is below `below` seconds.
pub fn copies(prices: &MemberPrices<'_>, below: f64, control: &Control) -> CycleSearchResult {
    let problem = prices.problem;
    let most = problem.concurrency.min(2 * problem.members.len() as u64);
    let stated = prices.chain(PlacementWork::Token(problem.concurrency)).chain;
    let alike = device_classes(&stated).members.iter().map(Vec::len).max().unwrap_or(0) as u64;
    let mut looked =
        CycleSearchResult { best: None, bound: f64::INFINITY, cheap_bound: f64::INFINITY, states: 0 };
    // Copies of members that share host memory would have to divide it too: these are left to single-member stages.
    if alike < 2 || !stated.hosts.is_empty() {
        return looked;
    }
    let mut below = below;
    for flying in 2..=most {
        let sizes: Vec<u64> = (1..=flying.min(alike)).filter(|size| flying.is_multiple_of(*size)).collect();
        if sizes.len() < 2 {
            continue;
        }
        if (control.stop)() {
            (looked.bound, looked.cheap_bound) = (0.0, 0.0);
            break;
        }
        let each = problem.concurrency.div_ceil(flying);
        let priced = |size: &u64| -> PricedChain {
            prices.chain_holding(PlacementWork::Token(each), flying / size * each)
        };
        let tick = priced(&1).tick;
        let chains: Vec<(u64, Chain)> = sizes.iter().map(|size| (*size, priced(size).chain)).collect();
        let end = (below / tick).ceil() as u64;
        let ShortestCycle { found, bound, cheap_bound, states } =
            shortest_cycle(&chains, flying, end, control);
        looked.states += states;
        looked.bound = looked.bound.min(bound as f64 * tick);
        looked.cheap_bound = looked.cheap_bound.min(cheap_bound as f64 * tick);
        if let Some((ticks, stages)) = found
            && ticks as f64 * tick < below
        {
            below = ticks as f64 * tick;
            looked.best = Some(DecodeCycle { stages, seconds: below, batches: (flying, each) });
        }
    }
    looked
}

/// The shortest cycle in `low..end`, and its sequence; `end` where there is none.
fn shortest(
    dealt: &mut MicroBatchSearch<'_>,
    (mut low, end): (u64, u64),
    control: &Control,
) -> (u64, Option<Vec<FoundStage>>) {
    let (mut most, mut found) = (end, None);
    let mut tried = end.saturating_sub(1);
    while low < most {
        if (control.stop)() {
            return (low, found);
        }
        match dealt.within(tried) {
            Some(stages) => {
                most = dealt.slowest(&stages);
                found = Some(stages);
            }
            None => low = tried + 1,
        }
        tried = low + (most.max(low) - low) / 2;
    }
    (low.min(most), found)
}

/// Maps kinds to members: the members of each kind are used in order.
fn named(groups: &DeviceClasses, stages: &[FoundStage]) -> Vec<ReplicatedStage> {
    let kinds: Vec<usize> =
        stages.iter().flat_map(|(kind, members, ..)| std::iter::repeat_n(*kind, *members)).collect();
    let mut names = groups.name(&kinds).into_iter();
    let shared = |(_, members, from, to): &FoundStage| ReplicatedStage {
        members: names.by_ref().take(*members).collect(),
        from: *from,
        to: *to,
    };
    stages.iter().map(shared).collect()
}
