//! Laws of simulated traffic: nothing is lost, queues are those of queueing theory, and jumps change nothing.

use fastrand::Rng;
use mantile::request::UNCONTROLLED;
use mantile::request::optimize::{OptimizeRequest, optimize};
use mantile::request::simulate::{SimulateRequest, SimulatedTraffic, simulate};
use mantile::spec::deployment::Deployment;
use mantile::spec::percentile::Percentile;
use mantile::spec::role::Role;
use mantile::spec::scenario::Scenario;
use mantile::traffic::cache_tier::{CacheTierSettings, CacheTiers, TierScope, TierSettings};
use mantile::traffic::content::TokenRun;
use mantile::traffic::draft::DraftSettings;
use mantile::traffic::engine::{EngineEvent, EngineRequest, SchedulerSettings};
use mantile::traffic::llamacpp::LlamacppSettings;
use mantile::traffic::llamacpp::host_prompts::HostPromptSettings;
use mantile::traffic::operation::OperationSettings;
use mantile::traffic::outcome::RequestRecord;
use mantile::traffic::router::RoutePolicy;
use mantile::traffic::run::{DeploymentSettings, PoolSettings, RunTotals, run};
use mantile::traffic::sglang::{SglangPolicy, SglangSettings};
use mantile::traffic::source::{
    Arrival, Arrivals, DrawnTraffic, LengthDistribution, RequestSource, replayed,
};
use mantile::traffic::step_load::{DeploymentClock, StepClock, StepLoad};
use mantile::traffic::trtllm::{TrtllmCapacity, TrtllmSettings};
use mantile::traffic::vllm::VllmSettings;
use proptest::prelude::*;
use proptest::sample::select;

use crate::doors::catalog;

pub const AMPLE: VllmSettings = VllmSettings {
    token_budget: 8192,
    max_sequences: 256,
    blocks: 20_000,
    block_tokens: 16,
    chunked_prefill: true,
    long_prompt_threshold: None,
    prefix_caching: true,
    whole_prompt_fits: true,
    reserved_blocks: 0,
    asynchronous: false,
    draft: None,
    prefill_interval: None,
};

pub const AMPLE_SGLANG: SglangSettings = SglangSettings {
    prefill_tokens: 16_384,
    chunk_tokens: Some(8192),
    max_requests: 256,
    cache_tokens: 320_000,
    page_tokens: 1,
    context_tokens: u32::MAX,
    policy: SglangPolicy::Fcfs,
    conservativeness: 1.0,
    prefix_caching: true,
    mixed_chunk: false,
    overlap: true,
    output_limit: None,
    exact_output: false,
    prefill_requests: None,
    min_free_slots: None,
    decodes_after_prefill: 0,
    decodes_min_requests: 0,
    delayed_passes: None,
    receive_interval: 1,
    draft: None,
};

pub const AMPLE_TRTLLM: TrtllmSettings = TrtllmSettings {
    token_budget: 8192,
    max_requests: 256,
    blocks: 10_000,
    block_tokens: 32,
    capacity: TrtllmCapacity::GuaranteedNoEvict,
    chunked_prefill: true,
    block_reuse: true,
    partial_reuse: true,
    prefix_aware: true,
    overlap: true,
    output_limit: None,
    wait_steps: 0,
    wait_tokens_ratio: 0.0,
    draft: None,
};

pub const AMPLE_LLAMACPP: LlamacppSettings = LlamacppSettings {
    slots: 16,
    batch_tokens: 2048,
    context_tokens: 4096,
    unified: false,
    joined: true,
    prefix_caching: true,
    similarity: 0.1,
    host_prompts: None,
};

pub fn pool(scheduler: VllmSettings, replicas: usize, ranks: usize) -> DeploymentSettings {
    equal_replicas(SchedulerSettings::Vllm(scheduler), replicas, ranks)
}

pub fn equal_replicas(scheduler: SchedulerSettings, replicas: usize, ranks: usize) -> DeploymentSettings {
    PoolSettings::untiered(Role::Aggregated, (replicas, ranks), scheduler).into()
}

