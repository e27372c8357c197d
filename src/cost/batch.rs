//! The batch of one step on one device: sequences, new tokens and context.

use crate::graph::mask::AttentionMask;
use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::COUNT;

/// The batch of one step on one attention rank.
#[derive(Clone, Copy, Debug)]
pub struct Batch<T> {
    /// Sequences of this attention rank.
    pub sequences: T,
    /// New tokens per sequence: the prompt in prefill, 1 in decode.
    pub new_tokens: T,
    /// Cached tokens per sequence.
    pub cached_tokens: T,
    /// Ranks that share the new tokens of each sequence (context parallelism in prefill).
    pub token_parts: T,
    /// Ranks that share the KV cache of each sequence (context parallelism in decode).
    pub context_parts: T,
    /// Tokens in the matrix products of this rank.
    pub tokens: T,
    /// Sequences of all ranks of the stage.
    pub all_sequences: T,
    /// Tokens of all ranks of the stage, which share the experts.
    pub ep_tokens: T,
}

impl<N: Num> Batch<Qty<N>> {
    /// `sequences` with `new` tokens after `past` cached ones. `token_groups` ranks with separate tokens share the
    /// experts.
    #[inline(always)]
    pub fn new(
        (sequences, new, past): (Qty<N>, Qty<N>, Qty<N>),
        (token_parts, context_parts, token_groups): (Qty<N>, Qty<N>, Qty<N>),
    ) -> Self {
        let tokens = (sequences * new / token_parts).is(&TOKENS);
        let pooled = (tokens * token_groups).is(&POOLED);
        Batch {
            sequences,
            new_tokens: new,
            cached_tokens: past,
            token_parts,
            context_parts,
            tokens,
            all_sequences: sequences * token_groups / token_parts,
            ep_tokens: pooled,
        }
    }

    /// The same batch where the `ranks` attention ranks of the stage have `all` sequences in total: the others have no
    /// more than this one.
    #[inline(always)]
    pub fn among(&self, all: Qty<N>, ranks: Qty<N>) -> Self {
        let idle = (ranks - all).max(Qty::from(0.0));
        Batch { all_sequences: all, ep_tokens: (all * self.new_tokens + idle).is(&PRESENT), ..*self }
    }

    /// The tokens of both, for operators that take them as they come.
    #[inline(always)]
    pub fn joined(&self, prompts: &Self) -> Self {
        Batch {
            sequences: self.sequences + prompts.sequences,
            tokens: (self.tokens + prompts.tokens).is(&JOINED),
            all_sequences: self.all_sequences + prompts.all_sequences,
            ep_tokens: (self.ep_tokens + prompts.ep_tokens).is(&JOINED),
            ..*self
        }
    }

    /// Tokens of this rank and of others next to it, `ranks` in total, as far as there are any.
    #[inline(always)]
    pub fn pooled(&self, ranks: Qty<N>) -> Qty<N> {
        (self.tokens * ranks).min(self.ep_tokens)
    }

    /// The last token of each sequence: the only ones that the head processes.
    #[inline(always)]
    pub fn last_token(&self) -> Self {
        Batch { tokens: self.sequences, ep_tokens: self.all_sequences, ..*self }
    }

    /// Query–key pairs of one sequence on this rank under the causal mask and `reach`.
    #[inline(always)]
    pub fn qk_pairs(&self, reach: AttentionMask<Qty<N>>) -> Qty<N> {
        (self.all_qk_pairs(reach) / (self.token_parts * self.context_parts)).is(&PAIRS)
    }

    /// The same on all ranks.
    #[inline(always)]
    fn all_qk_pairs(&self, reach: AttentionMask<Qty<N>>) -> Qty<N> {
        match reach {
            AttentionMask::All => self.new_tokens * (self.cached_tokens + (self.new_tokens + 1.0) / 2.0),
            AttentionMask::Window(most) | AttentionMask::Selected(most) => {
                let filling = self.new_tokens.min((most - self.cached_tokens).max(Qty::from(0.0)));
                filling * (self.cached_tokens + (filling + 1.0) / 2.0) + (self.new_tokens - filling) * most
            }
            AttentionMask::Chunk(chunk) => {
                pairs_up_to(self.cached_tokens + self.new_tokens, chunk)
                    - pairs_up_to(self.cached_tokens, chunk)
            }
            AttentionMask::Both => self.new_tokens * (self.cached_tokens + self.new_tokens),
            AttentionMask::Tile(tile) => {
                squares_up_to(self.cached_tokens + self.new_tokens, tile)
                    - squares_up_to(self.cached_tokens, tile)
            }
        }
    }

    /// Cached tokens of one sequence that this rank reads, each counted once.
    #[inline(always)]
    pub fn kv_tokens_read(&self, reach: AttentionMask<Qty<N>>) -> Qty<N> {
        let all = self.cached_tokens + self.new_tokens;
        let seen = match reach {
            AttentionMask::All | AttentionMask::Both | AttentionMask::Tile(_) => all,
            AttentionMask::Window(window) => all.min(window + self.new_tokens - 1.0),
            AttentionMask::Chunk(chunk) => all - (((self.cached_tokens + 1.0) / chunk).ceil() - 1.0) * chunk,
            AttentionMask::Selected(_) => all.min(self.all_qk_pairs(reach)),
        };
        (seen / self.context_parts).is(&KEYS)
    }
}

/// Pairs of the first `tokens` of a sequence in chunks: a triangle per chunk, the last one partial.
#[inline(always)]
fn pairs_up_to<N: Num>(tokens: Qty<N>, chunk: Qty<N>) -> Qty<N> {
    let full = (tokens / chunk).ceil() - 1.0;
    let begun = tokens - full * chunk;
    full * chunk * (chunk + 1.0) / 2.0 + begun * (begun + 1.0) / 2.0
}

