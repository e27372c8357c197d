//! Laws of operation: clients that give up, replicas that fail, and replicas that come and go lose nothing.

use fastrand::Rng;
use mantile::report::simulate::SimulateReport;
use mantile::request::UNCONTROLLED;
use mantile::request::simulate::{SimulateRequest, SimulatedTraffic, simulate};
use mantile::request::simulated_operation::SimulatedOperation;
use mantile::spec::degree::Degrees;
use mantile::spec::deployment::Deployment;
use mantile::spec::error::Error;
use mantile::spec::role::Role;
use mantile::spec::scenario::Scenario;
use mantile::traffic::content::TokenRun;
use mantile::traffic::engine::{EngineEvent, EngineRequest, SchedulerSettings};
use mantile::traffic::operation::{FaultTimes, OperationSettings};
use mantile::traffic::outcome::{Distribution, RequestRecord};
use mantile::traffic::run::{DeploymentSettings, PoolSettings};
use mantile::traffic::scaler::{ScaleSignal, ScalerSettings};
use mantile::traffic::session::DrawnSessions;
use mantile::traffic::sglang::SglangSettings;
use mantile::traffic::source::{
    Arrival, Arrivals, DrawnTraffic, LengthDistribution, RequestSource, replayed,
};
use mantile::traffic::step_load::StepLoad;
use mantile::traffic::trtllm::TrtllmSettings;
use mantile::traffic::vllm::VllmSettings;
use proptest::prelude::*;
use proptest::sample::select;

use crate::doors::catalog;
use crate::traffic::{
    AMPLE, AMPLE_SGLANG, AMPLE_TRTLLM, Clocks, SplitClocks, clock, equal_replicas, pool, records, settings,
    sglang_settings, split_deployments, traffic, trtllm_settings,
};

fn any_scheduler() -> impl Strategy<Value = SchedulerSettings> {
    prop_oneof![
        settings().prop_map(SchedulerSettings::Vllm),
        trtllm_settings().prop_map(SchedulerSettings::Trtllm),
        sglang_settings().prop_map(SchedulerSettings::Sglang),
    ]
}

fn faults(replicas: usize) -> impl Strategy<Value = FaultTimes> {
    let times = prop::collection::vec(0.0f64..20.0, 1..5);
    prop_oneof![
        (times, 0..replicas).prop_map(|(times_s, replica)| FaultTimes::At { times_s, replica }),
        (2.0f64..40.0).prop_map(|mean_s| FaultTimes::Drawn { mean_s }),
    ]
}

fn scalers() -> impl Strategy<Value = ScalerSettings> {
    let signals =
        select(vec![(ScaleSignal::Queue, 2.0), (ScaleSignal::Requests, 6.0), (ScaleSignal::KvCache, 0.4)]);
    (signals, 1usize..3, 0usize..4, 0.2f64..3.0, 0.0f64..10.0).prop_map(
        |((signal, target), least, more, interval_s, scale_down_s)| ScalerSettings {
            signal,
            target,
            least,
            most: least + more,
            interval_s,
            scale_down_s,
        },
    )
}

fn operated(settings: DeploymentSettings, operation: OperationSettings) -> DeploymentSettings {
    DeploymentSettings { operation, ..settings }
}

fn of_clients(client_timeout_s: f64) -> OperationSettings {
    OperationSettings { client_timeout_s: Some(client_timeout_s), ..OperationSettings::default() }
}

fn of_faults(faults: FaultTimes, startup_s: f64) -> OperationSettings {
    OperationSettings { faults: Some(faults), startup_s, retries: 5, ..OperationSettings::default() }
}

fn of_scaler(scaler: ScalerSettings, startup_s: f64) -> OperationSettings {
    OperationSettings { scaler: Some(scaler), startup_s, ..OperationSettings::default() }
}

/// The numbers of the requests are those of different ones.
fn answered_once(all: &[RequestRecord]) -> bool {
    let mut ids: Vec<u64> = all.iter().map(|one| one.id).collect();
    ids.sort_unstable();
    ids.windows(2).all(|pair| pair[0] < pair[1])
}

