//! Memory of the fullest device of an instance.

use std::borrow::Cow;

use super::instance::{Instance, StageKind};
use super::stage_memory::StageMemory;
use super::terms::SharedPrefixes;
use crate::cost::host::hosted_bytes;
use crate::cost::machine::Machine;
use crate::cost::memory::{Footprint, encoding, kv_per_sequence};
use crate::graph::cache::Cache;
use crate::graph::tensor::TensorRole;
use crate::plan::parallel::Phase;
use crate::plan::shard::{Elements, ROLES, ShardedEncoder, ShardedModel};
use crate::quantity::count::Count;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;
use crate::quantity::unit::{BYTE, COUNT};
use crate::spec::host_part::{HostedTensors, PromptWay};

/// Weights of one stage: elements in the weight format and in the model dtype.
pub(super) fn stage_elements(
    model: &ShardedModel,
    stage: &StageKind,
    quantised: &[bool; ROLES],
) -> (u64, u64) {
    let mut sums = [0; 2];
    let mut add = |elements: &Elements, times: u64| {
        for (role, &count) in elements.iter().enumerate() {
            sums[usize::from(quantised[role])] += count * times;
        }
    };
    for (block, &layers) in model.blocks.iter().zip(&stage.layers) {
        add(&block.weights, layers);
    }
    if stage.first {
        add(&model.embedding.weights, 1);
        add(&model.towers, 1);
    }
    if stage.last {
        add(&model.head.weights, 1);
        if model.tied && !stage.first {
            add(&tied_head(model), 1);
        }
    }
    // Weights that several layers of the stage read are there once.
    for (block, &again) in model.blocks.iter().zip(&stage.sharing) {
        for (role, &count) in block.shared.iter().enumerate() {
            sums[usize::from(quantised[role])] -= count * again;
        }
    }
    // Routed experts in host memory take no device memory.
    let routed = TensorRole::Expert as usize;
    let away = model.blocks.iter().zip(&stage.hosted);
    let away: u64 = away.map(|(block, &layers)| block.weights[routed] * layers).sum();
    sums[usize::from(quantised[routed])] -= away;
    (sums[1], sums[0])
}

/// A tied head on another stage than the embedding needs a copy of it.
fn tied_head(model: &ShardedModel) -> Elements {
    let mut copy = [0; ROLES];
    copy[TensorRole::LmHead as usize] = model.embedding.weights[TensorRole::Embedding as usize];
    copy
}

/// Cached bytes of a sequence of `tokens`, layer by layer, on one device of the fullest stage.
pub fn cache_per_sequence<R: Reading>(
    read: &R,
    instance: &Instance,
    phase: Phase,
    tokens: Qty<R::N>,
    machine: &Machine<Qty<R::N>>,
) -> Qty<R::N> {
    let stages = instance.kinds.iter();
    let caches = stages.map(|stage| stage_cache(read, instance, phase, stage, tokens, machine));
    caches.reduce(|a, b| a.max(b)).expect("a stage at least")
}

/// The sharded draft, where it is on `stage`.
pub(super) fn draft<'i>(instance: &'i Instance, stage: &StageKind) -> Option<(&'i Instance, &'i StageKind)> {
    let draft = instance.draft.as_deref().filter(|_| stage.last)?;
    Some((&draft.instance, draft.instance.kinds.first()?))
}

fn stage_cache<R: Reading>(
    read: &R,
    instance: &Instance,
    phase: Phase,
    stage: &StageKind,
    tokens: Qty<R::N>,
    machine: &Machine<Qty<R::N>>,
) -> Qty<R::N> {
    let grown = stage_caches(read, instance, phase, stage, tokens, machine, &grows);
    match stage_state(read, instance, phase, stage, machine) {
        Some(state) => grown + state,
        None => grown,
    }
}

/// The caches of one stage that `of` selects.
pub(super) fn stage_caches<R: Reading>(
    read: &R,
    instance: &Instance,
    phase: Phase,
    stage: &StageKind,
    tokens: Qty<R::N>,
    machine: &Machine<Qty<R::N>>,
    of: &impl Fn(&Cache) -> bool,
) -> Qty<R::N> {
    let parts = read.count(instance.plan.cache_ranks());
    let blocks = instance.sharded(phase).blocks.iter().zip(&stage.layers).filter(|(_, layers)| **layers > 0);
    let caches = blocks.flat_map(|(block, &layers)| {
        let picked = block.caches.iter().filter(move |cache| of(cache));
        picked.map(move |cache| (cache, layers))
    });
    let bytes = caches.map(|(cache, layers)| {
        let one = kv_per_sequence(read, cache, tokens, parts, &machine.chip);
        read.count(Count::plan("layers_here", layers)) * one
    });
    let own = bytes.fold(Qty::literal(0.0 * BYTE), |a, b| a + b);
    match draft(instance, stage) {
        Some((draft, alone)) => own + stage_caches(read, draft, phase, alone, tokens, machine, of),
        None => own,
    }
}

