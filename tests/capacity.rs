//! Laws of searches for a limit: queues in front of servers have that of their formulas, and the value found meets by
//! itself, while the next one misses.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use mantile::report::capacity::{CapacityQuantity, CapacityReport, CapacityRule};
use mantile::report::simulate::SimulateReport;
use mantile::request::simulate::{SimulateRequest, SimulatedTraffic, simulate};
use mantile::request::simulated_capacity::CapacityTarget;
use mantile::request::simulated_operation::SimulatedOperation;
use mantile::request::{RequestControl, UNCONTROLLED};
use mantile::search::run::Control;
use mantile::spec::degree::Degrees;
use mantile::spec::deployment::Deployment;
use mantile::spec::fleet::TracedRequest;
use mantile::spec::objective::LatencyLimits;
use mantile::spec::percentile::Percentile;
use mantile::spec::scenario::Scenario;
use mantile::traffic::capacity::{CapacityEnd, CapacityRange, WIDTH};
use mantile::traffic::scaler::ScaleSignal;
use mantile::traffic::source::{Arrivals, DrawnTraffic, LengthDistribution, RequestSource};
use mantile::traffic::step_load::StepLoad;
use mantile::traffic::trial::{TrialOutcome, TrialRules, tried};
use mantile::traffic::vllm::VllmSettings;

use crate::doors::catalog;
use crate::traffic::{AMPLE, pool};

/// Seconds of each request on a server that takes one at a time.
const SERVICE_S: f64 = 0.1;

fn service(_: &[StepLoad]) -> f64 {
    SERVICE_S
}

/// Requests that come at this rate to servers of one at a time.
fn queued(per_s: f64, variation: f64, requests: u64, e2e: Option<f64>, servers: usize) -> TrialOutcome {
    let traffic = DrawnTraffic {
        arrivals: Arrivals::Rate { per_s, variation },
        requests,
        prompt: LengthDistribution::Fixed(10),
        output: LengthDistribution::Fixed(1),
        prefix: 0,
        prefix_groups: 1,
        distinct_prompts: 0,
        sessions: None,
        seed: 1,
    };
    let limits = LatencyLimits { e2e, ..LatencyLimits::default() };
    let rules = TrialRules { limits, front_end_s: 0.0, warm_up: requests / 20, requests, is_whole: false };
    let one_slot = VllmSettings { max_sequences: 1, prefix_caching: false, ..AMPLE };
    tried((&pool(one_slot, servers, 1), &service), RequestSource::new(traffic), &rules, &|| false).unwrap()
}

const LOADS: CapacityRange = CapacityRange::Loads { least: 1e-3, most: 1e3 };

/// The share of requests of M/D/1 at load `rho` that wait for at most `times` services: Erlang 1909.
fn waits_at_most(rho: f64, times: f64) -> f64 {
    let term = |k: u32| {
        let x = rho * (f64::from(k) - times);
        (1..=k).map(|j| x / f64::from(j)).product::<f64>() * (-x).exp()
    };
    (1.0 - rho) * (0..=times as u32).map(term).sum::<f64>()
}

#[test]
fn the_capacity_of_one_server_is_that_of_queueing_theory() {
    // The formula at a load that has a simpler one: of M/D/1, 1 - rho do not wait.
    assert!((waits_at_most(0.6, 0.0) - 0.4).abs() < 1e-12);
    for (e2e, part) in [(0.35, 0.9), (0.35, 0.5)] {
        let times = (e2e - SERVICE_S) / SERVICE_S;
        let (mut met, mut missed) = (0.0, 1.0);
        for _ in 0..60 {
            let rho = (met + missed) / 2.0;
            if waits_at_most(rho, times) >= part { met = rho } else { missed = rho }
        }
        let exact = met / SERVICE_S;
        let found = LOADS.search(0.8 * exact, |per_s| {
            let run = queued(per_s, 1.0, 30_000, Some(e2e), 1);
            Some(run.within.is_some_and(|share| share >= part))
        });
        let found = found.met.unwrap();
        assert!((found / exact - 1.0).abs() < 0.015, "{found}, by the formula {exact}");
    }
}

