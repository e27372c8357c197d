//! Laws of runs with tiers.

use mantile::traffic::cache_tier::{CacheTierSettings, TierScope, TierSettings};
use mantile::traffic::content::TokenRun;
use mantile::traffic::engine::{EngineRequest, SchedulerSettings};
use mantile::traffic::outcome::RequestRecord;
use mantile::traffic::run::{DeploymentSettings, RunTotals, TrafficRun};
use mantile::traffic::sglang::SglangSettings;
use mantile::traffic::source::{
    Arrival, Arrivals, DrawnTraffic, LengthDistribution, RequestSource, replayed,
};
use mantile::traffic::step_load::StepLoad;
use mantile::traffic::trtllm::TrtllmSettings;
use mantile::traffic::vllm::VllmSettings;
use proptest::prelude::*;
use proptest::sample::select;

use crate::traffic::{
    AMPLE, AMPLE_SGLANG, AMPLE_TRTLLM, clock, equal_replicas, records, settings, sglang_settings, traffic,
    trtllm_settings,
};

const UNLIMITED: u64 = 1 << 40;
const TOKEN_BYTES: f64 = 1024.0;

fn tier(tokens: u64, bytes_per_s: f64, scope: TierScope) -> TierSettings {
    TierSettings { bytes: tokens * TOKEN_BYTES as u64, bytes_per_s, latency_s: 0.0, scope }
}

fn host(tokens: u64, bytes_per_s: f64) -> CacheTierSettings {
    CacheTierSettings {
        token_bytes: TOKEN_BYTES,
        layers: 4,
        prompts_only: false,
        host: tier(tokens, bytes_per_s, TierScope::Rank),
        store: None,
    }
}

fn tiered(settings: DeploymentSettings, tiers: CacheTierSettings) -> DeploymentSettings {
    let mut settings = settings;
    settings.pools.iter_mut().for_each(|pool| pool.tiers = Some(tiers.clone()));
    settings
}

fn one(scheduler: &SchedulerSettings, tiers: CacheTierSettings) -> DeploymentSettings {
    tiered(equal_replicas(scheduler.clone(), 1, 1), tiers)
}

/// Schedulers with a cache of `tokens` tokens, in blocks of 16, of which later prompts find whole ones.
fn small(tokens: u32) -> [SchedulerSettings; 3] {
    [
        SchedulerSettings::Vllm(VllmSettings { blocks: tokens / 16, block_tokens: 16, ..AMPLE }),
        SchedulerSettings::Sglang(SglangSettings { cache_tokens: tokens, page_tokens: 16, ..AMPLE_SGLANG }),
        SchedulerSettings::Trtllm(TrtllmSettings {
            blocks: tokens / 16,
            block_tokens: 16,
            partial_reuse: false,
            ..AMPLE_TRTLLM
        }),
    ]
}

fn any_scheduler() -> impl Strategy<Value = SchedulerSettings> {
    prop_oneof![
        settings().prop_map(SchedulerSettings::Vllm),
        trtllm_settings().prop_map(SchedulerSettings::Trtllm),
        sglang_settings().prop_map(SchedulerSettings::Sglang),
    ]
}

fn any_tiers() -> impl Strategy<Value = CacheTierSettings> {
    let rates = || select(vec![1e5, 1e7, f64::from(1 << 24), 1e12]);
    let scopes = select(vec![TierScope::Rank, TierScope::Replica, TierScope::Deployment]);
    let store = prop::option::of((200u64..100_000, rates(), scopes));
    (200u64..60_000, rates(), store, any::<bool>()).prop_map(|(tokens, rate, store, prompts_only)| {
        let store = store.map(|(tokens, rate, scope)| tier(tokens, rate, scope));
        CacheTierSettings { prompts_only, store, ..host(tokens, rate) }
    })
}

/// Turns of several sessions in turn, so that each session's cache is the longest unused when its next turn comes.
fn sessions(sessions: u64, turns: u32) -> RequestSource {
    let all = (0..turns).flat_map(|turn| (0..sessions).map(move |session| (turn, session)));
    let arrivals = all.zip(0..).map(|((turn, session), id)| {
        let run = |run: u32, tokens| TokenRun { id: session * 100 + u64::from(run), tokens };
        let mut runs: Vec<TokenRun> =
            (0..=turn).flat_map(|at| [run(2 * at, 203), run(2 * at + 1, 50)]).collect();
        runs.truncate(2 * turn as usize + 2);
        Arrival { time_s: 100.0 * id as f64, request: EngineRequest::new(id, runs, 253 * turn + 203, 50) }
    });
    replayed(arrivals.collect())
}

