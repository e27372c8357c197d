//! The entry point of this layer: evaluates a deployment under a load and returns all metrics.
//!
//! Closed forms after mean-value analysis of continuous batching. They describe steady-state means, not single
//! requests, bursts or scheduler details.

use super::admission::{admitted, residency};
use super::economy::{busy, tok_per_joule, usd_per_second, usd_per_token, usd_per_token_total, watts};
use super::instance::Instance;
use super::iteration::{DecodeStep, decode, offloaded, spill};
use super::metrics::{Metrics, closed_loop, e2e, in_flight, open_flow, per_device, per_user, request_rate};
use super::residency::{in_host_memory, max_context};
use super::step::{CostObserver, StepTime};
use super::tail::wait;
use super::terms::{Demand, InstanceLoad, OffloadTarget, WorkloadTerms};
use crate::cost::machine::Machine;
use crate::cost::memory::Footprint;
use crate::plan::parallel::Phase;
use crate::quantity::count::Count;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;
use crate::quantity::unit::{COUNT, SECOND, TOKEN};
use crate::spec::objective::Metric;
use crate::spec::percentile::Percentile;

/// Metrics of a deployment, and the memory of its fullest device.
#[derive(Clone, Copy, Debug)]
pub struct Evaluation<T> {
    /// The metrics.
    pub metrics: Metrics<T>,
    /// Memory of the fullest (decode) device.
    pub memory: Footprint<T>,
    /// The decode step.
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

/// Identical replicas or workers of a deployment.
#[derive(Clone, Copy)]
pub struct Pool<'a, T> {
    /// Their configuration.
    pub instance: &'a Instance,
    /// Number of replicas.
    pub replicas: u64,
    /// Prefill time of one prompt on one replica, from [`super::iteration::prefill`].
    pub prompt: StepTime<T>,
    /// Load of one replica.
    pub load: InstanceLoad,
}

impl<T> Pool<'_, T> {
    /// Devices of the whole pool.
    pub fn devices(&self) -> u64 {
        self.replicas * self.instance.plan.devices()
    }
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
    /// Output tokens per second.
    pub output: T,
    /// Number of devices.
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
    pub fn merge_parallel(&self, one: &PoolMetrics<Qty<N>>) -> PoolMetrics<Qty<N>> {
        let output = self.output + one.output;
        let mean = |a: Qty<N>, b: Qty<N>| (a * self.output + b * one.output) / output;
        PoolMetrics {
            ttft: mean(self.ttft, one.ttft).is(&MEAN_TTFT),
            tpot: mean(self.tpot, one.tpot).is(&MEAN_TPOT),
            e2e: mean(self.e2e, one.e2e).is(&MEAN_E2E),
            slowest: self.slowest.max(&one.slowest),
            output,
            devices: self.devices + one.devices,
            power: self.power.zip(one.power).map(|(a, b)| a + b),
            context: self.context.min(one.context),
        }
    }

    /// Marks the means as results over several pools.
    pub fn mixed(self) -> PoolMetrics<Qty<N>> {
        PoolMetrics {
            output: self.output.is(&MIXED).at(format_args!("output_tok_s")),
            ttft: self.ttft.at(format_args!("ttft")),
            tpot: self.tpot.at(format_args!("tpot")),
            ..self
        }
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
    let memory = residency(read, instance, Phase::Decode, machine, terms, load.concurrency);
    let spilled = spill(&memory, load.offload);
    let hosted = instance.hosted.and_then(|_| {
        let held = admitted(read, instance, Phase::Decode, machine, (terms, load.concurrency));
        in_host_memory(read, instance, Phase::Decode, held, machine)
    });
    let prompt =
        offloaded(read, instance, pool.prompt, terms, spilled.filter(|_| load.offload != OffloadTarget::Kv));
    let round = decode(read, instance, machine, terms, &load, spilled, watch);
    let pace = |round: &DecodeStep<Qty<R::N>>| {
        let turns = (machine.chip.prefill_interference * (round.sequences - 1.0) / terms.osl).is(&TURNS);
        machine.tpot_with_margin((round.per_token(round.cycle) + turns * prompt.slowest).is(&TPOT), false)
    };
    let chip = &machine.chip;
    let flying = read.count(Count::plan("concurrency_per_replica", load.concurrency));
    let replicas = read.count(Count::plan("replicas", replicas));
    let ranks = read.count(Count::plan("dp", instance.plan.dp));
    // At concurrency 1 a request finds no running step and no prompt ahead of it.
    let others = (round.sequences - 1.0).is(&OTHERS);
    let steps = chip.step_wait * (others / round.sequences) * round.cycle;
    let waiting = chip.request_overhead + steps + (flying - 1.0) * chip.request_work;
    let (tpot, queued) = match (demand, &terms.tail) {
        (Demand::Rate(rate), Some(tail)) => {
            let tpot = match tail.percentile {
                Percentile::P50 => pace(&round),
                percentile => {
                    let crowd = InstanceLoad { concurrency: percentile.in_flight(load.concurrency), ..load };
                    pace(&decode(read, instance, machine, terms, &crowd, spilled, &mut ()))
                }
            };
            let busy = (*rate * prompt.slowest / (replicas * ranks)).is(&PROMPT_LOAD);
            (tpot, wait(prompt.slowest, busy, tail.part))
        }
        _ => {
            let ahead = chip.prompt_queue * others.pow(Qty::from(0.5)) + chip.prompt_burst * others;
            (pace(&round), ahead.is(&AHEAD) * prompt.slowest)
        }
    };
    let tpot = tpot.at(format_args!("tpot"));
    let ttft =
        machine.ttft_with_margin((waiting + prompt.total + queued).is(&TTFT), false).at(format_args!("ttft"));
    let whole = e2e(ttft, tpot, terms.osl);
    let output = match demand {
        Demand::Free => closed_loop(replicas * flying, terms.osl, whole),
        Demand::InFlight(requests) => closed_loop(*requests, terms.osl, whole),
        Demand::Rate(rate) => open_flow(*rate, terms.osl),
    };
    let output = output.at(format_args!("output_tok_s"));
    let devices = replicas * read.count(Count::plan("devices_per_replica", instance.plan.devices()));
    let stages = read.count(Count::plan("pp", instance.plan.pp));
    let prompts = round.sequences / terms.osl;
    let work = |steps: Qty<R::N>, prompt: Qty<R::N>| {
        busy(round.per_token(round.micro_batches * steps) + prompts * prompt, stages, whole / terms.osl)
    };
    let computing = work(round.step.compute_time, prompt.compute_time);
    let moving = work(round.step.memory_time, prompt.memory_time);
    let drawn = terms.power_draw.as_ref().map(|draw| watts(devices, computing, moving, draw));
    let context = max_context(read, &memory, terms.isl + terms.osl, instance.max_context);
    let slowest = Slowest { ttft, tpot, e2e: whole };
    let share = PoolMetrics { ttft, tpot, e2e: whole, output, devices, power: drawn, context, slowest };
    let metrics = judge(terms, &share);
    (
        share,
        Evaluation {
            metrics,
            memory,
            decode: round.step,
            prefill: prompt,
            spilled: spilled.or(hosted),
            slowest,
        },
    )
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
    (share.output, in_flight(share.output, share.e2e, terms.osl))
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
        return pools.iter().map(|pool| pool_metrics(read, pool, machine, terms, demand, watch)).collect();
    }
    let free = |pool| carried(terms, &pool_metrics(read, pool, machine, terms, &Demand::Free, &mut ()).0);
    let parts: Vec<_> = pools.iter().map(free).collect();
    let whole = parts.iter().copied().reduce(|a, b| (a.0 + b.0, a.1 + b.1));
    let whole = whole.expect("a deployment has a pool");
    let of = |(pool, part): (&Pool<Qty<R::N>>, &(Qty<R::N>, Qty<R::N>))| {
        pool_metrics(read, pool, machine, terms, &portion(demand, *part, whole), watch)
    };
    pools.iter().zip(&parts).map(of).collect()
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
    let sum = shares.iter().map(|(share, _)| *share).reduce(|a, b| a.merge_parallel(&b));
    let sum = sum.expect("a deployment has a pool").mixed();
    Evaluation { metrics: judge(terms, &sum), slowest: sum.slowest, ..shares[0].1 }
}

