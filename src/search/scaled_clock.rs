//! Times of the steps of a plan as they would be with another error of the prediction.

use super::simulated_pool::{InstanceClock, PlanClock};
use crate::traffic::step_load::{DeploymentClock, StepClock, StepLoad};

/// Measured over predicted time of steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepFactors {
    /// Of prompts, and of all else before the first token.
    pub prefill: f64,
    /// Of requests that decode.
    pub decode: f64,
}

/// The clock of one pool.
#[derive(Debug)]
pub struct ScaledSteps<'a> {
    clock: &'a InstanceClock,
    factors: StepFactors,
}

impl StepClock for ScaledSteps<'_> {
    /// In a step of both, the requests that decode take the time of a step of their own; the prompts, what comes on top.
    fn seconds(&self, ranks: &[StepLoad]) -> f64 {
        let StepFactors { prefill, decode } = self.factors;
        let whole = self.clock.seconds(ranks);
        if ranks.iter().all(|load| load.prompts.is_empty()) {
            return decode * whole;
        }
        if ranks.iter().all(|load| load.decoding == 0) {
            return prefill * whole;
        }
        let alone = |load: &StepLoad| StepLoad { prompts: vec![], ..load.clone() };
        let own = self.clock.seconds(&ranks.iter().map(alone).collect::<Vec<_>>()).min(whole);
        decode * own + prefill * (whole - own)
    }
}

/// The clocks of all pools of a plan.
#[derive(Debug)]
pub struct ScaledClock<'a> {
    clocks: &'a PlanClock,
    pools: Vec<ScaledSteps<'a>>,
    factors: StepFactors,
}

impl<'a> ScaledClock<'a> {
    /// The times of `clocks`, times these factors.
    pub fn of(clocks: &'a PlanClock, factors: StepFactors) -> ScaledClock<'a> {
        let pools = clocks.pools.iter().map(|clock| ScaledSteps { clock, factors }).collect();
        ScaledClock { clocks, pools, factors }
    }
}

impl<'a> DeploymentClock for ScaledClock<'a> {
    type Steps = ScaledSteps<'a>;

    fn of(&self, pool: usize) -> &ScaledSteps<'a> {
        &self.pools[pool]
    }

    fn transfer_s(&self, from: usize, to: usize, tokens: u32) -> f64 {
        self.factors.prefill * self.clocks.transfer_s(from, to, tokens)
    }
}
