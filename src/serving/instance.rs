//! One replica or worker: the sharded model for prefill and decode, and its pipeline stages.

use std::sync::Arc;

use super::hosted::has_experts as has_routed;
use crate::graph::model::ModelGraph;
use crate::plan::group::TierShape;
use crate::plan::legal::has_experts;
use crate::plan::parallel::{ParallelPlan, Phase};
use crate::plan::shard::{ShardedModel, shard};
use crate::plan::stages::{blocks_per_stage, sharing_per_stage};
use crate::spec::host_part::{HostPart, HostedTensors};

/// Identical pipeline stages.
#[derive(Clone, Debug, PartialEq)]
pub struct StageKind {
    /// Layers of each block.
    pub layers: Vec<u64>,
    /// Of these, the layers with a part in host memory; empty where the stage has none.
    pub hosted: Vec<u64>,
    /// Of these, the layers whose shared weights another layer of the stage has; empty where no layers share weights.
    pub sharing: Vec<u64>,
    /// Includes the embedding.
    pub first: bool,
    /// Includes the head.
    pub last: bool,
    /// Number of such stages.
    pub times: u64,
}

impl StageKind {
    /// Whether both are the same but for their number.
    fn is_like(&self, other: &StageKind) -> bool {
        (self.first, self.last) == (other.first, other.last)
            && self.layers == other.layers
            && self.hosted == other.hosted
            && self.sharing == other.sharing
    }
}

/// A replica (aggregated) or a prefill or decode worker (disaggregated).
#[derive(Clone, Debug)]
pub struct Instance {
    /// Its parallel degrees.
    pub plan: ParallelPlan,
    /// Layers of each pipeline stage.
    pub stages: Vec<u32>,
    /// The distinct stages, each listed once.
    pub kinds: Arc<[StageKind]>,
    pub prefill: ShardedModel,
    pub decode: ShardedModel,
    /// Longest context that the model supports.
    pub max_context: Option<u64>,
    /// The draft for speculative decoding, on the devices of the last stage.
    pub draft: Option<Arc<DraftInstance>>,
    /// The tensors of the hosted layers that lie in host memory and are computed there, if any.
    pub hosted: Option<HostedTensors>,
}

/// A sharded draft.
#[derive(Clone, Debug)]
pub struct DraftInstance {
    /// Its shards, on one stage.
    pub instance: Instance,
    /// Draft tokens per step.
    pub tokens: u64,
}

impl Instance {
    /// Shards `graph` by `plan`, with the pipeline stages given by `stages`.
    pub fn new(graph: &ModelGraph, plan: ParallelPlan, stages: Vec<u32>, tiers: &[TierShape]) -> Instance {
        let decode = shard(graph, plan, Phase::Decode, tiers);
        Instance {
            plan,
            kinds: stage_kinds(graph, &stages),
            stages,
            prefill: shard(graph, plan, Phase::Prefill, tiers),
            decode,
            max_context: graph.max_context,
            draft: graph.draft.as_ref().map(|draft| {
                let (graph, layers) = (&draft.graph, vec![draft.graph.layers.value as u32]);
                let instance = Instance::new(graph, draft_plan(graph, plan), layers, tiers);
                Arc::new(DraftInstance { instance, tokens: draft.tokens })
            }),
            hosted: None,
        }
    }

    /// The same sharding with pipeline stages of `cut`. The work of one stage's devices is shared with this instance.
    pub fn piped(&self, graph: &ModelGraph, cut: &PipelineCut, tiers: &[TierShape]) -> Instance {
        let pp = cut.stages.len() as u64;
        Instance {
            plan: ParallelPlan { pp, ..self.plan },
            kinds: cut.kinds.clone(),
            stages: cut.stages.clone(),
            prefill: self.prefill.piped(graph, pp, tiers),
            decode: self.decode.piped(graph, pp, tiers),
            max_context: self.max_context,
            draft: self.draft.clone(),
            hosted: None,
        }
    }

    /// The same instance with `part` of each stage in host memory.
    pub fn hosting(self, graph: &ModelGraph, part: HostPart) -> Instance {
        let blocks = graph.blocks.len();
        let all = blocks_per_stage(&graph.layer_block, blocks, &self.stages);
        let mut from = 0;
        let mut hosted = Vec::new();
        for &layers in &self.stages {
            let first = graph.layer_block.iter().skip(from).take(layers.min(part.layers) as usize);
            let mut counts = vec![0; blocks];
            for &block in first {
                let away = match part.tensors {
                    HostedTensors::Experts => has_routed(&self.decode.blocks[block]),
                    HostedTensors::Layers => true,
                };
                counts[block] += u64::from(away);
            }
            hosted.push(counts);
            from += layers as usize;
        }
        let sharing = sharing_per_stage(graph, &self.stages);
        Instance { kinds: kinds(all, hosted, sharing), hosted: Some(part.tensors), ..self }
    }

    /// The model sharded for `phase`.
    pub fn sharded(&self, phase: Phase) -> &ShardedModel {
        match phase {
            Phase::Prefill => &self.prefill,
            Phase::Decode => &self.decode,
        }
    }
}

/// The stages of a pipeline: their layers, and the distinct ones.
#[derive(Clone, Debug)]
pub struct PipelineCut {
    stages: Vec<u32>,
    kinds: Arc<[StageKind]>,
}

impl PipelineCut {
    /// A pipeline of `graph` with these layers in each stage.
    pub fn new(graph: &ModelGraph, stages: Vec<u32>) -> PipelineCut {
        PipelineCut { kinds: stage_kinds(graph, &stages), stages }
    }
}

/// The distinct stages with these layers.
fn stage_kinds(graph: &ModelGraph, stages: &[u32]) -> Arc<[StageKind]> {
    let all = blocks_per_stage(&graph.layer_block, graph.blocks.len(), stages);
    kinds(all, vec![], sharing_per_stage(graph, stages))
}

/// The plan of the draft for a model with `plan`: on the devices of one stage, with the same tensor parallelism.
pub fn draft_plan(draft: &ModelGraph, plan: ParallelPlan) -> ParallelPlan {
    let one = ParallelPlan { pp: 1, ..plan };
    if has_experts(draft) { one } else { one.without_experts() }
}

/// Equal stages, each listed once. `hosted` and `sharing` hold such layers of each stage, or nothing.
fn kinds(stages: Vec<Vec<u64>>, hosted: Vec<Vec<u64>>, sharing: Vec<Vec<u64>>) -> Arc<[StageKind]> {
    let last = stages.len() - 1;
    let mut kinds: Vec<StageKind> = Vec::new();
    let (mut hosted, mut sharing) = (hosted.into_iter(), sharing.into_iter());
    for (number, layers) in stages.into_iter().enumerate() {
        let (hosted, sharing) = (hosted.next().unwrap_or_default(), sharing.next().unwrap_or_default());
        let (first, last) = (number == 0, number == last);
        let kind = StageKind { layers, hosted, sharing, first, last, times: 1 };
        match kinds.iter_mut().find(|known| known.is_like(&kind)) {
            Some(known) => known.times += 1,
            None => kinds.push(kind),
        }
    }
    kinds.into()
}
