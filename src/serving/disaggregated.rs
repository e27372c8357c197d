//! Disaggregated serving: prefill pools, decode pools, and the KV-cache transfer between them.
//!
//! Computes the rates of given pools. The choice of pools is made elsewhere.

use super::admission::longest_context;
use super::economy::{PowerDraw, busy, watts};
use super::evaluate::{
    Evaluation, Pool, PoolMetrics, PoolScope, Slowest, aggregated, all_pool_metrics, carried, decode_memory,
    judge, portion,
};
use super::instance::Instance;
use super::iteration::{DecodeLoad, DecodeStep, decode};
use super::metrics::{context_of_pools, devices_of_pools, e2e, open_flow, watts_of_pools};
use super::pool_capacity::{decode_capacity, prefill_capacity};
use super::residency::cache_per_sequence;
use super::step::{CostObserver, StepTime};
use super::streamed::transfer;
use super::terms::{Demand, InstanceLoad, WorkloadTerms};
use crate::cost::collective::pair_link;
use crate::cost::machine::Machine;
use crate::plan::parallel::Phase;
use crate::quantity::count::Count;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;
use crate::quantity::unit::{COUNT, SECOND};
use crate::spec::percentile::Percentile;

/// Performance of the workers of a decode pool under a load.
pub struct DecodePerformance<T> {
    /// Time per output token.
    pub tpot: T,
    /// Maximum request rate of one decode worker, in requests per second.
    pub rate: T,
    /// Mean time per output token, independent of the requested percentile.
    pub(super) mean_tpot: T,
    step: DecodeStep<T>,
}

/// Performance of one decode worker under `load`.
pub fn decode_performance<R: Reading>(
    read: &R,
    instance: &Instance,
    machine: &Machine<Qty<R::N>>,
    terms: &WorkloadTerms<Qty<R::N>>,
    load: &InstanceLoad,
    watch: &mut impl CostObserver<R::N>,
) -> DecodePerformance<Qty<R::N>> {
    let each = read.count(Count::plan("concurrency_per_replica", load.concurrency));
    let at = |concurrency| DecodeLoad { concurrency, offload: load.offload };
    let round = decode(read, instance, machine, terms, &at(each), None, watch);
    let alone = |round: &DecodeStep<Qty<R::N>>| round.per_token(round.cycle).is(&TPOT_ALONE);
    let (mean_tpot, tpot) = read.within(format_args!("tpot"), || {
        let mean_tpot = alone(&round);
        let tpot = match &terms.tail {
            Some(tail) if tail.percentile != Percentile::P50 => {
                let crowd = at(tail.crowd(each));
                alone(&decode(read, instance, machine, terms, &crowd, None, &mut ()))
            }
            _ => mean_tpot,
        };
        (mean_tpot, tpot.result())
    });
    let rate = read.within(format_args!("output_tok_s"), || decode_rate(each, terms.osl, mean_tpot));
    DecodePerformance { tpot, rate, mean_tpot, step: round }
}

impl<N: Num> DecodePerformance<Qty<N>> {
    /// Power of `devices` devices of these decode workers.
    pub fn power<R: Reading<N = N>>(
        &self,
        read: &R,
        instance: &Instance,
        devices: Qty<N>,
        draw: &PowerDraw<Qty<N>>,
    ) -> Qty<N> {
        let stages = read.count(Count::plan("pp", instance.plan.pp));
        let work =
            |time: Qty<N>| busy(self.step.per_token(self.step.micro_batches * time), stages, self.mean_tpot);
        watts(devices, work(self.step.step.compute_time), work(self.step.step.memory_time), draw)
    }
}

/// Longest context (prompt plus output) that fits a decode worker under `load`.
pub fn context<R: Reading>(
    read: &R,
    instance: &Instance,
    machine: &Machine<Qty<R::N>>,
    terms: &WorkloadTerms<Qty<R::N>>,
    load: &InstanceLoad,
) -> Qty<R::N> {
    longest_context(read, None, (instance, Phase::Decode), machine, (terms, load.concurrency), None)
}

/// Longest context whose prompts fit a prefill worker: one for each attention rank.
pub fn prompt_context<R: Reading>(
    read: &R,
    instance: &Instance,
    machine: &Machine<Qty<R::N>>,
    terms: &WorkloadTerms<Qty<R::N>>,
) -> Qty<R::N> {
    longest_context(read, None, (instance, Phase::Prefill), machine, (terms, instance.plan.dp), None)
}

