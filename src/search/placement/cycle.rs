//! Maximum throughput: the shortest cycle in which every request gets one token, over every number of stages.
//!
//! This module divides requests into micro-batches; the dynamic programs place the layers.

use super::baseline::{BaselineRule, placements};
use super::bottleneck::{MinMaxResult, MinMaxStage};
use super::chain::Stage;
use super::device_classes::{DeviceClasses, is_grouped};
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

struct StageCount {
    stages: usize,
    /// Micro-batches in flight.
    micro_batches: u64,
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

/// Chains priced for every number of requests per micro-batch that some number of stages needs.
fn loads(prices: &MemberPrices<'_>, parts: Option<&[u64]>, most: usize) -> Vec<CycleLoad> {
    let mut loads: Vec<CycleLoad> = Vec::new();
    for stages in 1..=most {
        let (_, requests) = batches(prices.problem.concurrency, stages);
        if !loads.iter().any(|load| load.requests == requests) {
            let shared_hosts = prices.chain(PlacementWork::Token(requests));
            let mut priced = shared_hosts.clone();
            parts.into_iter().for_each(|parts| priced.chain = shared_hosts.chain.with_host_parts(parts));
            // Members are mostly of the same kinds at every load: their states are listed once.
            let known = loads.iter().find(|load| is_grouped(&load.groups, &priced.chain));
            let groups = known.map_or_else(|| device_classes(&priced.chain), |load| load.groups.clone());
            loads.push(CycleLoad { requests, priced, groups, shared_hosts });
        }
    }
    loads
}

struct CycleSearch<'a> {
    loads: &'a [CycleLoad],
    /// One table of segments for each load, shared by all numbers of stages.
    bottlenecks: Vec<MinMaxStage<'a>>,
    /// Tables of sums for each load, made where a number of stages needs one.
    sums: Vec<Option<MinLatencySearch<'a>>>,
    best: BestCycle<'a>,
    /// Lower bound over the numbers of stages visited so far, in seconds.
    bound: f64,
    states: u64,
}

impl<'a> CycleSearch<'a> {
    fn new(loads: &'a [CycleLoad]) -> Self {
        let bottlenecks = loads.iter().map(|load| MinMaxStage::new(&load.priced.chain, &load.groups));
        CycleSearch {
            loads,
            bottlenecks: bottlenecks.collect(),
            sums: loads.iter().map(|_| None).collect(),
            best: BestCycle { loads, seconds: f64::INFINITY, stages: vec![], batches: (1, 1) },
            bound: f64::INFINITY,
            states: 0,
        }
    }

    /// A number of stages with its load and lower bound: the cheap one where the search is stopped.
    fn count(&mut self, concurrency: u64, stages: usize, control: &Control) -> StageCount {
        let (micro_batches, requests) = batches(concurrency, stages);
        let load = self.loads.iter().position(|load| load.requests == requests);
        let load = load.expect("every load was priced before");
        let floor = match (control.stop)() {
            true => super::bound::slowest(&self.loads[load].priced.chain, Some(stages)),
            false => self.bottlenecks[load].floor(stages),
        };
        let floor = floor.saturating_mul(micro_batches);
        let lower_bound = self.loads[load].priced.seconds(floor);
        StageCount { stages, micro_batches, load, lower_bound }
    }

    /// Searches one number of stages; returns a lower bound of its cycle in seconds.
    fn visit(&mut self, count: &StageCount, control: &Control) -> f64 {
        let load = &self.loads[count.load];
        let seconds = |ticks: u64| if ticks == u64::MAX { f64::INFINITY } else { load.priced.seconds(ticks) };
        let below = (self.best.seconds / load.priced.tick / count.micro_batches as f64).ceil() as u64;
        let MinMaxResult { found, bound } =
            self.bottlenecks[count.load].least(count.stages, below, control.stop);
        let least = seconds(bound.saturating_mul(count.micro_batches));
        found.into_iter().for_each(|(_, stages)| self.best.offer(count, stages));
        if !count.short() || least >= self.best.seconds {
            return least;
        }
        if load.groups.listed() {
            return least.max(self.shortest_sum(count, control));
        }
        let (chain, begin) = (&load.priced.chain, known(&load.priced.chain));
        let summed = wide::sum(chain, &load.groups, Some(count.stages), begin, control);
        self.states += summed.states;
        summed.found.into_iter().for_each(|(_, stages)| self.best.offer(count, stages));
        least.max(seconds(summed.bound))
    }

