//! More unlike members than states can be listed for: the same optima as by trying everything, and never a false "no".

use mantile::search::placement::bottleneck::{BoundSearch, MinMaxStage};
use mantile::search::placement::chain::{Chain, Member, SegmentCost};
use mantile::search::placement::device_classes::DeviceClasses;
use mantile::search::placement::wide::sum;
use mantile::search::placement::{Placement, PlacementInfeasible, device_classes, known, least_sum};
use mantile::search::run::UNWATCHED;
use proptest::prelude::*;

use super::brute::every;
use super::chains::{any, some};

/// What the programmes without a list of states find is what trying everything finds.
fn check(chain: &Chain) -> Result<(), TestCaseError> {
    let groups = DeviceClasses::counted(chain, 0);
    prop_assert!(!groups.listed());
    let all = every(chain);
    let least = |size: Option<usize>| {
        let sized = all.iter().filter(|stages| size.is_none_or(|size| stages.len() == size));
        sized.filter_map(|stages| chain.sum(stages).ok()).min()
    };
    let sizes = (1..=chain.members.len()).map(Some).chain([None]);
    for size in sizes {
        let found = sum(chain, &groups, size, known(chain), &UNWATCHED);
        let (expected, got) = (least(size), found.found.as_ref().map(|(ticks, _)| *ticks));
        prop_assert_eq!(got, expected, "{:?} stages", size);
        prop_assert_eq!(found.bound, expected.unwrap_or(u64::MAX), "{:?} stages", size);
        if let Some((ticks, stages)) = found.found {
            prop_assert_eq!(chain.sum(&stages), Ok(ticks));
        }
    }
    let mut peak = MinMaxStage::new(chain, &groups);
    for count in 1..=chain.members.len() {
        let of_count = all.iter().filter(|stages| stages.len() == count);
        let expected = of_count.filter_map(|stages| chain.slowest(stages).ok()).min();
        let found = peak.least(count, u64::MAX, &|| false);
        let got = found.found.as_ref().map(|(ticks, _)| *ticks);
        prop_assert_eq!(got, expected, "{} stages", count);
        prop_assert_eq!(found.bound, expected.unwrap_or(u64::MAX), "{} stages", count);
        if let Some((ticks, stages)) = found.found {
            prop_assert_eq!(chain.slowest(&stages), Ok(ticks));
            let none = peak.least(count, ticks, &|| false);
            prop_assert!(none.found.is_none() && none.bound >= ticks, "nothing is below the least");
        }
    }
    let holds = all.iter().any(|stages| chain.sum(stages).is_ok());
    let found = peak.any();
    prop_assert_eq!(matches!(found, BoundSearch::Found(_)), holds);
    prop_assert_eq!(matches!(found, BoundSearch::Nothing), !holds);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn unlike_members_without_a_list_of_states_are_placed_as_trying_everything_does(chain in any(4, 6)) {
        check(&chain)?;
    }

    #[test]
    fn like_members_without_a_list_of_states_are_placed_as_trying_everything_does(chain in some(3, 5, 5)) {
        check(&chain)?;
    }
}

/// `kinds` kinds of `each` members, links by `link`, each with room for `room` layers of 20.
fn rig(kinds: usize, each: usize, headroom: u64, link: impl Fn(usize, usize) -> u64) -> Chain {
    let (layers, members) = (20, kinds * each);
    let member = |kind: usize| Member {
        layers: vec![SegmentCost { ticks: 5_000 + 1_237 * (kind as u64 * 7 % 16), pages: 10 }; layers],
        experts: vec![0; layers],
        first: SegmentCost { ticks: 3_000, pages: 5 },
        last: SegmentCost { ticks: 9_000, pages: 5 },
        copy: 0,
        host: 1_000,
        base: 3,
        usable: 8 + 10 * headroom + kind as u64 % 3,
        spill: None,
        disk: None,
    };
    Chain {
        layers,
        members: (0..members).map(|at| member(at / each)).collect(),
        links: (0..members).map(|a| (0..members).map(|b| Some(link(a / each, b / each))).collect()).collect(),
        hosts: vec![],
    }
}

