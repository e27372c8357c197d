//! The sharded graph: each device's share of every operator, and the required collectives, in execution order.

use std::ops::Deref;
use std::sync::Arc;

use super::collective::{Collective, CollectiveOp, Tokens};
use super::group::{RankGroup, TierShape};
use super::layout::BlockSharder;
use super::parallel::{ParallelPlan, Phase};
use super::sharding::TokenShare;
use crate::graph::cache::Cache;
use crate::graph::model::{Block, ModelGraph};
use crate::graph::operator::Operator;
use crate::graph::tensor::TensorRole;
use crate::graph::tower::TowerPart;
use crate::quantity::count::Count;

/// Number of [`TensorRole`]s.
pub const ROLES: usize = TensorRole::Tower as usize + 1;

/// Weight elements on one device, by role.
pub type Elements = [u64; ROLES];

/// A device's share of one operator, or a collective.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// The operator with the dimensions and weights of this device.
    Compute {
        /// With local dimensions.
        operator: Operator,
        /// TensorRole of its matrix.
        role: TensorRole,
        /// Matrix elements on this device.
        matrix: u64,
        /// Vector elements (biases, norms, sinks) on this device.
        vectors: u64,
        /// The tokens of this device.
        tokens: TokenShare,
    },
    Communicate(Collective),
}

impl Task {
    /// Whether its work depends on which sequence a token belongs to: attention and states. All others take the tokens
    /// of a step as they come.
    pub fn is_per_sequence(&self) -> bool {
        match self {
            Task::Compute { operator, .. } => operator.is_per_sequence(),
            Task::Communicate(collective) => match collective.tokens {
                Tokens::KeysValues | Tokens::Cached => true,
                Tokens::Rank(_) | Tokens::Dispatched { .. } => false,
            },
        }
    }
}

/// A task and its position in the layer.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskStep {
    /// Its position in the layer.
    pub name: &'static str,
    /// The computation or collective.
    pub task: Task,
}

#[derive(Clone, Debug)]
pub struct ShardedBlock {
    /// Its name in explanations.
    pub name: &'static str,
    /// Layers of this kind (1 for embedding and head).
    pub layers: Count,
    /// Tasks in execution order.
    pub steps: Vec<TaskStep>,
    /// Weights of one layer on one device.
    pub weights: Elements,
    /// Those of `weights` that several layers share.
    pub shared: Elements,
    /// Cache and state of one layer and sequence on one device.
    pub caches: Vec<Cache>,
    /// Part of a vision or audio encoder.
    pub encoder: bool,
}

/// The sharded encoder of each request's images, on the first pipeline stage.
#[derive(Clone, Debug)]
pub struct ShardedEncoder {
    /// Images per request.
    pub images: Count,
    /// Tiles of an image, which are encoded independently.
    pub crops: Count,
    /// Its parts, each with the positions of one tile.
    pub parts: Vec<(ShardedBlock, Count)>,
    /// Widest activation between its operators, elements per position on one device.
    pub widest: Count,
}

/// A model sharded for one phase.
#[derive(Clone, Debug)]
pub struct ShardedModel {
    pub plan: ParallelPlan,
    /// Transfer from one pipeline stage to the next.
    pub handover: Option<Box<Collective>>,
    /// The rest does not depend on the number of pipeline stages.
    device: Arc<DeviceShare>,
}

impl Deref for ShardedModel {
    type Target = DeviceShare;

    fn deref(&self) -> &DeviceShare {
        &self.device
    }
}

/// A device's share of every layer in one phase, of which its stage has some.
#[derive(Clone, Debug)]
pub struct DeviceShare {
    pub phase: Phase,
    /// Embedding lookup, on the first pipeline stage.
    pub embedding: ShardedBlock,
    /// The layers.
    pub blocks: Vec<ShardedBlock>,
    /// Final norm, vocabulary projection and sampling, on the last pipeline stage.
    pub head: ShardedBlock,
    /// Weights of vision and audio encoders on one device of the first pipeline stage.
    ///
    /// Engines shard encoders over tensor-parallel ranks as they shard layers (vLLM `--mm-encoder-tp-mode weights`).
    pub towers: Elements,
    /// The encoder of the images of each request, if any.
    pub encoder: Option<ShardedEncoder>,
    /// The head reads the embedding's weights.
    pub tied: bool,
    /// Width of the residual stream.
    pub hidden: Count,
    /// Rows of the vocabulary, all of which sampling reads.
    pub vocab: Count,
    /// Widest activation between operators, in elements per token on one device.
    pub widest: Count,
}

