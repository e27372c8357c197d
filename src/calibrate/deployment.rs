//! A deployment, prepared once, to be evaluated on many machines and under many loads.

use crate::spec::offload::Offload;
use crate::spec::role::Role;
use std::sync::Arc;

use crate::cost::machine::Machine;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::search::candidate::{PoolPlan, evaluate, with_slots};
use crate::search::problem::Traffic;
use crate::serving::evaluate::Evaluation;
use crate::serving::first_wave::{first_wave, mean_from_start};
use crate::serving::instance::Instance;
use crate::serving::step::CostObserver;
use crate::serving::terms::{Lengths, WorkloadInputs};

/// A deployment under a load, ready to be evaluated.
#[derive(Clone, Debug)]
pub struct MeasuredDeployment {
    pub pools: Vec<PoolPlan>,
    pub instances: Vec<Arc<Instance>>,
    /// The part in host memory.
    pub offload: Offload,
    pub lengths: Lengths,
    pub concurrency: u64,
    /// Prefill and decode were timed separately: all prefill first, then all decode.
    pub timed_separately: bool,
    /// Requests of each client, where the TTFT is a mean over a run from its start.
    pub from_start: Option<u64>,
}

/// Predicted latencies, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictedTimes {
    /// TTFT; with separate timing, the time until all prompts are prefilled.
    pub ttft: f64,
    pub tpot: f64,
}

impl MeasuredDeployment {
    /// Evaluates it on `machine`.
    pub fn evaluate(
        &self,
        machine: &Machine<Qty<f64>>,
        watch: &mut impl CostObserver<f64>,
    ) -> Evaluation<Qty<f64>> {
        let terms = WorkloadInputs::of(self.lengths).read(&Plain);
        let demand = Traffic::InFlight(self.concurrency.into()).demand(&Plain);
        let mut at = |pools: &[PoolPlan]| {
            evaluate(&Plain, pools, &self.instances, self.offload, (machine, &terms, &demand), watch)
        };
        let pools = with_slots(&self.pools, self.lengths.osl, &mut at);
        at(&pools)
    }

    /// Latencies as seen by users, or as reported by a run with separate timing of prefill and decode.
    pub fn times(&self, machine: &Machine<Qty<f64>>) -> PredictedTimes {
        if !self.timed_separately {
            let metrics = self.evaluate(machine, &mut ()).metrics;
            let ttft = self.as_reported(metrics.ttft, machine);
            return PredictedTimes { ttft: ttft.value(), tpot: metrics.tpot.value() };
        }
        let mut machine = machine.clone();
        machine.chip.prefill_interference = Qty::from(0.0);
        let made = self.evaluate(&machine, &mut ());
        let requests = self.concurrency as f64;
        PredictedTimes { ttft: requests * made.prefill.total.value(), tpot: made.metrics.tpot.value() }
    }

    /// A TTFT in steady operation, or its mean over a run that starts with all requests at once.
    fn as_reported(&self, steady: Qty<f64>, machine: &Machine<Qty<f64>>) -> Qty<f64> {
        let Some(requests) = self.from_start else { return steady };
        let terms = WorkloadInputs::of(self.lengths).read(&Plain);
        let at = self.pools.iter().position(|pool| pool.role != Role::Decode).unwrap_or_default();
        let (pool, instance) = (&self.pools[at], &self.instances[at]);
        let each = self.concurrency.div_ceil(pool.replicas.max(1));
        let wave = first_wave(&Plain, (instance, each), machine, &terms);
        mean_from_start(steady, wave, Qty::from(requests as f64))
    }

    /// Concurrency per attention rank, of the pool that decodes most requests.
    pub fn requests(&self) -> u64 {
        let answering = self.pools.iter().filter(|pool| pool.role != Role::Prefill);
        answering.map(|pool| pool.concurrency.div_ceil(pool.plan.dp.max(1))).max().unwrap_or(1)
    }

    pub fn devices(&self) -> u64 {
        self.pools.iter().map(|pool| pool.replicas * pool.plan.devices()).sum()
    }
}
