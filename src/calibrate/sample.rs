//! Measured deployments, and what they would do were the constants others.
//!
//! Knows no formula: it only changes what the formulas read.

use super::posed::{Posed, Times};
use crate::cost::machine::Machine;
use crate::quantity::num::Qty;
use crate::spec::runtime::{Fitted, Traits};

/// A measured deployment, on the machine as the runtime's file has it now.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its row's name in the table.
    pub id: String,
    /// The runtime.
    pub runtime: String,
    /// The model's architecture and size: the same for versions that differ in their values alone.
    pub model: String,
    /// The device.
    pub hardware: String,
    /// The deployment.
    pub posed: Posed,
    /// Its machine.
    pub machine: Machine<Qty<f64>>,
    /// Class of its devices.
    pub class: String,
    /// Generation of its devices.
    pub family: String,
    /// Its weight format.
    pub weight_format: String,
    /// What else factors depend on.
    pub traits: Traits,
    /// Measured time to first token, in seconds.
    pub ttft: Option<f64>,
    /// Measured time per output token, in seconds.
    pub tpot: Option<f64>,
}

/// Constants in the order in which changes to them are kept.
pub const ORDER: [Fitted; 20] = [
    Fitted::GemmCompute,
    Fitted::GemmMemory,
    Fitted::AttentionCompute,
    Fitted::AttentionMemory,
    Fitted::MoeCompute,
    Fitted::MoeMemory,
    Fitted::CollectiveLatency,
    Fitted::CollectiveBandwidth,
    Fitted::LaunchPerLayer,
    Fitted::KernelLaunch,
    Fitted::QuantisedLaunch,
    Fitted::ExpertsLaunch,
    Fitted::HostPerStep,
    Fitted::HostPerSequence,
    Fitted::PrefillInterference,
    Fitted::RequestOverhead,
    Fitted::PromptQueue,
    Fitted::PromptBurst,
    Fitted::StepWait,
    Fitted::RequestWork,
];

/// Logarithms of how many times as long each constant's time is.
pub type Changes = [f64; ORDER.len()];

/// Step of the difference quotient.
const STEP: f64 = 1e-4;

fn changed(machine: &Machine<Qty<f64>>, changes: &Changes) -> Machine<Qty<f64>> {
    let mut machine = machine.clone();
    let chip = &mut machine.chip;
    for (of, change) in ORDER.iter().zip(changes).filter(|(_, change)| **change != 0.0) {
        let times = Qty::from(change.exp());
        let one = Qty::from(1.0);
        let slower = |figure: &mut Qty<f64>| *figure = *figure * times;
        // An efficiency cannot pass the roofline.
        let lower = |figure: &mut Qty<f64>| *figure = (*figure / times).min(one);
        match of {
            Fitted::GemmCompute => lower(&mut chip.gemm_compute),
            Fitted::GemmMemory => lower(&mut chip.gemm_memory),
            Fitted::AttentionCompute => lower(&mut chip.attention_compute),
            Fitted::AttentionMemory => lower(&mut chip.attention_memory),
            Fitted::MoeCompute => lower(&mut chip.moe_compute),
            Fitted::MoeMemory => lower(&mut chip.moe_memory),
            Fitted::CollectiveBandwidth => lower(&mut chip.collective_bandwidth),
            Fitted::CollectiveLatency => slower(&mut chip.collective_latency),
            Fitted::LaunchPerLayer => slower(&mut chip.launch_per_layer),
            Fitted::KernelLaunch => slower(&mut chip.kernel_launch),
            Fitted::QuantisedLaunch => slower(&mut chip.quantised_launch),
            Fitted::ExpertsLaunch => slower(&mut chip.experts_launch),
            Fitted::HostPerStep => slower(&mut chip.host_per_step),
            Fitted::HostPerSequence => slower(&mut chip.host_per_sequence),
            Fitted::PrefillInterference => slower(&mut chip.prefill_interference),
            Fitted::RequestOverhead => slower(&mut chip.request_overhead),
            Fitted::PromptQueue => slower(&mut chip.prompt_queue),
            Fitted::PromptBurst => slower(&mut chip.prompt_burst),
            Fitted::StepWait => slower(&mut chip.step_wait),
            Fitted::RequestWork => slower(&mut chip.request_work),
        }
    }
    machine
}

impl Sample {
    /// Tokens that an attention rank holds in its cache, on average.
    pub fn cached(&self) -> u64 {
        let lengths = self.posed.lengths;
        self.posed.requests().saturating_mul(lengths.isl + lengths.osl / 2)
    }

    /// What is predicted with the constants changed.
    pub fn times(&self, changes: &Changes) -> Times {
        self.posed.times(&changed(&self.machine, changes))
    }

    /// How the logarithms of TTFT and TPOT answer to each change that is `asked` for.
    pub fn slopes(
        &self,
        changes: &Changes,
        here: Times,
        asked: &[bool; ORDER.len()],
    ) -> [(f64, f64); ORDER.len()] {
        std::array::from_fn(|place| {
            if !asked[place] {
                return (0.0, 0.0);
            }
            let mut changes = *changes;
            changes[place] += STEP;
            let there = self.times(&changes);
            ((there.ttft / here.ttft).ln() / STEP, (there.tpot / here.tpot).ln() / STEP)
        })
    }
}

/// Gives a constant a value of its own, in seconds or as a number. Only constants that are no efficiency have one.
pub fn set(machine: &mut Machine<Qty<f64>>, of: Fitted, value: f64) {
    let chip = &mut machine.chip;
    let place = match of {
        Fitted::KernelLaunch => &mut chip.kernel_launch,
        Fitted::QuantisedLaunch => &mut chip.quantised_launch,
        Fitted::ExpertsLaunch => &mut chip.experts_launch,
        Fitted::HostPerSequence => &mut chip.host_per_sequence,
        Fitted::RequestWork => &mut chip.request_work,
        Fitted::RequestOverhead => &mut chip.request_overhead,
        Fitted::PromptQueue => &mut chip.prompt_queue,
        Fitted::PromptBurst => &mut chip.prompt_burst,
        Fitted::StepWait => &mut chip.step_wait,
        _ => return,
    };
    *place = Qty::from(value);
}
