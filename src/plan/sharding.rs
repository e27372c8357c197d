//! Shardings of tensors on tensor-parallel ranks, in the terms of GSPMD and DTensor: required input, output, and the
//! collective for a mismatch.

use super::collective::CollectiveOp;
use crate::graph::operator::{Operator, Split};
use crate::quantity::count::Count;

/// Sharding of a tensor on the ranks of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharding {
    /// Replicate: every rank holds all of it.
    Replicate,
    /// Shard: every rank holds a slice of its channels or heads.
    Shard,
    /// Partial: every rank holds a summand of it.
    Partial,
    /// Every rank holds some of its tokens (sequence parallelism, or the results of experts before the combine).
    Tokens,
}

/// Sharding of an operator's output, given that of its input.
pub fn output(operator: &Operator, input: Sharding) -> Sharding {
    match operator {
        Operator::Input { .. } | Operator::Router { .. } | Operator::Indexer { .. } => Sharding::Replicate,
        Operator::Embedding { split: Split::Replicate, .. } => Sharding::Replicate,
        Operator::Embedding { .. } | Operator::Experts { .. } => Sharding::Partial,
        Operator::Linear { split, .. } => match split {
            Split::Column | Split::Heads | Split::KvHeads | Split::Vocab => Sharding::Shard,
            Split::Row => Sharding::Partial,
            Split::Replicate => Sharding::Replicate,
        },
        Operator::ShortConv { split: Split::Replicate, .. } => Sharding::Replicate,
        Operator::Norm { .. } | Operator::Activation { .. } | Operator::HyperConnection { .. } => input,
        Operator::Attention { .. }
        | Operator::LatentAttention { .. }
        | Operator::CrossAttention { .. }
        | Operator::CompressedAttention { .. }
        | Operator::GroupedLinear { .. }
        | Operator::ShortConv { .. }
        | Operator::Recurrence { .. } => Sharding::Shard,
        Operator::Add { .. } | Operator::Sampling { .. } => Sharding::Replicate,
    }
}

/// The collective required before `operator` for an input sharded as `input`.
pub fn collective_op(operator: &Operator, input: Sharding) -> Option<CollectiveOp> {
    match (operator, input) {
        (_, Sharding::Replicate) => None,
        (
            Operator::Norm { split: Split::Replicate, .. }
            | Operator::Add { .. }
            | Operator::HyperConnection { .. },
            Sharding::Tokens,
        ) => None,
        (_, Sharding::Tokens) => Some(CollectiveOp::AllGather),
        (Operator::Sampling { .. }, Sharding::Shard) => Some(CollectiveOp::AllGather),
        (Operator::Linear { split: Split::Row, .. }, Sharding::Shard) => None,
        (Operator::Linear { .. } | Operator::Router { .. } | Operator::Experts { .. }, Sharding::Shard) => {
            Some(CollectiveOp::AllGather)
        }
        // A norm over a sharded width sums squares across ranks: one number per token.
        (Operator::Norm { split: Split::Replicate, .. }, Sharding::Shard) => Some(CollectiveOp::AllReduce),
        (_, Sharding::Partial) => Some(CollectiveOp::AllReduce),
        (_, Sharding::Shard) => None,
    }
}

/// Elements per token in a collective on this result.
pub(super) fn result_width(operator: &Operator) -> Count {
    match *operator {
        Operator::Input { width } | Operator::Norm { width, .. } | Operator::Activation { width, .. } => {
            width
        }
        Operator::Add { width } => width,
        Operator::Embedding { hidden, .. } | Operator::Experts { hidden, .. } => hidden,
        Operator::Linear { output, .. } => output,
        Operator::Attention { heads, v_head_dim, .. }
        | Operator::LatentAttention { heads, v_head_dim, .. }
        | Operator::CrossAttention { heads, head_dim: v_head_dim, .. } => {
            Count::derived("attention_width", heads.value * v_head_dim.value, "heads × v_head_dim")
        }
        Operator::CompressedAttention { .. } | Operator::HyperConnection { .. } => operator.output(),
        Operator::GroupedLinear { .. } | Operator::ShortConv { .. } | Operator::Recurrence { .. } => {
            operator.output()
        }
        Operator::Router { experts, .. } => experts,
        Operator::Indexer { top_k, .. } => top_k,
        Operator::Sampling { vocab } => vocab,
    }
}
