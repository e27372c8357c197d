//! `simulate` of a deployment with many replicas: some of them are simulated, and the answer has the standard errors of
//! the figures that they give.
//!
//! Where a router sends requests whatever the state of replicas, and requests do not wait for answers, replicas do not
//! depend on each other: each of the sample has the very requests that it has in a run of all. Else groups of replicas
//! are simulated whole, each with its share of the load.

use rayon::prelude::*;

use super::{Measured, SimulateRequest, SimulatedTraffic, formulas, report, sent_traffic};
use crate::report::sampled_replicas::{SampledReplicas, SamplingMethod, StandardErrors};
use crate::report::simulate::{LatencyRow, SimulateReport};
use crate::request::RequestControl;
use crate::request::priced_plan::PricedPlan;
use crate::request::simulated_run::units;
use crate::request::traced_traffic::arrivals;
use crate::spec::error::Error;
use crate::spec::limits::SENT;
use crate::spec::role::Role;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::traffic::content::mixed;
use crate::traffic::outcome::{Distribution, RequestRecord};
use crate::traffic::router::RoutePolicy;
use crate::traffic::run::{DeploymentSettings, PoolSettings, RunTotals, run};
use crate::traffic::sample_error::DrawnClusters;
use crate::traffic::source::{Arrivals, DrawnTraffic, RequestSource, replayed};
use crate::traffic::thinned::ReplicaSample;

/// Replicas that are simulated of more, where nothing else is stated.
const DEFAULT_SAMPLE: u64 = 64;
/// Groups that replicas are simulated in: a standard error has seven degrees of freedom.
const GROUPS: u64 = 8;
/// Requests of a replica under a rate, on average, where their number is not stated. The first ones find it empty: most
/// come after these.
const REQUESTS_OF_REPLICA: u64 = 500;
/// Replicas times stated requests up to which a run of all takes seconds: each request is weighed against each replica.
const MOST_OF_ALL: u64 = 2_000_000;
/// Stated requests of a replica below which a sample has too few: all replicas are simulated.
const FEWEST_OF_REPLICA: u64 = 20;

/// The part of a deployment that is simulated.
pub(super) enum SampledPart {
    /// This many replicas of one pool, each on its own.
    Thinned(u64),
    /// This many groups with these pools, each with this share of the load.
    Groups { groups: u64, pools: Vec<PoolSettings>, share: f64 },
}

/// A run of a replica, or of a group of them.
struct ClusterRun {
    totals: RunTotals,
    measured: Measured,
    records: Vec<RequestRecord>,
}

/// Replicas of all pools.
fn replicas(pools: &[PoolSettings]) -> u64 {
    pools.iter().map(|pool| pool.replicas as u64).sum()
}

/// The part that is simulated; none where all replicas are. `whole` says that the answer needs every request.
///
/// # Errors
/// A sample is requested, and its figures would not be those of all replicas.
pub(super) fn sampled_part(
    request: &SimulateRequest,
    (scenario, plan): (&Scenario, &PricedPlan),
    settings: &DeploymentSettings,
    whole: bool,
) -> Result<Option<SampledPart>, Error> {
    let (all, stated) = (replicas(&settings.pools), request.traffic.sample_replicas);
    let is_short =
        |sent: u64| sent.saturating_mul(all) <= MOST_OF_ALL || sent < FEWEST_OF_REPLICA.saturating_mul(all);
    let wanted = stated.unwrap_or(DEFAULT_SAMPLE);
    if wanted >= all || (stated.is_none() && request.traffic.requests.is_some_and(is_short)) {
        return Ok(None);
    }
    let part = match whole {
        true => Err(Error::new(
            "sample_replicas",
            "records of requests, or draws of errors",
            "figures alone",
            "leave `sample_replicas` out: all replicas are simulated then",
        )),
        false => part_of(request, (scenario, plan), settings, wanted),
    };
    match part {
        Err(_) if stated.is_none() => Ok(None),
        part => part,
    }
}

