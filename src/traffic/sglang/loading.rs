//! Cached tokens that come from tiers behind the device: SGLang's hierarchical cache.
//!
//! Follows SGLang 0.5.23: `managers/schedule_policy.py` (`init_load_back` at admission) and
//! `mem_cache/unified_radix_cache.py` (`prefetch_from_storage`, `_start_storage_prefetch_wait`), with the write policy
//! `write_through` and the prefetch policy `timeout`, its defaults.

use super::{EngineEvent, NodeId, Note, SglangEngine, SglangSlot};
use crate::traffic::cache_tier::CacheTiers;
use crate::traffic::content::BlockChain;

/// Tokens below which nothing is loaded from host memory: `load_back_threshold`.
const LEAST_LOADED: u32 = 10;
/// Tokens below which nothing is read from the store: `prefetch_threshold`.
const LEAST_PREFETCHED: u32 = 256;
/// Seconds for which a request waits for the store, and more for each 1,024 tokens: `prefetch_timeout_base` and
/// `prefetch_timeout_per_ki_token`.
const PREFETCH_S: f64 = 1.0;
const PREFETCH_S_PER_1024: f64 = 0.25;

/// Pages of a waiting request that are read from the store.
pub(super) struct SglangPrefetch {
    pages: Vec<u64>,
    end_s: f64,
}

/// The part of tiers in a request's next step.
#[derive(Default)]
pub(super) struct SglangLoad {
    /// Its pages that come from the store, until they are in host memory.
    prefetch: Option<SglangPrefetch>,
    /// Tokens that the store gave to host memory, and the seconds that these took.
    stored: u32,
    stored_s: f64,
    /// Tokens that host memory gave to the device in its next step.
    hosted: u32,
}

impl SglangEngine {
    /// The same engine with tiers of the cache.
    #[must_use]
    pub fn tiered(self, tiers: CacheTiers) -> SglangEngine {
        SglangEngine { tiers: Some(tiers).filter(|_| self.settings.prefix_caching), ..self }
    }

    /// Identities of the pages of the first `tokens` tokens of a request.
    fn pages(&self, slot: SglangSlot, tokens: u32) -> impl Iterator<Item = u64> {
        let (mut chain, page) = (BlockChain::default(), self.settings.page_tokens);
        (0..tokens / page).map_while(move |_| chain.next(&self.at(slot).request.runs, page))
    }

    /// A request has come: what the store has of it beyond the device and host memory is read.
    pub(super) fn prefetch(&mut self, slot: SglangSlot) {
        let Some(tiers) = self.tiers.as_ref().filter(|tiers| tiers.settings().store.is_some()) else {
            return;
        };
        let (page, live) = (self.settings.page_tokens, self.at(slot));
        let (known, size) = (live.known() - 1, page as usize);
        let found = self.tree.common_beginning(&live.request.runs, known) as usize / size;
        let pages: Vec<u64> = self.pages(slot, known).collect();
        let hosted = pages[found..].iter().take_while(|one| tiers.hosts(**one)).count() + found;
        let wanted = (pages.len() - hosted) as u32 * page;
        let stored = pages[hosted..].iter().take_while(|one| tiers.stores(**one)).count();
        if wanted < LEAST_PREFETCHED || (stored as u32) * page < LEAST_PREFETCHED {
            return;
        }
        let patience_s = PREFETCH_S + PREFETCH_S_PER_1024 * f64::from(wanted) / 1024.0;
        let (now_s, read) = (tiers.now_s(), &pages[hosted..hosted + stored]);
        let (count, end_s) = tiers.prefetch(read, now_s + patience_s);
        let pages = read[..count as usize].to_vec();
        let load = &mut self.at_mut(slot).load;
        (load.stored, load.stored_s) = (count * page, end_s - now_s);
        load.prefetch = Some(SglangPrefetch { pages, end_s });
    }

    /// Whether a request waits for the store.
    pub(super) fn is_prefetching(&mut self, slot: SglangSlot) -> bool {
        let (Some(tiers), Some(live)) = (&mut self.tiers, &mut self.live[slot]) else { return false };
        if live.load.prefetch.as_ref().is_some_and(|one| !tiers.has_ended(one.end_s)) {
            return true;
        }
        if let Some(read) = live.load.prefetch.take() {
            tiers.place(&read.pages);
        }
        false
    }

    /// When the next read of the store ends of which the scheduler has not heard.
    pub(super) fn next_end_s(&self) -> Option<f64> {
        let tiers = self.tiers.as_ref()?;
        let reads = self.waiting.iter().filter_map(|slot| self.at(*slot).load.prefetch.as_ref());
        let ends = reads.map(|read| read.end_s).filter(|end_s| !tiers.has_ended(*end_s));
        ends.min_by(f64::total_cmp)
    }

    /// Tokens that host memory has after the first `prefix` ones of a request.
    pub(super) fn hosted(&self, slot: SglangSlot, prefix: u32) -> u32 {
        let Some(tiers) = &self.tiers else { return 0 };
        let page = self.settings.page_tokens;
        let after = self.pages(slot, self.at(slot).known() - 1).skip((prefix / page) as usize);
        let tokens = after.take_while(|one| tiers.hosts(*one)).count() as u32 * page;
        if tokens < LEAST_LOADED { 0 } else { tokens }
    }

    /// Loads `hosted` tokens of a request from host memory, after which the device has the first `prefix` ones. Returns
    /// their node.
    pub(super) fn load_back(&mut self, slot: SglangSlot, prefix: u32, hosted: u32) -> NodeId {
        self.evict(hosted);
        self.take(hosted);
        let loaded: Vec<u64> = self.pages(slot, prefix).collect();
        if let Some(tiers) = &mut self.tiers {
            tiers.place(&loaded);
        }
        self.arriving += hosted;
        let Some(live) = self.live[slot].as_mut() else { return super::ROOT };
        live.load.hosted = hosted;
        let (found, node) = self.tree.insert(&live.request.runs, prefix);
        self.free += found.saturating_sub(prefix - hosted);
        node
    }

    /// A request joins its first step, with what tiers gave it.
    pub(super) fn note_load(&mut self, slot: SglangSlot, note: Note<'_>) {
        let page = self.settings.page_tokens;
        let (Some(tiers), Some(live)) = (&self.tiers, &mut self.live[slot]) else { return };
        let load = std::mem::take(&mut live.load);
        if load.hosted > 0 {
            let store_tokens = load.stored.min(load.hosted);
            let host_tokens = load.hosted - store_tokens;
            let seconds = load.stored_s + tiers.host_s(load.hosted / page);
            note(live.request.id, EngineEvent::Loaded { host_tokens, store_tokens, seconds });
        }
    }

    /// Seconds of a step that computes its first layers while later ones are loaded: `layer_done_counter`.
    pub(super) fn overlapped(&self, step_s: f64) -> f64 {
        let Some(tiers) = self.tiers.as_ref().filter(|_| self.arriving > 0) else { return step_s };
        let load_s = tiers.host_s(self.arriving / self.settings.page_tokens);
        let layers = f64::from(tiers.settings().layers.max(1));
        step_s.max(load_s) + step_s.min(load_s) / layers
    }

    /// Tiers get the whole pages that the tree has of a request.
    pub(super) fn write_through(&mut self, slot: SglangSlot, tokens: u32) {
        if self.tiers.is_none() {
            return;
        }
        let pages: Vec<u64> = self.pages(slot, tokens).collect();
        if let Some(tiers) = &mut self.tiers {
            tiers.write(&pages);
        }
    }
}
