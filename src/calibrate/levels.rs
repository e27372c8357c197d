//! Levels of a calibration constant, and the prior standard deviation at each.
//!
//! The logarithm of a constant is a sum over levels: first shared by all runtimes and devices, then by a runtime, a
//! generation or a format, and last by a cell of all of them. The narrower the level, the stronger the shrinkage to
//! zero: an unmeasured combination falls back to the values of its parts elsewhere (hierarchical shrinkage: Gelman
//! and Hill, Data Analysis Using Regression and Multilevel Models, 2007, chapter 12).

use super::sample::CalibrationSample;
use crate::spec::runtime::{AttentionKind, CalibratedConstant, CalibrationFactor};

/// The property that rows share at a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolingLevel {
    /// None: all rows.
    All,
    /// The runtime.
    Runtime,
    /// The device generation.
    Family,
    /// The weight format.
    Format,
    /// The attention type.
    Attention,
    /// Whether all requests have the same lengths.
    Lengths,
    /// Runtime and generation.
    RuntimeFamily,
    /// Runtime and weight format.
    RuntimeFormat,
    /// Runtime and lengths.
    RuntimeLengths,
    /// Runtime and its version.
    Version,
    /// Runtime, generation, weight format and attention type.
    Cell,
}

/// A level and the prior standard deviation of the logarithm of a constant there. Selected among about a dozen sets
/// by the lowest errors in cross-validation over models and hardware.
pub type LevelPrior = (PoolingLevel, f64);

const GEMM: &[LevelPrior] = &[
    (PoolingLevel::All, 0.5),
    (PoolingLevel::Runtime, 0.08),
    (PoolingLevel::Family, 0.1),
    (PoolingLevel::Format, 0.1),
    (PoolingLevel::RuntimeFormat, 0.05),
    (PoolingLevel::Cell, 0.12),
];
const MEMORY: &[LevelPrior] = &[
    (PoolingLevel::All, 0.5),
    (PoolingLevel::Runtime, 0.08),
    (PoolingLevel::Family, 0.1),
    (PoolingLevel::Format, 0.1),
    (PoolingLevel::RuntimeFormat, 0.05),
    (PoolingLevel::Version, 0.05),
    (PoolingLevel::Cell, 0.15),
];
/// Scheduler constants: they differ most between runtimes, and with whether all requests have the same lengths.
const SCHEDULER: &[LevelPrior] = &[
    (PoolingLevel::All, 2.0),
    (PoolingLevel::Runtime, 0.7),
    (PoolingLevel::Lengths, 0.7),
    (PoolingLevel::RuntimeLengths, 0.1),
    (PoolingLevel::RuntimeFamily, 0.3),
];
/// Scheduler constants that differ most between versions.
const WAITS: &[LevelPrior] = &[
    (PoolingLevel::All, 2.0),
    (PoolingLevel::Runtime, 0.7),
    (PoolingLevel::Lengths, 0.7),
    (PoolingLevel::RuntimeLengths, 0.1),
    (PoolingLevel::RuntimeFamily, 0.3),
    (PoolingLevel::Version, 0.15),
];

/// Kernel constants of single-stream runtimes: few vendors tune them, so generations and backends differ widely.
const STREAM: &[LevelPrior] = &[
    (PoolingLevel::All, 0.5),
    (PoolingLevel::Runtime, 0.2),
    (PoolingLevel::Family, 0.5),
    (PoolingLevel::Format, 0.2),
    (PoolingLevel::RuntimeFamily, 0.2),
    (PoolingLevel::Version, 0.3),
];

/// The levels of a single-stream constant.
fn stream_levels(of: CalibratedConstant) -> &'static [LevelPrior] {
    match of {
        CalibratedConstant::LaunchPerLayer => &[
            (PoolingLevel::All, 1.5),
            (PoolingLevel::Runtime, 0.3),
            (PoolingLevel::Family, 0.2),
            (PoolingLevel::RuntimeFamily, 0.1),
            // A program around an engine may wait several times as long.
            (PoolingLevel::Version, 1.0),
        ],
        CalibratedConstant::AttentionCompute | CalibratedConstant::AttentionMemory => &[
            (PoolingLevel::All, 0.5),
            (PoolingLevel::Runtime, 0.3),
            (PoolingLevel::Family, 0.4),
            (PoolingLevel::RuntimeFamily, 0.3),
            (PoolingLevel::Version, 0.3),
        ],
        CalibratedConstant::MoeCompute | CalibratedConstant::MoeMemory => &[
            (PoolingLevel::All, 0.5),
            (PoolingLevel::Runtime, 0.2),
            (PoolingLevel::Family, 0.5),
            (PoolingLevel::Format, 0.2),
            (PoolingLevel::Version, 0.1),
        ],
        CalibratedConstant::KernelLaunch => &[
            (PoolingLevel::All, 2.0),
            (PoolingLevel::Runtime, 0.2),
            (PoolingLevel::Family, 0.3),
            (PoolingLevel::Version, 0.1),
        ],
        CalibratedConstant::ExpertsLaunch => &[
            (PoolingLevel::All, 2.0),
            (PoolingLevel::Runtime, 0.2),
            (PoolingLevel::Family, 0.1),
            (PoolingLevel::Version, 0.1),
        ],
        _ if of.is_efficiency() => STREAM,
        _ => levels(of),
    }
}

