//! The TTFT of a benchmark that starts with all its clients at once.
//!
//! Its clients send their first prompts at the same moment, so that these wait for each other; later they come one by
//! one. A mean over a run with few requests of each client keeps a share of that first wave.

use super::instance::Instance;
use super::iteration::prefill_among;
use super::terms::WorkloadTerms;
use crate::cost::machine::Machine;
use crate::plan::parallel::Phase;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;
use crate::quantity::unit::SECOND;

/// Mean TTFT of `requests` prompts that arrive at an idle instance at once.
///
/// The scheduler fills each step with whole prompts up to its token budget; the prompts of step `i` have their first
/// token after `i` steps.
pub fn first_wave<R: Reading>(
    read: &R,
    (instance, requests): (&Instance, u64),
    machine: &Machine<Qty<R::N>>,
    terms: &WorkloadTerms<Qty<R::N>>,
) -> Qty<R::N> {
    let ranks = instance.plan.dp.max(1);
    let on_rank = requests.div_ceil(ranks).max(1);
    let budget = machine.of(Phase::Prefill).chip.max_batched_tokens.value();
    let fit = (budget / (terms.isl - terms.prefix).value()).floor().max(1.0) as u64;
    let in_step = fit.min(on_rank);
    let together = in_step.saturating_mul(ranks.min(requests.max(1)));
    read.within(format_args!("first_wave"), || {
        let step = prefill_among(read, (instance, together), machine, terms, &mut ()).total;
        let steps = Qty::from(on_rank.div_ceil(in_step) as f64);
        (machine.chip.request_overhead + (steps + 1.0) / 2.0 * step).is(&FIRST_WAVE)
    })
}

/// Mean TTFT of a run of `requests` requests of each client, the first of which belong to the first wave.
pub fn mean_from_start<N: Num>(steady: Qty<N>, wave: Qty<N>, requests: Qty<N>) -> Qty<N> {
    (steady + (wave.max(steady) - steady) / requests).is(&MEAN_FROM_START)
}

crate::formulas! {
    FIRST_WAVE {
        symbol: "ttft_first_wave",
        unit: SECOND,
        why: "prompts that arrive at once share steps as the token budget allows, and wait for (steps + 1) / 2 of them on average",
        cite: "the mean of the first n numbers; https://docs.vllm.ai/en/stable/configuration/optimization.html: \
               chunked prefill fills each step up to max_num_batched_tokens",
    }
    MEAN_FROM_START {
        symbol: "ttft_mean_from_start",
        unit: SECOND,
        why: "one of the requests of each client belongs to the first wave, the others to steady operation",
        cite: "the mean of a run without warm-up: https://github.com/SemiAnalysisAI/InferenceX, \
               benchmarks/benchmark_lib.sh (num_prompts, max_concurrency, request_rate inf)",
    }
}
