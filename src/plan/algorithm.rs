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

/// `algorithm` by its alpha-beta formula: hops times latency, plus wire bytes over the link rate. Each of both with its
/// formula over the `n` ranks.
fn formula(
    algorithm: Algorithm,
    (hops, hops_how): (u64, &'static str),
    (wire, wire_how): ((u64, u64), (&'static str, &'static str)),
) -> AlgorithmCost {
    AlgorithmCost { algorithm, hops, wire, derivation: Derivation { hops: hops_how, wire: wire_how } }
}

/// Whether ranks reach only their neighbours.
fn neighbours_only(n: u64, tier: &TierShape) -> bool {
    tier.topology == Topology::Ring && n > 2
}

impl CollectiveOp {
    /// The algorithm that every topology allows, so that each collective has a cost.
    pub fn base(self, n: u64, tier: &TierShape) -> AlgorithmCost {
        use Algorithm::{Direct, Ring};
        let slices = (n - 1, n);
        match self {
            CollectiveOp::SendRecv => formula(Direct, (1, "direct: 1"), ((1, 1), ("1", "1"))),
            CollectiveOp::AllReduce => {
                let wire = ((2 * (n - 1), n), ("ring: 2 (n - 1)", "n"));
                formula(Ring, (2 * (n - 1), "ring: 2 (n - 1)"), wire)
            }
            CollectiveOp::AllGather | CollectiveOp::ReduceScatter => {
                formula(Ring, (n - 1, "ring: n - 1"), (slices, ("ring: n - 1", "n")))
            }
            // Each of n slices travels n / 4 hops on average in the shorter direction. Both directions share the rate.
            CollectiveOp::AllToAll if neighbours_only(n, tier) => {
                let how = ("ring, shorter direction: n^2, less 1 if n is odd", "4 n");
                formula(Ring, (n - 1, "ring: n - 1"), ((n * n - n % 2, 4 * n), how))
            }
            CollectiveOp::AllToAll => formula(Direct, (1, "direct: 1"), (slices, ("direct: n - 1", "n"))),
        }
    }
}

impl Algorithm {
    /// Hops and wire bytes of `op` over `n` ranks of `tier`; `None` where the algorithm does not implement the
    /// collective or the topology does not allow it. Source: Thakur, Rabenseifner, Gropp 2005, 4; NCCL 2.x.
    pub fn cost(self, op: CollectiveOp, n: u64, tier: &TierShape) -> Option<AlgorithmCost> {
        use Algorithm::{Direct, InSwitch, OneShot, Ring, Tree};
        use CollectiveOp::{AllGather, AllReduce, AllToAll, ReduceScatter, SendRecv};
        let base = op.base(n, tier);
        if self == base.algorithm {
            return Some(base);
        }
        let reaches_all = !neighbours_only(n, tier);
        let (allowed, hops, wire) = match (self, op) {
            (Direct, AllReduce) => {
                (reaches_all, (2, "direct, both ways: 2"), ((2 * (n - 1), n), ("direct: 2 (n - 1)", "n")))
            }
            (Direct, AllGather | ReduceScatter) => {
                (reaches_all, (1, "direct: 1"), ((n - 1, n), ("direct: n - 1", "n")))
            }
            (OneShot, AllReduce) => {
                let how = ("one-shot, the whole buffer to every other rank: n - 1", "1");
                (reaches_all, (1, "one-shot: 1"), ((n - 1, 1), how))
            }
            (Tree, AllReduce) => {
                let levels = u64::from(n.next_power_of_two().ilog2());
                let hops = (2 * levels, "tree, up and down: 2 log2(n), rounded up");
                (n > 2, hops, ((2, 1), ("tree, up and down: 2", "1")))
            }
            (InSwitch, AllReduce) => {
                let wire = ((1, 1), ("in-switch: 1", "1"));
                (tier.in_switch_reduction, (2, "in-switch, both ways: 2"), wire)
            }
            // The base where it applies, and no alternative elsewhere.
            (Direct, AllToAll | SendRecv)
            | (Ring, AllReduce | AllGather | ReduceScatter | AllToAll | SendRecv)
            | (OneShot | Tree | InSwitch, AllGather | ReduceScatter | AllToAll | SendRecv) => return None,
        };
        allowed.then(|| formula(self, hops, wire))
    }
}

/// A list with at least one entry.
#[derive(Clone, Debug, PartialEq)]
pub struct NonEmpty<T> {
    /// The first entry.
    pub first: T,
    /// The others, in order.
    pub rest: Vec<T>,
}

impl<T> NonEmpty<T> {
    /// All entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// Reads every entry and joins the results, in order.
    #[inline(always)]
    pub fn reduce<U>(&self, mut read: impl FnMut(&T) -> U, join: impl Fn(U, U) -> U) -> U {
        self.rest.iter().fold(read(&self.first), |so_far, entry| join(so_far, read(entry)))
    }
}

/// The part of a tier's rate that each device of a group has, as a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RateShare {
    /// The fraction.
    pub part: (u64, u64),
    /// Names of both numbers.
    pub symbols: [&'static str; 2],
    /// How they follow from the group, as text.
    pub how: (&'static str, &'static str),
}

impl RateShare {
    const WHOLE: RateShare = RateShare { part: (1, 1), symbols: ["rate", "rate"], how: ("all", "all") };

    /// Of a group of `n` devices on `tier`: a mesh has one link to each peer, and devices share a bus.
    pub fn of(n: u64, tier: &TierShape) -> RateShare {
        match tier.topology {
            Topology::Mesh if n < tier.devices => RateShare {
                part: (n - 1, tier.devices - 1),
                symbols: ["links_in_use", "links"],
                how: ("one link to each rank of the group", "one link to each device of the mesh"),
            },
            Topology::Pcie if n > 2 => RateShare {
                part: (if n <= 4 { 42 } else { 39 }, 61),
                symbols: ["percent_of_link", "percent_of_link_for_a_pair"],
                how: (BUS, "NCCL all-reduce over two RTX PRO 6000 on PCIe: 61 % of the link"),
            },
            Topology::Switch | Topology::Mesh | Topology::Ring | Topology::Pcie => RateShare::WHOLE,
        }
    }
}

/// Source of what devices reach of their links where several share a bus.
const BUS: &str = "NCCL all-reduce through PCIe switches: 42 % of the link over four RTX PRO 6000, 39 % over eight \
                   (NVIDIA AIConfigurator, systems/data/rtx_pro_6000_server/nccl); four RTX 4090 with peer-to-peer 40 %";

/// The part of a collective on one tier.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectivePhase {
    /// Index of the tier.
    pub tier: usize,
    /// Fraction of the buffer on this leg.
    pub portion: (u64, u64),
    /// The part of the tier's rate that each device has in the group.
    pub rate: RateShare,
    /// Candidate algorithms: none is dominated in both hops and wire bytes.
    pub algorithms: NonEmpty<AlgorithmCost>,
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
        let rate = RateShare::of(n, shape);
        let mut ways = ways.into_iter();
        let first = ways.next().unwrap_or_else(|| kind.base(n, shape));
        CollectivePhase { tier, portion, rate, algorithms: NonEmpty { first, rest: ways.collect() } }
    }
}