/// A step that reads its weights, its tokens and its cache.
pub fn clock(ranks: &[StepLoad]) -> f64 {
    let one = |load: &StepLoad| {
        let prompts: u64 = load.prompts.iter().map(|chunk| u64::from(chunk.new_tokens)).sum();
        8e-3 + 2e-5 * (f64::from(load.decoding) + prompts as f64) + 2e-8 * load.kv_tokens as f64
    };
    ranks.iter().map(one).fold(0.0, f64::max)
}

pub fn records(
    settings: &DeploymentSettings,
    source: RequestSource,
    clock: &impl DeploymentClock,
) -> (RunTotals, Vec<RequestRecord>) {
    let mut all = vec![];
    let totals = run(settings, source, clock, &mut |one| all.push(*one), &|| false);
    (totals, all)
}

/// No draft, or one of some quality.
fn drafts() -> impl Strategy<Value = Option<DraftSettings>> {
    let draft = (1u32..6, 0.0..=1.0f64).prop_map(|(tokens, acceptance)| DraftSettings { tokens, acceptance });
    prop_oneof![2 => Just(None), 1 => draft.prop_map(Some)]
}

pub fn settings() -> impl Strategy<Value = VllmSettings> {
    let sizes = (select(vec![64u32, 300, 2048, 8192]), select(vec![1u32, 3, 16, 256]), 1500u32..20_000);
    let intervals = select(vec![None, None, Some(4)]);
    let flags =
        (any::<bool>(), any::<bool>(), select(vec![None, Some(100)]), 0u32..40, any::<bool>(), intervals);
    let rest = (select(vec![1u32, 16, 32]), drafts());
    (sizes, flags, rest).prop_map(|((budget, most, tokens), flags, (block, draft))| VllmSettings {
        token_budget: budget,
        max_sequences: most,
        blocks: tokens / block,
        block_tokens: block,
        chunked_prefill: true,
        long_prompt_threshold: flags.2,
        prefix_caching: flags.0,
        whole_prompt_fits: flags.1,
        reserved_blocks: flags.3,
        asynchronous: flags.4,
        draft,
        prefill_interval: flags.5,
    })
}

pub fn trtllm_settings() -> impl Strategy<Value = TrtllmSettings> {
    let sizes = (select(vec![128u32, 300, 2048, 8192]), select(vec![1u32, 3, 16, 256]), 1500u32..20_000);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let waits = (select(vec![0u32, 0, 5]), select(vec![0.0, 0.5]));
    let rest = (select(vec![1u32, 16, 32]), drafts());
    (sizes, flags, waits, rest).prop_map(|((budget, most, tokens), flags, waits, (block, draft))| {
        TrtllmSettings {
            token_budget: budget,
            max_requests: most,
            blocks: tokens / block,
            block_tokens: block,
            capacity: if flags.0 {
                TrtllmCapacity::GuaranteedNoEvict
            } else {
                TrtllmCapacity::MaxUtilization
            },
            block_reuse: flags.1,
            partial_reuse: flags.2,
            prefix_aware: flags.3,
            overlap: flags.4,
            wait_steps: waits.0,
            wait_tokens_ratio: waits.1,
            draft,
            ..AMPLE_TRTLLM
        }
    })
}

pub fn sglang_settings() -> impl Strategy<Value = SglangSettings> {
    let sizes = (select(vec![None, Some(128u32), Some(2048)]), select(vec![2u32, 16, 256]), 1500u32..20_000);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let rest = (select(vec![1u32, 16]), drafts());
    (sizes, flags, rest).prop_map(|((chunk, most, tokens), flags, (page, draft))| SglangSettings {
        chunk_tokens: chunk,
        max_requests: most,
        cache_tokens: tokens,
        page_tokens: page,
        context_tokens: 4096,
        policy: if flags.0 { SglangPolicy::Lpm } else { SglangPolicy::Fcfs },
        prefix_caching: flags.1,
        mixed_chunk: flags.2,
        overlap: flags.3,
        draft,
        ..AMPLE_SGLANG
    })
}

