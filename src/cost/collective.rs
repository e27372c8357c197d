//! What an exchange costs: the best of the algorithms that the topology allows, tier by tier.

use super::batch::Batch;
use super::machine::{Link, Machine};
use crate::plan::collective::{Collective, Kind, Tokens};
use crate::plan::group::TierShape;
use crate::quantity::count::Count;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Read;
use crate::quantity::unit::{BYTE, COUNT, SECOND};
use crate::spec::cluster::Topology;

/// A way to carry out an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Slices travel from neighbour to neighbour.
    Ring,
    /// Everyone sends its slices straight to their owners.
    Direct,
    /// Everyone sends the whole buffer straight to everyone.
    OneShot,
    /// Up and down two binary trees at once.
    Tree,
    /// The switch adds up (NVLS, SHARP).
    InSwitch,
}

/// Every algorithm.
pub static ALGORITHMS: &[Algorithm] =
    &[Algorithm::Ring, Algorithm::Direct, Algorithm::OneShot, Algorithm::Tree, Algorithm::InSwitch];

impl Algorithm {
    /// Hops one after another, and wire bytes per buffer byte, of `kind` over `n` ranks; `None`
    /// where the algorithm does not do it, or the topology does not allow it.
    pub fn shape(self, kind: Kind, n: u64, tier: &TierShape) -> Option<(f64, f64)> {
        let ranks = n as f64;
        let share = (ranks - 1.0) / ranks;
        let ring = tier.topology == Topology::Ring;
        match (self, kind) {
            (Algorithm::Direct, Kind::SendRecv) => Some((1.0, 1.0)),
            (_, Kind::SendRecv) => None,
            (Algorithm::Ring, Kind::AllReduce) => Some((2.0 * (ranks - 1.0), 2.0 * share)),
            (Algorithm::Ring, Kind::AllGather | Kind::ReduceScatter) => Some((ranks - 1.0, share)),
            // Each of n slices travels n / 4 hops on average, both ways round.
            (Algorithm::Ring, Kind::AllToAll) => {
                ring.then_some((ranks - 1.0, (ranks / 8.0).max(share / 2.0)))
            }
            (Algorithm::Direct, _) if ring && n > 2 => None,
            (Algorithm::Direct, Kind::AllReduce) => Some((2.0, 2.0 * share)),
            (Algorithm::Direct, Kind::AllGather | Kind::ReduceScatter | Kind::AllToAll) => Some((1.0, share)),
            (Algorithm::OneShot, Kind::AllReduce) if !ring => Some((1.0, ranks - 1.0)),
            (Algorithm::Tree, Kind::AllReduce) if n > 2 => Some((2.0 * ranks.log2().ceil(), 2.0)),
            (Algorithm::InSwitch, Kind::AllReduce) if tier.in_switch_reduction => Some((2.0, 1.0)),
            _ => None,
        }
    }

    /// Its name in NCCL's words.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Ring => "ring",
            Algorithm::Direct => "direct",
            Algorithm::OneShot => "one-shot",
            Algorithm::Tree => "tree",
            Algorithm::InSwitch => "in-switch",
        }
    }
}

/// Rate of a device towards `n − 1` peers of a tier: a mesh has a link of its own for each.
#[inline(always)]
fn rate<N: Num>(link: &Link<Qty<N>>, tier: &TierShape, n: u64) -> Qty<N> {
    match tier.topology {
        Topology::Mesh if n < tier.devices => link.bandwidth * ((n - 1) as f64 / (tier.devices - 1) as f64),
        _ => link.bandwidth,
    }
}

/// One algorithm's time for a buffer of `bytes` over `n` ranks of a tier, and its speed of light.
#[inline(always)]
pub fn one_way<N: Num>(
    (hops, wire): (f64, f64),
    bytes: Qty<N>,
    link: &Link<Qty<N>>,
    rate: Qty<N>,
    efficiency: Qty<N>,
) -> (Qty<N>, Qty<N>) {
    let wire = (bytes * wire).is(&WIRE);
    ((hops * link.latency + wire / (rate * efficiency)).is(&ALGORITHM), wire / rate)
}

/// The best algorithm's time for `kind` over `n` ranks of one tier, and the least speed of light.
#[inline(always)]
fn leg<N: Num>(
    kind: Kind,
    bytes: Qty<N>,
    n: u64,
    tier: usize,
    machine: &Machine<Qty<N>>,
) -> (Qty<N>, Qty<N>) {
    let (link, shape) = (&machine.links[tier], &machine.shapes[tier]);
    let rate = rate(link, shape, n);
    let ways = ALGORITHMS.iter().filter_map(|algorithm| algorithm.shape(kind, n, shape));
    let times = ways.map(|way| one_way(way, bytes, link, rate, machine.chip.collective_bandwidth));
    let best = times.reduce(|a, b| (a.0.min(b.0), a.1.min(b.1)));
    best.expect("ring does every collective and direct every send")
}

