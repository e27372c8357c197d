//! How each operator is sharded, in the terms of GSPMD and DTensor: its dimensions and weights on one device, the
//! sharding of its result, and the collective that its input needs. Every match lists every operator.

use super::collective::CollectiveOp;
use super::parallel::LayerType;
use crate::graph::dimensions::{
    CompressedAttention, CrossAttention, LatentAttention, Recurrence, RoutedExperts, ScoredKeys, Scores,
    SoftmaxAttention,
};
use crate::graph::operator::{Operator, Split};
use crate::graph::tensor::TensorRole;
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

/// The tokens that a device works on. Layers whose tensor-parallel degree is not that of attention work on more or
/// fewer tokens than an attention rank has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenShare {
    /// Those of its attention rank.
    Own,
    /// An equal part of them: this many ranks divide them.
    Divided(u64),
    /// Those of this many attention ranks.
    Pooled(u64),
}

/// Sharding of an operator's result, the number of ranks, and its tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorLayout {
    pub sharding: Sharding,
    /// Number of ranks.
    pub parts: u64,
    /// Its tokens, of which [`Sharding::Tokens`] is a further division.
    pub tokens: TokenShare,
}

impl TensorLayout {
    /// `sharding` over `parts` ranks of the tokens of an attention rank.
    pub fn over(sharding: Sharding, parts: u64) -> TensorLayout {
        TensorLayout { sharding, parts, tokens: TokenShare::Own }
    }
}

/// Replicated.
pub const WHOLE: TensorLayout =
    TensorLayout { sharding: Sharding::Replicate, parts: 1, tokens: TokenShare::Own };

/// The degrees over which operators are divided.
#[derive(Clone, Copy, Debug)]
pub struct ShardDegrees {
    /// Tensor-parallel ranks.
    pub tp: u64,
    /// Tensor-parallel ranks that divide the tokens of the KV cache in decode; 1 in prefill. Each of them has the heads
    /// of all.
    pub dcp: u64,
    /// Tensor-parallel ranks with different key/value heads; beyond their number heads are replicated.
    pub kv: u64,
    /// Expert-parallel ranks.
    pub ep: u64,
    /// Ranks that share each expert.
    pub moe_tp: u64,
}

impl ShardDegrees {
    /// Number of parts of a matrix.
    fn of(self, split: Split) -> u64 {
        match split {
            Split::Column | Split::Row | Split::Heads | Split::Vocab => self.tp,
            Split::KvHeads => self.kv,
            Split::Replicate => 1,
        }
    }
}

/// `operator` with the dimensions of one device.
pub fn local(operator: &Operator, input: TensorLayout, degrees: ShardDegrees) -> Operator {
    let shard = |count: &mut Count, parts: u64| *count = count.split(parts);
    let ShardDegrees { tp, dcp, kv, ep, moe_tp } = degrees;
    let channels = if input.sharding == Sharding::Shard { input.parts } else { 1 };
    let mut local = operator.clone();
    match &mut local {
        Operator::Linear { input, split: Split::Row, .. } => shard(input, tp),
        Operator::Linear { output, split, .. } => shard(output, degrees.of(*split)),
        Operator::Embedding { vocab, split, .. } => shard(vocab, degrees.of(*split)),
        Operator::Norm { width, split: Split::Replicate, .. } | Operator::Activation { width, .. } => {
            shard(width, channels)
        }
        Operator::Norm { rows, split, .. } => shard(rows, degrees.of(*split)),
        Operator::Attention(SoftmaxAttention { heads, kv_heads, .. }) => {
            shard(heads, tp / dcp);
            shard(kv_heads, kv);
        }
        Operator::Rope { heads, split, .. } | Operator::KvCache { heads, split, .. } => {
            shard(heads, degrees.of(*split));
        }
        Operator::Softmax(Scores { heads, keys: ScoredKeys::Masked(_) }) => shard(heads, tp / dcp),
        Operator::Softmax(Scores { heads, .. }) => shard(heads, tp),
        Operator::CrossAttention(CrossAttention { heads, kv_heads, .. }) => {
            shard(heads, tp);
            shard(kv_heads, kv);
        }
        Operator::LatentAttention(LatentAttention { heads, .. }) => shard(heads, tp / dcp),
        Operator::CompressedAttention(CompressedAttention { heads, .. }) => shard(heads, tp),
        Operator::GroupedLinear { groups, .. } => shard(groups, tp),
        Operator::ShortConv { channels, split, .. } => shard(channels, degrees.of(*split)),
        Operator::Recurrence(Recurrence { heads, key_heads, .. }) => {
            shard(heads, tp);
            shard(key_heads, tp.min(key_heads.value));
        }
        Operator::Experts(RoutedExperts { experts, intermediate, .. }) => {
            shard(experts, ep);
            shard(intermediate, moe_tp);
        }
        Operator::Input { .. }
        | Operator::HyperConnection { .. }
        | Operator::Indexer { .. }
        | Operator::Router { .. }
        | Operator::Add { .. }
        | Operator::Sampling { .. } => {}
    }
    local
}

