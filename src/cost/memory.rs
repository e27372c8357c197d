//! Memory of a device: weights, KV cache, activations, buffers. Residency, not traffic.

use super::indexer::key_bytes;
use super::machine::{Chip, Machine};
use crate::graph::cache::{Cache, StateWidth};
use crate::quantity::count::Count;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;
use crate::quantity::unit::{BYTE, COUNT};

/// Memory of one device.
#[derive(Clone, Copy, Debug)]
pub struct Footprint<T> {
    /// Weights, all experts included.
    pub weights: T,
    /// KV cache and states.
    pub kv: T,
    /// The part of the KV cache that is independent of sequence length, if any.
    pub state: Option<T>,
    /// The part of the KV cache that all sequences share, if any.
    pub shared: Option<SharedPages<T>>,
    /// Activations of the largest step.
    pub activations: T,
    /// Runtime buffers.
    pub buffers: T,
    pub total: T,
    /// Usable memory: the share of the device that the runtime may use.
    pub usable: T,
}

/// Prompt prefixes whose pages the sequences of a device share.
#[derive(Clone, Copy, Debug)]
pub struct SharedPages<T> {
    /// Tokens of a prefix.
    pub tokens: T,
    /// Bytes of all prefixes.
    pub bytes: T,
}

/// Tokens of a prefix of `tokens` that sequences share: whole pages. The last page of a prefix that ends inside it is each
/// sequence's own.
#[inline(always)]
pub fn shared_tokens<N: Num>(tokens: Qty<N>, parts: Qty<N>, chip: &Chip<Qty<N>>) -> Qty<N> {
    let page = parts * chip.block_tokens;
    // Whole numbers rounded down, by rounding up.
    let pages = ((tokens + 1.0) / page).ceil() - 1.0;
    (pages * page).is(&SHARED_TOKENS)
}

/// Bytes of `groups` prefixes of `each` bytes, as far as there are sequences that have one.
#[inline(always)]
pub fn prefix_pages<N: Num>(sequences: Qty<N>, groups: Qty<N>, each: Qty<N>) -> Qty<N> {
    (groups.min(sequences) * each).is(&SHARED_PAGES)
}

/// Bytes of weights: `quantised` elements in the weight format, `native` in the model dtype.
#[inline(always)]
pub fn weights<N: Num>(quantised: Qty<N>, native: Qty<N>, chip: &Chip<Qty<N>>) -> Qty<N> {
    (quantised * chip.quantised_bytes + native * chip.native_bytes).is(&WEIGHTS)
}

/// Tokens of a sequence that are cached on one device: inside the window, in whole pages.
#[inline(always)]
pub fn cached_tokens<N: Num>(
    tokens: Qty<N>,
    window: Option<Qty<N>>,
    parts: Qty<N>,
    chip: &Chip<Qty<N>>,
) -> Qty<N> {
    let kept = match window {
        Some(window) => tokens.min(window),
        None => tokens,
    };
    ((kept / parts / chip.block_tokens).ceil() * chip.block_tokens).is(&CACHED)
}

/// Cache bytes of one layer for one sequence of `tokens` on one device.
#[inline(always)]
pub fn kv_per_sequence<R: Reading>(
    read: &R,
    cache: &Cache,
    tokens: Qty<R::N>,
    parts: Qty<R::N>,
    chip: &Chip<Qty<R::N>>,
) -> Qty<R::N> {
    let n = |count: Count| read.count(count);
    let (width, limit) = match *cache {
        Cache::Heads { kv_heads, head_dim, v_head_dim, reach } => {
            (n(kv_heads) * (n(head_dim) + n(v_head_dim)), reach.limit().map(n))
        }
        Cache::Latent { kv_lora_rank, qk_rope_head_dim, reach } => {
            (n(kv_lora_rank) + n(qk_rope_head_dim), reach.limit().map(n))
        }
        Cache::IndexKeys { head_dim, every } => {
            return (cached_tokens(tokens, None, parts, chip) / n(every) * key_bytes(n(head_dim))).is(&INDEX);
        }
        Cache::Entries { width, every, reach } => (n(width) / n(every), reach.limit().map(n)),
        Cache::State { elements, width, .. } => return state_bytes(n(elements), width, chip),
    };
    (cached_tokens(tokens, limit, parts, chip) * width * chip.kv_bytes).is(&KV)
}

