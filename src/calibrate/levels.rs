//! What a constant may depend on, and how far it is believed to scatter there before anything is measured.
//!
//! A constant's logarithm is a sum over levels: what all runtimes and devices share, then what sets apart a runtime, a
//! generation, a format, and last a cell of all of them. The narrower the level, the stronger the pull to nothing: what
//! was never measured together falls back to what its parts showed elsewhere (hierarchical shrinkage: Gelman and Hill,
//! Data Analysis Using Regression and Multilevel Models, 2007, chapter 12).

use super::sample::Sample;
use crate::spec::runtime::{AttentionKind, Factor, Fitted};

/// What rows have in common for which a constant is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Nothing.
    All,
    /// The runtime.
    Runtime,
    /// The generation of the device.
    Family,
    /// The weight format.
    Format,
    /// The kind of attention.
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
    /// Runtime, generation, weight format and kind of attention.
    Cell,
}

/// A level and the standard deviation of a constant's logarithm there, as believed beforehand. Of about a dozen sets
/// of these the one with the least errors in cross-validation over models and hardware was kept.
pub type Spread = (Level, f64);

const GEMM: &[Spread] = &[
    (Level::All, 0.5),
    (Level::Runtime, 0.08),
    (Level::Family, 0.1),
    (Level::Format, 0.1),
    (Level::RuntimeFormat, 0.05),
    (Level::Cell, 0.12),
];
const MEMORY: &[Spread] = &[
    (Level::All, 0.5),
    (Level::Runtime, 0.08),
    (Level::Family, 0.1),
    (Level::Format, 0.1),
    (Level::RuntimeFormat, 0.05),
    (Level::Version, 0.05),
    (Level::Cell, 0.15),
];
/// What the scheduler does differs most between runtimes, and with whether all requests come and go together.
const SCHEDULER: &[Spread] = &[
    (Level::All, 2.0),
    (Level::Runtime, 0.7),
    (Level::Lengths, 0.7),
    (Level::RuntimeLengths, 0.1),
    (Level::RuntimeFamily, 0.3),
];
/// What of it versions changed most.
const WAITS: &[Spread] = &[
    (Level::All, 2.0),
    (Level::Runtime, 0.7),
    (Level::Lengths, 0.7),
    (Level::RuntimeLengths, 0.1),
    (Level::RuntimeFamily, 0.3),
    (Level::Version, 0.15),
];

/// Kernels of runtimes for single streams: few makers tune them, so generations differ far, and so do backends.
const STREAM: &[Spread] = &[
    (Level::All, 0.5),
    (Level::Runtime, 0.2),
    (Level::Family, 0.5),
    (Level::Format, 0.2),
    (Level::RuntimeFamily, 0.2),
    (Level::Version, 0.3),
];

/// The levels of a constant of single streams.
fn stream_levels(of: Fitted) -> &'static [Spread] {
    match of {
        Fitted::LaunchPerLayer => &[
            (Level::All, 1.5),
            (Level::Runtime, 0.3),
            (Level::Family, 0.2),
            (Level::RuntimeFamily, 0.1),
            // A program around an engine may wait several times as long.
            (Level::Version, 1.0),
        ],
        Fitted::AttentionCompute | Fitted::AttentionMemory => &[
            (Level::All, 0.5),
            (Level::Runtime, 0.3),
            (Level::Family, 0.4),
            (Level::RuntimeFamily, 0.3),
            (Level::Version, 0.3),
        ],
        Fitted::MoeCompute | Fitted::MoeMemory => &[
            (Level::All, 0.5),
            (Level::Runtime, 0.2),
            (Level::Family, 0.5),
            (Level::Format, 0.2),
            (Level::Version, 0.1),
        ],
        Fitted::KernelLaunch => {
            &[(Level::All, 2.0), (Level::Runtime, 0.2), (Level::Family, 0.3), (Level::Version, 0.1)]
        }
        Fitted::ExpertsLaunch => {
            &[(Level::All, 2.0), (Level::Runtime, 0.2), (Level::Family, 0.1), (Level::Version, 0.1)]
        }
        _ if of.is_efficiency() => STREAM,
        _ => levels(of),
    }
}

