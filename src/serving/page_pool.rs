//! A pool of equal pages for the caches of compressed attention: the entries of a sequence take a page per block of
//! tokens, and its windows and the states of its compressors take whole pages too.
//!
//! vLLM groups layers whose caches grow equally. A page has room for the widest group, whatever group takes it, and the
//! groups of a sequence take pages of their own: the sum over groups of `ceil(tokens of the group / block)`.

use super::instance::{Instance, StageKind};
use super::residency::{draft, keeps_all};
use crate::cost::machine::Machine;
use crate::cost::memory::kv_per_sequence;
use crate::graph::cache::Cache;
use crate::plan::parallel::Phase;
use crate::quantity::count::Count;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;
use crate::quantity::unit::BYTE;
use crate::spec::runtime::PagePool;

/// Layers of a stage by the growth of their caches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheGroups {
    /// Tokens of an entry, whether an indexer selects entries, and layers.
    compressed: Vec<(u64, bool, u64)>,
    /// Tokens of a window, and layers.
    windows: Vec<(u64, u64)>,
}

/// Pages of a sequence beyond those of its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageCounts {
    /// Layers of each kind in a page.
    pub layers: u64,
    /// Pages of its windows and states.
    pub fixed: u64,
    /// Groups of windows and states, and the tokens of their blocks: each token in flight takes a part of a block.
    pub in_flight: Vec<(u64, u64)>,
}

impl CacheGroups {
    /// Those of one stage; `None` without compressed entries.
    fn of(instance: &Instance, phase: Phase, stage: &StageKind) -> Option<CacheGroups> {
        let mut found = CacheGroups::default();
        found.add(instance, phase, stage);
        if let Some((draft, alone)) = draft(instance, stage) {
            found.add(draft, phase, alone);
        }
        (!found.compressed.is_empty()).then_some(found)
    }

    fn add(&mut self, instance: &Instance, phase: Phase, stage: &StageKind) {
        for (block, &layers) in instance.sharded(phase).blocks.iter().zip(&stage.layers) {
            let indexed = block.caches.iter().any(|cache| matches!(cache, Cache::IndexKeys { .. }));
            for cache in block.caches.iter().filter(|_| layers > 0) {
                match cache {
                    Cache::Entries { every, .. } if every.value > 1 => {
                        self.put_compressed(every.value, indexed, layers);
                    }
                    Cache::Entries { .. } => self.put_window(cache.limit().unwrap_or(0), layers),
                    _ => {}
                }
            }
        }
    }

    /// Adds layers with an entry for `every` tokens.
    pub fn put_compressed(&mut self, every: u64, indexed: bool, layers: u64) {
        match self.compressed.iter_mut().find(|(known, with, _)| (*known, *with) == (every, indexed)) {
            Some((.., count)) => *count += layers,
            None => self.compressed.push((every, indexed, layers)),
        }
    }

    /// Adds layers with a window of `tokens`.
    pub fn put_window(&mut self, tokens: u64, layers: u64) {
        match self.windows.iter_mut().find(|(known, _)| *known == tokens) {
            Some((_, count)) => *count += layers,
            None => self.windows.push((tokens, layers)),
        }
    }

    /// The pages of a sequence. Layers of the most frequent kind are all in one page; windows and states are divided into
    /// groups of as many layers. Of a window, the last token may be anywhere in its block.
    pub fn pages(&self, pool: &PagePool) -> PageCounts {
        let layers = self.compressed.iter().map(|(.., layers)| *layers).max().unwrap_or(1);
        let windows = self.windows.iter().map(|&(window, count)| (window, pool.window_block_tokens, count));
        // The windows of an indexed compressor overlap: it keeps the tokens of two entries.
        let states = self.compressed.iter().filter_map(|&(every, indexed, count)| {
            let block = pool.states.iter().find(|state| state.every == every)?.block_tokens;
            Some((every * if indexed { 2 } else { 1 }, block, count))
        });
        let groups: Vec<(u64, u64, u64)> =
            windows.chain(states).map(|(kept, block, count)| (kept, block, count.div_ceil(layers))).collect();
        PageCounts {
            layers,
            fixed: groups
                .iter()
                .map(|(kept, block, groups)| groups * (kept.saturating_sub(1).div_ceil(*block) + 1))
                .sum(),
            in_flight: groups.iter().map(|&(_, block, groups)| (groups, block)).collect(),
        }
    }
}

/// Memory of a pool on one stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct PooledCaches<T> {
    /// Tokens of a sequence per page.
    pub block: T,
    /// Bytes of a page.
    pub page: T,
    /// Bytes of the windows and states of a sequence.
    pub fixed: T,
    /// Bytes of the blocks of all tokens in flight, per token.
    pub in_flight: T,
}

