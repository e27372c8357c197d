//! What goes through a step on one device: how many sequences, how many new tokens, how much context.

use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::COUNT;

/// The load of a step on one attention rank.
#[derive(Clone, Copy, Debug)]
pub struct Batch<T> {
    /// Sequences of this attention rank.
    pub sequences: T,
    /// New tokens of each sequence: the prompt in prefill, 1 in decode.
    pub new: T,
    /// Tokens of each sequence that are in the cache already.
    pub past: T,
    /// Ranks that share each sequence's new tokens (context parallel prefill).
    pub token_parts: T,
    /// Ranks that share each sequence's cache (context parallel decode).
    pub context_parts: T,
    /// Tokens that go through this rank's matrices.
    pub tokens: T,
    /// Tokens that all ranks of the stage together bring to the experts.
    pub pooled: T,
}

impl<N: Num> Batch<Qty<N>> {
    /// `sequences` with `new` tokens after `past` cached ones. `token_groups` ranks with tokens of
    /// their own share the experts.
    #[inline(always)]
    pub fn new(
        (sequences, new, past): (Qty<N>, Qty<N>, Qty<N>),
        (token_parts, context_parts, token_groups): (Qty<N>, Qty<N>, Qty<N>),
    ) -> Self {
        let tokens = (sequences * new / token_parts).is(&TOKENS);
        let pooled = (tokens * token_groups).is(&POOLED);
        Batch { sequences, new, past, token_parts, context_parts, tokens, pooled }
    }

    /// The last token of each sequence: all that the head sees.
    #[inline(always)]
    pub fn last_token(&self) -> Self {
        Batch { tokens: self.sequences, pooled: self.sequences, ..*self }
    }

    /// Query–key pairs of one sequence on this rank: causal, inside `window` where there is one.
    #[inline(always)]
    pub fn pairs(&self, window: Option<Qty<N>>) -> Qty<N> {
        let all = match window {
            None => self.new * (self.past + (self.new + 1.0) / 2.0),
            Some(window) => {
                let filling = self.new.min((window - self.past).max(Qty::from(0.0)));
                filling * (self.past + (filling + 1.0) / 2.0) + (self.new - filling) * window
            }
        };
        (all / (self.token_parts * self.context_parts)).is(&PAIRS)
    }

    /// Cached tokens of one sequence that this rank reads, each once.
    #[inline(always)]
    pub fn keys(&self, window: Option<Qty<N>>) -> Qty<N> {
        let all = self.past + self.new;
        let seen = match window {
            None => all,
            Some(window) => all.min(window + self.new - 1.0),
        };
        (seen / self.context_parts).is(&KEYS)
    }
}

crate::formulas! {
    TOKENS {
        symbol: "tokens",
        unit: COUNT,
        why: "each sequence brings its new tokens; context-parallel ranks share them in prefill",
        cite: "definition",
    }
    POOLED {
        symbol: "pooled_tokens",
        unit: COUNT,
        why: "expert layers are shared by all ranks of a stage, so their tokens come together",
        cite: "Rajbhandari et al. 2022 (DeepSpeed-MoE)",
    }
    PAIRS {
        symbol: "pairs",
        unit: COUNT,
        why: "a token attends to itself and what came before, up to the window: past + (new + 1) / 2 on average",
        cite: "Vaswani et al. 2017, 3.2.3 (causal mask); Beltagy et al. 2020 (sliding window)",
    }
    KEYS {
        symbol: "keys",
        unit: COUNT,
        why: "the cache inside reach is read once a step for all queries of a sequence",
        cite: "Dao et al. 2022 (FlashAttention), 3.1",
    }
}
