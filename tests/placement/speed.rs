//! How much the programmes look at: states, not seconds, so that a busy machine changes nothing.

use mantile::search::placement::bottleneck::MinMaxStage;
use mantile::search::placement::chain::{Chain, Member, SegmentCost};
use mantile::search::placement::{device_classes, least_sum};

/// `each` members of every kind, which together hold half as much again as there is.
fn chain(kinds: u64, each: u64) -> Chain {
    let (layers, members) = (80, kinds * each);
    let headroom = 120 / members;
    let member = |kind: u64| Member {
        layers: vec![SegmentCost { ticks: 5_000 + 1_237 * (kind * 7 % 16), pages: 10 }; layers],
        experts: vec![0; layers],
        first: SegmentCost { ticks: 3_000, pages: 5 },
        last: SegmentCost { ticks: 9_000, pages: 5 },
        copy: 0,
        host: 1_000,
        base: 3,
        usable: 13 + 10 * (headroom + kind % 3),
        spill: None,
        disk: None,
    };
    let link =
        |a: u64, b: u64| Some(500 + 131 * ((a / each + b / each) % 11) + (a / each).abs_diff(b / each));
    Chain {
        layers,
        members: (0..members).map(|at| member(at / each)).collect(),
        links: (0..members).map(|a| (0..members).map(|b| link(a, b)).collect()).collect(),
        hosts: vec![],
    }
}

#[test]
fn sixteen_unlike_members_and_thirty_two_of_four_kinds_are_proved_soon() {
    for (kinds, each, most) in [(16, 1, (600_000, 1_200_000)), (4, 8, (25_000, 14_000)), (4, 1, (50, 80))] {
        let chain = chain(kinds, each);
        let sum = least_sum(&chain).unwrap();
        assert_eq!(sum.kinds as u64, kinds);
        let groups = device_classes(&chain);
        let mut program = MinMaxStage::new(&chain, &groups);
        let mut counts: Vec<(u64, usize)> =
            (1..=chain.members.len()).map(|stages| (program.floor(stages), stages)).collect();
        counts.sort_unstable();
        let mut slowest = u64::MAX;
        for (floor, stages) in counts {
            if floor < slowest {
                let found = program.least(stages, slowest, &|| false);
                assert!(floor <= found.bound, "{stages} stages");
                slowest = found.found.map_or(slowest, |(ticks, _)| ticks);
            }
        }
        assert!(slowest <= chain.slowest(&sum.stages).unwrap());
        let looked = (sum.states, program.states);
        assert!(looked.0 <= most.0 && looked.1 <= most.1, "{kinds} x {each}: {looked:?}");
    }
}
