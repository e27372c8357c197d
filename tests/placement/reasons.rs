//! Why nothing fits: conflicts that cannot be shortened, misses that are the nearest, changes that are the least.

use mantile::search::placement::chain::{Chain, Member, SegmentCost};
use mantile::search::placement::least_sum;
use mantile::search::placement::price::{MemberPrices, PAGE, PlacementProblem, PlacementWork};
use mantile::search::placement::reasons::{PlacementLimit, conflict, holds, more_memory, nearest, only};
use mantile::search::placement::relax::{Lever, relaxations, with_more};
use mantile::search::placement::solve::{PlacementTime, solve};
use mantile::search::run::UNWATCHED;
use mantile::serving::terms::Lengths;
use mantile::spec::offload::OffloadPolicy;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::rig::ResolvedRig;
use proptest::prelude::*;

use super::chains::any;

/// The same with part of what its layers take, as if the rest were cache.
fn leaner(chain: &Chain, share: u64) -> Chain {
    let part = |part: &SegmentCost| SegmentCost { pages: part.pages * share / 4, ..*part };
    let member = |member: &Member| Member {
        layers: member.layers.iter().map(part).collect(),
        experts: member
            .experts
            .iter()
            .zip(&member.layers)
            .map(|(e, l)| *e.min(&(l.pages * share / 4)))
            .collect(),
        ..member.clone()
    };
    Chain { members: chain.members.iter().map(member).collect(), ..chain.clone() }
}

/// Memory cut to a part of what there was, so that most chains hold nothing.
fn cut(chain: &Chain, by: u64) -> Chain {
    let mut small = chain.clone();
    small.members.iter_mut().for_each(|member| member.usable = (member.usable / by).max(member.base));
    small
}

fn fits(chain: &Chain) -> bool {
    least_sum(chain).is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn limits_conflict_and_none_of_them_can_be_left_out(
        chain in any(4, 5), by in 2u64..4, share in 0u64..4
    ) {
        let chain = cut(&chain, by);
        prop_assert_eq!(holds(&chain), fits(&chain));
        prop_assume!(!fits(&chain));
        let lean = leaner(&chain, share);
        let found = conflict(&chain, &lean);
        prop_assert!(!found.limits.is_empty());
        prop_assert!(!fits(&only(&chain, &lean, &found.limits)), "{:?} do not conflict", found);
        for limit in &found.limits {
            let others: Vec<PlacementLimit> = found.limits.iter().copied().filter(|other| other != limit).collect();
            prop_assert!(fits(&only(&chain, &lean, &others)), "{:?} is not needed in {:?}", limit, found);
        }
        let all: Vec<PlacementLimit> = [found.limits.clone(), found.innocent].concat();
        prop_assert!(!fits(&only(&chain, &lean, &all)), "all limits are the question itself");
        let lifted = |limit: &PlacementLimit| all.iter().copied().filter(|other| other != limit).collect::<Vec<_>>();
        let stays = |limit: &PlacementLimit| !fits(&only(&chain, &lean, &lifted(limit)));
        prop_assert_eq!(found.several, found.limits.iter().any(stays));
    }

    #[test]
    fn the_nearest_miss_lacks_least_and_more_memory_is_the_least_that_does(chain in any(4, 5), by in 2u64..4) {
        let chain = cut(&chain, by);
        prop_assume!(!fits(&chain));
        let raised = |pages: u64, at: &dyn Fn(usize) -> bool| {
            let mut larger = chain.clone();
            let some = larger.members.iter_mut().enumerate().filter(|(member, _)| at(*member));
            some.for_each(|(_, member)| member.usable += pages);
            larger
        };
        match nearest(&chain) {
            Some(miss) => {
                let most = miss.lacks.iter().copied().max().unwrap();
                prop_assert!(most > 0);
                // Less for all than the most that a stage lacks, and nothing fits in host memory's stead.
                let spills = chain.members.iter().any(|member| member.spill.is_some());
                prop_assert!(spills || !fits(&raised(most - 1, &|_| true)));
                prop_assert!(spills || fits(&raised(most, &|_| true)));
            }
            None => prop_assert!(!fits(&raised(10_000, &|_| true))),
        }
        let kinds = chain.kinds();
        for member in 0..kinds.len() {
            let like = |at: usize| kinds[at] == kinds[member];
            match more_memory(&chain, member) {
                Some(pages) => prop_assert!(
                    fits(&raised(pages, &like)) && !fits(&raised(pages - 1, &like)), "{}", pages
                ),
                None => prop_assert!(!fits(&raised(10_000, &like))),
            }
        }
    }
}