/// Request rate of a decode pool at concurrency `in_flight`.
fn decode_rate<N: Num>(in_flight: Qty<N>, osl: Qty<N>, tpot: Qty<N>) -> Qty<N> {
    (in_flight / ((osl - 1.0) * tpot)).is(&DECODE_RATE)
}

/// Prompt rate of one prefill worker at its planned utilisation.
pub fn prefill_rate<R: Reading>(
    read: &R,
    instance: &Instance,
    machine: &Machine<Qty<R::N>>,
    prompt: &StepTime<Qty<R::N>>,
) -> Qty<R::N> {
    let ranks = read.count(Count::plan("dp", instance.plan.dp));
    (machine.chip.prefill_utilization * ranks / prompt.slowest).is(&PREFILL_RATE)
}

/// TTFT of a closed loop at concurrency `requests` and request rate `rate`, with `osl` output tokens at `tpot` each.
/// Requests that are neither in decode nor in KV transfer wait for their first token. Never less than `ttft`.
fn crowded<N: Num>(requests: Qty<N>, rate: Qty<N>, osl: Qty<N>, tpot: Qty<N>, ttft: Qty<N>) -> Qty<N> {
    ttft.max((requests / rate - (osl - 1.0) * tpot).is(&LEFT)).is(&TTFT_CLOSED)
}

/// Power of `devices` devices of prefill workers at the fraction `utilised` of their planned load.
pub fn prefill_power<R: Reading>(
    read: &R,
    (instance, machine, prompt): (&Instance, &Machine<Qty<R::N>>, &StepTime<Qty<R::N>>),
    utilised: Qty<R::N>,
    devices: Qty<R::N>,
    draw: &PowerDraw<Qty<R::N>>,
) -> Qty<R::N> {
    let stages = read.count(Count::plan("pp", instance.plan.pp));
    let utilised = utilised * machine.chip.prefill_utilization;
    let work = |time: Qty<R::N>| busy(utilised * time, stages, prompt.slowest);
    watts(devices, work(prompt.compute_time), work(prompt.memory_time), draw)
}

/// Time that the KV cache of a prompt of `tokens` tokens takes from one worker to another over links of tier `kv_tier`,
/// each device to its receiver.
pub fn prompt_transfer<R: Reading>(
    read: &R,
    [from, to]: [&Instance; 2],
    tokens: Qty<R::N>,
    (machine, kv_tier): (&Machine<Qty<R::N>>, usize),
) -> Qty<R::N> {
    let sent = cache_per_sequence(read, from, Phase::Prefill, tokens, machine);
    let received = cache_per_sequence(read, to, Phase::Decode, tokens, machine);
    cache_transfer(read, [sent, received], (machine, kv_tier))
}

/// Transfer time of a KV cache of which each device sends, or receives, these bytes over links of tier `kv_tier`.
pub(super) fn cache_transfer<R: Reading>(
    read: &R,
    [sent, received]: [Qty<R::N>; 2],
    (machine, kv_tier): (&Machine<Qty<R::N>>, usize),
) -> Qty<R::N> {
    transfer(sent.max(received), &pair_link(read, machine, kv_tier), &machine.chip)
}

/// Request rate at which a worker's links of tier `kv_tier` can transfer KV caches: `bytes` to or from each device of
/// an attention rank.
pub fn link_rate<R: Reading>(
    read: &R,
    instance: &Instance,
    (machine, kv_tier): (&Machine<Qty<R::N>>, usize),
    bytes: Qty<R::N>,
) -> Qty<R::N> {
    let ranks = read.count(Count::plan("dp", instance.plan.dp));
    (ranks / transfer(bytes, &pair_link(read, machine, kv_tier), &machine.chip)).is(&LINK_RATE)
}