fn llamacpp_settings() -> impl Strategy<Value = LlamacppSettings> {
    let sizes = (select(vec![1u32, 3, 16]), select(vec![16u32, 64, 300, 2048]), 900u32..5000);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let host =
        prop_oneof![Just(None), Just(Some(None)), (1000u64..20_000).prop_map(|bytes| Some(Some(bytes)))];
    (sizes, flags, host, select(vec![0.0, 0.1, 0.5])).prop_map(
        |((slots, batch, context), flags, host, similarity)| LlamacppSettings {
            slots,
            batch_tokens: batch,
            context_tokens: context,
            unified: flags.0,
            joined: flags.1,
            prefix_caching: flags.2,
            similarity,
            host_prompts: host.map(|bytes| HostPromptSettings {
                bytes,
                prompt_bytes: 10,
                token_bytes: 2,
                idle_slots: flags.3,
            }),
        },
    )
}

/// Steps as above; caches take their time from one pool to another.
pub struct Clocks;

const LATENCY_S: f64 = 2e-3;

impl StepClock for Clocks {
    fn seconds(&self, ranks: &[StepLoad]) -> f64 {
        clock(ranks)
    }
}

pub struct SplitClocks(pub Clocks);

impl DeploymentClock for SplitClocks {
    type Steps = Clocks;

    fn of(&self, _: usize) -> &Clocks {
        &self.0
    }

    fn transfer_s(&self, _: usize, _: usize, tokens: u32) -> f64 {
        LATENCY_S + 1e-5 * f64::from(tokens)
    }
}

/// Workers that prefill, and workers that decode, with the same scheduler; or both, next to replicas that do all.
pub fn split_deployments() -> impl Strategy<Value = DeploymentSettings> {
    let scheduler = prop_oneof![
        settings().prop_map(SchedulerSettings::Vllm),
        trtllm_settings().prop_map(SchedulerSettings::Trtllm),
        sglang_settings().prop_map(SchedulerSettings::Sglang),
    ];
    let sizes = (1usize..3, 1usize..3, 0usize..2, 1usize..3);
    (scheduler, sizes, routers()).prop_map(|(scheduler, (prefill, decode, both, ranks), router)| {
        let pool = |role, replicas| PoolSettings::untiered(role, (replicas, ranks), scheduler.clone());
        let pools = [(Role::Prefill, prefill), (Role::Aggregated, both), (Role::Decode, decode)];
        let pools = pools.into_iter().filter(|(_, replicas)| *replicas > 0);
        DeploymentSettings {
            pools: pools.map(|(role, n)| pool(role, n)).collect(),
            router,
            seed: 3,
            operation: OperationSettings::default(),
        }
    })
}

fn routers() -> impl Strategy<Value = RoutePolicy> {
    select(vec![
        RoutePolicy::LeastRequests,
        RoutePolicy::RoundRobin,
        RoutePolicy::Random,
        RoutePolicy::Session,
        RoutePolicy::Prefix,
    ])
}

/// Settings of schedulers, and whether it uses the cached tokens of earlier prompts.
fn schedulers() -> impl Strategy<Value = (SchedulerSettings, bool)> {
    prop_oneof![
        settings().prop_map(|of| (SchedulerSettings::Vllm(of.clone()), of.prefix_caching)),
        trtllm_settings().prop_map(|of| (SchedulerSettings::Trtllm(of.clone()), of.block_reuse)),
        llamacpp_settings().prop_map(|of| (SchedulerSettings::Llamacpp(of.clone()), of.prefix_caching)),
    ]
}

/// No tiers behind the device, or host memory with or without a store, whose loads take some steps of a second.
fn tiers() -> impl Strategy<Value = Option<CacheTierSettings>> {
    let tier = || (300u64..30_000, select(vec![30.0, 300.0, 1e5]));
    let sizes = (tier(), prop::option::of(tier()), any::<bool>());
    let tiers = sizes.prop_map(|(host, store, prompts_only)| {
        let tier = |(bytes, bytes_per_s), scope| TierSettings { bytes, bytes_per_s, latency_s: 0.0, scope };
        CacheTierSettings {
            token_bytes: 1.0,
            layers: 1,
            prompts_only,
            host: tier(host, TierScope::Rank),
            store: store.map(|store| tier(store, TierScope::Replica)),
        }
    });
    prop_oneof![1 => Just(None), 2 => tiers.prop_map(Some)]
}

