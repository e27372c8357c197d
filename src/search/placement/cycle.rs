//! Maximum throughput: the shortest cycle in which every request gets one token, over every number of stages.
//!
//! This module divides requests into micro-batches; the dynamic programs place the layers.

use super::baseline::{BaselineRule, placements};
use super::bottleneck::{MinMaxResult, MinMaxStage};
use super::chain::Stage;
use super::device_classes::DeviceClasses;
use super::min_latency::MinLatencySearch;
use super::price::{MemberPrices, PlacementWork, PricedChain};
use super::solve::{RULES, SolvedPlacement};
use super::{PlacementInfeasible, device_classes, known, refusal, wide};
use crate::search::run::Control;

/// Members and links priced for a number of requests per micro-batch.
struct CycleLoad {
    requests: u64,
    priced: PricedChain,
    groups: DeviceClasses,
    /// The same without limits on shared host memory.
    shared_hosts: PricedChain,
}

/// A number of stages to be tried.
struct StageCount {
    stages: usize,
    /// Micro-batches in flight.
    micro_batches: u64,
    /// Index of its load.
    load: usize,
    /// Lower bound of the cycle for this number of stages, in seconds.
    lower_bound: f64,
}

impl StageCount {
    /// Fewer requests than stages: the latency of one request may exceed the cycle of the slowest stage.
    fn short(&self) -> bool {
        self.micro_batches < self.stages as u64
    }
}

/// Number of micro-batches in flight for a number of stages, and requests in each.
pub(super) fn batches(concurrency: u64, stages: usize) -> (u64, u64) {
    let flying = concurrency.min(stages as u64).max(1);
    (flying, concurrency.div_ceil(flying))
}

/// Seconds in which every request gets a token.
pub(super) fn cycle_of(priced: &PricedChain, stages: &[Stage], flying: u64) -> Option<f64> {
    let each = priced.chain.slowest(stages).ok()?;
    let sum = priced.chain.sum(stages).ok()?;
    Some(priced.seconds(sum.max(flying.saturating_mul(each))))
}

/// The best cycle so far.
struct BestCycle<'a> {
    loads: &'a [CycleLoad],
    seconds: f64,
    stages: Vec<Stage>,
    batches: (u64, u64),
}

impl BestCycle<'_> {
    fn offer(&mut self, count: &StageCount, stages: Vec<Stage>) {
        let load = &self.loads[count.load];
        let Some(seconds) = cycle_of(&load.priced, &stages, count.micro_batches) else { return };
        if seconds < self.seconds {
            let batches = (count.micro_batches, load.requests);
            *self = BestCycle { loads: self.loads, seconds, stages, batches };
        }
    }

    /// Ticks that a sum must stay below to improve the best.
    fn below(&self, priced: &PricedChain) -> u64 {
        (self.seconds / priced.tick).ceil() as u64
    }
}

