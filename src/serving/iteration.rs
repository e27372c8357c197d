//! Prefill of one prompt, and a decode cycle: one token for every concurrent request.

use super::hosted::routed_experts;
use super::instance::Instance;
use super::speculative::{accepted, checked, with_draft_passes, with_draft_prompt};
use super::step::{CostObserver, StepTime, batch, step};
use super::step_part::{Wait, WaitKind};
use super::terms::WorkloadTerms;
use crate::cost::batch::Batch;
use crate::cost::machine::Machine;
use crate::cost::memory::Footprint;
use crate::plan::parallel::Phase;
use crate::quantity::count::Count;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;
use crate::quantity::unit::{BYTE, COUNT, SECOND};
use crate::spec::offload::{Offload, OffloadPart};

/// The prefill of one prompt per attention rank.
pub fn prefill<R: Reading>(
    read: &R,
    instance: &Instance,
    machine: &Machine<Qty<R::N>>,
    terms: &WorkloadTerms<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> StepTime<Qty<R::N>> {
    prefill_among(read, (instance, instance.plan.dp), machine, terms, watch)
}

/// The prefill of one prompt on an attention rank, where a replica has this many requests: with fewer than attention
/// ranks, only as many of these have a prompt; with more, each rank has several at once.
pub fn prefill_among<R: Reading>(
    read: &R,
    (instance, requests): (&Instance, u64),
    machine: &Machine<Qty<R::N>>,
    terms: &WorkloadTerms<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> StepTime<Qty<R::N>> {
    let machine = machine.of(Phase::Prefill);
    read.within(format_args!("{}", Phase::Prefill.name()), || {
        let load = prompt_batch(read, (instance, requests), terms);
        let one = step(read, instance, Phase::Prefill, &load, machine, watch);
        let chunks = (load.new_tokens / machine.chip.max_batched_tokens).ceil();
        let waits = ((chunks - 1.0) * machine.chip.host_per_step).is(&CHUNKS);
        let wire = Qty::literal(0.0 * BYTE);
        watch.on_wait(Phase::Prefill, &Wait { kind: WaitKind::Chunks, times: 1, time: waits, wire });
        let prompt = StepTime {
            total: (one.total + waits).is(&PREFILL),
            slowest: (one.slowest + waits).is(&PREFILL_STAGE),
            ..one
        };
        let prompt = match &instance.draft {
            Some(draft) => {
                let load = prompt_batch(read, (&draft.instance, requests), terms);
                with_draft_prompt(read, prompt, draft, machine, &load, watch)
            }
            None => prompt,
        };
        StepTime { total: prompt.total.result(), ..prompt }
    })
}

/// The batch of that prefill.
pub(super) fn prompt_batch<R: Reading>(
    read: &R,
    (instance, requests): (&Instance, u64),
    terms: &WorkloadTerms<Qty<R::N>>,
) -> Batch<Qty<R::N>> {
    let new = terms.isl - terms.prefix;
    let ranks = instance.plan.dp;
    let count = |symbol, value| read.count(Count::plan(symbol, value));
    let each = match requests.div_ceil(ranks) {
        0 | 1 => Qty::from(1.0),
        several => count("prompts_per_rank", several),
    };
    let load = batch(read, instance, Phase::Prefill, each, new, terms.prefix);
    if requests >= ranks {
        return load;
    }
    load.among(count("concurrency_per_replica", requests.max(1)), count("dp", ranks))
}

/// Requests of one attention rank at `concurrency`: micro-batches, and sequences per micro-batch.
pub fn micro_batches<R: Reading>(
    read: &R,
    instance: &Instance,
    concurrency: Qty<R::N>,
) -> (Qty<R::N>, Qty<R::N>) {
    let ranks = read.count(Count::plan("dp", instance.plan.dp));
    let stages = read.count(Count::plan("pp", instance.plan.pp));
    let rank = (concurrency / ranks).ceil().max(Qty::from(1.0)).is(&PER_RANK);
    let flying = stages.min(rank).is(&MICRO_BATCHES);
    (flying, (rank / flying).ceil().is(&SEQUENCES))
}

/// Time of a decode cycle with `micro_batches` micro-batches, each of which takes `step`.
pub fn cycle<N: Num>(step: &StepTime<Qty<N>>, micro_batches: Qty<N>) -> Qty<N> {
    step.total.max(micro_batches * step.slowest).is(&CYCLE)
}

/// The load of a decode step.
#[derive(Clone, Copy)]
pub struct DecodeLoad<T> {
    /// Concurrency per replica or worker.
    pub concurrency: T,
    /// The offloaded data, if any.
    pub offload: Offload,
}

/// A decode step at the mean context length, and the cycle in which every request gets a token.
pub struct DecodeStep<T> {
    pub step: StepTime<T>,
    pub cycle: T,
    /// Tokens per request and cycle with speculative decoding; otherwise one.
    pub tokens_per_step: Option<T>,
    /// Requests of a rank, rounded up to whole micro-batches.
    pub sequences: T,
    pub micro_batches: T,
}

impl<N: Num> DecodeStep<Qty<N>> {
    /// Share of `time` in a cycle per output token of a request.
    pub(super) fn per_token(&self, time: Qty<N>) -> Qty<N> {
        self.tokens_per_step.map_or(time, |yields| (time / yields).is(&PER_TOKEN))
    }
}

pub fn decode<R: Reading>(
    read: &R,
    instance: &Instance,
    machine: &Machine<Qty<R::N>>,
    terms: &WorkloadTerms<Qty<R::N>>,
    load: &DecodeLoad<Qty<R::N>>,
    spilled: Option<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> DecodeStep<Qty<R::N>> {
    read.within(format_args!("{}", Phase::Decode.name()), || {
        let (flying, each) = micro_batches(read, instance, load.concurrency);
        let batch = decode_batch(read, instance, terms, each);
        let ranks = read.count(Count::plan("dp", instance.plan.dp));
        let batch = batch.among((each * ranks).min(load.concurrency), ranks);
        let one = step(read, instance, Phase::Decode, &batch, machine, watch);
        let streamed = match (spilled, load.offload) {
            (Some(spilled), Offload::Streamed(OffloadPart::Experts)) => {
                Some(spilled * touched(read, instance, &batch))
            }
            (spilled, _) => spilled,
        };
        let one = offloaded(read, instance, one, terms, streamed);
        observe_host_reads((Phase::Decode, instance), terms, streamed, watch);
        let (one, yields) = match (&instance.draft, terms.acceptance) {
            (Some(draft), Some(acceptance)) => {
                let decoding = (&batch, halfway(terms));
                let one = with_draft_passes(read, one, draft, machine, decoding, watch);
                (one, Some(accepted(acceptance, draft.tokens)))
            }
            _ => (one, None),
        };
        let cycle = cycle(&one, flying).result();
        let sequences = flying * each;
        DecodeStep { step: one, cycle, tokens_per_step: yields, sequences, micro_batches: flying }
    })
}

/// The batch of a decode step with `each` sequences per attention rank at their mean length.
pub fn decode_batch<R: Reading>(
    read: &R,
    instance: &Instance,
    terms: &WorkloadTerms<Qty<R::N>>,
    each: Qty<R::N>,
) -> Batch<Qty<R::N>> {
    batch(read, instance, Phase::Decode, each, checked(read, instance), halfway(terms))
}

/// Tokens in the cache of a request that is halfway through its output.
fn halfway<N: Num>(terms: &WorkloadTerms<Qty<N>>) -> Qty<N> {
    terms.isl + terms.osl / 2.0 - 1.0
}

/// Fraction of the routed experts that a decode step activates.
pub fn touched<R: Reading>(read: &R, instance: &Instance, batch: &Batch<Qty<R::N>>) -> Qty<R::N> {
    let experts = instance.decode.blocks.iter().find_map(|block| routed_experts(read, block));
    experts.map_or(Qty::from(1.0), |experts| experts.touched(batch.ep_tokens))
}

/// A step that reads `spilled` bytes per device over the host link.
pub fn offloaded<R: Reading>(
    read: &R,
    instance: &Instance,
    step: StepTime<Qty<R::N>>,
    terms: &WorkloadTerms<Qty<R::N>>,
    spilled: Option<Qty<R::N>>,
) -> StepTime<Qty<R::N>> {
    let Some(streaming) = host_read(terms, spilled) else { return step };
    let stages = read.count(Count::plan("pp", instance.plan.pp));
    StepTime {
        total: (step.total + stages * streaming).is(&STREAMED_STEP),
        slowest: (step.slowest + streaming).is(&STREAMED_STAGE),
        ..step
    }
}

/// Of `spilled` bytes, those that a prefill reads over the host link: a prompt's own cache is still in device memory.
pub fn read_by_prompts<T>(spilled: Option<T>, offload: Offload) -> Option<T> {
    spilled.filter(|_| offload != Offload::Streamed(OffloadPart::Kv))
}

/// Time in which a device reads `spilled` bytes over the host link.
pub fn host_read<N: Num>(terms: &WorkloadTerms<Qty<N>>, spilled: Option<Qty<N>>) -> Option<Qty<N>> {
    spilled.zip(terms.host_link).map(|(spilled, link)| (spilled / link).is(&STREAMING))
}

/// Shows the observer what [`offloaded`] adds to each stage.
pub(super) fn observe_host_reads<N: Num>(
    (phase, instance): (Phase, &Instance),
    terms: &WorkloadTerms<Qty<N>>,
    spilled: Option<Qty<N>>,
    watch: &mut impl CostObserver<N>,
) {
    if let Some(time) = host_read(terms, spilled) {
        let wire = Qty::literal(0.0 * BYTE);
        watch.on_wait(phase, &Wait { kind: WaitKind::HostRead, times: instance.plan.pp, time, wire });
    }
}

/// Bytes that exceed the memory of each device.
///
/// Whether any do is decided here. The caller reads from `Footprint` whether it fits.
pub(super) fn spill<T: Num>(held: &Footprint<Qty<T>>, offload: Offload, least: Qty<T>) -> Option<Qty<T>> {
    let part = offload.streamed()?;
    let beyond = held.total.exceeds(held.usable).then(|| (held.total - held.usable).is(&SPILLED));
    let stated = least.exceeds(Qty::literal(0.0 * BYTE)) && part != OffloadPart::Kv;
    let stated = stated.then(|| least.min(held.weights).is(&STATED_STREAMED));
    match (beyond, stated) {
        (Some(beyond), Some(stated)) => Some(beyond.max(stated)),
        (beyond, stated) => beyond.or(stated),
    }
}

crate::formulas! {
    CHUNKS {
        symbol: "chunk_waits",
        unit: SECOND,
        why: "a prompt above the token budget takes several steps, each prepared by the host",
        cite: "Agrawal et al. 2024 (Sarathi-Serve), chunked prefill",
    }
    PREFILL {
        symbol: "prefill_time",
        unit: SECOND,
        why: "all prompt tokens through all stages",
        cite: "Agrawal et al. 2024 (Sarathi-Serve)",
    }
    PREFILL_STAGE {
        symbol: "prefill_stage_time",
        unit: SECOND,
        why: "time for which a prompt occupies its slowest stage",
        cite: "Huang et al. 2019 (GPipe)",
    }
    CYCLE {
        symbol: "decode_cycle",
        unit: SECOND,
        why: "every request gets a token after all stages have processed its micro-batch and the slowest stage has processed all micro-batches",
        cite: "Huang et al. 2019 (GPipe)",
    }
    PER_TOKEN {
        symbol: "time_per_accepted_token",
        unit: SECOND,
        why: "with speculative decoding, a cycle yields several tokens",
        cite: "Leviathan et al. 2023 (speculative decoding), theorem 3.8",
    }
    PER_RANK {
        symbol: "requests_per_rank",
        unit: COUNT,
        why: "requests are spread evenly over the attention ranks; the fullest sets the time of a step",
        cite: "definition",
    }
    MICRO_BATCHES {
        symbol: "micro_batches",
        unit: COUNT,
        why: "every pipeline stage works on a micro-batch of its own, as far as the requests suffice",
        cite: "Huang et al. 2019 (GPipe)",
    }
    SEQUENCES {
        symbol: "sequences",
        unit: COUNT,
        why: "requests of a rank over its micro-batches, in whole sequences",
        cite: "Huang et al. 2019 (GPipe)",
    }
    STREAMED_STEP {
        symbol: "offloaded_step",
        unit: SECOND,
        why: "every stage waits for its offloaded data",
        cite: "Sheng et al. 2023 (FlexGen)",
    }
    STREAMED_STAGE {
        symbol: "offloaded_stage",
        unit: SECOND,
        why: "the slowest stage waits for its offloaded data",
        cite: "Sheng et al. 2023 (FlexGen)",
    }
    STREAMING {
        symbol: "offload_time",
        unit: SECOND,
        why: "offloaded data is read from host memory at every step, without overlap",
        cite: "Sheng et al. 2023 (FlexGen)",
    }
    STATED_STREAMED {
        symbol: "stated_offload",
        unit: BYTE,
        why: "a stated part of the weights is in host memory, whatever is free; at most all of them",
        cite: "vLLM, --cpu-offload-gb: a fixed part of each device's weights is moved and read at every step",
    }
    SPILLED {
        symbol: "offloaded",
        unit: BYTE,
        why: "bytes that exceed the memory of the fullest device",
        cite: "definition",
    }
}
