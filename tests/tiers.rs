//! Laws of the tiers behind the KV cache of the devices: what they give was computed before, and comes in its time.

use mantile::request::UNCONTROLLED;
use mantile::request::simulate::{SimulateRequest, SimulatedTraffic, simulate};
use mantile::request::simulated_tiers::SimulatedTiers;
use mantile::spec::degree::Degrees;
use mantile::spec::deployment::Deployment;
use mantile::spec::scenario::Scenario;

use crate::doors::catalog;

mod laws;

fn request(runtime: &str, tiers: SimulatedTiers) -> SimulateRequest {
    let both = Degrees { tp: Some(1), ..Degrees::default() };
    let deployment = Deployment { both, ..Deployment::default() };
    let scenario = Scenario {
        model: Some("Qwen3-14B".into()),
        hardware: Some("1xh100".into()),
        runtime: Some(runtime.into()),
        concurrency: Some(96),
        isl: Some(6000),
        osl: Some(100),
        deployment: Some(deployment),
        ..Scenario::default()
    };
    let traffic = SimulatedTraffic {
        requests: Some(700),
        turns: Some(6.0),
        turn_isl: Some(1000),
        think_time: Some(2.0),
        ..SimulatedTraffic::default()
    };
    SimulateRequest { scenario, traffic, tiers, ..SimulateRequest::default() }
}

/// Where sessions have more cache than the devices, host memory has what they lost, and the answer says so.
#[test]
fn an_answer_has_hits_by_tier() {
    for runtime in ["vllm", "sglang", "trtllm"] {
        let alone = simulate(catalog(), &request(runtime, SimulatedTiers::default()), &UNCONTROLLED).unwrap();
        assert!(alone.tiers.is_none() && alone.pools.iter().all(|pool| pool.tiers.is_none()));
        let json = serde_json::to_string(&alone).unwrap();
        assert!(!json.contains("\"tiers\"") && !json.contains("\"loaded_tokens\""));
        let host = SimulatedTiers { kv_host_memory: Some(400.0), ..SimulatedTiers::default() };
        let tiered = simulate(catalog(), &request(runtime, host), &UNCONTROLLED).unwrap();
        let tiers = tiered.tiers.as_ref().unwrap();
        assert_eq!(tiers.hits.iter().map(|one| one.tier.as_str()).collect::<Vec<_>>(), ["device", "host"]);
        let sum: f64 = tiers.hits.iter().map(|one| one.hit_rate).sum();
        assert!((sum - tiered.hit_rate).abs() < 1e-12);
        assert!(tiers.hits[1].tokens > 0, "{runtime}");
        assert!(
            tiered.hit_rate > alone.hit_rate + 0.05,
            "{runtime}: {} of {}",
            tiered.hit_rate,
            alone.hit_rate
        );
        assert!(tiered.unlimited_hit_rate >= tiered.hit_rate);
    }
}

/// A flag that a runtime, or a request, has no use for is refused with the reason.
#[test]
fn tiers_that_are_not_there_are_refused() {
    let host = SimulatedTiers { kv_host_memory: Some(10.0), ..SimulatedTiers::default() };
    let store = SimulatedTiers { kv_store: Some(10.0), kv_store_bandwidth: Some(5.0), ..host.clone() };
    let key = |runtime: &str, tiers: &SimulatedTiers| {
        let mut request = request(runtime, tiers.clone());
        request.scenario.concurrency = Some(4);
        simulate(catalog(), &request, &UNCONTROLLED).unwrap_err().key
    };
    assert_eq!(key("llama.cpp", &host), "kv_host_memory");
    assert_eq!(key("trtllm", &store), "kv_store");
    let slow = SimulatedTiers { kv_store_bandwidth: None, ..store.clone() };
    assert_eq!(key("vllm", &slow), "kv_store_bandwidth");
    let behind_nothing = SimulatedTiers { kv_host_memory: None, ..store };
    assert_eq!(key("sglang", &behind_nothing), "kv_store");
    let alone = SimulatedTiers { kv_store_latency: Some(1.0), ..host };
    assert_eq!(key("vllm", &alone), "kv_store_latency");
    let small = SimulatedTiers { kv_host_memory: Some(-1.0), ..SimulatedTiers::default() };
    assert_eq!(key("vllm", &small), "kv_host_memory");
}
