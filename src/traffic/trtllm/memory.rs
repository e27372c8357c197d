//! The blocks of requests: what of a prompt the cache has, what a request still needs, and what later prompts find.

use super::{EngineEvent, Note, TrtllmEngine, TrtllmPhase, TrtllmSlot};
use crate::traffic::block_pool::BlockId;
use crate::traffic::block_tree::{BlockTokens, ROOT};
use crate::traffic::draft::places_beyond;

/// Above the blocks that are found in host memory alone.
const HOSTED: BlockId = ROOT - 1;

/// Whole blocks of a request in the cache.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PrefixReuse {
    /// Blocks that other requests use.
    used: u32,
    /// All blocks.
    all: u32,
    /// The identity of the first block that it does not have.
    pub(super) new: Option<u64>,
}

impl TrtllmEngine {
    pub(super) fn prefix_reuse(&self, slot: TrtllmSlot) -> PrefixReuse {
        let live = self.at(slot);
        let whole = (live.known / self.settings.block_tokens) as usize;
        let (mut above, mut found) = (ROOT, PrefixReuse::default());
        for (key, identity) in live.keys.iter().zip(&live.chain).take(whole) {
            // Blocks of host memory are below those of the device, and no request uses them.
            let block = if above == HOSTED { None } else { self.tree.find(above, key) };
            match block {
                Some(block) => {
                    found.used += u32::from(!self.pool.is_free(block));
                    above = block;
                }
                None if self.hosts(slot, found.all) => above = HOSTED,
                None => {
                    found.new = Some(*identity);
                    return found;
                }
            }
            found.all += 1;
        }
        found
    }

    /// Tokens in whole blocks of `keys`, the first of `prompt` tokens, that the cache has.
    pub(super) fn found_by(&self, keys: &[BlockTokens], prompt: u32) -> u32 {
        let (size, mut above, mut tokens) = (self.settings.block_tokens, ROOT, 0);
        for key in keys.iter().take(((prompt - 1) / size) as usize) {
            let Some(block) = self.tree.find(above, key) else { break };
            (above, tokens) = (block, tokens + size);
        }
        tokens
    }

    /// The whole blocks of a request that it has put into the tree and that are still there, and the last of them.
    fn stored(&self, slot: TrtllmSlot) -> (u32, BlockId) {
        let there = self.at(slot).stored.filter(|(_, place)| self.tree.is_at(*place));
        there.map_or((0, ROOT), |(blocks, place)| (blocks, place.block))
    }

    /// The identity of the first block of a prompt under way that the cache does not have.
    pub(super) fn next_block(&self, slot: TrtllmSlot) -> Option<u64> {
        let live = self.at(slot);
        let (mut at, mut above) = self.stored(slot);
        while at < live.known / self.settings.block_tokens {
            match self.tree.find(above, &live.keys[at as usize]) {
                Some(block) => (at, above) = (at + 1, block),
                None => return Some(live.chain[at as usize]),
            }
        }
        None
    }

    /// Of the `most` first blocks of a prompt those that others use; `known` is what the cache has, if that was looked
    /// up.
    fn shared(&mut self, slot: TrtllmSlot, most: u32, known: Option<PrefixReuse>) -> u32 {
        let found = known.unwrap_or_else(|| self.prefix_reuse(slot));
        let tokens = found.all.min(most) * self.settings.block_tokens;
        let live = self.at_mut(slot);
        live.estimate = tokens.max(live.request.received);
        found.used.min(most)
    }

    /// Blocks that a request lacks up to its end.
    pub(super) fn remaining_blocks(&mut self, slot: TrtllmSlot, known: Option<PrefixReuse>) -> u32 {
        let (size, beyond) = (self.settings.block_tokens, places_beyond(self.settings.draft));
        let live = self.at_mut(slot);
        live.estimate = live.request.received;
        let total = (live.prompt + live.max_new() + beyond).div_ceil(size);
        let (has, first, whole) = (live.blocks.len() as u32, live.is_first_chunk(), live.prompt / size);
        let new = self.settings.block_reuse && first && has == 0;
        let shared = if new { self.shared(slot, whole, known) } else { 0 };
        total.saturating_sub(shared + has)
    }

