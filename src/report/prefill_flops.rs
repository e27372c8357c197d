//! FLOPs of the prefill of one prompt by the unsharded model, as this program counts them and as older tools print them.

use crate::cost::roofline::Cost;
use crate::graph::mask::AttentionMask;
use crate::graph::model::{Block, ModelGraph};
use crate::graph::operator::{Operator, Split};
use crate::plan::parallel::{ParallelPlan, Phase};
use crate::plan::shard::{ShardedBlock, Task, TaskStep};
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::search::problem::Problem;
use crate::serving::instance::Instance;
use crate::serving::step::{CostObserver, batch, pass};

/// FLOPs of the prefill of one prompt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrefillFlops {
    /// As this program counts: causal attention, every operator, the LM head for the last token.
    pub flops: f64,
    /// As older tools print: matrix products, attention and norms; every query sees every key; no LM head, no image
    /// encoder.
    pub noncausal_without_head: f64,
}

/// FLOPs of the prefill of one prompt of `problem`, less the tokens in the prefix cache.
pub fn prefill_flops(problem: &Problem) -> PrefillFlops {
    PrefillFlops {
        flops: sum(problem, &problem.graph, |_, _| true),
        noncausal_without_head: sum(problem, &without_causality(&problem.graph), is_classic),
    }
}

/// Sum of the FLOPs of the operators that `counts` selects.
fn sum(problem: &Problem, graph: &ModelGraph, counts: fn(&ShardedBlock, &Operator) -> bool) -> f64 {
    let graph = ModelGraph { draft: None, ..graph.clone() };
    let stages = vec![graph.layer_block.len() as u32];
    let instance = Instance::new(&graph, ParallelPlan::SINGLE, stages, &[]);
    let terms = problem.terms();
    let new = terms.isl - terms.prefix;
    let load = batch(&Plain, &instance, Phase::Prefill, Qty::from(1.0), new, terms.prefix);
    // FLOPs do not depend on the formats.
    let machine = problem.formats[0].plain();
    let mut flops = FlopCounter { counts, sum: 0.0 };
    pass(&Plain, &instance, Phase::Prefill, &load, machine, &mut flops);
    flops.sum
}

struct FlopCounter {
    counts: fn(&ShardedBlock, &Operator) -> bool,
    sum: f64,
}

impl CostObserver<f64> for FlopCounter {
    fn on_operator(&mut self, _: Phase, block: &ShardedBlock, step: &TaskStep, cost: &Cost<Qty<f64>>) {
        if let Task::Compute { operator, .. } = &step.task
            && (self.counts)(block, operator)
        {
            self.sum += cost.flops.value() * block.layers.value as f64;
        }
    }

    fn on_idle(&mut self, _: Phase, _: &'static str, _: u64, _: Qty<f64>) {}
}

/// Whether older tools count an operator.
fn is_classic(block: &ShardedBlock, operator: &Operator) -> bool {
    if block.encoder {
        return false;
    }
    match operator {
        Operator::Linear { split, .. } => *split != Split::Vocab,
        Operator::Norm { .. }
        | Operator::Attention(_)
        | Operator::LatentAttention(_)
        | Operator::CrossAttention(_)
        | Operator::CompressedAttention(_)
        | Operator::Indexer { .. }
        | Operator::GroupedLinear { .. }
        | Operator::ShortConv { .. }
        | Operator::Recurrence(_)
        | Operator::Router { .. }
        | Operator::Experts(_) => true,
        // They left out element-wise operators, lookups and sampling.
        _ => false,
    }
}

/// The graph with attention in which every query sees every key. Windows and chunks stay.
fn without_causality(graph: &ModelGraph) -> ModelGraph {
    let mut graph = graph.clone();
    graph.blocks.iter_mut().for_each(uncover);
    graph
}

fn uncover(block: &mut Block) {
    for node in block.graph.node_weights_mut() {
        let mask = match &mut node.operator {
            Operator::Attention(dims) => &mut dims.mask,
            Operator::LatentAttention(dims) => &mut dims.mask,
            _ => continue,
        };
        if *mask == AttentionMask::All {
            *mask = AttentionMask::Both;
        }
    }
}
