//! What must not change an optimum, and what must not make it worse.

use mantile::search::placement::baseline::{BaselineRule, placements};
use mantile::search::placement::chain::{Chain, Member, SegmentCost, Spill};
use mantile::search::placement::{least_slowest, least_sum};
use proptest::prelude::*;

use super::chains::any;

/// The least sum, and the least slowest stage of any number of stages.
fn optima(chain: &Chain) -> (Option<u64>, Option<u64>) {
    let sum = least_sum(chain).ok().map(|found| found.ticks);
    let each = (1..=chain.members.len()).filter_map(|n| least_slowest(chain, n, u64::MAX));
    (sum, each.map(|found| found.ticks).min())
}

/// No worse: what had an optimum has one still, and no larger.
fn no_worse(before: Option<u64>, after: Option<u64>) -> bool {
    before.is_none_or(|before| after.is_some_and(|after| after <= before))
}

fn reordered(chain: &Chain, order: &[usize]) -> Chain {
    let link = |a: &usize| order.iter().map(|&b| chain.links[*a][b]).collect();
    Chain {
        layers: chain.layers,
        members: order.iter().map(|&at| chain.members[at].clone()).collect(),
        links: order.iter().map(link).collect(),
        hosts: vec![],
    }
}

fn scaled(chain: &Chain, by: u64) -> Chain {
    let part = |part: SegmentCost| SegmentCost { ticks: part.ticks * by, pages: part.pages };
    let spill = |spill: Spill| Spill {
        ticks_per_page: spill.ticks_per_page * by,
        ticks_per_expert_page: spill.ticks_per_expert_page * by,
        ..spill
    };
    let member = |member: &Member| Member {
        layers: member.layers.iter().map(|layer| part(*layer)).collect(),
        first: part(member.first),
        last: part(member.last),
        host: member.host * by,
        spill: member.spill.map(spill),
        disk: member.disk.map(spill),
        ..member.clone()
    };
    Chain {
        layers: chain.layers,
        members: chain.members.iter().map(member).collect(),
        links: chain.links.iter().map(|row| row.iter().map(|link| link.map(|t| t * by)).collect()).collect(),
        hosts: vec![],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_order_in_which_members_are_listed_changes_nothing(
        (chain, seed) in (any(4, 6), 0usize..24)
    ) {
        let mut order: Vec<usize> = (0..chain.members.len()).collect();
        let mut seed = seed;
        for at in (1..order.len()).rev() {
            order.swap(at, seed % (at + 1));
            seed /= at + 1;
        }
        prop_assert_eq!(optima(&chain), optima(&reordered(&chain, &order)));
    }

    #[test]
    fn a_tick_of_another_length_changes_nothing(chain in any(4, 6), by in 2u64..1000) {
        let (sum, slowest) = optima(&chain);
        let then = optima(&scaled(&chain, by));
        prop_assert_eq!(then, (sum.map(|t| t * by), slowest.map(|t| t * by)));
    }

    #[test]
    fn more_memory_is_never_worse(chain in any(4, 6), at in 0usize..4, more in 1u64..9) {
        let mut larger = chain.clone();
        let at = at % larger.members.len();
        larger.members[at].usable += more;
        let (before, after) = (optima(&chain), optima(&larger));
        prop_assert!(no_worse(before.0, after.0) && no_worse(before.1, after.1), "{:?} {:?}", before, after);
    }

    #[test]
    fn a_member_more_is_never_worse(chain in any(4, 6)) {
        let fewer: Vec<usize> = (1..chain.members.len()).collect();
        if !fewer.is_empty() {
            let (before, after) = (optima(&reordered(&chain, &fewer)), optima(&chain));
            prop_assert!(no_worse(before.0, after.0) && no_worse(before.1, after.1));
        }
    }

    #[test]
    fn faster_links_and_layers_are_never_worse(chain in any(4, 6), at in 0usize..4, layer in 0usize..6) {
        let mut faster = chain.clone();
        let at = at % faster.members.len();
        let layer = layer % faster.layers;
        faster.members[at].layers[layer].ticks /= 2;
        faster.links[at].iter_mut().flatten().for_each(|ticks| *ticks /= 2);
        let (before, after) = (optima(&chain), optima(&faster));
        prop_assert!(no_worse(before.0, after.0) && no_worse(before.1, after.1));
    }

    #[test]
    fn splits_by_memory_alone_are_never_better(chain in any(4, 6)) {
        let (sum, slowest) = optima(&chain);
        for stages in [BaselineRule::Fewest, BaselineRule::All, BaselineRule::BackToFront].map(|rule| placements(&chain, rule)).concat() {
            if let Ok(ticks) = chain.sum(&stages) {
                prop_assert!(sum.is_some_and(|least| least <= ticks));
                let other = chain.slowest(&stages).unwrap();
                prop_assert!(slowest.is_some_and(|least| least <= other));
            }
        }
    }

    #[test]
    fn the_same_question_has_the_same_answer(chain in any(4, 6)) {
        prop_assert_eq!(least_sum(&chain), least_sum(&chain));
    }
}
