//! Capacity of prefill pools and decode pools: their rates and latencies, with the KV-cache transfer between them.

use super::disaggregated::{DecodePerformance, cache_transfer, decode_performance, link_rate, prefill_rate};
use super::evaluate::{Pool, PoolScope};
use super::metrics::context_of_pools;
use super::residency::cache_per_sequence;
use super::step::CostObserver;
use super::tail::{queue, wait};
use super::terms::{Demand, WorkloadTerms};
use crate::cost::machine::Machine;
use crate::plan::parallel::Phase;
use crate::quantity::count::Count;
use crate::quantity::num::Qty;
use crate::quantity::read::Reading;
use crate::quantity::unit::SECOND;

/// Capacity of all prefill pools.
pub(super) struct PrefillCapacity<T> {
    /// Prompts per second, at planned utilisation and within the links' transfer rate.
    pub(super) rate: T,
    /// Per pool: prompt rate after the link limit, as a fraction of the planned rate.
    pub(super) away: Vec<T>,
    /// TTFT over all prompts, at the percentile of the workload.
    pub(super) ttft: T,
    /// Their mean TTFT, whatever the percentile.
    pub(super) mean: T,
    /// TTFT of the slowest pool.
    pub(super) slowest: T,
}

pub(super) fn prefill_capacity<R: Reading>(
    read: &R,
    prefill_pools: &[Pool<Qty<R::N>>],
    received: Qty<R::N>,
    (machine, kv_tier): (&Machine<Qty<R::N>>, usize),
    terms: &WorkloadTerms<Qty<R::N>>,
    demand: &Demand<Qty<R::N>>,
) -> PrefillCapacity<Qty<R::N>> {
    let mut away = Vec::with_capacity(prefill_pools.len());
    let mut known: Option<(Qty<R::N>, [Qty<R::N>; 2], Qty<R::N>)> = None;
    for (at, pool) in prefill_pools.iter().enumerate() {
        let (able, part, [ttft, mean]) = read.within(format_args!("{}", PoolScope::after_first(at)), || {
            prefill_performance(read, pool, received, (machine, kv_tier), terms, demand)
        });
        away.push(part);
        known = Some(match known {
            Some((sum, before, slowest)) => {
                let both = sum + able;
                let all = |before: Qty<R::N>, one: Qty<R::N>| {
                    read.within(format_args!("ttft"), || ((before * sum + one * able) / both).is(&TTFT_POOLS))
                };
                (both, [all(before[0], ttft), all(before[1], mean)], slowest.max(ttft))
            }
            None => (able, [ttft, mean], ttft),
        });
    }
    let (able, [ttft, mean], slowest) = known.expect("at least one prefill pool");
    PrefillCapacity { rate: able, away, ttft, mean, slowest }
}

/// Prompt rate of a prefill pool, this rate as a fraction of the planned one, and its TTFT: at the percentile of the
/// workload, and on average.
fn prefill_performance<R: Reading>(
    read: &R,
    pool: &Pool<Qty<R::N>>,
    received: Qty<R::N>,
    (machine, kv_tier): (&Machine<Qty<R::N>>, usize),
    terms: &WorkloadTerms<Qty<R::N>>,
    demand: &Demand<Qty<R::N>>,
) -> (Qty<R::N>, Qty<R::N>, [Qty<R::N>; 2]) {
    let prompt = pool.prompt;
    let replicas = read.count(Count::plan("prefill_replicas", pool.replicas));
    let (sent, way) = read.within(format_args!("kv_transfer"), || {
        let sent = cache_per_sequence(read, pool.instance, Phase::Prefill, terms.isl, machine);
        (sent, cache_transfer(read, [sent, received], (machine, kv_tier)).result())
    });
    let (planned, each) = read.within(format_args!("output_tok_s"), || {
        let planned = prefill_rate(read, pool.instance, machine, &prompt);
        (planned, planned.min(link_rate(read, pool.instance, (machine, kv_tier), sent)))
    });
    let load = machine.chip.prefill_utilization;
    let after = |queue: Qty<R::N>| {
        let queue = match demand {
            Demand::InFlight(requests) => {
                let ranks = replicas * read.count(Count::plan("dp", pool.instance.plan.dp));
                queue.min(((*requests - 1.0) * prompt.slowest / ranks).is(&OTHERS))
            }
            Demand::Free | Demand::Rate(_) => queue,
        };
        let waiting = machine.chip.request_overhead + queue;
        (waiting + prompt.total + way).is(&TTFT_SPLIT).result()
    };
    let (ttft, mean) = read.within(format_args!("ttft"), || {
        let mean = after(queue(prompt.slowest, load));
        (terms.tail.as_ref().map_or(mean, |tail| after(wait(prompt.slowest, load, tail.part))), mean)
    });
    (replicas * each, each / planned, [ttft, mean])
}