/// The same prompts again and again, one after the other.
fn again(distinct_prompts: u64, seed: u64) -> RequestSource {
    RequestSource::new(DrawnTraffic {
        arrivals: Arrivals::Clients(1),
        requests: 200,
        prompt: LengthDistribution::LogNormal { mean: 300.0, variation: 0.8 },
        output: LengthDistribution::Fixed(20),
        prefix: 40,
        prefix_groups: 2,
        distinct_prompts,
        sessions: None,
        seed,
    })
}

/// Host memory without limits has all that came before, as the cache without limits has.
#[test]
fn unlimited_host_memory_forgets_nothing() {
    for scheduler in small(2048) {
        let prompts = records(&one(&scheduler, host(UNLIMITED, 1e9)), again(40, 3), &clock).0;
        assert!(prompts.reusable_tokens > 10_000);
        assert_eq!(prompts.cached_tokens, prompts.reusable_tokens, "{scheduler:?}");
        let (alone, _) = records(&equal_replicas(scheduler.clone(), 1, 1), again(40, 3), &clock);
        assert!(alone.cached_tokens < prompts.cached_tokens / 2);
        let turns = records(&one(&scheduler, host(UNLIMITED, 1e9)), sessions(20, 4), &clock).0;
        assert_eq!(turns.cached_tokens, turns.reusable_tokens, "{scheduler:?}");
        assert!(turns.tiers.host_tokens > turns.cached_tokens * 9 / 10);
    }
    // Of prompts alone, the next turn finds the prompt before it, and computes the output after that.
    let [vllm, ..] = small(2048);
    let tiers = CacheTierSettings { prompts_only: true, ..host(UNLIMITED, 1e9) };
    let turns = records(&one(&vllm, tiers), sessions(20, 4), &clock).0;
    let whole = |tokens: u64| tokens / 16 * 16;
    assert_eq!(turns.cached_tokens, 20 * (whole(203) + whole(456) + whole(709)));
}

/// A load takes its bytes over the bandwidth: vLLM's request waits, TensorRT-LLM's step does, and SGLang's step computes
/// its first layers meanwhile.
#[test]
fn a_load_takes_its_time() {
    let step_s = 0.25;
    for (scheduler, (at, longest)) in small(1024).into_iter().zip([(0, 1010), (1, 992), (2, 1010)]) {
        let run = |run: u64, tokens| TokenRun { id: run, tokens };
        // The second prompt takes the whole cache, so that the third finds the first one's in host memory alone.
        let prompts = [(1, 130), (2, longest), (1, 130)];
        let arrivals = prompts.into_iter().zip(0u64..).map(|((prompt, tokens), id)| {
            let runs = vec![run(prompt, tokens), run(10 + id, 1)];
            Arrival { time_s: 100.0 * id as f64, request: EngineRequest::new(id, runs, tokens, 1) }
        });
        let settings = one(&scheduler, host(4096, 1e6));
        let (totals, all) = records(&settings, replayed(arrivals.collect()), &|_: &[StepLoad]| step_s);
        let load_s = 128.0 * TOKEN_BYTES / 1e6;
        let last = &all[2];
        assert_eq!((last.cached_tokens, last.host_tokens, last.store_tokens), (128, 128, 0), "{scheduler:?}");
        assert_eq!((totals.tiers.loads, totals.tiers.loaded_tokens), (1, 128));
        let near =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} for {expected}");
        near(last.load_s, load_s);
        let (queue_s, prefill_s) = (last.admitted_s - last.arrived_s, last.first_token_s - last.admitted_s);
        let (queued, prefilled) = match at {
            0 => (load_s, step_s),
            1 => (0.0, step_s + load_s / 4.0),
            _ => (0.0, step_s + load_s),
        };
        near(queue_s, queued);
        near(prefill_s, prefilled);
    }
}

