//! The programmes find what trying everything finds.

use mantile::quantity::tolerance::OPTIMA;
use mantile::search::placement::bottleneck::MinMaxStage;
use mantile::search::placement::chain::{Chain, HostOverhead, Spill, Stage};
use mantile::search::placement::device_classes::DeviceClasses;
use mantile::search::placement::feasibility::min_host_memory;
use mantile::search::placement::min_latency::MinLatencySearch;
use mantile::search::placement::program::{ProgramOptimum, ProgramTime, optimum};
use mantile::search::placement::reasons::holds;
use mantile::search::placement::{bound, device_classes, least_slowest, least_sum};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::chains::{any, sharing, some};

/// Every placement: members in every order, every cut.
pub fn every(chain: &Chain) -> Vec<Vec<Stage>> {
    fn on(chain: &Chain, before: &[Stage], all: &mut Vec<Vec<Stage>>) {
        let from = before.last().map_or(0, |stage| stage.to);
        if from == chain.layers {
            all.push(before.to_vec());
            return;
        }
        for member in 0..chain.members.len() {
            if before.iter().any(|stage| stage.member == member) {
                continue;
            }
            for to in from + 1..=chain.layers {
                let mut next = before.to_vec();
                next.push(Stage { member, from, to });
                on(chain, &next, all);
            }
        }
    }
    let mut all = Vec::new();
    on(chain, &[], &mut all);
    all
}

