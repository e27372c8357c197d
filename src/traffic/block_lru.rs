//! Identities of blocks in the order of their last use: what a tier of the KV cache holds.

use super::number_map::NumberMap;

/// A place in the order of use.
type LruPlace = u32;

const NONE: LruPlace = LruPlace::MAX;

struct LruBlock {
    content: u64,
    /// Neighbours in the order of use.
    older: LruPlace,
    newer: LruPlace,
}

/// Blocks by the tokens that they hold. Where there are too many, the longest unused one is given up.
pub struct BlockLru {
    most: usize,
    blocks: Vec<LruBlock>,
    vacant: Vec<LruPlace>,
    by_content: NumberMap<u64, LruPlace>,
    oldest: LruPlace,
    newest: LruPlace,
}

impl BlockLru {
    /// No blocks, and later `most` at most.
    pub fn new(most: u64) -> BlockLru {
        BlockLru {
            most: most.min(u64::from(NONE)) as usize,
            blocks: vec![],
            vacant: vec![],
            by_content: NumberMap::default(),
            oldest: NONE,
            newest: NONE,
        }
    }

    /// Blocks that it holds.
    pub fn count(&self) -> usize {
        self.by_content.len()
    }

    /// Whether a block with these tokens is there.
    pub fn holds(&self, content: u64) -> bool {
        self.by_content.contains_key(&content)
    }

    /// A block with these tokens is there from now on, and the last one to be given up.
    pub fn put(&mut self, content: u64) {
        if let Some(&place) = self.by_content.get(&content) {
            self.unlink(place);
            self.link(place);
            return;
        }
        if self.most == 0 {
            return;
        }
        if self.count() >= self.most {
            let oldest = self.blocks[self.oldest as usize].content;
            self.remove(oldest);
        }
        let block = LruBlock { content, older: NONE, newer: NONE };
        let place = match self.vacant.pop() {
            Some(place) => {
                self.blocks[place as usize] = block;
                place
            }
            None => {
                self.blocks.push(block);
                (self.blocks.len() - 1) as LruPlace
            }
        };
        self.by_content.insert(content, place);
        self.link(place);
    }

    /// The block with these tokens is there no more. Returns whether it was.
    pub fn remove(&mut self, content: u64) -> bool {
        let Some(place) = self.by_content.remove(&content) else { return false };
        self.unlink(place);
        self.vacant.push(place);
        true
    }

    fn link(&mut self, place: LruPlace) {
        let newest = self.newest;
        let block = &mut self.blocks[place as usize];
        (block.older, block.newer) = (newest, NONE);
        match newest {
            NONE => self.oldest = place,
            newest => self.blocks[newest as usize].newer = place,
        }
        self.newest = place;
    }

    fn unlink(&mut self, place: LruPlace) {
        let LruBlock { older, newer, .. } = self.blocks[place as usize];
        match older {
            NONE => self.oldest = newer,
            older => self.blocks[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.blocks[newer as usize].older = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_block_is_given_up() {
        let mut lru = BlockLru::new(3);
        (1..=3).for_each(|content| lru.put(content));
        lru.put(1);
        lru.put(4);
        assert_eq!([1, 2, 3, 4].map(|content| lru.holds(content)), [true, false, true, true]);
        assert!(lru.remove(3) && !lru.remove(3));
        lru.put(5);
        assert_eq!((lru.count(), lru.holds(1)), (3, true));
        lru.put(6);
        assert_eq!([1, 4, 5, 6].map(|content| lru.holds(content)), [false, true, true, true]);
        let mut none = BlockLru::new(0);
        none.put(1);
        assert!(!none.holds(1));
    }

    /// The same, of a plain list.
    #[test]
    fn the_order_is_that_of_a_list() {
        let mut rng = fastrand::Rng::with_seed(4);
        let (mut lru, mut list) = (BlockLru::new(7), Vec::<u64>::new());
        for _ in 0..5000 {
            let content = rng.u64(0..12);
            let found = list.iter().position(|one| *one == content);
            assert_eq!(lru.holds(content), found.is_some());
            found.map(|at| list.remove(at));
            if rng.u32(0..4) == 0 {
                assert_eq!(lru.remove(content), found.is_some());
            } else {
                if list.len() == 7 {
                    list.remove(0);
                }
                lru.put(content);
                list.push(content);
            }
            assert_eq!(lru.count(), list.len());
        }
    }
}
