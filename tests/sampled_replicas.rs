//! Samples of the replicas of a deployment: their figures are those of all of them, within the stated errors.

use std::sync::LazyLock;

use mantile::report::sampled_replicas::{SamplingMethod, StandardErrors};
use mantile::report::simulate::{LatencyRow, SimulateReport, csv};
use mantile::report::text::simulate::simulate as text;
use mantile::request::UNCONTROLLED;
use mantile::request::simulate::{SimulateRequest, SimulatedTraffic, simulate};
use mantile::request::simulated_operation::SimulatedOperation;
use mantile::spec::deployment::Deployment;
use mantile::spec::error::Error;
use mantile::spec::fleet::TracedRequest;
use mantile::spec::percentile::Percentile;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::traffic::router::RoutePolicy;
use mantile::traffic::run::DeploymentSettings;
use mantile::traffic::source::{Arrivals, DrawnTraffic, LengthDistribution, RequestSource, replayed};
use mantile::traffic::thinned::ReplicaSample;

use super::traffic::{AMPLE, clock, pool, records};

static CATALOG: LazyLock<Catalog> = LazyLock::new(Catalog::default);

/// Requests per second of a replica.
const RATE: f64 = 5.0;

/// A deployment of small replicas, as many as it has devices.
fn scenario(replicas: u64) -> Scenario {
    Scenario {
        model: Some("Qwen3-14B".into()),
        hardware: Some(format!("{replicas}xh100")),
        rate: Some(RATE * replicas as f64),
        isl: Some(800),
        osl: Some(60),
        ttft: Some("120ms".into()),
        deployment: Some(Deployment { plan: Some(format!("{replicas} x tp1")), ..Deployment::default() }),
        ..Scenario::default()
    }
}

fn random(requests: u64, seed: u64) -> SimulatedTraffic {
    SimulatedTraffic {
        requests: Some(requests),
        seed: Some(seed),
        router: Some(RoutePolicy::Random),
        isl_variation: Some(0.7),
        ..SimulatedTraffic::default()
    }
}

fn simulated(scenario: Scenario, traffic: SimulatedTraffic) -> Result<SimulateReport, Error> {
    let request = SimulateRequest { scenario, traffic, ..SimulateRequest::default() };
    simulate(&CATALOG, &request, &UNCONTROLLED)
}

fn errors(report: &SimulateReport) -> &StandardErrors {
    &report.sample.as_ref().unwrap().errors
}

/// Figures of two runs and the stated error of the first.
fn figures(some: &SimulateReport, all: &SimulateReport) -> Vec<(String, [f64; 3])> {
    let mut found = vec![];
    for (row, other) in some.latencies.iter().zip(&all.latencies) {
        let of = errors(some).latency(&row.metric).unwrap();
        let mean = [row, other, of].map(|row| row.mean_ms.unwrap());
        found.push((format!("mean {}", row.metric), mean));
        for percentile in Percentile::ALL {
            let values = [row, other, of].map(|row: &LatencyRow| row.at(percentile).unwrap());
            found.push((format!("{} {}", percentile.name(), row.metric), values));
        }
    }
    let of = errors(some);
    found.push(("tok/s".into(), [some.output_tok_s, all.output_tok_s, of.output_tok_s.unwrap()]));
    found.push(("requests".into(), [some.requests_per_s, all.requests_per_s, of.requests_per_s.unwrap()]));
    found.push(("system".into(), [some.concurrency, all.concurrency, of.concurrency.unwrap()]));
    found.push(("goodput".into(), [some.goodput.unwrap(), all.goodput.unwrap(), of.goodput.unwrap()]));
    found
}

/// Three standard errors hold for 98 % of figures where an error has seven degrees of freedom (Student's t).
#[test]
fn eight_of_64_replicas_agree_with_all_within_the_stated_errors() {
    let (mut within, mut all, mut squares) = (0, 0, 0.0);
    for seed in 1..=5 {
        let whole = simulated(scenario(64), random(64 * 150, seed)).unwrap();
        assert!(whole.sample.is_none(), "a stated number of requests that is small enough");
        let traffic = SimulatedTraffic { sample_replicas: Some(8), ..random(64 * 150, seed) };
        let some = simulated(scenario(64), traffic).unwrap();
        let sample = some.sample.as_ref().unwrap();
        assert_eq!((sample.method, sample.simulated, sample.replicas), (SamplingMethod::Thinned, 8, 64));
        assert_eq!(sample.requests, 64 * 150);
        for (name, [found, expected, error]) in figures(&some, &whole) {
            // The width of a bucket of values is in no error.
            let off = (found - expected).abs() / error.max(1e-3 * expected);
            if off > 3.0 {
                eprintln!("seed {seed}, {name}: {found} ± {error}, of all {expected}");
            }
            within += u32::from(off <= 3.0);
            squares += off * off;
            all += 1;
        }
    }
    // Those of a run go together: one run that is off has several.
    assert!(within * 100 >= all * 92, "{within} of {all} figures");
    // Figures are off by about one error: it is neither much too small nor much too large.
    let mean = squares / f64::from(all);
    assert!((0.3..2.5).contains(&mean), "{mean}");
}

