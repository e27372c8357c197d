//! The prefix cache as a tree of tokens: what earlier requests left, found by the longest common beginning.
//!
//! Follows SGLang's `unified_cache/unified_tree_core.py`. Keys are runs of tokens and not single ones, so that a long
//! prompt costs as many comparisons as it has runs.

use std::collections::BTreeSet;

use super::content::{TokenRun, mixed};
use super::number_map::NumberMap;

/// A node of the tree.
pub type NodeId = u32;

/// The node of the empty beginning. It is never evicted.
pub const ROOT: NodeId = 0;

/// Consecutive tokens of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KeyPiece {
    run: u64,
    offset: u32,
    tokens: u32,
}

/// The part of a key that is left.
#[derive(Clone, Copy)]
struct Rest<'a> {
    runs: &'a [TokenRun],
    /// Tokens of the first run that are behind.
    offset: u32,
    tokens: u32,
}

impl<'a> Rest<'a> {
    fn of(runs: &'a [TokenRun], tokens: u32) -> Rest<'a> {
        Rest { runs, offset: 0, tokens }
    }

    /// Its pieces in order, each as long as its run.
    fn pieces(mut self) -> impl Iterator<Item = KeyPiece> + 'a {
        std::iter::from_fn(move || {
            while self.tokens > 0 {
                let (first, later) = self.runs.split_first()?;
                let piece = KeyPiece {
                    run: first.id,
                    offset: self.offset,
                    tokens: (first.tokens - self.offset).min(self.tokens),
                };
                self.tokens -= piece.tokens;
                (self.runs, self.offset) = (later, 0);
                if piece.tokens > 0 {
                    return Some(piece);
                }
            }
            None
        })
    }

    fn skip(&mut self, mut tokens: u32) {
        self.tokens -= tokens;
        while let Some((first, later)) = self.runs.split_first() {
            let here = first.tokens - self.offset;
            if tokens < here {
                self.offset += tokens;
                return;
            }
            tokens -= here;
            (self.runs, self.offset) = (later, 0);
        }
    }
}

/// The identity of the first `page` tokens of a key, by which a node is found among its siblings.
fn first_page(pieces: impl Iterator<Item = KeyPiece>, page: u32) -> u64 {
    let (mut hash, mut left) = (0, page);
    for piece in pieces {
        let taken = piece.tokens.min(left);
        hash = mixed(mixed(hash, piece.run), (u64::from(piece.offset) << 32) | u64::from(taken));
        left -= taken;
        if left == 0 {
            break;
        }
    }
    hash
}

struct Node {
    key: Vec<KeyPiece>,
    tokens: u32,
    /// By their first page.
    children: NumberMap<u64, NodeId>,
    parent: NodeId,
    /// Requests that use it, or a node below it.
    locks: u32,
    /// When it was last used.
    time: u64,
}

/// The cached beginnings of one attention rank.
pub struct RadixTree {
    page: u32,
    clock: u64,
    evictable: u32,
    nodes: Vec<Node>,
    vacant: Vec<NodeId>,
    /// Leaves that no request uses, the least recently used first.
    leaves: BTreeSet<(u64, NodeId)>,
}

impl RadixTree {
    /// A tree without tokens, whose keys are whole pages of `page` tokens.
    pub fn new(page: u32) -> RadixTree {
        let root =
            Node { key: vec![], tokens: 0, children: NumberMap::default(), parent: ROOT, locks: 1, time: 0 };
        RadixTree { page, clock: 0, evictable: 0, nodes: vec![root], vacant: vec![], leaves: BTreeSet::new() }
    }

    /// Tokens that no request uses.
    pub fn evictable(&self) -> u32 {
        self.evictable
    }

    /// Tokens at the start of `runs`, of the first `tokens` of them, that are cached, and their last node. That makes
    /// them the most recently used ones.
    pub fn find(&mut self, runs: &[TokenRun], tokens: u32) -> (u32, NodeId) {
        let key = Rest::of(runs, tokens - tokens % self.page);
        let (found, node, _) = self.descend(key, false);
        self.clock += 1;
        let mut up = node;
        // One time for all: of nodes on one path, only the lowest can be a leaf.
        while up != ROOT {
            self.set_time(up, self.clock);
            up = self.nodes[up as usize].parent;
        }
        (found, node)
    }

    /// Tokens at the start of `runs`, of the first `tokens` of them, that are cached, without using them.
    pub fn common_beginning(&self, runs: &[TokenRun], tokens: u32) -> u32 {
        let key = Rest::of(runs, tokens - tokens % self.page);
        let (mut rest, mut node) = (key, ROOT);
        while rest.tokens > 0 {
            let Some((child, common)) = self.below(node, rest) else { break };
            rest.skip(common);
            if common < self.nodes[child as usize].tokens {
                break;
            }
            node = child;
        }
        key.tokens - rest.tokens
    }