/// Even arrivals at a rate above that of the server wait for longer and longer, by the same time each.
#[test]
fn the_capacity_of_even_arrivals_is_exact() {
    let grows = |limit: f64| move |per_s: f64| Some(queued(per_s, 0.0, 2000, None, 1).waited <= limit);
    // Request k comes at k/rate and waits for k (0.1 - 1/rate): their ratio is 0.1 rate - 1.
    for limit in [0.0, 0.01, 0.05] {
        let exact = (1.0 + limit) / SERVICE_S;
        let found = LOADS.search(3.0, grows(limit));
        let (met, missed) = (found.met.unwrap(), found.missed.unwrap());
        assert!(met <= exact * (1.0 + 1e-9) && exact <= missed * (1.0 + 1e-9), "{met} {missed} for {exact}");
    }
    // 90 % of the requests from the 100th on are within 0.5 s: up to number 1810.
    let exact = 1.0 / (SERVICE_S - 0.4 / 1810.0);
    let found = LOADS.search(3.0, |per_s| {
        let run = queued(per_s, 0.0, 2000, Some(0.5), 1);
        Some(run.within.is_some_and(|share| share >= 0.9))
    });
    let found = found.met.unwrap();
    assert!((found / exact - 1.0).abs() < 1.1 * WIDTH, "{found}, exactly {exact}");
}

#[test]
fn more_servers_serve_more() {
    let capacity = |servers: usize| {
        let found = LOADS.search(5.0 * servers as f64, |per_s| {
            let run = queued(per_s, 1.0, 5000, Some(0.3), servers);
            Some(run.within.is_some_and(|share| share >= 0.9))
        });
        found.met.unwrap() / servers as f64
    };
    let each: Vec<f64> = [1, 2, 4].map(capacity).to_vec();
    // Servers with one queue lend each other what is free.
    assert!(each.is_sorted(), "{each:?}");
    assert!(each[2] < 1.0 / SERVICE_S);
}

#[test]
fn a_run_that_is_lost_ends_early_and_a_stopped_one_has_no_figures() {
    let lost = queued(30.0, 1.0, 5000, Some(0.3), 1);
    assert_eq!(lost.within, None);
    assert!(lost.times[2].count() < 3500, "{}", lost.times[2].count());
    let whole = queued(5.0, 1.0, 5000, Some(0.3), 1);
    assert_eq!(whole.times[2].count(), 4750);
}

fn scenario(hardware: &str, replicas: u64) -> Scenario {
    let both = Degrees { tp: Some(1), replicas: Some(replicas), ..Degrees::default() };
    Scenario {
        model: Some("Qwen3-14B".into()),
        hardware: Some(hardware.into()),
        isl: Some(800),
        osl: Some(60),
        ttft: Some("400ms".into()),
        tpot: Some("60ms".into()),
        deployment: Some(Deployment { both, ..Deployment::default() }),
        ..Scenario::default()
    }
}

fn request(scenario: Scenario, requests: u64) -> SimulateRequest {
    let traffic = SimulatedTraffic { requests: Some(requests), ..SimulatedTraffic::default() };
    SimulateRequest { scenario, traffic, ..SimulateRequest::default() }
}

fn answer(request: &SimulateRequest) -> SimulateReport {
    simulate(catalog(), request, &UNCONTROLLED).unwrap()
}

fn searched(request: &SimulateRequest, target: CapacityTarget) -> (SimulateReport, CapacityReport) {
    let report = answer(&SimulateRequest { find: Some(target), ..request.clone() });
    let found = report.found.clone().unwrap();
    (report, found)
}

fn value(found: &CapacityReport) -> f64 {
    found.bounds[0].value.unwrap()
}

