//! Latencies, output and power of one aggregated pool in steady operation.

use super::economy::{busy, watts};
use super::evaluate::Pool;
use super::iteration::{DecodeLoad, DecodeStep, decode};
use super::metrics::{closed_loop, e2e, open_flow};
use super::step::StepTime;
use super::tail::{mean_wait, wait};
use super::terms::{Demand, WorkloadTerms};
use super::utilization::prompt_load;
use crate::cost::machine::Machine;
use crate::quantity::count::Count;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;
use crate::quantity::unit::{COUNT, SECOND};
use crate::spec::percentile::Percentile;

/// A pool in steady operation.
pub(super) struct PoolState<'a, T> {
    pub(super) pool: &'a Pool<'a, T>,
    pub(super) machine: &'a Machine<T>,
    pub(super) terms: &'a WorkloadTerms<T>,
    /// Prefill of one prompt, offloaded data included.
    pub(super) prompt: StepTime<T>,
    pub(super) round: DecodeStep<T>,
    /// Bytes in host memory.
    pub(super) spilled: Option<T>,
    /// Concurrency of a replica.
    pub(super) flying: T,
    pub(super) replicas: T,
}

impl<N: Num> PoolState<'_, Qty<N>> {
    /// Prefills of `others` that share a step of a request.
    fn turns(&self, others: Qty<N>) -> Qty<N> {
        (self.machine.chip.prefill_interference * others / self.terms.osl).is(&TURNS)
    }

    /// TPOT of `round`: the own step, or that of a crowd.
    fn mean_tpot(&self, round: &DecodeStep<Qty<N>>) -> Qty<N> {
        let time = round.per_token(round.cycle) + self.turns(round.sequences - 1.0) * self.prompt.slowest;
        time.is(&TPOT)
    }

    /// Mean time of a request under random arrivals, whatever the percentile of its latencies.
    pub(super) fn mean_life<R: Reading<N = N>>(&self, read: &R, rate: Qty<N>) -> Qty<N> {
        let wait = mean_wait(self.prompt.slowest, self.prompt_load(read, rate));
        e2e(self.first_token(wait), self.mean_tpot(&self.round), self.terms.osl)
    }

    /// TPOT, at the percentile of the workload under random arrivals.
    pub(super) fn tpot<R: Reading<N = N>>(&self, read: &R, demand: &Demand<Qty<N>>) -> Qty<N> {
        let (Demand::Rate(_), Some(tail)) = (demand, &self.terms.tail) else {
            return self.mean_tpot(&self.round);
        };
        if tail.percentile == Percentile::P50 {
            return self.mean_tpot(&self.round);
        }
        let Pool { instance, load, .. } = *self.pool;
        let crowd = DecodeLoad { concurrency: tail.crowd(self.flying), offload: load.offload };
        self.mean_tpot(&decode(read, instance, self.machine, self.terms, &crowd, self.spilled, &mut ()))
    }

    /// Other requests that a new one sees on its rank. At concurrency 1 it finds no running step and no prompt ahead.
    fn others(&self) -> Qty<N> {
        (self.round.sequences - 1.0).is(&OTHERS)
    }

    /// Fraction of time that an attention rank spends on prefill at this rate.
    fn prompt_load<R: Reading<N = N>>(&self, read: &R, rate: Qty<N>) -> Qty<N> {
        let ranks = read.count(Count::plan("dp", self.pool.instance.plan.dp));
        prompt_load(rate, self.prompt.slowest, self.replicas * ranks)
    }

    /// TTFT, at the percentile of the workload under random arrivals.
    pub(super) fn ttft<R: Reading<N = N>>(&self, read: &R, demand: &Demand<Qty<N>>) -> Qty<N> {
        let (chip, prompt) = (&self.machine.chip, &self.prompt);
        let queued = match (demand, &self.terms.tail) {
            (Demand::Rate(rate), Some(tail)) => {
                wait(prompt.slowest, self.prompt_load(read, *rate), tail.part)
            }
            _ => {
                let others = self.others();
                let queued = chip.prompt_queue * others.pow(Qty::from(0.5)) + chip.prompt_burst * others;
                queued.is(&QUEUED).max(self.turns(others)).is(&QUEUED_AT_LEAST) * prompt.slowest
            }
        };
        self.first_token(queued)
    }

    /// TTFT: the server's own work, the wait of `queued`, and the prefill.
    fn first_token(&self, queued: Qty<N>) -> Qty<N> {
        let (chip, prompt, round) = (&self.machine.chip, &self.prompt, &self.round);
        let steps = chip.step_wait * (self.others() / round.sequences) * round.cycle;
        let waiting = chip.request_overhead + steps + (self.flying - 1.0) * chip.request_work;
        (waiting + prompt.total + queued).is(&TTFT)
    }

    /// Output tokens per second, where a request takes `whole` seconds.
    pub(super) fn output(&self, demand: &Demand<Qty<N>>, whole: Qty<N>) -> Qty<N> {
        match demand {
            Demand::Free => closed_loop(self.replicas * self.flying, self.terms.osl, whole),
            Demand::InFlight(requests) => closed_loop(*requests, self.terms.osl, whole),
            Demand::Rate(rate) => open_flow(*rate, self.terms.osl),
        }
    }

    /// Power of `devices` devices, where a request takes `whole` seconds in a closed loop.
    pub(super) fn power<R: Reading<N = N>>(
        &self,
        read: &R,
        devices: Qty<N>,
        (demand, whole): (&Demand<Qty<N>>, Qty<N>),
    ) -> Option<Qty<N>> {
        let draw = self.terms.power_draw.as_ref()?;
        let whole = match demand {
            Demand::Rate(rate) => (self.replicas * self.flying / *rate).is(&HELD),
            Demand::Free | Demand::InFlight(_) => whole,
        };
        let stages = read.count(Count::plan("pp", self.pool.instance.plan.pp));
        let (round, osl) = (&self.round, self.terms.osl);
        let prompts = round.sequences / osl;
        let work = |steps: Qty<N>, prompt: Qty<N>| {
            busy(round.per_token(round.micro_batches * steps) + prompts * prompt, stages, whole / osl)
        };
        let computing = work(round.step.compute_time, self.prompt.compute_time);
        let moving = work(round.step.memory_time, self.prompt.memory_time);
        Some(watts(devices, computing, moving, draw).result())
    }
}

