//! The blocks of a paged KV cache whose prompts are found by the identity of their blocks.
//!
//! Only blocks that another prompt may find have a number. The others are equal, and counted: a run of them is taken, kept
//! and given back at once.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use super::number_map::NumberMap;

/// A block with an identity.
pub type NamedId = u32;

const NONE: NamedId = NamedId::MAX;

#[derive(Clone, Copy)]
struct NamedBlock {
    /// The identity of its tokens.
    content: u64,
    /// The next block with the same.
    twin: NamedId,
    /// Requests that use it.
    users: u32,
    /// The number of its entry in the queue of free blocks that counts.
    entry: u32,
}

/// Free blocks next to each other in the order in which they are taken.
#[derive(Clone, Copy)]
enum FreeBlocks {
    /// This many that no prompt finds.
    Plain(u32),
    /// One that prompts find, with the number of the entry. Where it was shared since, it is there with an older one.
    Named(NamedId, u32),
}

/// The blocks that a request gives back.
pub struct GivenBack<'a> {
    /// Those with identities, in which its tokens begin.
    pub named: &'a [NamedId],
    /// Whole ones after them that keep their tokens for longer, though no prompt finds them.
    pub own: u32,
    /// Those that are not whole, or whose tokens nothing keeps.
    pub bare: u32,
}

/// The blocks of one attention rank. Free ones keep their tokens until they are taken, the longest unused first.
pub struct PrefixPool {
    free: u32,
    queue: VecDeque<FreeBlocks>,
    /// Its entries after it was swept last.
    swept: usize,
    named: Vec<NamedBlock>,
    vacant: Vec<NamedId>,
    by_content: NumberMap<u64, NamedId>,
}

impl PrefixPool {
    /// `count` free blocks.
    pub fn new(count: u32) -> PrefixPool {
        PrefixPool {
            free: count,
            queue: VecDeque::from([FreeBlocks::Plain(count)]),
            swept: 0,
            named: vec![],
            vacant: vec![],
            by_content: NumberMap::default(),
        }
    }

    /// Blocks that no request uses, with and without tokens.
    pub fn free(&self) -> u32 {
        self.free
    }

    /// A block that holds the tokens `content`.
    pub fn holding(&self, content: u64) -> Option<NamedId> {
        self.by_content.get(&content).copied()
    }

    /// Whether no request uses the block.
    pub fn is_free(&self, block: NamedId) -> bool {
        self.named[block as usize].users == 0
    }

    /// One more request uses `block`, which keeps its tokens.
    pub fn share(&mut self, block: NamedId) {
        let one = &mut self.named[block as usize];
        one.users += 1;
        if one.users == 1 {
            one.entry = one.entry.wrapping_add(1);
            self.free -= 1;
        }
    }

    /// Takes the `count` free blocks that were unused for longest, for other tokens; no more than are free.
    pub fn take(&mut self, count: u32) {
        let mut left = count.min(self.free);
        self.free -= left;
        while left > 0 {
            match self.queue.front_mut() {
                Some(FreeBlocks::Plain(plain)) if *plain > left => {
                    *plain -= left;
                    return;
                }
                Some(FreeBlocks::Plain(plain)) => left -= *plain,
                Some(FreeBlocks::Named(block, entry)) => {
                    let (block, one) = (*block, self.named[*block as usize]);
                    if one.users == 0 && one.entry == *entry {
                        self.forget(block);
                        left -= 1;
                    }
                }
                None => return,
            }
            self.queue.pop_front();
        }
    }

    /// A block that a request uses alone holds the tokens `content` from now on.
    pub fn keep(&mut self, content: u64) -> NamedId {
        let block = match self.vacant.pop() {
            Some(block) => block,
            None => {
                self.named.push(NamedBlock { content, twin: NONE, users: 0, entry: 0 });
                (self.named.len() - 1) as NamedId
            }
        };
        let one = &mut self.named[block as usize];
        (one.content, one.twin, one.users) = (content, NONE, 1);
        match self.by_content.entry(content) {
            // The oldest one with these tokens is found.
            Entry::Occupied(first) => {
                let mut last = *first.get();
                while self.named[last as usize].twin != NONE {
                    last = self.named[last as usize].twin;
                }
                self.named[last as usize].twin = block;
            }
            Entry::Vacant(none) => {
                none.insert(block);
            }
        }
        block
    }

    /// A request no longer uses its blocks. Those whose tokens nothing keeps are taken first; then the longest unused, of
    /// one request the end before the beginning.
    pub fn release(&mut self, blocks: GivenBack<'_>) {
        self.free += blocks.own + blocks.bare;
        if let Some(FreeBlocks::Plain(plain)) = self.queue.front_mut() {
            *plain += blocks.bare;
        } else if blocks.bare > 0 {
            self.queue.push_front(FreeBlocks::Plain(blocks.bare));
        }
        self.queue_plain(blocks.own);
        for &block in blocks.named.iter().rev() {
            let one = &mut self.named[block as usize];
            one.users -= 1;
            if one.users == 0 {
                self.queue.push_back(FreeBlocks::Named(block, one.entry));
                self.free += 1;
            }
        }
        self.sweep();
    }

