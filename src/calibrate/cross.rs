//! Cross-validation: predictions of rows from fits that did not see them.

use rayon::prelude::*;

use super::deployment::PredictedTimes;
use super::sample::CalibrationSample;
use super::staged::StagedFit;

/// Group of rows that is held out together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldoutGroup {
    /// A fifth of all rows.
    Fifth,
    Combination,
    DeviceAndRuntime,
    /// A third of all rows, by KV cache load.
    Load,
    Model,
    Device,
    /// The devices of a vendor.
    Vendor,
}

impl HoldoutGroup {
    /// Its identifier, and its name for people.
    const fn texts(self) -> (&'static str, &'static str) {
        match self {
            HoldoutGroup::Fifth => ("fifth", "other settings of the same (five folds)"),
            HoldoutGroup::Combination => ("combination", "other combinations of model, hardware and runtime"),
            HoldoutGroup::DeviceAndRuntime => {
                ("device_and_runtime", "the same hardware under other runtimes")
            }
            HoldoutGroup::Load => ("load", "lighter and heavier loads (three folds)"),
            HoldoutGroup::Model => ("model", "other models"),
            HoldoutGroup::Device => ("device", "other hardware"),
            HoldoutGroup::Vendor => ("maker", "another maker's hardware"),
        }
    }

    pub fn name(self) -> &'static str {
        self.texts().1
    }

    pub fn key_name(self) -> &'static str {
        self.texts().0
    }

    /// Key of the held-out group of each sample.
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
            HoldoutGroup::Vendor => sample.hardware.split('-').next().unwrap_or_default().to_owned(),
        }
    }
}

/// Steps with a smaller relative gain in squared error have no effect on median errors.
const GAIN: f64 = 1e-3;

/// Maximum number of folds. With more groups, several are held out together: one fit each would be slow and give the
/// same result.
const FOLDS: usize = 24;

/// Predicts every sample by the fit that held out its group.
pub fn left_out(samples: &[&CalibrationSample], all: &StagedFit, out: HoldoutGroup) -> Vec<PredictedTimes> {
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
            let predicted = all.cleared().solve(&pick(false), GAIN).predict(&pick(true));
            there.into_iter().zip(predicted).collect::<Vec<_>>()
        })
        .collect();
    let mut times = vec![PredictedTimes { ttft: f64::NAN, tpot: f64::NAN }; samples.len()];
    made.into_iter().for_each(|(at, one)| times[at] = one);
    times
}