/// Elements on one device of a weight with `elements`, of tensor rank `rank`.
pub fn weight(
    operator: &Operator,
    elements: u64,
    role: TensorRole,
    rank: usize,
    degrees: ShardDegrees,
) -> u64 {
    let parts = match operator {
        // Whole rows of the vocabulary.
        Operator::Linear { output, split: Split::Vocab, .. } if rank < 2 => {
            return output.value.div_ceil(degrees.tp);
        }
        Operator::Linear { input, output, split: Split::Vocab } => {
            return input.value * output.value.div_ceil(degrees.tp);
        }
        Operator::Embedding { vocab, hidden, split: Split::Vocab } => {
            return vocab.value.div_ceil(degrees.tp) * hidden.value;
        }
        // Every rank adds the bias of the whole result, or one rank does.
        Operator::Linear { split: Split::Row, .. } if role == TensorRole::Bias => 1,
        Operator::Linear { split, .. }
        | Operator::Embedding { split, .. }
        | Operator::ShortConv { split, .. } => degrees.of(*split),
        Operator::Attention(_)
        | Operator::LatentAttention(_)
        | Operator::CompressedAttention(_)
        | Operator::GroupedLinear { .. }
        | Operator::Recurrence(_) => degrees.tp,
        Operator::CrossAttention(_) if role == TensorRole::Attention => degrees.kv,
        Operator::Experts(_) => degrees.ep * degrees.moe_tp,
        // A per-head scale is sharded with its head.
        Operator::Norm { split, .. } if rank == 2 => degrees.of(*split),
        Operator::Norm { .. }
        | Operator::CrossAttention(_)
        | Operator::Input { .. }
        | Operator::HyperConnection { .. }
        | Operator::Indexer { .. }
        | Operator::Rope { .. }
        | Operator::KvCache { .. }
        | Operator::Softmax(_)
        | Operator::Activation { .. }
        | Operator::Router { .. }
        | Operator::Add { .. }
        | Operator::Sampling { .. } => 1,
    };
    elements.div_ceil(parts)
}

/// The type of the layer that an operator belongs to, by the role of its weights; `None` where it follows its input.
pub fn layer_type(operator: &Operator, role: Option<TensorRole>) -> Option<LayerType> {
    match operator {
        Operator::Embedding { .. } | Operator::Linear { split: Split::Vocab, .. } => {
            Some(LayerType::Vocabulary)
        }
        Operator::Linear { .. } => Some(match role {
            Some(TensorRole::Mlp | TensorRole::SharedExpert) => LayerType::FeedForward,
            _ => LayerType::Attention,
        }),
        Operator::Norm { .. } | Operator::Activation { .. } => None,
        Operator::Input { .. }
        | Operator::Attention(_)
        | Operator::Rope { .. }
        | Operator::KvCache { .. }
        | Operator::Softmax(_)
        | Operator::LatentAttention(_)
        | Operator::CrossAttention(_)
        | Operator::CompressedAttention(_)
        | Operator::HyperConnection { .. }
        | Operator::Indexer { .. }
        | Operator::GroupedLinear { .. }
        | Operator::ShortConv { .. }
        | Operator::Recurrence(_)
        | Operator::Router { .. }
        | Operator::Experts(_)
        | Operator::Add { .. }
        | Operator::Sampling { .. } => Some(LayerType::Attention),
    }
}

/// Layout of an operator's result, given that of its input.
pub fn output(operator: &Operator, input: TensorLayout, degrees: ShardDegrees) -> TensorLayout {
    let over = |sharding| TensorLayout::over(sharding, degrees.tp);
    let layout = match operator {
        Operator::Input { .. }
        | Operator::Router { .. }
        | Operator::Indexer { .. }
        | Operator::Add { .. }
        | Operator::Sampling { .. } => WHOLE,
        Operator::Norm { .. }
        | Operator::Rope { .. }
        | Operator::KvCache { .. }
        | Operator::Activation { .. }
        | Operator::HyperConnection { .. } => input,
        Operator::Linear { split: Split::Row, .. } => over(Sharding::Partial),
        Operator::Embedding { split, .. } if degrees.of(*split) > 1 => over(Sharding::Partial),
        // Heads that are replicated on some of the ranks are sharded; those on all of them are not.
        Operator::Linear { split, .. } | Operator::ShortConv { split, .. } if degrees.of(*split) > 1 => {
            over(Sharding::Shard)
        }
        Operator::Linear { .. } | Operator::Embedding { .. } | Operator::ShortConv { .. } => WHOLE,
        Operator::Attention(_)
        | Operator::Softmax(_)
        | Operator::LatentAttention(_)
        | Operator::CrossAttention(_)
        | Operator::CompressedAttention(_)
        | Operator::GroupedLinear { .. }
        | Operator::Recurrence(_) => over(Sharding::Shard),
        Operator::Experts(_) => TensorLayout::over(Sharding::Partial, degrees.ep * degrees.moe_tp),
    };
    if layout.parts == 1 { WHOLE } else { layout }
}

