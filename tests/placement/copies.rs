//! Stages that several like members hold: against every row of them, and where they are worth it.

use mantile::search::placement::bottleneck::replicated::{copies, shortest_cycle, shortest_cycle_among};
use mantile::search::placement::chain::{Chain, HostOverhead, Member, SegmentCost};
use mantile::search::placement::device_classes::DeviceClasses;
use mantile::search::placement::price::{MemberPrices, PlacementProblem, PlacementWork};
use mantile::search::placement::solve::{PlacementTime, solve};
use mantile::search::run::UNWATCHED;
use mantile::spec::rig::{Rig, RigLink, RigMember, RigTopology};
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::rig::ResolvedRig;
use proptest::prelude::*;

/// Two kinds of members, so many of each, which hold so many pages.
fn chain(layers: &[(u64, u64)], kinds: [(usize, u64, u64); 2], (host, link): (u64, u64)) -> Chain {
    let member = |&(_, slow, usable): &(usize, u64, u64)| Member {
        layers: layers
            .iter()
            .map(|(ticks, pages)| SegmentCost { ticks: ticks * slow, pages: *pages })
            .collect(),
        experts: vec![0; layers.len()],
        first: SegmentCost { ticks: 3, pages: 1 },
        last: SegmentCost { ticks: 5, pages: 2 },
        copy: 0,
        host,
        base: 1,
        usable,
        spill: None,
        disk: None,
    };
    let members: Vec<Member> =
        kinds.iter().flat_map(|kind| std::iter::repeat_n(member(kind), kind.0)).collect();
    let links = (0..members.len()).map(|_| vec![Some(link); members.len()]).collect();
    Chain { layers: layers.len(), members, links, hosts: vec![] }
}

/// The shortest cycle of every row of stages whose numbers of members divide `flying` and come to no more.
fn every(chains: &[(u64, Chain)], kinds: [usize; 2], flying: u64) -> Option<u64> {
    fn on(
        chains: &[(u64, Chain)],
        left: [usize; 2],
        first: [usize; 2],
        from: usize,
        headroom: u64,
        flying: u64,
    ) -> Option<u64> {
        let layers = chains[0].1.layers;
        let mut best: Option<u64> = None;
        for kind in 0..2 {
            for (members, chain) in chains {
                if *members > left[kind] as u64 || *members > headroom {
                    continue;
                }
                let mut rest = left;
                rest[kind] -= *members as usize;
                for to in from + 1..=layers {
                    let held = &chain.members[first[kind]];
                    let Some(ticks) = held.ticks(layers, from, to, HostOverhead::Each) else { continue };
                    let turns = flying / members;
                    let cycle = if to == layers {
                        turns * ticks
                    } else {
                        let onward = chain.links[0][1].unwrap();
                        let Some(behind) = on(chains, rest, first, to, headroom - members, flying) else {
                            continue;
                        };
                        behind.max(turns * (ticks + onward))
                    };
                    best = Some(best.map_or(cycle, |best: u64| best.min(cycle)));
                }
            }
        }
        best
    }
    on(chains, kinds, [0, kinds[0]], 0, flying, flying)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_programme_finds_what_trying_every_row_finds(
        layers in prop::collection::vec((1u64..40, 1u64..4), 1..=4),
        counts in (1usize..=3, 1usize..=2), slow in 2u64..5, usable in (3u64..16, 3u64..16),
        ends in (0u64..20, 0u64..20), flying in 2u64..=6,
    ) {
        // Several members of a stage each hold fewer caches: more room is what that comes to.
        let sizes: Vec<u64> = (1..=flying.min(3)).filter(|size| flying.is_multiple_of(*size)).collect();
        let of = |size: u64| chain(&layers, [(counts.0, 1, usable.0 + size), (counts.1, slow, usable.1 + size)], ends);
        let chains: Vec<(u64, Chain)> = sizes.iter().map(|size| (*size, of(*size))).collect();
        let known = every(&chains, [counts.0, counts.1], flying);
        let found = shortest_cycle(&chains, flying, 1 << 40, &UNWATCHED);
        prop_assert_eq!(found.found.as_ref().map(|(ticks, _)| *ticks), known);
        prop_assert_eq!(found.bound, known.unwrap_or(1 << 40));
        if let Some((_, stages)) = found.found {
            let mut members: Vec<usize> = stages.iter().flat_map(|stage| stage.members.clone()).collect();
            let many = members.len();
            members.sort_unstable();
            members.dedup();
            prop_assert!(members.len() == many && many as u64 <= flying, "{:?}", stages);
            prop_assert!(stages.windows(2).all(|pair| pair[0].to == pair[1].from));
            prop_assert_eq!((stages[0].from, stages[stages.len() - 1].to), (0, layers.len()));
        }
        // Without a list of states the bound is one, and what is found holds; where links are alike, so is the best.
        let groups = DeviceClasses::counted(&chains[0].1, 0);
        let wide = shortest_cycle_among(&chains, &groups, (flying, 1 << 40), &UNWATCHED);
        prop_assert!(known.is_none_or(|known| wide.bound <= known), "{:?} {:?}", wide, known);
        if let Some((ticks, stages)) = wide.found {
            prop_assert!(known.is_some_and(|known| known <= ticks));
            let many: usize = stages.iter().map(|stage| stage.members.len()).sum();
            prop_assert!(many as u64 <= flying, "{:?}", stages);
        }
        // What is known already is not found again, but proved.
        if let Some(ticks) = known {
            let none = shortest_cycle(&chains, flying, ticks, &UNWATCHED);
            prop_assert!(none.found.is_none() && none.bound >= ticks);
        }
    }
}

