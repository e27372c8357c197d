//! Latencies and memory never fall as load grows: what the bounds of the search rest on.

use mantile::spec::offload::Offload;
use mantile::spec::role::Role;
use std::sync::Arc;

use mantile::plan::parallel::Phase;
use mantile::plan::rules::RoleSet;
use mantile::quantity::num::Qty;
use mantile::quantity::read::Plain;
use mantile::search::aggregated::measure;
use mantile::search::candidate::{Candidate, PoolPlan};
use mantile::search::physical_bound::physical_bound;
use mantile::search::point::{WIDTH, cost, place};
use mantile::search::problem::{Problem, Traffic};
use mantile::search::shape::{InstanceConfig, PreparedShape};
use mantile::serving::admission::residency;
use mantile::serving::disaggregated::decode_performance;
use mantile::serving::instance::Instance;
use mantile::serving::terms::InstanceLoad;
use mantile::spec::objective::{METRICS, Metric};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::cases::{Case, each_case};

/// Loads that are tried: every one at first, where pipelines fill, then fewer.
fn loads() -> impl Iterator<Item = u64> {
    (1..=200).chain((201..20_000).step_by(37)).chain((20_000..=65_536).step_by(4_099))
}

pub fn shape(problem: &Problem, candidate: &Candidate, pool: &PoolPlan) -> InstanceConfig {
    let instance = Instance::new(&problem.graph, pool.plan, pool.stages.clone(), problem.tiers());
    InstanceConfig {
        instance: Arc::new(instance),
        formats: candidate.formats,
        plan: pool.plan,
        stages: pool.stages.clone(),
        offload: candidate.offload,
        from: 1,
        fits: 1,
        per_node: None,
        roles: RoleSet::ALL,
    }
}

fn never_falls(name: &str, load: u64, before: &mut f64, now: f64) -> Result<(), TestCaseError> {
    prop_assert!(now >= *before, "{} falls from {} to {} at {} requests", name, before, now, load);
    *before = now;
    Ok(())
}

fn of_an_instance(case: &Case) -> Result<(), TestCaseError> {
    let metrics = [Metric::Ttft, Metric::Tpot, Metric::E2e];
    for pool in &case.candidate.pools {
        let shape = shape(&case.problem, &case.candidate, pool);
        let placed = PreparedShape::of(&case.problem, Arc::new(shape));
        let mut known = [0.0; 3];
        for load in loads() {
            let point = placed.at(1, load);
            for (metric, known) in metrics.iter().zip(&mut known) {
                never_falls(metric.entry().name, load, known, point[place(*metric)])?;
            }
        }
    }
    Ok(())
}

#[test]
fn latencies_never_fall_as_load_grows() {
    each_case(30, of_an_instance);
}

fn within_physics(case: &Case) -> Result<(), TestCaseError> {
    // At its own concurrency, on devices that are there: the load of a random deployment is not that of its traffic.
    let mut problem = case.problem.clone();
    problem.traffic = Traffic::Free;
    if case.candidate.devices() > problem.cluster.devices() {
        return Ok(());
    }
    let bound = physical_bound(&problem);
    let point = measure(&problem, &case.candidate);
    for entry in
        METRICS.iter().filter(|entry| place(entry.metric) < WIDTH && entry.metric != Metric::MaxContext)
    {
        let [best, found] = [&bound, &point].map(|of| cost(of, entry.metric, entry.direction));
        prop_assert!(
            best <= found + 1e-9 * found.abs(),
            "{}: {} is beyond {}",
            entry.name,
            point[place(entry.metric)],
            bound[place(entry.metric)]
        );
    }
    Ok(())
}

#[test]
fn nothing_is_beyond_the_bound_that_needs_no_layout() {
    each_case(100, within_physics);
}