fn check(chain: &Chain) -> Result<(), TestCaseError> {
    let all = every(chain);
    let sum = all.iter().filter_map(|stages| chain.sum(stages).ok()).min();
    let found = least_sum(chain);
    prop_assert_eq!(found.as_ref().ok().map(|found| found.ticks), sum);
    if let Ok(found) = &found {
        prop_assert_eq!(chain.sum(&found.stages), Ok(found.ticks), "the stages are worth what is said");
        prop_assert!(found.cheap_bound <= found.ticks);
    }
    for count in 1..=chain.members.len() {
        let of_count = all.iter().filter(|stages| stages.len() == count);
        let slowest = of_count.filter_map(|stages| chain.slowest(stages).ok()).min();
        let found = least_slowest(chain, count, u64::MAX);
        prop_assert_eq!(found.as_ref().map(|found| found.ticks), slowest, "{} stages", count);
        if let Some(found) = found {
            prop_assert_eq!(chain.slowest(&found.stages), Ok(found.ticks));
            prop_assert!(bound::slowest(chain, Some(count)) <= found.ticks);
            prop_assert!(MinMaxStage::new(chain, &device_classes(chain)).floor(count) <= found.ticks);
            prop_assert_eq!(found.stages.len(), count);
            let none = least_slowest(chain, count, found.ticks);
            prop_assert!(none.is_none(), "nothing is below the least");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn the_programmes_find_what_trying_everything_finds(chain in any(4, 6)) {
        check(&chain)?;
    }

    /// Kinds of several members, which the program counts instead of naming.
    #[test]
    fn like_members_are_counted_and_nothing_is_lost(chain in some(2, 4, 5)) {
        check(&chain)?;
    }

    /// Members of one host share its memory: who takes how much is part of what is sought.
    #[test]
    fn hosts_are_shared_as_trying_everything_shares_them(chain in sharing(4, 5)) {
        let all = every(&chain);
        let sum = all.iter().filter_map(|stages| chain.sum(stages).ok()).min();
        let found = least_sum(&chain);
        prop_assert_eq!(found.as_ref().ok().map(|found| found.ticks), sum);
        if let Ok(found) = found {
            prop_assert_eq!(found.bound, found.ticks);
            prop_assert_eq!(chain.sum(&found.stages), Ok(found.ticks), "no host is asked for more than it has");
            if let Some(parts) = found.parts {
                prop_assert_eq!(chain.with_host_parts(&parts).sum(&found.stages), Ok(found.ticks));
                for host in &chain.hosts {
                    let all: u64 = host.members.iter().map(|(member, devices)| devices * parts[*member]).sum();
                    prop_assert!(all <= host.pages);
                }
            }
        }
    }

    /// Whether anything fits is told without a search wherever it can be; storage below a shared host is used first.
    #[test]
    fn whether_anything_fits_is_what_trying_everything_says(chain in sharing(4, 5), deep in 0u64..9) {
        let mut chain = chain;
        for member in &mut chain.members {
            member.disk = member.spill.filter(|_| deep > 0).map(|spill| Spill { pages: deep, ..spill });
        }
        let beyond = |stage: &Stage| chain.over(stage).saturating_sub(deep);
        let fits = |stages: &Vec<Stage>| {
            let mut parts: Vec<u64> =
                chain.members.iter().map(|member| member.spill.map_or(0, |spill| spill.pages)).collect();
            for host in &chain.hosts {
                let taken = |member: usize| stages.iter().find(|stage| stage.member == member).map_or(0, beyond);
                if host.members.iter().map(|(at, devices)| devices * taken(*at)).sum::<u64>() > host.pages {
                    return false;
                }
                host.members.iter().for_each(|(at, _)| parts[*at] = parts[*at].min(taken(*at)));
            }
            chain.with_host_parts(&parts).sum(stages).is_ok()
        };
        let expected = every(&chain).iter().any(fits);
        prop_assert_eq!(holds(&chain), expected);
        prop_assert_eq!(least_sum(&chain).is_ok(), expected);
        if let Some(Ok(least)) = min_host_memory(&chain) {
            prop_assert!(chain.with_host_parts(&least.parts).sum(&least.stages).is_ok());
        }
    }

    /// Without a bound to begin with, every set of members has its own optimum.
    #[test]
    fn every_set_of_members_has_its_own_optimum(chain in any(3, 5)) {
        let groups = DeviceClasses::new(&chain, 1 << 20).unwrap();
        let program = MinLatencySearch::new(&chain, &groups, u64::MAX);
        let all = every(&chain);
        for state in 1..groups.states {
            let counts = |stages: &&Vec<Stage>| groups.kinds().all(|kind| {
                let of_kind = stages.iter().filter(|stage| groups.members[kind].contains(&stage.member));
                of_kind.count() == groups.count(state, kind)
            });
            let least = all.iter().filter(counts).filter_map(|stages| chain.sum(stages).ok()).min();
            prop_assert_eq!(program.whole(state).map(|(ticks, _)| ticks), least);
            if let Some(ticks) = least {
                prop_assert_eq!(chain.sum(&program.stages(state)), Ok(ticks));
            }
        }
    }

    #[test]
    fn the_parts_of_a_sum_are_its_stages(chain in any(3, 5)) {
        for stages in every(&chain).iter().take(50) {
            if let Ok(sum) = chain.sum(stages) {
                let each = chain.stages(stages, HostOverhead::Each).unwrap();
                prop_assert!(each.iter().sum::<u64>() >= sum, "every stage prepares its own step");
            }
        }
    }
}

/// The mixed-integer programs of every order agree with the dynamic programs: feasible together, with the same sum and
/// the same cycle, and their stages are worth what they say.
fn programs_agree(chain: &Chain) -> Result<usize, TestCaseError> {
    let counts = || 1..=chain.members.len().min(chain.layers);
    let all = counts().map(|count| optimum(chain, count, ProgramTime::Sum { limit: None }));
    let sums = all.fold(ProgramOptimum::default(), ProgramOptimum::and);
    let least = least_sum(chain);
    let near = |a: f64, b: f64| (a - b).abs() <= OPTIMA * b.max(1.0);
    if let Some((ticks, stages)) = &sums.best {
        let found = least.as_ref().map(|least| least.ticks as f64);
        prop_assert!(
            found.as_ref().is_ok_and(|found| *ticks >= found * (1.0 - OPTIMA)),
            "{} {:?}",
            ticks,
            found
        );
        if chain.hosts.is_empty() {
            prop_assert!(chain.sum(stages).is_ok_and(|again| near(*ticks, again as f64)), "{:?}", stages);
        }
    }
    if sums.is_complete() {
        let optimum = sums.best.as_ref().map(|(ticks, _)| *ticks);
        prop_assert_eq!(optimum.is_some(), least.is_ok());
        prop_assert!(optimum.zip(least.ok()).is_none_or(|(ticks, least)| near(ticks, least.ticks as f64)));
    }
    let mut decided = sums.decided;
    if !chain.hosts.is_empty() {
        return Ok(decided);
    }
    for count in counts() {
        let of_count = every(chain).into_iter().filter(|stages| stages.len() == count);
        let flying = 1 + count as u64 / 2;
        let cycle =
            |stages: Vec<Stage>| Some(chain.sum(&stages).ok()?.max(flying * chain.slowest(&stages).ok()?));
        let Some(least) = of_count.filter_map(cycle).min() else { continue };
        let found = optimum(chain, count, ProgramTime::Cycle { flying, limit: 2 * least.max(1) });
        decided += found.decided;
        if found.is_complete() {
            let ticks = found.best.map(|(ticks, _)| ticks);
            prop_assert!(ticks.is_some_and(|ticks| near(ticks, least as f64)), "{:?} {}", ticks, least);
        }
    }
    Ok(decided)
}

#[test]
fn programs_of_memory_rows_and_stage_times_find_the_same_optimum() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut decided, mut chains) = (0, 0);
    for at in 0..crate::draw::cases(60) {
        let draw = |runner: &mut proptest::test_runner::TestRunner| {
            if at % 3 == 0 {
                sharing(4, 5).new_tree(runner).map(|tree| tree.current())
            } else {
                any(4, 7).new_tree(runner).map(|tree| tree.current())
            }
        };
        let chain = draw(&mut runner).unwrap();
        decided += programs_agree(&chain).unwrap_or_else(|fault| panic!("{fault}\n{chain:?}"));
        chains += 1;
    }
    assert!(decided > 5 * chains, "{decided} programs of {chains} problems");
}
