//! Memory of a device of one stage: what does not depend on the number of sequences, and with a number of them.

use super::instance::{Instance, StageKind};
use super::longest::CacheGrowth;
use super::page_pool::PooledCaches;
use super::residency::{
    CachedSequences, copied, draft, fuller, grows, images, keeps_all, on_device, stage_caches,
    stage_elements, stage_state,
};
use super::speculative::checked;
use super::terms::SharedPrefixes;
use crate::cost::machine::Machine;
use crate::cost::memory::{
    Footprint, ServerShape, SharedPages, activations, footprint, memory_share, prefix_pages, shared_tokens,
    weights,
};
use crate::graph::cache::Cache;
use crate::plan::parallel::Phase;
use crate::quantity::count::Count;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;

/// Memory of one stage for any number of sequences.
#[derive(Clone, Copy, Debug)]
pub(super) struct StageMemory<T> {
    weights: T,
    /// Cache of a sequence that holds the fewest tokens, and the most.
    least: T,
    most: T,
    /// Cache of the longest sequence that is held at least once, if any.
    longest: Option<T>,
    /// One of the prefixes that sequences share, and the number of them, if any.
    shared: Option<(SharedPages<T>, T)>,
    /// State of a sequence, if any.
    state: Option<T>,
    /// The pool of its caches, where layers of all kinds have one.
    pool: Option<PooledCaches<T>>,
    /// Activations of the images of a request, if any.
    images: Option<T>,
    /// Room for copied weights, if any.
    copied: Option<T>,
}

/// The shape of a server with `sequences` of each attention rank.
pub fn server_shape<R: Reading>(
    read: &R,
    instance: &Instance,
    phase: Phase,
    sequences: Qty<R::N>,
) -> ServerShape<Qty<R::N>> {
    let plan = &instance.plan;
    let degree = |symbol, value| read.count(Count::plan(symbol, value));
    let caches = || instance.sharded(phase).blocks.iter().flat_map(|block| &block.caches);
    ServerShape {
        devices: degree("devices", plan.devices()),
        stage_ranks: degree("ranks_of_a_stage", plan.devices() / plan.pp.max(1)),
        attention_ranks: degree("dp", plan.dp),
        sequences,
        several_attention_ranks: plan.dp > 1,
        one_stage: plan.pp == 1,
        latent: caches().any(|cache| matches!(cache, Cache::Latent { .. })),
        prompts_only: phase == Phase::Prefill,
    }
}

impl<N: Num> StageMemory<Qty<N>> {
    /// The memory of `stage` for sequences with the tokens of `held`.
    pub(super) fn of<R: Reading<N = N>>(
        read: &R,
        instance: &Instance,
        phase: Phase,
        stage: &StageKind,
        held: &CachedSequences<Qty<N>>,
        machine: &Machine<Qty<N>>,
    ) -> StageMemory<Qty<N>> {
        let model = instance.sharded(phase);
        let (mut quantised, mut native) = stage_elements(model, stage, &machine.quantised);
        if let Some((draft, alone)) = draft(instance, stage) {
            let more = stage_elements(draft.sharded(phase), alone, &machine.quantised);
            (quantised, native) = (quantised + more.0, native + more.1);
        }
        let count =
            |symbol, value| read.count(Count::derived(symbol, value, "elements on the fullest device"));
        let chip = &machine.chip;
        let pool = PooledCaches::of(read, instance, phase, stage, machine);
        let kept = |tokens, of: &dyn Fn(&Cache) -> bool| match pool {
            Some(pool) => pool.entries(tokens),
            None => stage_caches(read, instance, phase, stage, tokens, machine, &of),
        };
        let cached = |tokens| kept(tokens, &grows);
        let prefix = |SharedPrefixes { tokens, groups }| {
            let tokens = shared_tokens(tokens, read.count(instance.plan.cache_ranks()), chip);
            let bytes = kept(tokens, &keeps_all);
            (SharedPages { tokens, bytes }, groups)
        };
        StageMemory {
            weights: weights(count("quantised_elements", quantised), count("native_elements", native), chip),
            least: cached(held.least),
            most: cached(held.most),
            longest: held.longest.map(cached),
            shared: held.shared.map(prefix),
            state: match (stage_state(read, instance, phase, stage, machine), pool) {
                (Some(state), Some(pool)) => Some(state + pool.fixed),
                (state, pool) => state.or(pool.map(|pool| pool.fixed)),
            },
            pool,
            images: model
                .encoder
                .as_ref()
                .filter(|_| stage.first)
                .map(|encoder| images(read, encoder, machine)),
            copied: copied(read, model, stage, machine),
        }
    }

