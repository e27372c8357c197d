//! Dimensions of the operators with a cost formula of their own. `T` is a [`Count`] in the graph and a quantity in a formula: the shard of
//! one device has the same dimensions as the whole operator, with fewer heads.

use super::cache::StateWidth;
use super::mask::AttentionMask;
use super::rule::RecurrenceRule;
use crate::quantity::count::Count;

/// Names and values of dimensions, for inspections.
pub type NamedCounts = Vec<(&'static str, Count)>;

/// Softmax attention over cached keys and values (MHA, GQA or MQA), fused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SoftmaxAttention<T = Count> {
    /// Query heads.
    pub heads: T,
    pub kv_heads: T,
    /// Elements of a query or key head.
    pub head_dim: T,
    /// Elements of a value head.
    pub v_head_dim: T,
    /// The mask: which keys a query sees.
    pub mask: AttentionMask<T>,
    /// Reads the keys and values cached by another layer and writes none.
    pub shared: bool,
}

/// Multi-head latent attention: heads materialised in prefill, absorbed into the latent in decode.
///
/// The projections `q_a`, `q_b`, `kv_a` and `o` are separate operators. `kv_b` is part of this one, since decode
/// multiplies queries and outputs by its halves instead of expanding the cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatentAttention<T = Count> {
    /// Query heads.
    pub heads: T,
    /// Elements of the compressed key/value.
    pub kv_lora_rank: T,
    /// Elements of the shared rotary key.
    pub qk_rope_head_dim: T,
    /// Elements of a query/key head without the rotary part.
    pub qk_nope_head_dim: T,
    /// Elements of a value head.
    pub v_head_dim: T,
    /// The mask: which keys a query sees.
    pub mask: AttentionMask<T>,
}

/// Cross-attention to encoder states of an image or another sequence: no mask, keys and values computed once.
///
/// `k_proj` and `v_proj` are part of this operator, since their input is the encoder's positions, not the tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrossAttention<T = Count> {
    /// Query heads.
    pub heads: T,
    pub kv_heads: T,
    /// Elements of a head.
    pub head_dim: T,
    /// Width of the encoder states.
    pub source: T,
    /// Encoder positions that a sequence attends to.
    pub positions: T,
}

/// Attention with one key/value head. Each entry is both key and value: one entry per token inside a window, and
/// compressed entries for several tokens before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompressedAttention<T = Count> {
    /// Query heads.
    pub heads: T,
    /// Elements of a head, and of an entry.
    pub head_dim: T,
    /// Tokens of the window, with one entry each.
    pub window: T,
    /// Tokens per compressed entry, and the reach of these entries in tokens; `None`: window only.
    pub beyond: Option<(T, AttentionMask<T>)>,
}

/// The scores of an attention: a number per query head and visible key, which the softmax turns into weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scores<T = Count> {
    /// Query heads.
    pub heads: T,
    /// The keys of a query.
    pub keys: ScoredKeys<T>,
}

/// The keys that a query is scored with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScoredKeys<T = Count> {
    /// Those that the mask shows.
    Masked(AttentionMask<T>),
    /// All encoder positions.
    Positions(T),
    /// A window, and entries for several tokens each before it, as in [`CompressedAttention`].
    Entries(T, Option<(T, AttentionMask<T>)>),
}

/// The routed experts' feed-forward networks, grouped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoutedExperts {
    /// Inner dimension.
    pub hidden: Count,
    /// Routed experts.
    pub experts: Count,
    /// Experts selected per token.
    pub top_k: Count,
    /// Width of one expert.
    pub intermediate: Count,
    /// Gate and up projections (3 matrices) instead of one (2 matrices).
    pub gated: bool,
}

/// A state per head that each token decays, writes and reads: linear attention and state-space models.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recurrence<T = Count> {
    /// The update rule of the state.
    pub rule: RecurrenceRule,
    pub heads: T,
    /// Key and query heads (B and C), each shared by the same number of heads. A single one is replicated on every
    /// device.
    pub key_heads: T,
    /// Elements of a key: rows of a head's state.
    pub key_dim: T,
    /// Elements of a value: columns of a head's state.
    pub value_dim: T,
    /// Elements per head and token that control decay and step.
    pub gates: T,
    /// Tokens of a prefill chunk; `None`: token by token.
    pub chunk: Option<T>,
    /// Number format of a state element.
    pub state: StateWidth,
}

impl SoftmaxAttention {
    /// Attention of an encoder: as many key/value heads as query heads, all of one width.
    pub fn of_encoder(heads: Count, head_dim: Count, mask: AttentionMask) -> SoftmaxAttention {
        let (kv_heads, v_head_dim) = (heads, head_dim);
        SoftmaxAttention { heads, kv_heads, head_dim, v_head_dim, mask, shared: false }
    }
}

impl<T: Copy> SoftmaxAttention<T> {
    /// The same dimensions with another number type.
    #[inline(always)]
    pub fn map<U>(self, read: impl Fn(T) -> U) -> SoftmaxAttention<U> {
        SoftmaxAttention {
            heads: read(self.heads),
            kv_heads: read(self.kv_heads),
            head_dim: read(self.head_dim),
            v_head_dim: read(self.v_head_dim),
            mask: self.mask.map(read),
            shared: self.shared,
        }
    }
}

