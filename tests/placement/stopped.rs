//! Searches that are stopped: the best so far holds, and nothing lies below the bound that is told.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use mantile::search::placement::bottleneck::MinMaxStage;
use mantile::search::placement::solve::{PlacementTime, solve};
use mantile::search::placement::{
    PlacementInfeasible, device_classes, least_slowest, least_sum, least_sum_controlled,
};
use mantile::search::run::{Control, UNWATCHED};
use proptest::prelude::*;

use super::chains::any;
use super::rigs::on;
use mantile::store::catalog::Catalog;

/// Says stop from the `most`-th time on that it is asked.
fn after(most: usize) -> impl Fn() -> bool + Sync {
    let requested = AtomicUsize::new(0);
    move || requested.fetch_add(1, Relaxed) >= most
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Enough members that the programmes look up while they work.
    #[test]
    fn the_best_so_far_holds_and_its_bound_is_one(chain in any(13, 14), most in 0usize..12) {
        let proved = least_sum(&chain);
        let stop = after(most);
        let shown = AtomicUsize::new(0);
        let progress = |done: usize, total: usize| {
            assert!(done <= total);
            shown.fetch_add(1, Relaxed);
        };
        match (least_sum_controlled(&chain, &Control { progress: &progress, stop: &stop }), proved) {
            (Ok(found), Ok(proved)) => {
                prop_assert_eq!(chain.sum(&found.stages), Ok(found.ticks));
                prop_assert!(found.bound <= proved.ticks && proved.ticks <= found.ticks);
            }
            (Err(PlacementInfeasible::Stopped { bound }), Ok(proved)) => prop_assert!(bound <= proved.ticks),
            (found, proved) => prop_assert!(found.is_err() && proved.is_err(), "{:?} {:?}", found, proved),
        }
        if chain.members.len() > 10 && device_classes(&chain).states > 1024 {
            prop_assert!(shown.load(Relaxed) > 0, "no progress was reported");
        }
    }

    #[test]
    fn a_slowest_stage_that_is_not_proved_has_a_bound(chain in any(13, 14), most in 0usize..12) {
        let groups = device_classes(&chain);
        for stages in 1..=chain.members.len() {
            let least = least_slowest(&chain, stages, u64::MAX).map(|found| found.ticks);
            let found = MinMaxStage::new(&chain, &groups).least(stages, u64::MAX, &after(most));
            prop_assert!(least.is_none_or(|least| found.bound <= least), "{:?} {:?}", found, least);
            if let Some((ticks, stages)) = found.found {
                prop_assert_eq!(chain.slowest(&stages), Ok(ticks));
                prop_assert!(least.is_some_and(|least| least <= ticks));
            }
        }
    }
}

#[test]
fn a_cycle_that_is_stopped_at_once_is_no_worse_than_splits_by_memory() {
    for id in ["mac-five", "pcie-four-cards", "mac-studio-m3-ultra-x8-tcp"] {
        let rig = Catalog::default().rig(id).unwrap_or_else(|fault| panic!("{fault}"));
        let questions = on(&rig, 4).problems;
        let proved = solve(&questions, PlacementTime::Cycle, &UNWATCHED).unwrap();
        let stopped = Control { stop: &|| true, ..UNWATCHED };
        let found = solve(&questions, PlacementTime::Cycle, &stopped).unwrap();
        assert!(found.bound <= proved.seconds && proved.seconds <= found.seconds, "{id}");
        assert!(found.bound > 0.2 * proved.seconds, "{id}: a bound that says something");
        assert!(!found.is_optimal() || found.seconds == proved.seconds, "{id}");
        for (rule, other) in &found.others {
            assert!(other.as_ref().is_none_or(|(other, _)| found.seconds <= *other), "{id} {rule:?}");
        }
    }
}