fn requested(rig: &str, scenario: &Scenario, concurrency: u64) -> Vec<PlacementProblem> {
    let catalog = Catalog::default();
    let rig = catalog.rig(rig).unwrap_or_else(|fault| panic!("{fault}"));
    let rigged = ResolvedRig::resolve(&catalog, scenario, rig, concurrency);
    rigged.unwrap_or_else(|fault| panic!("{fault}")).problems
}

/// Every change that is told helps, and the next smaller one does not.
#[test]
fn each_change_is_the_least_that_helps() {
    let scenario = |model: &str, format: &str, isl: u64| Scenario {
        model: Some(model.into()),
        weight_format: Some(format.into()),
        isl: Some(isl),
        offload: Some(OffloadPolicy::Never),
        ..Scenario::default()
    };
    let cases = [
        ("rtx-4090-3090", scenario("Llama-3.3-70B", "q4_k_m", 30_000), 4),
        ("rtx-4090-3090", scenario("gpt-oss-120b", "mxfp4", 2048), 1),
        ("pcie-four-cards", scenario("Llama-3.3-70B", "bf16", 4096), 8),
    ];
    let mut helped = 0;
    for (rig, scenario, concurrency) in cases {
        let questions = requested(rig, &scenario, concurrency);
        let solved = |change: &dyn Fn(&PlacementProblem) -> PlacementProblem| {
            let changed: Vec<PlacementProblem> = questions.iter().map(change).collect();
            solve(&changed, PlacementTime::Step, &UNWATCHED).is_ok()
        };
        assert!(!solved(&PlacementProblem::clone), "{rig} holds it as it is");
        for relaxation in relaxations(&questions) {
            let try_with = |amount: u64| match relaxation.lever {
                Lever::Devices(member) => solved(&|problem| with_more(problem, member, amount)),
                Lever::Isl => solved(&|problem| {
                    let lengths = Lengths { isl: amount, ..problem.lengths };
                    PlacementProblem { lengths, ..problem.clone() }
                }),
                Lever::Concurrency => {
                    solved(&|problem| PlacementProblem { concurrency: amount, ..problem.clone() })
                }
                Lever::Memory(member) => {
                    let mut chain =
                        MemberPrices::new(&questions[0]).chain(PlacementWork::Token(concurrency)).chain;
                    let kinds = chain.kinds();
                    let like = (0..kinds.len()).filter(|at| kinds[*at] == kinds[member]);
                    let pages = amount / PAGE as u64;
                    like.for_each(|at| chain.members[at].usable += pages);
                    fits(&chain)
                }
            };
            let (smaller, step) = match relaxation.lever {
                Lever::Memory(_) => (-1, PAGE as i64),
                Lever::Devices(_) => (-1, 1),
                Lever::Isl | Lever::Concurrency => (1, 1),
            };
            if let Some(needed) = relaxation.needed {
                let less = needed.saturating_add_signed(smaller * step);
                assert!(try_with(needed), "{rig}: {relaxation:?} does not help");
                assert!(less == 0 || !try_with(less), "{rig}: less than {relaxation:?} helps");
                helped += 1;
            }
        }
    }
    assert!(helped >= 9, "{helped}");
}
