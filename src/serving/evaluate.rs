//! The entry point of this layer: evaluates a deployment under a load and returns all metrics.
//!
//! Closed forms after mean-value analysis of continuous batching. They describe steady-state means, not single
//! requests, bursts or scheduler details.

use std::fmt;

use super::admission::{admitted, longest_context, residency, residency_of};
use super::economy::{
    facility_watts, tok_per_joule, tok_per_usd, usd_per_day, usd_per_month, usd_per_second, usd_per_token,
    usd_per_token_total,
};
use super::instance::Instance;
use super::iteration::{DecodeLoad, decode, observe_host_reads, offloaded, read_by_prompts, spill};
use super::metrics::{
    Metrics, context_of_pools, devices_of, devices_of_pools, e2e, in_flight, per_device, per_user,
    request_rate, watts_of_pools,
};
use super::pool_state::PoolState;
use super::residency::in_host_memory;
use super::stage_memory::InstanceMemory;
use super::step::{CostObserver, StepTime};
use super::terms::{Demand, InstanceLoad, WorkloadTerms};
use crate::cost::machine::Machine;
use crate::cost::memory::Footprint;
use crate::plan::parallel::Phase;
use crate::quantity::count::Count;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;
use crate::quantity::unit::{COUNT, SECOND, TOKEN};
use crate::spec::objective::Metric;

/// Metrics of a deployment, and the memory of its fullest device.
#[derive(Clone, Copy, Debug)]
pub struct Evaluation<T> {
    pub metrics: Metrics<T>,
    /// Memory of the fullest (decode) device.
    pub memory: Footprint<T>,
    pub decode: StepTime<T>,
    /// The prefill step of one prompt.
    pub prefill: StepTime<T>,
    /// Bytes in host memory, per device.
    pub spilled: Option<T>,
    /// Latencies of the slowest pool, in seconds. An SLO must hold in every pool.
    pub slowest: Slowest<T>,
}

/// The longest latencies over all pools of a deployment, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Slowest<T> {
    /// Time to first token.
    pub ttft: T,
    /// Time per output token.
    pub tpot: T,
    /// End-to-end time of a request.
    pub e2e: T,
}

impl Slowest<Qty<f64>> {
    /// The latency that a limit on `metric` applies to, in seconds; `None` for other metrics.
    pub fn latency(&self, metric: Metric) -> Option<f64> {
        let latencies = [(Metric::Ttft, self.ttft), (Metric::Tpot, self.tpot), (Metric::E2e, self.e2e)];
        latencies.into_iter().find(|(of, _)| *of == metric).map(|(_, latency)| latency.value())
    }
}

impl<N: Num> Slowest<Qty<N>> {
    fn max(&self, other: &Slowest<Qty<N>>) -> Slowest<Qty<N>> {
        Slowest {
            ttft: self.ttft.max(other.ttft),
            tpot: self.tpot.max(other.tpot),
            e2e: self.e2e.max(other.e2e),
        }
    }
}

/// Scope of a pool among others: `pool1`, `pool2`, or none.
pub(crate) struct PoolScope(Option<usize>);

impl PoolScope {
    /// Of the pool at index `at`.
    pub(crate) fn numbered(at: usize) -> PoolScope {
        PoolScope(Some(at + 1))
    }

    /// Of the pool at index `at`; the first has none of its own.
    pub(crate) fn after_first(at: usize) -> PoolScope {
        PoolScope((at > 0).then_some(at + 1))
    }
}

impl fmt::Display for PoolScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |number| write!(f, "pool{number}"))
    }
}

/// Identical replicas or workers of a deployment.
#[derive(Clone, Copy)]
pub struct Pool<'a, T> {
    /// Their configuration.
    pub instance: &'a Instance,
    pub replicas: u64,
    /// Prefill time of one prompt on one replica, from [`super::iteration::prefill`].
    pub prompt: StepTime<T>,
    /// Load of one replica.
    pub load: InstanceLoad,
    /// Memory of one replica, where it was prepared.
    pub memory: Option<&'a InstanceMemory<T>>,
    /// Longest context whose prompts it holds as a prefill worker, where it was prepared.
    pub prompt_context: Option<T>,
}