fn of_a_decode_pool(case: &Case) -> Result<(), TestCaseError> {
    let problem = &case.problem;
    let machine = problem.formats[case.candidate.formats].plain();
    for (pool, instance) in case.candidate.pools.iter().zip(case.candidate.instances(problem)) {
        let dp = pool.plan.dp;
        let (mut tpot, mut energy, mut before) = (0.0, 0.0, (1.0, f64::INFINITY));
        let devices = Qty::from(pool.plan.devices() as f64);
        let idle = problem.idle(pool.plan.devices()).watts;
        for requests in loads() {
            let load = InstanceLoad { concurrency: requests * dp, offload: Offload::Nothing };
            let now = decode_performance(&Plain, &instance, machine, problem.terms(), &load, &mut ());
            let rate = now.rate;
            never_falls("tpot", requests, &mut tpot, now.tpot.value())?;
            // What the bound of power says: a step does not need less energy beyond idle power at a higher load.
            if let Some(draw) = &problem.terms().power_draw {
                let busy = now.power(&Plain, &instance, devices, draw).value() - idle;
                let used = busy * requests as f64 / rate.value();
                prop_assert!(used >= energy * (1.0 - 1e-12), "{} J of a step, before {}", used, energy);
                energy = used;
            }
            // What the answers' bound says: no load carries more than a lower one would at its own pace.
            let most = before.1 * requests as f64 / before.0;
            prop_assert!(
                rate.value() <= most * (1.0 + 1e-12),
                "{} of {} at {}",
                rate.value(),
                most,
                requests
            );
            before = (requests as f64, rate.value());
        }
    }
    Ok(())
}

#[test]
fn a_decode_pool_is_never_quicker_under_more_load() {
    let several = |case: &Case| case.problem.workload.lengths.osl > 1;
    each_case(30, |case| if several(case) { of_a_decode_pool(case) } else { Ok(()) });
}

fn held(problem: &Problem, case: &Case, instance: &Instance, phase: Phase, load: u64) -> [f64; 5] {
    let machine = problem.formats[case.candidate.formats].plain();
    let held = residency(&Plain, instance, phase, machine, problem.terms(), load);
    [held.weights, held.kv, held.activations, held.total, held.usable].map(|bytes| bytes.value())
}

fn memory(case: &Case) -> Result<(), TestCaseError> {
    for instance in case.candidate.instances(&case.problem) {
        for phase in [Phase::Prefill, Phase::Decode] {
            let mut known = 0.0;
            for load in loads() {
                let [weights, kv, activations, total, _] = held(&case.problem, case, &instance, phase, load);
                never_falls("memory", load, &mut known, total)?;
                prop_assert!(total >= weights + kv + activations, "{} is less than its parts", total);
            }
        }
    }
    Ok(())
}

#[test]
fn memory_never_falls_as_load_grows() {
    each_case(40, memory);
}

/// The prompt pool's latency is its own: numbers of instances and the answers' load leave it alone, so
/// that one look at a pair tells its TTFT. With so many requests in flight it is never less than that of one.
fn of_a_pair(case: &Case) -> Result<(), TestCaseError> {
    if case.candidate.pools[0].role != Role::Prefill || case.candidate.pools.len() > 2 {
        return Ok(());
    }
    let crowded = matches!(case.problem.traffic, Traffic::InFlight(_));
    let mut alone = case.problem.clone();
    if crowded {
        alone.traffic = Traffic::InFlight(1.into());
    }
    let first = case.candidate.evaluate(&Plain, &alone, &mut ()).metrics;
    let problem = &case.problem;
    let evaluate = |prefill_options, backs, load| {
        let mut candidate = case.candidate.clone();
        (candidate.pools[0].replicas, candidate.pools[1].replicas) = (prefill_options, backs);
        candidate.pools[1].concurrency = load;
        candidate.evaluate(&Plain, problem, &mut ()).metrics
    };
    let one = evaluate(1, 1, 1);
    for (prefill_options, backs, load) in [(2, 1, 1), (1, 3, 1), (3, 2, 64), (1, 1, 1000)] {
        let other = evaluate(prefill_options, backs, load);
        if crowded {
            // Means over other numbers of workers round differently.
            let (more, one) = (other.ttft.value(), first.ttft.value());
            prop_assert!(
                more >= one * (1.0 - 1e-9),
                "{more} with {prefill_options} and {backs} workers, {one} alone"
            );
        } else {
            prop_assert_eq!(one.ttft.value().to_bits(), other.ttft.value().to_bits());
        }
        prop_assert!(other.tpot.value() >= one.tpot.value());
    }
    Ok(())
}

#[test]
fn the_time_to_the_first_token_of_a_pair_is_its_prompt_pools() {
    each_case(30, of_a_pair);
}