#[test]
fn the_rate_found_meets_and_the_next_one_misses() {
    let one = request(scenario("1xh100", 1), 600);
    let (report, found) = searched(&one, CapacityTarget::Rate);
    assert_eq!((found.quantity, found.percentile), (CapacityQuantity::Rate, Percentile::P90));
    let [bound] = &found.bounds[..] else { panic!("one rule") };
    assert_eq!((bound.rule, bound.end), (CapacityRule::Slos, CapacityEnd::Bracketed));
    let (met, missed) = (bound.value.unwrap(), bound.missed.unwrap());
    assert!(met < missed && missed <= met * (1.0 + WIDTH) * (1.0 + 1e-12), "{met} {missed}");
    let at = |rate: f64| {
        let scenario = Scenario { rate: Some(rate), ..one.scenario.clone() };
        answer(&SimulateRequest { scenario, ..one.clone() })
    };
    // The other figures are those of the run at the value found, as it is by itself.
    let by_itself = at(met);
    assert_eq!(report.traffic.rate_per_s, Some(met));
    assert_eq!(report.goodput, by_itself.goodput);
    assert_eq!((report.steps, report.output_tok_s), (by_itself.steps, by_itself.output_tok_s));
    assert!(by_itself.goodput.unwrap() >= 0.9);
    for trial in &found.trials {
        assert_eq!(trial.requests, 600);
        let goodput = at(trial.value).goodput.unwrap();
        assert_eq!(trial.within_slos.unwrap_or(goodput), goodput);
        assert!(trial.within_slos.is_some() || goodput < 0.5);
        let meets = goodput >= 0.9 && trial.waited_share <= 0.01;
        assert_eq!(trial.meets, meets, "{}", trial.value);
        assert_eq!(trial.value <= met, meets, "{}", trial.value);
    }
    assert!(found.trials.len() > 5 && found.trials.iter().any(|trial| trial.value == missed));
}

#[test]
fn looser_slos_and_more_replicas_find_no_less() {
    let rate = |ttft: &str, percentile: Option<Percentile>, replicas: u64| {
        let of = Scenario { ttft: Some(ttft.into()), percentile, ..scenario("4xh100", replicas) };
        value(&searched(&request(of, 600), CapacityTarget::Rate).1) * (1.0 + WIDTH)
    };
    let rates = [rate("200ms", None, 1), rate("400ms", None, 1), rate("1s", None, 1), rate("1s", None, 2)];
    for pair in rates.windows(2) {
        assert!(pair[0] <= pair[1] * (1.0 + WIDTH), "{rates:?}");
    }
    assert!(rates[3] > 1.6 * rates[2], "{rates:?}");
    let (strict, loose) = (rate("400ms", Some(Percentile::P99), 1), rate("400ms", Some(Percentile::P50), 1));
    assert!(strict <= rates[1] * (1.0 + WIDTH) && rates[1] <= loose * (1.0 + WIDTH), "{strict} {loose}");
}

/// The places up to which a list says yes, where it says no from there on.
fn edge(meets: &[bool]) -> Option<usize> {
    let first = meets.iter().position(|meets| !meets)?;
    meets[first..].iter().all(|meets| !meets).then_some(first)
}

#[test]
fn clients_are_those_of_a_grid() {
    let limits = Scenario { ttft: Some("none".into()), tpot: Some("none".into()), ..scenario("1xh100", 1) };
    let one = request(Scenario { e2e: Some("1400ms".into()), ..limits }, 300);
    let (report, found) = searched(&one, CapacityTarget::Clients);
    let clients = value(&found) as u64;
    assert_eq!((report.traffic.clients, found.bounds[0].missed), (Some(clients), Some(clients as f64 + 1.0)));
    let meets = |clients: u64| {
        let scenario = Scenario { concurrency: Some(clients), ..one.scenario.clone() };
        answer(&SimulateRequest { scenario, ..one.clone() }).goodput.unwrap() >= 0.9
    };
    assert!(meets(clients) && !meets(clients + 1), "{clients}");
    let grid: Vec<bool> = (1..=clients + 6).map(meets).collect();
    assert!(edge(&grid).is_none_or(|edge| edge as u64 == clients), "{clients} of {grid:?}");
}