/// A rate with one of these variations, or fewer clients than these.
pub fn arrivals(variations: Vec<f64>, clients: u64) -> impl Strategy<Value = Arrivals> {
    prop_oneof![
        (0.5f64..60.0, select(variations)).prop_map(|(per_s, variation)| Arrivals::Rate { per_s, variation }),
        (1..clients).prop_map(Arrivals::Clients),
    ]
}

pub fn lengths(most: u32) -> impl Strategy<Value = LengthDistribution> {
    prop_oneof![
        (1..most).prop_map(LengthDistribution::Fixed),
        (2.0..f64::from(most) / 3.0, 0.2f64..1.0)
            .prop_map(|(mean, variation)| LengthDistribution::LogNormal { mean, variation }),
    ]
}

pub fn traffic() -> impl Strategy<Value = DrawnTraffic> {
    let arrivals = arrivals(vec![0.0, 0.5, 1.0, 2.5], 60);
    (arrivals, 20u64..150, lengths(900), lengths(200), 0u32..300, 1u64..5, 0u64..20, any::<u64>()).prop_map(
        |(arrivals, requests, prompt, output, prefix, prefix_groups, distinct_prompts, seed)| DrawnTraffic {
            arrivals,
            requests,
            prompt,
            output,
            prefix,
            prefix_groups,
            distinct_prompts,
            sessions: None,
            seed,
        },
    )
}