    /// Adds the whole pages of the first `tokens` tokens of `runs`. Returns how many of the tokens were there already,
    /// and the last node.
    pub fn insert(&mut self, runs: &[TokenRun], tokens: u32) -> (u32, NodeId) {
        let key = Rest::of(runs, tokens - tokens % self.page);
        let (found, node, rest) = self.descend(key, true);
        if rest.tokens == 0 {
            return (found, node);
        }
        self.clock += 1;
        let leaf = Node {
            key: rest.pieces().collect(),
            tokens: rest.tokens,
            children: NumberMap::default(),
            parent: node,
            locks: 0,
            time: self.clock,
        };
        self.leaves.remove(&(self.nodes[node as usize].time, node));
        let leaf = self.add(leaf);
        self.evictable += rest.tokens;
        self.leaves.insert((self.clock, leaf));
        (found, leaf)
    }

    /// A request uses the tokens up to this node.
    pub fn lock(&mut self, mut node: NodeId) {
        while node != ROOT {
            let one = &mut self.nodes[node as usize];
            if one.locks == 0 {
                self.evictable -= one.tokens;
                self.leaves.remove(&(one.time, node));
            }
            one.locks += 1;
            node = one.parent;
        }
    }

    /// It no longer does.
    pub fn unlock(&mut self, mut node: NodeId) {
        while node != ROOT {
            let one = &mut self.nodes[node as usize];
            one.locks -= 1;
            if one.locks == 0 {
                self.evictable += one.tokens;
                if one.children.is_empty() {
                    self.leaves.insert((one.time, node));
                }
            }
            node = one.parent;
        }
    }

    /// Forgets the least recently used leaf. Returns its tokens; `None` where all are in use.
    pub fn evict(&mut self) -> Option<u32> {
        let (_, leaf) = self.leaves.pop_first()?;
        let key = std::mem::take(&mut self.nodes[leaf as usize].key);
        let (parent, tokens) = (self.nodes[leaf as usize].parent, self.nodes[leaf as usize].tokens);
        self.vacant.push(leaf);
        self.evictable -= tokens;
        let above = &mut self.nodes[parent as usize];
        above.children.remove(&first_page(key.into_iter(), self.page));
        if above.children.is_empty() && above.locks == 0 {
            self.leaves.insert((above.time, parent));
        }
        Some(tokens)
    }