#[test]
fn a_replica_of_a_sample_has_its_requests_of_a_run_of_all_at_their_times() {
    for router in [RoutePolicy::Random, RoutePolicy::RoundRobin, RoutePolicy::Session] {
        let traffic = DrawnTraffic {
            arrivals: Arrivals::Rate { per_s: 48.0, variation: 1.5 },
            requests: 1500,
            prompt: LengthDistribution::LogNormal { mean: 800.0, variation: 0.7 },
            output: LengthDistribution::LogNormal { mean: 60.0, variation: 0.5 },
            prefix: 100,
            prefix_groups: 5,
            distinct_prompts: 0,
            sessions: None,
            seed: 4,
        };
        let replicas = |count| DeploymentSettings { router, seed: 9, ..pool(AMPLE, count, 1) };
        let (_, all) = records(&replicas(16), RequestSource::new(traffic.clone()), &clock);
        let mut seen = 0;
        for arrivals in ReplicaSample::new(router, 9, 16, 5).drawn(&traffic) {
            let (totals, own) = records(&replicas(1), replayed(arrivals), &clock);
            assert_eq!(totals.answered, own.len() as u64);
            for one in &own {
                assert_eq!(all.iter().find(|other| other.id == one.id), Some(one));
            }
            seen += own.len();
        }
        assert!((350..600).contains(&seen), "{seen} of 1500 are of 5 of 16 replicas");
    }
}

#[test]
fn errors_shrink_with_the_replicas_that_are_simulated() {
    let error = |replicas: u64| {
        let each = (1..=4).map(|seed| {
            let traffic = SimulatedTraffic { sample_replicas: Some(replicas), ..random(256 * 60, seed) };
            let found = simulated(scenario(256), traffic).unwrap();
            let of = errors(&found);
            [of.latency("ttft").unwrap().mean_ms, of.latency("tpot").unwrap().p50_ms, of.output_tok_s]
                .map(Option::unwrap)
        });
        each.fold([0.0; 3], |sum, one| std::array::from_fn(|at| sum[at] + one[at] / 4.0))
    };
    let [few, some, most] = [8, 32, 128].map(error);
    for at in 0..3 {
        // Four times the replicas: half the error, and less where these are half of all.
        assert!((0.35..0.7).contains(&(some[at] / few[at])), "{} of {}", some[at], few[at]);
        assert!((0.2..0.55).contains(&(most[at] / some[at])), "{} of {}", most[at], some[at]);
    }
}

#[test]
fn ten_thousand_replicas_answer_by_a_sample() {
    let traffic = SimulatedTraffic { requests: None, ..random(1, 1) };
    let found = simulated(scenario(10_000), traffic).unwrap();
    let sample = found.sample.as_ref().unwrap();
    assert_eq!((sample.replicas, sample.simulated, sample.clusters), (10_000, 64, 64));
    assert_eq!(sample.requests, 5_000_000);
    assert!((20_000..50_000).contains(&found.traffic.requests), "{}", found.traffic.requests);
    let expected = 10_000.0 * RATE;
    let off = (found.requests_per_s - expected).abs() / sample.errors.requests_per_s.unwrap();
    assert!(off < 4.0, "{} requests/s", found.requests_per_s);
    assert_eq!(found.traffic.rate_per_s, Some(expected));
    assert_eq!(found.pools[0].replicas, 10_000);
    let page = text(&found, false);
    assert!(page.contains("64 of 10,000 replicas simulated") && page.contains("standard errors"), "{page}");
    let rows = csv(&found);
    assert!(rows.starts_with("metric,mean_ms,p50_ms,p90_ms,p95_ms,p99_ms,mean_error_ms"), "{rows}");
    assert!(rows.lines().all(|line| line.split(',').count() == 11));
    assert!(found.timeline.last().unwrap().output_tokens > 0);
}