/// State of a sequence on a stage, independent of its length, if any.
pub(super) fn stage_state<R: Reading>(
    read: &R,
    instance: &Instance,
    phase: Phase,
    stage: &StageKind,
    machine: &Machine<Qty<R::N>>,
) -> Option<Qty<R::N>> {
    let none = Qty::from(0.0);
    stays(instance, phase, stage)
        .then(|| stage_caches(read, instance, phase, stage, none, machine, &|cache: &Cache| !grows(cache)))
}

/// Whether a stage has state that does not grow with the sequence.
fn stays(instance: &Instance, phase: Phase, stage: &StageKind) -> bool {
    let blocks = instance.sharded(phase).blocks.iter().zip(&stage.layers);
    let mut kept = blocks.filter(|(_, layers)| **layers > 0).flat_map(|(block, _)| &block.caches);
    kept.any(|cache| !grows(cache)) || draft(instance, stage).is_some_and(|(d, alone)| stays(d, phase, alone))
}

pub(super) fn grows(cache: &Cache) -> bool {
    !matches!(cache, Cache::State { .. })
}

/// Whether it keeps every token: a window moves on beyond a prefix.
pub(super) fn keeps_all(cache: &Cache) -> bool {
    grows(cache) && cache.limit().is_none()
}

/// Memory of one stage with `sequences` of `tokens` tokens per attention rank.
pub fn stage_footprint<R: Reading>(
    read: &R,
    instance: &Instance,
    phase: Phase,
    stage: &StageKind,
    held: CachedSequences<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
) -> Footprint<Qty<R::N>> {
    let memory = StageMemory::of(read, instance, phase, stage, &held, machine);
    memory.footprint(read, instance, phase, held, machine)
}

/// Room for the copy of one expert matrix of the layers in host memory, where the runtime copies.
pub(super) fn copied<R: Reading>(
    read: &R,
    model: &ShardedModel,
    stage: &StageKind,
    machine: &Machine<Qty<R::N>>,
) -> Option<Qty<R::N>> {
    machine.host.as_ref().filter(|host| host.prompt.contains(&PromptWay::Stream))?;
    let routed = TensorRole::Expert as usize;
    let hosted = model.blocks.iter().zip(&stage.hosted).filter(|(_, layers)| **layers > 0);
    let most = hosted.map(|(block, _)| block.weights[routed]).max().filter(|elements| *elements > 0)?;
    let matrix = Count::derived("expert_matrix", most.div_ceil(3), "a third of a layer: gate, up or down");
    let weight_bytes = machine.chip.weight_bytes(machine.quantised[routed]);
    Some((read.count(matrix) * weight_bytes).is(&COPIED))
}

/// Activations of a request's images in the encoder, at its widest part.
pub(super) fn images<R: Reading>(
    read: &R,
    encoder: &ShardedEncoder,
    machine: &Machine<Qty<R::N>>,
) -> Qty<R::N> {
    let pieces = read.count(encoder.images) * read.count(encoder.crops);
    let parts = encoder.parts.iter().map(|(_, positions)| read.count(*positions));
    let most = parts.reduce(|a, b| a.max(b)).expect("an encoder has parts");
    encoding(pieces * most, read.count(encoder.widest), &machine.chip)
}

/// Memory of the fullest device.
///
/// The memory of each stage is traced, and so are the comparisons that select the fullest.
pub fn fullest<R: Reading>(
    read: &R,
    instance: &Instance,
    phase: Phase,
    load: CachedSequences<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
) -> Footprint<Qty<R::N>> {
    read.within(format_args!("{}/memory", phase.name()), || {
        let each = |stage: Cow<StageKind>| stage_footprint(read, instance, phase, &stage, load, machine);
        fuller(instance.kinds.iter().map(|stage| each(on_device(instance, stage))))
    })
}

/// The fullest of the stages.
pub(super) fn fuller<N: Num>(stages: impl Iterator<Item = Footprint<Qty<N>>>) -> Footprint<Qty<N>> {
    let fullest = stages.reduce(|most, next| if most.total.exceeds(next.total) { most } else { next });
    let fullest = fullest.expect("a stage at least");
    Footprint { total: fullest.total.result(), ..fullest }
}

