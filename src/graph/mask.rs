//! Attention masks: the keys that a query sees, and thus the tokens that a cache keeps.
//!
//! Independent of heads and latents. `cost::batch` counts the pairs.

use crate::quantity::count::Count;

/// The mask: which keys a query sees. `T` is a number of tokens: a [`Count`] in the graph, a quantity in a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttentionMask<T = Count> {
    /// Causal: itself and all earlier tokens.
    All,
    /// Sliding window: the last tokens, including itself (Mistral, Gemma, gpt-oss).
    Window(T),
    /// Chunked: itself and the earlier tokens of its chunk (Llama-4's `attention_chunk_size`).
    Chunk(T),
    /// Selection: the earlier keys with the highest indexer scores (DeepSeek-V3.2's `index_topk`).
    Selected(T),
    /// Bidirectional: every token of the sequence (encoders).
    Both,
    /// Windowed and bidirectional: every token of its tile (windows of encoders).
    Tile(T),
}

impl<T: Copy> AttentionMask<T> {
    /// The same mask with another number type.
    #[inline(always)]
    pub fn map<U>(self, read: impl FnOnce(T) -> U) -> AttentionMask<U> {
        match self {
            AttentionMask::All => AttentionMask::All,
            AttentionMask::Window(tokens) => AttentionMask::Window(read(tokens)),
            AttentionMask::Chunk(tokens) => AttentionMask::Chunk(read(tokens)),
            AttentionMask::Selected(tokens) => AttentionMask::Selected(read(tokens)),
            AttentionMask::Both => AttentionMask::Both,
            AttentionMask::Tile(tokens) => AttentionMask::Tile(read(tokens)),
        }
    }

    /// Maximum number of cached tokens where later tokens see no more. A selection may still pick any token.
    pub fn limit(self) -> Option<T> {
        match self {
            AttentionMask::Window(tokens) | AttentionMask::Chunk(tokens) => Some(tokens),
            AttentionMask::All
            | AttentionMask::Selected(_)
            | AttentionMask::Both
            | AttentionMask::Tile(_) => None,
        }
    }
}

impl AttentionMask {
    /// The number of tokens with its name in inspections.
    pub fn dim(self) -> Option<(&'static str, Count)> {
        match self {
            AttentionMask::All | AttentionMask::Both => None,
            AttentionMask::Window(tokens) => Some(("window", tokens)),
            AttentionMask::Chunk(tokens) => Some(("chunk", tokens)),
            AttentionMask::Selected(tokens) => Some(("top_k", tokens)),
            AttentionMask::Tile(tokens) => Some(("tile", tokens)),
        }
    }
}

/// A window if there is a number, otherwise causal.
impl<T> From<Option<T>> for AttentionMask<T> {
    fn from(window: Option<T>) -> Self {
        window.map_or(AttentionMask::All, AttentionMask::Window)
    }
}