fn rig(devices: &[(&str, u64)]) -> Rig {
    let post = |(device, count): &(&str, u64)| RigMember {
        name: None,
        device: (*device).into(),
        count: *count,
        joined: None,
        runtime: None,
        host: None,
    };
    Rig {
        id: "several".into(),
        name: "several".into(),
        members: devices
            .iter()
            .flat_map(|(device, count)| (0..*count).map(|_| post(&(*device, 1))))
            .collect(),
        topology: Some(RigTopology::Mesh),
        links: vec![RigLink { link: "ethernet-100g".into(), between: None, bandwidth: None, latency: None }],
        ..Rig::default()
    }
}

fn questions(model: &str, devices: &[(&str, u64)], concurrency: u64) -> Vec<PlacementProblem> {
    let scenario = Scenario {
        model: Some(model.into()),
        runtime: Some("llama.cpp".into()),
        weight_format: Some("q4_k_m".into()),
        ..Scenario::default()
    };
    ResolvedRig::resolve(&Catalog::default(), &scenario, rig(devices), concurrency).unwrap().problems
}

/// A model that fits on any one of them: each with a copy of it beats a row of stages, and by how much is proved.
#[test]
fn copies_of_a_small_model_are_worth_more_than_a_row_of_stages() {
    let questions = questions("Llama-3.1-8B", &[("rtx-4090", 3), ("rtx-3090", 2)], 12);
    let prices = MemberPrices::new(&questions[0]);
    let alone = copies(&prices, f64::INFINITY, &UNWATCHED).best.unwrap();
    let solved = solve(&questions, PlacementTime::Cycle, &UNWATCHED).unwrap();
    assert!(solved.is_optimal() && solved.seconds <= alone.seconds * (1.0 + 1e-12));
    assert!(solved.copies.iter().any(|copies| !copies.is_empty()), "{:?}", solved.stages);
    let row = mantile::search::placement::cycle::cycle(&prices, None, &UNWATCHED).unwrap();
    assert!(solved.seconds < row.seconds, "{} against {}", solved.seconds, row.seconds);
    // The same from the prices of its stages: each member does its part of the micro-batches.
    let (flying, each) = solved.batches;
    let mut worked: f64 = 0.0;
    for (at, stage) in solved.stages.iter().enumerate() {
        let members = solved.held_by(at);
        let priced = prices.chain_holding(PlacementWork::Token(each), flying / members * each);
        let onward = solved
            .stages
            .get(at + 1)
            .map_or(0, |next| priced.chain.links[stage.member][next.member].unwrap());
        let ticks = priced.chain.members[stage.member].ticks(
            priced.chain.layers,
            stage.from,
            stage.to,
            HostOverhead::Each,
        );
        worked = worked.max((flying / members) as f64 * priced.seconds(ticks.unwrap() + onward));
    }
    assert!((worked - solved.seconds).abs() < 1e-9 * worked, "{worked} against {}", solved.seconds);
}

#[test]
fn unlike_members_have_no_copies() {
    let questions = questions("Llama-3.1-8B", &[("rtx-4090", 1), ("rtx-3090", 1)], 8);
    let looked = copies(&MemberPrices::new(&questions[0]), f64::INFINITY, &UNWATCHED);
    assert!(looked.best.is_none() && looked.bound.is_infinite() && looked.states == 0);
}