/// Contribution of one pool to a deployment.
#[derive(Clone, Copy, Debug)]
pub struct PoolMetrics<T> {
    /// Time to first token.
    pub ttft: T,
    /// Time per output token.
    pub tpot: T,
    /// End-to-end time of a request.
    pub e2e: T,
    /// Its mean, whatever the percentile of the latencies.
    pub life: T,
    /// Output tokens per second.
    pub output: T,
    pub devices: T,
    /// Power, where known.
    pub power: Option<T>,
    /// Longest context that fits.
    pub context: T,
    /// Latencies of its slowest pool.
    pub slowest: Slowest<T>,
}

impl<N: Num> PoolMetrics<Qty<N>> {
    /// Both shares as one deployment. Latencies are means over all requests, so that Little's law holds for the total.
    pub fn merge_parallel<R: Reading<N = N>>(
        &self,
        read: &R,
        one: &PoolMetrics<Qty<N>>,
    ) -> PoolMetrics<Qty<N>> {
        let output = read.result_of("output_tok_s", || (self.output + one.output).is(&MIXED));
        let mean = |a: Qty<N>, b: Qty<N>| (a * self.output + b * one.output) / output;
        PoolMetrics {
            ttft: read.result_of("ttft", || mean(self.ttft, one.ttft).is(&MEAN_TTFT)),
            tpot: read.result_of("tpot", || mean(self.tpot, one.tpot).is(&MEAN_TPOT)),
            e2e: read.result_of("e2e", || mean(self.e2e, one.e2e).is(&MEAN_E2E)),
            life: read.result_of("concurrency", || mean(self.life, one.life).is(&MEAN_E2E)),
            slowest: self.slowest.max(&one.slowest),
            output,
            devices: read.result_of("devices", || devices_of_pools(self.devices, one.devices)),
            power: self.power.zip(one.power).map(|(a, b)| read.result_of("watts", || watts_of_pools(a, b))),
            context: read.result_of("max_context", || context_of_pools(self.context, one.context)),
        }
    }
}

/// Memory of the fullest device of a pool that decodes.
pub(super) fn decode_memory<R: Reading>(
    read: &R,
    pool: &Pool<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
    terms: &WorkloadTerms<Qty<R::N>>,
) -> Footprint<Qty<R::N>> {
    let (instance, phase, concurrency) = (pool.instance, Phase::Decode, pool.load.concurrency);
    match pool.memory {
        Some(memory) => residency_of(read, memory, (instance, phase), machine, (terms, concurrency)),
        None => residency(read, instance, phase, machine, terms, concurrency),
    }
}

