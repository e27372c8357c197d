//! Time of a collective: the fastest algorithm that the topology allows, tier by tier.

use super::batch::Batch;
use super::machine::{Machine, PricedLink};
use super::task::tokens_here;
use crate::plan::algorithm::{AlgorithmCost, CollectivePhase, RateShare};
use crate::plan::collective::{Collective, Tokens};
use crate::quantity::count::{Count, Origin};
use crate::quantity::num::Qty;
use crate::quantity::read::Reading;
use crate::quantity::unit::{BYTE, COUNT, SECOND};

/// A fraction of integers, as a factor.
#[inline(always)]
fn ratio<R: Reading>(
    read: &R,
    (part, whole): (u64, u64),
    symbols: [&'static str; 2],
    (upper, lower): (&'static str, &'static str),
) -> Qty<R::N> {
    let count = |symbol, value, how| read.count(Count { value, symbol, origin: Origin::Plan(how) });
    count(symbols[0], part, upper) / count(symbols[1], whole, lower)
}

/// Cost of a collective, for each of its devices.
#[derive(Clone, Copy, Debug)]
pub struct CollectiveCost<T> {
    pub time: T,
    /// Speed of light (SOL): the wire bytes of the leanest algorithm at link rate.
    pub roofline_time: T,
    /// Bytes that a device sends, by the fastest algorithm.
    pub wire: T,
}

/// The link between two devices of a tier: in a mesh, the one of several that joins them.
#[inline(always)]
pub fn pair_link<R: Reading>(read: &R, machine: &Machine<Qty<R::N>>, tier: usize) -> PricedLink<Qty<R::N>> {
    let link = &machine.links[tier];
    let Some(share) = machine.shapes.get(tier).map(|shape| RateShare::of(2, shape)) else { return *link };
    let bandwidth = match share.part.0 == share.part.1 {
        true => link.bandwidth,
        false => (link.bandwidth * ratio(read, share.part, share.symbols, share.how)).is(&PAIR),
    };
    PricedLink { bandwidth, ..*link }
}

/// Cost on one tier, by its fastest algorithm.
#[inline(always)]
fn leg<R: Reading>(
    read: &R,
    leg: &CollectivePhase,
    bytes: Qty<R::N>,
    machine: &Machine<Qty<R::N>>,
) -> CollectiveCost<Qty<R::N>> {
    let link = &machine.links[leg.tier];
    let whole = |part: (u64, u64)| part.0 == part.1;
    let portion = || ratio(read, leg.portion, ["slices_of_this_leg", "slices"], PORTION);
    let links = || ratio(read, leg.rate.part, leg.rate.symbols, leg.rate.how);
    let bytes = if whole(leg.portion) { bytes } else { bytes * portion() };
    let rate = if whole(leg.rate.part) { link.bandwidth } else { link.bandwidth * links() };
    let stream = (bytes / (rate * machine.chip.collective_bandwidth)).is(&STREAM);
    let time = |way: &AlgorithmCost| {
        let hops =
            read.count(Count { value: way.hops, symbol: "hops", origin: Origin::Plan(way.derivation.hops) });
        let wire = ratio(read, way.wire, ["slices_on_the_wire", "slices"], way.derivation.wire);
        CollectiveCost {
            time: (hops * link.latency + wire * stream).is(&ALGORITHM),
            roofline_time: wire * (bytes / rate),
            wire: (wire * bytes).is(&WIRE),
        }
    };
    leg.algorithms.reduce(time, |a, b| CollectiveCost {
        time: a.time.min(b.time),
        roofline_time: a.roofline_time.min(b.roofline_time),
        wire: if a.time.value() <= b.time.value() { a.wire } else { b.wire },
    })
}

/// The share of a buffer on one tier, as a function of the group.
const PORTION: (&str, &str) = ("ranks of the group that this tier connects", "ranks that share the buffer");

/// Cost of a collective.
#[inline(always)]
pub fn cost<R: Reading>(
    read: &R,
    collective: &Collective,
    batch: &Batch<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
) -> CollectiveCost<Qty<R::N>> {
    cost_by_leg(read, collective, batch, machine, |_, _| {})
}

/// Cost of a collective; `each` sees the tier and the cost of every leg, without the launch.
pub fn cost_by_leg<R: Reading>(
    read: &R,
    collective: &Collective,
    batch: &Batch<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
    mut each: impl FnMut(usize, &CollectiveCost<Qty<R::N>>),
) -> CollectiveCost<Qty<R::N>> {
    let bytes = payload(read, collective, batch, machine);
    let join = |a: Qty<R::N>, b: Qty<R::N>| if collective.concurrent { a.max(b) } else { a + b };
    let both = |a: CollectiveCost<Qty<R::N>>, b: CollectiveCost<Qty<R::N>>| CollectiveCost {
        time: join(a.time, b.time),
        roofline_time: join(a.roofline_time, b.roofline_time),
        wire: a.wire + b.wire,
    };
    let seen = |one: &CollectivePhase| {
        let cost = leg(read, one, bytes, machine);
        each(one.tier, &cost);
        cost
    };
    let all = collective.phases.reduce(seen, both);
    CollectiveCost { time: (machine.chip.collective_latency + all.time).is(&TIME), ..all }
}

/// Bytes of the buffer of a collective.
#[inline(always)]
fn payload<R: Reading>(
    read: &R,
    collective: &Collective,
    batch: &Batch<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
) -> Qty<R::N> {
    let width = read.count(collective.width);
    let tokens = match collective.tokens {
        Tokens::Rank(share) => tokens_here(read, share, batch),
        Tokens::Dispatched { tp, top_k, ep } => {
            let tp = read.count(Count::plan("copies", tp));
            batch.tokens / tp * destinations(read, top_k, ep)
        }
        Tokens::KeysValues => batch.sequences * (batch.cached_tokens + batch.new_tokens),
        Tokens::Cached => batch.sequences * batch.cached_tokens,
    };
    (machine.chip.activation_bytes * tokens * width).is(&PAYLOAD)
}

/// Expert-parallel devices that hold experts of one token.
#[inline(always)]
fn destinations<R: Reading>(read: &R, top_k: Count, ep: u64) -> Qty<R::N> {
    let ep = read.count(Count::plan("ep", ep));
    let missed = (1.0 - 1.0 / ep).pow(read.count(top_k));
    (ep * (1.0 - missed)).is(&DESTINATIONS)
}

crate::formulas! {
    PAIR {
        symbol: "pair_bandwidth",
        unit: BYTE.per(SECOND),
        why: "two devices of a mesh have one of its links between them; the others lead to other devices",
        cite: "AMD Instinct MI300X platform data sheet: 7 links of 64 GB/s a direction, one to each peer",
    }
    STREAM {
        symbol: "stream_time",
        unit: SECOND,
        why: "the buffer once over the links of a device, at the achieved fraction of their rate",
        cite: "Hockney 1994 (latency and bandwidth)",
    }
    ALGORITHM {
        symbol: "algorithm_time",
        unit: SECOND,
        why: "hops run in sequence; wire bytes are 2(n-1)/n of the buffer for all-reduce, (n-1)/n for all-gather, reduce-scatter and all-to-all, 1 in the switch",
        cite: "Thakur, Rabenseifner, Gropp 2005, 4; NCCL 2.x (ring, tree, NVLS)",
    }
    TIME {
        symbol: "collective_time",
        unit: SECOND,
        why: "launch and synchronisation, then the fastest algorithm that the topology allows, tier by tier",
        cite: "NCCL chooses its algorithm the same way, by least modelled time",
    }
    WIRE {
        symbol: "wire_bytes",
        unit: BYTE,
        why: "bytes that a device sends over this tier: the slices on the wire by the algorithm, of the buffer",
        cite: "Thakur, Rabenseifner, Gropp 2005, 4; NCCL tests, bus bandwidth",
    }
    PAYLOAD {
        symbol: "payload",
        unit: BYTE,
        why: "the buffer of the collective: tokens times width",
        cite: "definition",
    }
    DESTINATIONS {
        symbol: "destinations",
        unit: COUNT,
        why: "a token is sent once to each device that holds one of its experts: ep (1 - (1 - 1/ep)^top_k) of them",
        cite: "DeepEP sends per destination, not per expert; occupancy under uniform routing",
    }
}
