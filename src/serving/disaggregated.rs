//! Disaggregated serving: prefill pools, decode pools, and the KV-cache transfer between them.
//!
//! Computes the rates of given pools. The choice of pools is made elsewhere.

use super::admission::residency;
use super::economy::{PowerDraw, busy, watts};
use super::evaluate::{
    Evaluation, Pool, PoolMetrics, Slowest, aggregated, all_pool_metrics, carried, judge, portion,
};
use super::instance::Instance;
use super::iteration::{DecodeStep, decode};
use super::metrics::{e2e, open_flow};
use super::residency::{cache_per_sequence, max_context};
use super::step::{CostObserver, StepTime};
use super::streamed::transfer;
use super::tail::{queue, wait};
use super::terms::{Demand, InstanceLoad, WorkloadTerms};
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
    pace: T,
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
    let round = decode(read, instance, machine, terms, load, None, watch);
    let pace = machine.tpot_with_margin(round.per_token(round.cycle).is(&TPOT_ALONE), true);
    let tpot = match &terms.tail {
        Some(tail) if tail.percentile != Percentile::P50 => {
            let crowd = InstanceLoad { concurrency: tail.percentile.in_flight(load.concurrency), ..*load };
            let round = decode(read, instance, machine, terms, &crowd, None, &mut ());
            machine.tpot_with_margin(round.per_token(round.cycle).is(&TPOT_ALONE), true)
        }
        _ => pace,
    };
    let each = read.count(Count::plan("concurrency_per_replica", load.concurrency));
    let tpot = tpot.at(format_args!("tpot"));
    DecodePerformance { tpot, rate: decode_rate(each, terms.osl, pace), pace, step: round }
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
            |time: Qty<N>| busy(self.step.per_token(self.step.micro_batches * time), stages, self.pace);
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
    let memory = residency(read, instance, Phase::Decode, machine, terms, load.concurrency);
    max_context(read, &memory, terms.isl + terms.osl, instance.max_context)
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

/// Request rate at which a worker's links of tier `kv_tier` can transfer KV caches: `bytes` to or from each device of
/// an attention rank.
pub fn link_rate<R: Reading>(
    read: &R,
    instance: &Instance,
    (machine, kv_tier): (&Machine<Qty<R::N>>, usize),
    bytes: Qty<R::N>,
) -> Qty<R::N> {
    let ranks = read.count(Count::plan("dp", instance.plan.dp));
    (ranks / transfer(bytes, &machine.links[kv_tier], &machine.chip)).is(&LINK_RATE)
}

