//! Pages of a cache whose layers keep all tokens, a window of them, or a state: the number of blocks that a request takes.
//!
//! All layers have pages of one size. Layers of one kind are divided into groups of as many layers, and every group of a
//! request takes blocks of its own. Source: <https://github.com/vllm-project/vllm> 0.33.0,
//! vllm/v1/core/kv_cache_planning.py (`_get_kv_cache_groups_uniform_page_size`, `unify_kv_cache_spec_page_size`),
//! vllm/platforms/interface.py (`_align_hybrid_block_size`), vllm/v1/kv_cache_interface.py (`max_memory_usage_bytes`).

use crate::graph::cache::Cache;
use crate::graph::model::{Block, ModelGraph};
use crate::graph::operator::Operator;
use crate::spec::start::SharedPool;

/// Settings of a server that its pages depend on.
#[derive(Clone, Copy, Debug)]
pub struct PageSettings {
    /// Tensor-parallel ranks.
    pub tp: u64,
    /// Bytes of an element of keys and values.
    pub element_bytes: f64,
    /// Draft tokens of a step, 0 without.
    pub drafts: u64,
    /// Layers of the checkpoint's own draft module.
    pub draft_layers: u64,
    /// Tokens of a step.
    pub step_tokens: u64,
    /// Whether states are kept for later prompts.
    pub prefix_cache: bool,
}

/// The blocks of a cache.
#[derive(Clone, Debug, PartialEq)]
pub struct CachePages {
    /// Bytes of a block on a device.
    pub block_bytes: f64,
    /// Whether layers have states.
    pub has_states: bool,
    groups: Vec<Group>,
}

/// Groups of layers of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Group {
    kind: LayerKind,
    /// Tokens of a block.
    block: u64,
    layers: u64,
    count: u64,
}

/// The part of a request that a layer keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
enum LayerKind {
    Whole,
    /// At most these tokens.
    Window(u64),
    /// A state, in this many blocks.
    State(u64),
}

/// Bytes of a layer: for each token, or of a state.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LayerBytes {
    kind: LayerKind,
    bytes: f64,
}

impl CachePages {
    /// Those of `graph`; `None` where all layers keep all tokens, or a layer has a cache of another form.
    pub fn of(graph: &ModelGraph, pool: &SharedPool, settings: &PageSettings) -> Option<CachePages> {
        let mut layers: Vec<(LayerBytes, u64)> = Vec::new();
        for block in &graph.blocks {
            for one in of_block(block, pool, settings)? {
                put(&mut layers, one, block.layers.len() as u64);
            }
        }
        let whole = layers.iter().find(|(one, _)| one.kind == LayerKind::Whole)?.0;
        if layers.iter().all(|(one, _)| one.kind == LayerKind::Whole) {
            return None;
        }
        put(&mut layers, whole, settings.draft_layers);
        Some(CachePages::grouped(&layers, pool))
    }

    fn grouped(layers: &[(LayerBytes, u64)], pool: &SharedPool) -> CachePages {
        let is_state = |one: &LayerBytes| matches!(one.kind, LayerKind::State(_));
        let tokens = || layers.iter().map(|(one, _)| one).filter(|one| !is_state(one));
        let state =
            layers.iter().filter(|(one, _)| is_state(one)).map(|(one, _)| one.bytes).fold(0.0, f64::max);
        // A block is as long as the state of a layer is large.
        let narrowest = tokens().map(|one| one.bytes).fold(f64::INFINITY, f64::min);
        let step = pool.block_tokens as f64;
        let block = step * (state / (step * narrowest)).ceil().max(1.0);
        let page = tokens().map(|one| one.bytes * block).fold(state, f64::max);
        let fewest = layers.iter().map(|(_, count)| *count).min().unwrap_or(1).max(1);
        let most = layers.iter().map(|(_, count)| *count).max().unwrap_or(1);
        let each = if (most as f64) < fewest as f64 * pool.padded_below { most } else { fewest };
        let group = |(one, count): &(LayerBytes, u64)| {
            let times = (page / (one.bytes * block)).floor();
            let whole = times * one.bytes * block == page;
            let block = if whole && !is_state(one) { times * block } else { block };
            Group { kind: one.kind, block: block as u64, layers: *count, count: count.div_ceil(each) }
        };
        CachePages {
            block_bytes: page * each as f64,
            has_states: state > 0.0,
            groups: layers.iter().map(group).collect(),
        }
    }

    /// Blocks of a request of `tokens`.
    pub fn blocks(&self, tokens: u64) -> u64 {
        let of = |group: &Group| {
            group.count
                * match group.kind {
                    LayerKind::Whole => tokens.div_ceil(group.block),
                    // A window may begin inside a block.
                    LayerKind::Window(kept) => kept.min(tokens).div_ceil(group.block) + 1,
                    LayerKind::State(blocks) => blocks,
                }
        };
        self.groups.iter().map(of).sum()
    }

    /// The longest request that takes at most `blocks`; `None` where not even one token fits.
    pub fn longest(&self, blocks: u64) -> Option<u64> {
        let (mut fits, mut beyond) = (0, blocks.saturating_mul(self.widest()) + 1);
        while fits + 1 < beyond {
            let middle = fits + (beyond - fits) / 2;
            if self.blocks(middle) <= blocks { fits = middle } else { beyond = middle }
        }
        (fits > 0).then_some(fits)
    }

