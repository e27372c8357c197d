//! Memory that a server reserves for LoRA adapters.

use crate::graph::dimensions::SoftmaxAttention;
use crate::graph::model::{Block, ModelGraph};
use crate::graph::operator::{Operator, Split};
use crate::graph::tensor::TensorRole;

/// Elements of the adapters of rank 1 on a device, over all layers: of each pair of matrices the tensor-parallel ranks
/// divide one side, as they divide the matrix that it adapts, and hold the other side whole. Routed experts and the
/// vocabulary have none here.
///
/// Source: <https://github.com/vllm-project/vllm>, vllm/lora/layers (`create_lora_weights`).
pub fn adapter_width(graph: &ModelGraph, tp: u64) -> u64 {
    let adapted = |role: Option<TensorRole>| matches!(role, Some(TensorRole::Attention | TensorRole::Mlp));
    // Key and value heads are replicated beyond their number.
    let kv = |block: &Block| {
        block.graph.node_weights().find_map(|node| match &node.operator {
            Operator::Attention(SoftmaxAttention { kv_heads, .. }) => Some(kv_heads.value.min(tp)),
            _ => None,
        })
    };
    let stored = graph.stored_nodes().into_iter().filter(|(_, node, _)| adapted(node.role()));
    stored.map(|(block, node, copies)| copies * sides(&node.operator, tp, kv(block).unwrap_or(tp))).sum()
}

/// Both sides of the adapter of a matrix on a device.
fn sides(operator: &Operator, tp: u64, kv: u64) -> u64 {
    let Operator::Linear { input, output, split } = operator else { return 0 };
    let (input, output) = (input.value, output.value);
    match split {
        Split::Row => input.div_ceil(tp) + output,
        Split::Column | Split::Heads => input + output.div_ceil(tp),
        Split::KvHeads => input + output.div_ceil(kv),
        Split::Replicate => input + output,
        Split::Vocab => 0,
    }
}
