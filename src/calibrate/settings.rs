//! Fit settings of each calibrated constant: its levels, and its initial guess.

use super::levels::LevelPrior;
use super::levels::PoolingLevel::{
    All, Attention, Cell, Family, Format, Lengths, ModelCell, Runtime, RuntimeFamily, RuntimeFormat,
    RuntimeLengths, Version,
};
use crate::spec::constant::{CONSTANTS, CalibratedConstant, ConstantEntry};

#[derive(Clone, Copy, Debug)]
pub struct FitSettings {
    pub server: &'static [LevelPrior],
    pub single_stream: &'static [LevelPrior],
    /// Initial value in a fit of whole profiles; `None` where kernel microbenchmarks identify the constant.
    pub initial: Option<InitialGuess>,
}

#[derive(Clone, Copy, Debug)]
pub struct InitialGuess {
    /// In base units: the order of magnitude of servers.
    pub value: f64,
    /// The unit in which a profile has it.
    pub unit: WrittenUnit,
}

#[derive(Clone, Copy, Debug)]
pub struct WrittenUnit {
    pub name: &'static str,
    /// Units per base unit.
    pub per_base: f64,
}

const MICROSECONDS: WrittenUnit = WrittenUnit { name: "us", per_base: 1e6 };
const MILLISECONDS: WrittenUnit = WrittenUnit { name: "ms", per_base: 1e3 };
const NUMBER: WrittenUnit = WrittenUnit { name: "", per_base: 1.0 };

const fn initial(value: f64, unit: WrittenUnit) -> Option<InitialGuess> {
    Some(InitialGuess { value, unit })
}

/// The same levels for servers and single streams, without an initial guess.
const fn levels(both: &'static [LevelPrior]) -> FitSettings {
    FitSettings { server: both, single_stream: both, initial: None }
}

/// The constants with an initial guess, in the order of the table.
pub fn initial_guesses() -> impl Iterator<Item = (&'static ConstantEntry, InitialGuess)> {
    CONSTANTS.iter().filter_map(|entry| Some((entry, settings(entry.of).initial?)))
}

/// Levels by model of `of`, after the others. Single streams have few rows of a model under several runtimes.
pub fn levels_by_model(of: CalibratedConstant) -> &'static [LevelPrior] {
    use CalibratedConstant as Of;
    match of {
        Of::GemmCompute
        | Of::GemmMemory
        | Of::AttentionCompute
        | Of::AttentionMemory
        | Of::MoeCompute
        | Of::MoeMemory => KERNELS_BY_MODEL,
        Of::KernelLaunch | Of::HostPerStep => LAUNCHES_BY_MODEL,
        Of::PrefillInterference => INTERFERENCE_BY_MODEL,
        Of::RequestOverhead => FRONT_END_BY_MODEL,
        Of::PromptQueue | Of::PromptBurst | Of::StepWait | Of::RequestWork => WAITS_BY_MODEL,
        Of::CollectiveLatency
        | Of::CollectiveBandwidth
        | Of::LaunchPerLayer
        | Of::QuantisedLaunch
        | Of::ExpertsLaunch
        | Of::HostPerSequence => &[],
    }
}

/// How `of` is fitted.
pub fn settings(of: CalibratedConstant) -> FitSettings {
    use CalibratedConstant as Of;
    match of {
        Of::GemmCompute => FitSettings { single_stream: STREAM, ..levels(GEMM) },
        Of::GemmMemory => FitSettings { single_stream: STREAM, ..levels(MEMORY) },
        Of::AttentionCompute => FitSettings { single_stream: STREAM_ATTENTION, ..levels(ATTENTION_COMPUTE) },
        Of::AttentionMemory => FitSettings { single_stream: STREAM_ATTENTION, ..levels(ATTENTION_MEMORY) },
        Of::MoeCompute => FitSettings { single_stream: STREAM_MOE, ..levels(GEMM) },
        Of::MoeMemory => FitSettings { single_stream: STREAM_MOE, ..levels(MEMORY) },
        Of::CollectiveLatency => levels(COLLECTIVE_LATENCY),
        Of::CollectiveBandwidth => FitSettings { single_stream: STREAM, ..levels(COLLECTIVE_BANDWIDTH) },
        Of::LaunchPerLayer => FitSettings { single_stream: STREAM_LAYER, ..levels(LAUNCH_PER_LAYER) },
        Of::KernelLaunch => FitSettings {
            server: KERNEL_LAUNCH,
            single_stream: STREAM_KERNEL,
            initial: initial(1e-6, MICROSECONDS),
        },
        Of::QuantisedLaunch => {
            FitSettings { initial: initial(1e-6, MICROSECONDS), ..levels(QUANTISED_LAUNCH) }
        }
        Of::ExpertsLaunch => FitSettings {
            server: EXPERTS_LAUNCH,
            single_stream: STREAM_EXPERTS,
            initial: initial(5e-6, MICROSECONDS),
        },
        Of::HostPerStep => levels(HOST_PER_STEP),
        Of::HostPerSequence => {
            FitSettings { initial: initial(1e-5, MICROSECONDS), ..levels(HOST_PER_SEQUENCE) }
        }
        Of::PrefillInterference => levels(PREFILL_INTERFERENCE),
        Of::RequestOverhead => FitSettings { initial: initial(1e-2, MILLISECONDS), ..levels(WAITS) },
        Of::PromptQueue => FitSettings { initial: initial(0.3, NUMBER), ..levels(WAITS) },
        Of::PromptBurst => FitSettings { initial: initial(0.05, NUMBER), ..levels(SCHEDULER) },
        Of::StepWait => FitSettings { initial: initial(1.0, NUMBER), ..levels(SCHEDULER) },
        Of::RequestWork => FitSettings { initial: initial(1e-4, MICROSECONDS), ..levels(SCHEDULER) },
    }
}