    /// Follows a key as far as it goes; a node that has only a part of the rest is split there. Returns the tokens
    /// found, the last node and what is left. `entering`: each node on the way is used now.
    fn descend<'a>(&mut self, key: Rest<'a>, entering: bool) -> (u32, NodeId, Rest<'a>) {
        let (mut rest, mut node) = (key, ROOT);
        while rest.tokens > 0 {
            let Some((child, common)) = self.below(node, rest) else { break };
            if entering {
                self.touch(child);
            }
            rest.skip(common);
            if common < self.nodes[child as usize].tokens {
                node = self.split(child, common);
                break;
            }
            node = child;
        }
        (key.tokens - rest.tokens, node, rest)
    }

    /// The node below `node` that begins as a key does, and the tokens in whole pages that both begin with.
    fn below(&self, node: NodeId, rest: Rest<'_>) -> Option<(NodeId, u32)> {
        let page = first_page(rest.pieces(), self.page);
        let child = *self.nodes[node as usize].children.get(&page)?;
        Some((child, self.common(child, rest)))
    }

    /// Whole pages that a node and a key begin with, in tokens.
    fn common(&self, node: NodeId, rest: Rest<'_>) -> u32 {
        let mut common = 0;
        for (ours, theirs) in self.nodes[node as usize].key.iter().zip(rest.pieces()) {
            if (ours.run, ours.offset) != (theirs.run, theirs.offset) {
                break;
            }
            common += ours.tokens.min(theirs.tokens);
            if ours.tokens != theirs.tokens {
                break;
            }
        }
        common - common % self.page
    }

    /// Puts the first `tokens` tokens of a node into a new one above it, and returns that.
    fn split(&mut self, node: NodeId, tokens: u32) -> NodeId {
        let lower = &mut self.nodes[node as usize];
        let (mut first, mut second, mut left) = (vec![], vec![], tokens);
        for piece in std::mem::take(&mut lower.key) {
            let here = piece.tokens.min(left);
            left -= here;
            if here > 0 {
                first.push(KeyPiece { tokens: here, ..piece });
            }
            if here < piece.tokens {
                let offset = piece.offset + here;
                second.push(KeyPiece { run: piece.run, offset, tokens: piece.tokens - here });
            }
        }
        let page = first_page(second.iter().copied(), self.page);
        let (parent, locks) = (lower.parent, lower.locks);
        lower.key = second;
        lower.tokens -= tokens;
        self.clock += 1;
        let children = NumberMap::from_iter([(page, node)]);
        let upper = self.add(Node { key: first, tokens, children, parent, locks, time: self.clock });
        self.nodes[node as usize].parent = upper;
        self.touch(node);
        upper
    }

    /// Takes its parent's child with the same first page, if there is one, out of the way.
    fn add(&mut self, node: Node) -> NodeId {
        let parent = node.parent;
        let page = first_page(node.key.iter().copied(), self.page);
        let id = match self.vacant.pop() {
            Some(id) => {
                self.nodes[id as usize] = node;
                id
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as NodeId
            }
        };
        self.nodes[parent as usize].children.insert(page, id);
        id
    }

    /// The node is used now.
    fn touch(&mut self, node: NodeId) {
        self.clock += 1;
        self.set_time(node, self.clock);
    }

    fn set_time(&mut self, node: NodeId, time: u64) {
        let one = &mut self.nodes[node as usize];
        if self.leaves.remove(&(one.time, node)) {
            self.leaves.insert((time, node));
        }
        one.time = time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(of: &[(u64, u32)]) -> Vec<TokenRun> {
        of.iter().map(|&(id, tokens)| TokenRun { id, tokens }).collect()
    }

    fn total(of: &[TokenRun]) -> u32 {
        of.iter().map(|run| run.tokens).sum()
    }

    #[test]
    fn the_longest_common_beginning_is_found_in_whole_pages() {
        for (page, common) in [(1, 50), (16, 48)] {
            let mut tree = RadixTree::new(page);
            let one = runs(&[(1, 40), (2, 30), (3, 26)]);
            assert_eq!(tree.insert(&one, total(&one)).0, 0);
            assert_eq!(tree.evictable(), 96);
            // Ten tokens of the second run, and then others; an empty run changes nothing.
            let other = runs(&[(1, 40), (9, 0), (2, 10), (4, 70)]);
            assert_eq!(tree.find(&other, total(&other)).0, common);
            assert_eq!(tree.insert(&other, 112).0, common);
            assert_eq!(tree.evictable(), 96 + 112 - common);
            assert_eq!(tree.find(&one, 96).0, 96);
            assert_eq!(tree.find(&one, 80).0, 80);
            assert_eq!(tree.find(&runs(&[(2, 30)]), 30).0, 0);
        }
    }

    #[test]
    fn the_least_recently_used_leaves_go_first_and_what_is_in_use_stays() {
        let mut tree = RadixTree::new(1);
        let one = runs(&[(1, 10), (2, 5)]);
        let other = runs(&[(1, 10), (3, 7)]);
        tree.insert(&one, 15);
        tree.insert(&other, 17);
        let (found, node) = tree.find(&one, 15);
        assert_eq!(found, 15);
        tree.lock(node);
        assert_eq!((tree.evictable(), tree.evict(), tree.evict()), (7, Some(7), None));
        tree.unlock(node);
        assert_eq!(tree.evictable(), 15);
        // The leaf, and then the node above it, that is one by that.
        assert_eq!((tree.evict(), tree.evict(), tree.evict()), (Some(5), Some(10), None));
        assert_eq!((tree.evictable(), tree.find(&one, 15).0), (0, 0));
    }

    /// The same, of a tree of single tokens in plain lists.
    #[test]
    fn runs_are_equal_to_their_tokens() {
        let mut rng = fastrand::Rng::with_seed(5);
        for page in [1, 4] {
            let (mut coarse, mut fine) = (RadixTree::new(page), RadixTree::new(page));
            for _ in 0..4000 {
                let key: Vec<_> = (0..rng.u32(1..5))
                    .map(|place| TokenRun {
                        id: u64::from(place) * 10 + rng.u64(0..3),
                        tokens: rng.u32(0..12),
                    })
                    .collect();
                let single = key.iter().flat_map(|run| {
                    (0..run.tokens).map(|token| TokenRun { id: run.id * 100 + u64::from(token), tokens: 1 })
                });
                let single: Vec<_> = single.collect();
                let tokens = rng.u32(0..=total(&key));
                match rng.u32(0..3) {
                    0 => assert_eq!(coarse.find(&key, tokens).0, fine.find(&single, tokens).0),
                    1 => assert_eq!(coarse.insert(&key, tokens).0, fine.insert(&single, tokens).0),
                    _ => assert_eq!(coarse.evict(), fine.evict()),
                }
                assert_eq!(coarse.evictable(), fine.evictable());
            }
        }
    }
}