/// The part of a stage that is on the device.
pub(super) fn on_device<'s>(instance: &Instance, stage: &'s StageKind) -> Cow<'s, StageKind> {
    match instance.hosted {
        Some(HostedTensors::Layers) => Cow::Owned(rest(stage)),
        Some(HostedTensors::Experts) | None => Cow::Borrowed(stage),
    }
}

/// The layers of a stage that stay on the device.
fn rest(stage: &StageKind) -> StageKind {
    let away = stage.hosted.iter().copied().chain(std::iter::repeat(0));
    let layers = stage.layers.iter().zip(away).map(|(all, away)| all - away).collect();
    StageKind { layers, hosted: vec![], ..stage.clone() }
}

/// Bytes of an instance in host memory: weights, and the KV cache of whole layers. `None` where nothing is.
pub fn in_host_memory<R: Reading>(
    read: &R,
    instance: &Instance,
    phase: Phase,
    load: CachedSequences<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
) -> Option<Qty<R::N>> {
    let tensors = instance.hosted?;
    Some(read.within(format_args!("{}/host_memory", phase.name()), || {
        let mut sum = Qty::literal(0.0 * BYTE);
        for kind in instance.kinds.iter() {
            let layers = kind.hosted.clone();
            let (hosted, sharing, times) = (vec![], vec![], kind.times);
            let there = StageKind { layers, hosted, sharing, first: false, last: false, times };
            let held = match tensors {
                HostedTensors::Layers => {
                    let held = stage_footprint(read, instance, phase, &there, load, machine);
                    held.weights + held.kv
                }
                HostedTensors::Experts => expert_weights(read, instance.sharded(phase), &there, machine),
            };
            sum = sum + read.count(Count::plan("stages_like_this", kind.times)) * held;
        }
        sum.is(&IN_HOST_MEMORY).result()
    }))
}

/// Bytes of the routed experts of the layers of `stage`.
fn expert_weights<R: Reading>(
    read: &R,
    model: &ShardedModel,
    stage: &StageKind,
    machine: &Machine<Qty<R::N>>,
) -> Qty<R::N> {
    let routed = TensorRole::Expert as usize;
    let elements =
        model.blocks.iter().zip(&stage.layers).map(|(block, layers)| block.weights[routed] * layers);
    let count = Count::derived("expert_elements", elements.sum(), "routed experts in host memory");
    hosted_bytes(read.count(count), machine.chip.weight_bytes(machine.quantised[routed]))
}

/// Sequences of a rank, and the tokens that each one holds.
#[derive(Clone, Copy, Debug)]
pub struct CachedSequences<T> {
    /// Sequences of an attention rank.
    pub sequences: T,
    /// Tokens per sequence, lower bound.
    pub least: T,
    /// Tokens per sequence, upper bound.
    pub most: T,
    /// Mean position between both bounds, as a fraction.
    pub part: T,
    /// Their common prefixes that are stored once, if any.
    pub shared: Option<SharedPrefixes<T>>,
    /// Tokens of the longest sequence that the cache holds at least once, if it must.
    pub longest: Option<T>,
}

impl<N: Num> CachedSequences<Qty<N>> {
    /// `sequences` sequences that hold all of `tokens` tokens each.
    pub fn whole(sequences: Qty<N>, tokens: Qty<N>) -> CachedSequences<Qty<N>> {
        let part = Qty::from(1.0);
        CachedSequences { sequences, least: tokens, most: tokens, part, shared: None, longest: None }
    }

    /// The same, with prefixes that are stored once.
    pub fn sharing(self, shared: Option<SharedPrefixes<Qty<N>>>) -> CachedSequences<Qty<N>> {
        CachedSequences { shared, ..self }
    }
}

/// Mean fraction of its output that each of `sequences` sequences of a rank holds, where the runtime reserves the
/// fraction `reserved` of the remaining output.
#[inline(always)]
pub fn occupied<N: Num>(sequences: Qty<N>, reserved: Qty<N>) -> Qty<N> {
    let one = Qty::from(1.0);
    let spread = (one + one / sequences.pow(Qty::from(0.5))) / 2.0;
    (reserved + (one - reserved) * spread).is(&OCCUPIED)
}

