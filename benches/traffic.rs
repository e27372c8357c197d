//! Simulated traffic: one engine, and 64 of them behind a router, with prompts that share nothing, shared prefixes, and
//! sessions. A step costs a linear function, so that schedulers, caches and routers are measured alone.

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mantile::spec::role::Role;
use mantile::traffic::engine::SchedulerSettings;
use mantile::traffic::router::RoutePolicy;
use mantile::traffic::run::{DeploymentSettings, PoolSettings, run};
use mantile::traffic::session::DrawnSessions;
use mantile::traffic::source::{Arrivals, DrawnTraffic, LengthDistribution, RequestSource};
use mantile::traffic::step_load::StepLoad;
use mantile::traffic::vllm::VllmSettings;

const REQUESTS: u64 = 20_000;
/// About 70 % of the requests per second that one engine serves at these steps.
const RATE: f64 = 12.0;
const REPLICAS: usize = 64;

const SCHEDULER: VllmSettings = VllmSettings {
    token_budget: 8192,
    max_sequences: 256,
    blocks: 30_000,
    block_tokens: 16,
    chunked_prefill: true,
    long_prompt_threshold: None,
    prefix_caching: true,
    whole_prompt_fits: true,
    reserved_blocks: 0,
    asynchronous: true,
    draft: None,
    prefill_interval: None,
};

/// A step that reads its weights, its tokens and its cache.
fn clock(ranks: &[StepLoad]) -> f64 {
    let one = |load: &StepLoad| {
        let prompts: u64 = load.prompts.iter().map(|chunk| u64::from(chunk.new_tokens)).sum();
        8e-3 + 2e-5 * (f64::from(load.decoding) + prompts as f64) + 2e-8 * load.kv_tokens as f64
    };
    ranks.iter().map(one).fold(0.0, f64::max)
}

/// Requests with a shared prefix of `prefix` tokens, or the sessions that they begin.
fn traffic(replicas: usize, prefix: u32, sessions: Option<DrawnSessions>) -> DrawnTraffic {
    DrawnTraffic {
        arrivals: Arrivals::Rate { per_s: RATE * replicas as f64, variation: 1.0 },
        requests: REQUESTS,
        prompt: LengthDistribution::Fixed(1024),
        output: LengthDistribution::Uniform(128, 512),
        prefix,
        prefix_groups: REPLICAS as u64,
        distinct_prompts: 0,
        sessions,
        seed: 1,
    }
}

fn simulation(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("traffic");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(10))
        .throughput(Throughput::Elements(REQUESTS));
    let sessions = DrawnSessions {
        turns: 4.0,
        turns_variation: 0.5,
        new: LengthDistribution::Fixed(256),
        think_s: 5.0,
        think_variation: 1.0,
    };
    for (name, replicas, router, prefix, sessions) in [
        ("one engine", 1, RoutePolicy::LeastRequests, 0, None),
        ("64 engines, least requests", REPLICAS, RoutePolicy::LeastRequests, 512, None),
        ("64 engines, prefix", REPLICAS, RoutePolicy::Prefix, 512, None),
        ("64 engines, prefix, sessions", REPLICAS, RoutePolicy::Prefix, 512, Some(sessions)),
    ] {
        let scheduler = SchedulerSettings::Vllm(SCHEDULER);
        let pool = PoolSettings::untiered(Role::Aggregated, (replicas, 1), scheduler);
        let settings = DeploymentSettings { router, ..pool.into() };
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let source = RequestSource::new(traffic(replicas, prefix, sessions.clone()));
                run(&settings, source, &clock, &mut |_| {}, &|| false).answered
            });
        });
    }
    group.finish();
}

criterion_group!(benches, simulation);
criterion_main!(benches);
