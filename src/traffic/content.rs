//! Which tokens two requests have in common, without the tokens: runs of tokens with an identity.

/// A run of tokens. Runs of equal identity have equal tokens, from their first on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenRun {
    /// Its identity.
    pub id: u64,
    /// Its length.
    pub tokens: u32,
}

/// Tokens that two sequences have in common from their first on.
pub fn common_prefix(one: &[TokenRun], other: &[TokenRun]) -> u32 {
    let (mut at, mut offsets, mut common) = ([0, 0], [0, 0], 0);
    while let (Some(a), Some(b)) = (one.get(at[0]), other.get(at[1])) {
        let left = [a.tokens - offsets[0], b.tokens - offsets[1]];
        let shared = left[0].min(left[1]);
        if shared > 0 && (a.id, offsets[0]) != (b.id, offsets[1]) {
            break;
        }
        common += shared;
        for side in [0, 1] {
            offsets[side] += shared;
            if left[side] == shared {
                (at[side], offsets[side]) = (at[side] + 1, 0);
            }
        }
    }
    common
}

/// Seed of the chains of hashes.
const ROOT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes `value` into `hash`: the finaliser of SplitMix64 (Steele, Lea, Flood 2014), whose outputs of different inputs
/// differ.
pub fn mixed(hash: u64, value: u64) -> u64 {
    let mut z = hash.rotate_left(23) ^ value.wrapping_add(ROOT);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The identity of whole blocks of a request's tokens, in order: two requests have equal values for a block where all
/// their tokens up to its end are equal.
#[derive(Clone, Debug)]
pub struct BlockChain {
    hash: u64,
    run: usize,
    offset: u32,
}

impl Default for BlockChain {
    fn default() -> BlockChain {
        BlockChain { hash: ROOT, run: 0, offset: 0 }
    }
}

impl BlockChain {
    /// The identity of the next block of `size` tokens of `runs`; `None` where fewer are left.
    pub fn next(&mut self, runs: &[TokenRun], size: u32) -> Option<u64> {
        let (mut hash, mut run, mut offset, mut left) = (self.hash, self.run, self.offset, size);
        // Within a run, the identity of the block before implies the run and the offset. Such neighbours have neighbouring
        // numbers, so that a table can keep them together.
        let is_within = offset > 0 && runs.get(run).is_some_and(|one| one.tokens - offset >= left);
        hash = hash.wrapping_add(u64::from(is_within));
        while left > 0 {
            let one = runs.get(run)?;
            let taken = left.min(one.tokens - offset);
            if taken > 0 && !is_within {
                hash = mixed(mixed(hash, one.id), (u64::from(offset) << 32) | u64::from(taken));
            }
            left -= taken;
            offset += taken;
            if offset == one.tokens {
                (run, offset) = (run + 1, 0);
            }
        }
        *self = BlockChain { hash, run, offset };
        Some(hash)
    }
}

/// The identities of the whole blocks of one request, made when they are needed.
#[derive(Clone, Debug, Default)]
pub struct BlockIdentities {
    size: u32,
    chain: BlockChain,
    made: Vec<u64>,
    /// Blocks that the cache before held: most hold the same.
    held: u32,
}

impl BlockIdentities {
    /// The identity of the block in this place of `runs`, in blocks of `size` tokens; `None` where there is none.
    pub fn at(&mut self, runs: &[TokenRun], size: u32, place: u32) -> Option<u64> {
        if self.size != size {
            (self.size, self.chain) = (size, BlockChain::default());
            self.made.clear();
        }
        while self.made.len() <= place as usize {
            self.made.push(self.chain.next(runs, size)?);
        }
        self.made.get(place as usize).copied()
    }

    /// The number of the first blocks of `runs`, of `most`, that a cache holds, which gives blocks to others before those
    /// that they follow.
    pub fn held(&mut self, runs: &[TokenRun], (size, most): (u32, u32), holds: impl Fn(u64) -> bool) -> u32 {
        let near = self.held;
        self.held = leading(most, near, |place| self.at(runs, size, place).is_some_and(&holds));
        self.held
    }
}

/// The number of the first places, of `most`, that are `taken`, where none is that comes after one that is not. It may be
/// `near` this one.
fn leading(most: u32, near: u32, mut taken: impl FnMut(u32) -> bool) -> u32 {
    let (mut low, mut high, mut stride) = (near.min(most), most, 1);
    if low > 0 && !taken(low - 1) {
        (low, high) = (0, low - 1);
    }
    while low < high {
        let place = low + stride.min(high - low) - 1;
        if !taken(place) {
            high = place;
            break;
        }
        (low, stride) = (place + 1, stride.saturating_mul(2));
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if taken(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(runs: &[(u64, u32)], size: u32) -> Vec<u64> {
        let runs: Vec<_> = runs.iter().map(|&(id, tokens)| TokenRun { id, tokens }).collect();
        let mut chain = BlockChain::default();
        std::iter::from_fn(|| chain.next(&runs, size)).collect()
    }

    #[test]
    fn blocks_are_equal_as_long_as_all_their_tokens_are() {
        let one = chain(&[(1, 40), (2, 30)], 16);
        let other = chain(&[(1, 40), (3, 30)], 16);
        assert_eq!(one.len(), 4);
        assert_eq!(one[..2], other[..2]);
        assert!(one[2] != other[2] && one[3] != other[3]);
        // A longer prompt has the blocks of its beginning.
        assert_eq!(chain(&[(1, 40), (2, 30), (9, 100)], 16)[..4], one[..]);
        // The same tokens at another place are other blocks.
        assert!(chain(&[(2, 16), (1, 40)], 16).iter().all(|hash| !one.contains(hash)));
    }

    #[test]
    fn blocks_within_a_run_are_equal_wherever_the_run_ends() {
        // The second block ends with the run here, and not there.
        let one = chain(&[(1, 32), (2, 32)], 16);
        assert_eq!(chain(&[(1, 40), (2, 24)], 16)[..2], one[..2]);
        assert_ne!(chain(&[(1, 40), (2, 24)], 16)[2], one[2]);
        // All blocks of different tokens differ.
        let mut all =
            [chain(&[(1, 400)], 16), chain(&[(2, 8), (1, 400)], 16), chain(&[(2, 5), (1, 400)], 16)].concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 25 + 25 + 25);
    }

    #[test]
    fn the_first_places_are_counted_from_everywhere() {
        for most in 0..20 {
            for taken in 0..=most {
                for near in 0..25 {
                    assert_eq!(leading(most, near, |place| place < taken), taken, "{most} {near}");
                }
            }
        }
    }

    #[test]
    fn common_tokens_are_those_before_the_first_that_differs() {
        let common = |one: &[(u64, u32)], other: &[(u64, u32)]| {
            let runs = |of: &[(u64, u32)]| -> Vec<TokenRun> {
                of.iter().map(|&(id, tokens)| TokenRun { id, tokens }).collect()
            };
            [common_prefix(&runs(one), &runs(other)), common_prefix(&runs(other), &runs(one))]
        };
        assert_eq!(common(&[(1, 40), (2, 30)], &[(1, 40), (2, 30)]), [70, 70]);
        assert_eq!(common(&[(1, 40), (2, 30)], &[(1, 40), (3, 30)]), [40, 40]);
        assert_eq!(common(&[(1, 40), (2, 30)], &[(1, 20), (2, 30)]), [20, 20]);
        assert_eq!(common(&[(1, 40), (7, 0), (2, 30)], &[(7, 0), (1, 40), (2, 10)]), [50, 50]);
        assert_eq!(common(&[], &[(1, 20)]), [0, 0]);
    }

    #[test]
    fn an_empty_run_changes_nothing() {
        assert_eq!(chain(&[(1, 16), (7, 0), (2, 16)], 16), chain(&[(1, 16), (2, 16)], 16));
    }
}