/// Fits of kernel microbenchmarks are this near to the kernels of servers.
const GEMM: &[LevelPrior] =
    &[(All, 0.15), (Runtime, 0.08), (Family, 0.1), (Format, 0.1), (RuntimeFormat, 0.05), (Cell, 0.12)];
const MEMORY: &[LevelPrior] = &[
    (All, 0.15),
    (Runtime, 0.08),
    (Family, 0.1),
    (Format, 0.1),
    (RuntimeFormat, 0.05),
    (Version, 0.05),
    (Cell, 0.15),
];
const ATTENTION_COMPUTE: &[LevelPrior] = &[(All, 0.15), (Runtime, 0.1), (Family, 0.1), (Attention, 0.2)];
const ATTENTION_MEMORY: &[LevelPrior] =
    &[(All, 0.15), (Runtime, 0.15), (Family, 0.15), (Attention, 0.2), (Cell, 0.15)];
const COLLECTIVE_LATENCY: &[LevelPrior] = &[(All, 1.0), (Runtime, 0.3), (Family, 0.2), (Cell, 0.12)];
const COLLECTIVE_BANDWIDTH: &[LevelPrior] = &[(All, 0.3), (Family, 0.1)];
const LAUNCH_PER_LAYER: &[LevelPrior] = &[(All, 1.0)];
const KERNEL_LAUNCH: &[LevelPrior] =
    &[(All, 1.0), (Runtime, 0.2), (Family, 0.1), (Version, 0.1), (Cell, 0.15)];
const QUANTISED_LAUNCH: &[LevelPrior] = &[(All, 1.0), (Runtime, 0.2), (Format, 0.3)];
const EXPERTS_LAUNCH: &[LevelPrior] = &[(All, 1.0), (Runtime, 0.2), (Format, 0.2)];
const HOST_PER_STEP: &[LevelPrior] = &[(All, 1.0), (Runtime, 0.3), (Version, 0.1), (Cell, 0.12)];
const HOST_PER_SEQUENCE: &[LevelPrior] = &[(All, 1.0), (Runtime, 0.3), (Version, 0.3)];
const PREFILL_INTERFERENCE: &[LevelPrior] =
    &[(All, 0.5), (Runtime, 0.1), (Lengths, 0.3), (RuntimeLengths, 0.1), (Version, 0.1)];
/// Scheduler constants: they differ most between runtimes, and with whether all requests have the same lengths.
const SCHEDULER: &[LevelPrior] =
    &[(All, 2.0), (Runtime, 0.7), (Lengths, 0.7), (RuntimeLengths, 0.1), (RuntimeFamily, 0.3)];
/// Scheduler constants that differ most between versions.
const WAITS: &[LevelPrior] = &[
    (All, 2.0),
    (Runtime, 0.7),
    (Lengths, 0.7),
    (RuntimeLengths, 0.1),
    (RuntimeFamily, 0.3),
    (Version, 0.15),
];

const KERNELS_BY_MODEL: &[LevelPrior] = &[(ModelCell, 0.06)];
const LAUNCHES_BY_MODEL: &[LevelPrior] = &[(ModelCell, 0.1)];
const INTERFERENCE_BY_MODEL: &[LevelPrior] = &[(ModelCell, 0.1)];
const FRONT_END_BY_MODEL: &[LevelPrior] = &[(ModelCell, 0.3)];
const WAITS_BY_MODEL: &[LevelPrior] = &[(ModelCell, 0.15)];

/// Kernel constants of single-stream runtimes: few vendors tune them, so generations and backends differ widely.
const STREAM: &[LevelPrior] =
    &[(All, 0.5), (Runtime, 0.2), (Family, 0.5), (Format, 0.2), (RuntimeFamily, 0.2), (Version, 0.3)];
const STREAM_ATTENTION: &[LevelPrior] =
    &[(All, 0.5), (Runtime, 0.3), (Family, 0.4), (RuntimeFamily, 0.3), (Version, 0.3)];
const STREAM_MOE: &[LevelPrior] = &[(All, 0.5), (Runtime, 0.2), (Family, 0.5), (Format, 0.2), (Version, 0.1)];
const STREAM_LAYER: &[LevelPrior] = &[
    (All, 1.5),
    (Runtime, 0.3),
    (Family, 0.2),
    (RuntimeFamily, 0.1),
    // A program around an engine may wait several times as long.
    (Version, 1.0),
];
const STREAM_KERNEL: &[LevelPrior] = &[(All, 2.0), (Runtime, 0.2), (Family, 0.3), (Version, 0.1)];
const STREAM_EXPERTS: &[LevelPrior] = &[(All, 2.0), (Runtime, 0.2), (Family, 0.1), (Version, 0.1)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::unit::COUNT;
    use crate::spec::constant::ConstantSection;

    /// A constant outside `constants` has no microbenchmark, so a fit of whole profiles needs its initial value.
    #[test]
    fn a_constant_without_a_microbenchmark_has_an_initial_guess() {
        for entry in CONSTANTS {
            let settings = settings(entry.of);
            assert_eq!(
                settings.initial.is_some(),
                entry.section != ConstantSection::Constants,
                "{}",
                entry.key
            );
            for levels in [settings.server, settings.single_stream] {
                assert_eq!(levels[0].0, All, "{}", entry.key);
            }
            let Some(initial) = settings.initial else { continue };
            assert!(initial.value > 0.0, "{}", entry.key);
            assert_eq!(initial.unit.name.is_empty(), entry.kind.unit() == COUNT, "{}", entry.key);
        }
    }
}
