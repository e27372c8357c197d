//! Latencies, output and power of one aggregated pool in steady operation.

use super::economy::{busy, watts};
use super::evaluate::Pool;
use super::iteration::{DecodeLoad, DecodeStep, decode};
use super::metrics::{closed_loop, e2e, open_flow};
use super::mixed::{RankLoad, is_joined, rank_step};
use super::step::StepTime;
use super::tail::{mean_wait, wait};
use super::terms::{Demand, WorkloadTerms};
use super::utilization::prompt_load;
use crate::cost::machine::Machine;
use crate::plan::parallel::Phase;
use crate::quantity::count::Count;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;
use crate::quantity::unit::{COUNT, SECOND};
use crate::spec::offload::Offload;
use crate::spec::percentile::Percentile;
use crate::spec::runtime::SchedulerPolicy;

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

/// Prompts in the steps of requests that decode.
struct JoinedPrompts<T> {
    /// Share of the cycles that have a prompt, or a part of one.
    share: T,
    /// Time of such a cycle, and of its batch through all stages.
    cycle: T,
    pass: T,
    /// Parts that a prompt is computed in.
    chunks: T,
    /// Parts of prompts in such a cycle.
    parts: T,
}

impl<N: Num> PoolState<'_, Qty<N>> {
    /// Prefills of `others` that share a step of a request.
    fn turns(&self, others: Qty<N>) -> Qty<N> {
        (self.machine.chip.prefill_interference * others / self.terms.osl).is(&TURNS)
    }

    /// Whether prompts join the steps of requests that decode.
    fn joins_prompts(&self) -> bool {
        let Pool { instance, load, .. } = *self.pool;
        let plain = load.offload == Offload::Nothing && instance.draft.is_none();
        plain
            && is_joined(instance)
            && self.machine.formula_policy().is_some_and(|policy| policy.like.joins_prompts())
    }

    /// The cycles of `round` that have prompts in them; `None` where prompts have steps of their own.
    fn joined<R: Reading<N = N>>(
        &self,
        read: &R,
        round: &DecodeStep<Qty<N>>,
    ) -> Option<JoinedPrompts<Qty<N>>> {
        if !self.joins_prompts() {
            return None;
        }
        let (terms, instance) = (self.terms, self.pool.instance);
        let one = Qty::from(1.0);
        let ranks = read.count(Count::plan("dp", instance.plan.dp));
        let new = terms.isl - terms.prefix;
        let budget = self.machine.of(Phase::Prefill).chip.max_batched_tokens;
        let chunks = (new / budget).ceil().is(&PARTS);
        let every = self.turns(round.sequences - 1.0) * chunks;
        let (share, parts) = (every.min(one).is(&SHARE), every.max(one).is(&PARTS_AT_ONCE));
        let each = new / chunks;
        let load = RankLoad {
            decoding: round.sequences,
            cached: terms.isl + terms.osl / 2.0 - 1.0,
            prompts: parts,
            new_tokens: each,
            prompt_cached: terms.prefix + (new - each) / 2.0,
            all_decoding: (round.sequences * ranks).min(self.flying.max(one)),
            all_new_tokens: parts * each * ranks,
        };
        let (step, cycle) = read.within(format_args!("joined"), || {
            let (step, cycle) = rank_step(read, instance, &load, self.machine, &mut ());
            (step, cycle.result())
        });
        // Kernels of prompts may be the better ones.
        Some(JoinedPrompts { share, cycle: cycle.max(round.cycle), pass: step.total, chunks, parts })
    }

    /// TPOT of `round`: the own step, or that of a crowd.
    fn mean_tpot(&self, round: &DecodeStep<Qty<N>>, joined: Option<&JoinedPrompts<Qty<N>>>) -> Qty<N> {
        let own = round.per_token(round.cycle);
        let shared = match joined {
            Some(joined) => joined.share * (joined.cycle - round.cycle),
            None => self.turns(round.sequences - 1.0) * self.prompt.slowest,
        };
        (own + shared).is(&TPOT)
    }

    /// Mean time of a request under random arrivals, whatever the percentile of its latencies.
    pub(super) fn mean_life<R: Reading<N = N>>(&self, read: &R, rate: Qty<N>) -> Qty<N> {
        let joined = self.joined(read, &self.round);
        let service = self.service(joined.as_ref());
        let wait = mean_wait(service, self.prompt_load(read, rate, service));
        let first = self.first_token(self.random_wait(), wait, joined.as_ref());
        e2e(first, self.mean_tpot(&self.round, joined.as_ref()), self.terms.osl)
    }

    /// TPOT, at the percentile of the workload under random arrivals.
    pub(super) fn tpot<R: Reading<N = N>>(&self, read: &R, demand: &Demand<Qty<N>>) -> Qty<N> {
        let own = || self.mean_tpot(&self.round, self.joined(read, &self.round).as_ref());
        let (Demand::Rate(_), Some(tail)) = (demand, &self.terms.tail) else { return own() };
        if tail.percentile == Percentile::P50 {
            return own();
        }
        let Pool { instance, load, .. } = *self.pool;
        let crowd = DecodeLoad { concurrency: tail.crowd(self.flying), offload: load.offload };
        let round = decode(read, instance, self.machine, self.terms, &crowd, self.spilled, &mut ());
        self.mean_tpot(&round, self.joined(read, &round).as_ref())
    }

    /// Other requests that a new one sees on its rank. At concurrency 1 it finds no running step and no prompt ahead.
    fn others(&self) -> Qty<N> {
        (self.round.sequences - 1.0).is(&OTHERS)
    }

    /// Time for which a prompt keeps other prompts waiting.
    fn service(&self, joined: Option<&JoinedPrompts<Qty<N>>>) -> Qty<N> {
        let of = |joined: &JoinedPrompts<Qty<N>>| {
            (joined.chunks * (joined.cycle - self.round.cycle) / joined.parts).is(&SERVICE)
        };
        joined.map_or(self.prompt.slowest, of)
    }

    /// Fraction of time that an attention rank spends on prompts of `service` each at this rate.
    fn prompt_load<R: Reading<N = N>>(&self, read: &R, rate: Qty<N>, service: Qty<N>) -> Qty<N> {
        let ranks = read.count(Count::plan("dp", self.pool.instance.plan.dp));
        prompt_load(rate, service, self.replicas * ranks)
    }

    /// TTFT, at the percentile of the workload under random arrivals.
    pub(super) fn ttft<R: Reading<N = N>>(&self, read: &R, demand: &Demand<Qty<N>>) -> Qty<N> {
        let (chip, prompt) = (&self.machine.chip, &self.prompt);
        let joined = self.joined(read, &self.round);
        let (before, queued) = match (demand, &self.terms.tail) {
            (Demand::Rate(rate), Some(tail)) => {
                let service = self.service(joined.as_ref());
                (self.random_wait(), wait(service, self.prompt_load(read, *rate, service), tail.part))
            }
            _ => {
                let others = self.others();
                let queued = chip.prompt_queue * others.pow(Qty::from(0.5)) + chip.prompt_burst * others;
                let queued = queued.is(&QUEUED).max(self.turns(others)).is(&QUEUED_AT_LEAST);
                let (held, together) = self.held();
                let before = self.steps_waited(chip.step_wait + held);
                (before + (self.flying - 1.0) * chip.request_work, queued.max(together) * prompt.slowest)
            }
        };
        self.first_token(before, queued, joined.as_ref())
    }

    /// Steps that a launch flag lets a prompt wait for others, and how many join it on its rank meanwhile.
    fn held(&self) -> (Qty<N>, Qty<N>) {
        let nothing = Qty::from(0.0);
        let (Some(held), Some(policy)) = (&self.machine.held, self.machine.formula_policy()) else {
            return (nothing, nothing);
        };
        let (terms, others) = (self.terms, self.others());
        let each_step = others / terms.osl;
        if policy.like != SchedulerPolicy::Trtllm || !others.exceeds(nothing) {
            let mean = ((held.steps - 1.0).max(nothing) / 2.0).is(&HELD_INTERVAL);
            return (mean, (held.steps * each_step).is(&HELD_PROMPTS));
        }
        let all = (self.flying - 1.0) / terms.osl;
        let enough = match self.pool.instance.plan.dp {
            0 | 1 => {
                let budget = self.machine.of(Phase::Prefill).chip.max_batched_tokens;
                held.tokens_ratio * budget / ((terms.isl - terms.prefix) * each_step)
            }
            ranks => {
                let later: f64 = (2..=ranks).map(|rank| 1.0 / rank as f64).sum();
                (Qty::from(later * ranks as f64) / all).is(&HELD_FOR_RANKS)
            }
        };
        let steps = held.steps.min(enough).is(&HELD_STEPS);
        let joined = (steps * all).is(&HELD_PROMPTS);
        let mean = (steps * (joined / 2.0 + 1.0) / (joined + 1.0)).is(&HELD_FROM_FIRST);
        (mean, (steps * each_step).is(&HELD_PROMPTS))
    }

    /// This many steps, where other requests run.
    fn steps_waited(&self, steps: Qty<N>) -> Qty<N> {
        let round = &self.round;
        (steps * (self.others() / round.sequences) * round.cycle).is(&STEPS_WAITED)
    }

    /// Wait of a random arrival: half of the running step (renewal theory: Cox 1962), and the next one where the scheduler
    /// has made that up already.
    fn random_wait(&self) -> Qty<N> {
        let steps = self.machine.formula_policy().map_or(self.machine.chip.step_wait, |policy| {
            let ahead = if policy.asynchronous { 1.0 } else { 0.0 };
            Qty::from(0.5 + ahead)
        });
        self.steps_waited(steps)
    }

    /// TTFT: the server's own work, the waits, and the prefill.
    fn first_token(&self, before: Qty<N>, queued: Qty<N>, joined: Option<&JoinedPrompts<Qty<N>>>) -> Qty<N> {
        let alone = self.prompt.total;
        let own = joined.map_or(alone, |joined| match self.others().exceeds(Qty::from(0.0)) {
            true => (joined.chunks * joined.pass).max(alone),
            false => alone,
        });
        (self.machine.chip.request_overhead + before + own + queued).is(&TTFT)
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
    PARTS {
        symbol: "prompt_parts",
        unit: COUNT,
        why: "a prompt above the token budget of a step is computed in several",
        cite: "Agrawal et al. 2024 (Sarathi-Serve), chunked prefill",
    }
    SHARE {
        symbol: "mixed_share",
        unit: COUNT,
        why: "share of the cycles with a part of a prompt: all of them, where there are more parts than cycles",
        cite: "mean-value analysis of continuous batching",
    }
    PARTS_AT_ONCE {
        symbol: "parts_in_a_mixed_cycle",
        unit: COUNT,
        why: "more parts than cycles share these",
        cite: "mean-value analysis of continuous batching",
    }
    SERVICE {
        symbol: "prompt_service",
        unit: SECOND,
        why: "a prompt makes the steps that it joins longer by this much, and later prompts wait for it",
        cite: "Agrawal et al. 2024 (Sarathi-Serve), 4.1 (piggybacked prefill)",
    }
    STEPS_WAITED {
        symbol: "steps_waited",
        unit: SECOND,
        why: "a new request waits for steps of others, if there are any: at a random moment for half of the running one, and for one that is made up already",
        cite: "mean-value analysis of continuous batching; renewal theory: Cox 1962",
    }
    HELD_STEPS {
        symbol: "held_steps",
        unit: COUNT,
        why: "prompts wait for others until a time-out, or until those that wait fill a part of a step",
        cite: "batch_wait_timeout_iters, batch_wait_max_tokens_ratio: https://nvidia.github.io/TensorRT-LLM/llm-api/reference.html",
    }
    HELD_FOR_RANKS {
        symbol: "steps_until_every_rank_has_a_prompt",
        unit: COUNT,
        why: "after the first prompt, the time until each of the other attention ranks has one too, where prompts arrive at random",
        cite: "coupon collector's problem (Feller 1950, IX.3); attention_dp_config.enable_balance: _balance_adp_requests of tensorrt_llm/_torch/pyexecutor/py_executor.py",
    }
    HELD_PROMPTS {
        symbol: "held_prompts",
        unit: COUNT,
        why: "every other concurrent request adds one prompt in osl steps",
        cite: "mean-value analysis of continuous batching",
    }
    HELD_FROM_FIRST {
        symbol: "steps_held",
        unit: COUNT,
        why: "the first prompt waits for the whole time, those that come meanwhile for half of it",
        cite: "mean of arrivals that are spread evenly; _waiting_requests of tensorrt_llm/_torch/pyexecutor/py_executor.py",
    }
    HELD_INTERVAL {
        symbol: "steps_held",
        unit: COUNT,
        why: "requests are received once in a number of decode steps, and come at any of them",
        cite: "mean of arrivals that are spread evenly; sglang/srt/managers/scheduler_recv_skipper.py",
    }
    TPOT {
        symbol: "tpot",
        unit: SECOND,
        why: "a decode cycle; and the prompts of new requests, which make some cycles longer, or come between them",
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