proptest! {
    /// Law 1: requests and tokens are conserved; no request is served before it comes; the time of a request is that of
    /// its parts; a run is repeated bit for bit, from its distributions and from its own arrivals.
    #[test]
    fn nothing_is_lost((scheduler, caches) in schedulers(), traffic in traffic(), replicas in 1usize..4, ranks in 1usize..3) {
        // Requests that get errors have had steps.
        let fails = matches!(&scheduler, SchedulerSettings::Llamacpp(of) if of.unified);
        let settings = equal_replicas(scheduler, replicas, ranks);
        let (totals, all) = records(&settings, RequestSource::new(traffic.clone()), &clock);
        prop_assert_eq!(totals.answered + totals.refused, traffic.requests);
        prop_assert_eq!(all.len() as u64, totals.answered);
        let sum = |of: fn(&RequestRecord) -> u32| all.iter().map(|one| u64::from(of(one))).sum::<u64>();
        prop_assert_eq!(totals.output_tokens, sum(|one| one.output));
        prop_assert_eq!(totals.prompt_tokens, sum(|one| one.prompt));
        for one in &all {
            let times = [one.arrived_s, one.admitted_s, one.first_token_s, one.last_token_s];
            prop_assert!(times.is_sorted(), "{times:?}");
            prop_assert!(one.first_token_s > one.admitted_s);
            prop_assert!(one.cached_tokens < one.prompt);
            prop_assert!(caches || one.cached_tokens == 0);
        }
        if totals.preemptions == 0 && !fails {
            // Of each request, the prompt less what was found, and one token a step after the first.
            prop_assert_eq!(totals.computed_prompt_tokens + totals.cached_tokens, totals.prompt_tokens);
            prop_assert_eq!(totals.itl.count() + totals.accepted, sum(|one| one.output - 1));
        }
        // Little's law: requests in the system over time are those that come, times what each stays.
        let mut changes: Vec<(f64, i64)> = all.iter().flat_map(|one| [(one.arrived_s, 1), (one.last_token_s, -1)]).collect();
        changes.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut inside, mut area, mut last) = (0, 0.0, 0.0);
        for (time, change) in changes {
            area += inside as f64 * (time - last);
            (inside, last) = (inside + change, time);
        }
        prop_assert!((area - totals.request_seconds).abs() <= 1e-9 * area.max(1.0));
        let again = records(&settings, RequestSource::new(traffic), &clock);
        prop_assert_eq!(&again.1, &all);
    }

    /// Law 1 where prompts are computed on other workers than outputs, with any router.
    #[test]
    fn nothing_is_lost_on_the_way(deployment in split_deployments(), traffic in traffic()) {
        let clocks = SplitClocks(Clocks);
        let (totals, all) = records(&deployment, RequestSource::new(traffic.clone()), &clocks);
        prop_assert_eq!(totals.answered + totals.refused, traffic.requests);
        prop_assert_eq!(all.len() as u64, totals.answered);
        let sum = |of: fn(&RequestRecord) -> u32| all.iter().map(|one| u64::from(of(one))).sum::<u64>();
        prop_assert_eq!(totals.output_tokens, sum(|one| one.output));
        let decoders_alone = deployment.pools.iter().all(|pool| pool.role != Role::Aggregated);
        for one in &all {
            let times = [one.arrived_s, one.admitted_s, one.first_token_s, one.last_token_s];
            prop_assert!(times.is_sorted(), "{times:?}");
            let sent = one.transfer_s > 0.0;
            prop_assert!(!sent || one.transfer_s >= LATENCY_S + 1e-5 * f64::from(one.prompt) - 1e-9);
            prop_assert!(sent || !decoders_alone || one.output == 1);
            prop_assert!(one.admitted_s + one.transfer_s < one.first_token_s);
        }
        if totals.preemptions == 0 {
            // No token is given twice, but for those that a worker that prefills gave to one that computes them again.
            prop_assert_eq!(totals.generated, totals.output_tokens);
            let computed = totals.prompt_tokens - totals.cached_tokens;
            prop_assert!((computed..=computed + totals.answered).contains(&totals.computed_prompt_tokens));
        }
        let again = records(&deployment, RequestSource::new(traffic), &clocks);
        prop_assert_eq!(again.1, all);
    }

    /// Law 2: equal steps at once give what they give one by one.
    #[test]
    fn jumps_change_nothing((scheduler, _) in schedulers(), tiers in tiers(), seed in any::<u64>()) {
        let [jumped, stepped] = [true, false].map(|jumps| driven((&scheduler, tiers.as_ref()), seed, jumps));
        prop_assert_eq!(jumped, stepped);
    }

    /// Law 3: a larger cache makes no run longer by more than the noise of another order.
    #[test]
    fn more_cache_is_not_slower(scheduler in settings(), traffic in traffic()) {
        let wider = VllmSettings { blocks: scheduler.blocks * 2, ..scheduler.clone() };
        let [one, other] = [scheduler, wider].map(|scheduler| records(&pool(scheduler, 1, 1), RequestSource::new(traffic.clone()), &clock).0);
        prop_assume!(one.refused == other.refused);
        prop_assert!(other.end_s <= one.end_s * 1.05 + 0.1, "{} for {}", other.end_s, one.end_s);
    }

    /// A cache that slots share answers more requests where it is larger, but for the noise of another order.
    #[test]
    fn more_shared_cache_fails_less(scheduler in llamacpp_settings(), traffic in traffic()) {
        let scheduler = LlamacppSettings { unified: true, ..scheduler };
        let wider = LlamacppSettings { context_tokens: scheduler.context_tokens * 4, ..scheduler.clone() };
        let [one, other] = [scheduler, wider].map(|of| {
            let settings = equal_replicas(SchedulerSettings::Llamacpp(of), 1, 1);
            records(&settings, RequestSource::new(traffic.clone()), &clock).0
        });
        prop_assert!(other.refused <= one.refused + traffic.requests / 20, "{} for {}", other.refused, one.refused);
    }
}