proptest! {
    /// Law 1: each request is answered, refused or given up; no answer comes after its client has gone; the run is
    /// repeated bit for bit. Wherever the request is: in a queue, in a step, or on its way to a worker that decodes.
    #[test]
    fn requests_given_up_are_accounted_for(
        deployment in split_deployments(), traffic in traffic(), timeout_s in 0.02f64..4.0
    ) {
        let deployment = operated(deployment, of_clients(timeout_s));
        let clocks = SplitClocks(Clocks);
        let (totals, all) = records(&deployment, RequestSource::new(traffic.clone()), &clocks);
        prop_assert_eq!(totals.answered + totals.refused + totals.aborted, traffic.requests);
        prop_assert_eq!(all.len() as u64, totals.answered);
        prop_assert!(answered_once(&all));
        for one in &all {
            prop_assert!(one.e2e_s() <= timeout_s + 1e-9, "{}", one.e2e_s());
            let times = [one.arrived_s, one.admitted_s, one.first_token_s, one.last_token_s];
            prop_assert!(times.is_sorted(), "{times:?}");
        }
        prop_assert!(totals.aborted > 0 || totals.wasted == 0);
        // A request takes part in no step after the next ones that follow its end; a step gives it one token, and those
        // of its draft.
        let drafts = deployment.pools.iter().filter_map(|pool| pool.scheduler.draft());
        let of_step = 1 + drafts.map(|draft| u64::from(draft.tokens)).max().unwrap_or(0);
        let further = (3 * totals.aborted + totals.answered) * of_step;
        prop_assert!(totals.generated <= totals.output_tokens + totals.wasted + further);
        let again = records(&deployment, RequestSource::new(traffic), &clocks);
        prop_assert_eq!(again.1, all);
    }

    /// Law 1 of tokens: each that vLLM's steps gave is of an answer, or wasted.
    #[test]
    fn tokens_given_up_are_accounted_for(
        scheduler in settings(), traffic in traffic(), replicas in 1usize..3, timeout_s in 0.02f64..4.0
    ) {
        let deployment = operated(pool(scheduler, replicas, 1), of_clients(timeout_s));
        let (totals, _) = records(&deployment, RequestSource::new(traffic), &clock);
        prop_assume!(totals.preemptions == 0);
        prop_assert_eq!(totals.generated, totals.output_tokens + totals.wasted);
    }

    /// Law 2: clients that wait for longer than any answer takes change nothing, nor do faults after the last answer, nor
    /// a scaler without a choice.
    #[test]
    fn an_operation_without_events_changes_nothing(
        scheduler in any_scheduler(), traffic in traffic(), replicas in 1usize..4, scaler in scalers()
    ) {
        let settings = equal_replicas(scheduler, replicas, 2);
        let (plain, all) = records(&settings, RequestSource::new(traffic.clone()), &clock);
        let late = plain.end_s + 1.0;
        let scaler = ScalerSettings { least: replicas, most: replicas, ..scaler };
        let satisfied = ScalerSettings { target: 1e9, most: replicas + 3, ..scaler.clone() };
        for operation in [
            of_clients(late),
            of_faults(FaultTimes::At { times_s: vec![late], replica: 0 }, 1.0),
            of_scaler(scaler, 1.0),
            of_scaler(satisfied, 1.0),
        ] {
            let scales = operation.scaler.is_some();
            let of = operated(settings.clone(), operation);
            let (totals, operated) = records(&of, RequestSource::new(traffic.clone()), &clock);
            prop_assert_eq!(&operated, &all);
            prop_assert_eq!((totals.aborted, totals.faults, totals.lost, totals.wasted), (0, 0, 0, 0));
            prop_assert_eq!(totals.steps, plain.steps);
            let held = replicas as f64 * totals.lasted_s;
            prop_assert!(!scales || (totals.replica_seconds - held).abs() <= 1e-9 * held);
        }
    }

    /// Law 3: requests that are lost with a replica are sent again, and answered once, by whatever the fault takes: a
    /// step, a queue, a cache that waits for a worker, or one on its way.
    #[test]
    fn lost_requests_are_answered_once(
        deployment in split_deployments(), traffic in traffic(), faults in faults(2), startup_s in 0.1f64..10.0,
        timeout_s in select(vec![None, None, Some(3.0)])
    ) {
        let operation = OperationSettings { client_timeout_s: timeout_s, ..of_faults(faults, startup_s) };
        let deployment = operated(deployment, operation);
        let clocks = SplitClocks(Clocks);
        let (totals, all) = records(&deployment, RequestSource::new(traffic.clone()), &clocks);
        let unanswered = totals.aborted + totals.failed;
        prop_assert_eq!(totals.answered + totals.refused + unanswered, traffic.requests);
        prop_assert_eq!(totals.unanswered.len() as u64, unanswered);
        prop_assert!(answered_once(&all) && all.len() as u64 == totals.answered);
        prop_assert!(all.iter().all(|one| !totals.unanswered.contains(&one.id) && one.retries <= 5));
        // One that fails was lost once more than it was sent again.
        let retries: u64 = all.iter().map(|one| u64::from(one.retries)).sum();
        let lost = retries + 6 * totals.failed;
        prop_assert!(lost <= totals.lost && (timeout_s.is_some() || lost == totals.lost));
        prop_assert!(totals.faults > 0 || totals.lost == 0);
        for one in &all {
            let times = [one.arrived_s, one.admitted_s, one.first_token_s, one.last_token_s];
            prop_assert!(times.is_sorted(), "{times:?}");
        }
        let again = records(&deployment, RequestSource::new(traffic), &clocks);
        prop_assert_eq!(again.1, all);
    }

    /// Law 4: replicas that come and go lose nothing; they are held for no less and no more than the bounds say, and the
    /// timeline agrees.
    #[test]
    fn scaled_replicas_lose_nothing(
        scheduler in any_scheduler(), traffic in traffic(), scaler in scalers(), startup_s in 0.0f64..5.0,
        mean_s in select(vec![None, Some(10.0)])
    ) {
        let faults = mean_s.map(|mean_s| FaultTimes::Drawn { mean_s });
        let operation = OperationSettings { faults, retries: u32::MAX, ..of_scaler(scaler.clone(), startup_s) };
        let deployment = operated(equal_replicas(scheduler, scaler.least, 1), operation);
        let (totals, all) = records(&deployment, RequestSource::new(traffic.clone()), &clock);
        prop_assert_eq!(totals.answered + totals.refused, traffic.requests);
        prop_assert!(answered_once(&all));
        let [least, most] = [scaler.least, scaler.most].map(|replicas| replicas as f64 * totals.lasted_s);
        prop_assert!(totals.replica_seconds >= least * (1.0 - 1e-9), "{} of {least}", totals.replica_seconds);
        prop_assert!(totals.replica_seconds <= most * (1.0 + 1e-9), "{} of {most}", totals.replica_seconds);
        for point in totals.timeline.points() {
            prop_assert!(point.replicas.is_some_and(|replicas| replicas <= scaler.most as u64));
        }
        let again = records(&deployment, RequestSource::new(traffic), &clock);
        prop_assert_eq!(again.1, all);
    }

    /// Law 5: engines give back all that requests had which were given up, at any point of their lives; several equal
    /// steps at once are the same as one by one.
    #[test]
    fn caches_are_empty_at_the_end(scheduler in any_scheduler(), seed in any::<u64>()) {
        let [jumped, stepped] = [true, false].map(|jumps| driven(&scheduler, seed, jumps));
        prop_assert_eq!(jumped, stepped);
    }
}

