//! One step of prompts and decoding requests together: its tokens share the weights, the host and the launches.

use super::encode::encode;
use super::instance::Instance;
use super::iteration::cycle;
use super::speculative::{checked, guessed};
use super::step::{
    CostObserver, LayerTime, PassParts, Passes, Places, StepTime, batch, handover, layer_of, pass, staged,
    step, with_host,
};
use crate::cost::batch::Batch;
use crate::cost::machine::Machine;
use crate::plan::parallel::Phase;
use crate::quantity::count::Count;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;
use crate::quantity::unit::{COUNT, SECOND};

/// Time of one step in which an attention rank computes `prompts` next to the requests that are `decoding`.
///
/// Where a part of the model is in host memory, or ranks share the context of a sequence, runtimes are not known to join
/// them: the prompts pass the devices after the requests, in the same step.
pub fn mixed<R: Reading>(
    read: &R,
    instance: &Instance,
    decoding: &Batch<Qty<R::N>>,
    prompts: &Batch<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> StepTime<Qty<R::N>> {
    if !is_joined(instance) {
        let first = step(read, instance, Phase::Decode, decoding, machine, watch);
        let second = pass(read, instance, Phase::Prefill, prompts, machine.of(Phase::Prefill), watch);
        return after(&first, &second);
    }
    let joined = decoding.joined(prompts);
    let pass = joined_pass(read, instance, [decoding, prompts], &joined, machine, watch);
    with_host(pass, (Phase::Decode, joined.sequences), machine, watch)
}

/// Whether prompts and decoding requests pass the devices of `instance` together.
pub fn is_joined(instance: &Instance) -> bool {
    instance.hosted.is_none() && instance.plan.cp == 1 && instance.plan.dcp == 1
}

/// The work of one attention rank in a step.
#[derive(Clone, Copy, Debug)]
pub struct RankLoad<T> {
    /// Requests that get their next token.
    pub decoding: T,
    /// Tokens that each of them has in the cache, on average.
    pub cached: T,
    /// Prompts, or parts of them, and the new and cached tokens of each: equal ones with as many tokens, and as many pairs
    /// of a token and one before it, as there are.
    pub prompts: T,
    pub new_tokens: T,
    pub prompt_cached: T,
    /// Requests that decode, over all ranks of the replica.
    pub all_decoding: T,
    /// New prompt tokens over all ranks.
    pub all_new_tokens: T,
}

/// Time of one step of a replica whose fullest attention rank has `load`; with a pipeline, until each of its micro-batches
/// has passed all stages.
pub fn rank_step<R: Reading>(
    read: &R,
    instance: &Instance,
    load: &RankLoad<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> (StepTime<Qty<R::N>>, Qty<R::N>) {
    let nothing = Qty::from(0.0);
    let sequences = load.decoding + load.prompts;
    let flying = read.count(Count::plan("pp", instance.plan.pp)).min(sequences);
    let ranks = read.count(Count::plan("dp", instance.plan.dp));
    let decoding = load.decoding.exceeds(nothing).then(|| {
        let each = (load.decoding / flying).is(&SPREAD);
        let one = batch(read, instance, Phase::Decode, each, checked(read, instance), load.cached);
        one.among((each * ranks).min(load.all_decoding), ranks)
    });
    let prompts = load.prompts.exceeds(nothing).then(|| {
        let each = (load.prompts / flying).is(&SPREAD);
        let one = batch(read, instance, Phase::Prefill, each, load.new_tokens, load.prompt_cached);
        Batch { ep_tokens: (load.all_new_tokens / flying).max(one.tokens), ..one }
    });
    let one = match (&decoding, &prompts) {
        (Some(decoding), Some(prompts)) => mixed(read, instance, decoding, prompts, machine, watch),
        (Some(decoding), None) => step(read, instance, Phase::Decode, decoding, machine, watch),
        (None, Some(prompts)) => {
            step(read, instance, Phase::Prefill, prompts, machine.of(Phase::Prefill), watch)
        }
        (None, None) => unreachable!("a step has a request"),
    };
    let one = match (&instance.draft, &decoding) {
        (Some(draft), Some(decoding)) => {
            let each = decoding.sequences;
            let load = batch(read, &draft.instance, Phase::Decode, each, Qty::from(1.0), load.cached);
            let load = load.among(decoding.all_sequences, ranks);
            guessed(read, one, draft, &load, machine, watch)
        }
        _ => one,
    };
    (one, cycle(&one, flying))
}

/// Both in one step, one after the other.
fn after<N: Num>(first: &StepTime<Qty<N>>, second: &StepTime<Qty<N>>) -> StepTime<Qty<N>> {
    StepTime {
        total: (first.total + second.total).is(&AFTER),
        slowest: (first.slowest + second.slowest).is(&AFTER),
        compute_time: first.compute_time + second.compute_time,
        memory_time: first.memory_time + second.memory_time,
    }
}

fn joined_pass<R: Reading>(
    read: &R,
    instance: &Instance,
    [decoding, prompts]: [&Batch<Qty<R::N>>; 2],
    joined: &Batch<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> StepTime<Qty<R::N>> {
    let (model, prefill) = (instance.sharded(Phase::Decode), instance.sharded(Phase::Prefill));
    // Of a prompt the head sees the last token; of a request, all tokens that a draft proposed.
    let seen = match instance.draft {
        Some(_) => decoding.joined(&prompts.last_token()),
        None => joined.last_token(),
    };
    let outside = |block, batch, watch: &mut _| {
        layer_of(read, block, (Phase::Decode, batch), Passes::All, machine, false, watch)
    };
    let embedding = outside(&model.embedding, joined, watch);
    let head = outside(&model.head, &seen, watch);
    let images = prefill.encoder.as_ref().map(|encoder| encode(read, encoder, machine, watch));
    let blocks = model.blocks.iter().zip(&prefill.blocks).map(|(block, of_prompts)| {
        let own = (Phase::Decode, decoding);
        let requests = layer_of(read, block, own, Passes::With(joined), machine, true, watch);
        let time = read.within(format_args!("prompts"), || {
            layer_of(read, of_prompts, (Phase::Prefill, prompts), Passes::Sequences, machine, false, watch)
        });
        let both = LayerTime {
            time: (requests.time + time.time).is(&JOINED_LAYER).result(),
            compute_time: requests.compute_time + time.compute_time,
            memory_time: requests.memory_time + time.memory_time,
        };
        Places::on_device(block.layers, both)
    });
    let blocks = blocks.collect();
    let handover = handover(read, model, joined, machine, watch);
    staged(read, instance, &PassParts { embedding, head, images, blocks, handover })
}

crate::formulas! {
    SPREAD {
        symbol: "sequences_per_micro_batch",
        unit: COUNT,
        why: "requests and prompts of a step are spread over the micro-batches of a pipeline",
        cite: "Huang et al. 2019 (GPipe)",
    }
    AFTER {
        symbol: "prompts_after_requests",
        unit: SECOND,
        why: "a step of requests, then the prompts on the same devices",
        cite: "definition",
    }
    JOINED_LAYER {
        symbol: "joined_layer_time",
        unit: SECOND,
        why: "matrix products, norms and collectives take the tokens of prompts and requests at once; attention works on each sequence with its own context",
        cite: "Agrawal et al. 2024 (Sarathi-Serve), 4.1 (piggybacked prefill); vLLM v1 scheduler",
    }
}