    /// Tokens of the longest block.
    fn widest(&self) -> u64 {
        self.groups.iter().map(|group| group.block).max().unwrap_or(1)
    }
}

/// The layers of a block, by cache; `None` where one has another form.
fn of_block(block: &Block, pool: &SharedPool, settings: &PageSettings) -> Option<Vec<LayerBytes>> {
    let mut found = Vec::new();
    let mut state = 0.0;
    for cache in &block.caches {
        match cache.local(settings.tp) {
            Cache::Heads { kv_heads, head_dim, v_head_dim, reach } => {
                let elements = kv_heads.value * (head_dim.value + v_head_dim.value);
                let kind = match reach.limit() {
                    Some(tokens) => LayerKind::Window(tokens.value - 1 + settings.step_tokens),
                    None => LayerKind::Whole,
                };
                found.push(LayerBytes { kind, bytes: elements as f64 * settings.element_bytes });
            }
            Cache::State { name: "cross_kv", .. } => return None,
            Cache::State { name, elements, width, .. } => {
                let elements = elements.value as f64;
                let kept = if name == "conv" { kept(block, settings.drafts) } else { 1.0 };
                state += elements * kept * width.bytes() as f64;
            }
            Cache::Latent { .. } | Cache::IndexKeys { .. } | Cache::Entries { .. } => return None,
        }
    }
    if state > 0.0 {
        let [cached, not] = pool.state_blocks;
        let blocks = if settings.prefix_cache { cached } else { not } + settings.drafts;
        found.push(LayerBytes { kind: LayerKind::State(blocks), bytes: state });
    }
    Some(found)
}

/// Tokens that a convolution keeps, over the width of its kernel: all but the newest, and those of drafts.
fn kept(block: &Block, drafts: u64) -> f64 {
    let kernel = block.graph.node_weights().find_map(|node| match &node.operator {
        Operator::ShortConv { kernel, .. } => Some(kernel.value),
        _ => None,
    });
    kernel.map_or(1.0, |kernel| (kernel - 1 + drafts) as f64 / kernel as f64)
}

fn put(layers: &mut Vec<(LayerBytes, u64)>, one: LayerBytes, count: u64) {
    match layers.iter_mut().find(|(known, _)| *known == one) {
        Some((_, known)) => *known += count,
        None => layers.push((one, count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::catalog::Catalog;

    const GIB: f64 = (1u64 << 30) as f64;

    fn pool() -> SharedPool {
        let launch = Catalog::default().launch_of("vllm").unwrap().unwrap().0;
        launch.start.pages.unwrap()
    }

    fn pages(model: &str, settings: PageSettings) -> CachePages {
        let (_, graph) = Catalog::default().built(model).unwrap();
        CachePages::of(&graph, &pool(), &settings).unwrap()
    }

    fn tokens(pages: &CachePages, gib: f64, longest: u64) -> u64 {
        let blocks = (gib * GIB / pages.block_bytes).floor();
        (blocks / pages.blocks(longest) as f64 * longest as f64) as u64
    }

    /// vLLM's logs: 300,220 and 841,541 tokens of Qwen3.6-27B with three drafts on two devices
    /// (<https://github.com/noonghunna/club-3090/issues/594>, /issues/849), 567,978 of Qwen3.6-35B-A3B on one
    /// (/issues/612), 3,292,687 on two (/issues/858).
    #[test]
    fn tokens_are_those_that_servers_log() {
        let fp8 = |tp, drafts, prefix_cache| PageSettings {
            tp,
            element_bytes: 1.0,
            drafts,
            draft_layers: drafts.min(1),
            step_tokens: 8192,
            prefix_cache,
        };
        let dense = pages("Qwen/Qwen3.6-27B", fp8(2, 3, true));
        assert_eq!((dense.blocks(262_144), tokens(&dense, 5.33, 262_144)), (179, 300_220));
        let uncached = pages("Qwen/Qwen3.6-27B", fp8(2, 3, false));
        assert_eq!((uncached.blocks(262_144), tokens(&uncached, 14.68, 262_144)), (176, 841_541));
        let experts = pages("Qwen/Qwen3.5-35B-A3B", fp8(1, 0, true));
        assert_eq!((experts.blocks(131_072), tokens(&experts, 5.98, 131_072)), (69, 567_978));
        let halves = pages("Qwen/Qwen3.5-35B-A3B", fp8(2, 0, true));
        assert_eq!((halves.blocks(262_144), tokens(&halves, 16.58, 262_144)), (132, 3_292_687));
    }

    #[test]
    fn the_longest_request_takes_all_blocks_and_one_more_token_takes_more() {
        let settings = PageSettings {
            tp: 1,
            element_bytes: 2.0,
            drafts: 0,
            draft_layers: 0,
            step_tokens: 2048,
            prefix_cache: true,
        };
        for model in ["Qwen/Qwen3.5-27B", "openai/gpt-oss-20b"] {
            let pages = pages(model, settings);
            for blocks in [50, 137, 4096] {
                let longest = pages.longest(blocks).unwrap();
                assert!(pages.blocks(longest) <= blocks && pages.blocks(longest + 1) > blocks, "{model}");
            }
            assert_eq!(pages.longest(0), None);
        }
    }
}
