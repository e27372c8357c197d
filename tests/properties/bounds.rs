//! What the search leaves out by a bound is no better than the bound: ranges of loads, copies of a deployment, and what is
//! known before a search.

use std::sync::Arc;

use mantile::quantity::read::Plain;
use mantile::search::aggregated::replicas::{CopiedFront, omits_copies};
use mantile::search::decode_options::{DecodeOptions, Depth};
use mantile::search::hint::run_with_hint;
use mantile::search::layouts::Layouts;
use mantile::search::point::{Point, WIDTH, cost, ideal, place, point};
use mantile::search::problem::{Problem, Traffic};
use mantile::search::run::{UNWATCHED, run};
use mantile::search::shape::{InstanceConfig, PreparedShape};
use mantile::spec::objective::{METRICS, Metric};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::ask::{ask, on};
use super::cases::{Case, each_case};
use super::load::shape;

/// `bound` is at least as good as `point` in every metric but the longest context, which bounds leave open.
fn bounds(what: &str, bound: &Point, point: &Point) -> Result<(), TestCaseError> {
    let searched = METRICS.iter().filter(|entry| place(entry.metric) < WIDTH);
    for entry in searched.filter(|entry| entry.metric != Metric::MaxContext) {
        let [best, found] = [bound, point].map(|of| cost(of, entry.metric, entry.direction));
        prop_assert!(
            best <= found + 1e-9 * found.abs(),
            "{what}: {} is {}, beyond {}",
            entry.name,
            point[place(entry.metric)],
            bound[place(entry.metric)]
        );
    }
    Ok(())
}

fn of_ranges(case: &Case) -> Result<(), TestCaseError> {
    for pool in &case.candidate.pools {
        let shape = shape(&case.problem, &case.candidate, pool);
        let placed = PreparedShape::of(&case.problem, Arc::new(shape));
        let idle = case.problem.idle(pool.plan.devices()).watts;
        let at = |load: u64| placed.free(1, load * pool.plan.dp);
        for (low, high) in [(1, 2), (1, 9), (3, 7), (10, 160), (64, 72), (200, 3_000)] {
            let longest = at(high + 1)[place(Metric::E2e)];
            for load in [low, low + 1, low + (high - low) / 3, high] {
                for longest in [longest, f64::INFINITY] {
                    let gain = high as f64 / low as f64;
                    let bound = ideal(&at(low), gain, idle, longest);
                    bounds(&format!("{load} of {low} to {high}"), &bound, &at(load))?;
                }
            }
        }
    }
    Ok(())
}

#[test]
fn no_load_of_a_range_is_beyond_its_ideal() {
    each_case(50, of_ranges);
}

fn of_replicas(case: &Case) -> Result<(), TestCaseError> {
    let metrics = [Metric::Ttft, Metric::Tpot, Metric::E2e];
    let Some(requests) = case.problem.traffic.requests() else { return Ok(()) };
    for pool in &case.candidate.pools {
        let shape = shape(&case.problem, &case.candidate, pool);
        let placed = PreparedShape::of(&case.problem, Arc::new(shape));
        let mut before = [0.0; 3];
        for replicas in (1..=requests.min(64)).rev() {
            let now = placed.at(replicas, requests.div_ceil(replicas));
            for (metric, before) in metrics.iter().zip(&mut before) {
                let value = now[place(*metric)];
                let name = metric.entry().name;
                prop_assert!(
                    value >= *before,
                    "{name} falls from {before} to {value} on {replicas} replicas"
                );
                *before = value;
            }
        }
    }
    Ok(())
}

#[test]
fn fewer_replicas_of_the_same_traffic_are_never_quicker() {
    each_case(100, of_replicas);
}