    /// The least latency of one request on this number of stages, from the tables of its load; zero where they are
    /// incomplete.
    fn shortest_sum(&mut self, count: &StageCount, control: &Control) -> f64 {
        let load = &self.loads[count.load];
        let below = self.best.below(&load.priced);
        let sum = self.sums[count.load].get_or_insert_with(|| {
            MinLatencySearch::with_control(&load.priced.chain, &load.groups, below, control)
        });
        match shortest(sum, &load.groups, count.stages) {
            Some((ticks, state)) => {
                self.best.offer(count, sum.stages(state));
                if sum.complete { load.priced.seconds(ticks) } else { 0.0 }
            }
            // The tables contain everything below the best at the time they were built.
            None if sum.complete => self.best.seconds,
            None => 0.0,
        }
    }

    /// Visits `counts` in order, which is best by lower bound: a good result prunes the rest.
    fn visit_all(&mut self, counts: &[StageCount], control: &Control) {
        for (at, count) in counts.iter().enumerate() {
            (control.progress)(at, counts.len());
            let pruned = count.lower_bound >= self.best.seconds || (control.stop)();
            let least = if pruned { count.lower_bound } else { self.visit(count, control) };
            self.bound = self.bound.min(least);
        }
        let tables = self.bottlenecks.iter().map(|table| table.states);
        self.states += tables.chain(self.sums.iter().flatten().map(|sum| sum.states)).sum::<u64>();
    }
}

/// A bound that needs no search: the slowest stage at best, over every number of stages.
fn cheap_bound(counts: &[StageCount], loads: &[CycleLoad]) -> f64 {
    let cheap = |count: &StageCount| {
        let priced = &loads[count.load].priced;
        priced.seconds(super::bound::slowest(&priced.chain, Some(count.stages))) * count.micro_batches as f64
    };
    counts.iter().map(cheap).fold(f64::INFINITY, f64::min)
}

/// The shortest cycle, over every number of stages; the best so far where `control` stops the search.
///
/// Where members share hosts, each takes at most its share in `parts`.
pub fn cycle(
    prices: &MemberPrices<'_>,
    parts: Option<&[u64]>,
    control: &Control,
) -> Result<SolvedPlacement, PlacementInfeasible> {
    let problem = prices.problem;
    let most = problem.members.len().min(problem.graph.layer_block.len());
    let loads = loads(prices, parts, most);
    let mut search = CycleSearch::new(&loads);
    let mut counts: Vec<StageCount> =
        (1..=most).map(|stages| search.count(problem.concurrency, stages, control)).collect();
    let others = others(&counts, &loads);
    for count in &counts {
        let known = known(&loads[count.load].priced.chain).into_iter();
        known
            .filter(|stages| stages.len() == count.stages)
            .for_each(|stages| search.best.offer(count, stages));
    }
    let cheap = match (control.stop)() {
        true => counts.iter().map(|count| count.lower_bound).fold(f64::INFINITY, f64::min),
        false => cheap_bound(&counts, &loads),
    };
    counts.sort_by(|a, b| a.lower_bound.total_cmp(&b.lower_bound).then(a.stages.cmp(&b.stages)));
    search.visit_all(&counts, control);
    let CycleSearch { best: BestCycle { seconds, stages, batches, .. }, bound, states, .. } = search;
    if seconds.is_infinite() {
        let Some(CycleLoad { priced, groups, .. }) = loads.last() else {
            return Err(PlacementInfeasible::WholeLayers { held: None });
        };
        return Err(match bound {
            f64::INFINITY => refusal(&priced.chain, groups),
            seconds => PlacementInfeasible::Stopped { bound: (seconds / priced.tick) as u64 },
        });
    }
    Ok(SolvedPlacement {
        stages,
        seconds,
        bound: bound.min(seconds),
        cheap_bound: cheap.min(seconds),
        batches,
        states,
        kinds: loads.first().map_or(0, |load| load.groups.kinds().len()),
        others,
        ..SolvedPlacement::default()
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
