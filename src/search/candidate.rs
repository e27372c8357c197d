//! Candidate deployments: pools of replicas or workers, their loads and formats.

use super::error_margin::ErrorMargin;
use super::hosting::placed;
use super::point::{Point, point};
use super::problem::{Problem, Traffic};
use super::shape::{InstanceConfig, largest};
use crate::cost::machine::Machine;
use crate::plan::locality::kv_tier;
use crate::plan::parallel::ParallelPlan;
use crate::plan::rules::RoleWorker;
use crate::quantity::num::Qty;
use crate::quantity::read::{Plain, Reading};
use crate::quantity::tolerance::SUMMED;
use crate::serving::disaggregated::split;
use crate::serving::evaluate::{Evaluation, Pool, PoolScope, aggregated};
use crate::serving::instance::Instance;
use crate::serving::iteration::prefill_among;
use crate::serving::step::{CostObserver, StepTime};
use crate::serving::terms::{Demand, InstanceLoad, WorkloadTerms};
use crate::spec::nearness::Interval;
use crate::spec::offload::Offload;
use crate::spec::role::Role;

/// A pool of identical replicas or workers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolPlan {
    pub role: Role,
    pub plan: ParallelPlan,
    /// Layers of each pipeline stage.
    pub stages: Vec<u32>,
    pub replicas: u64,
    /// Concurrency of each replica.
    pub concurrency: u64,
}

impl PoolPlan {
    /// Prompts that the attention ranks of a replica compute at the same time: those of a pool with fewer requests than
    /// ranks are not all busy.
    pub fn prompts_at_once(&self) -> u64 {
        match self.role {
            Role::Prefill => self.plan.dp,
            Role::Aggregated | Role::Decode => self.concurrency.min(self.plan.dp),
        }
    }
}

impl InstanceConfig {
    /// A pool of `replicas` of this configuration, at a concurrency of each.
    pub fn pool(&self, role: Role, replicas: u64, concurrency: u64) -> PoolPlan {
        PoolPlan { role, plan: self.plan, stages: self.stages.clone(), replicas, concurrency }
    }

    /// The deployment of such replicas alone.
    pub fn replicated(&self, replicas: u64, concurrency: u64) -> Candidate {
        let pools = vec![self.pool(Role::Aggregated, replicas, concurrency)];
        Candidate { formats: self.formats, pools, offload: self.offload }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Index of its format pair in the problem.
    pub formats: usize,
    /// Its pools: role `Aggregated`, or `Prefill` pools, then `Decode` pools, then any `Aggregated` pools, in this order.
    pub pools: Vec<PoolPlan>,
    pub offload: Offload,
}

/// Whether the phases have pools of their own.
pub fn are_disaggregated(pools: &[PoolPlan]) -> bool {
    pools.iter().any(|pool| pool.role == Role::Prefill)
}

impl Candidate {
    pub fn is_disaggregated(&self) -> bool {
        are_disaggregated(&self.pools)
    }

    /// Whether every pool has like workers: any router balances their requests.
    pub fn is_plain(&self) -> bool {
        match &self.pools[..] {
            [_] => true,
            [one, other] => one.role != other.role && self.is_disaggregated(),
            _ => false,
        }
    }

    /// The workers of each pool, as the rules of a runtime see them.
    pub fn workers(&self) -> Vec<RoleWorker> {
        self.pools.iter().map(|pool| (pool.role, pool.plan)).collect()
    }

    /// Concurrency per attention rank of the pool that decodes most requests.
    pub fn requests_per_rank(&self) -> u64 {
        let decoding = self.pools.iter().filter(|pool| pool.role != Role::Prefill);
        decoding.map(|pool| pool.concurrency.div_ceil(pool.plan.dp.max(1))).max().unwrap_or(1)
    }