/// Evaluates prefill pools, decode pools and aggregated pools as one deployment. Any prefill pool may send to any
/// decode pool, over the links of tier `kv_tier`. Memory and step times are those of the first pool of each kind.
pub fn split<R: Reading>(
    read: &R,
    (prefill_pools, decode_pools, both): (&[Pool<Qty<R::N>>], &[Pool<Qty<R::N>>], &[Pool<Qty<R::N>>]),
    (machine, kv_tier): (&Machine<Qty<R::N>>, usize),
    terms: &WorkloadTerms<Qty<R::N>>,
    demand: &Demand<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> Evaluation<Qty<R::N>> {
    let (pools, joined) = ((prefill_pools, decode_pools), (machine, kv_tier));
    if both.is_empty() {
        return disaggregated(read, pools, joined, terms, demand, watch).1;
    }
    let parts = match demand {
        Demand::Free => [Demand::Free; 2],
        _ => {
            let split = read.within(format_args!("saturated/disaggregated"), || {
                disaggregated(read, pools, joined, terms, &Demand::Free, &mut ()).0
            });
            let one = carried(terms, &split);
            let rest = read.within(format_args!("saturated/aggregated"), || {
                aggregated(read, both, machine, terms, &Demand::Free, &mut ()).metrics
            });
            let other = (rest.output_tok_s, rest.in_flight);
            [one, other].map(|part| portion(demand, part, (one.0 + other.0, one.1 + other.1)))
        }
    };
    let (sum, evaluation) = read.within(format_args!("disaggregated"), || {
        disaggregated(read, pools, joined, terms, &parts[0], watch)
    });
    let rest = read.within(format_args!("aggregated"), || {
        all_pool_metrics(read, both, machine, terms, &parts[1], watch)
    });
    let sum = rest.iter().fold(sum, |sum, (share, _)| sum.merge_parallel(read, share));
    Evaluation { metrics: judge(read, terms, &sum), slowest: sum.slowest, ..evaluation }
}

fn disaggregated<R: Reading>(
    read: &R,
    (prefill_pools, decode_pools): (&[Pool<Qty<R::N>>], &[Pool<Qty<R::N>>]),
    (machine, kv_tier): (&Machine<Qty<R::N>>, usize),
    terms: &WorkloadTerms<Qty<R::N>>,
    demand: &Demand<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> (PoolMetrics<Qty<R::N>>, Evaluation<Qty<R::N>>) {
    let (front, back) = (&prefill_pools[0], &decode_pools[0]);
    let memory = decode_memory(read, back, machine, terms);
    let held = ((back.instance, Phase::Decode), (terms, back.load.concurrency));
    let context = longest_context(read, back.memory, held.0, machine, held.1, None);
    let context = prefill_pools.iter().enumerate().fold(context, |longest, (at, front)| {
        let prompts = read.within(format_args!("prefill/prompts"), || {
            let scope = PoolScope::after_first(at);
            read.within(format_args!("{scope}"), || {
                let own = front.prompt_context;
                own.unwrap_or_else(|| prompt_context(read, front.instance, machine, terms))
            })
        });
        read.within(format_args!("max_context"), || context_of_pools(longest, prompts))
    });
    let decoding = decode_capacity(read, decode_pools, (machine, kv_tier), terms, context, watch);
    let (made, tpot) = (decoding.rate, decoding.tpot);
    let prefilling =
        prefill_capacity(read, prefill_pools, decoding.received, (machine, kv_tier), terms, demand);
    let (able, prompt) = (prefilling.rate, prefilling.ttft);
    let rate = read.within(format_args!("output_tok_s"), || match demand {
        Demand::Rate(rate) => *rate,
        Demand::InFlight(requests) => {
            let moving = (*requests / e2e(prompt, tpot, terms.osl)).is(&MOVING_RATE);
            moving.min(made).min(able).is(&FLOW)
        }
        Demand::Free => made.min(able).is(&FLOW),
    });
    let ttft = read.within(format_args!("ttft"), || {
        let ttft = match demand {
            Demand::InFlight(requests) => crowded(*requests, rate, terms.osl, tpot, prompt),
            _ => prompt,
        };
        ttft.result()
    });
    let slowest_ttft = prefilling.slowest + (ttft - prompt);
    let output = read.result_of("output_tok_s", || open_flow(rate, terms.osl));
    let (whole, longest) = read.within(format_args!("e2e"), || {
        (e2e(ttft, tpot, terms.osl).result(), e2e(slowest_ttft, decoding.slowest, terms.osl))
    });
    let life = match demand {
        Demand::Rate(_) => {
            read.within(format_args!("concurrency"), || e2e(prefilling.mean, decoding.mean, terms.osl))
        }
        Demand::Free | Demand::InFlight(_) => whole,
    };
    let slowest = Slowest { ttft: slowest_ttft, tpot: decoding.slowest, e2e: longest };
    let utilised = read.within(format_args!("watts"), || (rate / able).is(&UTILISED));
    let parts = PoolParts { prefill_pools, decode_pools, away: &prefilling.away, workers: &decoding.workers };
    let devices = read.result_of("devices", || parts.devices(read));
    let power = terms.power_draw.as_ref();
    let power = power.map(|draw| read.result_of("watts", || parts.power(read, machine, utilised, draw)));
    let share = PoolMetrics {
        ttft,
        tpot,
        e2e: whole,
        life,
        output,
        devices,
        power,
        context: read.result_of("max_context", || decoding.context),
        slowest,
    };
    let metrics = judge(read, terms, &share);
    let decode = decoding.workers[0].step.step;
    (share, Evaluation { metrics, memory, decode, prefill: front.prompt, spilled: None, slowest })
}

/// Prefill and decode pools, with the shares of their work.
struct PoolParts<'a, T> {
    prefill_pools: &'a [Pool<'a, T>],
    decode_pools: &'a [Pool<'a, T>],
    away: &'a [T],
    workers: &'a [DecodePerformance<T>],
}

