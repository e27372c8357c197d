//! The prefix cache as a tree of blocks: a block is found below the one before it, by its tokens, and also by the most
//! of its first tokens.
//!
//! Follows the lookup of TensorRT-LLM's `kvCacheManager.cpp`: when a block is taken for other tokens, those below it
//! are found no more.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::block_pool::BlockId;
use super::content::TokenRun;

/// Above the first blocks.
pub const ROOT: BlockId = BlockId::MAX;

/// Consecutive tokens of a run.
#[derive(Clone, Copy, Debug)]
struct BlockPiece {
    run: u64,
    offset: u32,
    tokens: u32,
}

/// The tokens of a block, which may have fewer than it could. They are in the order of their first difference.
#[derive(Clone, Debug)]
pub struct BlockTokens(Arc<[BlockPiece]>);

impl BlockTokens {
    /// The tokens `from..to` of `runs`.
    pub fn of(runs: &[TokenRun], from: u32, to: u32) -> BlockTokens {
        let (mut start, mut pieces) = (0, vec![]);
        for run in runs {
            let end = start + run.tokens;
            let (first, last) = (from.max(start), to.min(end));
            if first < last {
                pieces.push(BlockPiece { run: run.id, offset: first - start, tokens: last - first });
            }
            start = end;
            if start >= to {
                break;
            }
        }
        BlockTokens(pieces.into())
    }

    /// The whole blocks of `runs`, of `size` tokens each.
    pub fn whole(runs: &[TokenRun], size: u32) -> Vec<BlockTokens> {
        let (mut blocks, mut pieces, mut left) = (vec![], vec![], size);
        for run in runs {
            let mut offset = 0;
            while offset < run.tokens {
                let tokens = left.min(run.tokens - offset);
                pieces.push(BlockPiece { run: run.id, offset, tokens });
                offset += tokens;
                left -= tokens;
                if left == 0 {
                    blocks.push(BlockTokens(std::mem::take(&mut pieces).into()));
                    left = size;
                }
            }
        }
        blocks
    }

    /// Their number.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|piece| piece.tokens).sum()
    }

    /// The number of tokens that both begin with, and how they compare after these.
    fn compare(&self, other: &BlockTokens) -> (u32, Ordering) {
        let (mut common, mut a, mut b) = (0, 0, 0);
        let (mut done_a, mut done_b) = (0, 0);
        loop {
            let (one, two) = match (self.0.get(a), other.0.get(b)) {
                (Some(one), Some(two)) => (one, two),
                (one, two) => return (common, one.is_some().cmp(&two.is_some())),
            };
            let order = (one.run, one.offset + done_a).cmp(&(two.run, two.offset + done_b));
            if order != Ordering::Equal {
                return (common, order);
            }
            let equal = (one.tokens - done_a).min(two.tokens - done_b);
            common += equal;
            (done_a, done_b) = (done_a + equal, done_b + equal);
            if done_a == one.tokens {
                (a, done_a) = (a + 1, 0);
            }
            if done_b == two.tokens {
                (b, done_b) = (b + 1, 0);
            }
        }
    }
}

impl PartialEq for BlockTokens {
    fn eq(&self, other: &BlockTokens) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for BlockTokens {}

impl PartialOrd for BlockTokens {
    fn partial_cmp(&self, other: &BlockTokens) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BlockTokens {
    fn cmp(&self, other: &BlockTokens) -> Ordering {
        self.compare(other).1
    }
}

/// Which blocks hold which tokens after which others.
pub struct BlockTree {
    below: BTreeMap<(BlockId, BlockTokens), BlockId>,
    places: Vec<Option<(BlockId, BlockTokens)>>,
    /// How often each block left its place.
    moves: Vec<u32>,
}

/// A block that was in the tree.
#[derive(Clone, Copy, Debug)]
pub struct TreePlace {
    pub block: BlockId,
    moves: u32,
}

impl BlockTree {
    /// None of `count` blocks holds tokens.
    pub fn new(count: u32) -> BlockTree {
        BlockTree {
            below: BTreeMap::new(),
            places: vec![None; count as usize],
            moves: vec![0; count as usize],
        }
    }

    /// The block with these tokens below `above`.
    pub fn find(&self, above: BlockId, tokens: &BlockTokens) -> Option<BlockId> {
        self.below.get(&(above, tokens.clone())).copied()
    }

