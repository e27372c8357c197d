//! `simulate`: a deployment under traffic, request by request and step by step.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RequestControl;
use super::estimate::{EstimateRequest, estimate};
use super::optimize::{OptimizeRequest, at, optimize};
use super::priced_plan::PricedPlan;
use crate::report::result::MetricsReport;
use crate::report::simulate::{
    LatencyRow, ServedFigures, SimulateReport, SimulatedPool, SlowRequest, TrafficReport,
};
use crate::search::simulated_pool::tokens;
use crate::spec::error::Error;
use crate::spec::fleet::{CONTENT_TOKENS, TracedRequest};
use crate::spec::limits::{
    ARRIVAL_VARIATION, DISTINCT_PROMPTS, ISL_VARIATION, OSL_VARIATION, SEED, SENT, SPEED_UP, WARM_UP,
};
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::traffic::content::{TokenRun, mixed};
use crate::traffic::engine::EngineRequest;
use crate::traffic::outcome::{Distribution, RequestRecord};
use crate::traffic::router::RoutePolicy;
use crate::traffic::run::{DeploymentSettings, RunTotals, run};
use crate::traffic::source::{Arrival, Arrivals, DrawnTraffic, LengthDistribution, RequestSource, replayed};

/// A request of `simulate`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SimulateRequest {
    /// The problem, with its `deployment`; without one, the best is found first. Its rate, or its concurrency, is the load.
    pub scenario: Scenario,
    /// The traffic.
    pub traffic: SimulatedTraffic,
}

/// Traffic around the lengths and the load of a scenario.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Traffic")]
pub struct SimulatedTraffic {
    /// Requests that are sent [default: 2000, and 20 for each client]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = crate::spec::limits::whole(&SENT), allow_negative_numbers = true, help_heading = "Traffic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Requests at the start that no figure counts [default: one for each client; 5 % under a rate]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = crate::spec::limits::whole(&WARM_UP), allow_negative_numbers = true, help_heading = "Traffic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<u64>,
    /// Coefficient of variation of the gaps between arrivals under a rate: 0 for even gaps, 1 for Poisson arrivals, above for bursts [default: 1]
    #[cfg_attr(feature = "cli", arg(long, value_name = "X", value_parser = crate::spec::limits::number(&ARRIVAL_VARIATION), allow_negative_numbers = true, help_heading = "Traffic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrival_variation: Option<f64>,
    /// Coefficient of variation of prompt lengths, log-normal around --isl [default: 0]
    #[cfg_attr(feature = "cli", arg(long, value_name = "X", value_parser = crate::spec::limits::number(&ISL_VARIATION), allow_negative_numbers = true, help_heading = "Traffic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isl_variation: Option<f64>,
    /// Coefficient of variation of output lengths, log-normal around --osl [default: 0]
    #[cfg_attr(feature = "cli", arg(long, value_name = "X", value_parser = crate::spec::limits::number(&OSL_VARIATION), allow_negative_numbers = true, help_heading = "Traffic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub osl_variation: Option<f64>,
    /// Different prompts that are sent again and again [default: all differ]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = crate::spec::limits::whole(&DISTINCT_PROMPTS), allow_negative_numbers = true, help_heading = "Traffic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distinct_prompts: Option<u64>,
    /// How requests are spread over replicas and their attention ranks [default: least-requests]
    #[cfg_attr(feature = "cli", arg(long, value_name = "POLICY", help_heading = "Traffic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router: Option<RoutePolicy>,
    /// Seed of all that is random: equal seeds give equal requests to every plan [default: 1]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = crate::spec::limits::whole(&SEED), allow_negative_numbers = true, help_heading = "Traffic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Requests at stated times, instead of drawn ones.
    #[cfg_attr(feature = "cli", arg(skip))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<TracedRequest>,
    /// Time of a trace that passes in a second [default: 1]
    #[cfg_attr(feature = "cli", arg(long, value_name = "X", value_parser = crate::spec::limits::number(&SPEED_UP), allow_negative_numbers = true, help_heading = "Traffic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_up: Option<f64>,
}

/// Requests that a run sends, and clients that send some at least each.
pub(super) const REQUESTS_SENT: u64 = 2000;
const REQUESTS_PER_CLIENT: u64 = 20;
/// The seed where none is given.
pub(super) const DEFAULT_SEED: u64 = 1;
/// Share of the requests under a rate that warm the servers up.
const WARM_UP_SHARE: f64 = 0.05;
/// The slowest requests that are explained.
const SLOWEST: usize = 5;

