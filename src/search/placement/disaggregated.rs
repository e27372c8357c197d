//! Prefill on some members and decode on others, with the KV cache streamed between them layer by layer.
//!
//! Both halves are placed by the same exact program, for every set of members, for one request at a time.

use super::chain::Stage;
use super::device_classes::DeviceClasses;
use super::min_latency::MinLatencySearch;
use super::path::paths;
use super::price::{Hop, MemberPrices, PlacementWork, PricedChain};
use crate::plan::parallel::Phase;
use crate::quantity::num::Qty;
use crate::quantity::unit::SECOND;
use crate::serving::metrics::e2e;
use crate::serving::residency::cache_per_sequence;
use crate::serving::streamed::{arrival, transfer};

/// Maximum number of members for the search over pairs of sets, which takes 3ⁿ steps.
pub const MOST_MEMBERS: usize = 10;

#[derive(Clone, Debug, PartialEq)]
pub struct DisaggregatedPlacement {
    pub prefill_stages: Vec<Stage>,
    pub decode_stages: Vec<Stage>,
    /// Prefill time in seconds.
    pub prefill: f64,
    /// Time until the KV cache has arrived, in seconds.
    pub arrival: f64,
    /// Time of a decode step, in seconds.
    pub token: f64,
    /// E2E latency of a request, in seconds.
    pub request: f64,
    /// Lower bound of the E2E latency over all disaggregated placements, in seconds.
    pub bound: f64,
    /// Pairs of sets examined.
    pub pairs: u64,
}

struct DisaggregatedSearch<'a> {
    prices: &'a MemberPrices<'a>,
    prompt: PricedChain,
    token: PricedChain,
    /// Seconds of the KV transfer of a layer from one member to another, by block.
    cache: Vec<Vec<Vec<Option<f64>>>>,
}

/// The best disaggregated placement; `None` where there is none, or there are too many members.
pub fn best_disaggregated(prices: &MemberPrices<'_>) -> Option<DisaggregatedPlacement> {
    let problem = prices.problem;
    let members = problem.members.len();
    if !(2..=MOST_MEMBERS).contains(&members) || problem.lengths.osl < 2 {
        return None;
    }
    let halves = DisaggregatedSearch::new(prices);
    let (prompt, token) = (&halves.prompt, &halves.token);
    let groups = DeviceClasses::singletons(members, usize::MAX)?;
    let prefill_search = MinLatencySearch::new(&prompt.chain, &groups, u64::MAX);
    let decode_search = MinLatencySearch::new(&token.chain, &groups, u64::MAX);
    let steps = problem.lengths.osl as f64 - 1.0;
    let known = |sum: &MinLatencySearch<'_>, priced: &PricedChain| -> Vec<Option<f64>> {
        (0..groups.states).map(|state| sum.whole(state).map(|(ticks, _)| priced.seconds(ticks))).collect()
    };
    let (prefill_times, decode_times) = (known(&prefill_search, prompt), known(&decode_search, token));
    let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
    for (a, prefill) in prefill_times.iter().enumerate().filter_map(|(set, time)| Some((set, (*time)?))) {
        for (b, token) in decode_times.iter().enumerate().filter_map(|(set, time)| Some((set, (*time)?))) {
            if a & b == 0 {
                pairs.push((prefill + steps * token, a, b));
            }
        }
    }
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
    let mut best: Option<DisaggregatedPlacement> = None;
    for &(least, a, b) in &pairs {
        // The KV transfer time is added on top.
        if best.as_ref().is_some_and(|best| best.request <= least) {
            break;
        }
        let found = halves.evaluate(prefill_search.stages(a), decode_search.stages(b));
        if let Some(found) = found.filter(|found| best.as_ref().is_none_or(|b| found.request < b.request)) {
            best = Some(found);
        }
    }
    let last = halves.last();
    let bound = pairs.first().map(|(least, ..)| least + last);
    best.map(|best| DisaggregatedPlacement {
        bound: bound.unwrap_or_default().min(best.request),
        pairs: pairs.len() as u64,
        ..best
    })
}

/// Given placements of prefill and decode, evaluated; `None` where a member cannot hold its stage, or reach the next.
pub fn evaluate_disaggregated(
    prices: &MemberPrices<'_>,
    prefill: Vec<Stage>,
    decode: Vec<Stage>,
) -> Option<DisaggregatedPlacement> {
    DisaggregatedSearch::new(prices).evaluate(prefill, decode)
}

