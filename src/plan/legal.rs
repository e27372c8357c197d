//! Legality of a plan: divisibility, topology, and runtime support.

use super::infeasible::Infeasible;
use super::locality::gcd;
use super::parallel::{LayerType, ParallelPlan};
use super::rules::RuntimeRules;
use super::scale_blocks::{self, BlockLimits};
use super::sharding::layer_type;
use crate::graph::dimensions::{
    CompressedAttention, CrossAttention, LatentAttention, Recurrence, RoutedExperts, SoftmaxAttention,
};
use crate::graph::model::{ModelGraph, OperatorNode};
use crate::graph::operator::{Operator, Split};
use crate::quantity::count::Count;
use crate::spec::degree::Degree;
use crate::spec::role::Role;

/// Constraints on a plan from outside the model.
#[derive(Clone, Debug)]
pub struct LegalLimits<'a> {
    /// Devices available.
    pub devices: u64,
    /// Devices of the innermost tier.
    pub domain: u64,
    /// Devices within which an instance may have any size: a node of several innermost tiers, or one such tier.
    pub block: u64,
    /// Blocks of weights that share a scale; `None` where shards may end anywhere.
    pub scales: Option<BlockLimits<'a>>,
    /// The rules of the runtime, and the format of the KV cache; `None` supports all.
    pub runtime: Option<(&'a RuntimeRules, &'a str)>,
}

fn divides(what: &'static str, whole: u64, degree: &'static str, parts: u64) -> Result<(), Infeasible> {
    if whole.is_multiple_of(parts) {
        Ok(())
    } else {
        Err(Infeasible::NotDivisible { what, whole, degree, parts })
    }
}

/// Checks the degrees of layer types: each divides the devices of a stage, and it and `tp` divide each other. Attention may
/// have fewer ranks: groups of devices then repeat it.
fn layer_degrees(plan: &ParallelPlan) -> Result<(), Infeasible> {
    divides("devices of a stage", plan.stage_devices(), "tp x cp x dp", plan.attention_ranks())?;
    if plan.sp && plan.attention_copies() > 1 {
        return Err(Infeasible::RepeatedUnderSp { copies: plan.attention_copies() });
    }
    for (degree, ranks) in [("ffn_tp", plan.ffn_tp), ("vocab_tp", plan.vocab_tp)] {
        let Some(ranks) = ranks else { continue };
        divides("devices of a stage", plan.stage_devices(), degree, ranks)?;
        match ranks > plan.tp {
            true => divides(degree, ranks, "tp", plan.tp)?,
            false => divides("tp", plan.tp, degree, ranks)?,
        }
        if plan.cp > 1 {
            return Err(Infeasible::LayerDegreeUnderCp { degree, cp: plan.cp });
        }
    }
    Ok(())
}

/// Checks that attention and dense layers divide over the devices of `plan`.
pub fn tensor_parallel(
    graph: &ModelGraph,
    plan: &ParallelPlan,
    limits: &LegalLimits,
) -> Result<(), Infeasible> {
    for node in graph.layer_nodes() {
        operator_divides(node, plan)?;
    }
    scale_blocks::dense(graph, plan, limits)?;
    graph.draft.as_ref().map_or(Ok(()), |draft| tensor_parallel(&draft.graph, plan, limits))
}

