//! One instance of the model on its devices: the plan laid over the graph for both phases, and where
//! its pipeline is cut.

use std::sync::Arc;

use crate::graph::model::ModelGraph;
use crate::plan::group::TierShape;
use crate::plan::legal::has_experts;
use crate::plan::parallel::{ParallelPlan, Phase};
use crate::plan::shard::{ShardedModel, shard};
use crate::plan::stages::blocks_per_stage;

/// Pipeline stages that hold the same.
#[derive(Clone, Debug, PartialEq)]
pub struct StageKind {
    /// Layers of each block.
    pub layers: Vec<u64>,
    /// Holds the embedding.
    pub first: bool,
    /// Holds the head.
    pub last: bool,
    /// How many such stages there are.
    pub times: u64,
}

/// An instance that may prefill, decode, or both.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Its degrees.
    pub plan: ParallelPlan,
    /// Layers of each pipeline stage.
    pub stages: Vec<u32>,
    /// The stages, like ones told once.
    pub kinds: Vec<StageKind>,
    /// The graph laid out for prompts.
    pub prefill: ShardedModel,
    /// The graph laid out for answers.
    pub decode: ShardedModel,
    /// Longest context the model states.
    pub max_context: Option<u64>,
    /// What guesses tokens ahead, on the devices of the last stage.
    pub draft: Option<Arc<DraftInstance>>,
}

/// What guesses tokens ahead, laid out.
#[derive(Clone, Debug)]
pub struct DraftInstance {
    /// On one stage.
    pub instance: Instance,
    /// Tokens guessed before each step.
    pub tokens: u64,
}

impl Instance {
    /// Lays `plan` over `graph`, the pipeline cut as `stages` says.
    pub fn new(graph: &ModelGraph, plan: ParallelPlan, stages: Vec<u32>, tiers: &[TierShape]) -> Instance {
        let decode = shard(graph, plan, Phase::Decode, tiers);
        Instance {
            plan,
            kinds: kinds(blocks_per_stage(&graph.layer_block, graph.blocks.len(), &stages)),
            stages,
            prefill: shard(graph, plan, Phase::Prefill, tiers),
            decode,
            max_context: graph.max_context,
            draft: graph.draft.as_ref().map(|draft| {
                let (graph, layers) = (&draft.graph, vec![draft.graph.layers.value as u32]);
                let instance = Instance::new(graph, beside(graph, plan), layers, tiers);
                Arc::new(DraftInstance { instance, tokens: draft.tokens })
            }),
        }
    }

    /// The same layout in `pp` pipeline stages that are cut as `stages` says. What a stage's devices do is shared
    /// with this one.
    pub fn piped(&self, graph: &ModelGraph, pp: u64, stages: Vec<u32>, tiers: &[TierShape]) -> Instance {
        Instance {
            plan: ParallelPlan { pp, ..self.plan },
            kinds: kinds(blocks_per_stage(&graph.layer_block, graph.blocks.len(), &stages)),
            stages,
            prefill: self.prefill.piped(graph, pp, tiers),
            decode: self.decode.piped(graph, pp, tiers),
            max_context: self.max_context,
            draft: self.draft.clone(),
        }
    }

    /// The graph laid out for `phase`.
    pub fn sharded(&self, phase: Phase) -> &ShardedModel {
        match phase {
            Phase::Prefill => &self.prefill,
            Phase::Decode => &self.decode,
        }
    }
}

/// The plan of what guesses ahead for a model with `plan`: on the devices of one stage, split as that is.
pub fn beside(draft: &ModelGraph, plan: ParallelPlan) -> ParallelPlan {
    let one = ParallelPlan { pp: 1, ..plan };
    if has_experts(draft) { one } else { ParallelPlan { ep: 1, moe_tp: plan.tp, ..one } }
}

fn kinds(stages: Vec<Vec<u64>>) -> Vec<StageKind> {
    let last = stages.len() - 1;
    let mut kinds: Vec<StageKind> = Vec::new();
    for (number, layers) in stages.into_iter().enumerate() {
        let kind = StageKind { layers, first: number == 0, last: number == last, times: 1 };
        match kinds.iter_mut().find(|known| StageKind { times: 1, ..(*known).clone() } == kind) {
            Some(known) => known.times += 1,
            None => kinds.push(kind),
        }
    }
    kinds
}
