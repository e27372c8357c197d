//! Prompts whose blocks come from tiers of the cache: they wait for these while others run.
//!
//! Follows `offloading/scheduler.py` of vLLM 0.33 (`vllm/distributed/kv_transfer/kv_connector/v1`), and its scheduler's
//! `WAITING_FOR_REMOTE_KVS`.

use super::{BlockChain, EngineEvent, NamedId, Note, VllmEngine, VllmSlot};
use crate::traffic::cache_tier::CacheTiers;

/// Blocks of a waiting request that come from tiers.
pub(super) struct VllmLoad {
    /// Their identities; none once later prompts find them.
    blocks: Vec<u64>,
    /// Tokens of the request that are on the device then.
    tokens: u32,
    end_s: f64,
}

/// How a waiting request may start.
pub(super) enum VllmStart {
    /// With these cached blocks, and this many tokens on the device.
    With(Vec<NamedId>, u32),
    /// Its blocks, or some that it has in common with another request, are on their way.
    Waits,
    /// Too few blocks are free for those that tiers have.
    NoMemory,
}

impl VllmEngine {
    /// The same engine with tiers of the cache.
    #[must_use]
    pub fn tiered(self, tiers: CacheTiers) -> VllmEngine {
        VllmEngine { tiers: Some(tiers).filter(|_| self.settings.prefix_caching), ..self }
    }

    /// How a waiting request may start. What tiers have of it is loaded from now on.
    pub(super) fn start(&mut self, slot: VllmSlot, note: Note<'_>) -> VllmStart {
        if self.at(slot).load.is_some() {
            return self.loaded(slot);
        }
        let live = self.at(slot);
        let (received, known) = (live.request.received, live.known());
        let hits: Vec<NamedId> = self.hits(&live.request, known).collect();
        let found = if received > 0 { vec![] } else { self.behind(slot, hits.len()) };
        if found.is_empty() {
            let cached = hits.len() as u32 * self.settings.block_tokens;
            return VllmStart::With(hits, cached.max(received));
        }
        let loads = self.waiting.iter().filter_map(|other| self.at(*other).load.as_ref());
        if loads.flat_map(|load| &load.blocks).any(|block| *block == found[0]) {
            return VllmStart::Waits;
        }
        // A load keeps its blocks until all of the prompt is computed.
        let lacking = known.div_ceil(self.settings.block_tokens) - hits.len() as u32;
        if lacking + self.kept(&hits) + self.promised() > self.pool.free() {
            return VllmStart::NoMemory;
        }
        self.load_behind(slot, &hits, found, note);
        VllmStart::Waits
    }

    /// Identities of the blocks that tiers have after the first `hits` ones of a request; none of its last token.
    fn behind(&self, slot: VllmSlot, hits: usize) -> Vec<u64> {
        let Some(tiers) = &self.tiers else { return vec![] };
        let (live, size) = (self.at(slot), self.settings.block_tokens);
        let whole = self.identities(slot, (live.known() - 1) / size);
        whole.skip(hits).take_while(|block| tiers.holds(*block)).collect()
    }

    /// Identities of the first `blocks` blocks of a request.
    fn identities(&self, slot: VllmSlot, blocks: u32) -> impl Iterator<Item = u64> {
        let (mut chain, size) = (BlockChain::default(), self.settings.block_tokens);
        (0..blocks).map_while(move |_| chain.next(&self.at(slot).request.runs, size))
    }

    /// Blocks that prompts lack of which a part is computed or loaded.
    fn promised(&self) -> u32 {
        let lacks = |slot: &VllmSlot| {
            let live = self.at(*slot);
            live.known().div_ceil(self.settings.block_tokens).saturating_sub(live.blocks)
        };
        let prompts = self.running.iter().filter(|slot| !self.at(**slot).ended && !self.at(**slot).decodes());
        let loads = self.waiting.iter().filter(|slot| self.at(**slot).load.is_some());
        prompts.chain(loads).map(lacks).sum()
    }

    fn load_behind(&mut self, slot: VllmSlot, hits: &[NamedId], found: Vec<u64>, note: Note<'_>) {
        let (size, count) = (self.settings.block_tokens, hits.len() + found.len());
        hits.iter().for_each(|block| self.pool.share(*block));
        let (Some(tiers), Some(live)) = (&mut self.tiers, &mut self.live[slot]) else { return };
        let load = tiers.load(&found);
        live.named.extend_from_slice(hits);
        live.blocks += count as u32;
        self.pool.take(found.len() as u32);
        for _ in 0..count {
            live.chain.next(&live.request.runs, size);
        }
        live.chained = count as u32;
        live.hold_chained(size, true);
        live.load = Some(VllmLoad { blocks: found, tokens: count as u32 * size, end_s: load.end_s });
        let seconds = load.end_s - tiers.now_s();
        let (host_tokens, store_tokens) = (load.host * size, load.store * size);
        note(live.request.id, EngineEvent::Loaded { host_tokens, store_tokens, seconds });
    }

    /// A request whose load has started: later prompts find its blocks once they are there.
    fn loaded(&mut self, slot: VllmSlot) -> VllmStart {
        let (Some(tiers), Some(live)) = (&self.tiers, &mut self.live[slot]) else { return VllmStart::Waits };
        let Some(load) = live.load.as_mut().filter(|load| tiers.has_ended(load.end_s)) else {
            return VllmStart::Waits;
        };
        let loaded = std::mem::take(&mut load.blocks);
        live.named.extend(loaded.into_iter().map(|content| self.pool.keep(content)));
        VllmStart::With(vec![], load.tokens)
    }

    /// Whether nothing gives back blocks before a waiting request is admitted: one whose blocks are loaded goes first.
    pub(super) fn stalls(&self) -> bool {
        self.tiers.is_some() && self.running.is_empty() && self.next_end_s().is_none()
    }

    /// When the next load ends of which the scheduler has not heard.
    pub(super) fn next_end_s(&self) -> Option<f64> {
        let tiers = self.tiers.as_ref()?;
        let loads = self.waiting.iter().filter_map(|slot| self.at(*slot).load.as_ref());
        let ends = loads.map(|load| load.end_s).filter(|end_s| !tiers.has_ended(*end_s));
        ends.min_by(f64::total_cmp)
    }

    /// Tiers get the whole blocks of the prompts that the scheduled step computes.
    pub(super) fn write_prompts(&mut self) {
        let Some(tiers) = &self.tiers else { return };
        let prompts_only = tiers.settings().prompts_only;
        for place in 0..self.scheduled.len() {
            let (slot, new) = self.scheduled[place];
            let live = self.at(slot);
            if !live.decodes() {
                let most = if prompts_only { live.request.prompt } else { live.known() };
                self.write(slot, (live.computed + new).min(most));
            }
        }
    }

    /// A request loses its blocks: tiers get those of its output too, where they take these.
    pub(super) fn write_output(&mut self, slot: VllmSlot) {
        if self.tiers.as_ref().is_some_and(|tiers| !tiers.settings().prompts_only) {
            self.write(slot, self.at(slot).computed);
        }
    }

    fn write(&mut self, slot: VllmSlot, tokens: u32) {
        let blocks = tokens / self.settings.block_tokens;
        if blocks <= self.at(slot).written {
            return;
        }
        let written: Vec<u64> = self.identities(slot, blocks).collect();
        if let Some(tiers) = &mut self.tiers {
            tiers.write(&written);
        }
        self.at_mut(slot).written = blocks;
    }
}
