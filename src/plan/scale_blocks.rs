//! Blocks of weights that share a scale: no shard of a quantised matrix may end inside one, unless the runtime pads the
//! shard or divides the block.

use super::infeasible::Infeasible;
use super::legal::LegalLimits;
use super::locality::gcd;
use super::parallel::{LayerType, ParallelPlan};
use super::shard::ROLES;
use super::sharding::layer_type;
use crate::graph::model::{Block, ModelGraph, OperatorNode};
use crate::graph::operator::{Operator, Split};
use crate::graph::tensor::TensorRole;
use crate::spec::format::ScaleBlock;
use crate::spec::rule::{CutBlocks, DividedMatrix};

/// The blocks of a weight format, and the roles that are in it.
#[derive(Clone, Debug)]
pub struct BlockLimits<'a> {
    pub block: ScaleBlock,
    pub roles: [bool; ROLES],
    /// Id of the weight format.
    pub format: &'a str,
}

/// One side of a matrix, divided over devices.
#[derive(Clone, Copy, Debug)]
pub struct DividedSide {
    /// Its name in messages.
    pub what: &'static str,
    pub role: TensorRole,
    pub matrix: DividedMatrix,
    /// Elements of the side.
    pub whole: u64,
    /// Number of shards.
    pub parts: u64,
    /// Whether the inputs are divided; else the outputs.
    pub inputs: bool,
}

/// Checks the matrices of attention and dense layers.
pub fn dense(graph: &ModelGraph, plan: &ParallelPlan, limits: &LegalLimits) -> Result<(), Infeasible> {
    if limits.scales.is_none() {
        return Ok(());
    }
    for block in &graph.blocks {
        sides(block, plan).try_for_each(|side| uncut(&side, limits))?;
    }
    Ok(())
}

/// Checks the matrices of experts that `parts` devices share.
pub fn experts(intermediate: u64, parts: u64, limits: &LegalLimits) -> Result<(), Infeasible> {
    for inputs in [false, true] {
        let (role, matrix) = (TensorRole::Expert, DividedMatrix::Experts);
        let what = "moe_intermediate_size";
        uncut(&DividedSide { what, role, matrix, whole: intermediate, parts, inputs }, limits)?;
    }
    Ok(())
}

/// The divided sides of the matrices of a layer, without those of its routed experts.
pub fn sides<'a>(block: &'a Block, plan: &'a ParallelPlan) -> impl Iterator<Item = DividedSide> + 'a {
    let nodes = || block.order.iter().map(|node| &block.graph[*node]);
    let kv_heads = nodes().find_map(|node| match &node.operator {
        Operator::Attention(dims) => Some(dims.kv_heads.value),
        _ => None,
    });
    nodes().filter_map(move |node| side(node, kv_heads, plan))
}

/// The divided side of a node's matrix.
///
/// Without KV heads, queries have a matrix of their own; else they are joined with keys and values, as gate and up are.
fn side(node: &OperatorNode, kv_heads: Option<u64>, plan: &ParallelPlan) -> Option<DividedSide> {
    let role = node.role()?;
    let tp = plan.tp_of(layer_type(&node.operator, Some(role)).unwrap_or(LayerType::Attention));
    let alone = if kv_heads.is_some() { DividedMatrix::JoinedOutputs } else { DividedMatrix::Outputs };
    let (matrix, whole, parts, inputs) = match &node.operator {
        Operator::Linear { input, split: Split::Row, .. } => (DividedMatrix::Inputs, input.value, tp, true),
        Operator::Linear { output, split: Split::Column, .. } => {
            (DividedMatrix::JoinedOutputs, output.value, tp, false)
        }
        Operator::Linear { output, split: Split::Heads, .. } => (alone, output.value, tp, false),
        Operator::Linear { output, split: Split::KvHeads, .. } => {
            (alone, output.value, kv_heads.map_or(tp, |heads| tp.min(heads)), false)
        }
        // Its matrix makes keys and values of the latents.
        Operator::LatentAttention(dims) => {
            let head = dims.qk_nope_head_dim.value + dims.v_head_dim.value;
            (DividedMatrix::Outputs, dims.heads.value * head, tp, false)
        }
        _ => return None,
    };
    let what = match role {
        TensorRole::Mlp | TensorRole::SharedExpert => "intermediate_size",
        _ => node.name,
    };
    Some(DividedSide { what, role, matrix, whole, parts, inputs })
}

/// Checks one side of a matrix.
///
/// Servers check the outputs of experts even where one device has all of them.
fn uncut(side: &DividedSide, limits: &LegalLimits) -> Result<(), Infeasible> {
    let (Some(scales), Some((rules, _))) = (&limits.scales, limits.runtime) else { return Ok(()) };
    let block = if side.inputs { scales.block.inputs } else { scales.block.outputs };
    let shard = side.whole / side.parts;
    let is_checked = side.parts > 1 || (side.matrix == DividedMatrix::Experts && !side.inputs);
    // A matrix that is narrower than a block stays in the checkpoint's own dtype.
    let narrow = side.whole < block && side.matrix != DividedMatrix::Experts;
    if !scales.roles[side.role as usize] || !is_checked || narrow || shard.is_multiple_of(block) {
        return Ok(());
    }
    let allows = |cut: &&CutBlocks| cut.allows(scales.format, side.matrix, gcd(shard, block));
    if rules.cuts().any(|cut| allows(&cut)) {
        return Ok(());
    }
    let since = rules.later_cuts().find(allows).and_then(|cut| cut.versions.as_ref()?.from.clone());
    let (runtime, format) = (rules.id.clone(), scales.format.to_owned());
    Err(Infeasible::BlockCut { what: side.what, shard, block, runtime, format, since })
}
