//! Levels of a calibration constant, and the prior standard deviation at each.
//!
//! The logarithm of a constant is a sum over levels: first shared by all runtimes and devices, then by a runtime, a
//! generation or a format, and last by a cell of all of them. The narrower the level, the stronger the shrinkage to
//! zero: an unmeasured combination falls back to the values of its parts elsewhere (hierarchical shrinkage: Gelman
//! and Hill, Data Analysis Using Regression and Multilevel Models, 2007, chapter 12).

use super::sample::CalibrationSample;
use super::settings::{levels_by_model, settings};
use crate::spec::constant::{AttentionKind, CalibratedConstant, CalibrationFactor, ConstantKind};

/// The property that rows share at a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolingLevel {
    /// None: all rows.
    All,
    Runtime,
    Family,
    Format,
    Attention,
    /// Whether all requests have the same lengths.
    Lengths,
    RuntimeFamily,
    RuntimeFormat,
    RuntimeLengths,
    Version,
    /// Runtime, generation, weight format and attention type.
    Cell,
    /// Runtime, generation, weight format and model.
    ModelCell,
}

/// A level and the prior standard deviation of the logarithm of a constant there. Selected among about a dozen sets
/// by the lowest errors in cross-validation over models and hardware.
pub type LevelPrior = (PoolingLevel, f64);

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
            Attention, Cell, Family, Format, Lengths, ModelCell, Runtime, RuntimeFamily, RuntimeFormat,
            RuntimeLengths, Version,
        };
        let when = |levels: &[PoolingLevel]| levels.contains(&level);
        let text = |levels: &[PoolingLevel], text: &String| when(levels).then(|| text.clone());
        let class = (of.entry().kind == ConstantKind::Efficiency).then(|| sample.class.clone());
        let attention: Option<AttentionKind> =
            when(&[Attention, Cell]).then_some(sample.calibration_key.attention);
        CalibrationUnknown {
            runtime: text(
                &[Runtime, RuntimeFamily, RuntimeFormat, RuntimeLengths, Version, Cell, ModelCell],
                &sample.runtime,
            ),
            factor: CalibrationFactor {
                of,
                // Kernel efficiencies carry over within a device class, host overheads to all devices.
                class,
                family: text(&[Family, RuntimeFamily, Cell, ModelCell], &sample.family),
                weight_format: text(&[Format, RuntimeFormat, Cell, ModelCell], &sample.weight_format),
                attention,
                equal_lengths: when(&[Lengths, RuntimeLengths])
                    .then_some(sample.calibration_key.equal_lengths),
                version: sample.calibration_key.version.clone().filter(|_| level == Version),
                // A server's collectives carry over to links of the same kind. Single streams have few, on any link.
                link: (is_collective(of) && !sample.deployment.timed_separately)
                    .then_some(sample.calibration_key.link),
                model: text(&[ModelCell], &sample.calibration_key.model),
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

fn is_collective(of: CalibratedConstant) -> bool {
    matches!(of, CalibratedConstant::CollectiveLatency | CalibratedConstant::CollectiveBandwidth)
}

/// Every unknown that affects some sample, for all constants in `order`.
pub fn unknowns(samples: &[&CalibrationSample], order: &[CalibratedConstant]) -> Vec<CalibrationUnknown> {
    let mut found: Vec<CalibrationUnknown> = Vec::new();
    let single_streams = samples.iter().all(|sample| sample.deployment.timed_separately);
    for of in order {
        let settings = settings(*of);
        let (levels, by_model) = match single_streams {
            true => (settings.single_stream, &[][..]),
            false => (settings.server, levels_by_model(*of)),
        };
        for spread in levels.iter().chain(by_model) {
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