#[test]
fn replicas_are_those_of_a_grid() {
    let of = |replicas: u64| Scenario { rate: Some(45.0), ..scenario("8xh100", replicas) };
    let (report, found) = searched(&request(of(1), 900), CapacityTarget::Replicas);
    let replicas = value(&found) as u64;
    assert_eq!(report.pools[0].replicas, replicas);
    assert!(report.notation.starts_with(&format!("{replicas} x ")), "{}", report.notation);
    assert_eq!(found.devices, Some(replicas));
    let meets = |replicas: u64| answer(&request(of(replicas), 900)).goodput.unwrap() >= 0.9;
    assert!((2..8).contains(&replicas), "{replicas}");
    let grid: Vec<bool> = (1..=8).map(|replicas| !meets(replicas)).collect();
    assert_eq!(edge(&grid), Some(replicas as usize - 1), "{replicas} of {grid:?}");
    // From a plan of more replicas, the same are found.
    assert_eq!(value(&searched(&request(of(6), 900), CapacityTarget::Replicas).1) as u64, replicas);
    assert_eq!(answer(&request(of(replicas), 900)).goodput, report.goodput);
}

#[test]
fn autoscaling_is_compared_with_the_fewest_replicas() {
    let operation = SimulatedOperation {
        autoscale: Some(ScaleSignal::Requests),
        autoscale_target: Some(8.0),
        max_replicas: Some(6),
        startup_time: Some(5.0),
        ..SimulatedOperation::default()
    };
    let of = Scenario { rate: Some(20.0), ..scenario("4xh100", 2) };
    let one = SimulateRequest { operation, ..request(of, 900) };
    let (report, found) = searched(&one, CapacityTarget::Replicas);
    let scaled = found.autoscaled.unwrap();
    let by_itself = answer(&one);
    let operated = by_itself.operation.unwrap();
    assert_eq!((scaled.device_hours, scaled.mean_replicas), (operated.device_hours, operated.mean_replicas));
    assert_eq!(scaled.within_slos, by_itself.goodput);
    // The replicas found are held all the time.
    let fixed = report.operation.unwrap();
    assert!(fixed.scaling.is_none());
    assert!((fixed.mean_replicas - report.pools[0].replicas as f64).abs() < 1e-9);
    assert_eq!(scaled.fixed_device_hours, Some(fixed.device_hours));
}

#[test]
fn sessions_are_found_before_the_cache_falls_off() {
    let of = Scenario { isl: Some(8000), osl: Some(50), ttft: Some("2s".into()), ..scenario("1xh100", 1) };
    let mut one = request(of, 700);
    one.traffic =
        SimulatedTraffic { turns: Some(6.0), turn_isl: Some(3000), think_time: Some(10.0), ..one.traffic };
    let (_, found) = searched(&one, CapacityTarget::Clients);
    let rules: Vec<CapacityRule> = found.bounds.iter().map(|bound| bound.rule).collect();
    assert_eq!(rules, [CapacityRule::Slos, CapacityRule::Cache]);
    let cache = &found.bounds[1];
    let (kept, lost) = (cache.value.unwrap(), cache.missed.unwrap());
    assert!(kept >= 2.0 && lost == kept + 1.0, "{kept} {lost}");
    for trial in &found.trials {
        let keeps = trial.hit_rate >= 0.95 * trial.unlimited_hit_rate;
        assert!(keeps || trial.value > kept, "{}", trial.value);
        assert!(!keeps || trial.value < lost, "{}", trial.value);
        let scenario = Scenario { concurrency: Some(trial.value as u64), ..one.scenario.clone() };
        if trial.value == kept {
            let by_itself = answer(&SimulateRequest { scenario, ..one.clone() });
            assert_eq!(by_itself.hit_rate, trial.hit_rate);
        }
    }
    // Without limits on latency, the cache alone limits the sessions.
    let scenario = Scenario { ttft: Some("none".into()), tpot: Some("none".into()), ..one.scenario.clone() };
    let (_, free) = searched(&SimulateRequest { scenario, ..one }, CapacityTarget::Clients);
    assert_eq!((free.bounds.len(), value(&free)), (1, kept));
}

