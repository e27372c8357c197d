//! The kinds of operator, with their dimensions. A closed list: `plan` and `cost` match every one.

use super::cache::StateWidth;
use super::mask::AttentionMask;
use super::rule::{ConvForm, RecurrenceRule};
use crate::quantity::count::Count;

/// How a matrix may be divided among tensor-parallel devices (Megatron-LM's words).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Split {
    /// By output: each device computes a slice of the result.
    Column,
    /// By input: each device computes a partial sum of the whole result.
    Row,
    /// By output in whole query heads.
    Heads,
    /// By output in whole key/value heads, which replicate past their number.
    KvHeads,
    /// By vocabulary row, padded to a multiple.
    Vocab,
    /// Not at all: every device holds and computes the whole.
    Replicate,
}

/// One step of a layer, whole: as if a single device computed it.
///
/// Widths are elements per token.
#[derive(Clone, Debug, PartialEq)]
pub enum Operator {
    /// Where a block begins: the residual stream comes in.
    Input {
        /// Elements per token.
        width: Count,
    },
    /// Looks one row up per token.
    Embedding {
        /// Rows.
        vocab: Count,
        /// Elements a row.
        hidden: Count,
        /// How the plan may divide it: `Vocab`, or `Replicate` for positions.
        split: Split,
    },
    /// RMSNorm or LayerNorm over `width` elements, `rows` times per token (`rows` > 1: per head).
    Norm {
        /// Elements normalised together.
        width: Count,
        /// How many such rows a token has (1, or the number of heads).
        rows: Count,
        /// How the rows follow the plan: `Heads` or `KvHeads` for per-head norms, else `Replicate`.
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
        /// Keys and values are those that another layer cached: read here, not written.
        shared: bool,
    },
    /// Multi-head latent attention: prefill with materialised heads, decode absorbed into the latent.
    ///
    /// The projections `q_a`, `q_b`, `kv_a` and `o` are `Linear`; `kv_b` belongs here, since decode
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
    /// Attention to what an encoder made of an image or another sequence: no mask, keys and values made once.
    ///
    /// `k_proj` and `v_proj` belong here, since they see the encoder's positions and not the tokens.
    CrossAttention {
        /// Query heads.
        heads: Count,
        /// Key and value heads.
        kv_heads: Count,
        /// Elements of a head.
        head_dim: Count,
        /// Width of the encoder's states.
        source: Count,
        /// Positions of the encoder that a sequence attends to.
        positions: Count,
    },
    /// Attention with one key/value head, whose entries are key and value at once: each token's own inside a
    /// window, and beyond it entries that stand for several tokens.
    CompressedAttention {
        /// Query heads.
        heads: Count,
        /// Elements of a head, and of an entry.
        head_dim: Count,
        /// Tokens with an entry of their own.
        window: Count,
        /// Tokens that an entry beyond stands for, and how far these reach in tokens; none: the window is all.
        beyond: Option<(Count, AttentionMask)>,
    },
    /// Parallel residual streams: their weighted sum before a network, or their mixture with its result after.
    HyperConnection {
        /// Elements of a stream.
        hidden: Count,
        /// Streams.
        streams: Count,
        /// After the network instead of before it.
        expands: bool,
    },
    /// Scores all keys in reach with light heads over a key of its own and picks `top_k` of them.
    Indexer {
        /// Its heads.
        heads: Count,
        /// Elements of a head, and of the key that all heads share.
        head_dim: Count,
        /// Keys chosen for each query.
        top_k: Count,
        /// Tokens per key.
        every: Count,
    },
    /// A matrix for each slice of the input: `[tokens × input] · [input × output]`, `groups` times.
    GroupedLinear {
        /// Slices.
        groups: Count,
        /// Inner dimension of one.
        input: Count,
        /// Outer dimension of one.
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
        /// How the channels follow the plan: `Heads`, or `Replicate`.
        split: Split,
    },
    /// A state per head that each token decays, writes and reads: linear attention and state space models.
    Recurrence {
        /// The update rule of the state.
        rule: RecurrenceRule,
        /// Heads.
        heads: Count,
        /// Heads of keys and queries (B and C); one is repeated on every device.
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
    /// `act(gate) × up` (gated) or `act(x)`, element by element over `width` results.
    Activation {
        /// Elements of the result.
        width: Count,
        /// Two inputs an element instead of one.
        gated: bool,
    },
    /// Scores the experts and picks `top_k` of them for each token.
    Router {
        /// Inner dimension.
        hidden: Count,
        /// Routed experts.
        experts: Count,
        /// Experts chosen per token.
        top_k: Count,
    },
    /// The routed experts' feed-forward networks, grouped.
    Experts {
        /// Inner dimension.
        hidden: Count,
        /// Routed experts.
        experts: Count,
        /// Experts chosen per token.
        top_k: Count,
        /// Width of one expert.
        intermediate: Count,
        /// Gate and up projections (3 matrices) instead of one (2 matrices).
        gated: bool,
    },
    /// Sums its inputs into the residual stream.
    Add {
        /// Elements per token.
        width: Count,
    },
    /// Picks a token from the logits.
    Sampling {
        /// Logits per token.
        vocab: Count,
    },
}

impl Operator {
    /// The operator's kind as inspections and errors call it.
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

    /// The dimensions, each with its name in the operator and where it came from.
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
