//! The least host memory that an answer states is enough, and less is not.

use fastrand::Rng;
use mantile::report::result::OptimizeResult;
use mantile::request::UNCONTROLLED;
use mantile::request::estimate::{EstimateRequest, estimate};
use mantile::request::optimize::{OptimizeRequest, optimize};
use mantile::spec::deployment::Deployment;
use mantile::spec::offload::OffloadPolicy;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;

use crate::draw::{between, cases, name};

const MODELS: [&str; 5] =
    ["Llama-3.3-70B", "gpt-oss-120b", "Qwen3-30B-A3B", "Llama-3.1-8B", "DeepSeek-V2-Lite"];
const SYSTEMS: [&str; 7] =
    ["1xrtx-4090", "2xrtx-4090", "1xrtx-3060-12gb", "1xl40s", "1xl4", "2xl4", "1xh100"];

fn drawn(random: &mut Rng, memory: &str) -> Scenario {
    Scenario {
        model: name(random, &MODELS),
        hardware: name(random, &SYSTEMS),
        host_memory: Some(memory.into()),
        runtime: name(random, &["vllm", "llama.cpp", "sglang", "ik_llama.cpp"]).filter(|_| random.bool()),
        objective: Some("throughput".into()),
        concurrency: Some(1),
        isl: Some(between(random, 64.0, 4000.0) as u64),
        osl: Some(between(random, 16.0, 400.0) as u64),
        ttft: Some("none".into()),
        tpot: Some("none".into()),
        ..Scenario::default()
    }
}

fn answer(scenario: &Scenario) -> Option<OptimizeResult> {
    let scenario = scenario.clone();
    let request =
        OptimizeRequest { scenario, max_front_points: Some(0.into()), ..OptimizeRequest::default() };
    optimize(&Catalog::default(), &request, &UNCONTROLLED).ok()
}

fn bytes(bytes: f64) -> Option<String> {
    Some(format!("{:.9}GB", bytes / 1e9))
}

/// Where nothing fits, each format that fits with more host memory names the least, which the search confirms.
#[test]
fn the_least_host_memory_of_a_format_is_enough_and_less_is_not() {
    let mut random = Rng::with_seed(341);
    let (mut tried, mut tight) = (0, 0);
    while tight < cases(2) {
        tried += 1;
        assert!(tried < 100 * cases(2), "{tight} of {tried}");
        let scenario = drawn(&mut random, "5GB");
        let Some(found) = answer(&scenario).filter(|found| found.best.is_none()) else { continue };
        for need in &found.weights_need {
            let Some(least) = need.least_host_bytes else { continue };
            let with = |factor: f64| Scenario {
                weight_format: Some(need.weight_format.clone()),
                host_memory: bytes(least * factor),
                ..scenario.clone()
            };
            let fits = |factor: f64| answer(&with(factor)).is_some_and(|found| found.best.is_some());
            assert!(fits(1.000_001), "{least} {need:?}: {scenario:?}");
            assert!(!fits(0.999), "{least} {need:?}: {scenario:?}");
            tight += 1;
        }
    }
}

/// A plan with a part in host memory fits with the host memory that it states, and not with less.
#[test]
fn the_least_host_memory_of_a_plan_is_enough_and_less_is_not() {
    let mut random = Rng::with_seed(342);
    let (mut tried, mut tight) = (0, 0);
    while tight < cases(2) {
        tried += 1;
        assert!(tried < 100 * cases(2), "{tight} of {tried}");
        let scenario = drawn(&mut random, "256GB");
        let scenario = Scenario { offload: Some(OffloadPolicy::Auto), ..scenario };
        let Some(best) = answer(&scenario).and_then(|found| found.best) else { continue };
        let memory = best.memory.as_ref().unwrap();
        assert!(memory.least_host_bytes > 0.0, "{scenario:?}");
        if memory.host_bytes == 0.0 && memory.offloaded_bytes == 0.0 {
            continue;
        }
        let fits = |factor: f64| {
            let deployment = Deployment { plan: Some(best.notation.clone()), ..Deployment::default() };
            let host_memory = bytes(memory.least_host_bytes * factor);
            let scenario = Scenario { host_memory, deployment: Some(deployment), ..scenario.clone() };
            let found = estimate(&Catalog::default(), &EstimateRequest::of(scenario), &UNCONTROLLED);
            found.is_ok_and(|found| found.candidate.metrics.is_some())
        };
        assert!(fits(1.000_001), "{best:?}: {scenario:?}");
        assert!(!fits(0.999), "{best:?}: {scenario:?}");
        tight += 1;
    }
}
