//! The parallelised graph of a deployment: shards of every operator, collectives, KV cache, pipeline stages.

use crate::spec::role::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::forbidden;
use super::shard::{Shard, ShardDimension, divided};
use crate::graph::cache::Cache;
use crate::plan::collective::{Collective, CollectiveOp, Tokens};
use crate::plan::parallel::{ParallelPlan, Phase};
use crate::plan::shard::{ShardedBlock, ShardedModel, Task, TaskStep};
use crate::plan::sharding::TokenShare;
use crate::quantity::count::Count;
use crate::search::candidate::{Candidate, PoolPlan};
use crate::search::problem::Problem;
use crate::serving::instance::Instance;

/// A collective between devices.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CollectiveReport {
    /// The operation, e.g. `all_reduce`.
    pub operation: String,
    /// Number of devices.
    pub devices: u64,
    /// Devices in one unit of the inner tier of the interconnect.
    pub devices_of_inner_tier: u64,
    /// Elements per token.
    pub elements_per_token: u64,
    /// Its tokens.
    pub tokens: String,
    /// Overlaps with the operator before it.
    pub overlaps: bool,
}

/// An operator or a collective of a layer.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ParallelStep {
    /// Name in the layer.
    pub name: String,
    /// Kind of the operator, or `collective`.
    pub kind: String,
    /// The part of an operator on one device.
    pub shard: Option<Shard>,
    /// Weight elements of the operator on one device.
    pub weights: u64,
    /// The collective.
    pub collective: Option<CollectiveReport>,
}

/// A KV cache or state of a layer.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CacheReport {
    /// `heads`, `latent`, `index_keys`, `entries` or the name of a state.
    pub kind: String,
    /// Its dimensions.
    pub shape: Vec<ShardDimension>,
    /// Number of different shards.
    pub shards: u64,
    /// Devices that divide the tokens of a sequence.
    pub token_shards: u64,
    /// Devices of an attention rank with the same elements of the same tokens.
    pub replicas: u64,
}

/// Equal layers, or the embedding or head.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ParallelBlock {
    /// Its name.
    pub name: String,
    /// Number of layers.
    pub layers: u64,
    /// Weight elements of one layer on one device.
    pub weights: u64,
    /// Operators and collectives in execution order.
    pub steps: Vec<ParallelStep>,
    /// Caches of one layer.
    pub caches: Vec<CacheReport>,
}

/// The blocks of a phase.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ParallelPhase {
    /// Prefill or decode.
    pub phase: Phase,
    /// Embedding, layers and head; in prefill, the image encoder before them.
    pub blocks: Vec<ParallelBlock>,
    /// Transfer to the next pipeline stage.
    pub handover: Option<CollectiveReport>,
}

/// A pipeline stage.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ParallelStage {
    /// Its first layer, from 0.
    pub first_layer: u64,
    /// Number of its layers.
    pub layers: u64,
    /// Its devices in each replica.
    pub devices: u64,
    /// It has the embedding.
    pub embedding: bool,
    /// It has the head.
    pub head: bool,
}

/// A replica or worker.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ParallelPool {
    /// Role of the pool.
    #[serde(alias = "duty")]
    pub role: Role,
    /// Its parallelism, e.g. `tp4 pp2`.
    pub label: String,
    /// Degrees of parallelism.
    pub plan: ParallelPlan,
    /// Number of replicas or workers.
    pub replicas: u64,
    /// Pipeline stages.
    pub stages: Vec<ParallelStage>,
    /// The phases that it runs.
    pub phases: Vec<ParallelPhase>,
}

/// The parallelised graph of a deployment.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ParallelGraph {
    /// The model.
    pub model: String,
    /// The devices.
    pub hardware: String,
    /// Its pools; none where the model cannot be divided like this.
    pub pools: Vec<ParallelPool>,
    /// The reasons why the model cannot be divided like this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<String>,
}

/// The parallelised graph of a candidate of `problem`, whose model is `model`.
pub fn parallel_graph(problem: &Problem, candidate: &Candidate, model: String) -> ParallelGraph {
    let violations: Vec<String> = forbidden(problem, candidate).iter().map(ToString::to_string).collect();
    // A plan that is not legal has no shards.
    let pools = match violations.is_empty() {
        true => candidate.pools.iter().zip(candidate.instances(problem)).collect(),
        false => vec![],
    };
    ParallelGraph {
        model,
        hardware: problem.cluster.name.clone(),
        pools: pools.into_iter().map(|(pool, instance)| pool_graph(pool, &instance)).collect(),
        violations,
    }
}