    /// The interval of its predictions, where errors are known.
    pub fn interval<'q>(&self, problem: &'q Problem) -> Option<&'q Interval> {
        problem.formats[self.formats]
            .interval(problem.class_of(&self.pools, self.offload), self.requests_per_rank())
    }

    /// The prediction error that its SLOs allow for.
    pub fn margin(&self, problem: &Problem) -> ErrorMargin {
        problem.margin(self.formats, problem.class_of(&self.pools, self.offload), self.requests_per_rank())
    }

    pub fn devices(&self) -> u64 {
        self.pools.iter().map(|pool| pool.replicas * pool.plan.devices()).sum()
    }

    /// Total concurrency of all pools that decode.
    pub fn concurrency(&self, traffic: &Traffic) -> u64 {
        let decoding = self.pools.iter().filter(|pool| pool.role != Role::Prefill);
        traffic.slots().unwrap_or_else(|| decoding.map(|pool| pool.replicas * pool.concurrency).sum())
    }

    /// Mean number of requests in the deployment: in prefill, in KV transfer, queued and in decode.
    pub fn in_flight(&self, problem: &Problem) -> f64 {
        in_flight(problem, &self.evaluate(&Plain, problem, &mut ()))
    }

    pub fn instances(&self, problem: &Problem) -> Vec<Instance> {
        let lay = |pool: &PoolPlan| {
            let stages = pool.stages.clone();
            placed(problem, Instance::new(&problem.graph, pool.plan, stages, problem.tiers()), self.offload)
        };
        self.pools.iter().map(lay).collect()
    }

    /// Evaluates the candidate by the common evaluation function, in any reading.
    pub fn evaluate<R: Reading>(
        &self,
        read: &R,
        problem: &Problem,
        watch: &mut impl CostObserver<R::N>,
    ) -> Evaluation<Qty<R::N>> {
        self.evaluate_on(read, problem, &self.instances(problem), watch)
    }

    /// The same where the instances of each pool are prepared.
    pub fn evaluate_on<R: Reading>(
        &self,
        read: &R,
        problem: &Problem,
        instances: &[impl std::borrow::Borrow<Instance>],
        watch: &mut impl CostObserver<R::N>,
    ) -> Evaluation<Qty<R::N>> {
        let machine = problem.formats[self.formats].machine.read(read);
        let terms = problem.workload.read(read);
        let demand = problem.traffic.demand(read);
        evaluate(read, &self.pools, instances, self.offload, (&machine, &terms, &demand), watch)
    }

    /// The metrics as plain numbers, where the instances of each pool are prepared.
    pub fn measure(&self, problem: &Problem, instances: &[impl std::borrow::Borrow<Instance>]) -> Point {
        let machine = problem.formats[self.formats].plain();
        let figures = (machine, problem.terms(), &problem.traffic.demand(&Plain));
        point(&evaluate(&Plain, &self.pools, instances, self.offload, figures, &mut ()).metrics)
    }
}

/// Mean number of requests in a deployment with this evaluation.
pub fn in_flight(problem: &Problem, evaluation: &Evaluation<Qty<f64>>) -> f64 {
    problem.traffic.in_flight().unwrap_or_else(|| whole(evaluation.metrics.in_flight.value()))
}

/// Removes the rounding error of a sum from a whole number.
pub fn whole(number: f64) -> f64 {
    if (number - number.round()).abs() <= SUMMED * number { number.round() } else { number }
}

/// Prefill pools with one decode pool: sets the smallest number of decode slots for which no request waits, up to the
/// number that the pool has. Other deployments are returned as they are. `at` evaluates pools at a given concurrency.
pub fn with_slots(
    pools: &[PoolPlan],
    osl: u64,
    mut at: impl FnMut(&[PoolPlan]) -> Evaluation<Qty<f64>>,
) -> Vec<PoolPlan> {
    let mut tried = pools.to_vec();
    let decodes: Vec<usize> = (0..pools.len()).filter(|at| pools[*at].role == Role::Decode).collect();
    let [decode] = decodes[..] else { return tried };
    let (replicas, dp) = (pools[decode].replicas as f64, pools[decode].plan.dp);
    let most = pools[decode].concurrency;
    let mut full = |slots: u64| {
        tried[decode].concurrency = slots;
        let metrics = at(&tried).metrics;
        let rate = metrics.output_tok_s.value() / osl as f64;
        let decoding = rate * (osl - 1) as f64 * metrics.tpot.value();
        decoding >= slots as f64 * replicas * (1.0 - SUMMED)
    };
    let short = largest(most.div_ceil(dp), |ranks| full((ranks * dp).min(most)));
    let mut pools = pools.to_vec();
    pools[decode].concurrency = ((short + 1) * dp).min(most);
    pools
}