impl<N: Num> PooledCaches<Qty<N>> {
    /// The pool of `stage`; `None` where its runtime has none for these layers.
    pub(super) fn of<R: Reading<N = N>>(
        read: &R,
        instance: &Instance,
        phase: Phase,
        stage: &StageKind,
        machine: &Machine<Qty<N>>,
    ) -> Option<PooledCaches<Qty<N>>> {
        let pool = machine.page_pool.as_deref()?;
        let counts = CacheGroups::of(instance, phase, stage)?.pages(pool);
        let one = |cache: &Cache| block_bytes(read, cache, pool, machine);
        let mut kinds: Vec<&Cache> = Vec::new();
        let blocks =
            instance.sharded(phase).blocks.iter().zip(&stage.layers).filter(|(_, layers)| **layers > 0);
        for cache in blocks.flat_map(|(block, _)| &block.caches).filter(|cache| keeps_all(cache)) {
            if !kinds.contains(&cache) {
                kinds.push(cache);
            }
        }
        let bytes = kinds.into_iter().map(one).reduce(|a, b| a + b)?;
        let layers =
            read.count(Count::derived("page_layers", counts.layers, "layers of the most frequent kind"));
        let page = layers * bytes;
        let fixed = Count::derived("window_pages", counts.fixed, "pages of windows and compressor states");
        let per_token = counts.in_flight.iter().map(|&(groups, block)| {
            let groups = read.count(Count::derived("groups", groups, "layers of a kind / layers of a page"));
            groups / read.count(Count::derived("block_tokens", block, "tokens of a block"))
        });
        let per_token = per_token.reduce(|a, b| a + b).unwrap_or(Qty::from(0.0));
        let tokens = Count::derived("pool_block", pool.block_tokens, "tokens of a block of entries");
        Some(PooledCaches {
            block: read.count(instance.plan.cache_ranks()) * read.count(tokens),
            page,
            fixed: page * read.count(fixed),
            in_flight: page * per_token,
        })
    }

    /// Bytes of the entries of a sequence of `tokens`.
    pub(super) fn entries(self, tokens: Qty<N>) -> Qty<N> {
        (tokens / self.block).ceil() * self.page
    }

    /// Bytes of the tokens in flight: those of the steps that are made up at once, at most all that are held.
    pub(super) fn of_steps<R: Reading<N = N>>(
        self,
        read: &R,
        held: Qty<N>,
        machine: &Machine<Qty<N>>,
    ) -> Qty<N> {
        let steps = machine.page_pool.as_ref().map_or(1, |pool| pool.steps_in_flight);
        let steps = read.count(Count::derived("steps_in_flight", steps, "steps that are made up at once"));
        self.in_flight * (steps * machine.chip.max_batched_tokens).min(held)
    }
}

/// Bytes of one layer's cache in a page.
fn block_bytes<R: Reading>(
    read: &R,
    cache: &Cache,
    pool: &PagePool,
    machine: &Machine<Qty<R::N>>,
) -> Qty<R::N> {
    let tokens = Count::derived("pool_block", pool.block_tokens, "tokens of a block of entries");
    match (cache, machine.pool_entry) {
        (Cache::Entries { width, every, .. }, Some((elements, bytes))) if width.value == elements => {
            let entry = read.count(Count::derived("entry_bytes", bytes, "an entry with its scales"));
            read.count(tokens) / read.count(*every) * entry * Qty::literal(1.0 * BYTE)
        }
        _ => kv_per_sequence(read, cache, read.count(tokens), Qty::from(1.0), &machine.chip),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::runtime::StateBlock;

    fn pool() -> PagePool {
        PagePool {
            block_tokens: 256,
            window_block_tokens: 64,
            states: vec![
                StateBlock { every: 4, block_tokens: 4 },
                StateBlock { every: 128, block_tokens: 8 },
            ],
            steps_in_flight: 2,
            entries: vec![],
            source: String::new(),
        }
    }

    /// Pages of a request of `tokens` with 8192 tokens in each of two steps.
    fn pages(counts: &PageCounts, tokens: u64) -> u64 {
        let in_flight = counts.in_flight.iter().map(|(groups, block)| groups * (2 * 8192) / block);
        tokens.div_ceil(256) + counts.fixed + in_flight.sum::<u64>()
    }

    /// vLLM's own figures: <https://github.com/SemiAnalysisAI/InferenceX/pull/2540> and
    /// <https://github.com/vllm-project/vllm/issues/51041>, with entries of 584 B and keys of 132 B, in pages of a multiple
    /// of 576 B.
    #[test]
    fn pages_are_those_that_vllm_counts() {
        let page = |layers: u64| (layers * (37_440 + 1_728 + 8_640)) as f64 / (1u64 << 30) as f64;
        // 61 layers, of which 30 have an indexer, and the draft's.
        let mut pro = CacheGroups::default();
        pro.put_compressed(128, false, 31);
        pro.put_compressed(4, true, 30);
        pro.put_window(128, 62);
        let counts = pro.pages(&pool());
        assert_eq!((counts.layers, counts.fixed), (31, 2 * 3 + 3 + 17));
        let needed = pages(&counts, 1_048_576) as f64 * page(counts.layers);
        assert!((needed - 14.88).abs() < 0.01, "{needed} GiB");
    }
}
