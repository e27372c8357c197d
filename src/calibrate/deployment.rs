//! A stated deployment laid out once, to be evaluated on many machines and under many loads.

use std::sync::Arc;

use crate::cost::machine::Machine;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::search::candidate::{PoolPlan, PoolRole, evaluate, with_slots};
use crate::search::question::Traffic;
use crate::serving::evaluate::Evaluation;
use crate::serving::instance::Instance;
use crate::serving::step::CostObserver;
use crate::serving::terms::{Lengths, OffloadTarget, WorkloadInputs};

/// A deployment under a load, ready to be evaluated.
#[derive(Clone, Debug)]
pub struct MeasuredDeployment {
    /// Its pools.
    pub pools: Vec<PoolPlan>,
    /// An instance of each, laid out.
    pub instances: Vec<Arc<Instance>>,
    /// The lengths of its requests.
    pub lengths: Lengths,
    /// Requests in flight over all of it.
    pub concurrency: u64,
    /// All prompts come first, then all answers.
    pub apart: bool,
}

/// Predicted times, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictedTimes {
    /// To first token; of prompts timed apart, until all are through.
    pub ttft: f64,
    /// Per output token.
    pub tpot: f64,
}

impl MeasuredDeployment {
    /// What comes of it on `machine`.
    pub fn evaluate(
        &self,
        machine: &Machine<Qty<f64>>,
        watch: &mut impl CostObserver<f64>,
    ) -> Evaluation<Qty<f64>> {
        let terms = WorkloadInputs::of(self.lengths).read(&Plain);
        let demand = Traffic::InFlight(self.concurrency).demand(&Plain);
        let mut at = |pools: &[PoolPlan]| {
            evaluate(
                &Plain,
                pools,
                &self.instances,
                OffloadTarget::Nothing,
                (machine, &terms, &demand),
                watch,
            )
        };
        let pools = with_slots(&self.pools, self.lengths.osl, &mut at);
        at(&pools)
    }

    /// The times that users see, or that a run of prompts and answers apart prints.
    pub fn times(&self, machine: &Machine<Qty<f64>>) -> PredictedTimes {
        if !self.apart {
            let metrics = self.evaluate(machine, &mut ()).metrics;
            return PredictedTimes { ttft: metrics.ttft.value(), tpot: metrics.tpot.value() };
        }
        let mut machine = machine.clone();
        machine.chip.prefill_interference = Qty::from(0.0);
        let made = self.evaluate(&machine, &mut ());
        let requests = self.concurrency as f64;
        PredictedTimes { ttft: requests * made.prefill.total.value(), tpot: made.metrics.tpot.value() }
    }

    /// Requests of an attention rank, of the pool that answers most.
    pub fn requests(&self) -> u64 {
        let answering = self.pools.iter().filter(|pool| pool.duty != PoolRole::Prefill);
        answering.map(|pool| pool.concurrency.div_ceil(pool.plan.dp.max(1))).max().unwrap_or(1)
    }

    /// Devices that it takes.
    pub fn devices(&self) -> u64 {
        self.pools.iter().map(|pool| pool.replicas * pool.plan.devices()).sum()
    }
}