/// Both optima of a rig, proved.
fn proved(chain: &Chain) -> (u64, u64) {
    let found = least_sum(chain).unwrap();
    assert_eq!((found.bound, chain.sum(&found.stages)), (found.ticks, Ok(found.ticks)));
    let groups = device_classes(chain);
    let mut peak = MinMaxStage::new(chain, &groups);
    let mut counts: Vec<(u64, usize)> =
        (1..=chain.members.len().min(chain.layers)).map(|count| (peak.floor(count), count)).collect();
    counts.sort_unstable();
    let mut slowest = u64::MAX;
    for (floor, count) in counts {
        if floor < slowest {
            let found = peak.least(count, slowest, &|| false);
            assert!(
                found.bound >= slowest || found.found.as_ref().is_some_and(|f| f.0 == found.bound),
                "{found:?}"
            );
            slowest = found.found.map_or(slowest, |(ticks, _)| ticks);
        }
    }
    (found.ticks, slowest)
}

/// Kinds of devices on one network, and like hosts whose devices are closer to each other than to others.
#[test]
fn rigs_of_many_kinds_that_hold_the_model_have_a_proved_placement() {
    for (kinds, each) in [(8, 8), (16, 2), (16, 4), (1, 64), (64, 1)] {
        for headroom in [1, 2, 7, 21] {
            let even = rig(kinds, each, headroom, |_, _| 700);
            assert!(!device_classes(&even).listed() || kinds == 1);
            let (sum, slowest) = proved(&even);
            assert!(slowest <= sum);
        }
    }
}

#[test]
fn like_hosts_are_counted_as_like_members_are() {
    for (hosts, each) in [(8, 8), (16, 2), (16, 4)] {
        for headroom in [1, 2, 7] {
            let mut chain = rig(hosts, each, headroom, |a, b| if a == b { 100 } else { 2_500 });
            let one = chain.members[0].clone();
            chain.members.iter_mut().for_each(|member| *member = one.clone());
            let (sum, slowest) = proved(&chain);
            assert!(slowest <= sum);
        }
    }
}

/// Links that differ from kind to kind: proved, or at least a placement with a bound below it.
#[test]
fn links_of_every_speed_leave_a_placement_and_a_bound() {
    for (kinds, each, free) in [(8, 8, [1, 2, 7]), (16, 2, [2, 3, 7]), (16, 4, [1, 2, 7])] {
        for headroom in free {
            let chain =
                rig(kinds, each, headroom, |a, b| 500 + 131 * ((a + b) as u64 % 11) + a.abs_diff(b) as u64);
            let Placement { ticks, bound, stages, .. } = least_sum(&chain).unwrap();
            assert_eq!(chain.sum(&stages), Ok(ticks));
            assert!(bound <= ticks && ticks - bound <= ticks / 20, "{bound} {ticks}");
        }
    }
}

/// Only what cannot be is refused.
#[test]
fn a_refusal_has_a_proof() {
    let small = rig(16, 4, 0, |_, _| 700);
    assert!(matches!(least_sum(&small), Err(PlacementInfeasible::LayerTooLarge { .. })));
    let mut parted = rig(16, 2, 1, |_, _| 700);
    for (a, row) in parted.links.iter_mut().enumerate() {
        row.iter_mut().enumerate().filter(|(b, _)| a / 8 != b / 8).for_each(|(_, link)| *link = None);
    }
    assert!(matches!(least_sum(&parted), Err(PlacementInfeasible::Disconnected { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// More members than states can be listed for: one more is never worse, and their order changes nothing.
    #[test]
    fn a_member_more_is_never_worse_and_order_changes_nothing(
        (kinds, each, headroom) in (9usize..13, 3usize..5, 1u64..9), turn in 1usize..30, near in 50u64..600
    ) {
        let chain = rig(kinds, each, headroom, |a, b| if a % 3 == b % 3 { near } else { 600 });
        let kept: Vec<usize> = (1..chain.members.len()).collect();
        let all: Vec<usize> = (0..chain.members.len()).map(|at| (at + turn) % chain.members.len()).collect();
        let of = |order: &[usize]| Chain {
            layers: chain.layers,
            members: order.iter().map(|at| chain.members[*at].clone()).collect(),
            links: order.iter().map(|a| order.iter().map(|b| chain.links[*a][*b]).collect()).collect(),
            hosts: vec![],
        };
        let found = least_sum(&chain).unwrap();
        let (fewer, turned) = (least_sum(&of(&kept)).unwrap(), least_sum(&of(&all)).unwrap());
        prop_assert!(found.bound <= fewer.ticks, "{:?} {:?}", found, fewer);
        prop_assert!(found.bound <= turned.ticks && turned.bound <= found.ticks);
        if found.bound == found.ticks {
            prop_assert!(found.ticks <= fewer.ticks);
        }
        if found.bound == found.ticks && turned.bound == turned.ticks {
            prop_assert_eq!(found.ticks, turned.ticks);
        }
    }
}
