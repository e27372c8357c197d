//! A pool that prefills and a pool that decodes, keys and values travelling between them.
//!
//! Knows how two pools keep pace, not which ones should be paired.

use super::economy::{PowerDraw, busy, watts};
use super::evaluate::{Evaluation, Pool, Share, judge, residency};
use super::instance::Instance;
use super::metrics::{e2e, open_flow};
use super::residency::{cache_per_sequence, max_context};
use super::round::{Decode, decode};
use super::step::{StepTime, Watch};
use super::terms::{Demand, Load, Terms};
use crate::cost::machine::Machine;
use crate::plan::parallel::Phase;
use crate::quantity::count::Count;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Read;
use crate::quantity::unit::{COUNT, SECOND};

/// Instances that answer prompts prefilled elsewhere, under a load.
pub struct Answering<T> {
    /// Time per output token.
    pub tpot: T,
    /// Requests per second that one instance makes way for.
    pub rate: T,
    round: Decode<T>,
}

/// What a decode instance does under `load`.
pub fn answering<R: Read>(
    read: &R,
    instance: &Instance,
    machine: &Machine<Qty<R::N>>,
    terms: &Terms<Qty<R::N>>,
    load: &Load,
    watch: &mut impl Watch<R::N>,
) -> Answering<Qty<R::N>> {
    let round = decode(read, instance, machine, terms, load, None, watch);
    let tpot = round.cycle.is(&TPOT_ALONE).at(format_args!("tpot"));
    let each = read.count(Count::plan("concurrency_per_replica", load.concurrency));
    Answering { tpot, rate: decode_rate(each, terms.osl, tpot), round }
}

impl<N: Num> Answering<Qty<N>> {
    /// Power of `devices` of such instances.
    pub fn drawn<R: Read<N = N>>(
        &self,
        read: &R,
        instance: &Instance,
        devices: Qty<N>,
        draw: &PowerDraw<Qty<N>>,
    ) -> Qty<N> {
        let stages = read.count(Count::plan("pp", instance.plan.pp));
        let work = |time: Qty<N>| busy(self.round.flying * time, stages, self.tpot);
        watts(devices, work(self.round.step.computing), work(self.round.step.moving), draw)
    }
}

/// Longest prompt plus answer that fits a decode instance under `load`.
pub fn context<R: Read>(
    read: &R,
    instance: &Instance,
    machine: &Machine<Qty<R::N>>,
    terms: &Terms<Qty<R::N>>,
    load: &Load,
) -> Qty<R::N> {
    let memory = residency(read, instance, Phase::Decode, machine, terms, load.concurrency);
    max_context(read, &memory, terms.isl + terms.osl, instance.max_context)
}

/// Requests per second that `in_flight` answers of a decode pool make way for.
fn decode_rate<N: Num>(in_flight: Qty<N>, osl: Qty<N>, tpot: Qty<N>) -> Qty<N> {
    (in_flight / ((osl - 1.0) * tpot)).is(&DECODE_RATE)
}

/// Prompts per second of one prefill instance.
pub fn prefill_rate<R: Read>(read: &R, instance: &Instance, prompt: &StepTime<Qty<R::N>>) -> Qty<R::N> {
    (read.count(Count::plan("dp", instance.plan.dp)) / prompt.slowest).is(&PREFILL_RATE)
}

/// Power of `devices` of prefill instances that work for this share of the time.
pub fn prefill_drawn<R: Read>(
    read: &R,
    (instance, prompt): (&Instance, &StepTime<Qty<R::N>>),
    utilised: Qty<R::N>,
    devices: Qty<R::N>,
    draw: &PowerDraw<Qty<R::N>>,
) -> Qty<R::N> {
    let stages = read.count(Count::plan("pp", instance.plan.pp));
    let work = |time: Qty<R::N>| busy(utilised * time, stages, prompt.slowest);
    watts(devices, work(prompt.computing), work(prompt.moving), draw)
}