/// The store gives what host memory no longer has, also to another replica where all have one.
#[test]
fn a_store_is_behind_host_memory() {
    let [vllm, sglang, _] = small(2048);
    for scheduler in [vllm, sglang] {
        let with = |scope| CacheTierSettings { store: Some(tier(UNLIMITED, 1e8, scope)), ..host(2048, 1e9) };
        let alone = records(&one(&scheduler, host(2048, 1e9)), sessions(20, 4), &clock).0;
        let stored = records(&one(&scheduler, with(TierScope::Replica)), sessions(20, 4), &clock).0;
        assert!(alone.cached_tokens < stored.cached_tokens / 4, "{scheduler:?}");
        assert!(stored.tiers.store_tokens > stored.cached_tokens / 2);
        // Turns of a session go to one replica and then to the other.
        let spread = |scope| {
            let two = equal_replicas(scheduler.clone(), 2, 1);
            let two = DeploymentSettings { router: mantile::traffic::router::RoutePolicy::RoundRobin, ..two };
            records(&tiered(two, with(scope)), sessions(21, 4), &clock).0.cached_tokens
        };
        assert!(spread(TierScope::Replica) < spread(TierScope::Deployment) * 2 / 3);
    }
}

/// Steps whose times are whole multiples of a power of two, so that their sums are exact. Those of all ranks are added: the
/// slowest rank may be another one in the middle of a jump, and a jump takes the mean of its first and its last step.
fn exact_clock(ranks: &[StepLoad]) -> f64 {
    let one = |load: &StepLoad| {
        let prompts: u64 = load.prompts.iter().map(|chunk| u64::from(chunk.new_tokens)).sum();
        (8192 + 16 * (u64::from(load.decoding) + prompts)) as f64 / f64::from(1 << 20)
            + load.kv_tokens as f64 / f64::from(1 << 24)
    };
    ranks.iter().map(one).sum()
}

fn stepped(settings: &DeploymentSettings, mut source: RequestSource) -> (RunTotals, Vec<RequestRecord>) {
    let mut run = TrafficRun::new(settings, &exact_clock).streamed();
    let mut all = vec![];
    while run.advance(&mut source, f64::INFINITY, &mut |one: &RequestRecord| all.push(*one)).is_some() {}
    (run.totals().clone(), all)
}

