//! Speculative decoding: draft passes before each step of the model, which verifies all draft tokens at once.
//!
//! The draft and its acceptance rate are inputs.

use super::instance::{DraftInstance, Instance};
use super::iteration::{decode_batch, prompt_batch};
use super::step::{CostObserver, StepTime, pass};
use super::step_part::StepPart;
use super::terms::WorkloadTerms;
use crate::cost::batch::Batch;
use crate::cost::machine::Machine;
use crate::plan::parallel::Phase;
use crate::quantity::count::Count;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;
use crate::quantity::unit::{COUNT, SECOND};

/// Tokens of a sequence in one decode step: the last token, and the draft tokens after it.
pub(super) fn checked<R: Reading>(read: &R, instance: &Instance) -> Qty<R::N> {
    match &instance.draft {
        Some(ahead) => read.count(Count::plan("checked_tokens", ahead.tokens + 1)),
        None => Qty::from(1.0),
    }
}

/// Mean tokens per step: one from the model, and every draft token before the first rejected one.
///
/// `tokens` draft tokens, each accepted with probability `acceptance` if all earlier ones were.
pub fn accepted<N: Num>(acceptance: Qty<N>, tokens: u64) -> Qty<N> {
    let one = Qty::from(1.0);
    (0..tokens).fold(one, |yielded, _| one + acceptance * yielded).is(&ACCEPTED)
}

/// A step preceded by one draft pass per draft token.
pub(super) fn guessing<R: Reading>(
    read: &R,
    step: StepTime<Qty<R::N>>,
    ahead: &DraftInstance,
    machine: &Machine<Qty<R::N>>,
    terms: &WorkloadTerms<Qty<R::N>>,
    batch: &Batch<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> StepTime<Qty<R::N>> {
    let ranks = read.count(Count::plan("dp", ahead.instance.plan.dp));
    let load = decode_batch(read, &ahead.instance, terms, batch.sequences).among(batch.all_sequences, ranks);
    let one = read.within(format_args!("draft"), || {
        pass(read, &ahead.instance, Phase::Decode, &load, machine, &mut ())
    });
    watch.on_part(Phase::Decode, StepPart::Draft);
    watch.on_idle(Phase::Decode, "draft", ahead.tokens, one.total);
    let times = read.count(Count::plan("guessed_tokens", ahead.tokens));
    let with = |step: Qty<R::N>, draft: Qty<R::N>| (step + times * draft).is(&GUESSED);
    StepTime {
        total: with(step.total, one.total),
        slowest: with(step.slowest, one.total),
        compute_time: with(step.compute_time, one.compute_time),
        memory_time: with(step.memory_time, one.memory_time),
    }
}

/// Prefill of a prompt by model and draft.
pub(super) fn reading<R: Reading>(
    read: &R,
    prompt: StepTime<Qty<R::N>>,
    (ahead, requests): (&DraftInstance, u64),
    machine: &Machine<Qty<R::N>>,
    terms: &WorkloadTerms<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> StepTime<Qty<R::N>> {
    let load = prompt_batch(read, (&ahead.instance, requests), terms);
    let one = read.within(format_args!("draft"), || {
        pass(read, &ahead.instance, Phase::Prefill, &load, machine, &mut ())
    });
    watch.on_part(Phase::Prefill, StepPart::Draft);
    watch.on_idle(Phase::Prefill, "draft", 1, one.total);
    let with = |prompt: Qty<R::N>, draft: Qty<R::N>| (prompt + draft).is(&READ_TWICE);
    StepTime {
        total: with(prompt.total, one.total),
        slowest: with(prompt.slowest, one.total),
        compute_time: with(prompt.compute_time, one.compute_time),
        memory_time: with(prompt.memory_time, one.memory_time),
    }
}

crate::formulas! {
    ACCEPTED {
        symbol: "accepted_tokens",
        unit: COUNT,
        why: "a step yields one token of its own and the accepted draft tokens: 1 + a + a^2 + ... + a^k",
        cite: "Leviathan et al. 2023 (speculative decoding), equation 1",
    }
    GUESSED {
        symbol: "guessed_step",
        unit: SECOND,
        why: "one draft pass per draft token, then the model verifies all of them in one step",
        cite: "Leviathan et al. 2023 (speculative decoding), section 3",
    }
    READ_TWICE {
        symbol: "prompt_with_draft",
        unit: SECOND,
        why: "the draft prefills the prompt too, for its own KV cache",
        cite: "Leviathan et al. 2023 (speculative decoding), section 2",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_yields_a_geometric_sum() {
        let yields = |acceptance: f64, tokens| accepted(Qty::<f64>::from(acceptance), tokens).value();
        assert_eq!((yields(0.7, 0), yields(0.0, 5), yields(1.0, 3)), (1.0, 1.0, 4.0));
        let closed = (1.0 - 0.7f64.powi(4)) / (1.0 - 0.7);
        assert!((yields(0.7, 3) - closed).abs() < 1e-12);
    }
}