impl<N: Num> PoolParts<'_, Qty<N>> {
    fn size<R: Reading<N = N>>(read: &R, pool: &Pool<Qty<N>>, replicas: &'static str) -> Qty<N> {
        read.count(Count::plan(replicas, pool.replicas))
            * read.count(Count::plan("devices_per_replica", pool.instance.plan.devices()))
    }

    fn devices<R: Reading<N = N>>(&self, read: &R) -> Qty<N> {
        let prefill = self.prefill_pools.iter().map(|pool| Self::size(read, pool, "prefill_replicas"));
        let decode = self.decode_pools.iter().map(|pool| Self::size(read, pool, "decode_replicas"));
        prefill.chain(decode).reduce(devices_of_pools).expect("two pools have devices")
    }

    fn power<R: Reading<N = N>>(
        &self,
        read: &R,
        machine: &Machine<Qty<N>>,
        utilised: Qty<N>,
        draw: &PowerDraw<Qty<N>>,
    ) -> Qty<N> {
        let prefill = self.prefill_pools.iter().zip(self.away).map(|(pool, away)| {
            let taken = Self::size(read, pool, "prefill_replicas");
            prefill_power(read, (pool.instance, machine, &pool.prompt), utilised * *away, taken, draw)
        });
        let decode = self.decode_pools.iter().zip(self.workers).map(|(pool, one)| {
            one.power(read, pool.instance, Self::size(read, pool, "decode_replicas"), draw)
        });
        prefill.chain(decode).reduce(watts_of_pools).expect("two pools draw power")
    }
}

crate::formulas! {
    PREFILL_RATE {
        symbol: "prefill_rate",
        unit: COUNT.per(SECOND),
        why: "one prompt per attention rank for each pass of the slowest stage, at the planned utilisation",
        cite: "utilisation law",
    }
    TPOT_ALONE {
        symbol: "tpot_decode_pool",
        unit: SECOND,
        why: "the steps of a decode pool contain no prefill",
        cite: "Zhong et al. 2024 (DistServe)",
    }
    DECODE_RATE {
        symbol: "decode_rate",
        unit: COUNT.per(SECOND),
        why: "a slot is free again after osl - 1 tokens",
        cite: "Little 1961",
    }
    LINK_RATE {
        symbol: "kv_transfer_rate",
        unit: COUNT.per(SECOND),
        why: "one KV cache per attention rank for each transfer over the links of its devices",
        cite: "utilisation law",
    }
    FLOW {
        symbol: "request_rate",
        unit: COUNT.per(SECOND),
        why: "the slower pool limits the request rate",
        cite: "Zhong et al. 2024 (DistServe)",
    }
    MOVING_RATE {
        symbol: "request_rate_in_flight",
        unit: COUNT.per(SECOND),
        why: "closed loop: each request passes prefill, KV transfer and decode, and is then replaced",
        cite: "Little 1961",
    }
    UTILISED {
        symbol: "prefill_utilisation",
        unit: COUNT,
        why: "request rate over the planned capacity of the prefill pool",
        cite: "utilisation law",
    }
    LEFT {
        symbol: "time_not_answering",
        unit: SECOND,
        why: "of all concurrent requests, those that are not in decode wait for their first token",
        cite: "Little 1961",
    }
    TTFT_CLOSED {
        symbol: "ttft_split_in_flight",
        unit: SECOND,
        why: "at a concurrency above what both pools process at once, the remaining time is spent in the prefill queue",
        cite: "asymptotic bounds of closed networks: Denning and Buzen 1978",
    }
}