/// Bytes of a state with this many elements.
#[inline(always)]
pub fn state_bytes<N: Num>(elements: Qty<N>, width: StateWidth, chip: &Chip<Qty<N>>) -> Qty<N> {
    (elements * element_bytes(width, chip)).is(&STATE)
}

#[inline(always)]
pub fn element_bytes<N: Num>(width: StateWidth, chip: &Chip<Qty<N>>) -> Qty<N> {
    match width {
        StateWidth::Native => chip.activation_bytes,
        StateWidth::Single => Qty::literal(4.0 * BYTE),
    }
}

/// Bytes of encoder activations: the images of one request at the widest part.
#[inline(always)]
pub fn encoding<N: Num>(positions: Qty<N>, widest: Qty<N>, chip: &Chip<Qty<N>>) -> Qty<N> {
    (chip.activation_bytes * positions * (4.0 * widest)).is(&ENCODING)
}

/// Activation bytes of the largest step: the token budget at the widest operator, and the logits.
#[inline(always)]
pub fn activations<N: Num>(
    tokens: Qty<N>,
    hidden: Qty<N>,
    widest: Qty<N>,
    sampled: Qty<N>,
    vocab: Qty<N>,
    chip: &Chip<Qty<N>>,
) -> Qty<N> {
    let stream = chip.activation_bytes * tokens * (2.0 * hidden + 2.0 * widest);
    (stream.max(chip.sampler_bytes * sampled * vocab)).is(&ACTIVATIONS)
}

/// A server, as the memory that it leaves free depends on it.
#[derive(Clone, Copy, Debug)]
pub struct ServerShape<T> {
    /// Devices of all stages.
    pub devices: T,
    /// Ranks of one stage.
    pub stage_ranks: T,
    /// Attention data-parallel ranks.
    pub attention_ranks: T,
    /// Sequences of each of them.
    pub sequences: T,
    pub several_attention_ranks: bool,
    pub one_stage: bool,
    /// Whether its attention is latent.
    pub latent: bool,
    /// Whether it computes prompts only.
    pub prompts_only: bool,
}

/// Share of a device that a server of this shape uses.
pub fn memory_share<N: Num>(machine: &Machine<Qty<N>>, shape: &ServerShape<Qty<N>>) -> Qty<N> {
    let chip = &machine.chip;
    let Some(reserve) = &machine.by_shape else { return chip.utilization };
    // A server on one device has graphs of the narrow number, too.
    let mut more =
        reserve.per_device * (shape.devices - 1.0) - reserve.per_sequence * reserve.narrow_sequences;
    if !shape.prompts_only {
        let wide = shape.stage_ranks.exceeds(reserve.narrow_ranks);
        let most = if wide { reserve.wide_sequences } else { reserve.narrow_sequences };
        let sequences = most.min(shape.sequences * shape.attention_ranks);
        more = more + reserve.per_sequence * sequences;
        if shape.several_attention_ranks {
            let many = sequences.exceeds(reserve.many_sequences);
            let each = match many {
                true => reserve.per_rank_sequence + reserve.per_rank_sequence_of_many,
                false => reserve.per_rank_sequence,
            };
            more = more + each * sequences * shape.attention_ranks;
        }
    }
    if shape.one_stage {
        more = more
            + match shape.latent {
                true => reserve.latent_prompts,
                false => reserve.prompts + reserve.per_prompt_token * chip.max_batched_tokens,
            };
    }
    let free = chip.capacity * (1.0 - chip.utilization) + more;
    let share = 1.0 - free.max(reserve.least_free) / chip.capacity;
    // The runtime rounds to thousandths.
    ((share * 1000.0 - 0.5).ceil() / 1000.0).is(&MEMORY_SHARE)
}

/// Total memory, of which a device has `share` for it.
#[inline(always)]
pub fn footprint<N: Num>(
    weights: Qty<N>,
    (kv, shared): (Qty<N>, Option<SharedPages<Qty<N>>>),
    state: Option<Qty<N>>,
    (activations, share): (Qty<N>, Qty<N>),
    machine: &Machine<Qty<N>>,
) -> Footprint<Qty<N>> {
    let chip = &machine.chip;
    let corrected = |bytes: Qty<N>| match machine.memory_correction {
        Some(factor) => (bytes * factor).is(&CORRECTED),
        None => bytes,
    };
    let [weights, activations, buffers] = [weights, activations, chip.buffers].map(corrected);
    let pages = kv * (1.0 + chip.fragmentation);
    let shared =
        shared.map(|prefix| SharedPages { bytes: prefix.bytes * (1.0 + chip.fragmentation), ..prefix });
    let kv = state.map_or(pages, |state| pages + state).is(&CACHE);
    let total = (weights + kv + activations + buffers).is(&TOTAL);
    let usable = (chip.capacity * share).is(&USABLE);
    Footprint { weights, kv, state, shared, activations, buffers, total, usable }
}

