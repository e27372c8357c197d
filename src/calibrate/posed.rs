//! A stated deployment laid out once, to be evaluated on many machines and under many loads.

use std::sync::Arc;

use crate::cost::machine::Machine;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::search::candidate::{PoolPlan, evaluate};
use crate::search::question::Traffic;
use crate::serving::evaluate::Evaluation;
use crate::serving::instance::Instance;
use crate::serving::step::Watch;
use crate::serving::terms::{Lengths, Offload, Stated};

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
}

impl Posed {
    /// What comes of it on `machine`.
    pub fn evaluate(&self, machine: &Machine<Qty<f64>>, watch: &mut impl Watch<f64>) -> Evaluation<Qty<f64>> {
        let terms = Stated { lengths: self.lengths, draw: None, bill: None, host_link: None }.read(&Plain);
        let demand = Traffic::InFlight(self.concurrency).demand(&Plain);
        evaluate(&Plain, &self.pools, &self.instances, Offload::Nothing, (machine, &terms, &demand), watch)
    }

    /// Devices that it takes.
    pub fn devices(&self) -> u64 {
        self.pools.iter().map(|pool| pool.replicas * pool.plan.devices()).sum()
    }
}