    /// The block below `above` that begins with most of these tokens, if it does with any, and their number. Of
    /// several, the next one in the order of tokens.
    pub fn nearest(&self, above: BlockId, tokens: &BlockTokens) -> Option<(BlockId, u32)> {
        let key = (above, tokens.clone());
        let near = |found: Option<(&(BlockId, BlockTokens), &BlockId)>| {
            let child = found.filter(|((parent, _), _)| *parent == above);
            child.map(|((_, other), block)| (*block, other.compare(tokens).0))
        };
        let (after, before) =
            (near(self.below.range(&key..).next()), near(self.below.range(..&key).next_back()));
        let best = match (after, before) {
            (Some(after), Some(before)) => Some(if before.1 > after.1 { before } else { after }),
            (after, before) => after.or(before),
        };
        best.filter(|(_, common)| *common > 0)
    }

    fn first_below(&self, block: BlockId) -> Option<BlockId> {
        let first = self.below.range((block, BlockTokens(Arc::from([])))..).next();
        first.filter(|((parent, _), _)| *parent == block).map(|(_, below)| *below)
    }

    /// Whether this block holds tokens that are found.
    pub fn has(&self, block: BlockId) -> bool {
        self.places[block as usize].is_some()
    }

    /// Whether no block is below this one.
    pub fn is_leaf(&self, block: BlockId) -> bool {
        self.first_below(block).is_none()
    }

    /// `block` holds these tokens below `above`, where none does.
    pub fn attach(&mut self, block: BlockId, above: BlockId, tokens: &BlockTokens) {
        self.detach(block);
        let place = (above, tokens.clone());
        self.below.insert(place.clone(), block);
        self.places[block as usize] = Some(place);
    }

    /// `block` is found no more.
    pub fn detach(&mut self, block: BlockId) {
        if let Some(place) = self.places[block as usize].take() {
            self.below.remove(&place);
            self.moves[block as usize] += 1;
        }
    }

    /// The present place of a block in the tree.
    pub fn place(&self, block: BlockId) -> TreePlace {
        TreePlace { block, moves: self.moves[block as usize] }
    }

    /// Whether a block is still there, and with it those above.
    pub fn is_at(&self, place: TreePlace) -> bool {
        self.moves[place.block as usize] == place.moves
    }

    /// Neither `block` nor those below it are found any more.
    pub fn forget(&mut self, block: BlockId) {
        let mut left = vec![block];
        while let Some(&one) = left.last() {
            match self.first_below(one) {
                Some(below) => left.push(below),
                None => {
                    self.detach(one);
                    left.pop();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(runs: &[(u64, u32)]) -> BlockTokens {
        let runs: Vec<_> = runs.iter().map(|&(id, tokens)| TokenRun { id, tokens }).collect();
        BlockTokens::of(&runs, 0, u32::MAX)
    }

    #[test]
    fn tokens_compare_one_by_one_however_they_are_cut() {
        let (one, two) = (tokens(&[(1, 4), (2, 4)]), tokens(&[(1, 4), (2, 3)]));
        assert_eq!(one.compare(&two), (7, Ordering::Greater));
        assert_eq!(tokens(&[(1, 4), (3, 4)]).compare(&one), (4, Ordering::Greater));
        let runs = [TokenRun { id: 1, tokens: 10 }, TokenRun { id: 2, tokens: 10 }];
        let blocks = BlockTokens::whole(&runs, 8);
        assert_eq!((blocks.len(), blocks[1].count()), (2, 8));
        assert_eq!(blocks[1], BlockTokens::of(&runs, 8, 16));
    }

    #[test]
    fn what_is_below_a_forgotten_block_is_not_found() {
        let mut tree = BlockTree::new(3);
        let (one, two, three) = (tokens(&[(1, 8)]), tokens(&[(2, 8)]), tokens(&[(2, 5), (4, 3)]));
        tree.attach(0, ROOT, &one);
        tree.attach(1, 0, &two);
        assert_eq!(tree.find(0, &two), Some(1));
        assert_eq!(tree.nearest(0, &three), Some((1, 5)));
        assert_eq!(tree.nearest(ROOT, &two), None);
        assert!(!tree.is_leaf(0) && tree.is_leaf(1));
        tree.forget(0);
        assert_eq!((tree.find(ROOT, &one), tree.find(0, &two)), (None, None));
    }
}
