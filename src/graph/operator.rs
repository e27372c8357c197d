//! The kinds of operator, with their dimensions. A closed list: `plan` and `cost` match every one.

use super::dimensions::{
    CompressedAttention, CrossAttention, LatentAttention, NamedCounts, Recurrence, RoutedExperts, Scores,
    SoftmaxAttention,
};
use super::rule::ConvForm;
use crate::quantity::count::Count;

/// Sharding of a matrix over tensor-parallel devices (Megatron-LM's terms).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Split {
    /// By output: each device computes a slice of the result.
    Column,
    /// By input: each device computes a partial sum of the whole result.
    Row,
    /// By output, in whole query heads.
    Heads,
    /// By output, in whole key/value heads, which are replicated beyond their number.
    KvHeads,
    /// By vocabulary row, padded to a multiple.
    Vocab,
    /// Replicated: every device holds and computes the whole.
    Replicate,
}

/// One unsharded operator of a layer, as on a single device.
///
/// Widths are elements per token.
#[derive(Clone, Debug, PartialEq)]
pub enum Operator {
    /// Input of a block: the residual stream.
    Input {
        /// Elements per token.
        width: Count,
    },
    /// Embedding lookup: one row per token.
    Embedding {
        /// Rows.
        vocab: Count,
        /// Elements a row.
        hidden: Count,
        /// How a plan may shard it: `Vocab`, or `Replicate` for position embeddings.
        split: Split,
    },
    /// RMSNorm or LayerNorm over `width` elements, `rows` times per token (`rows` > 1: per head).
    Norm {
        /// Elements normalised together.
        width: Count,
        /// Rows per token (1, or the number of heads).
        rows: Count,
        /// How the rows are sharded: `Heads` or `KvHeads` for per-head norms, otherwise `Replicate`.
        split: Split,
    },
    /// A dense matrix: `[tokens × input] · [input × output]`.
    Linear {
        /// Inner dimension.
        input: Count,
        /// Outer dimension.
        output: Count,
        /// How a plan may shard it.
        split: Split,
    },
    /// Softmax attention over cached keys and values (MHA, GQA or MQA), fused.
    Attention(SoftmaxAttention),
    /// Rotary position encoding of queries or new keys, inside the kernel of their attention.
    Rope {
        heads: Count,
        /// Elements of a head that are rotated.
        rotary: Count,
        /// Elements of a head.
        head_dim: Count,
        /// Base of the angles.
        theta: Count,
        /// How the heads are sharded: `Heads`, `KvHeads`, or `Replicate` for a key that all heads share.
        split: Split,
    },
    /// The KV cache of a layer: entries of new tokens join those of earlier ones. Its traffic belongs to the attention that
    /// reads it.
    KvCache {
        /// Heads with entries of their own.
        heads: Count,
        /// Elements of a head and token.
        width: Count,
        /// How the heads are sharded: `KvHeads`, or `Replicate` for entries that all heads share.
        split: Split,
    },
    /// Softmax over the scores, inside the kernel of their attention.
    Softmax(Scores),
    /// Multi-head latent attention (MLA), with `kv_b`.
    LatentAttention(LatentAttention),
    /// Cross-attention to encoder states, with `k_proj` and `v_proj`.
    CrossAttention(CrossAttention),
    /// Attention over a window and over entries for several tokens each.
    CompressedAttention(CompressedAttention),
    /// Parallel residual streams: the weighted sum before a network, or the mixing with its result after it.
    HyperConnection {
        /// Elements of a stream.
        hidden: Count,
        streams: Count,
        /// True after the network, false before it.
        expands: bool,
    },
    /// Scores all visible keys with light heads over a shared key and selects `top_k` of them.
    Indexer {
        heads: Count,
        /// Elements of a head, and of the key that all heads share.
        head_dim: Count,
        /// Keys selected per query.
        top_k: Count,
        /// Tokens per key.
        every: Count,
    },
    /// Grouped matrix product, with one matrix per slice of the input: `[tokens × input] · [input × output]`, `groups`
    /// times.
    GroupedLinear {
        /// Slices.
        groups: Count,
        /// Inner dimension of one slice.
        input: Count,
        /// Outer dimension of one slice.
        output: Count,
    },
    /// A depthwise causal convolution over the last tokens.
    ShortConv {
        channels: Count,
        /// Kernel width in tokens.
        kernel: Count,
        /// The gates or activation fused with it.
        form: ConvForm,
        /// How the channels are sharded: `Heads`, or `Replicate`.
        split: Split,
    },
    /// A state per head that each token decays, writes and reads: linear attention and state-space models.
    Recurrence(Recurrence),
    /// `act(gate) × up` (gated) or `act(x)`, element-wise over `width` results.
    Activation {
        /// Elements of the result.
        width: Count,
        /// Two inputs per element instead of one.
        gated: bool,
    },
    /// Scores the experts and selects `top_k` of them per token.
    Router {
        /// Inner dimension.
        hidden: Count,
        /// Routed experts.
        experts: Count,
        /// Experts selected per token.
        top_k: Count,
    },
    /// The routed experts' feed-forward networks, grouped.
    Experts(RoutedExperts),
    /// Adds its inputs to the residual stream.
    Add {
        /// Elements per token.
        width: Count,
    },
    /// Samples a token from the logits.
    Sampling {
        /// Logits per token.
        vocab: Count,
    },
}

