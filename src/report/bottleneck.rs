//! The bottleneck of a decode step, without a line for each operator.

use super::breakdown::{ByClass, Class, milliseconds};
use crate::cost::roofline::Cost;
use crate::plan::parallel::Phase;
use crate::plan::shard::{ShardedBlock, TaskStep};
use crate::quantity::num::Qty;
use crate::serving::step::CostObserver;

/// Sums the time of decode steps by bottleneck while a deployment is evaluated.
#[derive(Clone, Copy, Debug, Default)]
pub struct DecodeClasses(ByClass);

impl DecodeClasses {
    /// The class with the largest time.
    pub fn largest(&self) -> Class {
        self.0.largest()
    }

    fn add(&mut self, phase: Phase, class: Class, times: u64, time: Qty<f64>) {
        if phase == Phase::Decode {
            self.0.add(class, milliseconds(times, time));
        }
    }
}

impl CostObserver<f64> for DecodeClasses {
    fn on_operator(&mut self, phase: Phase, block: &ShardedBlock, step: &TaskStep, cost: &Cost<Qty<f64>>) {
        self.add(phase, Class::of(&step.task, cost), block.layers.value, cost.time);
    }

    fn on_idle(&mut self, phase: Phase, _: &'static str, times: u64, time: Qty<f64>) {
        self.add(phase, Class::Overhead, times, time);
    }
}
