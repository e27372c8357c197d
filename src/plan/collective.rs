//! Communication that shardings require, in the terms of MPI and NCCL.

use super::algorithm::{CollectivePhase, NonEmpty, phases};
use super::group::{RankGroup, TierShape};
use super::sharding::TokenShare;
use crate::quantity::count::Count;

/// A collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CollectiveOp {
    /// Every rank gets the sum.
    AllReduce,
    /// Every rank gets a slice of the sum.
    ReduceScatter,
    /// Every rank gets all slices.
    AllGather,
    /// Every rank sends a different slice to every other rank.
    AllToAll,
    /// One rank sends to the next.
    SendRecv,
}

/// The tokens in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tokens {
    /// Tokens of a device.
    Rank(TokenShare),
    /// Tokens of one attention rank. Each of its `tp` devices sends its share to the selected experts.
    Dispatched {
        /// Devices that share the tokens of the rank.
        tp: u64,
        /// Experts chosen per token.
        top_k: Count,
        /// Expert-parallel devices that hold the experts.
        ep: u64,
    },
    /// The cached keys and values of the whole prompt that this rank must read.
    KeysValues,
    /// The cached part of it, from before this step.
    Cached,
}

/// A collective between the ranks of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Collective {
    /// The operation.
    pub op: CollectiveOp,
    pub group: RankGroup,
    /// Legs, tier by tier.
    pub phases: NonEmpty<CollectivePhase>,
    /// The legs run at the same time instead of in sequence.
    pub concurrent: bool,
    /// Elements per token.
    pub width: Count,
    pub tokens: Tokens,
    /// Overlaps with the preceding operator: the step waits for the slower of the two.
    pub overlaps: bool,
}

impl Collective {
    /// A collective of `width` elements for each of `tokens`, over the tiers that `group` spans.
    pub fn new(
        kind: CollectiveOp,
        group: RankGroup,
        width: Count,
        tokens: Tokens,
        tiers: &[TierShape],
    ) -> Collective {
        let (phases, concurrent) = phases(kind, &group, tiers);
        Collective { op: kind, group, phases, concurrent, width, tokens, overlaps: false }
    }
}