fn part_of(
    request: &SimulateRequest,
    (scenario, plan): (&Scenario, &PricedPlan),
    settings: &DeploymentSettings,
    wanted: u64,
) -> Result<Option<SampledPart>, Error> {
    let (traffic, pools) = (&request.traffic, &settings.pools[..]);
    let refused = |found: &str, expected: &str| {
        let fix = "leave `sample_replicas` out: all replicas are simulated then";
        Err(Error::new("sample_replicas", found, expected, fix))
    };
    if !request.operation.is_plain() {
        return refused("clients that give up, faults or a scaler", "replicas that only answer requests");
    }
    let knows_state = settings.router.engine_number(0, 0, [0, 0]).is_none();
    let is_alone = pools.len() == 1 && pools[0].role == Role::Aggregated;
    let waits = traffic.turns() > 1.0 || !traffic.sessions.is_empty();
    let is_open = !waits && (!traffic.trace.is_empty() || scenario.rate.is_some());
    if is_alone && is_open && !knows_state {
        return Ok(Some(SampledPart::Thinned(wanted)));
    }
    if traffic.is_traced() {
        let expected = "single requests of a trace, on replicas that do both, with `router` random, round-robin or \
                        session: its share of any other trace is not known";
        return refused("a trace whose requests meet at the router", expected);
    }
    let shared = scenario.prefix_groups.unwrap_or(1) > 1 || traffic.distinct_prompts.is_some();
    if settings.router == RoutePolicy::Prefix && shared {
        let expected = "another router: which prompts a replica has cached depends on all replicas";
        return refused("`router` prefix with prompts that come again", expected);
    }
    let units = units(pools);
    let unit = replicas(pools) / units;
    let groups = GROUPS.min(wanted / unit);
    if groups < 2 {
        return refused(&wanted.to_string(), &format!("at least {} replicas: two groups", 2 * unit));
    }
    let each = wanted / unit / groups;
    if groups * each >= units {
        return Ok(None);
    }
    let share = each as f64 / units as f64;
    if scenario.rate.is_none() && (plan.clients as f64) * share < 1.0 {
        return refused("fewer clients than groups", "a client of each group at least");
    }
    let of = |pool: &PoolSettings| {
        let replicas = (pool.replicas as u64 / units * each) as usize;
        PoolSettings { replicas, ..pool.clone() }
    };
    Ok(Some(SampledPart::Groups { groups, pools: pools.iter().map(of).collect(), share }))
}

/// The answer of a part of the replicas.
pub(super) fn sampled(
    catalog: &Catalog,
    request: &SimulateRequest,
    (scenario, plan, settings): (&Scenario, &PricedPlan, &DeploymentSettings),
    part: &SampledPart,
    control: &RequestControl,
) -> Result<SimulateReport, Error> {
    let drawn = request.traffic.drawn(scenario, plan);
    let (runs, requests, of) = match part {
        SampledPart::Thinned(simulated) => {
            let all = replicas(&settings.pools);
            let (runs, requests) = thinned(request, (plan, settings), drawn.clone(), *simulated, control);
            (runs, requests, Some(all))
        }
        SampledPart::Groups { groups, pools, share } => {
            let settings = DeploymentSettings { pools: pools.clone(), ..settings.clone() };
            let (runs, requests) = grouped(request, (plan, &settings), (&drawn, *share), *groups, control);
            (runs, requests, None)
        }
    };
    let (method, simulated) = match part {
        SampledPart::Thinned(simulated) => (SamplingMethod::Thinned, *simulated),
        SampledPart::Groups { groups, pools, .. } => (SamplingMethod::Groups, groups * replicas(pools)),
    };
    let all = replicas(&settings.pools);
    let scale = all as f64 / simulated as f64;
    let errors = errors(&runs, DrawnClusters { of }, scale * runs.len() as f64);
    let sample =
        SampledReplicas { method, replicas: all, simulated, clusters: runs.len() as u64, requests, errors };
    let mut measured = Measured::of(0, plan.limits());
    let counted = runs.iter().flat_map(|run| run.records.iter().filter(|one| one.id >= run.measured.warm_up));
    counted.for_each(|one| measured.count(one));
    let totals = RunTotals::of_runs(&runs.into_iter().map(|run| run.totals).collect::<Vec<_>>());
    let formulas = formulas(catalog, scenario, &totals, control)?.and_then(|found| found.metrics);
    let sent = totals.answered + totals.refused;
    let load = sent_traffic(request.traffic.load(&drawn, &request.scenario), sent, &totals, &measured);
    let found = report(plan, (settings, load), (&totals, measured), formulas.as_ref());
    Ok(SimulateReport {
        output_tok_s: found.output_tok_s * scale,
        requests_per_s: found.requests_per_s * scale,
        concurrency: found.concurrency * scale,
        sample: Some(sample),
        ..found
    })
}