    /// Blocks that a request lacks for its next step.
    pub(super) fn step_blocks(&mut self, slot: TrtllmSlot, known: Option<PrefixReuse>) -> u32 {
        let (size, reuse) = (self.settings.block_tokens, self.settings.block_reuse);
        let places = self.step_tokens();
        let live = self.at_mut(slot);
        live.estimate = live.request.received;
        match (live.phase, live.held) {
            (TrtllmPhase::Context, _) if live.is_first_chunk() => {
                let prompt = live.prompt;
                let shared = if reuse { self.shared(slot, prompt / size, known) } else { 0 };
                prompt.div_ceil(size) - shared
            }
            (TrtllmPhase::Generation | TrtllmPhase::ToComplete, Some(held)) => {
                let left = live.max_new().saturating_sub(held - live.prompt);
                (held + left.min(places)).div_ceil(size) - held.div_ceil(size)
            }
            _ => 0,
        }
    }

    /// A free block for other tokens.
    pub(super) fn take(&mut self) -> Option<BlockId> {
        let block = self.pool.take()?;
        self.offload(block);
        self.tree.forget(block);
        Some(block)
    }

    /// The place of one more token.
    pub(super) fn add_token(&mut self, slot: TrtllmSlot) {
        let held = self.at(slot).held.unwrap_or(0);
        let lacks = self.at(slot).blocks.len() as u32 <= held / self.settings.block_tokens;
        if lacks && held.is_multiple_of(self.settings.block_tokens) {
            let block = self.take();
            self.at_mut(slot).blocks.extend(block);
        }
        self.at_mut(slot).held = Some(held + 1);
    }

    /// Claims the blocks that a request begins with; none of one whose tokens are copied. Returns also the number of
    /// their tokens: the last one of the prompt is not among these, as its step gives the next.
    fn claim(&mut self, slot: TrtllmSlot) -> (Vec<Option<BlockId>>, u32) {
        let size = self.settings.block_tokens;
        let (mut above, mut found, mut tokens) = (ROOT, vec![], 0);
        let usable = self.at(slot).prompt - 1;
        while tokens < usable {
            let key = self.key(slot, tokens / size, usable);
            let exact = self.tree.find(above, &key).map(|block| (block, key.count()));
            if exact.is_none()
                && key.count() == size
                && let Some(block) = self.onboard(slot, tokens / size, (above, &key))
            {
                tokens += size;
                found.push(Some(block));
                above = block;
                continue;
            }
            let near = || self.settings.partial_reuse.then(|| self.tree.nearest(above, &key)).flatten();
            let Some((block, matched)) = exact.or_else(near) else { break };
            tokens += matched;
            if matched == size {
                self.pool.share(block);
                found.push(Some(block));
                above = block;
                continue;
            }
            if self.pool.is_free(block) && self.tree.is_leaf(block) {
                // No request uses it: it is this one's own from now on.
                self.tree.detach(block);
                self.pool.share(block);
                found.push(Some(block));
            } else {
                found.push(None);
            }
            break;
        }
        (found, tokens)
    }

    /// The tokens of a block of a request, of which only the first `usable` ones count.
    fn key(&self, slot: TrtllmSlot, block: u32, usable: u32) -> BlockTokens {
        let (size, live) = (self.settings.block_tokens, self.at(slot));
        match live.keys.get(block as usize).filter(|_| (block + 1) * size <= usable) {
            Some(key) => key.clone(),
            None => BlockTokens::of(&live.request.runs, block * size, usable),
        }
    }

    /// Gives the requests of the batch their blocks, and cuts prompts of which the cache has less than expected.
    pub(super) fn prepare(&mut self, note: Note<'_>) {
        let first = |slot: &TrtllmSlot| self.at(*slot).is_first_chunk();
        let new: Vec<TrtllmSlot> = self.batch.context.iter().copied().filter(first).collect();
        // All take what they share with others before any takes what these no longer need.
        let reuse = self.settings.block_reuse;
        let mut claims = |slot: &TrtllmSlot| {
            let before = self.arriving;
            let (found, tokens) = if reuse { self.claim(*slot) } else { (vec![], 0) };
            (found, tokens, self.arriving - before)
        };
        let claimed: Vec<_> = new.iter().map(&mut claims).collect();
        for (slot, (found, tokens, loaded)) in new.into_iter().zip(claimed) {
            self.note_load(slot, loaded, note);
            let tokens = tokens.max(self.at(slot).request.received);
            self.start(slot, found, tokens);
            note(self.at(slot).request.id, EngineEvent::Admitted { cached_tokens: tokens });
        }
        for at in 0..self.batch.generation.len() {
            for _ in 0..self.step_tokens() {
                self.add_token(self.batch.generation[at]);
            }
        }
        self.order_prompts();
        self.fit_budget();
    }

