//! Per-sequence caches of a layer: keys and values, which grow, and states, which do not.
//!
//! Holds elements and the sharding by tensor parallelism. The KV cache format is set elsewhere.

use super::mask::AttentionMask;
use crate::quantity::count::Count;

/// One unsharded cache of a layer, per sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cache {
    /// Keys and values per head, for each token inside the mask.
    Heads {
        /// Key and value heads.
        kv_heads: Count,
        /// Elements of a key.
        head_dim: Count,
        /// Elements of a value.
        v_head_dim: Count,
        /// The mask: which keys a query sees, and thus which tokens are kept.
        reach: AttentionMask,
    },
    /// MLA: one latent and one rotary key per token for all heads, not sharded by tensor parallelism.
    Latent {
        /// Elements of the compressed key/value.
        kv_lora_rank: Count,
        /// Elements of the shared rotary key.
        qk_rope_head_dim: Count,
        /// The mask: which tokens are kept.
        reach: AttentionMask,
    },
    /// Keys of a sparse-attention indexer, one per token for all its heads, in a separate format.
    IndexKeys {
        /// Elements of a key.
        head_dim: Count,
        /// Tokens per key.
        every: Count,
    },
    /// Entries that are both key and value for all heads, each for one or several tokens.
    Entries {
        /// Elements of an entry.
        width: Count,
        /// Tokens per entry.
        every: Count,
        /// The tokens that are kept.
        reach: AttentionMask,
    },
    /// A state of fixed size, rewritten by every token. It neither grows nor uses pages.
    State {
        /// Its owner, e.g. `conv`, `ssm`.
        name: &'static str,
        /// Elements per sequence.
        elements: Count,
        /// Heads, groups or channels that shard it. Beyond this number it is replicated.
        parts: Count,
        /// Number format of an element.
        width: StateWidth,
    },
}

/// The number format of a state's elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StateWidth {
    /// The model's own dtype.
    Native,
    /// Single precision, independent of the model's dtype.
    Single,
}

impl StateWidth {
    /// Bytes of an element, for a model with a two-byte dtype.
    pub const fn bytes(self) -> u64 {
        match self {
            StateWidth::Native => 2,
            StateWidth::Single => 4,
        }
    }
}

impl Cache {
    /// Key and value elements per token. Index keys and states are counted separately.
    pub fn elements_per_token(&self) -> u64 {
        match self {
            Cache::Heads { kv_heads, head_dim, v_head_dim, .. } => {
                kv_heads.value * (head_dim.value + v_head_dim.value)
            }
            Cache::Latent { kv_lora_rank, qk_rope_head_dim, .. } => {
                kv_lora_rank.value + qk_rope_head_dim.value
            }
            Cache::Entries { width, every, .. } => width.value / every.value,
            Cache::IndexKeys { .. } | Cache::State { .. } => 0,
        }
    }

    /// Bytes per sequence independent of its length, for a model with a two-byte dtype.
    pub fn state_bytes(&self) -> u64 {
        match self {
            Cache::State { elements, width, .. } => elements.value * width.bytes(),
            _ => 0,
        }
    }

    /// Maximum number of cached tokens.
    pub fn limit(&self) -> Option<u64> {
        match self {
            Cache::Heads { reach, .. } | Cache::Entries { reach, .. } | Cache::Latent { reach, .. } => {
                reach.limit().map(|tokens| tokens.value)
            }
            Cache::IndexKeys { .. } | Cache::State { .. } => None,
        }
    }

    /// The cache of one of `tp` tensor-parallel devices.
    pub fn local(self, tp: u64) -> Cache {
        match self {
            Cache::Heads { kv_heads, head_dim, v_head_dim, reach } => {
                Cache::Heads { kv_heads: kv_heads.split(tp.min(kv_heads.value)), head_dim, v_head_dim, reach }
            }
            Cache::State { name, elements, parts, width } => {
                Cache::State { name, elements: elements.split(tp.min(parts.value)), parts, width }
            }
            Cache::Latent { .. } | Cache::IndexKeys { .. } | Cache::Entries { .. } => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(value: u64) -> Count {
        Count::derived("count", value, "test")
    }

    #[test]
    fn heads_are_divided_as_far_as_they_go_and_latents_not_at_all() {
        let heads = |kv_heads| Cache::Heads {
            kv_heads,
            head_dim: count(5),
            v_head_dim: count(3),
            reach: AttentionMask::Window(count(7)),
        };
        assert_eq!(heads(count(4)).elements_per_token(), 4 * (5 + 3));
        assert_eq!(heads(count(4)).local(2).elements_per_token(), 2 * (5 + 3));
        assert_eq!(heads(count(4)).local(16).elements_per_token(), 5 + 3);
        assert_eq!(heads(count(4)).limit(), Some(7));
        let latent =
            Cache::Latent { kv_lora_rank: count(11), qk_rope_head_dim: count(2), reach: AttentionMask::All };
        assert_eq!(latent.local(8).elements_per_token(), 11 + 2);
    }

    #[test]
    fn a_state_takes_its_bytes_once_and_divides_by_its_parts() {
        let state = |width| Cache::State { name: "ssm", elements: count(24), parts: count(4), width };
        assert_eq!(state(StateWidth::Single).state_bytes(), 24 * 4);
        assert_eq!(state(StateWidth::Native).local(2).state_bytes(), 12 * 2);
        assert_eq!(state(StateWidth::Native).local(8).state_bytes(), 6 * 2);
        assert_eq!(
            (state(StateWidth::Native).elements_per_token(), state(StateWidth::Native).limit()),
            (0, None)
        );
    }
}