/// Requests that end, and that are given up with the tokens that they had, by the number of their step. Some are given up
/// before a random step.
fn driven(settings: &SchedulerSettings, seed: u64, jumps: bool) -> Vec<(u64, u64, Option<u32>)> {
    let mut rng = Rng::with_seed(seed);
    let mut changes: Vec<(u64, u64, Option<EngineRequest>)> = vec![];
    let mut engine = settings.engine();
    for id in 0..30 {
        let (prompt, output) = (rng.u32(1..700), rng.u32(1..150));
        let run = |id, tokens| TokenRun { id, tokens };
        let shared = rng.u32(0..=prompt);
        let runs = vec![run(rng.u64(0..3), shared), run(10 + id, prompt - shared), run(100 + id, output)];
        let request = EngineRequest::new(id, runs, prompt, output);
        let comes = rng.u64(0..300);
        if engine.can_ever_hold(&request) {
            changes.push((comes, id, Some(request)));
        }
        if rng.bool() {
            changes.push((comes + rng.u64(0..150), id, None));
        }
    }
    changes.sort_by_key(|(step, id, request)| (*step, *id, request.is_none()));
    let mut changes = changes.into_iter().peekable();
    let (mut events, mut step, mut empty) = (vec![], 0, 0);
    loop {
        if engine.is_idle() {
            let Some((next, ..)) = changes.peek() else { break };
            step = step.max(*next);
        }
        while let Some((_, id, request)) = changes.next_if(|(at, ..)| *at <= step) {
            match request {
                Some(request) => engine.submit(request),
                None => events.extend(engine.abort(id).map(|tokens| (step, id, Some(tokens)))),
            }
        }
        if engine.is_idle() {
            continue;
        }
        let mut note = |at: u64, id: u64, event: EngineEvent| {
            if event == EngineEvent::Finished {
                events.push((at, id, None));
            }
        };
        engine.choose(&mut |id, event| note(step, id, event));
        engine.settle();
        empty = if engine.load().is_empty() { empty + 1 } else { 0 };
        assert!(empty < 4, "the engine makes no step");
        let until = changes.peek().map_or(u64::MAX, |(next, ..)| next - step);
        let steps = if jumps { u64::from(engine.equal_steps()).min(until) as u32 } else { 1 };
        let last = step + u64::from(steps) - 1;
        engine.complete(steps, &mut |id, event| note(last, id, event));
        step = last + 1;
    }
    assert_eq!((engine.queued(), engine.cache_used()), ((0, 0), 0));
    events.sort_unstable();
    events
}

