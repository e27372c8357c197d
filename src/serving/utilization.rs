//! How much of its devices a step uses: FLOPs, bandwidth, pipeline stages.

use super::step::StepTime;
use crate::cost::machine::Chip;
use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::{COUNT, TOKEN};

/// Model FLOPs utilisation of a step: `flops` of one device of each stage in `time`, against the highest dense peak of
/// the formats in use.
pub fn mfu<N: Num>(flops: Qty<N>, chip: &Chip<Qty<N>>, time: Qty<N>) -> Qty<N> {
    let peak = chip.weight_peak.max(chip.native_peak).max(chip.attention_peak);
    (flops / (peak * time)).is(&MFU)
}

/// Model bandwidth utilisation of a step: `bytes` of device memory of one device of each stage in `time`.
pub fn mbu<N: Num>(bytes: Qty<N>, chip: &Chip<Qty<N>>, time: Qty<N>) -> Qty<N> {
    (bytes / (chip.bandwidth * time)).is(&MBU)
}

/// Share of a `cycle` in which pipeline stages wait, with `micro_batches` micro-batches in `stages` stages.
pub fn bubble<N: Num>(
    step: &StepTime<Qty<N>>,
    stages: Qty<N>,
    micro_batches: Qty<N>,
    cycle: Qty<N>,
) -> Qty<N> {
    (1.0 - micro_batches * step.total / (stages * cycle)).is(&BUBBLE)
}

/// Input tokens per second of one replica or worker: `requests_per_s` of a deployment with `new_tokens` each that are
/// not in the prefix cache, over `replicas`.
pub fn prefill_tok_s<N: Num>(requests_per_s: Qty<N>, new_tokens: Qty<N>, replicas: Qty<N>) -> Qty<N> {
    (requests_per_s * new_tokens * Qty::literal(1.0 * TOKEN) / replicas).is(&PREFILL_TOK_S)
}

/// Fraction of time that each of `ranks` attention ranks spends on prefill at `rate` requests per second, each of which
/// takes `prompt`.
pub fn prompt_load<N: Num>(rate: Qty<N>, prompt: Qty<N>, ranks: Qty<N>) -> Qty<N> {
    (rate * prompt / ranks).is(&PROMPT_LOAD)
}

crate::formulas! {
    PROMPT_LOAD {
        symbol: "prompt_load",
        unit: COUNT,
        why: "fraction of time that an attention rank spends on prefill at this rate",
        cite: "utilisation law",
    }
    MFU {
        symbol: "mfu",
        unit: COUNT,
        why: "FLOPs of the step over what the dense peak does in its time; a device counts while its stage works",
        cite: "Chowdhery et al. 2022 (PaLM), appendix B",
    }
    MBU {
        symbol: "mbu",
        unit: COUNT,
        why: "bytes of device memory of the step over what the peak bandwidth moves in its time",
        cite: "Databricks 2023, LLM Inference Performance Engineering: Best Practices",
    }
    BUBBLE {
        symbol: "bubble_share",
        unit: COUNT,
        why: "all stages take one step for each micro-batch and wait for the rest of the cycle",
        cite: "Huang et al. 2019 (GPipe), 2.3",
    }
    PREFILL_TOK_S {
        symbol: "prefill_tok_s",
        unit: TOKEN.per(crate::quantity::unit::SECOND),
        why: "each request brings its prompt, less the part in the prefix cache; a router spreads requests evenly",
        cite: "definition",
    }
}
