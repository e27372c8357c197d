//! The instances of the deployments of one problem and the time of their prompts, made once each.

use crate::spec::offload::Offload;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::candidate::{Candidate, PoolPlan, prompts, with_prompts};
use super::hosting::placed_shared;
use super::problem::Problem;
use crate::plan::parallel::ParallelPlan;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::serving::evaluate::Evaluation;
use crate::serving::instance::{Instance, PipelineCut};
use crate::serving::iteration::prefill_among;
use crate::serving::step::{CostObserver, StepTime};

/// Values by key, each made once, by the first thread that needs it.
pub struct MadeOnce<K, V>(Mutex<HashMap<K, Arc<OnceLock<V>>>>);

impl<K, V> Default for MadeOnce<K, V> {
    fn default() -> Self {
        MadeOnce(Mutex::default())
    }
}

impl<K: Hash + Eq, V: Clone> MadeOnce<K, V> {
    /// The value of `key`. Other keys do not wait for it.
    pub fn get(&self, key: K, make: impl FnOnce() -> V) -> V {
        let place = {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(key).or_default())
        };
        place.get_or_init(make).clone()
    }
}

/// An instance with a part in host memory, where one is, and the prefill time of one prompt on it.
#[derive(Clone)]
pub struct PreparedInstance {
    pub instance: Arc<Instance>,
    /// Prefill time of one prompt.
    pub prompt: StepTime<Qty<f64>>,
}

impl Borrow<Instance> for PreparedInstance {
    fn borrow(&self) -> &Instance {
        &self.instance
    }
}

/// The parallel plan and the layers of each pipeline stage.
type Layout = (ParallelPlan, Vec<u32>);

pub struct PreparedInstances<'q> {
    problem: &'q Problem,
    /// The sharded model of one pipeline stage: all stage counts and cuts share its work.
    stages: MadeOnce<ParallelPlan, Arc<Instance>>,
    bare: MadeOnce<Layout, Arc<Instance>>,
    /// By format pair, offload target and prompts at once.
    prepared: MadeOnce<(usize, Offload, u64, Layout), PreparedInstance>,
}

impl<'q> PreparedInstances<'q> {
    pub fn new(problem: &'q Problem) -> Self {
        PreparedInstances {
            problem,
            stages: MadeOnce::default(),
            bare: MadeOnce::default(),
            prepared: MadeOnce::default(),
        }
    }

    pub fn problem(&self) -> &'q Problem {
        self.problem
    }

    /// The instance of a pool, before anything is offloaded.
    pub fn bare(&self, pool: &PoolPlan) -> Arc<Instance> {
        let (graph, tiers) = (&self.problem.graph, self.problem.tiers());
        self.bare.get((pool.plan, pool.stages.clone()), || {
            let stage = ParallelPlan { pp: 1, ..pool.plan };
            let one = self.stages.get(stage, || {
                let layers = vec![graph.layer_block.len() as u32];
                Arc::new(Instance::new(graph, stage, layers, tiers))
            });
            Arc::new(one.piped(graph, &PipelineCut::new(graph, pool.stages.clone()), tiers))
        })
    }

    pub fn of(&self, candidate: &Candidate) -> Vec<PreparedInstance> {
        let of = |pool| self.pool(candidate.formats, candidate.offload, pool);
        candidate.pools.iter().map(of).collect()
    }

    fn pool(&self, formats: usize, offload: Offload, pool: &PoolPlan) -> PreparedInstance {
        let together = pool.prompts_at_once();
        self.prepared.get((formats, offload, together, (pool.plan, pool.stages.clone())), || {
            let instance = placed_shared(self.problem, self.bare(pool), offload);
            let machine = self.problem.formats[formats].plain();
            let terms = self.problem.terms();
            let prompt = prefill_among(&Plain, (&instance, together), machine, terms, &mut ());
            PreparedInstance { instance, prompt }
        })
    }

    /// Evaluates pools in a format pair by the common evaluation function. `watch` sees no prefill step.
    pub fn evaluate(
        &self,
        candidate: &Candidate,
        prepared: &[PreparedInstance],
        watch: &mut impl CostObserver<f64>,
    ) -> Evaluation<Qty<f64>> {
        let (problem, pools) = (self.problem, &candidate.pools);
        let figures =
            (problem.formats[candidate.formats].plain(), problem.terms(), &problem.traffic.demand(&Plain));
        let prompts = prompts(pools, |at| prepared[at].prompt);
        with_prompts(&Plain, (pools, prepared, &prompts), candidate.offload, figures, watch)
    }
}
