//! A stated deployment laid out once, to be evaluated on many machines and under many loads.

use std::sync::Arc;

use crate::cost::machine::Machine;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::search::candidate::{PoolPlan, evaluate};
use crate::search::question::Traffic;
use crate::search::shape::largest;
use crate::serving::disaggregated::crowded;
use crate::serving::evaluate::Evaluation;
use crate::serving::instance::Instance;
use crate::serving::metrics::Metrics;
use crate::serving::step::Watch;
use crate::serving::terms::{Lengths, Offload, Stated};

/// Share of a decode pool's slots that may be idle: rounding.
const IDLE: f64 = 1e-9;

/// A deployment under a load, ready to be evaluated.
#[derive(Clone, Debug)]
pub struct Posed {
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
pub struct Times {
    /// To first token; of prompts timed apart, until all are through.
    pub ttft: f64,
    /// Per output token.
    pub tpot: f64,
}

impl Posed {
    /// What comes of it on `machine`.
    pub fn evaluate(&self, machine: &Machine<Qty<f64>>, watch: &mut impl Watch<f64>) -> Evaluation<Qty<f64>> {
        let terms = Stated::of(self.lengths).read(&Plain);
        let mut under = |pools: &[PoolPlan], requests: u64| {
            let demand = Traffic::InFlight(requests).demand(&Plain);
            evaluate(&Plain, pools, &self.instances, Offload::Nothing, (machine, &terms, &demand), watch)
        };
        let [front, back] = &self.pools[..] else { return under(&self.pools, self.concurrency) };
        // A prompt pool may be too small to keep all requests answered: as many are as it can.
        let mut at = |load: u64| {
            let back = PoolPlan { concurrency: load, ..back.clone() };
            under(&[front.clone(), back.clone()], load * back.replicas)
        };
        let flows = |load: u64, found: &Evaluation<Qty<f64>>| {
            let rate = found.metrics.output_tok_s / terms.osl;
            let answered = Qty::from((load * back.replicas) as f64);
            (answered - rate * (terms.osl - 1.0) * found.metrics.tpot).value() <= IDLE * answered.value()
        };
        let load = largest(back.concurrency, |load| flows(load, &at(load))).max(1);
        let mut found = at(load);
        let requests = Qty::from(self.concurrency as f64);
        let Metrics { ttft, tpot, output_tok_s, .. } = found.metrics;
        found.metrics.ttft = crowded(requests, output_tok_s, terms.osl, tpot, ttft);
        found
    }

    /// The times that users see, or that a run of prompts and answers apart prints.
    pub fn times(&self, machine: &Machine<Qty<f64>>) -> Times {
        if !self.apart {
            let metrics = self.evaluate(machine, &mut ()).metrics;
            return Times { ttft: metrics.ttft.value(), tpot: metrics.tpot.value() };
        }
        let mut machine = machine.clone();
        machine.chip.prefill_interference = Qty::from(0.0);
        let made = self.evaluate(&machine, &mut ());
        let requests = self.concurrency as f64;
        Times { ttft: requests * made.prefill.total.value(), tpot: made.metrics.tpot.value() }
    }

    /// Devices that it takes.
    pub fn devices(&self) -> u64 {
        self.pools.iter().map(|pool| pool.replicas * pool.plan.devices()).sum()
    }
}