/// Evaluates prefill pools, decode pools and aggregated pools as one deployment. Any prefill pool may send to any
/// decode pool, over the links of tier `kv_tier`. Memory and step times are those of the first pool of each kind.
pub fn split<R: Reading>(
    read: &R,
    (fronts, backs, both): (&[Pool<Qty<R::N>>], &[Pool<Qty<R::N>>], &[Pool<Qty<R::N>>]),
    (machine, kv_tier): (&Machine<Qty<R::N>>, usize),
    terms: &WorkloadTerms<Qty<R::N>>,
    demand: &Demand<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> Evaluation<Qty<R::N>> {
    let (pools, joined) = ((fronts, backs), (machine, kv_tier));
    if both.is_empty() {
        return disaggregated(read, pools, joined, terms, demand, watch).1;
    }
    let parts = match demand {
        Demand::Free => [Demand::Free; 2],
        _ => {
            let one = carried(terms, &disaggregated(read, pools, joined, terms, &Demand::Free, &mut ()).0);
            let beside = aggregated(read, both, machine, terms, &Demand::Free, &mut ()).metrics;
            let other = (beside.output_tok_s, beside.in_flight);
            [one, other].map(|part| portion(demand, part, (one.0 + other.0, one.1 + other.1)))
        }
    };
    let (sum, evaluation) = disaggregated(read, pools, joined, terms, &parts[0], watch);
    let rest = all_pool_metrics(read, both, machine, terms, &parts[1], watch);
    let sum = rest.iter().fold(sum, |sum, (share, _)| sum.merge_parallel(share)).mixed();
    Evaluation { metrics: judge(terms, &sum), slowest: sum.slowest, ..evaluation }
}

/// Capacity of all prefill pools.
struct PrefillCapacity<T> {
    /// Prompts per second, at planned utilisation and within the links' transfer rate.
    rate: T,
    /// Per pool: prompt rate after the link limit, as a fraction of the planned rate.
    away: Vec<T>,
    /// Mean TTFT over all prompts.
    ttft: T,
    /// TTFT of the slowest pool.
    slowest: T,
}

fn prompts<R: Reading>(
    read: &R,
    fronts: &[Pool<Qty<R::N>>],
    received: Qty<R::N>,
    (machine, kv_tier): (&Machine<Qty<R::N>>, usize),
    terms: &WorkloadTerms<Qty<R::N>>,
    demand: &Demand<Qty<R::N>>,
) -> PrefillCapacity<Qty<R::N>> {
    let mut away = Vec::with_capacity(fronts.len());
    let mut known: Option<(Qty<R::N>, Qty<R::N>, Qty<R::N>)> = None;
    for front in fronts {
        let prompt = front.prompt;
        let sent = cache_per_sequence(read, front.instance, Phase::Prefill, terms.isl, machine);
        let planned = prefill_rate(read, front.instance, machine, &prompt);
        let each = planned.min(link_rate(read, front.instance, (machine, kv_tier), sent));
        let replicas = read.count(Count::plan("prefill_replicas", front.replicas));
        let able = replicas * each;
        let way = transfer(sent.max(received), &machine.links[kv_tier], &machine.chip)
            .at(format_args!("kv_transfer"));
        let load = machine.chip.prefill_utilization;
        let queue = match &terms.tail {
            Some(tail) => wait(prompt.slowest, load, tail.part),
            None => queue(prompt.slowest, load),
        };
        let queue = match demand {
            Demand::InFlight(requests) => {
                let ranks = replicas * read.count(Count::plan("dp", front.instance.plan.dp));
                queue.min(((*requests - 1.0) * prompt.slowest / ranks).is(&OTHERS))
            }
            _ => queue,
        };
        let waiting = machine.chip.request_overhead + queue;
        let ttft = (waiting + prompt.total + way).is(&TTFT_SPLIT);
        let ttft = machine.ttft_with_margin(ttft, true);
        away.push(each / planned);
        known = Some(match known {
            Some((sum, mean, slowest)) => {
                let both = sum + able;
                (both, ((mean * sum + ttft * able) / both).is(&TTFT_POOLS), slowest.max(ttft))
            }
            None => (able, ttft, ttft),
        });
    }
    let (able, ttft, slowest) = known.expect("at least one prefill pool");
    PrefillCapacity { rate: able, away, ttft, slowest }
}

fn disaggregated<R: Reading>(
    read: &R,
    (fronts, backs): (&[Pool<Qty<R::N>>], &[Pool<Qty<R::N>>]),
    (machine, kv_tier): (&Machine<Qty<R::N>>, usize),
    terms: &WorkloadTerms<Qty<R::N>>,
    demand: &Demand<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> (PoolMetrics<Qty<R::N>>, Evaluation<Qty<R::N>>) {
    let (front, back) = (&fronts[0], &backs[0]);
    let memory = residency(read, back.instance, Phase::Decode, machine, terms, back.load.concurrency);
    let mut context = max_context(read, &memory, terms.isl + terms.osl, back.instance.max_context);
    let first = decode_performance(read, back.instance, machine, terms, &back.load, watch);
    let step = first.step.step;
    let mut answers = vec![first];
    for back in &backs[1..] {
        answers.push(decode_performance(read, back.instance, machine, terms, &back.load, watch));
        context = context.min(self::context(read, back.instance, machine, terms, &back.load));
    }
    let mut widest: Option<Qty<R::N>> = None;
    // Request rate, mean TPOT and slowest TPOT of the decode pools so far.
    let mut decoding: Option<(Qty<R::N>, Qty<R::N>, Qty<R::N>)> = None;
    let add = |sum: Option<Qty<R::N>>, more: Qty<R::N>| Some(sum.map_or(more, |sum| sum + more));
    for (back, one) in backs.iter().zip(&answers) {
        let received = cache_per_sequence(read, back.instance, Phase::Decode, terms.isl, machine);
        let links = link_rate(read, back.instance, (machine, kv_tier), received);
        let count = read.count(Count::plan("decode_replicas", back.replicas));
        widest = Some(widest.map_or(received, |widest| widest.max(received)));
        let makes = count * one.rate.min(links);
        decoding = Some(match decoding {
            Some((sum, mean, slowest)) => {
                let both = sum + makes;
                (both, ((mean * sum + one.tpot * makes) / both).is(&TPOT_POOLS), slowest.max(one.tpot))
            }
            None => (makes, one.tpot, one.tpot),
        });
    }
    let pool = "at least one decode pool";
    let (received, (made, tpot, slowest_tpot)) = (widest.expect(pool), decoding.expect(pool));
    let PrefillCapacity { rate: able, away, ttft: prompt, slowest: slowest_ttft } =
        prompts(read, fronts, received, (machine, kv_tier), terms, demand);
    let rate = match demand {
        Demand::Rate(rate) => *rate,
        Demand::InFlight(requests) => {
            let moving = (*requests / e2e(prompt, tpot, terms.osl)).is(&MOVING_RATE);
            moving.min(made).min(able).is(&FLOW)
        }
        Demand::Free => made.min(able).is(&FLOW),
    };
    let ttft = match demand {
        Demand::InFlight(requests) => crowded(*requests, rate, terms.osl, tpot, prompt),
        _ => prompt,
    };
    let (ttft, slowest_ttft) = (ttft.at(format_args!("ttft")), slowest_ttft + (ttft - prompt));
    let output = open_flow(rate, terms.osl).at(format_args!("output_tok_s"));
    let size = |pool: &Pool<Qty<R::N>>, count| {
        read.count(Count::plan(count, pool.replicas))
            * read.count(Count::plan("devices_per_replica", pool.instance.plan.devices()))
    };
    let utilised = (rate / able).is(&UTILISED);
    let (mut devices, mut drawn): (Option<Qty<R::N>>, Option<Qty<R::N>>) = (None, None);
    for (pool, away) in fronts.iter().zip(away) {
        let taken = size(pool, "prefill_replicas");
        devices = add(devices, taken);
        if let Some(draw) = &terms.power_draw {
            let placed = (pool.instance, machine, &pool.prompt);
            drawn = add(drawn, prefill_power(read, placed, utilised * away, taken, draw));
        }
    }
    for (pool, one) in backs.iter().zip(&answers) {
        let taken = size(pool, "decode_replicas");
        devices = add(devices, taken);
        if let Some(draw) = &terms.power_draw {
            drawn = add(drawn, one.power(read, pool.instance, taken, draw));
        }
    }
    let devices = devices.expect("two pools have devices");
    let whole = e2e(ttft, tpot, terms.osl);
    let last = e2e(slowest_ttft, slowest_tpot, terms.osl);
    let slowest = Slowest { ttft: slowest_ttft, tpot: slowest_tpot, e2e: last };
    let share = PoolMetrics { ttft, tpot, e2e: whole, output, devices, power: drawn, context, slowest };
    let metrics = judge(terms, &share);
    (share, Evaluation { metrics, memory, decode: step, prefill: front.prompt, spilled: None, slowest })
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
    UTILISED {
        symbol: "prefill_utilisation",
        unit: COUNT,
        why: "request rate over the planned capacity of the prefill pool",
        cite: "utilisation law",
    }
    TTFT_SPLIT {
        symbol: "ttft_split",
        unit: SECOND,
        why: "request overhead, the prefill queue, the prefill itself, and the KV transfer to the decode pool",
        cite: "Zhong et al. 2024 (DistServe)",
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
