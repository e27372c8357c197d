//! What ranks must exchange because of how tensors are sharded, in the words of MPI and NCCL.

use super::algorithm::{CollectivePhase, legs};
use super::group::{RankGroup, TierShape};
use crate::quantity::count::Count;

/// A kind of exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CollectiveOp {
    /// Everyone gets the sum.
    AllReduce,
    /// Everyone gets a slice of the sum.
    ReduceScatter,
    /// Everyone gets all slices.
    AllGather,
    /// Everyone sends a different slice to everyone.
    AllToAll,
    /// One sends to the next.
    SendRecv,
}

/// Whose tokens an exchange carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tokens {
    /// Those of one attention rank.
    Rank,
    /// One attention rank's, of which each of its `tp` devices carries its share to the experts chosen.
    Dispatched {
        /// Devices that share the rank's tokens.
        tp: u64,
        /// Experts chosen per token.
        top_k: Count,
        /// Expert-parallel devices that they are spread over.
        ep: u64,
    },
    /// The cached keys and values that this rank must see of the whole prompt.
    KeysValues,
}

/// An exchange between the ranks of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Collective {
    /// What is exchanged how.
    pub kind: CollectiveOp,
    /// Between whom.
    pub group: RankGroup,
    /// Tier by tier.
    pub legs: Vec<CollectivePhase>,
    /// The legs run at the same time, not one after another.
    pub together: bool,
    /// Elements per token.
    pub width: Count,
    /// Whose tokens.
    pub tokens: Tokens,
    /// Runs while the operator before it computes: the step waits for the slower of the two.
    pub overlaps: bool,
}

impl Collective {
    /// An exchange of `width` elements for each of `tokens`, over the tiers that `group` spans.
    pub fn new(
        kind: CollectiveOp,
        group: RankGroup,
        width: Count,
        tokens: Tokens,
        tiers: &[TierShape],
    ) -> Collective {
        let (legs, together) = legs(kind, &group, tiers);
        Collective { kind, group, legs, together, width, tokens, overlaps: false }
    }
}