fn operator_divides(node: &OperatorNode, plan: &ParallelPlan) -> Result<(), Infeasible> {
    let layer_type = layer_type(&node.operator, node.role()).unwrap_or(LayerType::Attention);
    let tp = plan.tp_of(layer_type);
    let degree = match (layer_type, plan.ffn_tp) {
        (LayerType::FeedForward, Some(_)) => "ffn_tp",
        _ => "tp",
    };
    let over = |what, whole: Count| divides(what, whole.value, degree, tp);
    let matrix = |whole: Count| over("intermediate_size", whole);
    match node.operator {
        Operator::Attention(SoftmaxAttention { heads, kv_heads, .. })
        | Operator::CrossAttention(CrossAttention { heads, kv_heads, .. }) => {
            over("num_attention_heads", heads)?;
            let kv_heads = kv_heads.value;
            if kv_heads % tp != 0 && !tp.is_multiple_of(kv_heads) {
                return Err(Infeasible::KvHeads { kv_heads, tp });
            }
            Ok(())
        }
        Operator::Recurrence(Recurrence { heads, key_heads, .. }) => {
            over("state_heads", heads)?;
            if key_heads.value > 1 { over("state_key_heads", key_heads) } else { Ok(()) }
        }
        Operator::LatentAttention(LatentAttention { heads, .. })
        | Operator::CompressedAttention(CompressedAttention { heads, .. }) => {
            over("num_attention_heads", heads)
        }
        Operator::GroupedLinear { groups, .. } => over("groups", groups),
        Operator::ShortConv { split: Split::Replicate, .. } => Ok(()),
        Operator::ShortConv { channels, .. } => over("conv_channels", channels),
        Operator::Linear { output, split: Split::Column, .. } => matrix(output),
        Operator::Linear { input, split: Split::Row, .. } => matrix(input),
        // Heads are checked at their attention, vocabularies are padded, and replicated operators are whole.
        Operator::Linear {
            split: Split::Heads | Split::KvHeads | Split::Vocab | Split::Replicate, ..
        }
        | Operator::Embedding { .. }
        | Operator::Norm { .. }
        | Operator::Input { .. }
        | Operator::Rope { .. }
        | Operator::KvCache { .. }
        | Operator::Softmax(_)
        | Operator::HyperConnection { .. }
        | Operator::Indexer { .. }
        | Operator::Activation { .. }
        | Operator::Router { .. }
        | Operator::Add { .. }
        | Operator::Sampling { .. } => Ok(()),
        // Checked by `expert_parallel`.
        Operator::Experts(_) => Ok(()),
    }
}

/// Checks that the experts divide over `ep` devices and each expert over `moe_tp` devices.
pub fn expert_parallel(
    graph: &ModelGraph,
    ep: u64,
    moe_tp: u64,
    limits: &LegalLimits,
) -> Result<(), Infeasible> {
    for node in graph.layer_nodes() {
        if let Operator::Experts(RoutedExperts { experts, intermediate, .. }) = node.operator {
            divides("experts", experts.value, "ep", ep)?;
            divides("moe_intermediate_size", intermediate.value, "moe_tp", moe_tp)?;
            scale_blocks::experts(intermediate.value, moe_tp, limits)?;
        }
    }
    graph.draft.as_ref().map_or(Ok(()), |draft| expert_parallel(&draft.graph, ep, moe_tp, limits))
}

/// Checks that an instance of this many devices fits the system.
///
/// # Errors
/// Too many devices, or an instance that neither fits in a domain or node nor fills whole ones.
pub fn fits_topology(devices: u64, limits: &LegalLimits) -> Result<(), Infeasible> {
    if devices > limits.devices {
        return Err(Infeasible::TooManyDevices { devices, available: limits.devices });
    }
    let inside = devices <= limits.domain.max(limits.block);
    if !inside && !devices.is_multiple_of(limits.block) {
        return Err(Infeasible::NotWholeDomains { devices, domain: limits.block });
    }
    Ok(())
}

/// Checks that the runtime runs the plan in any role.
///
/// # Errors
/// The first rule that forbids it, or the first degree above 1 that the runtime does not support.
pub fn supported(plan: &ParallelPlan, limits: &LegalLimits) -> Result<(), Infeasible> {
    let Some((rules, kv)) = limits.runtime else { return Ok(()) };
    if !rules.roles(kv, plan).any() {
        rules.check(kv, &[(Role::Aggregated, *plan)])?;
    }
    // Experts that are cut alone need nothing beyond tensor parallelism.
    let used = |degree: Degree| match degree {
        Degree::MoeTp => plan.moe_tp > 1 && plan.ep > 1,
        _ => plan.used(degree).is_some(),
    };
    let degrees = Degree::stated().filter(|degree| used(*degree)).chain(plan.sp.then_some(Degree::Sp));
    match degrees.map(Degree::key).find(|degree| !rules.has(degree)) {
        Some(degree) => Err(Infeasible::NotSupported { runtime: rules.id.clone(), degree }),
        None => Ok(()),
    }
}