/// Simulates the deployment.
///
/// # Errors
/// The request is faulty, or the deployment cannot run.
pub fn simulate(
    catalog: &Catalog,
    request: &SimulateRequest,
    control: &RequestControl,
) -> Result<SimulateReport, Error> {
    request.traffic.check()?;
    let scenario = request.planned(catalog, control)?;
    // How many requests come is the traffic's matter: a plan that a rate overloads has a queue that grows.
    let priced = Scenario { rate: None, percentile: None, ..scenario.clone() };
    let plan = PricedPlan::new(catalog, &EstimateRequest::of(priced), control)?;
    let seed = request.traffic.seed.unwrap_or(DEFAULT_SEED);
    let settings = plan.deployment(request.traffic.router.unwrap_or_default(), seed)?;
    let traffic = request.traffic.drawn(&scenario, &plan);
    let mut measured = Measured::of(request.traffic.warm_up(&traffic));
    let source = match request.traffic.trace.is_empty() {
        true => RequestSource::new(traffic.clone()),
        false => replayed(request.traffic.arrivals()),
    };
    let stop = || (control.search.stop)();
    let front_end_s = plan.clock().front_end_s();
    let mut record = |one: &RequestRecord| measured.count(&one.at_client(front_end_s));
    let totals = run(&settings, source.pausing(front_end_s), plan.clocks(), &mut record, &stop);
    let closed_form = estimate(catalog, &EstimateRequest::of(scenario.clone()), control)?;
    Ok(report(
        &plan,
        (&settings, &traffic, request.traffic.trace.len() as u64),
        (&totals, measured),
        closed_form.candidate.metrics.as_ref(),
        plan.limits(),
    ))
}

impl SimulateRequest {
    /// The scenario with its deployment, or with the best one.
    fn planned(&self, catalog: &Catalog, control: &RequestControl) -> Result<Scenario, Error> {
        if self.scenario.deployment.is_some() {
            return Ok(self.scenario.clone());
        }
        let found = optimize(catalog, &OptimizeRequest::best_of(self.scenario.clone()), control)?;
        let none =
            || Error::new("deployment", "no plan that can run", "a plan", "see `optimize` for the reasons");
        Ok(at(&self.scenario, found.best.as_ref().ok_or_else(none)?))
    }
}

impl SimulatedTraffic {
    fn check(&self) -> Result<(), Error> {
        for (limit, name, value) in [
            (&ARRIVAL_VARIATION, "arrival_variation", self.arrival_variation),
            (&ISL_VARIATION, "isl_variation", self.isl_variation),
            (&OSL_VARIATION, "osl_variation", self.osl_variation),
            (&SPEED_UP, "speed_up", self.speed_up),
        ] {
            if let Some(value) = value {
                limit.check(name, value)?;
            }
        }
        for (limit, name, value) in [
            (&SENT, "requests", self.requests),
            (&WARM_UP, "warm_up", self.warm_up),
            (&SEED, "seed", self.seed),
            (&DISTINCT_PROMPTS, "distinct_prompts", self.distinct_prompts),
        ] {
            if let Some(value) = value {
                limit.check_whole(name, value)?;
            }
        }
        self.trace.iter().try_for_each(TracedRequest::check)
    }

    fn drawn(&self, scenario: &Scenario, plan: &PricedPlan) -> DrawnTraffic {
        let lengths = plan.lengths();
        let arrivals = match scenario.rate {
            Some(per_s) => Arrivals::Rate { per_s, variation: self.arrival_variation.unwrap_or(1.0) },
            None => Arrivals::Clients(plan.clients),
        };
        let clients = if let Arrivals::Clients(clients) = arrivals { clients } else { 0 };
        let of = |mean: u64, variation: Option<f64>| match variation {
            Some(variation) if variation > 0.0 => {
                LengthDistribution::LogNormal { mean: mean as f64, variation }
            }
            _ => LengthDistribution::Fixed(tokens(mean)),
        };
        DrawnTraffic {
            arrivals,
            requests: self.requests.unwrap_or(REQUESTS_SENT.max(clients.saturating_mul(REQUESTS_PER_CLIENT))),
            prompt: of(lengths.isl, self.isl_variation),
            output: of(lengths.osl, self.osl_variation),
            prefix: tokens(lengths.prefix),
            prefix_groups: scenario.prefix_groups.unwrap_or(1),
            distinct_prompts: self.distinct_prompts.unwrap_or(0),
            seed: self.seed.unwrap_or(DEFAULT_SEED),
        }
    }

    /// The requests of the trace, the first at once.
    fn arrivals(&self) -> Vec<Arrival> {
        let first = self.trace.iter().map(|request| request.arrival).fold(f64::INFINITY, f64::min);
        let speed = self.speed_up.unwrap_or(1.0);
        let one = |(number, request): (usize, &TracedRequest)| {
            let number = number as u64;
            let (prompt, output) = (tokens(request.isl).max(1), tokens(request.osl).max(1));
            let mut left = prompt;
            let mut runs: Vec<TokenRun> = vec![];
            for &id in &request.content {
                let tokens = left.min(CONTENT_TOKENS);
                left -= tokens;
                runs.push(TokenRun { id: mixed(7, id), tokens });
            }
            runs.push(TokenRun { id: mixed(8, number), tokens: left });
            runs.push(TokenRun { id: mixed(9, number), tokens: output });
            let time_s = (request.arrival - first) / speed;
            Arrival { time_s, request: EngineRequest::new(number, runs, prompt, output) }
        };
        self.trace.iter().enumerate().map(one).collect()
    }

