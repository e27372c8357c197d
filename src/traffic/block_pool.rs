//! The blocks of a paged KV cache by number: which are free, and in which order they are taken.

use std::collections::VecDeque;

/// Index of a block.
pub type BlockId = u32;

#[derive(Clone, Copy)]
struct PooledBlock {
    /// Requests that use it.
    users: u32,
    /// The number of its entry in the queue of free blocks that counts.
    entry: u32,
}

/// The blocks of one attention rank. Free ones keep their tokens until they are taken, the longest unused first.
pub struct BlockPool {
    blocks: Vec<PooledBlock>,
    /// Free blocks, each with the number of its entry. Those that were shared since are still there, with an older one.
    queue: VecDeque<(BlockId, u32)>,
    free: u32,
}

impl BlockPool {
    /// `count` free blocks, taken in order.
    pub fn new(count: u32) -> BlockPool {
        BlockPool {
            blocks: vec![PooledBlock { users: 0, entry: 0 }; count as usize],
            queue: (0..count).map(|block| (block, 0)).collect(),
            free: count,
        }
    }

    /// Blocks that no request uses, with and without tokens.
    pub fn free(&self) -> u32 {
        self.free
    }

    /// Whether no request uses the block.
    pub fn is_free(&self, block: BlockId) -> bool {
        self.users(block) == 0
    }

    /// Requests that use the block.
    pub fn users(&self, block: BlockId) -> u32 {
        self.blocks[block as usize].users
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
            if one.users == 0 && one.entry == entry {
                one.users = 1;
                self.free -= 1;
                return Some(block);
            }
        }
    }

    /// A request no longer uses `blocks`; they are taken in the order of their last use, of one request the end before
    /// the beginning.
    pub fn release(&mut self, blocks: &[BlockId]) {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_that_was_unused_for_longest_is_taken() {
        let mut pool = BlockPool::new(3);
        let held: Vec<_> = (0..3).map(|_| pool.take().unwrap()).collect();
        assert_eq!((pool.free(), pool.take()), (0, None));
        // The end of a request goes first.
        pool.release(&held);
        assert_eq!(pool.take(), Some(2));
        pool.share(1);
        assert_eq!((pool.users(1), pool.is_free(0)), (1, true));
        assert_eq!((pool.take(), pool.take(), pool.free()), (Some(0), None, 0));
        pool.release(&[1]);
        pool.release(&[0]);
        assert_eq!((pool.take(), pool.take()), (Some(1), Some(0)));
    }
}