/// The collective required before `operator` for an input sharded as `input`.
pub fn collective_op(operator: &Operator, input: Sharding) -> Option<CollectiveOp> {
    let gather = Some(CollectiveOp::AllGather);
    let (of_tokens, of_shards) = match operator {
        // A norm over a sharded width sums squares across ranks: one number per token.
        Operator::Norm { split: Split::Replicate, .. } => (None, Some(CollectiveOp::AllReduce)),
        Operator::Add { .. } | Operator::HyperConnection { .. } => (None, None),
        Operator::Linear { split: Split::Row, .. } => (gather, None),
        Operator::Linear { .. }
        | Operator::Router { .. }
        | Operator::Experts(_)
        | Operator::Sampling { .. } => (gather, gather),
        Operator::Input { .. }
        | Operator::Embedding { .. }
        | Operator::Norm { .. }
        | Operator::Attention(_)
        | Operator::Rope { .. }
        | Operator::KvCache { .. }
        | Operator::Softmax(_)
        | Operator::LatentAttention(_)
        | Operator::CrossAttention(_)
        | Operator::CompressedAttention(_)
        | Operator::Indexer { .. }
        | Operator::GroupedLinear { .. }
        | Operator::ShortConv { .. }
        | Operator::Recurrence(_)
        | Operator::Activation { .. } => (gather, None),
    };
    match input {
        Sharding::Replicate => None,
        Sharding::Partial => Some(CollectiveOp::AllReduce),
        Sharding::Tokens => of_tokens,
        Sharding::Shard => of_shards,
    }
}

/// Exchange between context-parallel ranks, which hold different tokens of a sequence.
pub struct ContextExchange {
    /// Elements of a token's queries, which tensor-parallel ranks with a part of the KV cache each read from each other.
    pub queries: Count,
    /// Key and value elements of a token, which ranks read from each other in prefill.
    pub keys: Count,
    /// Elements of a token's partial result, which ranks merge in decode.
    pub merged: Count,
}

/// The exchange of `operator` under context parallelism; `None` where every rank has what it needs.
pub fn context_exchange(operator: &Operator, degrees: ShardDegrees) -> Option<ContextExchange> {
    let merged = |heads: Count, width: Count| {
        let elements = heads.split(degrees.tp / degrees.dcp).value * (width.value + 4);
        Count::derived("merged_width", elements, "heads per device × (value width + max and sum in fp32)")
    };
    let queries = |heads: Count, width: u64, how| {
        Count::derived("query_width", heads.split(degrees.tp / degrees.dcp).value * width, how)
    };
    let keys = |elements, how| Count::derived("kv_width", elements, how);
    match operator {
        Operator::Attention(SoftmaxAttention { heads, kv_heads, head_dim, v_head_dim, .. }) => {
            let kv = kv_heads.split(degrees.kv).value * (head_dim.value + v_head_dim.value);
            let keys = keys(kv, "KV heads per device × (head_dim + v_head_dim)");
            let queries = queries(*heads, head_dim.value, "heads of the ranks × head_dim");
            Some(ContextExchange { queries, keys, merged: merged(*heads, *v_head_dim) })
        }
        Operator::LatentAttention(LatentAttention { heads, kv_lora_rank, qk_rope_head_dim, .. }) => {
            let kv = kv_lora_rank.value + qk_rope_head_dim.value;
            let keys = keys(kv, "kv_lora_rank + qk_rope_head_dim");
            let queries = queries(*heads, kv, "heads of the ranks × (kv_lora_rank + qk_rope_head_dim)");
            Some(ContextExchange { queries, keys, merged: merged(*heads, *kv_lora_rank) })
        }
        Operator::Input { .. }
        | Operator::Embedding { .. }
        | Operator::Norm { .. }
        | Operator::Linear { .. }
        | Operator::Rope { .. }
        | Operator::KvCache { .. }
        | Operator::Softmax(_)
        | Operator::CrossAttention(_)
        | Operator::CompressedAttention(_)
        | Operator::HyperConnection { .. }
        | Operator::Indexer { .. }
        | Operator::GroupedLinear { .. }
        | Operator::ShortConv { .. }
        | Operator::Recurrence(_)
        | Operator::Activation { .. }
        | Operator::Router { .. }
        | Operator::Experts(_)
        | Operator::Add { .. }
        | Operator::Sampling { .. } => None,
    }
}
