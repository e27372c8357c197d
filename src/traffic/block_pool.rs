//! The blocks of a paged KV cache: which are free, which hold tokens that a later prompt may use again.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Index of a block.
pub type BlockId = u32;

const NONE: BlockId = BlockId::MAX;

/// Identities of blocks are mixed already.
#[derive(Default)]
pub struct MixedHasher(u64);

impl Hasher for MixedHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = super::content::mixed(self.0, u64::from(*byte)));
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

#[derive(Clone, Copy)]
struct PooledBlock {
    /// Requests that use it.
    users: u32,
    /// Neighbours in the queue of free blocks.
    before: BlockId,
    after: BlockId,
    /// The next block with the same tokens.
    twin: BlockId,
    /// Identity of its tokens; none where it is not whole, or was given to another request.
    content: Option<u64>,
}

/// The blocks of one attention rank. Free ones keep their tokens until they are taken, the longest unused first.
pub struct BlockPool {
    blocks: Vec<PooledBlock>,
    first: BlockId,
    last: BlockId,
    free: u32,
    by_content: HashMap<u64, BlockId, BuildHasherDefault<MixedHasher>>,
}

impl BlockPool {
    /// `count` free blocks, taken in order.
    pub fn new(count: u32) -> BlockPool {
        let one = |at: u32| PooledBlock {
            users: 0,
            before: if at == 0 { NONE } else { at - 1 },
            after: if at + 1 == count { NONE } else { at + 1 },
            twin: NONE,
            content: None,
        };
        let (first, last) = if count == 0 { (NONE, NONE) } else { (0, count - 1) };
        let blocks = (0..count).map(one).collect();
        BlockPool { blocks, first, last, free: count, by_content: HashMap::default() }
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
        if self.is_free(block) {
            self.unlink(block);
        }
        self.blocks[block as usize].users += 1;
    }

    /// The free block that was unused for longest, for other tokens. `None` where none is free.
    pub fn take(&mut self) -> Option<BlockId> {
        let block = self.first;
        if block == NONE {
            return None;
        }
        self.unlink(block);
        self.forget(block);
        self.blocks[block as usize].users = 1;
        Some(block)
    }

    /// `block` holds the tokens `content` from now on.
    pub fn keep(&mut self, block: BlockId, content: u64) {
        if self.blocks[block as usize].content.is_some() {
            return;
        }
        self.blocks[block as usize].content = Some(content);
        match self.by_content.get(&content) {
            // The oldest one with these tokens is found.
            Some(&first) => {
                let mut last = first;
                while self.blocks[last as usize].twin != NONE {
                    last = self.blocks[last as usize].twin;
                }
                self.blocks[last as usize].twin = block;
            }
            None => {
                self.by_content.insert(content, block);
            }
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
                self.link_last(block);
            }
        }
    }

    /// A request no longer uses `blocks`, the first of which its tokens begin in. Those whose tokens no prompt can find
    /// are taken first; then the longest unused, of one request the end before the beginning.
    pub fn release(&mut self, blocks: &[BlockId]) {
        for &block in blocks.iter().rev() {
            let one = &mut self.blocks[block as usize];
            one.users -= 1;
            if one.users == 0 {
                match one.content {
                    Some(_) => self.link_last(block),
                    None => self.link_first(block),
                }
            }
        }
    }

    fn link_last(&mut self, block: BlockId) {
        let last = self.last;
        let one = &mut self.blocks[block as usize];
        (one.before, one.after) = (last, NONE);
        match last {
            NONE => self.first = block,
            last => self.blocks[last as usize].after = block,
        }
        self.last = block;
        self.free += 1;
    }

    fn link_first(&mut self, block: BlockId) {
        let first = self.first;
        let one = &mut self.blocks[block as usize];
        (one.before, one.after) = (NONE, first);
        match first {
            NONE => self.last = block,
            first => self.blocks[first as usize].before = block,
        }
        self.first = block;
        self.free += 1;
    }

    fn unlink(&mut self, block: BlockId) {
        let PooledBlock { before, after, .. } = self.blocks[block as usize];
        match before {
            NONE => self.first = after,
            before => self.blocks[before as usize].after = after,
        }
        match after {
            NONE => self.last = before,
            after => self.blocks[after as usize].before = before,
        }
        self.free -= 1;
    }

    /// `block` no longer has its tokens.
    fn forget(&mut self, block: BlockId) {
        let Some(content) = self.blocks[block as usize].content.take() else { return };
        let twin = std::mem::replace(&mut self.blocks[block as usize].twin, NONE);
        let Some(&first) = self.by_content.get(&content) else { return };
        if first == block {
            match twin {
                NONE => self.by_content.remove(&content),
                twin => self.by_content.insert(content, twin),
            };
            return;
        }
        let mut at = first;
        while self.blocks[at as usize].twin != block {
            at = self.blocks[at as usize].twin;
        }
        self.blocks[at as usize].twin = twin;
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