/// The legs of a collective over `group`, and whether they run at the same time.
pub fn phases(
    kind: CollectiveOp,
    group: &RankGroup,
    tiers: &[TierShape],
) -> (NonEmpty<CollectivePhase>, bool) {
    let (n, within, across) = (group.size, group.inner, group.outer());
    let (inner, outer) = (group.inner_tier, group.outer_tier);
    let leg = |kind, n, tier, portion| CollectivePhase::new(kind, n, tier, portion, tiers);
    let slice = (1, within);
    let sequence = |first, rest| (NonEmpty { first, rest }, false);
    let single = || sequence(leg(kind, n, outer, (1, 1)), vec![]);
    match kind {
        CollectiveOp::SendRecv => single(),
        _ if across == 1 => single(),
        CollectiveOp::AllReduce => sequence(
            leg(CollectiveOp::ReduceScatter, within, inner, (1, 1)),
            vec![
                leg(CollectiveOp::AllReduce, across, outer, slice),
                leg(CollectiveOp::AllGather, within, inner, (1, 1)),
            ],
        ),
        // Traffic inside the domain and traffic that leaves it run at the same time.
        CollectiveOp::AllToAll => {
            let mut far = leg(CollectiveOp::AllToAll, n, outer, (n - within, n));
            for way in std::iter::once(&mut far.algorithms.first).chain(&mut far.algorithms.rest) {
                (way.wire, way.derivation.wire) = ((1, 1), ("all traffic that leaves the domain: 1", "1"));
            }
            let near = leg(CollectiveOp::AllToAll, within, inner, (within, n));
            (NonEmpty { first: near, rest: vec![far] }, true)
        }
        CollectiveOp::AllGather | CollectiveOp::ReduceScatter => {
            sequence(leg(kind, across, outer, slice), vec![leg(kind, within, inner, (1, 1))])
        }
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
        let names: Vec<_> = legs.first.algorithms.iter().map(|way| way.algorithm).collect();
        assert_eq!(names, [Algorithm::OneShot, Algorithm::InSwitch]);
    }
}