    /// Plain blocks are free, and taken after all others.
    fn queue_plain(&mut self, count: u32) {
        if let Some(FreeBlocks::Plain(plain)) = self.queue.back_mut() {
            *plain += count;
        } else if count > 0 {
            self.queue.push_back(FreeBlocks::Plain(count));
        }
    }

    /// Removes the entries of the queue that do not count, where they are many.
    fn sweep(&mut self) {
        /// Entries that are too few to be swept.
        const FEW: usize = 64;
        if self.queue.len() <= 2 * self.swept + FEW {
            return;
        }
        for entry in std::mem::take(&mut self.queue) {
            match entry {
                FreeBlocks::Plain(count) => self.queue_plain(count),
                FreeBlocks::Named(block, entry) => {
                    let one = self.named[block as usize];
                    if one.users == 0 && one.entry == entry {
                        self.queue.push_back(FreeBlocks::Named(block, entry));
                    }
                }
            }
        }
        self.swept = self.queue.len();
    }

    /// The tokens of `block` are found no more.
    fn forget(&mut self, block: NamedId) {
        let NamedBlock { content, twin, .. } = self.named[block as usize];
        self.vacant.push(block);
        let Some(&first) = self.by_content.get(&content) else { return };
        if first == block {
            match twin {
                NONE => self.by_content.remove(&content),
                twin => self.by_content.insert(content, twin),
            };
            return;
        }
        let mut at = first;
        while self.named[at as usize].twin != block {
            at = self.named[at as usize].twin;
        }
        self.named[at as usize].twin = twin;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(named: &[NamedId], own: u32, bare: u32) -> GivenBack<'_> {
        GivenBack { named, own, bare }
    }

    #[test]
    fn tokens_stay_until_their_block_is_the_longest_unused() {
        let mut pool = PrefixPool::new(3);
        pool.take(3);
        let held: Vec<_> = (0..3).map(|content| pool.keep(content)).collect();
        assert_eq!(pool.free(), 0);
        // The end of a request goes first.
        pool.release(back(&held, 0, 0));
        assert_eq!(pool.holding(2), Some(held[2]));
        pool.take(1);
        assert_eq!((pool.holding(2), pool.holding(1)), (None, Some(held[1])));
        pool.share(held[1]);
        pool.take(1);
        assert_eq!((pool.free(), pool.holding(0), pool.holding(1)), (0, None, Some(held[1])));
    }

    #[test]
    fn of_equal_blocks_another_is_found_when_the_first_is_gone() {
        let mut pool = PrefixPool::new(3);
        pool.take(3);
        let held: Vec<_> = (0..3).map(|_| pool.keep(7)).collect();
        pool.release(back(&held[1..2], 0, 0));
        pool.release(back(&held[..1], 0, 0));
        assert_eq!(pool.holding(7), Some(held[0]));
        pool.take(1);
        assert_eq!(pool.holding(7), Some(held[0]));
        pool.take(1);
        assert_eq!(pool.holding(7), Some(held[2]));
    }

    #[test]
    fn blocks_without_tokens_are_taken_before_those_that_keep_some() {
        let mut pool = PrefixPool::new(9);
        pool.take(9);
        let first = [pool.keep(1)];
        pool.release(back(&first, 0, 0));
        let second = [pool.keep(2)];
        pool.release(back(&second, 3, 4));
        assert_eq!(pool.free(), 9);
        pool.take(4);
        assert!(pool.holding(1).is_some() && pool.holding(2).is_some());
        pool.take(1);
        assert!(pool.holding(1).is_none() && pool.holding(2).is_some());
        // Own blocks come after those of an earlier request, and before the beginning of their own.
        pool.take(3);
        assert!(pool.holding(2).is_some());
        pool.take(1);
        assert_eq!((pool.holding(2), pool.free()), (None, 0));
    }

    /// Entries that no longer count are no memory that grows.
    #[test]
    fn a_block_that_is_shared_again_and_again_is_queued_once() {
        let mut pool = PrefixPool::new(4);
        pool.take(2);
        let held = [pool.keep(5), pool.keep(6)];
        pool.release(back(&held, 0, 0));
        for _ in 0..10_000 {
            held.iter().for_each(|block| pool.share(*block));
            pool.release(back(&held, 0, 0));
        }
        assert!(pool.queue.len() < 100, "{}", pool.queue.len());
        pool.take(3);
        assert_eq!((pool.holding(5), pool.holding(6), pool.free()), (Some(held[0]), None, 1));
    }
}