fn of_workers(case: &Case) -> Result<(), TestCaseError> {
    let mut problem = case.problem.clone();
    problem.traffic = Traffic::Free;
    let split = case.candidate.is_disaggregated() && case.candidate.pools.len() == 2;
    if !split || case.candidate.devices() > problem.cluster.devices() {
        return Ok(());
    }
    let mut candidate = case.candidate.clone();
    let decode = candidate.pools[1].clone();
    let fits = decode.concurrency.div_ceil(decode.plan.dp);
    let shape = InstanceConfig { fits, ..shape(&problem, &candidate, &decode) };
    let mut options = DecodeOptions::new(&problem);
    options.explore(&PreparedShape::of(&problem, Arc::new(shape)), 0, (None, None), Depth::Loads);
    for option in options.lists().flat_map(|list| &list.options) {
        candidate.pools[1].concurrency = option.concurrency;
        let bound = option.deployed(&problem);
        let point = point(&candidate.evaluate(&Plain, &problem, &mut ()).metrics);
        let known = [Metric::Tpot, Metric::OutputTokS, Metric::OutputTokSPerDevice, Metric::UsdPerMtok];
        for metric in known.into_iter().filter(|metric| !point[place(*metric)].is_nan()) {
            let [best, found] = [&bound, &point].map(|of| cost(of, metric, metric.entry().direction));
            let name = metric.entry().name;
            prop_assert!(best <= found + 1e-9 * found.abs(), "{name}: {found} is beyond {best}");
        }
    }
    Ok(())
}

#[test]
fn no_pair_is_beyond_the_bound_of_its_decode_workers() {
    each_case(100, of_workers);
}

/// A question whose front leaves out copies.
fn copied() -> Problem {
    let problem = ask(&on("Llama-3.1-8B", "8xh100")).unwrap_or_else(|fault| panic!("{fault}"));
    assert!(omits_copies(&problem));
    problem
}

fn deployment((ttft, tpot, each, devices): (u8, u8, u8, u8)) -> Point {
    let mut point = [1.0; WIDTH];
    let (each, devices) = (f64::from(each) + 1.0, f64::from(devices) + 1.0);
    for (metric, value) in [
        (Metric::Ttft, f64::from(ttft)),
        (Metric::Tpot, f64::from(tpot)),
        (Metric::OutputTokSPerDevice, each),
        (Metric::OutputTokS, each * devices),
        (Metric::Devices, devices),
    ] {
        point[place(metric)] = value;
    }
    point
}

proptest! {
    #[test]
    fn what_copies_dominate_is_no_better_than_the_copies_that_fit(
        known in prop::collection::vec((0u8..4, 0u8..4, 0u8..20, 0u8..12), 1..30),
        other in (0u8..4, 0u8..4, 0u8..20, 0u8..80),
    ) {
        let problem = copied();
        let mut front = CopiedFront::new(&problem);
        known.iter().for_each(|one| front.insert(&deployment(*one)));
        let point = deployment(other);
        let figure = |of: &Point, metric| of[place(metric)];
        let as_good = |one: &(u8, u8, u8, u8)| {
            let one = deployment(*one);
            let copies = (figure(&point, Metric::Devices) / figure(&one, Metric::Devices)).floor();
            figure(&one, Metric::Ttft) <= figure(&point, Metric::Ttft)
                && figure(&one, Metric::Tpot) <= figure(&point, Metric::Tpot)
                && copies * figure(&one, Metric::OutputTokS) >= figure(&point, Metric::OutputTokS) * (1.0 - 1e-9)
        };
        if front.dominate(&point) {
            prop_assert!(known.iter().any(as_good));
        }
    }
}

#[test]
fn what_is_known_before_a_search_does_not_change_its_optimum() {
    let questions = [
        ("Llama-3.1-8B", "4xh100", "throughput"),
        ("gpt-oss-20b", "4xl40s", "perf-per-dollar"),
        ("Qwen3-30B-A3B", "2x4xh100", "throughput"),
        ("Mixtral-8x7B", "8xh100", "latency"),
        ("Llama-3.3-70B", "8xh200", "perf-per-watt"),
    ];
    for (model, hardware, objective) in questions {
        let mut scenario = on(model, hardware);
        scenario.objective = Some(objective.into());
        let problem = ask(&scenario).unwrap_or_else(|fault| panic!("{fault}"));
        let hints: Vec<_> = run(&problem, &UNWATCHED).alternatives;
        for traffic in [Traffic::Free, Traffic::InFlight(37.into())] {
            let mut bare = problem.clone();
            bare.axes.clear();
            bare.traffic = traffic;
            let layouts = Layouts::shared(&bare);
            let alone = run(&bare, &UNWATCHED).best.expect("it fits");
            for known in hints.iter().map(|hint| &hint.candidate).chain([&alone.candidate]) {
                let found = run_with_hint(&bare, Some(known), &layouts, &UNWATCHED).best.expect("it fits");
                assert_eq!(found.candidate, alone.candidate, "{model} {hardware} {objective} {traffic:?}");
            }
        }
    }
}