crate::formulas! {
    COPIED {
        symbol: "copied_matrix",
        unit: BYTE,
        why: "weights that are copied to the device during a prompt take room for one tensor at a time",
        cite: "llama.cpp, ggml-backend scheduler: inputs of a split are copied before it runs",
    }
    IN_HOST_MEMORY {
        symbol: "host_memory",
        unit: BYTE,
        why: "weights that the host's processor computes with, and the KV cache of whole layers",
        cite: "definition",
    }
    OCCUPIED {
        symbol: "answer_held",
        unit: COUNT,
        why: "requests are at all positions of their output, so n of them hold half of it on average; evenly spread positions have a total standard deviation of osl sqrt(n / 12), and room for sqrt(3) of these keeps preemption rare and holds a single request whole; tokens that the runtime reserves for the remaining output come on top",
        cite: "vLLM admits what is known of a request and preempts later, TensorRT-LLM reserves prompt and whole answer (NVIDIA dynamo-mocker 1.3.0, src/scheduler/vllm/policy.rs); SGLang a share of the rest (new_token_ratio, python/sglang/srt/environ.py)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::model::ModelGraph;
    use crate::plan::group::TierShape;
    use crate::plan::parallel::ParallelPlan;
    use crate::spec::cluster::Topology;
    use crate::spec::model::ModelConfig;
    use proptest::prelude::*;

    /// All tokens of `requests` requests, where the runtime reserves this fraction of the remaining output.
    fn held(requests: u64, isl: f64, osl: f64, reserved: f64) -> f64 {
        let n = Qty::<f64>::from(requests as f64);
        n.value() * (isl + osl * occupied(n, Qty::from(reserved)).value())
    }

    /// Weights of all stages with these runs of layers, in elements.
    fn stored(text: &str, stages: &[u32]) -> (u64, u64) {
        let graph = ModelGraph::build(&ModelConfig::parse(text).unwrap()).unwrap();
        let tiers = [TierShape { devices: 8, topology: Topology::Switch, in_switch_reduction: false }];
        let plan = ParallelPlan { pp: stages.len() as u64, ..ParallelPlan::SINGLE };
        let instance = Instance::new(&graph, plan, stages.to_vec(), &tiers);
        let one = |kind: &StageKind| {
            let (quantised, native) = stage_elements(&instance.decode, kind, &[false; ROLES]);
            kind.times * (quantised + native)
        };
        (instance.kinds.iter().map(one).sum(), graph.parameters().unique)
    }

    #[test]
    fn weights_that_layers_share_are_once_on_each_stage_that_runs_them() {
        let looped = r#"{"model_type": "dory", "hidden_size": 6, "num_hidden_layers": 4, "vocab_size": 11,
            "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 5, "intermediate_size": 10,
            "n_input_layers": 1, "n_output_layers": 1, "n_recurrent_loops": 3}"#;
        let layer = 2 * 60 + 2 * 30 + 60 + 180 + 2 * 6 + 4 * 10;
        let (whole, unique) = stored(looped, &[8]);
        assert_eq!(whole, unique);
        // Runs 0 1 2 1 | 2 1 2 3: layers 1 and 2 are on both stages.
        assert_eq!(stored(looped, &[4, 4]).0, unique + 2 * layer);
        let hybrid = r#"{"model_type": "zamba", "hidden_size": 8, "num_hidden_layers": 5, "vocab_size": 11,
            "intermediate_size": 10, "num_attention_heads": 4, "num_key_value_heads": 2, "mamba_dt_rank": 3,
            "layers_block_type": ["mamba", "mamba", "hybrid", "mamba", "hybrid"]}"#;
        let transformer = 16 + 16 * 16 + 2 * 16 * 8 + 16 * 8 + 8 + 3 * 8 * 10;
        let (whole, unique) = stored(hybrid, &[5]);
        assert_eq!(whole, unique);
        // The last stage has a copy of the embedding as its head.
        assert_eq!(stored(hybrid, &[2, 3]).0, unique + 11 * 8);
        assert_eq!(stored(hybrid, &[3, 2]).0, unique + 11 * 8 + transformer);
    }

    proptest! {
        #[test]
        fn requests_hold_half_their_output_at_least_and_the_whole_at_most(
            n in 1u64..5000, isl in 1.0..1e5, osl in 1.0..1e4, reserved in 0.0..=1.0,
        ) {
            let all = held(n, isl, osl, reserved);
            let (half, whole) = (n as f64 * (isl + osl / 2.0), n as f64 * (isl + osl));
            prop_assert!(half <= all && all <= whole * (1.0 + 1e-12), "{half} {all} {whole}");
            prop_assert!(held(n + 1, isl, osl, reserved) > all);
            prop_assert!((held(1, isl, osl, reserved) / (isl + osl) - 1.0).abs() < 1e-12);
            prop_assert!((held(n, isl, osl, 1.0) / whole - 1.0).abs() < 1e-12);
        }
    }
}