    /// A request gets its first blocks, of which the cache has `found` with `tokens` tokens.
    fn start(&mut self, slot: TrtllmSlot, found: Vec<Option<BlockId>>, tokens: u32) {
        let size = self.settings.block_tokens;
        let count = self.at(slot).prompt.div_ceil(size) as usize;
        let mut blocks = vec![];
        for at in 0..count {
            let block = found.get(at).copied().flatten();
            blocks.extend(block.or_else(|| self.take()));
        }
        self.started += 1;
        let live = self.at_mut(slot);
        (live.blocks, live.held, live.estimate) = (blocks, Some(live.prompt), 0);
        live.cached = tokens;
        if tokens > 0 {
            if tokens + live.chunk < live.prompt {
                // A part of a prompt ends with a block.
                live.chunk = (tokens + live.chunk) / size * size - tokens;
            }
            live.position = tokens;
            live.chunk = live.chunk.min(live.remaining());
        }
    }

    /// Prompts of which a part remains come before those that end.
    pub(super) fn order_prompts(&mut self) {
        let mut context = std::mem::take(&mut self.batch.context);
        context.sort_by_key(|slot| self.at(*slot).is_last_chunk());
        self.batch.last = context.iter().filter(|slot| !self.at(**slot).is_last_chunk()).count();
        self.batch.context = context;
    }

    /// Cuts the last prompts where the step has more tokens than it may.
    fn fit_budget(&mut self) {
        let (size, budget) = (self.settings.block_tokens, self.settings.token_budget);
        if !self.settings.chunked_prefill || self.batch.context.is_empty() {
            return;
        }
        let prompts: u32 = self.batch.context.iter().map(|slot| self.at(*slot).chunk).sum();
        let decoding = self.batch.generation.len() as u32 * self.step_tokens();
        let mut excess = (prompts + decoding).saturating_sub(budget);
        for at in (0..self.batch.context.len()).rev() {
            if excess == 0 {
                return self.order_prompts();
            }
            let live = self.at_mut(self.batch.context[at]);
            let (position, chunk) = (live.position, live.chunk);
            let end = (position + chunk).saturating_sub(excess) / size * size;
            let shorter = end.saturating_sub(position).max(size - position % size).min(chunk);
            live.chunk = shorter;
            excess = excess.saturating_sub(chunk - shorter);
        }
        self.order_prompts();
    }

    /// Later prompts find the whole blocks of the first `usable` tokens of a request, and what is left if `partial`.
    fn store(&mut self, slot: TrtllmSlot, usable: u32, partial: bool) {
        let (size, live) = (self.settings.block_tokens, self.at(slot));
        if (live.blocks.len() as u32) < live.held.unwrap_or(0).div_ceil(size) {
            // It lacks a block: here the server stops.
            return;
        }
        let count = if partial { usable.div_ceil(size) } else { usable / size };
        let (first, mut above) = self.stored(slot);
        for at in first..count.min(self.at(slot).blocks.len() as u32) {
            let (key, block) = (self.key(slot, at, usable), self.at(slot).blocks[at as usize]);
            above = match self.tree.find(above, &key) {
                Some(other) => other,
                None => {
                    self.tree.attach(block, above, &key);
                    self.identify(slot, (at, (at + 1) * size <= usable), block);
                    block
                }
            };
            if (at + 1) * size <= usable {
                self.at_mut(slot).stored = Some((at + 1, self.tree.place(above)));
            }
        }
    }

    /// Later prompts find the whole blocks of a prompt that are computed, those of the step under way included.
    pub(super) fn store_prompt(&mut self, slot: TrtllmSlot) {
        let live = self.at(slot);
        if self.settings.block_reuse && live.held.is_some() {
            self.store(slot, live.position.min(live.known - 1), false);
        }
    }

    /// A request no longer uses its blocks.
    pub(super) fn release(&mut self, slot: TrtllmSlot) {
        let live = self.at(slot);
        if live.held.is_none() {
            return;
        }
        if self.settings.block_reuse {
            let usable = if live.phase == TrtllmPhase::Context { live.position } else { u32::MAX };
            self.store(slot, usable.min(live.known - 1), true);
        }
        self.started -= 1;
        let live = self.at_mut(slot);
        (live.held, live.stored) = (None, None);
        let blocks = std::mem::take(&mut live.blocks);
        self.pool.release(&blocks);
    }
}