/// Evaluates pools whose `instances` are prepared.
pub fn evaluate<R: Reading>(
    read: &R,
    plans: &[PoolPlan],
    instances: &[impl std::borrow::Borrow<Instance>],
    offload: Offload,
    (machine, terms, demand): (&Machine<Qty<R::N>>, &WorkloadTerms<Qty<R::N>>, &Demand<Qty<R::N>>),
    watch: &mut impl CostObserver<R::N>,
) -> Evaluation<Qty<R::N>> {
    let split_roles = plans.iter().any(|pool| pool.role != Role::Aggregated);
    let mut computed = 0;
    let prompts = prompts(plans, |pool| {
        let at = computed;
        computed += 1;
        let scope = if split_roles || plans.len() == 1 {
            PoolScope::after_first(at)
        } else {
            PoolScope::numbered(at)
        };
        let replica = (instances[pool].borrow(), plans[pool].prompts_at_once());
        read.within(format_args!("{scope}"), || prefill_among(read, replica, machine, terms, watch))
    });
    with_prompts(read, (plans, instances, &prompts), offload, (machine, terms, demand), watch)
}

/// The prefill time of a prompt of each pool; `of` computes that of the pool with this index.
pub fn prompts<T: Copy>(plans: &[PoolPlan], mut of: impl FnMut(usize) -> StepTime<T>) -> Vec<StepTime<T>> {
    let mut known = None;
    let each = plans.iter().enumerate().map(|(at, pool)| {
        // A decode-only pool receives its requests from the prefill pools.
        let prompt = known.filter(|_| pool.role == Role::Decode).unwrap_or_else(|| of(at));
        known = Some(prompt);
        prompt
    });
    each.collect()
}

/// The tier of links over which KV caches go from one pool of a plan to another.
pub fn tier_of_caches<T>(plans: &[PoolPlan], machine: &Machine<T>) -> usize {
    let sizes: Vec<_> = plans.iter().map(|pool| (pool.plan.devices(), pool.replicas)).collect();
    kv_tier(&machine.shapes, &sizes)
}

/// Evaluates pools whose instances are prepared, and whose prompts take this long.
pub fn with_prompts<R: Reading>(
    read: &R,
    (plans, instances, prompts): (&[PoolPlan], &[impl std::borrow::Borrow<Instance>], &[StepTime<Qty<R::N>>]),
    offload: Offload,
    (machine, terms, demand): (&Machine<Qty<R::N>>, &WorkloadTerms<Qty<R::N>>, &Demand<Qty<R::N>>),
    watch: &mut impl CostObserver<R::N>,
) -> Evaluation<Qty<R::N>> {
    let (mut prefill_pools, mut decode_pools, mut aggregated_pools) = (vec![], vec![], vec![]);
    for ((pool, instance), prompt) in plans.iter().zip(instances).zip(prompts) {
        let load = InstanceLoad { concurrency: pool.concurrency, offload };
        let of_its_role = match pool.role {
            Role::Prefill => &mut prefill_pools,
            Role::Decode => &mut decode_pools,
            Role::Aggregated => &mut aggregated_pools,
        };
        let (instance, prompt) = (instance.borrow(), *prompt);
        of_its_role.push(Pool {
            instance,
            replicas: pool.replicas,
            prompt,
            load,
            memory: None,
            prompt_context: None,
        });
    }
    if prefill_pools.is_empty() || decode_pools.is_empty() {
        let pools: Vec<_> = [prefill_pools, decode_pools, aggregated_pools].concat();
        return aggregated(read, &pools, machine, terms, demand, watch);
    }
    let joined = (machine, tier_of_caches(plans, machine));
    split(read, (&prefill_pools, &decode_pools, &aggregated_pools), joined, terms, demand, watch)
}