/// A request with an output of `output` tokens, at its time.
fn arrival(id: u64, time_s: f64, output: u32) -> Arrival {
    let run = |id, tokens| TokenRun { id, tokens };
    let runs = vec![run(2 * id, 10), run(2 * id + 1, output)];
    Arrival { time_s, request: EngineRequest::new(id, runs, 10, output) }
}

fn tenths(_: &[StepLoad]) -> f64 {
    0.1
}

#[test]
fn a_client_that_gives_up_leaves_its_slot_to_the_next() {
    let one_slot = [
        SchedulerSettings::Vllm(VllmSettings { max_sequences: 1, ..AMPLE }),
        SchedulerSettings::Sglang(SglangSettings { max_requests: 1, overlap: false, ..AMPLE_SGLANG }),
        SchedulerSettings::Trtllm(TrtllmSettings { max_requests: 1, overlap: false, ..AMPLE_TRTLLM }),
    ];
    for scheduler in one_slot {
        // The first takes 10 s and is given up at 2 s; the second takes half a second from then on.
        let settings = operated(equal_replicas(scheduler.clone(), 1, 1), of_clients(2.0));
        let arrivals = vec![arrival(0, 0.0, 100), arrival(1, 1.0, 5)];
        let (totals, all) = records(&settings, replayed(arrivals), &tenths);
        assert_eq!((totals.answered, totals.aborted), (1, 1));
        let ended = all[0].last_token_s;
        // With one step more where the runtime ends a request with its next token.
        assert!((2.5 - 1e-9..2.7 + 1e-9).contains(&ended), "{ended} of {scheduler:?}");
        assert!((18..=21).contains(&totals.wasted), "{}", totals.wasted);
    }
}