impl<T: Copy> LatentAttention<T> {
    /// The same dimensions with another number type.
    #[inline(always)]
    pub fn map<U>(self, read: impl Fn(T) -> U) -> LatentAttention<U> {
        LatentAttention {
            heads: read(self.heads),
            kv_lora_rank: read(self.kv_lora_rank),
            qk_rope_head_dim: read(self.qk_rope_head_dim),
            qk_nope_head_dim: read(self.qk_nope_head_dim),
            v_head_dim: read(self.v_head_dim),
            mask: self.mask.map(read),
        }
    }
}

impl<T: Copy> CrossAttention<T> {
    /// The same dimensions with another number type.
    #[inline(always)]
    pub fn map<U>(self, read: impl Fn(T) -> U) -> CrossAttention<U> {
        CrossAttention {
            heads: read(self.heads),
            kv_heads: read(self.kv_heads),
            head_dim: read(self.head_dim),
            source: read(self.source),
            positions: read(self.positions),
        }
    }
}

impl<T: Copy> CompressedAttention<T> {
    /// The same dimensions with another number type.
    #[inline(always)]
    pub fn map<U>(self, read: impl Fn(T) -> U) -> CompressedAttention<U> {
        CompressedAttention {
            heads: read(self.heads),
            head_dim: read(self.head_dim),
            window: read(self.window),
            beyond: self.beyond.map(|(every, mask)| (read(every), mask.map(&read))),
        }
    }
}

impl<T: Copy> Scores<T> {
    /// The same dimensions with another number type.
    #[inline(always)]
    pub fn map<U>(self, read: impl Fn(T) -> U) -> Scores<U> {
        let keys = match self.keys {
            ScoredKeys::Masked(mask) => ScoredKeys::Masked(mask.map(&read)),
            ScoredKeys::Positions(positions) => ScoredKeys::Positions(read(positions)),
            ScoredKeys::Entries(window, beyond) => {
                ScoredKeys::Entries(read(window), beyond.map(|(every, mask)| (read(every), mask.map(&read))))
            }
        };
        Scores { heads: read(self.heads), keys }
    }
}

impl<T: Copy> Recurrence<T> {
    /// The same dimensions with another number type.
    #[inline(always)]
    pub fn map<U>(self, read: impl Fn(T) -> U) -> Recurrence<U> {
        Recurrence {
            rule: self.rule,
            heads: read(self.heads),
            key_heads: read(self.key_heads),
            key_dim: read(self.key_dim),
            value_dim: read(self.value_dim),
            gates: read(self.gates),
            chunk: self.chunk.map(read),
            state: self.state,
        }
    }
}

impl SoftmaxAttention {
    pub fn dims(&self) -> NamedCounts {
        let mut dims = vec![("heads", self.heads), ("kv_heads", self.kv_heads), ("head_dim", self.head_dim)];
        dims.push(("v_head_dim", self.v_head_dim));
        dims.extend(self.mask.dim());
        dims
    }
}

impl LatentAttention {
    pub fn dims(&self) -> NamedCounts {
        let mut dims = vec![("heads", self.heads), ("kv_lora_rank", self.kv_lora_rank)];
        dims.push(("qk_rope_head_dim", self.qk_rope_head_dim));
        dims.push(("qk_nope_head_dim", self.qk_nope_head_dim));
        dims.push(("v_head_dim", self.v_head_dim));
        dims.extend(self.mask.dim());
        dims
    }
}

impl CrossAttention {
    pub fn dims(&self) -> NamedCounts {
        let mut dims = vec![("heads", self.heads), ("kv_heads", self.kv_heads), ("head_dim", self.head_dim)];
        dims.extend([("source", self.source), ("positions", self.positions)]);
        dims
    }
}

impl CompressedAttention {
    pub fn dims(&self) -> NamedCounts {
        let mut dims = vec![("heads", self.heads), ("head_dim", self.head_dim), ("window", self.window)];
        dims.extend(self.beyond.map(|(every, _)| ("every", every)));
        dims.extend(self.beyond.and_then(|(_, mask)| mask.dim()));
        dims
    }
}

impl Scores {
    pub fn dims(&self) -> NamedCounts {
        let mut dims = vec![("heads", self.heads)];
        match self.keys {
            ScoredKeys::Masked(mask) => dims.extend(mask.dim()),
            ScoredKeys::Positions(positions) => dims.push(("positions", positions)),
            ScoredKeys::Entries(window, beyond) => {
                dims.push(("window", window));
                dims.extend(beyond.map(|(every, _)| ("every", every)));
                dims.extend(beyond.and_then(|(_, mask)| mask.dim()));
            }
        }
        dims
    }
}

impl Recurrence {
    pub fn dims(&self) -> NamedCounts {
        let mut dims = vec![("heads", self.heads), ("key_heads", self.key_heads), ("key_dim", self.key_dim)];
        dims.extend([("value_dim", self.value_dim), ("gates", self.gates)]);
        dims.extend(self.chunk.map(|chunk| ("chunk", chunk)));
        dims
    }
}

impl RoutedExperts {
    pub fn dims(&self) -> NamedCounts {
        let mut dims = vec![("hidden", self.hidden), ("experts", self.experts), ("top_k", self.top_k)];
        dims.push(("intermediate", self.intermediate));
        dims
    }
}