#[test]
fn a_router_that_knows_the_load_has_groups_of_replicas() {
    for seed in 1..=2 {
        let balanced = |sample_replicas: Option<u64>| {
            let router = Some(RoutePolicy::LeastRequests);
            SimulatedTraffic { router, sample_replicas, ..random(64 * 150, seed) }
        };
        let whole = simulated(scenario(64), balanced(None)).unwrap();
        let some = simulated(scenario(64), balanced(Some(32))).unwrap();
        let sample = some.sample.as_ref().unwrap();
        assert_eq!((sample.method, sample.simulated, sample.clusters), (SamplingMethod::Groups, 32, 8));
        // The smaller choice of a group's router costs some percent, most of it in the tails.
        for (name, [found, expected, error]) in figures(&some, &whole) {
            if name.ends_with(" itl") && !name.starts_with("mean") {
                // Either of a step of decoding requests or of one with a prompt, which takes several times as long.
                continue;
            }
            let off = (found - expected).abs();
            let least = if name.starts_with("mean") || name.starts_with("p50") { 0.1 } else { 0.25 };
            assert!(
                off < (4.0 * error).max(least * expected),
                "{name}: {found} ± {error}, of all {expected}"
            );
        }
    }
}

#[test]
fn clients_sessions_and_roles_are_simulated_in_groups() {
    let sample =
        |replicas: u64| SimulatedTraffic { sample_replicas: Some(replicas), ..SimulatedTraffic::default() };
    let clients = Scenario { rate: None, concurrency: Some(64 * 6), ..scenario(64) };
    let found = simulated(clients, sample(16)).unwrap();
    let of = found.sample.as_ref().unwrap();
    assert_eq!((of.method, of.clusters, of.simulated), (SamplingMethod::Groups, 8, 16));
    assert_eq!(found.traffic.clients, Some(384));
    assert!((found.concurrency / 384.0 - 1.0).abs() < 0.1, "{}", found.concurrency);
    let turns = SimulatedTraffic { turns: Some(3.0), turn_isl: Some(100), ..sample(16) };
    let found = simulated(scenario(64), turns).unwrap();
    assert_eq!(found.sample.as_ref().unwrap().method, SamplingMethod::Groups);
    assert!(found.traffic.sessions.unwrap() > 100 && found.closed_form.is_none());
    // Groups have workers of both roles, in the proportion of the plan.
    let split = Scenario {
        deployment: Some(Deployment {
            plan: Some("prefill 16 x tp1, decode 32 x tp1".into()),
            ..Deployment::default()
        }),
        hardware: Some("48xh100".into()),
        rate: Some(60.0),
        ..scenario(48)
    };
    let found = simulated(split.clone(), sample(12)).unwrap();
    let of = found.sample.as_ref().unwrap();
    assert_eq!((of.simulated, of.clusters, of.replicas), (12, 4, 48));
    assert!((found.requests_per_s / 60.0 - 1.0).abs() < 0.15, "{}", found.requests_per_s);
    assert_eq!(simulated(split, sample(5)).unwrap_err().key, "sample_replicas");
}

#[test]
fn a_sample_that_would_not_be_all_is_refused_with_the_reason() {
    let few = |traffic: SimulatedTraffic| SimulatedTraffic { sample_replicas: Some(4), ..traffic };
    let trace: Vec<TracedRequest> = (0..400)
        .map(|at| TracedRequest {
            arrival: f64::from(at) * 0.02,
            isl: 500,
            osl: 20,
            ..TracedRequest::default()
        })
        .collect();
    let plain = SimulatedTraffic::default;
    let prefix = Some(RoutePolicy::Prefix);
    for traffic in [
        SimulatedTraffic { trace: trace.clone(), ..plain() },
        SimulatedTraffic { router: prefix, distinct_prompts: Some(50), ..plain() },
        SimulatedTraffic { sample_replicas: Some(1), ..plain() },
    ] {
        let stated = traffic.sample_replicas.or(Some(4));
        let fault =
            simulated(scenario(16), SimulatedTraffic { sample_replicas: stated, ..traffic }).unwrap_err();
        assert_eq!(fault.key, "sample_replicas", "{fault}");
    }
    let operation = SimulatedOperation { client_timeout: Some(9.0), ..SimulatedOperation::default() };
    let request = SimulateRequest {
        scenario: scenario(16),
        traffic: few(plain()),
        operation,
        ..SimulateRequest::default()
    };
    assert_eq!(simulate(&CATALOG, &request, &UNCONTROLLED).unwrap_err().key, "sample_replicas");
    // The same trace, where the router needs no state: the part that it sends to a quarter of the replicas.
    let thinned = SimulatedTraffic { trace, router: Some(RoutePolicy::RoundRobin), ..plain() };
    let found = simulated(scenario(16), few(thinned)).unwrap();
    assert_eq!((found.traffic.requests, found.sample.unwrap().requests), (100, 400));
    // All of them are no sample.
    let all = SimulatedTraffic { sample_replicas: Some(16), ..random(300, 1) };
    assert!(simulated(scenario(16), all).unwrap().sample.is_none());
}