    fn warm_up(&self, drawn: &DrawnTraffic) -> u64 {
        let usual = match drawn.arrivals {
            _ if !self.trace.is_empty() => 0,
            Arrivals::Clients(clients) => clients.min(drawn.requests / 2),
            Arrivals::Rate { .. } => (drawn.requests as f64 * WARM_UP_SHARE) as u64,
        };
        self.warm_up.unwrap_or(usual)
    }
}

/// The requests that figures count.
struct Measured {
    warm_up: u64,
    ttft: Distribution,
    tpot: Distribution,
    e2e: Distribution,
    queue: Distribution,
    first_s: f64,
    last_s: f64,
    output_tokens: u64,
    slowest: Vec<RequestRecord>,
    latencies: Vec<(f32, f32)>,
}

impl Measured {
    fn of(warm_up: u64) -> Measured {
        Measured {
            warm_up,
            ttft: Distribution::default(),
            tpot: Distribution::default(),
            e2e: Distribution::default(),
            queue: Distribution::default(),
            first_s: f64::INFINITY,
            last_s: 0.0,
            output_tokens: 0,
            slowest: vec![],
            latencies: vec![],
        }
    }

    fn count(&mut self, one: &RequestRecord) {
        if one.id < self.warm_up {
            return;
        }
        self.ttft.add(one.ttft_s(), 1);
        self.e2e.add(one.e2e_s(), 1);
        self.queue.add(one.admitted_s - one.arrived_s, 1);
        if let Some(tpot) = one.tpot_s() {
            self.tpot.add(tpot, 1);
        }
        self.latencies.push((one.ttft_s() as f32, one.tpot_s().unwrap_or(0.0) as f32));
        self.first_s = self.first_s.min(one.arrived_s);
        self.last_s = self.last_s.max(one.last_token_s);
        self.output_tokens += u64::from(one.output);
        let place = self.slowest.partition_point(|known| known.e2e_s() >= one.e2e_s());
        self.slowest.insert(place, *one);
        self.slowest.truncate(SLOWEST);
    }
}

fn report(
    plan: &PricedPlan,
    (settings, traffic, replayed): (&DeploymentSettings, &DrawnTraffic, u64),
    (totals, measured): (&RunTotals, Measured),
    closed_form: Option<&MetricsReport>,
    [ttft_limit, tpot_limit]: [Option<f64>; 2],
) -> SimulateReport {
    let rows = [
        ("ttft", &measured.ttft),
        ("queue", &measured.queue),
        ("tpot", &measured.tpot),
        ("itl", &totals.itl),
        ("e2e", &measured.e2e),
    ];
    let replays = replayed > 0;
    let sent = if replays { replayed } else { traffic.requests };
    let lasted = (measured.last_s - measured.first_s).max(f64::MIN_POSITIVE);
    let within = |seconds: f32, limit: Option<f64>| limit.is_none_or(|most| f64::from(seconds) <= most);
    let good = measured
        .latencies
        .iter()
        .filter(|(ttft, tpot)| within(*ttft, ttft_limit) && within(*tpot, tpot_limit));
    SimulateReport {
        scenario: plan.scenario.clone(),
        notation: plan.notation.clone(),
        traffic: TrafficReport {
            requests: sent,
            measured: measured.e2e.count(),
            refused: totals.refused,
            rate_per_s: match traffic.arrivals {
                Arrivals::Rate { per_s, .. } if !replays => Some(per_s),
                _ => None,
            },
            clients: match traffic.arrivals {
                Arrivals::Clients(clients) if !replays => Some(clients),
                _ => None,
            },
            seed: traffic.seed,
        },
        pools: settings.pools.iter().map(SimulatedPool::of).collect(),
        router: settings.router,
        latencies: rows.iter().map(|(metric, values)| LatencyRow::of(metric, values)).collect(),
        output_tok_s: measured.output_tokens as f64 / lasted,
        requests_per_s: measured.e2e.count() as f64 / lasted,
        concurrency: totals.request_seconds / totals.end_s.max(f64::MIN_POSITIVE),
        goodput: (ttft_limit.is_some() || tpot_limit.is_some())
            .then(|| good.count() as f64 / measured.e2e.count().max(1) as f64),
        hit_rate: totals.cached_tokens as f64 / totals.prompt_tokens.max(1) as f64,
        preemptions: totals.preemptions,
        steps: totals.steps,
        closed_form: closed_form.map(|metrics| ServedFigures {
            ttft_ms: metrics.ttft_ms,
            tpot_ms: metrics.tpot_ms,
            e2e_ms: metrics.e2e_ms,
            output_tok_s: metrics.output_tok_s,
        }),
        slowest: measured.slowest.iter().map(SlowRequest::of).collect(),
        timeline: totals.timeline.points().to_vec(),
    }
}
