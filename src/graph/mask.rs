//! How far an attention layer reaches: which keys a query sees, and so which tokens a cache must keep.
//!
//! Knows nothing of heads or latents; `cost::batch` counts the pairs.

use crate::quantity::count::Count;

/// Which keys a query sees. `T` is a number of tokens: a [`Count`] in the graph, a quantity in a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttentionMask<T = Count> {
    /// Itself and all that came before.
    All,
    /// The last so many tokens, itself included (Mistral, Gemma, gpt-oss).
    Window(T),
    /// Itself and what came before in its own chunk of so many tokens (Llama-4's `attention_chunk_size`).
    Chunk(T),
    /// The so many keys before it that an indexer scored highest (DeepSeek-V3.2's `index_topk`).
    Selected(T),
    /// Every token of its sequence, before and after: encoders.
    Both,
    /// Every token of its own tile of so many, before and after: windows of encoders.
    Tile(T),
}

impl<T: Copy> AttentionMask<T> {
    /// The same reach in another kind of number.
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

    /// A window where there is one.
    pub fn window(window: Option<T>) -> AttentionMask<T> {
        window.map_or(AttentionMask::All, AttentionMask::Window)
    }

    /// Tokens kept at most, where later tokens see no more: a selection may still pick any.
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

/// A window where there is one.
impl<T> From<Option<T>> for AttentionMask<T> {
    fn from(window: Option<T>) -> Self {
        window.map_or(AttentionMask::All, AttentionMask::Window)
    }
}