/// The metrics of a deployment.
pub fn judge<N: Num>(terms: &WorkloadTerms<Qty<N>>, share: &PoolMetrics<Qty<N>>) -> Metrics<Qty<N>> {
    let PoolMetrics { ttft, tpot, e2e, output, devices, power: drawn, context, .. } = *share;
    let bill = terms.bill.as_ref().map(|bill| usd_per_second(devices, drawn, bill));
    let usd = bill.map(|bill| usd_per_token(bill, output).at(format_args!("usd_per_mtok")));
    Metrics {
        ttft,
        tpot,
        e2e: e2e.at(format_args!("e2e")),
        output_tok_s: output,
        output_tok_s_per_device: per_device(output, devices).at(format_args!("output_tok_s_per_device")),
        output_tok_s_per_user: per_user(tpot).at(format_args!("output_tok_s_per_user")),
        requests_per_s: request_rate(output, terms.osl).at(format_args!("requests_per_s")),
        usd_per_second: bill,
        usd_per_token: usd,
        usd_per_token_total: usd.map(|usd| usd_per_token_total(usd, terms.isl, terms.osl)),
        watts: drawn.map(|watts| watts.at(format_args!("watts"))),
        tok_per_joule: drawn.map(|watts| tok_per_joule(output, watts).at(format_args!("tok_per_joule"))),
        max_context: context.at(format_args!("max_context")),
        devices,
        in_flight: in_flight(output, e2e, terms.osl).at(format_args!("concurrency")),
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
    TURNS {
        symbol: "prefill_turns",
        unit: COUNT,
        why: "every other concurrent request adds one prefill in osl steps, which delays this one by kappa times its own time",
        cite: "mean-value analysis of continuous batching; kappa fitted on published serving measurements",
    }
    TPOT {
        symbol: "tpot",
        unit: SECOND,
        why: "a decode cycle, plus the prefills of new requests that share it",
        cite: "mean-value analysis of continuous batching",
    }
    PROMPT_LOAD {
        symbol: "prompt_load",
        unit: COUNT,
        why: "fraction of time that an attention rank spends on prefill at this rate",
        cite: "utilisation law",
    }
    OTHERS {
        symbol: "others_in_flight",
        unit: COUNT,
        why: "a request in a closed loop sees the system without itself: at concurrency 1 it waits for no other request",
        cite: "arrival theorem: Reiser, Lavenberg 1980 (mean-value analysis)",
    }
    AHEAD {
        symbol: "prompts_ahead",
        unit: COUNT,
        why: "queued prompts grow with the square root of the other concurrent requests (scattered arrivals), and linearly with them (requests that finish in the same step)",
        cite: "fitted on published serving measurements, per runtime",
    }
    TTFT {
        symbol: "ttft",
        unit: SECOND,
        why: "request overhead, the steps waited for, the queued prompts, and the prefill itself",
        cite: "mean-value analysis of continuous batching; constants fitted per runtime",
    }
}
