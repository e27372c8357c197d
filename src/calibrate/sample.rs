//! Measured deployments, and predictions for them with other constants.
//!
//! Contains no formulas: it only changes their inputs.

use super::deployment::{MeasuredDeployment, PredictedTimes};
use crate::cost::calibration::calibrated;
use crate::cost::machine::Machine;
use crate::quantity::num::Qty;
use crate::spec::constant::{CONSTANTS, CalibrationKey};

/// A measured deployment, on the machine of the current runtime file.
#[derive(Clone, Debug)]
pub struct CalibrationSample {
    pub id: String,
    pub runtime: String,
    /// Architecture and size of the model: the same for versions that differ only in weight values.
    pub model: String,
    pub hardware: String,
    pub deployment: MeasuredDeployment,
    pub machine: Machine<Qty<f64>>,
    pub class: String,
    pub family: String,
    pub weight_format: String,
    /// Other conditions of calibration factors.
    pub calibration_key: CalibrationKey,
    /// Measured TTFT, in seconds.
    pub ttft: Option<f64>,
    /// Measured TPOT, in seconds.
    pub tpot: Option<f64>,
}

/// Logarithm of the multiplier on the time of each constant, in the order of the table.
pub type LogMultipliers = [f64; CONSTANTS.len()];

/// Step of the finite difference.
const STEP: f64 = 1e-4;

fn with_multipliers(machine: &Machine<Qty<f64>>, changes: &LogMultipliers) -> Machine<Qty<f64>> {
    let mut machine = machine.clone();
    for (entry, change) in CONSTANTS.iter().zip(changes).filter(|(_, change)| **change != 0.0) {
        let constant = machine.chip.constant_mut(entry.of);
        *constant = calibrated(entry.of, *constant, Some(Qty::from(libm::exp(*change))));
    }
    machine
}

impl CalibrationSample {
    /// Mean number of tokens in the KV cache of an attention rank.
    pub fn cached(&self) -> u64 {
        let lengths = self.deployment.lengths;
        self.deployment.requests().saturating_mul(lengths.isl + lengths.osl / 2)
    }

    pub fn times(&self, changes: &LogMultipliers) -> PredictedTimes {
        self.deployment.times(&with_multipliers(&self.machine, changes))
    }

    /// Derivatives of log TTFT and log TPOT by each selected change.
    pub fn slopes(
        &self,
        changes: &LogMultipliers,
        here: PredictedTimes,
        selected: &[bool; CONSTANTS.len()],
    ) -> [(f64, f64); CONSTANTS.len()] {
        std::array::from_fn(|place| {
            if !selected[place] {
                return (0.0, 0.0);
            }
            let mut changes = *changes;
            changes[place] += STEP;
            let there = self.times(&changes);
            (libm::log(there.ttft / here.ttft) / STEP, libm::log(there.tpot / here.tpot) / STEP)
        })
    }
}