    /// The memory with sequences of these lengths.
    pub(super) fn footprint<R: Reading<N = N>>(
        &self,
        read: &R,
        instance: &Instance,
        phase: Phase,
        held: CachedSequences<Qty<N>>,
        machine: &Machine<Qty<N>>,
    ) -> Footprint<Qty<N>> {
        let (model, chip, sequences) = (instance.sharded(phase), &machine.chip, held.sequences);
        // Interpolated between whole pages of both lengths, so that more sequences never take less memory.
        let cache = self.least + held.part * (self.most - self.least);
        let sampled = sampled(read, instance, sequences, machine);
        let (hidden, widest, vocab) =
            (read.count(model.hidden), read.count(model.widest), read.count(model.vocab));
        let peak = activations(chip.max_batched_tokens, hidden, widest, sampled, vocab, chip);
        let peak = self.images.map_or(peak, |images| peak.max(images));
        let peak = self.copied.map_or(peak, |matrix| peak + matrix);
        let (pages, shared) = match self.shared {
            Some((prefix, groups)) => {
                let bytes = prefix_pages(sequences, groups, prefix.bytes);
                let pages = bytes + sequences * (cache - prefix.bytes);
                (pages, Some(SharedPages { bytes, ..prefix }))
            }
            None => (sequences * cache, None),
        };
        let pages = self.longest.map_or(pages, |longest| pages.max(longest));
        let pages = self.in_flight(read, held, machine).map_or(pages, |in_flight| pages + in_flight);
        let state = self.state.map(|state| sequences * state);
        let share = memory_share(machine, &server_shape(read, instance, phase, sequences));
        footprint(self.weights, (pages, shared), state, (peak, share), machine)
    }

    /// Bytes of a pool that the tokens of the steps in flight take, if any.
    fn in_flight<R: Reading<N = N>>(
        &self,
        read: &R,
        held: CachedSequences<Qty<N>>,
        machine: &Machine<Qty<N>>,
    ) -> Option<Qty<N>> {
        let all = held.sequences * held.most;
        let all = held.longest.map_or(all, |longest| all.max(longest));
        self.pool.map(|pool| pool.of_steps(read, all, machine))
    }

    /// The most tokens that each of these sequences may have at its end, where `spilled` bytes are in host memory.
    fn longest<R: Reading<N = N>>(
        &self,
        read: &R,
        (instance, phase, growth): (&Instance, Phase, &CacheGrowth<Qty<N>>),
        held: CachedSequences<Qty<N>>,
        machine: &Machine<Qty<N>>,
        spilled: Option<Qty<N>>,
    ) -> Qty<N> {
        let now = self.footprint(read, instance, phase, held, machine);
        let free = now.usable - now.weights - now.activations - now.buffers;
        let free = spilled.map_or(free, |spilled| free + spilled);
        let free = self.in_flight(read, held, machine).map_or(free, |in_flight| free - in_flight);
        let free = now.state.map_or(free, |state| free - state);
        let pages = free / (1.0 + machine.chip.fragmentation);
        let free_bytes = match self.shared {
            Some((prefix, groups)) => {
                let shared = prefix_pages(held.sequences, groups, prefix.bytes);
                (pages - shared) / held.sequences + prefix.bytes
            }
            None => pages / held.sequences,
        };
        growth.longest(free_bytes, held.most - held.least, held.part)
    }
}

/// Rows of logits for which memory is reserved: a start-up profile has those of a fixed number of sequences, at most the
/// tokens of a step.
fn sampled<R: Reading>(
    read: &R,
    instance: &Instance,
    sequences: Qty<R::N>,
    machine: &Machine<Qty<R::N>>,
) -> Qty<R::N> {
    let rows = match (&instance.draft, machine.sampler_drafts) {
        (Some(_), Some(profiled)) => checked(read, instance).min(profiled + 1.0),
        _ => checked(read, instance),
    };
    match machine.max_sequences {
        Some(most) => (most * rows).min(machine.chip.max_batched_tokens),
        None => sequences * rows,
    }
}

/// Memory of an instance that holds sequences of one range of lengths: what does not depend on their number is computed
/// once.
#[derive(Clone, Debug)]
pub struct InstanceMemory<T> {
    stages: Vec<(StageMemory<T>, CacheGrowth<T>)>,
}

impl<N: Num> InstanceMemory<Qty<N>> {
    /// The memory of `instance` for sequences that hold the tokens of `load`, in any number.
    pub fn of<R: Reading<N = N>>(
        read: &R,
        instance: &Instance,
        phase: Phase,
        load: CachedSequences<Qty<N>>,
        machine: &Machine<Qty<N>>,
    ) -> InstanceMemory<Qty<N>> {
        let of = |stage: &StageKind| {
            let stage = on_device(instance, stage);
            let growth = CacheGrowth::of(read, instance, phase, &stage, machine);
            (StageMemory::of(read, instance, phase, &stage, &load, machine), growth)
        };
        InstanceMemory { stages: instance.kinds.iter().map(of).collect() }
    }

    /// [`super::residency::fullest`] for sequences of these lengths.
    pub fn fullest<R: Reading<N = N>>(
        &self,
        read: &R,
        (instance, phase): (&Instance, Phase),
        load: CachedSequences<Qty<N>>,
        machine: &Machine<Qty<N>>,
    ) -> Footprint<Qty<N>> {
        fuller(self.stages.iter().map(|(stage, _)| stage.footprint(read, instance, phase, load, machine)))
    }

    /// The most tokens that each of these sequences may have at its end, where `spilled` bytes of a device are in host
    /// memory. It does not depend on the length of their prompts.
    pub fn longest<R: Reading<N = N>>(
        &self,
        read: &R,
        (instance, phase): (&Instance, Phase),
        load: CachedSequences<Qty<N>>,
        machine: &Machine<Qty<N>>,
        spilled: Option<Qty<N>>,
    ) -> Qty<N> {
        let of = |(stage, growth): &(StageMemory<Qty<N>>, CacheGrowth<Qty<N>>)| {
            stage.longest(read, (instance, phase, growth), load, machine, spilled)
        };
        self.stages.iter().map(of).reduce(|a, b| a.min(b)).expect("a stage at least")
    }
}