crate::formulas! {
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
    OTHERS {
        symbol: "others_in_flight",
        unit: COUNT,
        why: "a request in a closed loop sees the system without itself: at concurrency 1 it waits for no other request",
        cite: "arrival theorem: Reiser, Lavenberg 1980 (mean-value analysis)",
    }
    HELD {
        symbol: "time_in_flight",
        unit: SECOND,
        why: "at a request rate, a device does the work of a request once for each that arrives: requests in flight over their rate, whatever the percentile of the latencies",
        cite: "Little 1961; utilisation law",
    }
    QUEUED {
        symbol: "prompts_ahead",
        unit: COUNT,
        why: "queued prompts grow with the square root of the other concurrent requests (scattered arrivals), and linearly with them (requests that finish in the same step)",
        cite: "fitted on published serving measurements, per runtime",
    }
    QUEUED_AT_LEAST {
        symbol: "prompts_ahead_at_least",
        unit: COUNT,
        why: "the first step of a request has its share of the other prefills too: few output tokens cannot pass prompts faster than they are computed",
        cite: "mean-value analysis of continuous batching: throughput at most one request per prefill",
    }
    TTFT {
        symbol: "ttft",
        unit: SECOND,
        why: "request overhead, the steps waited for, the queued prompts, and the prefill itself",
        cite: "mean-value analysis of continuous batching; constants fitted per runtime",
    }
}