/// A rank without work goes round as often as one with work takes steps: vLLM's counts them between prompts, and SGLang's
/// forgets its estimate of the outputs.
#[test]
fn ranks_without_work_keep_step_with_others() {
    let tokens = |tokens: u64| host(tokens, f64::from(1 << 24));
    let store = |tokens: u64| Some(tier(tokens, f64::from(1 << 24), TierScope::Replica));
    let vllm = VllmSettings {
        token_budget: 300,
        max_sequences: 16,
        blocks: 1744,
        block_tokens: 1,
        whole_prompt_fits: false,
        reserved_blocks: 11,
        asynchronous: true,
        prefill_interval: Some(4),
        ..AMPLE
    };
    let sglang = SglangSettings {
        chunk_tokens: Some(128),
        max_requests: 16,
        cache_tokens: 3519,
        context_tokens: 4096,
        overlap: true,
        exact_output: false,
        ..AMPLE_SGLANG
    };
    let traffic = |clients: u64, requests: u64| DrawnTraffic {
        arrivals: Arrivals::Clients(clients),
        requests,
        prompt: LengthDistribution::Fixed(875),
        output: LengthDistribution::Fixed(68),
        prefix: 268,
        prefix_groups: 3,
        distinct_prompts: 9,
        sessions: None,
        seed: 0,
    };
    let short = DrawnTraffic {
        prompt: LengthDistribution::LogNormal { mean: 2.0, variation: 0.5841632813553136 },
        output: LengthDistribution::Fixed(103),
        prefix: 0,
        prefix_groups: 1,
        distinct_prompts: 16,
        seed: 1236496084172831745,
        ..traffic(9, 121)
    };
    let cases = [
        (SchedulerSettings::Vllm(vllm), tokens(2933), short),
        (
            SchedulerSettings::Sglang(sglang),
            CacheTierSettings { store: store(792), ..tokens(7083) },
            traffic(15, 82),
        ),
    ];
    for (scheduler, tiers, traffic) in cases {
        let settings = tiered(equal_replicas(scheduler, 1, 2), tiers);
        let source = || RequestSource::new(traffic.clone()).pausing(1.0 / f64::from(1 << 28));
        let (_, jumped) = records(&settings, source(), &exact_clock);
        assert!(jumped == stepped(&settings, source()).1, "{settings:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Tiers lose no request and no token, by tier and computed; a run is repeated bit for bit.
    #[test]
    fn nothing_is_lost(scheduler in any_scheduler(), tiers in any_tiers(), traffic in traffic(), replicas in 1usize..4, ranks in 1usize..3) {
        let settings = tiered(equal_replicas(scheduler, replicas, ranks), tiers);
        let (totals, all) = records(&settings, RequestSource::new(traffic.clone()), &clock);
        prop_assert_eq!(totals.answered + totals.refused, traffic.requests);
        for one in &all {
            prop_assert!(one.host_tokens + one.store_tokens <= one.cached_tokens && one.cached_tokens < one.prompt);
            prop_assert_eq!(one.load_s > 0.0, one.host_tokens + one.store_tokens > 0);
            prop_assert!(one.arrived_s <= one.admitted_s && one.admitted_s < one.first_token_s);
            prop_assert!(one.first_token_s <= one.last_token_s);
        }
        if totals.preemptions == 0 {
            prop_assert_eq!(totals.generated, totals.output_tokens);
            prop_assert_eq!(totals.computed_prompt_tokens, totals.prompt_tokens - totals.cached_tokens);
            prop_assert_eq!(totals.tiers.loaded_tokens, totals.tiers.host_tokens + totals.tiers.store_tokens);
        }
        let again = records(&settings, RequestSource::new(traffic), &clock);
        prop_assert_eq!(again.1, all);
    }

    /// Tiers of no size change nothing.
    #[test]
    fn empty_tiers_are_none(scheduler in any_scheduler(), traffic in traffic(), ranks in 1usize..3) {
        let alone = equal_replicas(scheduler, 2, ranks);
        let empty = CacheTierSettings { store: Some(tier(0, 1e6, TierScope::Deployment)), ..host(0, 1e6) };
        let of = |settings: &DeploymentSettings| records(settings, RequestSource::new(traffic.clone()), &clock);
        let (without, with) = (of(&alone), of(&tiered(alone.clone(), empty)));
        prop_assert_eq!(without.1, with.1);
        prop_assert_eq!(without.0, with.0);
    }

    /// Equal steps at once give what they give one by one, also where caches come from tiers in between.
    #[test]
    fn jumps_change_nothing(scheduler in any_scheduler(), tiers in any_tiers(), traffic in traffic(), clients in 1u64..40, ranks in 1usize..3) {
        let exact = |tier: TierSettings| TierSettings { bytes_per_s: f64::from(1 << 24), ..tier };
        let tiers = CacheTierSettings { host: exact(tiers.host), store: tiers.store.map(exact), ..tiers };
        let settings = tiered(equal_replicas(scheduler, 1, ranks), tiers);
        let traffic = DrawnTraffic { arrivals: Arrivals::Clients(clients), ..traffic };
        // No request comes in the very moment in which a step starts.
        let source = || RequestSource::new(traffic.clone()).pausing(1.0 / f64::from(1 << 28));
        let (totals, jumped) = records(&settings, source(), &exact_clock);
        let (other, stepped) = stepped(&settings, source());
        prop_assert_eq!(jumped, stepped);
        prop_assert_eq!(totals.tiers, other.tiers);
    }

    /// Tiers that take no time make no run much longer: a request of vLLM waits for the next step, and a load for memory for
    /// all of its prompt.
    #[test]
    fn a_tier_in_no_time_is_not_slower(scheduler in any_scheduler(), traffic in traffic()) {
        let alone = equal_replicas(scheduler, 1, 1);
        let of = |settings: &DeploymentSettings| records(settings, RequestSource::new(traffic.clone()), &clock).0;
        let (without, with) = (of(&alone), of(&tiered(alone.clone(), host(UNLIMITED, 1e15))));
        prop_assert!(with.end_s <= without.end_s * 1.25 + 0.1, "{} for {}", with.end_s, without.end_s);
    }

    /// Of one request at a time, larger tiers find no less.
    #[test]
    fn larger_tiers_find_no_less(at in 0usize..3, tokens in 0u64..20_000, more in 0u64..20_000, prompts in 5u64..80, seed in any::<u64>()) {
        let scheduler = &small(2048)[at];
        let found = |tokens: u64| records(&one(scheduler, host(tokens, 1e9)), again(prompts, seed), &clock).0.cached_tokens;
        // SGLang warns of host memory that is smaller than the cache of the device.
        let least = if at == 1 { 2048 } else { 0 };
        let (fewer, most) = (found(least + tokens), found(least + tokens + more));
        prop_assert!(fewer <= most, "{fewer} and {most}");
    }
}