/// Whether the model has routed experts.
pub fn has_experts(graph: &ModelGraph) -> bool {
    let mut nodes = graph.layer_nodes();
    nodes.any(|node| matches!(node.operator, Operator::Experts(_)))
}

/// Checks that the KV cache and states of layers allow the plan.
///
/// # Errors
/// A state has no tokens for context parallelism to divide. A layer that reads another layer's KV cache must be on its
/// stage.
pub fn caches(graph: &ModelGraph, plan: &ParallelPlan) -> Result<(), Infeasible> {
    let states = graph.blocks.iter().any(|block| block.state_bytes_per_sequence() > 0);
    if states && plan.cp > 1 {
        return Err(Infeasible::StateNotDivided { cp: plan.cp });
    }
    let mut nodes = graph.layer_nodes();
    let shares = nodes.any(|node| matches!(node.operator, Operator::Attention(dims) if dims.shared));
    if shares && plan.pp > 1 {
        return Err(Infeasible::SharedCacheCut { pp: plan.pp });
    }
    if plan.dcp > 1 && plan.cp > 1 {
        return Err(Infeasible::CacheDividedTwice { cp: plan.cp, dcp: plan.dcp });
    }
    let ranks = if plan.dcp > 1 { ranks_per_cache(graph, plan.tp) } else { 1 };
    if ranks.is_multiple_of(plan.dcp) {
        Ok(())
    } else {
        Err(Infeasible::CacheNotShared { ranks, dcp: plan.dcp })
    }
}

/// Tensor-parallel ranks with the same part of the KV cache in every layer of the model and its draft.
///
/// 1 where a layer's attention has no exchange for a cache in parts, or a layer has a state.
pub fn ranks_per_cache(graph: &ModelGraph, tp: u64) -> u64 {
    let nodes = graph.layer_nodes();
    let own = nodes.filter_map(|node| match &node.operator {
        Operator::Attention(dims) => Some(tp / tp.min(dims.kv_heads.value)),
        Operator::LatentAttention(_) => Some(tp),
        // Their kernels have no exchange for a cache in parts, or a state.
        Operator::CrossAttention(_)
        | Operator::CompressedAttention(_)
        | Operator::Indexer { .. }
        | Operator::Recurrence(_)
        | Operator::ShortConv { .. } => Some(1),
        Operator::Input { .. }
        | Operator::Embedding { .. }
        | Operator::Norm { .. }
        | Operator::Linear { .. }
        | Operator::Rope { .. }
        | Operator::KvCache { .. }
        | Operator::Softmax(_)
        | Operator::HyperConnection { .. }
        | Operator::GroupedLinear { .. }
        | Operator::Activation { .. }
        | Operator::Router { .. }
        | Operator::Experts(_)
        | Operator::Add { .. }
        | Operator::Sampling { .. } => None,
    });
    let draft = graph.draft.as_ref().map(|draft| ranks_per_cache(&draft.graph, tp));
    own.chain(draft).reduce(gcd).unwrap_or(1)
}

/// All checks of one plan.
pub fn check(graph: &ModelGraph, plan: &ParallelPlan, limits: &LegalLimits) -> Result<(), Infeasible> {
    supported(plan, limits)?;
    layer_degrees(plan)?;
    tensor_parallel(graph, plan, limits)?;
    caches(graph, plan)?;
    if plan.pp > graph.layers.value {
        return Err(Infeasible::TooManyStages { layers: graph.layers.value, pp: plan.pp });
    }
    if has_experts(graph) {
        let (attention, experts) = (plan.stage_devices(), plan.moe_tp.saturating_mul(plan.ep));
        if attention != experts {
            return Err(Infeasible::ExpertRanks { attention, experts });
        }
        expert_parallel(graph, plan.ep, plan.moe_tp, limits)?;
    } else if plan.ep > 1 {
        return Err(Infeasible::NoExperts { ep: plan.ep });
    }
    fits_topology(plan.devices(), limits)
}