/// The levels of a constant of servers.
fn levels(of: Fitted) -> &'static [Spread] {
    match of {
        Fitted::GemmCompute | Fitted::MoeCompute => GEMM,
        Fitted::GemmMemory | Fitted::MoeMemory => MEMORY,
        Fitted::AttentionCompute => {
            &[(Level::All, 0.5), (Level::Runtime, 0.1), (Level::Family, 0.1), (Level::Attention, 0.2)]
        }
        Fitted::AttentionMemory => &[
            (Level::All, 0.5),
            (Level::Runtime, 0.15),
            (Level::Family, 0.15),
            (Level::Attention, 0.2),
            (Level::Cell, 0.15),
        ],
        Fitted::CollectiveLatency => {
            &[(Level::All, 1.0), (Level::Runtime, 0.3), (Level::Family, 0.2), (Level::Cell, 0.12)]
        }
        Fitted::CollectiveBandwidth => &[(Level::All, 0.3), (Level::Family, 0.1)],
        Fitted::LaunchPerLayer => &[(Level::All, 1.0)],
        Fitted::HostPerStep => {
            &[(Level::All, 1.0), (Level::Runtime, 0.3), (Level::Version, 0.1), (Level::Cell, 0.12)]
        }
        Fitted::HostPerSequence => &[(Level::All, 1.0), (Level::Runtime, 0.3), (Level::Version, 0.3)],
        Fitted::KernelLaunch => &[
            (Level::All, 1.0),
            (Level::Runtime, 0.2),
            (Level::Family, 0.1),
            (Level::Version, 0.1),
            (Level::Cell, 0.15),
        ],
        Fitted::QuantisedLaunch => &[(Level::All, 1.0), (Level::Runtime, 0.2), (Level::Format, 0.3)],
        Fitted::ExpertsLaunch => &[(Level::All, 1.0), (Level::Runtime, 0.2), (Level::Format, 0.2)],
        Fitted::PrefillInterference => &[
            (Level::All, 0.5),
            (Level::Runtime, 0.1),
            (Level::Lengths, 0.3),
            (Level::RuntimeLengths, 0.1),
            (Level::Version, 0.1),
        ],
        Fitted::RequestOverhead | Fitted::PromptQueue => WAITS,
        Fitted::PromptBurst | Fitted::StepWait | Fitted::RequestWork => SCHEDULER,
    }
}

/// One unknown: a constant where conditions hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Unknown {
    /// The runtime, where it matters.
    pub runtime: Option<String>,
    /// The constant and the other conditions; its `times` is not used.
    pub factor: Factor,
    /// Its believed standard deviation.
    pub spread: f64,
}

impl Unknown {
    fn of(sample: &Sample, of: Fitted, (level, spread): Spread) -> Unknown {
        use Level::{
            Attention, Cell, Family, Format, Lengths, Runtime, RuntimeFamily, RuntimeFormat, RuntimeLengths,
            Version,
        };
        let when = |levels: &[Level]| levels.contains(&level);
        let text = |levels: &[Level], text: &String| when(levels).then(|| text.clone());
        let class = of.is_efficiency().then(|| sample.class.clone());
        let attention: Option<AttentionKind> = when(&[Attention, Cell]).then_some(sample.traits.attention);
        Unknown {
            runtime: text(
                &[Runtime, RuntimeFamily, RuntimeFormat, RuntimeLengths, Version, Cell],
                &sample.runtime,
            ),
            factor: Factor {
                of,
                // How kernels come out carries over within a class of devices, what hosts take to all.
                class,
                family: text(&[Family, RuntimeFamily, Cell], &sample.family),
                weight_format: text(&[Format, RuntimeFormat, Cell], &sample.weight_format),
                attention,
                equal_lengths: when(&[Lengths, RuntimeLengths]).then_some(sample.traits.equal_lengths),
                version: sample.traits.version.clone().filter(|_| level == Version),
                times: 1.0,
            },
            spread,
        }
    }

    /// Whether it is part of a sample's constant.
    pub fn holds(&self, sample: &Sample) -> bool {
        self.runtime.as_ref().is_none_or(|runtime| *runtime == sample.runtime)
            && self.factor.holds((&sample.class, &sample.family), &sample.weight_format, &sample.traits)
    }
}

/// Every unknown that some sample bears on, of all constants in `order`.
pub fn unknowns(samples: &[&Sample], order: &[Fitted]) -> Vec<Unknown> {
    let mut found: Vec<Unknown> = Vec::new();
    let apart = samples.iter().all(|sample| sample.posed.apart);
    let levels = if apart { stream_levels } else { levels };
    for of in order {
        for spread in levels(*of) {
            let start = found.len();
            for sample in samples {
                let one = Unknown::of(sample, *of, *spread);
                if spread.0 == Level::Version && sample.traits.version.is_none() {
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