#[test]
fn a_lost_request_is_computed_anew_on_the_replica_that_comes_back() {
    let faults = FaultTimes::At { times_s: vec![0.55], replica: 0 };
    let settings = operated(pool(AMPLE, 1, 1), of_faults(faults, 2.0));
    let (totals, all) = records(&settings, replayed(vec![arrival(0, 0.0, 10), arrival(1, 1.0, 3)]), &tenths);
    assert_eq!((totals.faults, totals.lost, totals.wasted), (1, 1, 5));
    // Both wait for the replica, which serves again at 2.55 s; the second one joins the second step.
    let ends: Vec<f64> = all.iter().map(|one| one.last_token_s).collect();
    assert!((ends[0] - 2.95).abs() < 1e-9 && (ends[1] - 3.55).abs() < 1e-9, "{ends:?}");
    assert_eq!(
        all.iter().map(|one| (one.retries, one.in_recovery)).collect::<Vec<_>>(),
        [(0, true), (1, false)]
    );
}

#[test]
fn a_lost_request_goes_to_another_replica_at_once() {
    let faults = FaultTimes::At { times_s: vec![0.55], replica: 0 };
    let settings = operated(pool(AMPLE, 2, 1), of_faults(faults, 1e6));
    let (totals, all) = records(&settings, replayed(vec![arrival(0, 0.0, 10), arrival(1, 0.0, 10)]), &tenths);
    assert_eq!((totals.faults, totals.lost), (1, 1));
    let ends: Vec<(u64, f64)> = all.iter().map(|one| (one.id, one.last_token_s)).collect();
    // It is seen when the sixth step of the other replica ends.
    assert!((ends[0].1 - 1.0).abs() < 1e-9 && (ends[1].1 - 1.6).abs() < 1e-9, "{ends:?}");
}

#[test]
fn a_request_fails_that_is_lost_too_often() {
    let faults = FaultTimes::At { times_s: vec![0.55, 3.0, 5.5], replica: 0 };
    let operation = OperationSettings { retries: 1, ..of_faults(faults, 2.0) };
    let settings = operated(pool(AMPLE, 1, 1), operation);
    let (totals, all) = records(&settings, replayed(vec![arrival(0, 0.0, 10), arrival(1, 4.0, 10)]), &tenths);
    // The first is lost at 0.55 s and, on the replica that serves again from 2.55 s on, at 3 s; the second at 5.5 s.
    assert_eq!((totals.failed, totals.lost, totals.answered), (1, 3, 1));
    assert_eq!(totals.unanswered, [0]);
    assert!((all[0].last_token_s - 8.5).abs() < 1e-9, "{}", all[0].last_token_s);
}

/// A turn that is not answered ends its session; its client begins the next one.
#[test]
fn a_session_ends_with_the_turn_that_is_given_up() {
    let sessions = DrawnSessions {
        turns: 5.0,
        turns_variation: 0.0,
        new: LengthDistribution::Fixed(20),
        think_s: 0.5,
        think_variation: 0.0,
    };
    let traffic = DrawnTraffic {
        arrivals: Arrivals::Clients(3),
        requests: 400,
        prompt: LengthDistribution::Fixed(50),
        output: LengthDistribution::LogNormal { mean: 10.0, variation: 1.0 },
        prefix: 0,
        prefix_groups: 1,
        distinct_prompts: 0,
        sessions: Some(sessions),
        seed: 5,
    };
    let settings = operated(pool(AMPLE, 1, 1), of_clients(2.0));
    let (totals, _) = records(&settings, RequestSource::new(traffic), &tenths);
    assert_eq!(totals.answered + totals.aborted, 400);
    assert!(totals.aborted > 10);
    assert_eq!((totals.sessions.given_up, totals.sessions.cut), (totals.aborted, 0));
    // Of each session that has ended: five turns, or fewer and one that was given up.
    assert!(totals.sessions.started > 400 / 5 + 3 && totals.sessions.started <= 400 / 5 + totals.aborted + 3);
}

/// Requests of a queue with several servers: arrivals at a rate, geometric outputs.
fn queue(rate: f64, requests: u64, mean_steps: f64) -> Vec<Arrival> {
    let (mut rng, mut clock_s) = (Rng::with_seed(11), 0.0);
    let arrivals = (0..requests).map(|id| {
        clock_s -= libm::log(1.0 - rng.f64()) / rate;
        let output = (libm::log(1.0 - rng.f64()) / libm::log(1.0 - 1.0 / mean_steps)).ceil().max(1.0) as u32;
        arrival(id, clock_s, output)
    });
    arrivals.collect()
}