/// A slot keeps the tokens of its last request, host memory those of the ones before it.
#[test]
fn slots_and_host_memory_keep_sessions() {
    let traffic = |sessions: u64| {
        let turns = (0..4u32).flat_map(move |turn| (0..sessions).map(move |session| (turn, session)));
        let arrivals = turns.zip(0..).map(|((turn, session), id)| {
            let run = |run: u32, tokens| TokenRun { id: session * 100 + u64::from(run), tokens };
            let mut runs: Vec<TokenRun> =
                (0..=turn).flat_map(|at| [run(2 * at, 200), run(2 * at + 1, 50)]).collect();
            runs.truncate(2 * turn as usize + 2);
            Arrival { time_s: 100.0 * id as f64, request: EngineRequest::new(id, runs, 250 * turn + 200, 50) }
        });
        replayed(arrivals.collect())
    };
    let cached = |slots: u32, sessions: u64, bytes: Option<u64>| {
        let host = |bytes| HostPromptSettings {
            bytes: Some(bytes),
            prompt_bytes: 0,
            token_bytes: 1,
            idle_slots: true,
        };
        let scheduler = LlamacppSettings { slots, host_prompts: bytes.map(host), ..AMPLE_LLAMACPP };
        let settings = equal_replicas(SchedulerSettings::Llamacpp(scheduler), 1, 1);
        records(&settings, traffic(sessions), &clock).0.cached_tokens
    };
    // A turn finds the prompt before it and its output, but for the last token of that.
    let all = |sessions: u64| sessions * (249 + 499 + 749);
    assert_eq!(cached(8, 6, None), all(6));
    assert_eq!(cached(2, 6, None), 0);
    assert_eq!(cached(2, 6, Some(1 << 20)), all(6));
    assert!(cached(2, 6, Some(2000)) < all(6) / 2);
}

/// Events of an engine by the number of their step; requests come before given steps.
fn driven(
    (settings, tiers): (&SchedulerSettings, Option<&CacheTierSettings>),
    seed: u64,
    jumps: bool,
) -> Vec<(u64, u64, EngineEvent)> {
    let mut rng = Rng::with_seed(seed);
    let mut coming: Vec<(u64, EngineRequest)> = (0..30)
        .map(|id| {
            let (prompt, output) = (rng.u32(1..700), rng.u32(1..150));
            let run = |id, tokens| TokenRun { id, tokens };
            let shared = rng.u32(0..=prompt);
            let runs = vec![run(rng.u64(0..3), shared), run(10 + id, prompt - shared), run(100 + id, output)];
            (rng.u64(0..400), EngineRequest::new(id, runs, prompt, output))
        })
        .collect();
    coming.sort_by_key(|(step, _)| *step);
    let mut coming = coming.into_iter().peekable();
    let block_tokens = settings.block_tokens();
    let store = tiers.and_then(|tiers| tiers.new_store(TierScope::Replica, block_tokens));
    let tiers = tiers.map(|tiers| CacheTiers::new(tiers.clone(), block_tokens, store));
    let mut engine = settings.tiered_engine(tiers);
    let (mut events, mut step, mut empty) = (vec![], 0, 0);
    loop {
        if engine.is_idle() {
            let Some((next, _)) = coming.peek() else { break };
            step = step.max(*next);
        }
        // A step takes a second.
        engine.set_time(step as f64, step as f64);
        while let Some((_, request)) = coming.next_if(|(at, _)| *at <= step) {
            if engine.can_ever_hold(&request) {
                engine.submit(request);
            }
        }
        engine.choose(&mut |id, event| events.push((step, id, event)));
        engine.settle();
        empty = if engine.load().is_empty() { empty + 1 } else { 0 };
        let load_s = engine.next_load_s();
        assert!(empty < 3 || load_s.is_some(), "the engine makes no step");
        let until = coming.peek().map_or(u64::MAX, |(next, _)| next - step);
        let until = load_s.map_or(until, |end_s| until.min(end_s.ceil() as u64 - step));
        let steps = if jumps { u64::from(engine.equal_steps()).min(until) as u32 } else { 1 };
        let last = step + u64::from(steps) - 1;
        engine.complete(steps, &mut |id, event| events.push((last, id, event)));
        step = last + 1;
    }
    events.sort_by_key(|(step, id, event)| (*step, *id, *event == EngineEvent::Finished));
    events
}

