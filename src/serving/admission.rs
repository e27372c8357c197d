//! The requests that a runtime admits, and the memory that they take on the fullest device.

use std::borrow::Cow;

use super::instance::Instance;
use super::longest::max_context;
use super::residency::{CachedSequences, fullest, occupied};
use super::stage_memory::InstanceMemory;
use super::terms::{LongestRequest, WorkloadTerms};
use crate::cost::machine::Machine;
use crate::cost::memory::Footprint;
use crate::plan::parallel::Phase;
use crate::quantity::count::{Count, Origin};
use crate::quantity::num::Qty;
use crate::quantity::read::Reading;

/// Memory of the fullest device at `concurrency`, as the runtime admits requests.
pub fn residency<R: Reading>(
    read: &R,
    instance: &Instance,
    phase: Phase,
    machine: &Machine<Qty<R::N>>,
    terms: &WorkloadTerms<Qty<R::N>>,
    concurrency: u64,
) -> Footprint<Qty<R::N>> {
    let machine = machine.of(phase);
    let held = admitted(read, instance, phase, machine, (terms, concurrency));
    fullest(read, instance, phase, held, machine)
}

/// The same for an instance whose memory was prepared: see [`prepared`].
pub fn residency_of<R: Reading>(
    read: &R,
    memory: &InstanceMemory<Qty<R::N>>,
    (instance, phase): (&Instance, Phase),
    machine: &Machine<Qty<R::N>>,
    (terms, concurrency): (&WorkloadTerms<Qty<R::N>>, u64),
) -> Footprint<Qty<R::N>> {
    let machine = machine.of(phase);
    let held = admitted(read, instance, phase, machine, (terms, concurrency));
    memory.fullest(read, (instance, phase), held, machine)
}

/// The memory of an instance for requests of the workload, in any number.
pub fn prepared<R: Reading>(
    read: &R,
    instance: &Instance,
    phase: Phase,
    machine: &Machine<Qty<R::N>>,
    terms: &WorkloadTerms<Qty<R::N>>,
) -> InstanceMemory<Qty<R::N>> {
    let machine = machine.of(phase);
    // The lengths do not depend on the number.
    let one = admitted(read, instance, phase, machine, (terms, 1));
    InstanceMemory::of(read, instance, phase, one, machine)
}

/// The longest context of an instance at `concurrency`, where `spilled` bytes of a device are in host memory: a prefill
/// worker holds prompts only.
pub fn longest_context<R: Reading>(
    read: &R,
    memory: Option<&InstanceMemory<Qty<R::N>>>,
    (instance, phase): (&Instance, Phase),
    machine: &Machine<Qty<R::N>>,
    (terms, concurrency): (&WorkloadTerms<Qty<R::N>>, u64),
    spilled: Option<Qty<R::N>>,
) -> Qty<R::N> {
    let machine = machine.of(phase);
    read.within(format_args!("max_context"), || {
        let memory = match memory {
            Some(memory) => Cow::Borrowed(memory),
            None => Cow::Owned(prepared(read, instance, phase, machine, terms)),
        };
        let held = admitted(read, instance, phase, machine, (terms, concurrency));
        let fits = memory.longest(read, (instance, phase), held, machine, spilled);
        let fits = match phase {
            Phase::Prefill => fits + terms.osl,
            Phase::Decode => fits,
        };
        let taken = terms.longest.map(|longest| longest.tokens);
        max_context(read, fits, terms.osl, (instance.max_context, taken)).result()
    })
}

/// The most tokens that the longest request of a server may have, for which it starts: one of a rank, or each of a rank
/// at `concurrency` where the cache of every slot is allocated. None where its length is not stated.
pub fn longest_at_start<R: Reading>(
    read: &R,
    (instance, phase): (&Instance, Phase),
    machine: &Machine<Qty<R::N>>,
    terms: &WorkloadTerms<Qty<R::N>>,
    concurrency: u64,
) -> Option<Qty<R::N>> {
    let LongestRequest { tokens, every_slot } = terms.longest?;
    let machine = machine.of(phase);
    let of_load = admitted(read, instance, phase, machine, (terms, concurrency));
    let sequences = if every_slot { of_load.sequences } else { Qty::from(1.0) };
    let held = CachedSequences::whole(sequences, tokens);
    let memory = InstanceMemory::of(read, instance, phase, held, machine);
    Some(memory.longest(read, (instance, phase), held, machine, None))
}

/// Sequences of a rank at `concurrency`, and the tokens that they hold.
pub fn admitted<R: Reading>(
    read: &R,
    instance: &Instance,
    phase: Phase,
    machine: &Machine<Qty<R::N>>,
    (terms, concurrency): (&WorkloadTerms<Qty<R::N>>, u64),
) -> CachedSequences<Qty<R::N>> {
    let rank = concurrency.div_ceil(instance.plan.dp).max(1);
    let rank = read.count(Count {
        value: rank,
        symbol: "requests_per_rank",
        origin: Origin::Plan("concurrency / dp"),
    });
    let longest = match terms.longest {
        Some(LongestRequest { tokens, every_slot: true }) => {
            let slots = machine.max_sequences.map_or(rank, |prepared| rank.max(prepared));
            return CachedSequences::whole(slots, tokens);
        }
        Some(LongestRequest { tokens, every_slot: false }) => Some(tokens),
        None => None,
    };
    let of_load = match phase {
        Phase::Prefill => CachedSequences::whole(rank, terms.isl).sharing(terms.shared),
        Phase::Decode => CachedSequences {
            sequences: rank,
            least: terms.isl,
            most: terms.isl + terms.osl,
            part: occupied(rank, machine.chip.answer_reserved),
            shared: terms.shared,
            longest: None,
        },
    };
    CachedSequences { longest, ..of_load }
}