impl Operator {
    /// The operator's kind in inspections and errors.
    pub fn kind(&self) -> &'static str {
        match self {
            Operator::Input { .. } => "input",
            Operator::Embedding { .. } => "embedding",
            Operator::Norm { .. } => "norm",
            Operator::Linear { .. } => "linear",
            Operator::Attention(_) => "attention",
            Operator::Rope { .. } => "rope",
            Operator::KvCache { .. } => "kv_cache",
            Operator::Softmax(_) => "softmax",
            Operator::LatentAttention(_) => "latent_attention",
            Operator::GroupedLinear { .. } => "grouped_linear",
            Operator::ShortConv { .. } => "short_conv",
            Operator::Recurrence(dims) => dims.rule.name(),
            Operator::CrossAttention(_) => "cross_attention",
            Operator::CompressedAttention(_) => "compressed_attention",
            Operator::HyperConnection { .. } => "hyper_connection",
            Operator::Indexer { .. } => "indexer",
            Operator::Activation { .. } => "activation",
            Operator::Router { .. } => "router",
            Operator::Experts(_) => "experts",
            Operator::Add { .. } => "add",
            Operator::Sampling { .. } => "sampling",
        }
    }

    /// Elements of the result per token.
    pub fn output(&self) -> Count {
        let width = |heads: Count, per_head: Count, how| {
            Count::derived("attention_width", heads.value * per_head.value, how)
        };
        match *self {
            Operator::Input { width } | Operator::Activation { width, .. } | Operator::Add { width } => width,
            Operator::Embedding { hidden, .. } => hidden,
            Operator::Experts(dims) => dims.hidden,
            Operator::Norm { width, rows, .. } if rows.value == 1 => width,
            Operator::Norm { width, rows, .. } => width_of_rows(rows, width),
            Operator::Linear { output, .. } => output,
            Operator::Attention(dims) => width(dims.heads, dims.v_head_dim, "heads × head_dim"),
            Operator::Rope { heads, head_dim, .. } => width(heads, head_dim, "heads × head_dim"),
            Operator::KvCache { heads, width: entry, .. } => width(heads, entry, "KV heads × entry"),
            Operator::Softmax(scores) => scores.heads,
            Operator::HyperConnection { hidden, expands: false, .. } => hidden,
            Operator::HyperConnection { hidden, streams, .. } => width(streams, hidden, "streams × hidden"),
            Operator::CrossAttention(dims) => width(dims.heads, dims.head_dim, "heads × head_dim"),
            Operator::CompressedAttention(dims) => width(dims.heads, dims.head_dim, "heads × head_dim"),
            Operator::LatentAttention(dims) => width(dims.heads, dims.v_head_dim, "heads × v_head_dim"),
            Operator::GroupedLinear { groups, output, .. } => width(groups, output, "groups × output"),
            Operator::ShortConv { channels, .. } => channels,
            Operator::Recurrence(dims) => width(dims.heads, dims.value_dim, "heads × value_dim"),
            Operator::Router { top_k, .. } | Operator::Indexer { top_k, .. } => top_k,
            Operator::Sampling { .. } => Count::derived("token", 1, "one token id"),
        }
    }

    /// Whether the operator runs on the vector units inside the kernel of the next operator that is not: both take the time
    /// of the slower.
    pub fn is_fused(&self) -> bool {
        matches!(self, Operator::Rope { .. } | Operator::Softmax(_))
    }

    /// Whether the work of a token depends on the sequence that it belongs to; vector work inside such a kernel counts
    /// with it.
    pub fn is_per_sequence(&self) -> bool {
        match self {
            Operator::Attention(_)
            | Operator::Rope { .. }
            | Operator::KvCache { .. }
            | Operator::Softmax(_)
            | Operator::LatentAttention(_)
            | Operator::CrossAttention(_)
            | Operator::CompressedAttention(_)
            | Operator::Indexer { .. }
            | Operator::ShortConv { .. }
            | Operator::Recurrence(_) => true,
            Operator::Input { .. }
            | Operator::Embedding { .. }
            | Operator::Norm { .. }
            | Operator::Linear { .. }
            | Operator::HyperConnection { .. }
            | Operator::GroupedLinear { .. }
            | Operator::Activation { .. }
            | Operator::Add { .. }
            | Operator::Router { .. }
            | Operator::Experts(_)
            | Operator::Sampling { .. } => false,
        }
    }

    /// Key and value heads, where tensor parallelism divides them.
    pub fn kv_heads(&self) -> Option<Count> {
        match self {
            Operator::Attention(dims) => Some(dims.kv_heads),
            Operator::CrossAttention(dims) => Some(dims.kv_heads),
            Operator::Input { .. }
            | Operator::Embedding { .. }
            | Operator::Norm { .. }
            | Operator::Linear { .. }
            | Operator::Rope { .. }
            | Operator::KvCache { .. }
            | Operator::Softmax(_)
            | Operator::LatentAttention(_)
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

    /// The dimensions with their names in the operator and their sources.
    pub fn dims(&self) -> NamedCounts {
        match *self {
            Operator::Input { width } | Operator::Activation { width, .. } | Operator::Add { width } => {
                vec![("width", width)]
            }
            Operator::Embedding { vocab, hidden, .. } => vec![("vocab", vocab), ("hidden", hidden)],
            Operator::Norm { width, rows, .. } => vec![("width", width), ("rows", rows)],
            Operator::Linear { input, output, .. } => vec![("input", input), ("output", output)],
            Operator::Attention(dims) => dims.dims(),
            Operator::Rope { heads, rotary, head_dim, theta, .. } => {
                vec![("heads", heads), ("rotary_dim", rotary), ("head_dim", head_dim), ("theta", theta)]
            }
            Operator::KvCache { heads, width, .. } => vec![("heads", heads), ("entry", width)],
            Operator::Softmax(scores) => scores.dims(),
            Operator::LatentAttention(dims) => dims.dims(),
            Operator::CrossAttention(dims) => dims.dims(),
            Operator::CompressedAttention(dims) => dims.dims(),
            Operator::HyperConnection { hidden, streams, .. } => {
                vec![("hidden", hidden), ("streams", streams)]
            }
            Operator::Indexer { heads, head_dim, top_k, every } => {
                vec![("heads", heads), ("head_dim", head_dim), ("top_k", top_k), ("every", every)]
            }
            Operator::GroupedLinear { groups, input, output } => {
                vec![("groups", groups), ("input", input), ("output", output)]
            }
            Operator::ShortConv { channels, kernel, .. } => vec![("channels", channels), ("kernel", kernel)],
            Operator::Recurrence(dims) => dims.dims(),
            Operator::Router { hidden, experts, top_k } => {
                vec![("hidden", hidden), ("experts", experts), ("top_k", top_k)]
            }
            Operator::Experts(dims) => dims.dims(),
            Operator::Sampling { vocab } => vec![("vocab", vocab)],
        }
    }
}

fn width_of_rows(rows: Count, width: Count) -> Count {
    Count::derived("norm_width", rows.value * width.value, "rows × width")
}
