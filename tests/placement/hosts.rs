//! Host memory and storage below it, on shipped rigs: who takes how much, and what it costs.

use mantile::search::placement::chain::{Chain, Stage};
use mantile::search::placement::least_sum;
use mantile::search::placement::price::{MemberPrices, PlacementProblem, PlacementWork};
use mantile::search::placement::solve::{PlacementTime, SolvedPlacement, solve};
use mantile::search::run::UNWATCHED;
use mantile::spec::offload::OffloadPolicy;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::rig::ResolvedRig;

fn offloaded(rig: &str, model: &str, format: &str, concurrency: u64) -> Vec<PlacementProblem> {
    let catalog = Catalog::default();
    let requested = Scenario {
        model: Some(model.into()),
        weight_format: Some(format.into()),
        offload: Some(OffloadPolicy::Always),
        ..Scenario::default()
    };
    let rig = catalog.rig(rig).unwrap_or_else(|fault| panic!("{fault}"));
    ResolvedRig::resolve(&catalog, &requested, rig, concurrency)
        .unwrap_or_else(|fault| panic!("{fault}"))
        .offloaded
}

fn chain(problem: &PlacementProblem, solved: &SolvedPlacement) -> Chain {
    solved.with_host_parts(MemberPrices::new(problem).chain(PlacementWork::Token(solved.batches.1))).chain
}

/// Pages of each stage that lie in host memory, and those that lie below it.
fn outside(chain: &Chain, stage: &Stage) -> (u64, u64) {
    let headroom = chain.members[stage.member].spill.map_or(0, |spill| spill.pages);
    let over = chain.over(stage);
    (over.min(headroom), over.saturating_sub(headroom))
}

#[test]
fn a_host_is_shared_at_least_as_well_as_in_equal_parts() {
    for (rig, model, format) in
        [("pcie-four-cards", "Llama-3.3-70B", "bf16"), ("rtx-4090-3090", "gpt-oss-120b", "mxfp4")]
    {
        let questions = offloaded(rig, model, format, 1);
        let stated = MemberPrices::new(&questions[0]).chain(PlacementWork::Token(1)).chain;
        let [host] = &stated.hosts[..] else { panic!("{rig} has one host") };
        assert!(host.members.len() > 1);
        let solved = solve(&questions[..1], PlacementTime::Step, &UNWATCHED).unwrap();
        assert!(solved.is_optimal(), "{rig}");
        let held = chain(&questions[0], &solved);
        let taken: u64 = solved.stages.iter().map(|stage| outside(&held, stage).0).sum();
        assert!(taken > 0 && taken <= host.pages, "{rig}: {taken} of {}", host.pages);
        assert_eq!(
            stated.sum(&solved.stages),
            held.sum(&solved.stages),
            "{rig}: the host suffices as it is shared"
        );
        let equal = vec![host.pages / host.members.len() as u64; stated.members.len()];
        if let Ok(equal) = least_sum(&stated.with_host_parts(&equal)) {
            assert!(stated.sum(&solved.stages).unwrap() <= equal.ticks, "{rig}");
        }
    }
}

/// 671 billion parameters in some 400 GB: 24 GB card, 256 GiB of memory, the rest on the drive.
#[test]
fn storage_holds_what_memory_does_not_and_costs_what_it_reads() {
    let questions = offloaded("rtx-4090-workstation", "DeepSeek-V3", "q4_k_m", 1);
    let at = |questions: &[PlacementProblem]| solve(questions, PlacementTime::Step, &UNWATCHED).unwrap();
    let solved = at(&questions);
    let held = chain(&questions[0], &solved);
    let [stage] = &solved.stages[..] else { panic!("one card") };
    let (near, deep) = outside(&held, stage);
    assert!(near > 0 && deep > 0, "{near} {deep}");
    let member = &held.members[0];
    let (spill, disk) = (member.spill.unwrap(), member.disk.unwrap());
    assert_eq!(near, spill.pages, "memory is full before the drive is used");
    assert!(disk.ticks_per_page > spill.ticks_per_page);
    // Without the drive there is no placement; with a slower one it takes longer, by what is read of it.
    let mut none = questions.clone();
    none.iter_mut().flat_map(|problem| &mut problem.members).for_each(|offer| offer.disk = None);
    assert!(solve(&none, PlacementTime::Step, &UNWATCHED).is_err());
    let mut slow = questions.clone();
    let disks =
        slow.iter_mut().flat_map(|problem| &mut problem.members).filter_map(|offer| offer.disk.as_mut());
    disks.for_each(|disk| disk.rate.value /= 2.0);
    let slower = at(&slow);
    let experts: u64 = member.experts.iter().sum();
    assert!(deep <= experts, "experts alone lie on the drive");
    let tick = MemberPrices::new(&questions[0]).chain(PlacementWork::Token(1)).tick;
    let more = (deep * disk.ticks_per_expert_page) as f64 * tick;
    let took = slower.seconds - solved.seconds;
    assert!((took / more - 1.0).abs() < 1e-6, "{took} against {more}");
}

#[test]
fn experts_that_lie_outside_are_those_of_the_last_layers_and_no_more_than_needed() {
    let questions = offloaded("rtx-4090-3090", "gpt-oss-120b", "mxfp4", 1);
    let solved = solve(&questions[..1], PlacementTime::Step, &UNWATCHED).unwrap();
    let held = chain(&questions[0], &solved);
    let mut out = 0;
    for stage in &solved.stages {
        let over = held.over(stage);
        let experts = &held.members[stage.member].experts;
        let Some(first) = held.experts_out(stage) else {
            assert_eq!(over, 0);
            continue;
        };
        assert!(first >= stage.from && first < stage.to);
        assert!(experts[first..stage.to].iter().sum::<u64>() >= over);
        assert!(experts[first + 1..stage.to].iter().sum::<u64>() < over, "a layer fewer would not do");
        out += 1;
    }
    assert!(out > 0);
}
