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
        Some(draft) => read.count(Count::plan("checked_tokens", draft.tokens + 1)),
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
pub(super) fn with_draft_passes<R: Reading>(
    read: &R,
    step: StepTime<Qty<R::N>>,
    draft: &DraftInstance,
    machine: &Machine<Qty<R::N>>,
    terms: &WorkloadTerms<Qty<R::N>>,
    batch: &Batch<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> StepTime<Qty<R::N>> {
    let ranks = read.count(Count::plan("dp", draft.instance.plan.dp));
    let load = decode_batch(read, &draft.instance, terms, batch.sequences).among(batch.all_sequences, ranks);
    guessed(read, step, draft, &load, machine, watch)
}

/// The same, where the draft has this load.
pub(super) fn guessed<R: Reading>(
    read: &R,
    step: StepTime<Qty<R::N>>,
    draft: &DraftInstance,
    load: &Batch<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> StepTime<Qty<R::N>> {
    drafted(read, step, (draft, Phase::Decode, draft.tokens), load, machine, watch, |step, one| {
        let times = read.count(Count::plan("guessed_tokens", draft.tokens));
        (step + times * one).is(&GUESSED)
    })
}

/// Prefill of a prompt by model and draft.
pub(super) fn with_draft_prompt<R: Reading>(
    read: &R,
    prompt: StepTime<Qty<R::N>>,
    (draft, requests): (&DraftInstance, u64),
    machine: &Machine<Qty<R::N>>,
    terms: &WorkloadTerms<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> StepTime<Qty<R::N>> {
    let load = prompt_batch(read, (&draft.instance, requests), terms);
    let both = |prompt: Qty<R::N>, one: Qty<R::N>| (prompt + one).is(&READ_TWICE);
    drafted(read, prompt, (draft, Phase::Prefill, 1), &load, machine, watch, both)
}

/// A step with `times` passes of the draft, whose times `join` puts together with those of the step.
fn drafted<R: Reading>(
    read: &R,
    step: StepTime<Qty<R::N>>,
    (draft, phase, times): (&DraftInstance, Phase, u64),
    load: &Batch<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
    join: impl Fn(Qty<R::N>, Qty<R::N>) -> Qty<R::N>,
) -> StepTime<Qty<R::N>> {
    let one =
        read.within(format_args!("draft"), || pass(read, &draft.instance, phase, load, machine, &mut ()));
    watch.on_part(phase, StepPart::Draft);
    watch.on_idle(phase, "draft", times, one.total);
    StepTime {
        total: join(step.total, one.total),
        slowest: join(step.slowest, one.total),
        compute_time: join(step.compute_time, one.compute_time),
        memory_time: join(step.memory_time, one.memory_time),
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