/// All decode pools.
pub(super) struct DecodeCapacity<T> {
    /// Performance of a worker of each pool.
    pub(super) workers: Vec<DecodePerformance<T>>,
    /// Requests per second, within the links' transfer rate.
    pub(super) rate: T,
    /// TPOT over all requests, at the percentile of the workload.
    pub(super) tpot: T,
    /// Their mean TPOT, whatever the percentile.
    pub(super) mean: T,
    /// TPOT of the slowest pool.
    pub(super) slowest: T,
    /// Longest context that fits every pool.
    pub(super) context: T,
    /// Bytes that a device of the widest pool receives.
    pub(super) received: T,
}

pub(super) fn decode_capacity<R: Reading>(
    read: &R,
    decode_pools: &[Pool<Qty<R::N>>],
    (machine, kv_tier): (&Machine<Qty<R::N>>, usize),
    terms: &WorkloadTerms<Qty<R::N>>,
    context: Qty<R::N>,
    watch: &mut impl CostObserver<R::N>,
) -> DecodeCapacity<Qty<R::N>> {
    let mut workers: Vec<DecodePerformance<Qty<R::N>>> = Vec::with_capacity(decode_pools.len());
    let mut longest = context;
    for (at, pool) in decode_pools.iter().enumerate() {
        let other = read.within(format_args!("{}", PoolScope::after_first(at)), || {
            workers.push(decode_performance(read, pool.instance, machine, terms, &pool.load, watch));
            (at > 0).then(|| super::disaggregated::context(read, pool.instance, machine, terms, &pool.load))
        });
        if let Some(other) = other {
            longest = read.within(format_args!("max_context"), || context_of_pools(longest, other));
        }
    }
    let mut widest: Option<Qty<R::N>> = None;
    // Request rate, TPOT at the percentile and on average, and slowest TPOT of the decode pools so far.
    let mut decoding: Option<(Qty<R::N>, [Qty<R::N>; 2], Qty<R::N>)> = None;
    for (at, (pool, one)) in decode_pools.iter().zip(&workers).enumerate() {
        let (received, makes) = read.within(format_args!("{}", PoolScope::after_first(at)), || {
            let received = read.within(format_args!("kv_transfer"), || {
                cache_per_sequence(read, pool.instance, Phase::Decode, terms.isl, machine)
            });
            let links = read.within(format_args!("output_tok_s"), || {
                link_rate(read, pool.instance, (machine, kv_tier), received)
            });
            let count = read.count(Count::plan("decode_replicas", pool.replicas));
            (received, count * one.rate.min(links))
        });
        widest = Some(widest.map_or(received, |widest| widest.max(received)));
        decoding = Some(match decoding {
            Some((sum, before, slowest)) => {
                let both = sum + makes;
                let all = |before: Qty<R::N>, one: Qty<R::N>| {
                    read.result_of("tpot", || ((before * sum + one * makes) / both).is(&TPOT_POOLS))
                };
                (both, [all(before[0], one.tpot), all(before[1], one.mean_tpot)], slowest.max(one.tpot))
            }
            None => (makes, [one.tpot, one.mean_tpot], one.tpot),
        });
    }
    let expected = "at least one decode pool";
    let (received, (rate, [tpot, mean], slowest)) = (widest.expect(expected), decoding.expect(expected));
    DecodeCapacity { workers, rate, tpot, mean, slowest, context: longest, received }
}

crate::formulas! {
    OTHERS {
        symbol: "prompts_of_others",
        unit: SECOND,
        why: "a prompt waits for at most the prompts of all other concurrent requests",
        cite: "asymptotic bounds of closed networks: Denning and Buzen 1978",
    }
    TTFT_POOLS {
        symbol: "ttft_split",
        unit: SECOND,
        why: "mean over prompts, weighted by the capacity of each prefill pool",
        cite: "definition",
    }
    TPOT_POOLS {
        symbol: "tpot_decode_pools",
        unit: SECOND,
        why: "mean over requests, weighted by the capacity of each decode pool",
        cite: "definition",
    }
    TTFT_SPLIT {
        symbol: "ttft_split",
        unit: SECOND,
        why: "request overhead, the prefill queue, the prefill itself, and the KV transfer to the decode pool",
        cite: "Zhong et al. 2024 (DistServe)",
    }
}
