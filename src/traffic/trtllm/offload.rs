//! Blocks in host memory: those that the device gives up go there, and come back when a prompt begins with them.
//!
//! Follows `WindowBlockManager::getFreeBlock` and `onboardBlock` of `kvCacheManager.cpp`, and `syncTransfers` of
//! `kvCacheTransferManager.cpp`: a step starts when the blocks of its prompts are there.

use super::{BlockId, BlockTokens, EngineEvent, Note, TrtllmEngine, TrtllmSlot};
use crate::traffic::cache_tier::CacheTiers;

impl TrtllmEngine {
    /// The same engine with tiers of the cache.
    #[must_use]
    pub fn tiered(self, tiers: CacheTiers) -> TrtllmEngine {
        TrtllmEngine { tiers: Some(tiers).filter(|_| self.settings.block_reuse), ..self }
    }

    /// Whether host memory has the block of a request with this number, which the device does not have.
    pub(super) fn hosts(&self, slot: TrtllmSlot, block: u32) -> bool {
        let identity = self.at(slot).chain.get(block as usize);
        let tiers = self.tiers.as_ref().zip(identity);
        tiers.is_some_and(|(tiers, identity)| tiers.hosts(*identity))
    }

    /// The device gives up what a block holds: host memory has it, if a prompt could find it.
    pub(super) fn offload(&mut self, block: BlockId) {
        let identity = self.identities[block as usize].take().filter(|_| self.tree.has(block));
        if let (Some(tiers), Some(identity)) = (&mut self.tiers, identity) {
            tiers.place(&[identity]);
        }
    }

    /// Brings the block of a request with this number, below `above`, from host memory, where that has it.
    pub(super) fn onboard(
        &mut self,
        slot: TrtllmSlot,
        number: u32,
        (above, key): (BlockId, &BlockTokens),
    ) -> Option<BlockId> {
        if !self.hosts(slot, number) || self.pool.free() == 0 {
            return None;
        }
        let identity = *self.at(slot).chain.get(number as usize)?;
        // Its place in host memory is free for the block that the device gives up.
        self.tiers.as_mut()?.take(identity);
        let block = self.take()?;
        self.tree.attach(block, above, key);
        self.identities[block as usize] = Some(identity);
        self.arriving += 1;
        Some(block)
    }

    /// Later prompts find a block, and host memory may have it then, if it is whole.
    pub(super) fn identify(&mut self, slot: TrtllmSlot, (number, whole): (u32, bool), block: BlockId) {
        let identity = self.at(slot).chain.get(number as usize).filter(|_| whole);
        self.identities[block as usize] = identity.copied();
    }

    /// A request begins with this many blocks from host memory.
    pub(super) fn note_load(&self, slot: TrtllmSlot, blocks: u32, note: Note<'_>) {
        let Some(tiers) = self.tiers.as_ref().filter(|_| blocks > 0) else { return };
        let (host_tokens, seconds) = (blocks * self.settings.block_tokens, tiers.host_s(blocks));
        note(self.at(slot).request.id, EngineEvent::Loaded { host_tokens, store_tokens: 0, seconds });
    }

    /// Seconds that the blocks of the step take from host memory.
    pub(super) fn arrival_s(&self) -> f64 {
        self.tiers.as_ref().map_or(0.0, |tiers| tiers.host_s(self.arriving))
    }
}