/// Runs of `simulated` replicas, each with what the router of all sends it, and the requests that this router got.
fn thinned(
    request: &SimulateRequest,
    (plan, settings): (&PricedPlan, &DeploymentSettings),
    drawn: DrawnTraffic,
    simulated: u64,
    control: &RequestControl,
) -> (Vec<ClusterRun>, u64) {
    let all = replicas(&settings.pools);
    let traffic = &request.traffic;
    let usual = REQUESTS_OF_REPLICA.saturating_mul(all).min(SENT.most_whole());
    let drawn = DrawnTraffic { requests: traffic.requests.unwrap_or(usual), ..drawn };
    let sample = ReplicaSample::new(settings.router, settings.seed, all, simulated as usize);
    let speed = traffic.speed_up.unwrap_or(1.0);
    let (split, requests) = match traffic.trace.len() {
        0 => (sample.drawn(&drawn), drawn.requests),
        listed => (sample.listed(arrivals(&traffic.trace, speed)), listed as u64),
    };
    let warm_up = traffic.warm_up(&drawn);
    let one = |(place, arrivals): (usize, Vec<_>)| {
        // The ranks of a replica are chosen by another seed: by the same, they would follow from its number.
        let settings = DeploymentSettings {
            pools: settings.pools.iter().map(|pool| PoolSettings { replicas: 1, ..pool.clone() }).collect(),
            seed: mixed(settings.seed, place as u64 + 1),
            ..settings.clone()
        };
        cluster(plan, &settings, replayed(arrivals), warm_up, control)
    };
    (split.into_par_iter().enumerate().map(one).collect(), requests)
}

/// Runs of groups of replicas, each with this share of the drawn load, and the requests of the whole load.
fn grouped(
    request: &SimulateRequest,
    (plan, group): (&PricedPlan, &DeploymentSettings),
    (drawn, share): (&DrawnTraffic, f64),
    groups: u64,
    control: &RequestControl,
) -> (Vec<ClusterRun>, u64) {
    let part = |whole: u64| ((whole as f64 * share).round() as u64).max(1);
    let traffic = SimulatedTraffic { warm_up: request.traffic.warm_up.map(part), ..request.traffic.clone() };
    let (arrivals, usual) = match drawn.arrivals {
        Arrivals::Rate { per_s, variation } => {
            let each = REQUESTS_OF_REPLICA.saturating_mul(replicas(&group.pools));
            (Arrivals::Rate { per_s: per_s * share, variation }, each.min(SENT.most_whole()))
        }
        Arrivals::Clients(clients) => (Arrivals::Clients(part(clients)), part(drawn.requests)),
    };
    let requests = traffic.requests.map_or(usual, part);
    let one = |number: u64| {
        let seed = mixed(drawn.seed, number + 1);
        let drawn = DrawnTraffic { arrivals: arrivals.clone(), requests, seed, ..drawn.clone() };
        let settings = DeploymentSettings { seed, ..group.clone() };
        let warm_up = traffic.warm_up(&drawn);
        cluster(plan, &settings, RequestSource::new(drawn), warm_up, control)
    };
    let runs = (0..groups).into_par_iter().map(one).collect();
    (runs, (requests as f64 / share).round() as u64)
}