fn pool_graph(pool: &PoolPlan, instance: &Instance) -> ParallelPool {
    let phases: &[Phase] = match pool.role {
        Role::Aggregated => &[Phase::Prefill, Phase::Decode],
        Role::Prefill => &[Phase::Prefill],
        Role::Decode => &[Phase::Decode],
    };
    let last = pool.stages.len().saturating_sub(1);
    let mut first_layer = 0;
    let stage = |(number, &layers): (usize, &u32)| {
        let layers = u64::from(layers);
        first_layer += layers;
        ParallelStage {
            first_layer: first_layer - layers,
            layers,
            devices: pool.plan.stage_devices(),
            embedding: number == 0,
            head: number == last,
        }
    };
    ParallelPool {
        role: pool.role,
        label: pool.plan.label(),
        plan: pool.plan,
        replicas: pool.replicas,
        stages: pool.stages.iter().enumerate().map(stage).collect(),
        phases: phases.iter().map(|phase| phase_graph(instance.sharded(*phase))).collect(),
    }
}

fn phase_graph(model: &ShardedModel) -> ParallelPhase {
    let encoder = model.encoder.as_ref().filter(|_| model.phase == Phase::Prefill);
    let images = encoder.into_iter().flat_map(|encoder| encoder.parts.iter().map(|(block, _)| block));
    let blocks = images.chain([&model.embedding]).chain(model.blocks.iter()).chain([&model.head]);
    ParallelPhase {
        phase: model.phase,
        blocks: blocks.map(|block| block_graph(block, model)).collect(),
        handover: model.handover.as_deref().map(collective),
    }
}

fn block_graph(block: &ShardedBlock, model: &ShardedModel) -> ParallelBlock {
    ParallelBlock {
        name: block.name.to_string(),
        layers: block.layers.value,
        weights: block.weights.iter().sum(),
        steps: block.steps.iter().map(|step| step_graph(step, &model.plan)).collect(),
        caches: block.caches.iter().map(|one| cache(one, model)).collect(),
    }
}

fn step_graph(step: &TaskStep, plan: &ParallelPlan) -> ParallelStep {
    let (kind, weights, exchange) = match &step.task {
        Task::Compute { operator, matrix, vectors, .. } => (operator.kind(), matrix + vectors, None),
        Task::Communicate(exchange) => ("collective", 0, Some(collective(exchange))),
    };
    ParallelStep {
        name: step.name.to_string(),
        kind: kind.to_string(),
        shard: Shard::of(&step.task, plan),
        weights,
        collective: exchange,
    }
}

fn collective(exchange: &Collective) -> CollectiveReport {
    let operation = match exchange.op {
        CollectiveOp::AllReduce => "all_reduce",
        CollectiveOp::ReduceScatter => "reduce_scatter",
        CollectiveOp::AllGather => "all_gather",
        CollectiveOp::AllToAll => "all_to_all",
        CollectiveOp::SendRecv => "send_recv",
    };
    let tokens = match exchange.tokens {
        Tokens::Rank(TokenShare::Own) => "tokens of the attention rank",
        Tokens::Rank(TokenShare::Divided(_)) => "part of the tokens of the attention rank",
        Tokens::Rank(TokenShare::Pooled(_)) => "tokens of several attention ranks",
        Tokens::Dispatched { .. } => "tokens of the device, once for each device with one of their experts",
        Tokens::KeysValues => "keys and values of the sequence",
        Tokens::Cached => "cached keys and values of the sequence",
    };
    CollectiveReport {
        operation: operation.to_string(),
        devices: exchange.group.size,
        devices_of_inner_tier: exchange.group.inner,
        elements_per_token: exchange.width.value,
        tokens: tokens.to_string(),
        overlaps: exchange.overlaps,
    }
}

fn cache(cache: &Cache, model: &ShardedModel) -> CacheReport {
    let (kind, dims): (&str, Vec<(&str, Count)>) = match *cache {
        Cache::Heads { kv_heads, head_dim, v_head_dim, .. } => {
            ("heads", vec![("kv_heads", kv_heads), ("head_dim", head_dim), ("v_head_dim", v_head_dim)])
        }
        Cache::Latent { kv_lora_rank, qk_rope_head_dim, .. } => {
            ("latent", vec![("kv_lora_rank", kv_lora_rank), ("qk_rope_head_dim", qk_rope_head_dim)])
        }
        Cache::IndexKeys { head_dim, every } => {
            ("index_keys", vec![("head_dim", head_dim), ("every", every)])
        }
        Cache::Entries { width, every, .. } => ("entries", vec![("width", width), ("every", every)]),
        Cache::State { name, elements, .. } => (name, vec![("elements", elements)]),
    };
    let (shape, parts): (Vec<_>, Vec<u64>) = dims.iter().map(|(name, count)| divided(name, count)).unzip();
    let shards = parts.into_iter().max().unwrap_or(1);
    let state = matches!(cache, Cache::State { .. });
    let plan = &model.plan;
    let dcp = if state { 1 } else { plan.dcp };
    CacheReport {
        kind: kind.to_string(),
        shape,
        shards,
        token_shards: if state { 1 } else { plan.cache_ranks().value },
        replicas: (plan.tp / (shards * dcp).max(1)).max(1),
    }
}
