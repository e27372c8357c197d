//! Exchanges: no algorithm moves less than it must, and none faster than its links.

use mantile::cost::batch::Batch;
use mantile::cost::collective::cost;
use mantile::plan::algorithm::ALGORITHMS;
use mantile::plan::collective::{Collective, CollectiveOp, Tokens};
use mantile::plan::group::{RankGroup, TierShape};
use mantile::plan::sharding::TokenShare;
use mantile::quantity::count::Count;
use mantile::quantity::num::Qty;
use mantile::quantity::read::Plain;
use mantile::spec::cluster::Topology;
use mantile::store::catalog::Catalog;
use mantile::store::kind::CatalogKind as Shelf;

use super::MARGIN;
use super::ask::{ask, on};

const KINDS: [CollectiveOp; 5] = [
    CollectiveOp::AllReduce,
    CollectiveOp::ReduceScatter,
    CollectiveOp::AllGather,
    CollectiveOp::AllToAll,
    CollectiveOp::SendRecv,
];

/// What a device must send at least, per byte of the buffer, among `n`.
fn must(kind: CollectiveOp, n: u64, in_switch: bool) -> f64 {
    let others = (n - 1) as f64 / n as f64;
    match kind {
        // Every summand leaves its device, and every sum reaches it; a switch adds up on the way.
        CollectiveOp::AllReduce if in_switch => others,
        CollectiveOp::AllReduce => 2.0 * others,
        CollectiveOp::ReduceScatter | CollectiveOp::AllGather | CollectiveOp::AllToAll => others,
        CollectiveOp::SendRecv => 1.0,
    }
}

#[test]
fn no_algorithm_sends_less_than_it_must() {
    let mut known = 0;
    for topology in [Topology::Switch, Topology::Mesh, Topology::Ring, Topology::Pcie] {
        for in_switch_reduction in [false, true] {
            let tier = TierShape { devices: 64, topology, in_switch_reduction };
            for (kind, n) in KINDS.into_iter().flat_map(|kind| (2..=64).map(move |n| (kind, n))) {
                let ways = ALGORITHMS.iter().filter_map(|algorithm| algorithm.cost(kind, n, &tier));
                for way in ways {
                    let wire = way.wire.0 as f64 / way.wire.1 as f64;
                    let least = must(kind, n, in_switch_reduction);
                    assert!(
                        wire >= least * (1.0 - MARGIN),
                        "{kind:?} over {n}, {topology:?}: {wire} of {least} {way:?}"
                    );
                    assert!(way.hops >= 1, "{way:?}");
                    known += 1;
                }
            }
        }
    }
    assert!(known > 1000, "{known} algorithms");
}

#[test]
fn no_exchange_is_faster_than_its_links() {
    let width = Count::config("hidden_size", 4096);
    let one = |value: f64| Qty(value);
    let catalog = Catalog::default();
    let systems = catalog.entries(Shelf::Systems).into_keys();
    // Systems whose devices lack a figure are refused before anything runs.
    for system in systems.filter(|system| catalog.hardware(system).is_ok()) {
        let problem = ask(&on("TinyLlama-1.1B-Chat-v1.0", &system)).unwrap_or_else(|fault| panic!("{fault}"));
        let machine = problem.formats[0].plain();
        let tiers = problem.tiers();
        let devices = problem.cluster.devices();
        for (size, stride) in (2..=devices.min(72)).flat_map(|size| [1, 2, 4, 8].map(|stride| (size, stride)))
        {
            let Some(group) = RankGroup::place(size, stride, tiers).filter(|_| size * stride <= devices)
            else {
                continue;
            };
            for (kind, tokens) in
                KINDS.into_iter().flat_map(|kind| [1.0, 8192.0].map(|tokens| (kind, tokens)))
            {
                let batch = Batch::new((one(1.0), one(tokens), one(0.0)), (one(1.0), one(1.0), one(1.0)));
                let exchange = Collective::new(kind, group, width, Tokens::Rank(TokenShare::Own), tiers);
                let priced = cost(&Plain, &exchange, &batch, machine);
                let bytes = machine.chip.activation_bytes.value() * tokens * 4096.0;
                let rate = |tier: usize| machine.links[tier].bandwidth.value();
                let spanned = group.inner_tier..=group.outer_tier;
                let fastest = spanned.clone().map(rate).fold(0.0, f64::max);
                let switched = spanned.clone().any(|tier| tiers[tier].in_switch_reduction);
                let least = match kind {
                    CollectiveOp::SendRecv => bytes / fastest,
                    // What a device sends in all, and what leaves its unit of the inner tier for the others'.
                    _ => {
                        let all = must(kind, size, switched) * bytes / fastest;
                        let across = group.outer();
                        let out = if across > 1 { must(kind, across, switched) } else { 0.0 };
                        let leaving = match kind {
                            CollectiveOp::AllToAll => (size - group.inner) as f64 / size as f64,
                            _ => out / group.inner as f64,
                        };
                        all.max(leaving * bytes / rate(group.outer_tier))
                    }
                };
                let [time, floor, sent] = [priced.time, priced.roofline_time, priced.wire].map(Qty::value);
                let what = format!("{kind:?} of {bytes} B over {size} by {stride} on {system}");
                assert!(floor >= least * (1.0 - MARGIN), "{what}: floor {floor} under {least}");
                assert!(time >= floor, "{what}: {time} under {floor}");
                // On one tier, a device sends at least that.
                if group.outer() == 1 && kind != CollectiveOp::SendRecv {
                    let least = must(kind, size, switched) * bytes;
                    assert!(sent >= least * (1.0 - MARGIN), "{what}: {sent} B sent, at least {least} B");
                }
            }
        }
    }
}
