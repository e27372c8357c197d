//! The blocks of a paged KV cache: which are free, which hold tokens that a later prompt may use again.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use super::number_map::NumberMap;

/// Index of a block.
pub type BlockId = u32;

const NONE: BlockId = BlockId::MAX;

/// The tokens that a block keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeptBlock {
    /// None: it is not whole, or was given to another request.
    Nothing,
    /// Those of a request that no other one begins with: no prompt searches for them.
    Own,
    /// Tokens that a prompt finds by their identity.
    Shared,
}

#[derive(Clone, Copy)]
struct PooledBlock {
    /// Requests that use it.
    users: u32,
    /// The number of its entry in the queue of free blocks that counts.
    entry: u32,
    kept: KeptBlock,
}

/// The blocks of one attention rank. Free ones keep their tokens until they are taken, the longest unused first.
pub struct BlockPool {
    blocks: Vec<PooledBlock>,
    /// Of blocks with shared tokens: their identity, and the next block with the same.
    contents: Vec<(u64, BlockId)>,
    /// Free blocks, each with the number of its entry. Those that were shared since are still there, with an older one.
    queue: VecDeque<(BlockId, u32)>,
    free: u32,
    by_content: NumberMap<u64, BlockId>,
}

impl BlockPool {
    /// `count` free blocks, taken in order.
    pub fn new(count: u32) -> BlockPool {
        BlockPool {
            blocks: vec![PooledBlock { users: 0, entry: 0, kept: KeptBlock::Nothing }; count as usize],
            contents: vec![(0, NONE); count as usize],
            queue: (0..count).map(|block| (block, 0)).collect(),
            free: count,
            by_content: NumberMap::default(),
        }
    }

    /// Blocks that no request uses, with and without tokens.
    pub fn free(&self) -> u32 {
        self.free
    }

    /// A block that holds the tokens `content`.
    pub fn holding(&self, content: u64) -> Option<BlockId> {
        self.by_content.get(&content).copied()
    }

    /// Whether no request uses the block.
    pub fn is_free(&self, block: BlockId) -> bool {
        self.blocks[block as usize].users == 0
    }

    /// One more request uses `block`, which keeps its tokens.
    pub fn share(&mut self, block: BlockId) {
        let one = &mut self.blocks[block as usize];
        one.users += 1;
        if one.users == 1 {
            one.entry = one.entry.wrapping_add(1);
            self.free -= 1;
        }
    }

    /// The free block that was unused for longest, for other tokens. `None` where none is free.
    pub fn take(&mut self) -> Option<BlockId> {
        loop {
            let (block, entry) = self.queue.pop_front()?;
            let one = &mut self.blocks[block as usize];
            if one.users > 0 || one.entry != entry {
                continue;
            }
            one.users = 1;
            self.free -= 1;
            if std::mem::replace(&mut one.kept, KeptBlock::Nothing) == KeptBlock::Shared {
                self.forget(block);
            }
            return Some(block);
        }
    }

    /// `block` holds the tokens `content` from now on.
    pub fn keep(&mut self, block: BlockId, content: u64) {
        let kept = &mut self.blocks[block as usize].kept;
        if std::mem::replace(kept, KeptBlock::Shared) == KeptBlock::Shared {
            return;
        }
        self.contents[block as usize] = (content, NONE);
        match self.by_content.entry(content) {
            // The oldest one with these tokens is found.
            Entry::Occupied(first) => {
                let mut last = *first.get();
                while self.contents[last as usize].1 != NONE {
                    last = self.contents[last as usize].1;
                }
                self.contents[last as usize].1 = block;
            }
            Entry::Vacant(none) => {
                none.insert(block);
            }
        }
    }

    /// `block` holds tokens from now on that no other request begins with.
    pub fn keep_own(&mut self, block: BlockId) {
        let kept = &mut self.blocks[block as usize].kept;
        if *kept == KeptBlock::Nothing {
            *kept = KeptBlock::Own;
        }
    }

    /// Requests that use the block.
    pub fn users(&self, block: BlockId) -> u32 {
        self.blocks[block as usize].users
    }

    /// A request no longer uses `blocks`; all of them are taken in the order of their last use, the end first, whether or
    /// not a prompt can find their tokens.
    pub fn release_by_age(&mut self, blocks: &[BlockId]) {
        for &block in blocks.iter().rev() {
            let one = &mut self.blocks[block as usize];
            one.users -= 1;
            if one.users == 0 {
                self.queue.push_back((block, one.entry));
                self.free += 1;
            }
        }
        self.sweep();
    }

    /// A request no longer uses `blocks`, the first of which its tokens begin in. Those whose tokens no prompt can find
    /// are taken first; then the longest unused, of one request the end before the beginning.
    pub fn release(&mut self, blocks: &[BlockId]) {
        for &block in blocks.iter().rev() {
            let one = &mut self.blocks[block as usize];
            one.users -= 1;
            if one.users == 0 {
                match one.kept {
                    KeptBlock::Nothing => self.queue.push_front((block, one.entry)),
                    KeptBlock::Own | KeptBlock::Shared => self.queue.push_back((block, one.entry)),
                }
                self.free += 1;
            }
        }
        self.sweep();
    }

    /// Removes the entries of the queue that do not count, where they are more than the blocks.
    fn sweep(&mut self) {
        if self.queue.len() > 2 * self.blocks.len() {
            let blocks = &self.blocks;
            self.queue.retain(|(block, entry)| {
                let one = &blocks[*block as usize];
                one.users == 0 && one.entry == *entry
            });
        }
    }

    /// The tokens of `block` are found no more.
    fn forget(&mut self, block: BlockId) {
        let (content, twin) = self.contents[block as usize];
        let Some(&first) = self.by_content.get(&content) else { return };
        if first == block {
            match twin {
                NONE => self.by_content.remove(&content),
                twin => self.by_content.insert(content, twin),
            };
            return;
        }
        let mut at = first;
        while self.contents[at as usize].1 != block {
            at = self.contents[at as usize].1;
        }
        self.contents[at as usize].1 = twin;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_stay_until_their_block_is_the_longest_unused() {
        let mut pool = BlockPool::new(3);
        let held: Vec<_> = (0..3).map(|content| (pool.take().unwrap(), content)).collect();
        assert_eq!((pool.free(), pool.take()), (0, None));
        held.iter().for_each(|&(block, content)| pool.keep(block, content));
        // The end of a request goes first.
        pool.release(&held.iter().map(|held| held.0).collect::<Vec<_>>());
        assert_eq!(pool.holding(2), Some(2));
        assert_eq!(pool.take(), Some(2));
        assert_eq!((pool.holding(2), pool.holding(1)), (None, Some(1)));
        pool.share(1);
        assert_eq!(pool.take(), Some(0));
        assert_eq!((pool.free(), pool.holding(0), pool.holding(1)), (0, None, Some(1)));
    }

    #[test]
    fn of_equal_blocks_another_is_found_when_the_first_is_gone() {
        let mut pool = BlockPool::new(3);
        let blocks: Vec<_> = (0..3).map(|_| pool.take().unwrap()).collect();
        blocks.iter().for_each(|block| pool.keep(*block, 7));
        pool.release(&blocks[1..2]);
        pool.release(&blocks[..1]);
        assert_eq!(pool.holding(7), Some(0));
        assert_eq!((pool.take(), pool.holding(7)), (Some(1), Some(0)));
        assert_eq!((pool.take(), pool.holding(7)), (Some(0), Some(2)));
    }
}
