//! Measured deployments, and predictions for them with other constants.
//!
//! Contains no formulas: it only changes their inputs.

use std::sync::Arc;

use super::deployment::{MeasuredDeployment, PredictedTimes};
use super::measured_run::{Expansion, MeasuredRun};
use crate::cost::calibration::calibrated;
use crate::cost::machine::Machine;
use crate::quantity::num::Qty;
use crate::spec::constant::{CONSTANTS, CalibratedConstant, CalibrationKey, ConstantEntry};
use crate::traffic::source::Arrivals;

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
    /// The run behind it, where the scheduler is simulated.
    pub run: Option<Arc<MeasuredRun>>,
    /// Its latencies by that run, near the constants of the last simulation.
    pub expansion: Option<Expansion>,
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
pub(super) const STEP: f64 = 1e-4;

/// Clients of an attention rank that seldom wait for each other.
const FEW_CLIENTS: u64 = 4;

/// Which constants a fit looks for, and so which predictions it compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FitStage {
    /// Those of steps: the latencies of the simulated run, where there is one.
    Steps,
    /// Those of the waits in the closed form, whose latencies are shown.
    Waits,
}

/// The machine with its constants changed.
pub fn with_multipliers(machine: &Machine<Qty<f64>>, changes: &LogMultipliers) -> Machine<Qty<f64>> {
    let mut machine = machine.clone();
    for (entry, change) in CONSTANTS.iter().zip(changes).filter(|(_, change)| **change != 0.0) {
        let constant = machine.chip.constant_mut(entry.of);
        let times = Qty::from(libm::exp(*change));
        *constant = calibrated(entry.of, *constant, Some(times));
        if machine.in_turn && entry.of == CalibratedConstant::GemmMemory {
            machine.decode_compute = machine.decode_compute.map(|compute| compute / times);
        }
    }
    machine
}

/// The changes that bring all kernels to the peaks of the device: log efficiencies. Others have no limit.
pub(super) fn to_peaks(machine: &Machine<Qty<f64>>) -> LogMultipliers {
    let of = |entry: &ConstantEntry| match entry.is_efficiency() {
        true => libm::log(machine.chip.constant(entry.of).value()),
        false => f64::NEG_INFINITY,
    };
    std::array::from_fn(|place| of(&CONSTANTS[place]))
}

impl CalibrationSample {
    /// Mean number of tokens in the KV cache of an attention rank.
    pub fn cached(&self) -> u64 {
        let lengths = self.deployment.lengths;
        self.deployment.requests().saturating_mul(lengths.isl + lengths.osl / 2)
    }

    pub fn times(&self, stage: FitStage, changes: &LogMultipliers) -> PredictedTimes {
        match &self.expansion {
            Some(expansion) if stage == FitStage::Steps || self.is_open() => expansion.times(changes),
            _ => self.deployment.times(&with_multipliers(&self.machine, changes)),
        }
    }

    /// Whether requests came at a rate, which the closed form of a deployment with a concurrency does not cover.
    pub fn is_open(&self) -> bool {
        self.run.as_ref().is_some_and(|run| matches!(run.traffic.arrivals, Arrivals::Rate { .. }))
    }

    /// Whether its TTFT says how long steps take. In a closed loop with many clients it follows from the moments at which
    /// they happen to send.
    pub fn has_ttft_of_steps(&self) -> bool {
        self.expansion.is_none()
            || self.is_open()
            || self.deployment.requests() <= FEW_CLIENTS
            || self.deployment.from_start.is_some() && !self.waits_for_ranks()
    }

    /// Whether prompts wait until all attention ranks have one, which is not simulated.
    fn waits_for_ranks(&self) -> bool {
        self.deployment.pools.iter().any(|pool| self.machine.ranks_wait_together(pool.plan.dp))
    }

    /// Simulates the run with these constants.
    pub fn simulate(&mut self, changes: &LogMultipliers) {
        if let Some(run) = &self.run {
            self.expansion = run.expand(&self.machine, changes);
        }
    }

    /// Derivatives of log TTFT and log TPOT by each selected change.
    pub fn slopes(
        &self,
        stage: FitStage,
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
            let there = self.times(stage, &changes);
            (libm::log(there.ttft / here.ttft) / STEP, libm::log(there.tpot / here.tpot) / STEP)
        })
    }
}
