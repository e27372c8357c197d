//! A fit in two stages: the constants of steps by simulated runs, then those of the waits in the closed form.

use nalgebra::DVector;

use super::deployment::PredictedTimes;
use super::fit::{FitSolution, UNCHANGED};
use super::levels::{CalibrationUnknown, unknowns};
use super::sample::{CalibrationSample, FitStage, LogMultipliers};
use crate::spec::constant::CalibratedConstant;

/// Constants of the closed form alone: a simulated scheduler has no use for them.
const WAITS: [CalibratedConstant; 5] = [
    CalibratedConstant::PrefillInterference,
    CalibratedConstant::PromptQueue,
    CalibratedConstant::PromptBurst,
    CalibratedConstant::StepWait,
    CalibratedConstant::RequestWork,
];

/// Simulations of all runs, each with the constants of the fit before it.
const SIMULATIONS: usize = 4;
/// A fit before the last simulation may be this much worse.
const ROUGH: f64 = 1e-2;

/// The unknowns of both stages with their values. Without simulated runs the first finds all constants.
#[derive(Clone, Debug)]
pub struct StagedFit {
    steps: FitSolution,
    waits: FitSolution,
}

impl StagedFit {
    /// No change of the constants in `order`.
    pub fn nothing(samples: &[&CalibrationSample], order: &[CalibratedConstant]) -> StagedFit {
        let waits: Vec<CalibratedConstant> = order.iter().copied().filter(|of| WAITS.contains(of)).collect();
        StagedFit {
            steps: FitSolution::nothing(unknowns(samples, order)),
            waits: FitSolution::nothing(unknowns(samples, &waits)),
        }
    }

    /// The values of all unknowns as those of one fit.
    pub fn joined(&self) -> FitSolution {
        let of_steps = |unknown: &CalibrationUnknown| !WAITS.contains(&unknown.factor.of);
        let steps = self.steps.unknowns.iter().zip(self.steps.x.iter()).filter(|(one, _)| of_steps(one));
        let all = steps.chain(self.waits.unknowns.iter().zip(self.waits.x.iter()));
        let (unknowns, x): (Vec<_>, Vec<f64>) = all.map(|(unknown, x)| (unknown.clone(), *x)).unzip();
        FitSolution { unknowns, x: DVector::from_vec(x) }
    }

    /// The start of a fit that has seen none of these samples.
    #[must_use]
    pub fn cleared(&self) -> StagedFit {
        let of = |fit: &FitSolution| FitSolution::nothing(fit.unknowns.clone());
        StagedFit { steps: of(&self.steps), waits: of(&self.waits) }
    }

    /// Fits both stages to `samples`, whose runs are simulated already, starting from these values.
    #[must_use]
    pub fn solve(self, samples: &[&CalibrationSample], gain: f64) -> StagedFit {
        let steps = self.steps.solve(FitStage::Steps, (samples, &vec![UNCHANGED; samples.len()]), gain);
        let fixed: Vec<LogMultipliers> = samples.iter().map(|sample| of_steps(&steps, sample)).collect();
        let waits = self.waits.solve(FitStage::Waits, (samples, &fixed), gain);
        StagedFit { steps, waits }
    }

    /// The latencies of simulated runs, where there are any.
    pub fn simulated(&self, samples: &[&CalibrationSample]) -> Vec<PredictedTimes> {
        self.joined().predict(FitStage::Steps, samples)
    }

    /// Predictions that users of the constants get.
    pub fn predict(&self, samples: &[&CalibrationSample]) -> Vec<PredictedTimes> {
        self.joined().predict(FitStage::Waits, samples)
    }
}

/// The changes of a sample by the constants of steps.
fn of_steps(steps: &FitSolution, sample: &CalibrationSample) -> LogMultipliers {
    let mut changes = steps.changes(sample);
    WAITS.iter().for_each(|of| changes[*of as usize] = 0.0);
    changes
}

/// Fits the constants in `order` to `samples`: their runs are simulated, the constants fitted, and that again.
pub fn fit(samples: &mut [CalibrationSample], order: &[CalibratedConstant], gain: f64) -> StagedFit {
    use rayon::prelude::*;
    let mut found = StagedFit::nothing(&samples.iter().collect::<Vec<_>>(), order);
    let simulations = if samples.iter().any(|sample| sample.run.is_some()) { SIMULATIONS } else { 1 };
    for number in 1..=simulations {
        // The first has been simulated with the constants as they are.
        if number > 1 {
            let steps = &found.steps;
            samples.par_iter_mut().for_each(|sample| sample.simulate(&of_steps(steps, sample)));
        }
        let gain = if number < simulations { ROUGH.max(gain) } else { gain };
        found = found.solve(&samples.iter().collect::<Vec<_>>(), gain);
    }
    found
}