/// Contribution and evaluation of one aggregated pool.
pub fn pool_metrics<R: Reading>(
    read: &R,
    pool: &Pool<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
    terms: &WorkloadTerms<Qty<R::N>>,
    demand: &Demand<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> (PoolMetrics<Qty<R::N>>, Evaluation<Qty<R::N>>) {
    let Pool { instance, replicas, load, .. } = *pool;
    let memory = decode_memory(read, pool, machine, terms);
    let spilled = read.within(format_args!("decode/memory/host"), || {
        spill(&memory, load.offload, machine.chip.least_streamed)
    });
    let hosted = instance.hosted.and_then(|_| {
        let held = admitted(read, instance, Phase::Decode, machine, (terms, load.concurrency));
        in_host_memory(read, instance, Phase::Decode, held, machine)
    });
    let prompt = read.within(format_args!("{}", Phase::Prefill.name()), || {
        let streamed = read_by_prompts(spilled, load.offload);
        let prompt = offloaded(read, instance, pool.prompt, terms, streamed);
        observe_host_reads((Phase::Prefill, instance), terms, streamed, watch);
        StepTime { total: prompt.total.result(), ..prompt }
    });
    let flying = read.count(Count::plan("concurrency_per_replica", load.concurrency));
    let replicas = read.count(Count::plan("replicas", replicas));
    let own = DecodeLoad { concurrency: flying, offload: load.offload };
    let round = decode(read, instance, machine, terms, &own, spilled, watch);
    let state = PoolState { pool, machine, terms, prompt, round, spilled, flying, replicas };
    let tpot = read.result_of("tpot", || state.tpot(read, demand));
    let ttft = read.result_of("ttft", || state.ttft(read, demand));
    let whole = read.result_of("e2e", || e2e(ttft, tpot, terms.osl));
    let output = read.result_of("output_tok_s", || state.output(demand, whole));
    let devices = read.within(format_args!("devices"), || {
        let each = read.count(Count::plan("devices_per_replica", instance.plan.devices()));
        devices_of(replicas, each).result()
    });
    let power = read.within(format_args!("watts"), || state.power(read, devices, (demand, whole)));
    let life = match demand {
        Demand::Rate(rate) => read.within(format_args!("concurrency"), || state.mean_life(read, *rate)),
        Demand::Free | Demand::InFlight(_) => whole,
    };
    let held = ((instance, Phase::Decode), (terms, load.concurrency));
    let context = longest_context(read, pool.memory, held.0, machine, held.1, spilled);
    let slowest = Slowest { ttft, tpot, e2e: whole };
    let share = PoolMetrics { ttft, tpot, e2e: whole, life, output, devices, power, context, slowest };
    let metrics = judge(read, terms, &share);
    let (decode, spilled) = (state.round.step, spilled.or(hosted));
    (share, Evaluation { metrics, memory, decode, prefill: prompt, spilled, slowest })
}

/// Demand of one part of a deployment, in proportion to its capacity at full slots: a request rate by throughput, a
/// concurrency by slots.
///
/// `part` and `whole` are (output tokens per second, concurrency) at full slots.
pub(super) fn portion<N: Num>(
    demand: &Demand<Qty<N>>,
    part: (Qty<N>, Qty<N>),
    whole: (Qty<N>, Qty<N>),
) -> Demand<Qty<N>> {
    match *demand {
        Demand::Free => Demand::Free,
        Demand::Rate(rate) => Demand::Rate((rate * part.0 / whole.0).is(&RATE_OF_POOL)),
        Demand::InFlight(requests) => Demand::InFlight((requests * part.1 / whole.1).is(&REQUESTS_OF_POOL)),
    }
}

/// Output tokens per second and concurrency of a share, as weighted by [`portion`].
pub(super) fn carried<N: Num>(
    terms: &WorkloadTerms<Qty<N>>,
    share: &PoolMetrics<Qty<N>>,
) -> (Qty<N>, Qty<N>) {
    (share.output, in_flight(share.output, share.life, terms.osl))
}

/// Shares of aggregated pools, each under its part of the demand.
pub(super) fn all_pool_metrics<R: Reading>(
    read: &R,
    pools: &[Pool<Qty<R::N>>],
    machine: &Machine<Qty<R::N>>,
    terms: &WorkloadTerms<Qty<R::N>>,
    demand: &Demand<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> Vec<(PoolMetrics<Qty<R::N>>, Evaluation<Qty<R::N>>)> {
    if matches!(demand, Demand::Free) {
        let of = |(at, pool): (usize, &Pool<Qty<R::N>>)| {
            read.within(format_args!("{}", PoolScope::numbered(at)), || {
                pool_metrics(read, pool, machine, terms, demand, watch)
            })
        };
        return pools.iter().enumerate().map(of).collect();
    }
    let free = |(at, pool): (usize, &Pool<Qty<R::N>>)| {
        read.within(format_args!("saturated/{}", PoolScope::numbered(at)), || {
            carried(terms, &pool_metrics(read, pool, machine, terms, &Demand::Free, &mut ()).0)
        })
    };
    let parts: Vec<_> = pools.iter().enumerate().map(free).collect();
    let whole = parts.iter().copied().reduce(|a, b| (a.0 + b.0, a.1 + b.1));
    let whole = whole.expect("a deployment has a pool");
    let of = |(at, (pool, part)): (usize, (&Pool<Qty<R::N>>, &(Qty<R::N>, Qty<R::N>)))| {
        read.within(format_args!("{}", PoolScope::numbered(at)), || {
            pool_metrics(read, pool, machine, terms, &portion(demand, *part, whole), watch)
        })
    };
    pools.iter().zip(&parts).enumerate().map(of).collect()
}

/// Evaluates a deployment of aggregated pools.
///
/// Latencies are means over the requests of all pools. Memory and step times are those of the first pool.
pub fn aggregated<R: Reading>(
    read: &R,
    pools: &[Pool<Qty<R::N>>],
    machine: &Machine<Qty<R::N>>,
    terms: &WorkloadTerms<Qty<R::N>>,
    demand: &Demand<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> Evaluation<Qty<R::N>> {
    if let [only] = pools {
        return pool_metrics(read, only, machine, terms, demand, watch).1;
    }
    let shares = all_pool_metrics(read, pools, machine, terms, demand, watch);
    let sum = shares.iter().map(|(share, _)| *share).reduce(|a, b| a.merge_parallel(read, &b));
    let sum = sum.expect("a deployment has a pool");
    Evaluation { metrics: judge(read, terms, &sum), slowest: sum.slowest, ..shares[0].1 }
}

/// The metrics of a deployment.
pub fn judge<R: Reading>(
    read: &R,
    terms: &WorkloadTerms<Qty<R::N>>,
    share: &PoolMetrics<Qty<R::N>>,
) -> Metrics<Qty<R::N>> {
    let PoolMetrics { ttft, tpot, e2e, life, output, devices, power: drawn, context, .. } = *share;
    let bill = terms
        .bill
        .as_ref()
        .map(|bill| read.result_of("usd_per_hour", || usd_per_second(devices, drawn, bill)));
    let usd = bill.map(|bill| read.result_of("usd_per_mtok", || usd_per_token(bill, output)));
    let all_tokens =
        |usd| read.result_of("usd_per_mtok_total", || usd_per_token_total(usd, terms.isl, terms.osl));
    let a_day = bill
        .zip(terms.serving_time)
        .map(|(usd, time)| read.result_of("usd_per_day", || usd_per_day(usd, time)));
    let of_facility = drawn
        .zip(terms.facility)
        .map(|(watts, of)| read.result_of("facility_watts", || facility_watts(devices, Some(watts), of)));
    Metrics {
        ttft,
        tpot,
        e2e,
        output_tok_s: output,
        output_tok_s_per_device: read.result_of("output_tok_s_per_device", || per_device(output, devices)),
        output_tok_s_per_user: read.result_of("output_tok_s_per_user", || per_user(tpot)),
        requests_per_s: read.result_of("requests_per_s", || request_rate(output, terms.osl)),
        usd_per_second: bill,
        usd_per_token: usd,
        usd_per_token_total: usd.map(all_tokens),
        usd_per_day: a_day,
        usd_per_month: a_day.map(|usd| read.result_of("usd_per_month", || usd_per_month(usd))),
        tok_per_usd: bill.map(|usd| read.result_of("tok_per_usd", || tok_per_usd(output, usd))),
        watts: drawn,
        facility_watts: of_facility,
        tok_per_joule: drawn.map(|watts| read.result_of("tok_per_joule", || tok_per_joule(output, watts))),
        max_context: context,
        devices,
        in_flight: read.result_of("concurrency", || in_flight(output, life, terms.osl)),
    }
}

crate::formulas! {
    MEAN_TTFT {
        symbol: "ttft",
        unit: SECOND,
        why: "mean over the requests of different pools, weighted by output; SLOs hold in every pool",
        cite: "definition",
    }
    MEAN_TPOT {
        symbol: "tpot",
        unit: SECOND,
        why: "mean over the requests of different pools, weighted by output; SLOs hold in every pool",
        cite: "definition",
    }
    MEAN_E2E {
        symbol: "e2e",
        unit: SECOND,
        why: "mean over the requests of different pools, so that output times E2E equals concurrency",
        cite: "Little 1961",
    }
    RATE_OF_POOL {
        symbol: "request_rate",
        unit: COUNT.per(SECOND),
        why: "a router sends requests to each pool in proportion to its capacity",
        cite: "definition",
    }
    REQUESTS_OF_POOL {
        symbol: "concurrency",
        unit: COUNT,
        why: "a router keeps the slots of all pools equally full",
        cite: "definition",
    }
    MIXED {
        symbol: "output_tok_s",
        unit: TOKEN.per(SECOND),
        why: "pools of different configurations run in parallel",
        cite: "definition",
    }
}
