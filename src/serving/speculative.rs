//! Speculative decoding: draft passes before each step of the model, which verifies all draft tokens at once.
//!
//! The draft and its acceptance rate are inputs.

use super::instance::{DraftInstance, Instance};
use super::step::{CostObserver, StepTime, batch, pass};
use super::step_part::StepPart;
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

/// Mean tokens per step: one from the model, and the accepted share `acceptance` of `tokens` draft tokens.
pub fn accepted<N: Num>(acceptance: Qty<N>, tokens: u64) -> Qty<N> {
    (1.0 + tokens as f64 * acceptance).is(&ACCEPTED)
}

/// A step of the requests of `decoding`, which have `past` tokens each, preceded by one draft pass per draft token.
pub(super) fn with_draft_passes<R: Reading>(
    read: &R,
    step: StepTime<Qty<R::N>>,
    draft: &DraftInstance,
    machine: &Machine<Qty<R::N>>,
    (decoding, past): (&Batch<Qty<R::N>>, Qty<R::N>),
    watch: &mut impl CostObserver<R::N>,
) -> StepTime<Qty<R::N>> {
    let ranks = read.count(Count::plan("dp", draft.instance.plan.dp));
    let one = checked(read, &draft.instance);
    let load = batch(read, &draft.instance, Phase::Decode, decoding.sequences, one, past);
    let load = load.among(decoding.all_sequences, ranks);
    drafted(read, step, (draft, Phase::Decode, draft.tokens), &load, machine, watch, |step, one| {
        let times = read.count(Count::plan("guessed_tokens", draft.tokens));
        (step + times * one).is(&GUESSED)
    })
}

/// Prefill of prompts by model and draft, of which `load` is the draft's.
pub(super) fn with_draft_prompt<R: Reading>(
    read: &R,
    prompt: StepTime<Qty<R::N>>,
    draft: &DraftInstance,
    machine: &Machine<Qty<R::N>>,
    load: &Batch<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> StepTime<Qty<R::N>> {
    let both = |prompt: Qty<R::N>, one: Qty<R::N>| (prompt + one).is(&READ_TWICE);
    drafted(read, prompt, (draft, Phase::Prefill, 1), load, machine, watch, both)
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
        why: "a step yields one token of its own and the accepted draft tokens: 1 + draft tokens x acceptance, where the acceptance is accepted / drafted, as servers report it",
        cite: "vLLM (vllm/v1/spec_decode/metrics.py: mean acceptance length = 1 + accepted / drafts), SGLang, llama.cpp; of a chance a of each next token, accepted / drafted = (a + a^2 + ... + a^k) / k (Leviathan et al. 2023, equation 1)",
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
    fn a_step_yields_its_token_and_the_accepted_ones() {
        let yields = |acceptance: f64, tokens| accepted(Qty::<f64>::from(acceptance), tokens).value();
        assert_eq!((yields(0.7, 0), yields(0.0, 5), yields(1.0, 3)), (1.0, 1.0, 4.0));
        // A server's own report: 167 of 259 draft tokens accepted, three a step, mean acceptance length 2.92.
        assert!((yields(167.0 / 259.0, 3) - 2.92).abs() < 0.02);
    }
}
