//! Algorithms for a collective, in integers: hops in sequence, and wire bytes per byte of the buffer.

use super::collective::CollectiveOp;
use super::group::{RankGroup, TierShape};
use crate::spec::cluster::Topology;

/// An algorithm of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Each rank sends its slices directly to their owners.
    Direct,
    /// Each rank sends the whole buffer directly to every other rank.
    OneShot,
    /// The switch reduces (NVLS, SHARP).
    InSwitch,
    /// Slices travel from neighbour to neighbour.
    Ring,
    /// Up and down two binary trees at the same time.
    Tree,
}

/// All algorithms.
pub static ALGORITHMS: &[Algorithm] =
    &[Algorithm::Direct, Algorithm::OneShot, Algorithm::InSwitch, Algorithm::Ring, Algorithm::Tree];

/// Hops and wire bytes of an algorithm on one tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AlgorithmCost {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Messages in sequence.
    pub hops: u64,
    /// Wire bytes per device and byte of the buffer, as a fraction.
    pub wire: (u64, u64),
    /// The formulas of both over the `n` ranks, as text.
    pub derivation: Derivation,
}

/// Formulas of hops and wire bytes over the `n` ranks of a group, as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Derivation {
    /// Formula of the hops.
    pub hops: &'static str,
    /// Formula of the wire bytes: numerator and denominator.
    pub wire: (&'static str, &'static str),
}

impl AlgorithmCost {
    /// Whether it is at least as good in both.
    fn beats(&self, other: &AlgorithmCost) -> bool {
        let wire = |way: &AlgorithmCost, with: &AlgorithmCost| way.wire.0 * with.wire.1;
        self.hops <= other.hops && wire(self, other) <= wire(other, self)
    }
}

impl Algorithm {
    /// Hops and wire bytes of `kind` over `n` ranks of `tier`; `None` where the algorithm does not implement the
    /// collective or the topology does not allow it. Source: Thakur, Rabenseifner, Gropp 2005, 4; NCCL 2.x.
    pub fn cost(self, kind: CollectiveOp, n: u64, tier: &TierShape) -> Option<AlgorithmCost> {
        let ring = tier.topology == Topology::Ring && n > 2;
        let (hops, wire, words) = match (self, kind) {
            (Algorithm::Direct, CollectiveOp::SendRecv) => (1, (1, 1), ["direct: 1", "1", "1"]),
            (_, CollectiveOp::SendRecv) => return None,
            (Algorithm::Ring, CollectiveOp::AllReduce) => {
                (2 * (n - 1), (2 * (n - 1), n), ["ring: 2 (n - 1)", "ring: 2 (n - 1)", "n"])
            }
            (Algorithm::Ring, CollectiveOp::AllGather | CollectiveOp::ReduceScatter) => {
                (n - 1, (n - 1, n), ["ring: n - 1", "ring: n - 1", "n"])
            }
            // Each of n slices travels n / 4 hops on average in the shorter direction. Both directions share the rate.
            (Algorithm::Ring, CollectiveOp::AllToAll) if ring => (
                n - 1,
                (n * n - n % 2, 4 * n),
                ["ring: n - 1", "ring, shorter direction: n^2, less 1 if n is odd", "4 n"],
            ),
            (Algorithm::Direct | Algorithm::OneShot, _) if ring => return None,
            (Algorithm::Direct, CollectiveOp::AllReduce) => {
                (2, (2 * (n - 1), n), ["direct, both ways: 2", "direct: 2 (n - 1)", "n"])
            }
            (
                Algorithm::Direct,
                CollectiveOp::AllGather | CollectiveOp::ReduceScatter | CollectiveOp::AllToAll,
            ) => (1, (n - 1, n), ["direct: 1", "direct: n - 1", "n"]),
            (Algorithm::OneShot, CollectiveOp::AllReduce) => {
                (1, (n - 1, 1), ["one-shot: 1", "one-shot, the whole buffer to every other rank: n - 1", "1"])
            }
            (Algorithm::Tree, CollectiveOp::AllReduce) if n > 2 => (
                2 * u64::from(n.next_power_of_two().ilog2()),
                (2, 1),
                ["tree, up and down: 2 log2(n), rounded up", "tree, up and down: 2", "1"],
            ),
            (Algorithm::InSwitch, CollectiveOp::AllReduce) if tier.in_switch_reduction => {
                (2, (1, 1), ["in-switch, both ways: 2", "in-switch: 1", "1"])
            }
            _ => return None,
        };
        let [hops_how, upper, lower] = words;
        Some(AlgorithmCost {
            algorithm: self,
            hops,
            wire,
            derivation: Derivation { hops: hops_how, wire: (upper, lower) },
        })
    }
}