/// A block found one step late, a block found one step early, and one that a waiting prompt finds.
#[test]
fn jumps_that_once_changed_something_change_nothing() {
    let vllm = VllmSettings { max_sequences: 16, ..AMPLE };
    let of_parts = VllmSettings {
        blocks: 94,
        long_prompt_threshold: Some(100),
        whole_prompt_fits: false,
        reserved_blocks: 4,
        asynchronous: true,
        ..vllm.clone()
    };
    let whole =
        VllmSettings { token_budget: 300, blocks: 125, reserved_blocks: 11, asynchronous: true, ..vllm };
    let trtllm = TrtllmSettings {
        max_requests: 16,
        blocks: 119,
        block_tokens: 16,
        partial_reuse: false,
        ..AMPLE_TRTLLM
    };
    for (settings, seed) in [
        (SchedulerSettings::Vllm(of_parts), 14_716_615_857_313_992_745),
        (SchedulerSettings::Vllm(whole), 6_738_304_158_714_991_055),
        (SchedulerSettings::Trtllm(trtllm), 15_443_654_680_307_491_473),
    ] {
        assert_eq!(
            driven((&settings, None), seed, true),
            driven((&settings, None), seed, false),
            "seed {seed}"
        );
    }
}

pub fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    values.for_each(|value| (sum, count) = (sum + value, count + 1.0));
    sum / count
}

/// One server with constant service times: Pollaczek and Khinchine.
#[test]
fn a_single_slot_waits_as_m_d_1_does() {
    for load in [0.3, 0.7, 0.9] {
        let traffic = DrawnTraffic {
            arrivals: Arrivals::Rate { per_s: load / 0.01, variation: 1.0 },
            requests: 200_000,
            prompt: LengthDistribution::Fixed(10),
            output: LengthDistribution::Fixed(1),
            prefix: 0,
            prefix_groups: 1,
            distinct_prompts: 0,
            sessions: None,
            seed: 5,
        };
        let settings = pool(VllmSettings { max_sequences: 1, ..AMPLE }, 1, 1);
        let (_, all) = records(&settings, RequestSource::new(traffic), &|_: &[StepLoad]| 0.01);
        let found = mean(all.iter().map(|one| one.admitted_s - one.arrived_s));
        let expected = 0.01 * load / (2.0 * (1.0 - load));
        assert!((found / expected - 1.0).abs() < 0.05, "load {load}: {found} for {expected}");
    }
}

/// Several slots with geometric service times of many short steps: Erlang C.
#[test]
fn several_slots_wait_as_m_m_c_does() {
    let (slots, step_s, mean_steps) = (4u32, 1e-3, 300.0);
    for load in [0.5, 0.8] {
        let rate = load * f64::from(slots) / (step_s * mean_steps);
        let mut rng = Rng::with_seed(11);
        let mut clock_s = 0.0;
        let arrivals = (0..250_000).map(|id| {
            clock_s -= libm::log(1.0 - rng.f64()) / rate;
            let output =
                (libm::log(1.0 - rng.f64()) / libm::log(1.0 - 1.0 / mean_steps)).ceil().max(1.0) as u32;
            let runs = vec![TokenRun { id: 2 * id, tokens: 1 }, TokenRun { id: 2 * id + 1, tokens: output }];
            Arrival { time_s: clock_s, request: EngineRequest::new(id, runs, 1, output) }
        });
        let settings = pool(VllmSettings { max_sequences: slots, ..AMPLE }, 1, 1);
        let (_, all) = records(&settings, replayed(arrivals.collect()), &|_: &[StepLoad]| step_s);
        let found = mean(all.iter().map(|one| one.admitted_s - one.arrived_s));
        let (offered, count) = (load * f64::from(slots), f64::from(slots));
        let term = |n: u32| (1..=n).fold(1.0, |product, k| product * offered / f64::from(k));
        let full = term(slots) / (1.0 - load);
        let waits = full / ((0..slots).map(term).sum::<f64>() + full);
        let expected = waits * step_s * mean_steps / (count * (1.0 - load));
        // A request that finds a free slot waits for the end of a step.
        let step_wait = step_s / 2.0;
        assert!(
            (found - expected).abs() < 0.06 * expected + step_wait,
            "load {load}: {found} for {expected}"
        );
    }
}

