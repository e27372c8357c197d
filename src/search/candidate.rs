//! A deployment under study: pools of instances, their loads, their formats.

use super::question::{Problem, Traffic};
use super::shape::largest;
use crate::cost::machine::Machine;
use crate::plan::parallel::ParallelPlan;
use crate::quantity::num::Qty;
use crate::quantity::read::{Plain, Reading};
use crate::serving::disaggregated::split;
use crate::serving::evaluate::{Evaluation, Pool, aggregated};
use crate::serving::instance::Instance;
use crate::serving::iteration::prefill;
use crate::serving::step::CostObserver;
use crate::serving::terms::{Demand, InstanceLoad, OffloadTarget, WorkloadTerms};

/// What a pool does.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum PoolRole {
    /// Prompts and answers.
    Both,
    /// Prompts only.
    Prefill,
    /// Answers only.
    Decode,
}

/// Like instances of a deployment.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolPlan {
    /// What they do.
    pub duty: PoolRole,
    /// How one is split.
    pub plan: ParallelPlan,
    /// Layers of each pipeline stage.
    pub stages: Vec<u32>,
    /// How many there are.
    pub replicas: u64,
    /// Requests in flight of each.
    pub concurrency: u64,
}

/// A deployment under study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Index of its formats in the question.
    pub formats: usize,
    /// Its pools: of duty `Both`, or some that `Prefill`, some that `Decode`, and any beside them that do both, in this order.
    pub pools: Vec<PoolPlan>,
    /// What is kept in host memory.
    pub offload: OffloadTarget,
}

impl Candidate {
    /// Whether some instances prefill for others.
    pub fn apart(&self) -> bool {
        self.pools.iter().any(|pool| pool.duty == PoolRole::Prefill)
    }

    /// Requests of an attention rank, of the pool that answers most.
    pub fn requests_per_rank(&self) -> u64 {
        let answering = self.pools.iter().filter(|pool| pool.duty != PoolRole::Prefill);
        answering.map(|pool| pool.concurrency.div_ceil(pool.plan.dp.max(1))).max().unwrap_or(1)
    }

    /// Devices in use.
    pub fn devices(&self) -> u64 {
        self.pools.iter().map(|pool| pool.replicas * pool.plan.devices()).sum()
    }

    /// Requests in flight over all pools that answer.
    pub fn concurrency(&self, traffic: &Traffic) -> u64 {
        let answering = self.pools.iter().filter(|pool| pool.duty != PoolRole::Prefill);
        match traffic {
            Traffic::InFlight(requests) => *requests,
            _ => answering.map(|pool| pool.replicas * pool.concurrency).sum(),
        }
    }

    /// Requests in flight over the whole deployment, on average: those in prefill, on the way, waiting and in decode.
    pub fn in_flight(&self, question: &Problem) -> f64 {
        let known = || whole(self.evaluate(&Plain, question, &mut ()).metrics.in_flight.value());
        if let Traffic::InFlight(requests) = question.traffic { requests as f64 } else { known() }
    }

    /// Instances of each pool, in order.
    pub fn instances(&self, question: &Problem) -> Vec<Instance> {
        let lay = |pool: &PoolPlan| {
            Instance::new(&question.graph, pool.plan, pool.stages.clone(), question.tiers())
        };
        self.pools.iter().map(lay).collect()
    }

    /// Evaluates it through the one door, in any reading.
    pub fn evaluate<R: Reading>(
        &self,
        read: &R,
        question: &Problem,
        watch: &mut impl CostObserver<R::N>,
    ) -> Evaluation<Qty<R::N>> {
        let machine = question.formats[self.formats].machine.read(read);
        let terms = question.stated.read(read);
        let demand = question.traffic.demand(read);
        let instances = self.instances(question);
        evaluate(read, &self.pools, &instances, self.offload, (&machine, &terms, &demand), watch)
    }
}

/// A number without the rounding of a sum, where it is whole but for that.
pub fn whole(number: f64) -> f64 {
    if (number - number.round()).abs() <= SLOT * number { number.round() } else { number }
}

/// Part of a decode pool's slots by which those in use may differ: rounding.
const SLOT: f64 = 1e-9;

/// Pools that prefill for one that decodes, this with the fewest slots that no request waits for, up to those that it
/// has; other deployments as they are. `at` evaluates pools under a stated number of requests in flight.
pub fn with_slots(
    pools: &[PoolPlan],
    osl: u64,
    mut at: impl FnMut(&[PoolPlan]) -> Evaluation<Qty<f64>>,
) -> Vec<PoolPlan> {
    let mut tried = pools.to_vec();
    let decodes: Vec<usize> = (0..pools.len()).filter(|at| pools[*at].duty == PoolRole::Decode).collect();
    let [decode] = decodes[..] else { return tried };
    let (replicas, dp) = (pools[decode].replicas as f64, pools[decode].plan.dp);
    let most = pools[decode].concurrency;
    let mut full = |slots: u64| {
        tried[decode].concurrency = slots;
        let metrics = at(&tried).metrics;
        let rate = metrics.output_tok_s.value() / osl as f64;
        let decoding = rate * (osl - 1) as f64 * metrics.tpot.value();
        decoding >= slots as f64 * replicas * (1.0 - SLOT)
    };
    let short = largest(most.div_ceil(dp), |ranks| full((ranks * dp).min(most)));
    let mut pools = pools.to_vec();
    pools[decode].concurrency = ((short + 1) * dp).min(most);
    pools
}

/// Evaluates pools whose `instances` are laid out already.
pub fn evaluate<R: Reading>(
    read: &R,
    plans: &[PoolPlan],
    instances: &[impl std::borrow::Borrow<Instance>],
    offload: OffloadTarget,
    (machine, terms, demand): (&Machine<Qty<R::N>>, &WorkloadTerms<Qty<R::N>>, &Demand<Qty<R::N>>),
    watch: &mut impl CostObserver<R::N>,
) -> Evaluation<Qty<R::N>> {
    let (mut fronts, mut backs, mut both) = (vec![], vec![], vec![]);
    let mut known = None;
    for (pool, instance) in plans.iter().zip(instances) {
        let instance = instance.borrow();
        // A pool that only decodes takes its prompts from those that prefill.
        let prompt = match known {
            Some(prompt) if pool.duty == PoolRole::Decode => prompt,
            _ => prefill(read, instance, machine, terms, watch),
        };
        known = Some(prompt);
        let load = InstanceLoad { concurrency: pool.concurrency, offload };
        let of_its_duty = match pool.duty {
            PoolRole::Prefill => &mut fronts,
            PoolRole::Decode => &mut backs,
            PoolRole::Both => &mut both,
        };
        of_its_duty.push(Pool { instance, replicas: pool.replicas, prompt, load });
    }
    if fronts.is_empty() || backs.is_empty() {
        let pools: Vec<_> = [fronts, backs, both].concat();
        return aggregated(read, &pools, machine, terms, demand, watch);
    }
    split(read, (&fronts, &backs, &both), machine, terms, demand, watch)
}
