//! Measured deployments, and predictions for them with other constants.
//!
//! Contains no formulas: it only changes their inputs.

use super::deployment::{MeasuredDeployment, PredictedTimes};
use crate::cost::machine::Machine;
use crate::quantity::num::Qty;
use crate::spec::runtime::{CalibratedConstant, CalibrationKey};

/// A measured deployment, on the machine of the current runtime file.
#[derive(Clone, Debug)]
pub struct CalibrationSample {
    /// Id of its row in the table.
    pub id: String,
    /// The runtime.
    pub runtime: String,
    /// Architecture and size of the model: the same for versions that differ only in weight values.
    pub model: String,
    /// The device.
    pub hardware: String,
    /// The deployment.
    pub deployment: MeasuredDeployment,
    /// Its machine.
    pub machine: Machine<Qty<f64>>,
    /// Device class.
    pub class: String,
    /// Device generation.
    pub family: String,
    /// Weight format.
    pub weight_format: String,
    /// Other conditions of calibration factors.
    pub calibration_key: CalibrationKey,
    /// Measured TTFT, in seconds.
    pub ttft: Option<f64>,
    /// Measured TPOT, in seconds.
    pub tpot: Option<f64>,
}

/// Constants in the order of their changes.
pub const ORDER: [CalibratedConstant; 20] = [
    CalibratedConstant::GemmCompute,
    CalibratedConstant::GemmMemory,
    CalibratedConstant::AttentionCompute,
    CalibratedConstant::AttentionMemory,
    CalibratedConstant::MoeCompute,
    CalibratedConstant::MoeMemory,
    CalibratedConstant::CollectiveLatency,
    CalibratedConstant::CollectiveBandwidth,
    CalibratedConstant::LaunchPerLayer,
    CalibratedConstant::KernelLaunch,
    CalibratedConstant::QuantisedLaunch,
    CalibratedConstant::ExpertsLaunch,
    CalibratedConstant::HostPerStep,
    CalibratedConstant::HostPerSequence,
    CalibratedConstant::PrefillInterference,
    CalibratedConstant::RequestOverhead,
    CalibratedConstant::PromptQueue,
    CalibratedConstant::PromptBurst,
    CalibratedConstant::StepWait,
    CalibratedConstant::RequestWork,
];

/// Logarithm of the multiplier on the time of each constant.
pub type LogMultipliers = [f64; ORDER.len()];

/// Step of the finite difference.
const STEP: f64 = 1e-4;

fn with_multipliers(machine: &Machine<Qty<f64>>, changes: &LogMultipliers) -> Machine<Qty<f64>> {
    let mut machine = machine.clone();
    let chip = &mut machine.chip;
    for (of, change) in ORDER.iter().zip(changes).filter(|(_, change)| **change != 0.0) {
        let times = Qty::from(change.exp());
        let one = Qty::from(1.0);
        let slower = |figure: &mut Qty<f64>| *figure = *figure * times;
        // An efficiency cannot exceed the roofline.
        let lower = |figure: &mut Qty<f64>| *figure = (*figure / times).min(one);
        match of {
            CalibratedConstant::GemmCompute => lower(&mut chip.gemm_compute),
            CalibratedConstant::GemmMemory => lower(&mut chip.gemm_memory),
            CalibratedConstant::AttentionCompute => lower(&mut chip.attention_compute),
            CalibratedConstant::AttentionMemory => lower(&mut chip.attention_memory),
            CalibratedConstant::MoeCompute => lower(&mut chip.moe_compute),
            CalibratedConstant::MoeMemory => lower(&mut chip.moe_memory),
            CalibratedConstant::CollectiveBandwidth => lower(&mut chip.collective_bandwidth),
            CalibratedConstant::CollectiveLatency => slower(&mut chip.collective_latency),
            CalibratedConstant::LaunchPerLayer => slower(&mut chip.launch_per_layer),
            CalibratedConstant::KernelLaunch => slower(&mut chip.kernel_launch),
            CalibratedConstant::QuantisedLaunch => slower(&mut chip.quantised_launch),
            CalibratedConstant::ExpertsLaunch => slower(&mut chip.experts_launch),
            CalibratedConstant::HostPerStep => slower(&mut chip.host_per_step),
            CalibratedConstant::HostPerSequence => slower(&mut chip.host_per_sequence),
            CalibratedConstant::PrefillInterference => slower(&mut chip.prefill_interference),
            CalibratedConstant::RequestOverhead => slower(&mut chip.request_overhead),
            CalibratedConstant::PromptQueue => slower(&mut chip.prompt_queue),
            CalibratedConstant::PromptBurst => slower(&mut chip.prompt_burst),
            CalibratedConstant::StepWait => slower(&mut chip.step_wait),
            CalibratedConstant::RequestWork => slower(&mut chip.request_work),
        }
    }
    machine
}

impl CalibrationSample {
    /// Mean number of tokens in the KV cache of an attention rank.
    pub fn cached(&self) -> u64 {
        let lengths = self.deployment.lengths;
        self.deployment.requests().saturating_mul(lengths.isl + lengths.osl / 2)
    }

    /// Predictions with changed constants.
    pub fn times(&self, changes: &LogMultipliers) -> PredictedTimes {
        self.deployment.times(&with_multipliers(&self.machine, changes))
    }

    /// Derivatives of log TTFT and log TPOT by each selected change.
    pub fn slopes(
        &self,
        changes: &LogMultipliers,
        here: PredictedTimes,
        selected: &[bool; ORDER.len()],
    ) -> [(f64, f64); ORDER.len()] {
        std::array::from_fn(|place| {
            if !selected[place] {
                return (0.0, 0.0);
            }
            let mut changes = *changes;
            changes[place] += STEP;
            let there = self.times(&changes);
            ((there.ttft / here.ttft).ln() / STEP, (there.tpot / here.tpot).ln() / STEP)
        })
    }
}

/// Sets the value of a constant, in seconds or as a number. Efficiencies have no such value.
pub fn set(machine: &mut Machine<Qty<f64>>, of: CalibratedConstant, value: f64) {
    let chip = &mut machine.chip;
    let place = match of {
        CalibratedConstant::KernelLaunch => &mut chip.kernel_launch,
        CalibratedConstant::QuantisedLaunch => &mut chip.quantised_launch,
        CalibratedConstant::ExpertsLaunch => &mut chip.experts_launch,
        CalibratedConstant::HostPerSequence => &mut chip.host_per_sequence,
        CalibratedConstant::RequestWork => &mut chip.request_work,
        CalibratedConstant::RequestOverhead => &mut chip.request_overhead,
        CalibratedConstant::PromptQueue => &mut chip.prompt_queue,
        CalibratedConstant::PromptBurst => &mut chip.prompt_burst,
        CalibratedConstant::StepWait => &mut chip.step_wait,
        _ => return,
    };
    *place = Qty::from(value);
}