/// TensorRT-LLM waits for good where a prompt under way comes after one that lacks memory for all of it; ours does not.
#[test]
fn a_prompt_under_way_is_not_left_behind() {
    let scheduler =
        TrtllmSettings { token_budget: 192, max_requests: 8, blocks: 8, block_tokens: 64, ..AMPLE_TRTLLM };
    // The second waits for the first one's blocks, so that the third starts before it; then it needs all blocks.
    let arrivals = [(256, 0, 1), (256, 192, 50), (0, 180, 1)].into_iter().zip(0..);
    let arrivals = arrivals.map(|((shared, own, output), id)| {
        let run = |id, tokens| TokenRun { id, tokens };
        let runs = vec![run(1, shared), run(10 + id, own), run(20 + id, output)];
        Arrival { time_s: 0.0, request: EngineRequest::new(id, runs, shared + own, output) }
    });
    let settings = equal_replicas(SchedulerSettings::Trtllm(scheduler), 1, 1);
    let (totals, _) = records(&settings, replayed(arrivals.collect()), &clock);
    assert_eq!(totals.answered, 3);
}

/// The same prompts again and again are found to their last whole block.
#[test]
fn repeated_prompts_are_found() {
    let traffic = DrawnTraffic {
        arrivals: Arrivals::Clients(4),
        requests: 400,
        prompt: LengthDistribution::Fixed(560),
        output: LengthDistribution::Fixed(20),
        prefix: 100,
        prefix_groups: 1,
        distinct_prompts: 10,
        sessions: None,
        seed: 2,
    };
    let (totals, all) = records(&pool(AMPLE, 1, 1), RequestSource::new(traffic), &clock);
    // The last token of a prompt is computed in any case, and its block with it.
    let later = all.iter().filter(|one| one.id >= 40);
    assert!(later.clone().count() > 300);
    later.for_each(|one| assert_eq!(one.cached_tokens, 544));
    assert!(totals.cached_tokens > 0);
}

/// A search whose SLOs are on a percentile of a rate simulates its best plans; each has the figures of `simulate`.
#[test]
fn a_search_simulates_its_best_plans() {
    let catalog = catalog();
    let scenario = Scenario {
        model: Some("Qwen3-32B".into()),
        hardware: Some("2xh100".into()),
        rate: Some(2.0),
        percentile: Some(Percentile::P95),
        isl: Some(800),
        osl: Some(120),
        ..Scenario::default()
    };
    let of = |check: Option<bool>| {
        let request = OptimizeRequest { scenario: scenario.clone(), check, ..OptimizeRequest::default() };
        optimize(catalog, &request, &UNCONTROLLED).unwrap()
    };
    assert!(of(Some(false)).checked.is_none());
    let found = of(None);
    let check = found.checked.as_ref().unwrap();
    assert_eq!(check.plans[0].notation, found.optimum().unwrap().notation);
    assert_eq!(check.plans[check.shown as usize].notation, found.best.as_ref().unwrap().notation);
    assert!(check.plans.len() > 1);
    assert_eq!(check.plans.len(), 5.min(1 + found.alternatives.len()));
    for plan in &check.plans {
        let deployment = Deployment { plan: Some(plan.notation.clone()), ..Deployment::default() };
        let planned = Scenario { deployment: Some(deployment), ..scenario.clone() };
        let traffic = SimulatedTraffic { requests: Some(check.requests), ..SimulatedTraffic::default() };
        let request = SimulateRequest { scenario: planned, traffic, ..SimulateRequest::default() };
        let alone = simulate(catalog, &request, &UNCONTROLLED).unwrap();
        let ttft = alone.latencies.iter().find(|row| row.metric == "ttft").unwrap();
        let simulated = plan.simulated.as_ref().unwrap();
        assert_eq!(Some(simulated.ttft_ms), ttft.p95_ms);
        assert_eq!(simulated.output_tok_s, alone.output_tok_s);
        assert_eq!(plan.meets_slos, Some(alone.goodput.unwrap() >= 0.95));
    }
    let first = check.plans.iter().position(|plan| plan.meets_slos == Some(true));
    assert_eq!(Some(check.shown), first.map(|at| at as u64));
}