#[test]
fn a_trace_has_a_highest_speed() {
    let row = |at: u64| TracedRequest { arrival: at as f64, isl: 800, osl: 60, ..TracedRequest::default() };
    let traffic = SimulatedTraffic { trace: (0..400).map(row).collect(), ..SimulatedTraffic::default() };
    let one = SimulateRequest { scenario: scenario("1xh100", 1), traffic, ..SimulateRequest::default() };
    let (report, found) = searched(&one, CapacityTarget::Rate);
    assert_eq!(found.quantity, CapacityQuantity::SpeedUp);
    let at = |speed: f64| {
        let traffic = SimulatedTraffic { speed_up: Some(speed), ..one.traffic.clone() };
        answer(&SimulateRequest { traffic, ..one.clone() }).goodput.unwrap()
    };
    assert_eq!(report.goodput, Some(at(value(&found))));
    assert!(at(value(&found)) >= 0.9 && at(found.bounds[0].missed.unwrap()) < 0.9);
    assert_eq!(report.traffic.requests, 400);
}

#[test]
fn without_slos_the_queue_limits_the_rate() {
    let limits = Scenario { ttft: Some("none".into()), tpot: Some("none".into()), ..scenario("1xh100", 1) };
    let (report, found) = searched(&request(limits.clone(), 2000), CapacityTarget::Rate);
    assert_eq!(found.bounds[0].rule, CapacityRule::Queue);
    // As fast as the server answers clients that always wait.
    let busy = Scenario { concurrency: Some(200), ..limits };
    let served = answer(&request(busy, 4000)).requests_per_s;
    assert!((value(&found) / served - 1.0).abs() < 0.08, "{} {served}", value(&found));
    assert!((report.requests_per_s / served - 1.0).abs() < 0.08);
}

#[test]
fn nothing_meets_what_a_request_alone_misses() {
    let of = Scenario { ttft: Some("1us".into()), ..scenario("1xh100", 1) };
    for (target, of) in [
        (CapacityTarget::Rate, of.clone()),
        (CapacityTarget::Clients, of.clone()),
        (CapacityTarget::Replicas, Scenario { rate: Some(2.0), ..of }),
    ] {
        let (report, found) = searched(&request(of, 200), target);
        let bound = &found.bounds[0];
        assert_eq!((bound.value, bound.end), (None, CapacityEnd::NoneMeets));
        assert_eq!(found.alone_within_slos, Some(0.0));
        assert!(found.alone.iter().any(|row| row.metric == "ttft" && row.p90_ms > Some(0.001)));
        assert_eq!(report.goodput, Some(0.0));
        assert_eq!(found.devices, None);
    }
}

#[test]
fn a_search_ends_when_it_is_stopped() {
    let one = SimulateRequest { find: Some(CapacityTarget::Rate), ..request(scenario("1xh100", 1), 600) };
    for most in [0, 2000] {
        let checks = AtomicUsize::new(0);
        let stop = || checks.fetch_add(1, Relaxed) >= most;
        let search = Control { progress: &|_, _| {}, stop: &stop };
        let report = simulate(catalog(), &one, &RequestControl { search, stopped_by: &|| None }).unwrap();
        let found = report.found.unwrap();
        assert_eq!(found.bounds[0].end, CapacityEnd::Stopped);
        // Each run that is left ends at its next step.
        assert!(checks.load(Relaxed) <= most + 4, "{}", checks.load(Relaxed));
    }
}

#[test]
fn a_search_without_a_limit_is_refused() {
    let free = Scenario { ttft: Some("none".into()), tpot: Some("none".into()), ..scenario("1xh100", 1) };
    let row = TracedRequest { arrival: 0.0, isl: 100, osl: 10, ..TracedRequest::default() };
    let traced = SimulatedTraffic { trace: vec![row], ..SimulatedTraffic::default() };
    let plain = SimulatedTraffic::default;
    for (target, scenario, traffic) in [
        (CapacityTarget::Clients, free.clone(), plain()),
        (CapacityTarget::Replicas, free.clone(), plain()),
        (CapacityTarget::Rate, Scenario { concurrency: Some(4), ..free.clone() }, plain()),
        (CapacityTarget::Clients, Scenario { rate: Some(4.0), ..free.clone() }, plain()),
        (CapacityTarget::Clients, free, traced),
    ] {
        let request = SimulateRequest { scenario, traffic, find: Some(target), ..SimulateRequest::default() };
        let fault = simulate(catalog(), &request, &UNCONTROLLED).unwrap_err();
        assert_eq!(fault.key, "find", "{fault}");
    }
}