/// Pairs of the first `tokens` of a sequence in tiles: a square per tile, the last one partial.
#[inline(always)]
fn squares_up_to<N: Num>(tokens: Qty<N>, tile: Qty<N>) -> Qty<N> {
    let full = (tokens / tile).ceil() - 1.0;
    let begun = tokens - full * tile;
    full * tile * tile + begun * begun
}

crate::formulas! {
    TOKENS {
        symbol: "tokens",
        unit: COUNT,
        why: "each sequence brings its new tokens; context-parallel ranks share them in prefill",
        cite: "definition",
    }
    JOINED {
        symbol: "joined_tokens",
        unit: COUNT,
        why: "prompt tokens that join a decode step share its weights: matrix products take all tokens of the step at once",
        cite: "Agrawal et al. 2024 (Sarathi-Serve), 4.1 (piggybacked prefill); vLLM v1 scheduler",
    }
    POOLED {
        symbol: "pooled_tokens",
        unit: COUNT,
        why: "all ranks of a stage share its expert layers, which process the tokens of all of them",
        cite: "Rajbhandari et al. 2022 (DeepSpeed-MoE)",
    }
    PRESENT {
        symbol: "tokens_present",
        unit: COUNT,
        why: "expert layers process the tokens that the ranks of a stage have; a rank without a request joins the collectives with a dummy of one token",
        cite: "vLLM, execute_dummy_batch of data-parallel ranks, https://github.com/vllm-project/vllm/blob/main/vllm/v1/engine/core.py",
    }
    PAIRS {
        symbol: "pairs",
        unit: COUNT,
        why: "a token attends to itself and earlier tokens, up to the window or inside its chunk: past + (new + 1) / 2 on average; an indexer selects top_k of them",
        cite: "Vaswani et al. 2017, 3.2.3 (causal mask); Beltagy et al. 2020 (sliding window); Meta 2025 (Llama-4, attention_chunk_size); DeepSeek-AI 2025 (DeepSeek-V3.2)",
    }
    KEYS {
        symbol: "keys",
        unit: COUNT,
        why: "each step reads the KV cache inside the mask once for all queries of a sequence",
        cite: "Dao et al. 2022 (FlashAttention), 3.1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(past: u64, new: u64) -> Batch<Qty<f64>> {
        let one = Qty::from(1.0);
        Batch::new((one, Qty::from(new as f64), Qty::from(past as f64)), (one, one, one))
    }

    /// Whether a query at `position` sees each key.
    fn sees(reach: AttentionMask<u64>, position: u64, key: u64, end: u64) -> bool {
        match reach {
            AttentionMask::All => key <= position,
            AttentionMask::Window(window) => key <= position && key + window > position,
            AttentionMask::Chunk(chunk) => key <= position && key / chunk == position / chunk,
            AttentionMask::Selected(top_k) => key <= position && key < top_k,
            AttentionMask::Both => key < end,
            AttentionMask::Tile(tile) => key < end && key / tile == position / tile,
        }
    }

    #[test]
    fn pairs_are_those_that_masks_let_through() {
        let reaches = [
            AttentionMask::All,
            AttentionMask::Window(4),
            AttentionMask::Chunk(5),
            AttentionMask::Selected(3),
            AttentionMask::Both,
        ];
        for reach in reaches {
            for (past, new) in [(0, 1), (0, 5), (0, 7), (3, 1), (4, 1), (5, 1), (9, 1), (10, 6), (7, 20)] {
                let end = past + new;
                let seen = |position| (0..end).filter(|key| sees(reach, position, *key, end)).count() as f64;
                let by_hand: f64 = (past..end).map(seen).sum();
                let tokens = reach.map(|tokens| Qty::from(tokens as f64));
                assert_eq!(batch(past, new).qk_pairs(tokens).value(), by_hand, "{reach:?} {past}+{new}");
            }
        }
    }

    /// Encoders process whole images: nothing is cached.
    #[test]
    fn tiles_are_squares_and_the_last_one_what_is_left() {
        for new in [1, 4, 5, 8, 11] {
            let reach = AttentionMask::Tile(4);
            let by_hand = (0..new).map(|at| (0..new).filter(|key| sees(reach, at, *key, new)).count() as f64);
            let by_hand: f64 = by_hand.sum();
            let tile = reach.map(|tokens| Qty::from(tokens as f64));
            assert_eq!(batch(0, new).qk_pairs(tile).value(), by_hand, "{new}");
            assert_eq!(batch(0, new).kv_tokens_read(tile).value(), new as f64, "{new}");
        }
    }

    #[test]
    fn keys_are_read_once_for_all_queries_of_a_sequence() {
        for (past, new) in [(0, 1), (0, 7), (4, 1), (5, 1), (12, 9)] {
            for reach in
                [AttentionMask::All, AttentionMask::Window(4), AttentionMask::Chunk(5), AttentionMask::Both]
            {
                let end = past + new;
                let needed = (0..end).filter(|key| (past..end).any(|query| sees(reach, query, *key, end)));
                let tokens = reach.map(|tokens| Qty::from(tokens as f64));
                assert_eq!(
                    batch(past, new).kv_tokens_read(tokens).value(),
                    needed.count() as f64,
                    "{reach:?} {past}+{new}"
                );
            }
        }
    }

    #[test]
    fn a_selection_reads_what_it_picked_and_no_more_than_there_is() {
        let keys =
            |past, new| batch(past, new).kv_tokens_read(AttentionMask::Selected(Qty::from(3.0))).value();
        assert_eq!(keys(9, 1), 3.0);
        assert_eq!(keys(1, 1), 2.0);
        assert_eq!(keys(9, 20), 29.0);
    }
}