fn p99(all: &[RequestRecord]) -> f64 {
    let mut times = Distribution::default();
    all.iter().for_each(|one| times.add(one.e2e_s(), 1));
    times.percentile(0.99).unwrap()
}

/// More replicas never worsen the slowest hundredth: fixed ones, and those that a scaler may add. All of them are held
/// for longer.
#[test]
fn more_replicas_are_not_slower() {
    let arrivals = || replayed(queue(6.0, 20_000, 50.0));
    let step = |_: &[StepLoad]| 0.01;
    let one_slot = VllmSettings { max_sequences: 1, ..AMPLE };
    let fixed = |replicas| records(&pool(one_slot.clone(), replicas, 1), arrivals(), &step);
    let fixed: Vec<_> = (4..8).map(fixed).collect();
    for pair in fixed.windows(2) {
        assert!(p99(&pair[1].1) <= p99(&pair[0].1) * 1.02, "{} for {}", p99(&pair[1].1), p99(&pair[0].1));
        assert!(pair[1].0.replica_seconds > pair[0].0.replica_seconds);
    }
    let scaled = |most| {
        let scaler = ScalerSettings {
            signal: ScaleSignal::Requests,
            target: 0.8,
            least: 4,
            most,
            interval_s: 1.0,
            scale_down_s: 5.0,
        };
        records(&operated(pool(one_slot.clone(), 4, 1), of_scaler(scaler, 0.5)), arrivals(), &step)
    };
    let scaled: Vec<_> = (4..8).map(scaled).collect();
    assert_eq!(scaled[0].1, fixed[0].1);
    for (fewer, more) in scaled.iter().zip(&scaled[1..]) {
        assert!(p99(&more.1) <= p99(&fewer.1) * 1.02, "{} for {}", p99(&more.1), p99(&fewer.1));
    }
    for (scaled, fixed) in scaled.iter().zip(&fixed).skip(1) {
        assert!(scaled.0.replica_seconds < fixed.0.replica_seconds);
        assert!(p99(&scaled.1) >= p99(&fixed.1) * 0.98);
    }
}

/// Two bursts: replicas come with each, and go after the delay.
#[test]
fn replicas_follow_the_load() {
    let burst = |at: f64| (0..60u64).map(move |n| (at + n as f64 * 0.5, 100));
    let ids = 0..;
    let bursts = burst(10.0).chain(burst(300.0)).chain([(600.0, 5)]);
    let arrivals = bursts.zip(ids).map(|((time_s, output), id)| arrival(id, time_s, output)).collect();
    let scaler = ScalerSettings {
        signal: ScaleSignal::Requests,
        target: 4.0,
        least: 1,
        most: 6,
        interval_s: 5.0,
        scale_down_s: 30.0,
    };
    let one = VllmSettings { max_sequences: 4, ..AMPLE };
    let settings = operated(pool(one, 1, 1), of_scaler(scaler, 10.0));
    let (totals, _) = records(&settings, replayed(arrivals), &tenths);
    let serving = |from: f64, to: f64| {
        let points = totals.timeline.points().iter().filter(|point| (from..to).contains(&point.time_s));
        points.filter_map(|point| point.replicas).max().unwrap()
    };
    assert_eq!((serving(0.0, 15.0), serving(200.0, 300.0), serving(550.0, 601.0)), (1, 1, 1));
    assert!(serving(15.0, 60.0) >= 5 && serving(300.0, 400.0) >= 5);
    // No replica is added before its start-up time is over.
    let more = totals.timeline.points().iter().find(|point| point.replicas > Some(1)).unwrap();
    assert!(more.time_s >= 25.0, "{}", more.time_s);
}