/// The run of a cluster to its end.
fn cluster(
    plan: &PricedPlan,
    settings: &DeploymentSettings,
    source: RequestSource,
    warm_up: u64,
    control: &RequestControl,
) -> ClusterRun {
    let front_end_s = plan.clock().front_end_s();
    let source = source.within(plan.clock().instance.max_context.unwrap_or(u64::MAX)).pausing(front_end_s);
    let (mut measured, mut records) = (Measured::of(warm_up, plan.limits()), vec![]);
    let mut record = |one: &RequestRecord| {
        let seen = one.at_client(front_end_s);
        measured.count(&seen);
        records.push(seen);
    };
    let totals = run(settings, source, plan.clocks(), &mut record, &|| (control.search.stop)());
    ClusterRun { totals, measured, records }
}

/// The standard errors of figures of `runs`, of which the deployment has `clusters`.
fn errors(runs: &[ClusterRun], drawn: DrawnClusters, clusters: f64) -> StandardErrors {
    let latency = |metric: &str, of: fn(&ClusterRun) -> &Distribution| {
        let each: Vec<&Distribution> = runs.iter().map(of).collect();
        let part = |part| drawn.percentile(&each, part).map(|seconds| seconds * 1e3);
        LatencyRow {
            metric: metric.to_owned(),
            mean_ms: drawn.mean_of(&each).map(|seconds| seconds * 1e3),
            p50_ms: part(0.5),
            p90_ms: part(0.9),
            p95_ms: part(0.95),
            p99_ms: part(0.99),
        }
    };
    let ratio = |of: fn(&RunTotals) -> [u64; 2]| {
        let each = runs.iter().map(|run| of(&run.totals).map(|count| count as f64));
        drawn.ratio(&each.collect::<Vec<_>>())
    };
    // All of them have the time of the run in common.
    let first_s = runs.iter().map(|run| run.measured.first_s).fold(f64::INFINITY, f64::min);
    let last_s = runs.iter().map(|run| run.measured.last_s).fold(0.0, f64::max);
    let end_s = runs.iter().map(|run| run.totals.end_s).fold(f64::MIN_POSITIVE, f64::max);
    let lasted_s = (last_s - first_s).max(f64::MIN_POSITIVE);
    let rate = |of: &dyn Fn(&ClusterRun) -> f64| {
        drawn.mean(&runs.iter().map(of).collect::<Vec<_>>()).map(|error| error * clusters)
    };
    let good = |run: &ClusterRun| [run.measured.within_limits as f64, run.measured.times.e2e.count() as f64];
    let is_limited = runs.iter().any(|run| !run.measured.limits.is_empty());
    StandardErrors {
        latencies: vec![
            latency("ttft", |run| &run.measured.times.ttft),
            latency("queue", |run| &run.measured.times.queue),
            latency("tpot", |run| &run.measured.times.tpot),
            latency("itl", |run| &run.totals.itl),
            latency("e2e", |run| &run.measured.times.e2e),
        ],
        output_tok_s: rate(&|run| run.measured.output_tokens as f64 / lasted_s),
        requests_per_s: rate(&|run| run.measured.times.e2e.count() as f64 / lasted_s),
        concurrency: rate(&|run| run.totals.request_seconds / end_s),
        goodput: if is_limited { drawn.ratio(&runs.iter().map(good).collect::<Vec<_>>()) } else { None },
        hit_rate: ratio(|totals| [totals.cached_tokens, totals.prompt_tokens]),
        unlimited_hit_rate: ratio(|totals| [totals.reusable_tokens, totals.prompt_tokens]),
        tokens_per_step: if runs.iter().any(|run| run.totals.accepted > 0) {
            ratio(|totals| [totals.decoded, totals.decoded - totals.accepted])
        } else {
            None
        },
    }
}
