//! A static batch: requests that start together and take every step together, without a scheduler.

use super::instance::Instance;
use super::iteration::decode_batch;
use super::residency::{CachedSequences, fullest};
use super::step::{CostObserver, StepTime, batch, step};
use super::terms::WorkloadTerms;
use crate::cost::machine::{Chip, Machine};
use crate::cost::memory::Footprint;
use crate::plan::parallel::Phase;
use crate::quantity::count::{Count, Origin};
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;
use crate::quantity::unit::{COUNT, SECOND, TOKEN};

/// A phase of a static batch on one instance.
#[derive(Clone, Copy, Debug)]
pub struct StaticStep<T> {
    /// Its step: the whole prompts of the batch at once, or one token for each request at the mean context.
    pub step: StepTime<T>,
    /// Memory of the fullest device at the end of the phase.
    pub memory: Footprint<T>,
    /// Sequences of an attention rank.
    #[cfg_attr(not(feature = "internals"), allow(dead_code))]
    pub sequences: T,
    /// Tokens of an attention rank in the step.
    #[cfg_attr(not(feature = "internals"), allow(dead_code))]
    pub tokens: T,
    /// Tokens per second: of the prompts in prefill, of the output in decode.
    pub tok_s: T,
}

/// Evaluates a phase of `requests` requests on `instance`.
pub fn static_step<R: Reading>(
    read: &R,
    (instance, phase): (&Instance, Phase),
    requests: u64,
    terms: &WorkloadTerms<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> StaticStep<Qty<R::N>> {
    read.within(format_args!("{}", phase.name()), || {
        let size = Count { value: requests, symbol: "batch", origin: Origin::Workload("batch") };
        let all = read.count(size);
        let ranks = read.count(Count::plan("dp", instance.plan.dp));
        let sequences = (all / ranks).ceil().is(&SEQUENCES);
        let load = match phase {
            Phase::Prefill => {
                let new = terms.isl - terms.prefix;
                batch(read, instance, phase, sequences, new, terms.prefix)
            }
            Phase::Decode => decode_batch(read, instance, terms, sequences),
        };
        let load = load.among(all, ranks);
        let one = step(read, instance, phase, &load, machine, watch);
        let (length, served) = match phase {
            Phase::Prefill => (terms.isl, all * (terms.isl - terms.prefix)),
            Phase::Decode => (terms.isl + terms.osl, all),
        };
        // The step is as large as its batch: no scheduler cuts it, and nothing waits for admission.
        let chip = Chip { max_batched_tokens: load.tokens, ..machine.chip };
        let machine = Machine { chip, max_sequences: None, ..machine.clone() };
        let held = CachedSequences::whole(sequences, length).sharing(terms.shared);
        StaticStep {
            step: one,
            memory: fullest(read, instance, phase, held, &machine),
            sequences,
            tokens: load.tokens,
            tok_s: rate(served, one.total).result(),
        }
    })
}

fn rate<N: Num>(tokens: Qty<N>, time: Qty<N>) -> Qty<N> {
    (tokens * Qty::literal(1.0 * TOKEN) / time).is(&STATIC_TOK_S)
}

crate::formulas! {
    SEQUENCES {
        symbol: "sequences_per_rank",
        unit: COUNT,
        why: "attention ranks divide the requests of a batch; the fullest decides",
        cite: "definition",
    }
    STATIC_TOK_S {
        symbol: "static_tok_s",
        unit: TOKEN.per(SECOND),
        why: "all requests of a static batch take the step together, and the next one starts when it has passed all stages",
        cite: "NVIDIA TensorRT-LLM performance analysis (static batching)",
    }
}
