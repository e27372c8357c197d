//! Layers with a part in host memory: computed by the host's processor, or copied to the device where that is faster.

use super::instance::StageKind;
use super::step::{CostObserver, LayerTime, layer};
use crate::cost::batch::Batch;
use crate::cost::experts::Experts;
use crate::cost::host::{HostMachine, hosted_bytes};
use crate::cost::machine::Machine;
use crate::cost::roofline::Cost;
use crate::cost::task::price;
use crate::graph::operator::Operator;
use crate::graph::tensor::TensorRole;
use crate::plan::parallel::Phase;
use crate::plan::shard::{ShardedBlock, ShardedModel, Task, TaskStep};
use crate::quantity::count::Count;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;
use crate::quantity::unit::{BYTE, SECOND};
use crate::spec::host_part::{HostedTensors, PromptWay};

/// Whether a layer of `block` has routed experts.
pub fn has_experts(block: &ShardedBlock) -> bool {
    block.steps.iter().any(is_experts)
}

fn is_experts(step: &TaskStep) -> bool {
    matches!(&step.task, Task::Compute { operator: Operator::Experts(_), .. })
}

/// The routed experts of a block, if any, without the elements of their matrices.
pub(super) fn routed_experts<R: Reading>(read: &R, block: &ShardedBlock) -> Option<Experts<Qty<R::N>>> {
    block.steps.iter().find_map(|step| match &step.task {
        Task::Compute { operator: Operator::Experts(dims), .. } => {
            Some(Experts::of(read, dims, || Qty::from(0.0)))
        }
        Task::Compute { .. } | Task::Communicate(_) => None,
    })
}

/// Layers of block `at` with a part in host memory, over all stages.
pub(super) fn away(kinds: &[StageKind], at: usize) -> u64 {
    kinds.iter().map(|kind| kind.times * kind.hosted.get(at).copied().unwrap_or(0)).sum()
}

/// `block` with another number of layers, for the lines of a breakdown.
pub(super) fn counted(block: &ShardedBlock, layers: u64) -> ShardedBlock {
    ShardedBlock { layers: Count::plan("layers_here", layers), ..block.clone() }
}

/// One layer of a step whose tensors lie in host memory.
pub(super) struct HostedLayer<'a, T> {
    pub(super) tensors: HostedTensors,
    pub(super) model: &'a ShardedModel,
    pub(super) block: &'a ShardedBlock,
    pub(super) phase: Phase,
    pub(super) batch: &'a Batch<T>,
    pub(super) machine: &'a Machine<T>,
    pub(super) host: &'a HostMachine<T>,
}

impl<N: Num> HostedLayer<'_, Qty<N>> {
    /// Its time. The observer sees the faster way.
    pub(super) fn time<R: Reading<N = N>>(
        &self,
        read: &R,
        watch: &mut impl CostObserver<N>,
    ) -> LayerTime<Qty<N>> {
        let streams = self.host.prompt.contains(&PromptWay::Stream)
            && !self.host.path.stream_from.exceeds(self.batch.tokens);
        let computes = self.phase == Phase::Decode || self.host.prompt.contains(&PromptWay::Compute);
        let ways =
            [(computes || !streams).then_some(PromptWay::Compute), streams.then_some(PromptWay::Stream)];
        let rated = ways.into_iter().flatten().map(|way| {
            let one = read.within(format_args!("host_ways"), || self.way(read, way, &mut ()));
            (way, one.time)
        });
        let fastest = rated.reduce(|best, next| if best.1.exceeds(next.1) { next } else { best });
        let (way, _) = fastest.expect("one way at least");
        read.within(format_args!("host"), || {
            let found = self.way(read, way, watch);
            LayerTime { time: found.time.is(&HOSTED_LAYER).result(), ..found }
        })
    }

    fn way<R: Reading<N = N>>(
        &self,
        read: &R,
        way: PromptWay,
        watch: &mut impl CostObserver<N>,
    ) -> LayerTime<Qty<N>> {
        match way {
            PromptWay::Stream => {
                let one = layer(read, self.block, self.phase, self.batch, self.machine, true, watch);
                let copies = self.copies(read);
                watch.on_idle(self.phase, "weights over the host link", self.block.layers.value, copies);
                LayerTime { time: one.time + copies, ..one }
            }
            PromptWay::Compute => match self.tensors {
                HostedTensors::Layers => {
                    let processor = &self.host.processor;
                    let one = layer(read, self.block, self.phase, self.batch, processor, false, watch);
                    let nothing = Qty::literal(0.0 * SECOND);
                    let cross = self.cross(read, watch);
                    LayerTime { time: one.time + cross, compute_time: nothing, memory_time: nothing }
                }
                HostedTensors::Experts => self.experts_there(read, watch),
            },
        }
    }

    /// The layer on the device, its routed experts on the processor, one after the other.
    fn experts_there<R: Reading<N = N>>(
        &self,
        read: &R,
        watch: &mut impl CostObserver<N>,
    ) -> LayerTime<Qty<N>> {
        let (there, here): (Vec<TaskStep>, Vec<TaskStep>) =
            self.block.steps.iter().cloned().partition(is_experts);
        let rest = ShardedBlock { steps: here, ..self.block.clone() };
        let one = layer(read, &rest, self.phase, self.batch, self.machine, true, watch);
        let mut time = one.time + self.cross(read, watch);
        for step in &there {
            let processor = &self.host.processor;
            let scope = format_args!("{}/host_experts", self.block.name);
            let cost = read.within(scope, || {
                let weights = &self.block.weights;
                let cost = price(read, &step.task, self.phase, self.batch, processor, weights, |_, _| {});
                Cost { time: cost.time.result(), ..cost }
            });
            watch.on_operator(self.phase, self.block, step, &cost);
            time = time + cost.time;
        }
        LayerTime { time, ..one }
    }

    fn cross<R: Reading<N = N>>(&self, read: &R, watch: &mut impl CostObserver<N>) -> Qty<N> {
        let time = self.host.cross(self.batch.tokens, read.count(self.model.hidden));
        watch.on_idle(self.phase, "activations to the host and back", self.block.layers.value, time);
        time
    }

    /// Time of copying the weights of the layer that lie in host memory: of routed experts, those that a micro-batch
    /// activates.
    fn copies<R: Reading<N = N>>(&self, read: &R) -> Qty<N> {
        let passes = self.host.passes(self.batch.tokens);
        let each = self.batch.tokens / passes;
        let experts = routed_experts(read, self.block);
        let mut bytes = Qty::literal(0.0 * BYTE);
        for (role, &elements) in self.block.weights.iter().enumerate().filter(|(_, count)| **count > 0) {
            let routed = role == TensorRole::Expert as usize;
            if self.tensors == HostedTensors::Experts && !routed {
                continue;
            }
            let count = read.count(Count::derived("elements_here", elements, "elements of this layer"));
            let weight_bytes = self.machine.chip.weight_bytes(self.machine.quantised[role]);
            let all = hosted_bytes(count, weight_bytes);
            bytes = match experts.as_ref().filter(|_| routed) {
                Some(experts) => bytes + all * experts.touched(each),
                None => bytes + all,
            };
        }
        self.host.stream(bytes, passes)
    }
}

crate::formulas! {
    HOSTED_LAYER {
        symbol: "hosted_layer_time",
        unit: SECOND,
        why: "one request computes its layers in sequence: the device's part, then the part of the host's processor, or the copy of the weights where the runtime copies and that is faster",
        cite: "KTransformers, https://github.com/kvcache-ai/ktransformers; llama.cpp --n-cpu-moe and --override-tensor",
    }
}
