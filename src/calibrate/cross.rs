//! Predictions of rows from fits that did not see them.

use rayon::prelude::*;

use super::deployment::PredictedTimes;
use super::fit::FitSolution;
use super::sample::CalibrationSample;

/// What is left out together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldoutGroup {
    /// A fifth of all rows.
    Fifth,
    /// A combination of model, device and runtime.
    Combination,
    /// A device under one runtime.
    DeviceAndRuntime,
    /// A third of all rows, by what they hold in the cache.
    Load,
    /// A model.
    Model,
    /// A device.
    Device,
    /// A maker's devices.
    Maker,
}

impl HoldoutGroup {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            HoldoutGroup::Fifth => "other settings of the same (five folds)",
            HoldoutGroup::Combination => "other combinations of model, hardware and runtime",
            HoldoutGroup::DeviceAndRuntime => "the same hardware under other runtimes",
            HoldoutGroup::Load => "lighter and heavier loads (three folds)",
            HoldoutGroup::Model => "other models",
            HoldoutGroup::Device => "other hardware",
            HoldoutGroup::Maker => "another maker's hardware",
        }
    }

    /// In one word.
    pub fn key_name(self) -> &'static str {
        match self {
            HoldoutGroup::Fifth => "fifth",
            HoldoutGroup::Combination => "combination",
            HoldoutGroup::DeviceAndRuntime => "device_and_runtime",
            HoldoutGroup::Load => "load",
            HoldoutGroup::Model => "model",
            HoldoutGroup::Device => "device",
            HoldoutGroup::Maker => "maker",
        }
    }

    /// What each sample has in common with others that are left out with it.
    pub fn keys(self, samples: &[&CalibrationSample]) -> Vec<String> {
        let mut cached: Vec<u64> = samples.iter().map(|sample| sample.cached()).collect();
        cached.sort_unstable();
        let third = |sample: &CalibrationSample| {
            let below = cached.partition_point(|tokens| *tokens < sample.cached());
            (3 * below / cached.len().max(1)).to_string()
        };
        let key = |(at, sample): (usize, &&CalibrationSample)| match self {
            HoldoutGroup::Load => third(sample),
            _ => self.key(at, sample),
        };
        samples.iter().enumerate().map(key).collect()
    }

    fn key(self, at: usize, sample: &CalibrationSample) -> String {
        match self {
            HoldoutGroup::Load | HoldoutGroup::Fifth => (at % 5).to_string(),
            HoldoutGroup::Combination => format!("{} {} {}", sample.model, sample.hardware, sample.runtime),
            HoldoutGroup::DeviceAndRuntime => format!("{} {}", sample.hardware, sample.runtime),
            HoldoutGroup::Model => sample.model.clone(),
            HoldoutGroup::Device => sample.hardware.clone(),
            HoldoutGroup::Maker => sample.hardware.split('-').next().unwrap_or_default().to_owned(),
        }
    }
}

/// Steps that gain less of the squared error than this no longer matter to an error's median.
const GAIN: f64 = 2e-3;
/// Part of what all rows show that a fit without some of them begins from: near enough to be quick, not at it.
const HEAD_START: f64 = 0.3;

/// Where more are left out in turn, some are left out together: a fit each would take long and tell the same.
const FOLDS: usize = 80;

/// Every sample as the fit without its like predicts it.
pub fn left_out(samples: &[&CalibrationSample], all: &FitSolution, out: HoldoutGroup) -> Vec<PredictedTimes> {
    let keys = out.keys(samples);
    let mut different = keys.clone();
    different.sort();
    different.dedup();
    let fold = |key: &String| different.binary_search(key).unwrap_or_default() % FOLDS;
    let folds: Vec<usize> = keys.iter().map(fold).collect();
    let made: Vec<(usize, PredictedTimes)> = (0..different.len().min(FOLDS))
        .into_par_iter()
        .flat_map_iter(|fold| {
            let there: Vec<usize> = (0..samples.len()).filter(|at| folds[*at] == fold).collect();
            let pick = |inside: bool| -> Vec<&CalibrationSample> {
                samples.iter().zip(&folds).filter(|(_, f)| (**f == fold) == inside).map(|(s, _)| *s).collect()
            };
            let start = FitSolution { x: &all.x * HEAD_START, unknowns: all.unknowns.clone() };
            let predicted = start.solve(&pick(false), GAIN).predict(&pick(true));
            there.into_iter().zip(predicted).collect::<Vec<_>>()
        })
        .collect();
    let mut times = vec![PredictedTimes { ttft: f64::NAN, tpot: f64::NAN }; samples.len()];
    made.into_iter().for_each(|(at, one)| times[at] = one);
    times
}