impl<'a> DisaggregatedSearch<'a> {
    fn new(prices: &'a MemberPrices<'a>) -> DisaggregatedSearch<'a> {
        let (prompt, token) = (prices.chain(PlacementWork::Prompt), prices.chain(PlacementWork::Token(1)));
        DisaggregatedSearch { prices, prompt, token, cache: caches(prices) }
    }

    fn evaluate(
        &self,
        prefill_stages: Vec<Stage>,
        decode_stages: Vec<Stage>,
    ) -> Option<DisaggregatedPlacement> {
        let problem = self.prices.problem;
        let owner = |stages: &[Stage], layer: usize| {
            stages.iter().find(|stage| (stage.from..stage.to).contains(&layer)).map(|stage| stage.member)
        };
        let seconds = self.prompt.chain.stages(&prefill_stages, super::chain::HostOverhead::Once).ok()?;
        let mut layers = Vec::new();
        let mut before = 0.0;
        for (stage, ticks) in prefill_stages.iter().zip(&seconds) {
            let member = &self.prompt.chain.members[stage.member];
            let work: u64 = member.layers[stage.from..stage.to].iter().map(|layer| layer.ticks).sum();
            // Time outside the layers (host overhead, ends and transfer to the next stage) is added to the first
            // layer of the stage.
            let mut extra = self.prompt.seconds(ticks - work);
            for layer in stage.from..stage.to {
                let to = owner(&decode_stages, layer)?;
                let travel = self.cache[problem.graph.layer_block[layer]][stage.member][to]?;
                let computing = self.prompt.seconds(member.layers[layer].ticks) + extra;
                extra = 0.0;
                layers.push((Qty::from(computing), Qty::from(travel)));
                before += computing;
            }
        }
        let arrived = arrival(Qty::<f64>::literal(0.0 * SECOND), layers).value();
        let token = self.token.seconds(self.token.chain.sum(&decode_stages).ok()?);
        let osl = Qty::<f64>::from(problem.lengths.osl as f64);
        let request = e2e(Qty::from(arrived), Qty::from(token), osl).value();
        Some(DisaggregatedPlacement {
            prefill_stages,
            decode_stages,
            prefill: before,
            arrival: arrived,
            token,
            request,
            bound: 0.0,
            pairs: 0,
        })
    }

    /// Minimum KV transfer time of the last layer between any two members.
    fn last(&self) -> f64 {
        let Some(&block) = self.prices.problem.graph.layer_block.last() else { return 0.0 };
        let all = self.cache[block].iter().enumerate().flat_map(|(from, row)| {
            row.iter().enumerate().filter(move |(to, _)| *to != from).filter_map(|(_, time)| *time)
        });
        all.reduce(f64::min).unwrap_or_default()
    }
}

/// Seconds of the KV transfer of a layer of the prompt between members, by block.
fn caches(prices: &MemberPrices<'_>) -> Vec<Vec<Vec<Option<f64>>>> {
    let problem = prices.problem;
    let members = problem.members.len();
    let block = |block: usize| {
        let one = |each: &Hop| {
            let stand = &prices.prepared[prices.problem.driver(each)];
            let mut kind = stand.instance.kinds[0].clone();
            kind.layers = vec![0; problem.graph.blocks.len()];
            kind.layers[block] = 1;
            let layer = crate::serving::instance::Instance { kinds: [kind].into(), ..stand.instance.clone() };
            let tokens = stand.terms.isl;
            let bytes = cache_per_sequence(
                &crate::quantity::read::Plain,
                &layer,
                Phase::Prefill,
                tokens,
                &stand.machine,
            );
            let link = each.link.map(|datum| Qty(datum.value));
            transfer(bytes, &link, &stand.machine.chip).value()
        };
        // Paths are chosen on whole picoseconds, as for the residual stream.
        let hops: Vec<_> =
            problem.hops.iter().map(|each| (each.from, each.to, (one(each) * 1e12).round() as u64)).collect();
        let nodes = hops.iter().map(|hop| hop.0.max(hop.1) + 1).max().unwrap_or(0).max(members);
        let least = paths(nodes, &hops);
        let seconds = |row: &Vec<Option<u64>>| row.iter().map(|time| time.map(|t| t as f64 / 1e12)).collect();
        least.iter().map(seconds).collect()
    };
    (0..problem.graph.blocks.len()).map(block).collect()
}