/// The levels of a server constant.
fn levels(of: CalibratedConstant) -> &'static [LevelPrior] {
    match of {
        CalibratedConstant::GemmCompute | CalibratedConstant::MoeCompute => GEMM,
        CalibratedConstant::GemmMemory | CalibratedConstant::MoeMemory => MEMORY,
        CalibratedConstant::AttentionCompute => &[
            (PoolingLevel::All, 0.5),
            (PoolingLevel::Runtime, 0.1),
            (PoolingLevel::Family, 0.1),
            (PoolingLevel::Attention, 0.2),
        ],
        CalibratedConstant::AttentionMemory => &[
            (PoolingLevel::All, 0.5),
            (PoolingLevel::Runtime, 0.15),
            (PoolingLevel::Family, 0.15),
            (PoolingLevel::Attention, 0.2),
            (PoolingLevel::Cell, 0.15),
        ],
        CalibratedConstant::CollectiveLatency => &[
            (PoolingLevel::All, 1.0),
            (PoolingLevel::Runtime, 0.3),
            (PoolingLevel::Family, 0.2),
            (PoolingLevel::Cell, 0.12),
        ],
        CalibratedConstant::CollectiveBandwidth => &[(PoolingLevel::All, 0.3), (PoolingLevel::Family, 0.1)],
        CalibratedConstant::LaunchPerLayer => &[(PoolingLevel::All, 1.0)],
        CalibratedConstant::HostPerStep => &[
            (PoolingLevel::All, 1.0),
            (PoolingLevel::Runtime, 0.3),
            (PoolingLevel::Version, 0.1),
            (PoolingLevel::Cell, 0.12),
        ],
        CalibratedConstant::HostPerSequence => {
            &[(PoolingLevel::All, 1.0), (PoolingLevel::Runtime, 0.3), (PoolingLevel::Version, 0.3)]
        }
        CalibratedConstant::KernelLaunch => &[
            (PoolingLevel::All, 1.0),
            (PoolingLevel::Runtime, 0.2),
            (PoolingLevel::Family, 0.1),
            (PoolingLevel::Version, 0.1),
            (PoolingLevel::Cell, 0.15),
        ],
        CalibratedConstant::QuantisedLaunch => {
            &[(PoolingLevel::All, 1.0), (PoolingLevel::Runtime, 0.2), (PoolingLevel::Format, 0.3)]
        }
        CalibratedConstant::ExpertsLaunch => {
            &[(PoolingLevel::All, 1.0), (PoolingLevel::Runtime, 0.2), (PoolingLevel::Format, 0.2)]
        }
        CalibratedConstant::PrefillInterference => &[
            (PoolingLevel::All, 0.5),
            (PoolingLevel::Runtime, 0.1),
            (PoolingLevel::Lengths, 0.3),
            (PoolingLevel::RuntimeLengths, 0.1),
            (PoolingLevel::Version, 0.1),
        ],
        CalibratedConstant::RequestOverhead | CalibratedConstant::PromptQueue => WAITS,
        CalibratedConstant::PromptBurst | CalibratedConstant::StepWait | CalibratedConstant::RequestWork => {
            SCHEDULER
        }
    }
}

/// One unknown: a constant under conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationUnknown {
    /// The runtime, where it matters.
    pub runtime: Option<String>,
    /// The constant and the other conditions; its `times` is not used.
    pub factor: CalibrationFactor,
    /// Its prior standard deviation.
    pub spread: f64,
}

impl CalibrationUnknown {
    fn of(
        sample: &CalibrationSample,
        of: CalibratedConstant,
        (level, spread): LevelPrior,
    ) -> CalibrationUnknown {
        use PoolingLevel::{
            Attention, Cell, Family, Format, Lengths, Runtime, RuntimeFamily, RuntimeFormat, RuntimeLengths,
            Version,
        };
        let when = |levels: &[PoolingLevel]| levels.contains(&level);
        let text = |levels: &[PoolingLevel], text: &String| when(levels).then(|| text.clone());
        let class = of.is_efficiency().then(|| sample.class.clone());
        let attention: Option<AttentionKind> =
            when(&[Attention, Cell]).then_some(sample.calibration_key.attention);
        CalibrationUnknown {
            runtime: text(
                &[Runtime, RuntimeFamily, RuntimeFormat, RuntimeLengths, Version, Cell],
                &sample.runtime,
            ),
            factor: CalibrationFactor {
                of,
                // Kernel efficiencies carry over within a device class, host overheads to all devices.
                class,
                family: text(&[Family, RuntimeFamily, Cell], &sample.family),
                weight_format: text(&[Format, RuntimeFormat, Cell], &sample.weight_format),
                attention,
                equal_lengths: when(&[Lengths, RuntimeLengths])
                    .then_some(sample.calibration_key.equal_lengths),
                version: sample.calibration_key.version.clone().filter(|_| level == Version),
                times: 1.0,
            },
            spread,
        }
    }

    /// Whether it applies to a sample.
    pub fn holds(&self, sample: &CalibrationSample) -> bool {
        self.runtime.as_ref().is_none_or(|runtime| *runtime == sample.runtime)
            && self.factor.holds(
                (&sample.class, &sample.family),
                &sample.weight_format,
                &sample.calibration_key,
            )
    }
}

/// Every unknown that affects some sample, for all constants in `order`.
pub fn unknowns(samples: &[&CalibrationSample], order: &[CalibratedConstant]) -> Vec<CalibrationUnknown> {
    let mut found: Vec<CalibrationUnknown> = Vec::new();
    let single_streams = samples.iter().all(|sample| sample.deployment.timed_separately);
    let levels = if single_streams { stream_levels } else { levels };
    for of in order {
        for spread in levels(*of) {
            let start = found.len();
            for sample in samples {
                let one = CalibrationUnknown::of(sample, *of, *spread);
                if spread.0 == PoolingLevel::Version && sample.calibration_key.version.is_none() {
                    continue;
                }
                if !found[start..].contains(&one) {
                    found.push(one);
                }
            }
        }
    }
    found
}