/// A fault hits those that arrive while its replica starts.
#[test]
fn recovery_is_slower_than_the_rest() {
    let arrivals = replayed(queue(6.0, 20_000, 50.0));
    let faults = FaultTimes::At { times_s: vec![500.0, 1500.0, 2500.0], replica: 2 };
    let one_slot = VllmSettings { max_sequences: 1, ..AMPLE };
    let settings = operated(pool(one_slot, 5, 1), of_faults(faults, 120.0));
    let (totals, all) = records(&settings, arrivals, &|_: &[StepLoad]| 0.01);
    assert_eq!((totals.faults, totals.answered), (3, 20_000));
    let (within, outside): (Vec<RequestRecord>, Vec<RequestRecord>) =
        all.into_iter().partition(|one| one.in_recovery);
    // 120 s of each of the faults, at 6 requests a second.
    assert!((within.len() as f64 / (3.0 * 120.0 * 6.0) - 1.0).abs() < 0.1, "{}", within.len());
    assert!(p99(&within) > p99(&outside) * 1.2, "{} for {}", p99(&within), p99(&outside));
}

/// An overloaded server has a queue that grows without limit, unless clients give up: then each is in it for no longer
/// than they wait. Under a light load, hardly any has to give up.
#[test]
fn clients_that_give_up_bound_the_queue() {
    let one_slot = VllmSettings { max_sequences: 1, ..AMPLE };
    let under = |per_s: f64| {
        let traffic = DrawnTraffic {
            arrivals: Arrivals::Rate { per_s, variation: 1.0 },
            requests: 20_000,
            prompt: LengthDistribution::Fixed(10),
            output: LengthDistribution::Fixed(1),
            prefix: 0,
            prefix_groups: 1,
            distinct_prompts: 0,
            sessions: None,
            seed: 5,
        };
        let settings = operated(pool(one_slot.clone(), 1, 1), of_clients(1.0));
        records(&settings, RequestSource::new(traffic), &tenths).0
    };
    // Of a server for 10 requests a second.
    let (overloaded, light) = (under(20.0), under(2.0));
    assert_eq!(overloaded.answered + overloaded.aborted, 20_000);
    assert!(overloaded.aborted > 10_000);
    assert!(overloaded.request_seconds <= 20_000.0 * 1.0 + 1e-6);
    assert!(light.aborted < 20, "{}", light.aborted);
}

#[test]
fn roles_have_their_own_faults() {
    // A decoding worker fails while it decodes: prompts are computed again.
    let scheduler = SchedulerSettings::Sglang(AMPLE_SGLANG);
    let pool = |role| PoolSettings::untiered(role, (1, 1), scheduler.clone());
    let faults = FaultTimes::At { times_s: vec![0.55], replica: 1 };
    let settings = DeploymentSettings {
        pools: vec![pool(Role::Prefill), pool(Role::Decode)],
        operation: of_faults(faults, 1.0),
        ..equal_replicas(scheduler.clone(), 1, 1)
    };
    let (totals, all) = records(&settings, replayed(vec![arrival(0, 0.0, 20)]), &tenths);
    assert_eq!((totals.lost, totals.answered, all[0].retries), (1, 1, 1));
    // The worker that had computed the prompt has its cache, but for the last token.
    assert_eq!(totals.computed_prompt_tokens, 11);
    assert!(all[0].last_token_s > 1.55 + 1.8);
}

/// A small plan under a rate, operated like this.
fn simulated(operation: SimulatedOperation) -> Result<SimulateReport, Error> {
    let both = Degrees { tp: Some(1), replicas: Some(2), ..Degrees::default() };
    let scenario = Scenario {
        model: Some("Qwen3-14B".into()),
        hardware: Some("2xh100".into()),
        rate: Some(6.0),
        isl: Some(500),
        osl: Some(100),
        ttft: Some("5s".into()),
        deployment: Some(Deployment { both, ..Deployment::default() }),
        ..Scenario::default()
    };
    let traffic = SimulatedTraffic { requests: Some(600), ..SimulatedTraffic::default() };
    let request = SimulateRequest { scenario, traffic, operation, ..SimulateRequest::default() };
    simulate(catalog(), &request, &UNCONTROLLED)
}