/// Shards `graph` by `plan`. The plan must have passed [`super::legal::check`].
pub fn shard(graph: &ModelGraph, plan: ParallelPlan, phase: Phase, tiers: &[TierShape]) -> ShardedModel {
    let lay = |block| BlockSharder::new(plan, phase, tiers, block).run();
    let blocks: Vec<_> = graph.blocks.iter().map(lay).collect();
    let widest = widest(blocks.iter()).unwrap_or(graph.hidden);
    let device = Arc::new(DeviceShare {
        phase,
        embedding: lay(&graph.embedding),
        blocks,
        head: lay(&graph.head),
        towers: towers(graph, lay),
        encoder: encoder(graph, plan, tiers),
        tied: graph.tied,
        hidden: stream(graph),
        vocab: graph.vocab,
        widest,
    });
    ShardedModel { plan, handover: handover(graph, plan, tiers), device }
}

impl ShardedModel {
    /// The same sharding with `pp` pipeline stages. The work of a stage's devices does not depend on the number of
    /// stages.
    pub fn piped(&self, graph: &ModelGraph, pp: u64, tiers: &[TierShape]) -> ShardedModel {
        let plan = ParallelPlan { pp, ..self.plan };
        ShardedModel { plan, handover: handover(graph, plan, tiers), device: Arc::clone(&self.device) }
    }
}

/// Transfer from one pipeline stage to the next, if there are several.
fn handover(graph: &ModelGraph, plan: ParallelPlan, tiers: &[TierShape]) -> Option<Box<Collective>> {
    let whole = RankGroup::place(plan.pp, plan.stage_devices(), tiers)?;
    let pair = RankGroup { size: 2, inner: 2, inner_tier: whole.outer_tier, ..whole };
    Some(Box::new(Collective::new(
        CollectiveOp::SendRecv,
        pair,
        stream(graph).split(plan.tp),
        Tokens::Rank(TokenShare::Own),
        tiers,
    )))
}

/// Data from one layer to the next: the residual stream, or all streams if there are several.
fn stream(graph: &ModelGraph) -> Count {
    let input = graph.head.order.first().map(|node| &graph.head.graph[*node].operator);
    graph.carried.unwrap_or_else(|| input.map_or(graph.hidden, Operator::output))
}

/// Elements of all encoders on one device.
fn towers<'g>(graph: &'g ModelGraph, lay: impl Fn(&'g Block) -> ShardedBlock) -> Elements {
    let mut sums = [0; ROLES];
    for part in graph.towers.iter().flat_map(|tower| &tower.parts) {
        let weights = lay(&part.block).weights;
        sums.iter_mut().zip(weights).for_each(|(sum, one)| *sum += part.block.repeats() * one);
    }
    sums
}

/// The sharded encoder. Engines divide it over tensor-parallel ranks only.
fn encoder(graph: &ModelGraph, plan: ParallelPlan, tiers: &[TierShape]) -> Option<ShardedEncoder> {
    let seen = graph.image_inputs.as_ref()?;
    let plan = ParallelPlan { cp: 1, dcp: 1, sp: false, ffn_tp: None, vocab_tp: None, ..plan };
    let lay = |part: &TowerPart| ShardedBlock {
        encoder: true,
        ..BlockSharder::new(plan, Phase::Prefill, tiers, &part.block).run()
    };
    let blocks: Vec<_> = graph.towers[seen.tower].parts.iter().map(lay).collect();
    let widest = widest(blocks.iter()).unwrap_or(graph.hidden);
    let parts = blocks.into_iter().zip(seen.positions.iter().copied()).collect();
    Some(ShardedEncoder { images: seen.images, crops: seen.crops, parts, widest })
}

/// The widest activation between operators.
fn widest<'b>(blocks: impl Iterator<Item = &'b ShardedBlock>) -> Option<Count> {
    let widths = blocks.flat_map(|block| &block.steps).map(|step| width_of(&step.task));
    widths.max_by_key(|width| width.value)
}

/// Elements of the result for each token of an attention rank.
fn width_of(task: &Task) -> Count {
    match task {
        Task::Compute { operator: Operator::Linear { output, .. }, role, tokens, .. }
            if *role != TensorRole::LmHead =>
        {
            match *tokens {
                TokenShare::Pooled(ranks) => Count { value: output.value * ranks, ..*output },
                TokenShare::Own | TokenShare::Divided(_) => *output,
            }
        }
        _ => Count::derived("width", 0, "no activation"),
    }
}
