//! Times of the steps of a plan, and the work of those that were taken: operations, bytes, and joules.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use super::simulated_pool::{InstanceClock, PlanClock};
use crate::cost::roofline::Cost;
use crate::plan::parallel::Phase;
use crate::plan::shard::{ShardedBlock, TaskStep};
use crate::quantity::num::Qty;
use crate::serving::economy::{busy, watts};
use crate::serving::mixed::RankLoad;
use crate::serving::step::CostObserver;
use crate::traffic::step_load::{DeploymentClock, StepClock, StepLoad};

/// The work of one step: of a device, the mean over all pipeline stages and attention ranks of a replica.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct StepWork {
    /// Seconds in which its arithmetic is busy, and its memory.
    compute_s: f64,
    memory_s: f64,
    /// Operations, and bytes of device memory; of the model, without a draft.
    flops: f64,
    bytes: f64,
}

/// The work of all steps of a pool: of one device for each replica, the mean over those of the replica.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PoolWork {
    /// Seconds of the steps.
    pub steps_s: f64,
    /// Operations.
    pub flops: f64,
    /// Bytes of device memory.
    pub bytes: f64,
    /// Energy of a device during the steps; 0 where its power is unknown.
    pub joules: f64,
}

/// Sums over the operators of a step.
#[derive(Default)]
struct OperatorSums {
    flops: f64,
    bytes: f64,
}

impl CostObserver<f64> for OperatorSums {
    fn on_operator(&mut self, _: Phase, block: &ShardedBlock, _: &TaskStep, cost: &Cost<Qty<f64>>) {
        let layers = block.layers.value as f64;
        self.flops += layers * cost.flops.value();
        self.bytes += layers * cost.bytes.value();
    }

    fn on_idle(&mut self, _: Phase, _: &'static str, _: u64, _: Qty<f64>) {}
}

/// Steps whose work is remembered until they are taken: a few for each replica.
const REMEMBERED: usize = 64;

/// The clock of one pool, and what its steps do.
#[derive(Debug)]
pub struct MeteredSteps<'a> {
    clock: &'a InstanceClock,
    /// The loads that were timed last, and their work.
    timed: RefCell<VecDeque<(Vec<StepLoad>, StepWork)>>,
    most: usize,
    sum: Cell<PoolWork>,
}

impl StepClock for MeteredSteps<'_> {
    fn seconds(&self, ranks: &[StepLoad]) -> f64 {
        let (seconds, work) = self.timed(ranks);
        let mut timed = self.timed.borrow_mut();
        let mut oldest = if timed.len() == self.most { timed.pop_front() } else { None }.unwrap_or_default();
        ranks.clone_into(&mut oldest.0);
        oldest.1 = work;
        timed.push_back(oldest);
        seconds
    }

    fn taken(&self, start_s: f64, end_s: f64, steps: u32, ranks: &[StepLoad]) {
        let work = match steps {
            1 => self.remembered(ranks).unwrap_or_else(|| self.timed(ranks).1),
            // Each step adds a token to every request that decodes: the one halfway is the mean of all.
            _ => {
                let mut halfway = ranks.to_vec();
                halfway
                    .iter_mut()
                    .for_each(|load| load.kv_tokens += u64::from(load.decoding) * u64::from(steps - 1) / 2);
                self.timed(&halfway).1
            }
        };
        let (lasted, steps) = (end_s - start_s, f64::from(steps));
        let mut sum = self.sum.get();
        sum.steps_s += lasted;
        sum.flops += steps * work.flops;
        sum.bytes += steps * work.bytes;
        sum.joules += lasted * self.device_watts((steps * work.compute_s, steps * work.memory_s), lasted);
        self.sum.set(sum);
    }
}

impl MeteredSteps<'_> {
    /// Time and work of a step.
    fn timed(&self, ranks: &[StepLoad]) -> (f64, StepWork) {
        let plan = &self.clock.instance.plan;
        let mut seconds: Option<f64> = None;
        let mut sum = StepWork::default();
        for load in self.clock.loads(ranks) {
            let mut operators = OperatorSums::default();
            let (step, whole) = self.clock.observed(&load, &mut operators);
            // Micro-batches that pass all stages before every request has its token.
            let passes = micro_batches(&load, plan.pp);
            sum.compute_s += passes * step.compute_time.value();
            sum.memory_s += passes * step.memory_time.value();
            sum.flops += passes * operators.flops;
            sum.bytes += passes * operators.bytes;
            seconds = Some(seconds.map_or(whole.value(), |most| most.max(whole.value())));
        }
        let devices = (plan.pp * plan.dp).max(1) as f64;
        let each = StepWork {
            compute_s: sum.compute_s / devices,
            memory_s: sum.memory_s / devices,
            flops: sum.flops / devices,
            bytes: sum.bytes / devices,
        };
        (seconds.unwrap_or(0.0), each)
    }

    /// The work of a step that was timed shortly before.
    fn remembered(&self, ranks: &[StepLoad]) -> Option<StepWork> {
        let timed = self.timed.borrow();
        timed.iter().rev().find(|(known, _)| known == ranks).map(|(_, work)| *work)
    }

    /// Power of a device whose arithmetic and memory are busy for this part of `period` seconds; 0 where it is unknown.
    fn device_watts(&self, (computing, moving): (f64, f64), period: f64) -> f64 {
        let Some(draw) = &self.clock.terms.power_draw else { return 0.0 };
        let share = |seconds: f64| match period > 0.0 {
            true => busy(Qty::from(seconds), Qty::from(1.0), Qty::from(period)),
            false => Qty::from(0.0),
        };
        watts(Qty::from(1.0), share(computing), share(moving), draw).value()
    }
}

/// Micro-batches of a step of this load in `stages` pipeline stages.
fn micro_batches(load: &RankLoad<Qty<f64>>, stages: u64) -> f64 {
    (stages as f64).min((load.decoding + load.prompts).value())
}

/// The clocks of all pools of a plan, and what their steps do.
#[derive(Debug)]
pub struct MeteredClock<'a> {
    clocks: &'a PlanClock,
    pools: Vec<MeteredSteps<'a>>,
}

impl<'a> MeteredClock<'a> {
    /// The same times as those of `clocks`.
    pub fn of(clocks: &'a PlanClock) -> MeteredClock<'a> {
        let pool = |clock: &'a InstanceClock| MeteredSteps {
            clock,
            timed: RefCell::default(),
            most: REMEMBERED,
            sum: Cell::default(),
        };
        MeteredClock { clocks, pools: clocks.pools.iter().map(pool).collect() }
    }

    /// The work of the steps of a pool so far.
    pub fn work(&self, pool: usize) -> PoolWork {
        self.pools[pool].sum.get()
    }

    /// Power of a device of a pool that does nothing; `None` where it is unknown.
    pub fn idle_watts(&self, pool: usize) -> Option<f64> {
        let steps = &self.pools[pool];
        steps.clock.terms.power_draw.as_ref().map(|_| steps.device_watts((0.0, 0.0), 1.0))
    }
}

impl<'a> DeploymentClock for MeteredClock<'a> {
    type Steps = MeteredSteps<'a>;

    fn of(&self, pool: usize) -> &MeteredSteps<'a> {
        &self.pools[pool]
    }

    fn transfer_s(&self, from: usize, to: usize, tokens: u32) -> f64 {
        self.clocks.transfer_s(from, to, tokens)
    }
}