crate::formulas! {
    WEIGHTS {
        symbol: "weight_memory",
        unit: BYTE,
        why: "every element on this device, in its format with scales",
        cite: "definition",
    }
    CACHED {
        symbol: "cached_tokens",
        unit: COUNT,
        why: "the KV cache is allocated in pages; a sliding layer keeps its window, context-parallel ranks share a sequence",
        cite: "Kwon et al. 2023 (PagedAttention), 4.1",
    }
    SHARED_TOKENS {
        symbol: "shared_tokens",
        unit: COUNT,
        why: "requests with the same beginning share its full pages; a page that is not full is each request's own",
        cite: "Kwon et al. 2023 (PagedAttention), 4.4 (shared prefix); Zheng et al. 2024 (SGLang, RadixAttention), 3",
    }
    SHARED_PAGES {
        symbol: "shared_pages",
        unit: BYTE,
        why: "the pages of a shared prefix lie once on each attention rank, the other pages are every request's own; a sliding window moves beyond the prefix and a state is rewritten, so both are always a request's own",
        cite: "Kwon et al. 2023 (PagedAttention), 4.4 (shared prefix)",
    }
    KV {
        symbol: "kv_per_sequence",
        unit: BYTE,
        why: "one key and one value per cached token and head of this device, or the latent; sinks are logits and take no cache",
        cite: "Shazeer 2019; DeepSeek-AI 2024 (DeepSeek-V2), 2.1.4",
    }
    INDEX {
        symbol: "index_keys_per_sequence",
        unit: BYTE,
        why: "the indexer's keys, one per cached token for all its heads, in addition to the latents",
        cite: "DeepSeek-AI 2025 (DeepSeek-V3.2), 2.1",
    }
    STATE {
        symbol: "state_per_sequence",
        unit: BYTE,
        why: "recurrent layers and convolutions keep a state of fixed size: every token rewrites it, so neither length nor pages matter",
        cite: "Gu, Dao 2023 (Mamba), 3.3; Dao, Gu 2024 (Mamba-2), 4",
    }
    ENCODING {
        symbol: "image_activation_memory",
        unit: BYTE,
        why: "every position of a request's images at the encoder's widest part, input and output, with a residual stream of the same width",
        cite: "definition; vLLM reserves it in its start-up profile of multi-modal models",
    }
    ACTIVATIONS {
        symbol: "activation_memory",
        unit: BYTE,
        why: "the larger of two: activations of the token budget (stream and widest matrix, input and output), and the bytes reserved per logit for sampling",
        cite: "vLLM start-up accounting, eight measured models: activation peak is 38 to 40 B per sequence and logit",
    }
    CORRECTED {
        symbol: "corrected_memory",
        unit: BYTE,
        why: "servers of one's own were measured to hold this many times the predicted memory, the KV cache not counted",
        cite: "mantile-opt calibrate, from few rows",
    }
    CACHE {
        symbol: "kv_cache",
        unit: BYTE,
        why: "all sequences of this device over its layers, plus fragmentation; states are allocated whole",
        cite: "Kwon et al. 2023 (PagedAttention), 6",
    }
    TOTAL {
        symbol: "memory",
        unit: BYTE,
        why: "weights, KV cache, activations and runtime buffers share the memory",
        cite: "vLLM start-up accounting: utilisation x total = weights + activation peak + non-torch + cache",
    }
    MEMORY_SHARE {
        symbol: "memory_share",
        unit: COUNT,
        why: "a runtime that leaves activations and graphs their memory outside its share leaves more on wider servers: for each device, each sequence of decode graphs and attention rank, and graphs of prompts",
        cite: "SGLang 0.5.23, arg_groups/memory_hook.py (handle_gpu_memory_settings, reserve_for_graph_mb)",
    }
    USABLE {
        symbol: "usable_memory",
        unit: BYTE,
        why: "memory visible to software times the fraction that the runtime uses",
        cite: "vLLM --gpu-memory-utilization and similar options",
    }
}