#[test]
fn an_answer_has_the_figures_of_its_operation() {
    let plain = simulated(SimulatedOperation::default()).unwrap();
    assert!(plain.operation.is_none() && plain.timeline.iter().all(|point| point.replicas.is_none()));
    let [replicas] = &plain.pools[..] else { panic!("one pool") };
    assert_eq!(replicas.replicas, 2);
    let impatient =
        simulated(SimulatedOperation { client_timeout: Some(1.2), ..SimulatedOperation::default() }).unwrap();
    let of = impatient.operation.as_ref().unwrap();
    assert!(of.aborted > 0 && of.wasted_tokens > 0);
    assert!(impatient.goodput.unwrap() < 1.0 && plain.goodput == Some(1.0));
    // Two replicas of one device each, for as long as the run.
    let held = of.device_hours * 3600.0 / 2.0;
    assert!((held / (600.0 / 6.0) - 1.0).abs() < 0.2, "{held}");
    let cost = of.usd.unwrap() / of.device_hours;
    assert!(cost > 0.0 && of.usd_per_mtok.unwrap() > 0.0);
    let faulty = SimulatedOperation {
        fault_at: vec![30.0],
        startup_time: Some(40.0),
        ..SimulatedOperation::default()
    };
    let faulty = simulated(faulty).unwrap().operation.unwrap();
    let faults = faulty.faults.unwrap();
    assert_eq!((faults.faults, faults.failed, faulty.aborted), (1, 0, 0));
    assert!(faults.lost > 0 && (180..300).contains(&faults.in_recovery), "{}", faults.in_recovery);
    assert!(faults.recovery[0].p95_ms >= faults.outside[0].p95_ms);
    let scaled = SimulatedOperation {
        autoscale: Some(ScaleSignal::Requests),
        autoscale_target: Some(1e6),
        max_replicas: Some(3),
        scale_down_delay: Some(0.0),
        startup_time: Some(40.0),
        ..SimulatedOperation::default()
    };
    let scaled = simulated(scaled).unwrap();
    let of = scaled.operation.as_ref().unwrap();
    assert!(of.mean_replicas > 1.0 && of.mean_replicas < 1.5, "{}", of.mean_replicas);
    assert_eq!(scaled.timeline.last().unwrap().replicas, Some(1));
}

#[test]
fn an_operation_that_does_not_fit_is_refused_with_its_key() {
    let plain = SimulatedOperation::default;
    let faulty = || SimulatedOperation { fault_at: vec![1.0], startup_time: Some(1.0), ..plain() };
    let scaled = || SimulatedOperation {
        autoscale: Some(ScaleSignal::Queue),
        autoscale_target: Some(1.0),
        max_replicas: Some(3),
        startup_time: Some(1.0),
        ..plain()
    };
    for (operation, key) in [
        (SimulatedOperation { startup_time: None, ..faulty() }, "startup_time"),
        (SimulatedOperation { mtbf: Some(60.0), ..faulty() }, "mtbf"),
        (SimulatedOperation { fault_replica: Some(2), ..faulty() }, "fault_replica"),
        (SimulatedOperation { retries: Some(1), ..plain() }, "retries"),
        (SimulatedOperation { startup_time: Some(1.0), ..plain() }, "startup_time"),
        (SimulatedOperation { startup_time: None, ..scaled() }, "startup_time"),
        (SimulatedOperation { autoscale_target: None, ..scaled() }, "autoscale_target"),
        (SimulatedOperation { max_replicas: None, ..scaled() }, "max_replicas"),
        (SimulatedOperation { max_replicas: Some(1), ..scaled() }, "max_replicas"),
        (SimulatedOperation { min_replicas: Some(3), ..scaled() }, "max_replicas"),
        (SimulatedOperation { autoscale: None, startup_time: None, ..scaled() }, "autoscale_target"),
        (SimulatedOperation { client_timeout: Some(0.0), ..plain() }, "client_timeout"),
    ] {
        let fault = simulated(operation).unwrap_err();
        assert_eq!(fault.key, key, "{fault}");
    }
}