/// The shortest cycle, over every number of stages; the best so far where `control` stops the search.
///
/// Where members share hosts, each takes at most its share in `parts`.
///
/// # Errors
/// The reason for infeasibility, or stopped before a placement was found.
pub fn cycle(
    prices: &MemberPrices<'_>,
    parts: Option<&[u64]>,
    control: &Control,
) -> Result<SolvedPlacement, PlacementInfeasible> {
    let problem = prices.problem;
    let most = problem.members.len().min(problem.graph.layer_block.len());
    let mut loads: Vec<CycleLoad> = Vec::new();
    for stages in 1..=most {
        let (_, each) = batches(problem.concurrency, stages);
        if !loads.iter().any(|load| load.requests == each) {
            let stated = prices.chain(PlacementWork::Token(each));
            let mut priced = stated.clone();
            parts.into_iter().for_each(|parts| priced.chain = stated.chain.with_host_parts(parts));
            let groups = device_classes(&priced.chain);
            loads.push(CycleLoad { requests: each, priced, groups, shared_hosts: stated });
        }
    }
    // One table of segments for each load, shared by all numbers of stages.
    let peaks = loads.iter().map(|load| MinMaxStage::new(&load.priced.chain, &load.groups));
    let mut peaks: Vec<MinMaxStage<'_>> = peaks.collect();
    let count = |stages: usize| {
        let (flying, each) = batches(problem.concurrency, stages);
        let load = loads.iter().position(|load| load.requests == each).expect("every load was priced above");
        let floor = loads[load].priced.seconds(peaks[load].floor(stages).saturating_mul(flying));
        StageCount { stages, micro_batches: flying, load, lower_bound: floor }
    };
    let mut counts: Vec<StageCount> = (1..=most).map(count).collect();
    let others = others(&counts, &loads);
    let mut best = BestCycle { loads: &loads, seconds: f64::INFINITY, stages: vec![], batches: (1, 1) };
    for count in &counts {
        let known = known(&loads[count.load].priced.chain).into_iter();
        known.filter(|stages| stages.len() == count.stages).for_each(|stages| best.offer(count, stages));
    }
    let cheap = |count: &StageCount| {
        let priced = &loads[count.load].priced;
        priced.seconds(super::bound::slowest(&priced.chain, Some(count.stages))) * count.micro_batches as f64
    };
    let cheap = counts.iter().map(cheap).fold(f64::INFINITY, f64::min);
    // The lowest floor first: its best result prunes the rest.
    counts.sort_by(|a, b| a.lower_bound.total_cmp(&b.lower_bound).then(a.stages.cmp(&b.stages)));
    let (mut bound, mut looked) = (f64::INFINITY, 0);
    let mut sums: Vec<Option<MinLatencySearch<'_>>> = loads.iter().map(|_| None).collect();
    for (at, count) in counts.iter().enumerate() {
        (control.progress)(at, counts.len());
        if count.lower_bound >= best.seconds || (control.stop)() {
            bound = bound.min(count.lower_bound);
            continue;
        }
        let load = &loads[count.load];
        let below = (best.seconds / load.priced.tick / count.micro_batches as f64).ceil() as u64;
        let MinMaxResult { found, bound: least } = peaks[count.load].least(count.stages, below, control.stop);
        let mut least = match least {
            u64::MAX => f64::INFINITY,
            ticks => load.priced.seconds(ticks.saturating_mul(count.micro_batches)),
        };
        found.into_iter().for_each(|(_, stages)| best.offer(count, stages));
        if count.short() && least < best.seconds && !load.groups.listed() {
            let (chain, begin) = (&load.priced.chain, known(&load.priced.chain));
            let summed = wide::sum(chain, &load.groups, Some(count.stages), begin, control);
            looked += summed.states;
            summed.found.into_iter().for_each(|(_, stages)| best.offer(count, stages));
            least = least.max(match summed.bound {
                u64::MAX => f64::INFINITY,
                ticks => load.priced.seconds(ticks),
            });
        } else if count.short() && least < best.seconds {
            let below = best.below(&load.priced);
            let sum = sums[count.load].get_or_insert_with(|| {
                MinLatencySearch::with_control(&load.priced.chain, &load.groups, below, control)
            });
            match shortest(sum, &load.groups, count.stages) {
                Some((ticks, state)) => {
                    best.offer(count, sum.stages(state));
                    if sum.complete {
                        least = least.max(load.priced.seconds(ticks));
                    }
                }
                // The tables contain everything below the best at the time they were built.
                None if sum.complete => least = least.max(best.seconds),
                None => {}
            }
        }
        bound = bound.min(least);
    }
    looked +=
        peaks.iter().map(|peak| peak.states).chain(sums.iter().flatten().map(|sum| sum.states)).sum::<u64>();
    let BestCycle { seconds, stages, batches, .. } = best;
    if seconds.is_infinite() {
        let Some(CycleLoad { priced, groups, .. }) = loads.last() else {
            return Err(PlacementInfeasible::WholeLayers { held: None });
        };
        return Err(match bound {
            f64::INFINITY => refusal(&priced.chain, groups),
            seconds => PlacementInfeasible::Stopped { bound: (seconds / priced.tick) as u64 },
        });
    }
    let kinds = loads.first().map_or(0, |load| load.groups.kinds().len());
    let (bound, cheap_bound) = (bound.min(seconds), cheap.min(seconds));
    let parts = None;
    let (states, copies) = (looked, vec![]);
    Ok(SolvedPlacement {
        way: 0,
        stages,
        copies,
        seconds,
        bound,
        cheap_bound,
        batches,
        states,
        kinds,
        parts,
        others,
    })
}

/// The minimum sum of exactly `stages` members, with its state.
fn shortest(sum: &MinLatencySearch<'_>, groups: &DeviceClasses, stages: usize) -> Option<(u64, usize)> {
    let sized = (1..groups.states).filter(|&state| groups.total(state) == stages);
    sized.filter_map(|state| Some((sum.whole(state)?.0, state))).min()
}

/// The cycle of each baseline rule, on the fewest members that fit.
fn others(counts: &[StageCount], loads: &[CycleLoad]) -> Vec<(BaselineRule, Option<(f64, Vec<Stage>)>)> {
    let of_count = |rule: BaselineRule, count: &StageCount| {
        let priced = &loads[count.load].shared_hosts;
        let placed = placements(&priced.chain, rule).into_iter();
        let mut sized = placed.filter(|stages| stages.len() == count.stages);
        sized.find_map(|stages| Some((cycle_of(priced, &stages, count.micro_batches)?, stages)))
    };
    let one = |rule: &BaselineRule| (*rule, counts.iter().find_map(|count| of_count(*rule, count)));
    RULES.iter().map(one).collect()
}
