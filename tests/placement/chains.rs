//! Random placement problems, some of which have no answer.

use mantile::search::placement::chain::{Chain, Member, SegmentCost, SharedHost, Spill};
use mantile::search::placement::path::paths;
use proptest::prelude::*;

fn part(ticks: u64, pages: u64) -> impl Strategy<Value = SegmentCost> {
    (0..ticks, 0..pages).prop_map(|(ticks, pages)| SegmentCost { ticks, pages })
}

fn spill() -> impl Strategy<Value = Option<Spill>> {
    let some = (1u64..12, 1u64..9, 0u64..9).prop_map(|(pages, all, experts)| {
        Some(Spill { pages, ticks_per_page: all, ticks_per_expert_page: experts.min(all) })
    });
    prop_oneof![Just(None), some]
}

/// A member that holds `layers`, whose sizes all members share and whose times are its own.
fn member(
    pages: Vec<u64>,
    experts: Vec<u64>,
    ends: (SegmentCost, SegmentCost, u64),
) -> impl Strategy<Value = Member> {
    let times = prop::collection::vec(1u64..20, pages.len());
    let rest = (0u64..9, 0u64..3, 2u64..22, spill(), prop::option::weighted(0.2, 1u64..20));
    (times, rest).prop_map(move |(times, (host, base, usable, spill, slower))| {
        // Storage is as large as the host's memory and slower.
        let slow = |spill: Spill, by: u64| Spill {
            ticks_per_page: spill.ticks_per_page * by,
            ticks_per_expert_page: spill.ticks_per_expert_page * by,
            ..spill
        };
        let disk = spill.and_then(|spill| Some(slow(spill, slower?)));
        let layers = times.iter().zip(&pages).map(|(&ticks, &pages)| SegmentCost { ticks, pages }).collect();
        let (first, last, copy) = ends;
        let experts = experts.iter().zip(&pages).map(|(experts, pages)| *experts.min(pages)).collect();
        Member { layers, experts, first, last, copy, host, base, usable: usable.max(base), spill, disk }
    })
}

/// Up to `members` unlike members and `layers` unlike layers, joined by links that may be missing.
pub fn any(members: usize, layers: usize) -> impl Strategy<Value = Chain> {
    let sizes = (2..=layers).prop_flat_map(|layers| {
        let pages = prop::collection::vec(1u64..6, layers);
        (pages, prop::collection::vec(0u64..4, layers), (part(9, 4), part(9, 4), 0u64..4))
    });
    let built = (sizes, 1..=members).prop_flat_map(|((pages, experts, ends), count)| {
        let one = member(pages.clone(), experts, ends);
        let hops = prop::collection::vec(prop::option::weighted(0.8, 0u64..15), count * count);
        (prop::collection::vec(one, count), hops, Just(pages.len()))
    });
    built.prop_map(|(members, hops, layers)| {
        let count = members.len();
        let of = |(at, ticks): (usize, Option<u64>)| Some((at / count, at % count, ticks?));
        let hops: Vec<_> = hops.into_iter().enumerate().filter_map(of).collect();
        Chain { layers, links: paths(count, &hops), members, hosts: vec![] }
    })
}

/// Up to `kinds` kinds of members, `members` in all, links by kind.
pub fn some(kinds: usize, members: usize, layers: usize) -> impl Strategy<Value = Chain> {
    let of = prop::collection::vec(0..kinds, 2..=members);
    (any(kinds, layers), of, prop::collection::vec(0u64..9, kinds * kinds)).prop_map(|(chain, of, links)| {
        let kinds = chain.members.len();
        let of: Vec<usize> = of.into_iter().map(|kind| kind % kinds).collect();
        let members: Vec<Member> = of.iter().map(|&kind| chain.members[kind].clone()).collect();
        let link = |a: usize, b: usize| Some(links[of[a].min(of[b]) * kinds + of[a].max(of[b])]);
        let links = (0..of.len()).map(|a| (0..of.len()).map(|b| link(a, b)).collect()).collect();
        Chain { layers: chain.layers, members, links, hosts: vec![] }
    })
}

/// Members some of which share the memory of one host, or of two.
pub fn sharing(members: usize, layers: usize) -> impl Strategy<Value = Chain> {
    let hosts = prop::collection::vec(prop::option::weighted(0.8, 0usize..2), members);
    (any(members, layers), hosts, 1u64..20, 1u64..12, 1u64..3).prop_map(
        |(mut chain, of, pages, read, devices)| {
            for (at, member) in chain.members.iter_mut().enumerate() {
                member.disk = None;
                let experts = read.min(3);
                member.spill =
                    of[at].map(|_| Spill { pages, ticks_per_page: read, ticks_per_expert_page: experts });
            }
            let seated = |number: usize| {
                let in_it = (0..chain.members.len()).filter(|at| of[*at] == Some(number));
                in_it.map(|at| (at, if at == 0 { devices } else { 1 })).collect::<Vec<_>>()
            };
            let hosts = (0..2).map(seated).filter(|members| !members.is_empty());
            chain.hosts = hosts.map(|members| SharedHost { members, pages }).collect();
            chain
        },
    )
}