/// The part of a collective on one tier.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectivePhase {
    /// Index of the tier.
    pub tier: usize,
    /// Fraction of the buffer on this leg.
    pub portion: (u64, u64),
    /// Fraction of the tier's rate per device towards its peers: a mesh has one link for each.
    pub rate: (u64, u64),
    /// Candidate algorithms: none is dominated in both hops and wire bytes.
    pub algorithms: Vec<AlgorithmCost>,
}

impl CollectivePhase {
    fn new(
        kind: CollectiveOp,
        n: u64,
        tier: usize,
        portion: (u64, u64),
        tiers: &[TierShape],
    ) -> CollectivePhase {
        let shape = &tiers[tier];
        let mut ways: Vec<AlgorithmCost> = Vec::new();
        for way in ALGORITHMS.iter().filter_map(|algorithm| algorithm.cost(kind, n, shape)) {
            if !ways.iter().any(|known| known.beats(&way)) {
                ways.retain(|known| !way.beats(known));
                ways.push(way);
            }
        }
        let rate = match shape.topology {
            Topology::Mesh if n < shape.devices => (n - 1, shape.devices - 1),
            _ => (1, 1),
        };
        CollectivePhase { tier, portion, rate, algorithms: ways }
    }
}

/// The legs of a collective over `group`, and whether they run at the same time.
pub fn phases(kind: CollectiveOp, group: &RankGroup, tiers: &[TierShape]) -> (Vec<CollectivePhase>, bool) {
    let (n, within, across) = (group.size, group.inner, group.outer());
    let (inner, outer) = (group.inner_tier, group.outer_tier);
    let leg = |kind, n, tier, portion| CollectivePhase::new(kind, n, tier, portion, tiers);
    if across == 1 || kind == CollectiveOp::SendRecv {
        return (vec![leg(kind, n, outer, (1, 1))], false);
    }
    let slice = (1, within);
    match kind {
        CollectiveOp::AllReduce => (
            vec![
                leg(CollectiveOp::ReduceScatter, within, inner, (1, 1)),
                leg(CollectiveOp::AllReduce, across, outer, slice),
                leg(CollectiveOp::AllGather, within, inner, (1, 1)),
            ],
            false,
        ),
        // Traffic inside the domain and traffic that leaves it run at the same time.
        CollectiveOp::AllToAll => {
            let mut far = leg(CollectiveOp::AllToAll, n, outer, (n - within, n));
            for way in &mut far.algorithms {
                (way.wire, way.derivation.wire) = ((1, 1), ("all traffic that leaves the domain: 1", "1"));
            }
            (vec![leg(CollectiveOp::AllToAll, within, inner, (within, n)), far], true)
        }
        kind => (vec![leg(kind, across, outer, slice), leg(kind, within, inner, (1, 1))], false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(topology: Topology, in_switch_reduction: bool) -> TierShape {
        TierShape { devices: 8, topology, in_switch_reduction }
    }

    #[test]
    fn all_reduce_moves_twice_the_buffer_less_a_share() {
        let way = Algorithm::Ring.cost(CollectiveOp::AllReduce, 8, &shape(Topology::Ring, false)).unwrap();
        assert_eq!((way.hops, way.wire), (14, (14, 8)));
        let way =
            Algorithm::Direct.cost(CollectiveOp::AllReduce, 8, &shape(Topology::Switch, false)).unwrap();
        assert_eq!((way.hops, way.wire), (2, (14, 8)));
    }

    #[test]
    fn a_ring_allows_only_neighbours() {
        assert_eq!(Algorithm::Direct.cost(CollectiveOp::AllReduce, 8, &shape(Topology::Ring, false)), None);
        assert!(Algorithm::Direct.cost(CollectiveOp::AllReduce, 2, &shape(Topology::Ring, false)).is_some());
    }

    #[test]
    fn beaten_algorithms_are_left_out() {
        let tiers = [shape(Topology::Switch, true)];
        let group = RankGroup { size: 8, inner: 8, inner_tier: 0, outer_tier: 0 };
        let (legs, _) = phases(CollectiveOp::AllReduce, &group, &tiers);
        let names: Vec<_> = legs[0].algorithms.iter().map(|way| way.algorithm).collect();
        assert_eq!(names, [Algorithm::OneShot, Algorithm::InSwitch]);
    }
}