/// A pool that prefills and a pool that decodes.
pub fn split<R: Read>(
    read: &R,
    front: &Pool<Qty<R::N>>,
    back: &Pool<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
    terms: &Terms<Qty<R::N>>,
    demand: &Demand<Qty<R::N>>,
    watch: &mut impl Watch<R::N>,
) -> Evaluation<Qty<R::N>> {
    let prompt = front.prompt;
    let memory = residency(read, back.instance, Phase::Decode, machine, terms, back.load.concurrency);
    let answers = answering(read, back.instance, machine, terms, &back.load, watch);
    let tpot = answers.tpot;
    let fronts = read.count(Count::plan("prefill_replicas", front.replicas));
    let backs = read.count(Count::plan("decode_replicas", back.replicas));
    let able = fronts * prefill_rate(read, front.instance, &prompt);
    let rate = match demand {
        Demand::Rate(rate) => *rate,
        Demand::InFlight(requests) => decode_rate(*requests, terms.osl, tpot).min(able).is(&FLOW),
        Demand::Free => (backs * answers.rate).min(able).is(&FLOW),
    };
    let utilised = (rate / able).is(&UTILISED);
    let sent = cache_per_sequence(read, front.instance, Phase::Prefill, terms.isl, machine);
    let received = cache_per_sequence(read, back.instance, Phase::Decode, terms.isl, machine);
    let link = machine.links.last().expect("two pools are joined by a link");
    let travel = sent.max(received) / (link.bandwidth * machine.chip.collective_bandwidth);
    let transfer = (link.latency + travel).is(&TRANSFER).at(format_args!("kv_transfer"));
    let waiting = machine.chip.request_overhead + prompt.slowest / 2.0;
    let ttft = (waiting + prompt.total + transfer).is(&TTFT_SPLIT).at(format_args!("ttft"));
    let output = open_flow(rate, terms.osl).at(format_args!("output_tok_s"));
    let size =
        |pool: &Pool<Qty<R::N>>| read.count(Count::plan("devices_per_replica", pool.instance.plan.devices()));
    let (front_devices, back_devices) = (fronts * size(front), backs * size(back));
    let drawn = terms.draw.as_ref().map(|draw| {
        prefill_drawn(read, (front.instance, &prompt), utilised, front_devices, draw)
            + answers.drawn(read, back.instance, back_devices, draw)
    });
    let metrics = judge(
        terms,
        &Share {
            ttft,
            tpot,
            e2e: e2e(ttft, tpot, terms.osl),
            output,
            devices: front_devices + back_devices,
            drawn,
            context: max_context(read, &memory, terms.isl + terms.osl, back.instance.max_context),
        },
    );
    Evaluation { metrics, memory, decode: answers.round.step, prefill: prompt, spilled: None }
}

crate::formulas! {
    PREFILL_RATE {
        symbol: "prefill_rate",
        unit: COUNT.per(SECOND),
        why: "a prompt per attention rank each time the slowest stage is through",
        cite: "utilisation law",
    }
    TPOT_ALONE {
        symbol: "tpot_decode_pool",
        unit: SECOND,
        why: "no prompts share the steps of a decode pool",
        cite: "Zhong et al. 2024 (DistServe)",
    }
    DECODE_RATE {
        symbol: "decode_rate",
        unit: COUNT.per(SECOND),
        why: "a slot is free again after osl - 1 tokens",
        cite: "Little 1961",
    }
    FLOW {
        symbol: "request_rate",
        unit: COUNT.per(SECOND),
        why: "the slower pool sets the pace",
        cite: "Zhong et al. 2024 (DistServe)",
    }
    UTILISED {
        symbol: "prefill_utilisation",
        unit: COUNT,
        why: "share of the time that the prefill pool works",
        cite: "utilisation law",
    }
    TRANSFER {
        symbol: "kv_transfer",
        unit: SECOND,
        why: "the prompt's cache from each prefill device to its decode device, over the outermost link",
        cite: "Zhong et al. 2024 (DistServe)",
    }
    TTFT_SPLIT {
        symbol: "ttft_split",
        unit: SECOND,
        why: "what the server takes, half a running prefill (a pool sized to its load is nearly always busy), the prompt, and its cache's way to the decode pool",
        cite: "mean residual life; Zhong et al. 2024 (DistServe)",
    }
}
