//! The kinds of operator, with their dimensions. A closed list: `plan` and `cost` match every one.

use super::cache::StateWidth;
use super::mask::AttentionMask;
use super::rule::{ConvForm, RecurrenceRule};
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
    Attention {
        /// Query heads.
        heads: Count,
        /// Key and value heads.
        kv_heads: Count,
        /// Elements of a query or key head.
        head_dim: Count,
        /// Elements of a value head.
        v_head_dim: Count,
        /// The mask: which keys a query sees.
        reach: AttentionMask,
        /// Reads the keys and values cached by another layer and writes none.
        shared: bool,
    },
    /// Multi-head latent attention: heads materialised in prefill, absorbed into the latent in decode.
    ///
    /// The projections `q_a`, `q_b`, `kv_a` and `o` are `Linear`. `kv_b` is part of this operator, since decode
    /// multiplies queries and outputs by its halves instead of expanding the cache.
    LatentAttention {
        /// Query heads.
        heads: Count,
        /// Elements of the compressed key/value.
        kv_lora_rank: Count,
        /// Elements of the shared rotary key.
        qk_rope_head_dim: Count,
        /// Elements of a query/key head without the rotary part.
        qk_nope_head_dim: Count,
        /// Elements of a value head.
        v_head_dim: Count,
        /// The mask: which keys a query sees.
        reach: AttentionMask,
    },
    /// Cross-attention to encoder states of an image or another sequence: no mask, keys and values computed once.
    ///
    /// `k_proj` and `v_proj` are part of this operator, since their input is the encoder's positions, not the tokens.
    CrossAttention {
        /// Query heads.
        heads: Count,
        /// Key and value heads.
        kv_heads: Count,
        /// Elements of a head.
        head_dim: Count,
        /// Width of the encoder states.
        source: Count,
        /// Encoder positions that a sequence attends to.
        positions: Count,
    },
    /// Attention with one key/value head. Each entry is both key and value: one entry per token inside a window, and
    /// compressed entries for several tokens before it.
    CompressedAttention {
        /// Query heads.
        heads: Count,
        /// Elements of a head, and of an entry.
        head_dim: Count,
        /// Tokens of the window, with one entry each.
        window: Count,
        /// Tokens per compressed entry, and the reach of these entries in tokens; `None`: window only.
        beyond: Option<(Count, AttentionMask)>,
    },
    /// Parallel residual streams: the weighted sum before a network, or the mixing with its result after it.
    HyperConnection {
        /// Elements of a stream.
        hidden: Count,
        /// Streams.
        streams: Count,
        /// True after the network, false before it.
        expands: bool,
    },
    /// Scores all visible keys with light heads over a shared key and selects `top_k` of them.
    Indexer {
        /// Its heads.
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
        /// Channels.
        channels: Count,
        /// Kernel width in tokens.
        kernel: Count,
        /// The gates or activation fused with it.
        form: ConvForm,
        /// How the channels are sharded: `Heads`, or `Replicate`.
        split: Split,
    },
    /// A state per head that each token decays, writes and reads: linear attention and state-space models.
    Recurrence {
        /// The update rule of the state.
        rule: RecurrenceRule,
        /// Heads.
        heads: Count,
        /// Key and query heads (B and C). A single one is replicated on every device.
        key_heads: Count,
        /// Elements of a key: rows of a head's state.
        key_dim: Count,
        /// Elements of a value: columns of a head's state.
        value_dim: Count,
        /// Elements per head and token that control decay and step.
        gates: Count,
        /// Tokens of a prefill chunk; `None`: token by token.
        chunk: Option<Count>,
        /// Number format of a state element.
        state: StateWidth,
    },
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
    Experts {
        /// Inner dimension.
        hidden: Count,
        /// Routed experts.
        experts: Count,
        /// Experts selected per token.
        top_k: Count,
        /// Width of one expert.
        intermediate: Count,
        /// Gate and up projections (3 matrices) instead of one (2 matrices).
        gated: bool,
    },
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
            Operator::Attention { .. } => "attention",
            Operator::LatentAttention { .. } => "latent_attention",
            Operator::GroupedLinear { .. } => "grouped_linear",
            Operator::ShortConv { .. } => "short_conv",
            Operator::Recurrence { rule, .. } => rule.name(),
            Operator::CrossAttention { .. } => "cross_attention",
            Operator::CompressedAttention { .. } => "compressed_attention",
            Operator::HyperConnection { .. } => "hyper_connection",
            Operator::Indexer { .. } => "indexer",
            Operator::Activation { .. } => "activation",
            Operator::Router { .. } => "router",
            Operator::Experts { .. } => "experts",
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
            Operator::Embedding { hidden, .. } | Operator::Experts { hidden, .. } => hidden,
            Operator::Norm { width, rows, .. } if rows.value == 1 => width,
            Operator::Norm { width, rows, .. } => width_of_rows(rows, width),
            Operator::Linear { output, .. } => output,
            Operator::Attention { heads, v_head_dim, .. } => width(heads, v_head_dim, "heads × head_dim"),
            Operator::HyperConnection { hidden, expands: false, .. } => hidden,
            Operator::HyperConnection { hidden, streams, .. } => width(streams, hidden, "streams × hidden"),
            Operator::CrossAttention { heads, head_dim, .. }
            | Operator::CompressedAttention { heads, head_dim, .. } => {
                width(heads, head_dim, "heads × head_dim")
            }
            Operator::LatentAttention { heads, v_head_dim, .. } => {
                width(heads, v_head_dim, "heads × v_head_dim")
            }
            Operator::GroupedLinear { groups, output, .. } => width(groups, output, "groups × output"),
            Operator::ShortConv { channels, .. } => channels,
            Operator::Recurrence { heads, value_dim, .. } => width(heads, value_dim, "heads × value_dim"),
            Operator::Router { top_k, .. } | Operator::Indexer { top_k, .. } => top_k,
            Operator::Sampling { .. } => Count::derived("token", 1, "one token id"),
        }
    }

    /// The dimensions with their names in the operator and their sources.
    pub fn dims(&self) -> Vec<(&'static str, Count)> {
        match *self {
            Operator::Input { width } | Operator::Activation { width, .. } | Operator::Add { width } => {
                vec![("width", width)]
            }
            Operator::Embedding { vocab, hidden, .. } => vec![("vocab", vocab), ("hidden", hidden)],
            Operator::Norm { width, rows, .. } => vec![("width", width), ("rows", rows)],
            Operator::Linear { input, output, .. } => vec![("input", input), ("output", output)],
            Operator::Attention { heads, kv_heads, head_dim, v_head_dim, reach, .. } => {
                let mut dims = vec![("heads", heads), ("kv_heads", kv_heads), ("head_dim", head_dim)];
                dims.push(("v_head_dim", v_head_dim));
                dims.extend(reach.dim());
                dims
            }
            Operator::LatentAttention {
                heads,
                kv_lora_rank,
                qk_rope_head_dim,
                qk_nope_head_dim,
                v_head_dim,
                reach,
            } => {
                let mut dims = vec![("heads", heads), ("kv_lora_rank", kv_lora_rank)];
                dims.extend([("qk_rope_head_dim", qk_rope_head_dim), ("qk_nope_head_dim", qk_nope_head_dim)]);
                dims.push(("v_head_dim", v_head_dim));
                dims.extend(reach.dim());
                dims
            }
            Operator::CrossAttention { heads, kv_heads, head_dim, source, positions } => {
                let mut dims = vec![("heads", heads), ("kv_heads", kv_heads), ("head_dim", head_dim)];
                dims.extend([("source", source), ("positions", positions)]);
                dims
            }
            Operator::CompressedAttention { heads, head_dim, window, beyond } => {
                let mut dims = vec![("heads", heads), ("head_dim", head_dim), ("window", window)];
                dims.extend(beyond.map(|(every, _)| ("every", every)));
                dims.extend(beyond.and_then(|(_, reach)| reach.dim()));
                dims
            }
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
            Operator::Recurrence { heads, key_heads, key_dim, value_dim, gates, chunk, .. } => {
                let mut dims = vec![("heads", heads), ("key_heads", key_heads), ("key_dim", key_dim)];
                dims.extend([("value_dim", value_dim), ("gates", gates)]);
                dims.extend(chunk.map(|chunk| ("chunk", chunk)));
                dims
            }
            Operator::Router { hidden, experts, top_k } => {
                vec![("hidden", hidden), ("experts", experts), ("top_k", top_k)]
            }
            Operator::Experts { hidden, experts, top_k, intermediate, .. } => {
                vec![
                    ("hidden", hidden),
                    ("experts", experts),
                    ("top_k", top_k),
                    ("intermediate", intermediate),
                ]
            }
            Operator::Sampling { vocab } => vec![("vocab", vocab)],
        }
    }
}

fn width_of_rows(rows: Count, width: Count) -> Count {
    Count::derived("norm_width", rows.value * width.value, "rows × width")
}