/// Time of an exchange, and its speed of light.
pub fn cost<R: Read>(
    read: &R,
    collective: &Collective,
    batch: &Batch<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
) -> (Qty<R::N>, Qty<R::N>) {
    let bytes = payload(read, collective, batch, machine);
    let group = collective.group;
    let (inner, outer) = (group.inner_tier, group.outer_tier);
    let (time, floor) = if group.outer() == 1 {
        leg(collective.kind, bytes, group.size, outer, machine)
    } else {
        let (n, within, across) = (group.size as f64, group.inner, group.outer());
        let slice = bytes / within as f64;
        let plus = |a: (Qty<R::N>, Qty<R::N>), b: (Qty<R::N>, Qty<R::N>)| (a.0 + b.0, a.1 + b.1);
        match collective.kind {
            Kind::AllReduce => {
                let scatter = leg(Kind::ReduceScatter, bytes, within, inner, machine);
                let reduce = leg(Kind::AllReduce, slice, across, outer, machine);
                plus(plus(scatter, reduce), leg(Kind::AllGather, bytes, within, inner, machine))
            }
            kind @ (Kind::AllGather | Kind::ReduceScatter) => {
                plus(leg(kind, slice, across, outer, machine), leg(kind, bytes, within, inner, machine))
            }
            // What stays in the domain and what leaves it travel at the same time.
            Kind::AllToAll => {
                let leaves = bytes * ((n - within as f64) / n);
                let stays = bytes * (within as f64 / n);
                let far = one_way(
                    (1.0, 1.0),
                    leaves,
                    &machine.links[outer],
                    machine.links[outer].bandwidth,
                    machine.chip.collective_bandwidth,
                );
                let near = leg(Kind::AllToAll, stays, within, inner, machine);
                (far.0.max(near.0), far.1.max(near.1))
            }
            Kind::SendRecv => leg(Kind::SendRecv, bytes, 2, outer, machine),
        }
    };
    ((machine.chip.collective_latency + time).is(&TIME), floor)
}

/// Bytes of the buffer that the exchange is about.
#[inline(always)]
fn payload<R: Read>(
    read: &R,
    collective: &Collective,
    batch: &Batch<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
) -> Qty<R::N> {
    let width = read.count(collective.width);
    let tokens = match collective.tokens {
        Tokens::Rank => batch.tokens(),
        Tokens::Dispatched { tp, top_k, ep } => {
            let tp = read.count(Count::plan("copies", tp));
            batch.tokens() / tp * destinations(read, top_k, ep)
        }
        Tokens::KeysValues => batch.sequences * (batch.past + batch.new),
    };
    (machine.chip.activation_bytes * tokens * width).is(&PAYLOAD)
}

/// Expert-parallel devices that a token's experts are spread over.
#[inline(always)]
fn destinations<R: Read>(read: &R, top_k: Count, ep: u64) -> Qty<R::N> {
    let ep = read.count(Count::plan("ep", ep));
    let missed = (1.0 - 1.0 / ep).pow(read.count(top_k));
    (ep * (1.0 - missed)).is(&DESTINATIONS)
}

crate::formulas! {
    WIRE {
        symbol: "wire_bytes",
        unit: BYTE,
        why: "what a device puts on its links: 2(n-1)/n of the buffer for all-reduce, (n-1)/n for gather, scatter and all-to-all, 1 in the switch",
        cite: "Thakur, Rabenseifner, Gropp 2005, 4; NCCL 2.x algorithms (ring, tree, NVLS)",
    }
    ALGORITHM {
        symbol: "algorithm_time",
        unit: SECOND,
        why: "hops follow one another, bytes stream at the fraction of the link rate that collectives reach",
        cite: "Hockney 1994 (latency and bandwidth)",
    }
    TIME {
        symbol: "collective_time",
        unit: SECOND,
        why: "launch and synchronisation, then the fastest algorithm that the topology allows, tier by tier",
        cite: "NCCL chooses its algorithm the same way, by least modelled time",
    }
    PAYLOAD {
        symbol: "payload",
        unit: BYTE,
        why: "the buffer that the exchange is about: tokens by width",
        cite: "definition",
    }
    DESTINATIONS {
        symbol: "destinations",
        unit: COUNT,
        why: "a token is sent once to each device that holds one of its experts: ep (1 - (1 - 1/ep)^top_k) of them",
        cite: "DeepEP sends per destination, not per expert; occupancy under uniform routing",
    }
}
