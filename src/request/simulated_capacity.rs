//! The highest load, or the fewest replicas, at which a simulated deployment still meets its SLOs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RequestControl;
use super::estimate::{EstimateRequest, estimate};
use super::priced_plan::PricedPlan;
use super::simulate::{
    PlannedScenario, REQUESTS_PER_CLIENT, REQUESTS_SENT, SESSIONS_PER_CLIENT, SimulateRequest, of_plan,
};
use super::simulated_run::{RecordSink, units};
use super::traced_traffic::one_by_one;
use crate::report::capacity::{
    AutoscaledReplicas, CapacityBound, CapacityQuantity, CapacityReport, CapacityRule, CapacityTrial,
    latencies,
};
use crate::report::simulate::SimulateReport;
use crate::spec::defaults::HOUR;
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::limits::{CONCURRENCY, RATE, SPEED_UP};
use crate::spec::notation::PlanText;
use crate::spec::percentile::Percentile;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::traffic::capacity::{CapacityBracket, CapacityEnd, CapacityRange, WIDTH};
use crate::traffic::operation::OperationSettings;
use crate::traffic::run::DeploymentSettings;
use crate::traffic::source::{Arrivals, DrawnTraffic, RequestSource};
use crate::traffic::trial::{TrialOutcome, TrialRules, tried};

/// A quantity whose limit `simulate` searches for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum CapacityTarget {
    /// The highest request rate, or the highest speed of a trace.
    Rate,
    /// The most clients at a time; of sessions also the most before the prefix cache falls off.
    Clients,
    /// The fewest replicas of the plan for the stated load.
    Replicas,
}

/// The share of requests within the SLOs where none is stated: goodput is the rate at which 90 % of them are, in DistServe
/// (<https://arxiv.org/abs/2401.09670>, section 2).
const USUAL_PERCENTILE: Percentile = Percentile::P90;
/// A queue grows where the last requests wait for more than this share of the time that has passed: at a rate 1 % above
/// what the servers answer they wait for 1 % of it, so that both bounds have the same width.
const MOST_WAITED: f64 = WIDTH;
/// The share of the hits of a cache without limits that is kept before the cache falls off. Servers find whole blocks, so
/// that some tokens of every turn are computed by a cache of any size; once sessions evict each other, the share falls
/// within a few more of them.
const CACHE_KEPT: f64 = 0.95;
/// The lowest rate that is tried, times the E2E of a request alone: one request in a hundred meets another one there.
const LEAST_IN_FLIGHT: f64 = 0.01;
/// Requests of a run by default, at most, unless each client has fewer than two requests or sessions of them: a run takes
/// seconds.
const MOST_SENT: f64 = 20_000.0;
/// Requests of a run of the most clients that are tried, where each has two requests or sessions; and these clients: limits
/// on TPOT alone are met by any number, of which most wait.
const MOST_NEEDED: f64 = 100_000.0;
const MOST_CLIENTS: u64 = 10_000;
/// The most replicas that are tried.
const MOST_REPLICAS: u64 = 1000;

/// Simulates the deployment at its limit.
///
/// # Errors
/// The request is faulty, or the deployment cannot run, or nothing limits the quantity.
pub(super) fn found(
    catalog: &Catalog,
    request: &SimulateRequest,
    target: CapacityTarget,
    each: Option<RecordSink>,
    control: &RequestControl,
) -> Result<SimulateReport, Error> {
    let quantity = quantity(request, target)?;
    // A percentile is of requests that come at a rate: here it is also that of clients.
    let stated = request.scenario.percentile;
    let percentile = stated.filter(|_| request.scenario.rate.is_some());
    let scenario = Scenario { percentile, ..request.scenario.clone() };
    let request = SimulateRequest { find: None, scenario, ..request.clone() };
    let (planned, plan, settings) = request.deployed(catalog, control)?;
    let PlannedScenario { scenario, checked } = planned;
    let stop = || (control.search.stop)();
    let mut search =
        CapacitySearch { quantity, stated, request, scenario, plan, settings, trials: vec![], stop: &stop };
    let rules = search.rules()?;
    let alone = search.alone();
    let start = search.start(alone.as_ref());
    let bounds: Vec<CapacityBound> =
        rules.iter().map(|rule| search.bound((*rule, rules.len() > 1), start, alone.as_ref())).collect();
    let first = bounds.first();
    let shown = first.and_then(|bound| bound.value.or(bound.missed)).unwrap_or(start);
    let value = first.and_then(|bound| bound.value);
    let (devices, autoscaled) = match quantity {
        CapacityQuantity::Replicas => search.sized(catalog, value, alone.as_ref(), control)?,
        _ => (None, None),
    };
    let capacity = CapacityReport {
        quantity,
        percentile: search.percentile(),
        shown,
        devices,
        autoscaled,
        alone: alone.as_ref().map(latencies).unwrap_or_default(),
        alone_within_slos: alone.as_ref().and_then(|run| run.within).filter(|_| search.has_slos()),
        trials: search.reported(rules[0]),
        bounds,
    };
    let report = search.shown(catalog, shown, each, control)?;
    Ok(SimulateReport { found: Some(capacity), checked, ..report })
}

/// The quantity of a target under the traffic of a request.
fn quantity(request: &SimulateRequest, target: CapacityTarget) -> Result<CapacityQuantity, Error> {
    let (traffic, scenario) = (&request.traffic, &request.scenario);
    let plays = !traffic.sessions.is_empty() || !traffic.is_traced();
    let refused = |found: &str, expected: &str, fix: &str| Err(Error::new("find", found, expected, fix));
    match target {
        CapacityTarget::Rate if plays && scenario.concurrency.is_some() => {
            let fix = "leave `concurrency` out, or find `clients`";
            refused("`rate`, with a stated concurrency", "requests that come at a rate", fix)
        }
        CapacityTarget::Rate if traffic.is_traced() => Ok(CapacityQuantity::SpeedUp),
        CapacityTarget::Rate => Ok(CapacityQuantity::Rate),
        CapacityTarget::Clients if scenario.rate.is_some() => {
            refused("`clients`, with a stated rate", "clients", "leave `rate` out, or find `rate`")
        }
        CapacityTarget::Clients if !plays => {
            let fix = "find `rate`: the highest speed of the trace";
            refused(
                "`clients`, with requests at the times of a trace",
                "clients, or sessions of a trace",
                fix,
            )
        }
        CapacityTarget::Clients => Ok(CapacityQuantity::Clients),
        CapacityTarget::Replicas => Ok(CapacityQuantity::Replicas),
    }
}

/// A load, or a size, of a search.
struct CapacityLoad {
    request: SimulateRequest,
    scenario: Scenario,
    settings: DeploymentSettings,
    /// Clients, where they differ from those of the plan.
    clients: Option<u64>,
}

/// A search over runs of one deployment.
struct CapacitySearch<'a> {
    quantity: CapacityQuantity,
    /// The percentile that the request states.
    stated: Option<Percentile>,
    request: SimulateRequest,
    scenario: Scenario,
    plan: PricedPlan,
    settings: DeploymentSettings,
    /// The runs so far: value, requests, figures.
    trials: Vec<(f64, u64, TrialOutcome)>,
    stop: &'a dyn Fn() -> bool,
}

impl CapacitySearch<'_> {
    fn percentile(&self) -> Percentile {
        self.stated.unwrap_or(USUAL_PERCENTILE)
    }

    fn has_slos(&self) -> bool {
        !self.plan.limits().is_empty()
    }

    fn has_sessions(&self) -> bool {
        !self.request.traffic.sessions.is_empty()
            || (!self.request.traffic.is_traced() && self.request.traffic.turns() > 1.0)
    }

    /// Whether requests or sessions come whether or not earlier ones are answered.
    fn is_open(&self) -> bool {
        match self.quantity {
            CapacityQuantity::Rate | CapacityQuantity::SpeedUp => true,
            CapacityQuantity::Clients => false,
            CapacityQuantity::Replicas => match self.request.traffic.is_traced() {
                true => self.request.traffic.sessions.is_empty() || self.scenario.concurrency.is_none(),
                false => self.scenario.rate.is_some(),
            },
        }
    }

    /// The rules that limit the quantity.
    fn rules(&self) -> Result<Vec<CapacityRule>, Error> {
        let first = match (self.has_slos(), self.is_open()) {
            (true, _) => Some(CapacityRule::Slos),
            (false, true) => Some(CapacityRule::Queue),
            (false, false) => None,
        };
        let cached = self.quantity == CapacityQuantity::Clients && self.has_sessions();
        let rules: Vec<CapacityRule> =
            first.into_iter().chain(cached.then_some(CapacityRule::Cache)).collect();
        if rules.is_empty() {
            let fix = "state --ttft, --tpot or --e2e";
            return Err(Error::new("find", "clients that wait, without an SLO", "a latency limit", fix));
        }
        Ok(rules)
    }

    fn meets(&self, rule: CapacityRule, run: &TrialOutcome) -> bool {
        let is_within = run.within.is_some_and(|share| share >= self.percentile().part());
        let is_steady = run.waited <= MOST_WAITED;
        // A trace has its own course, and ends: its queue may be of its last hour.
        let is_drawn = !self.request.traffic.is_traced();
        match rule {
            CapacityRule::Slos => is_within && (is_steady || !(self.is_open() && is_drawn)),
            CapacityRule::Queue => is_within && is_steady,
            CapacityRule::Cache => run.hit_rate >= CACHE_KEPT * run.unlimited_hit_rate,
        }
    }

    /// How often the deployment has its least proportion of pools.
    fn unit(&self) -> u64 {
        units(&self.settings.pools)
    }

    fn start(&self, alone: Option<&TrialOutcome>) -> f64 {
        let scenario = &self.scenario;
        match self.quantity {
            CapacityQuantity::Rate => scenario.rate.unwrap_or(self.plan.clients as f64 / e2e_s(alone)),
            CapacityQuantity::SpeedUp => self.request.traffic.speed_up.unwrap_or(1.0),
            CapacityQuantity::Clients => self.plan.clients as f64,
            CapacityQuantity::Replicas => self.unit() as f64,
        }
    }

    fn range(&self, alone: Option<&TrialOutcome>) -> CapacityRange {
        match self.quantity {
            CapacityQuantity::Rate => CapacityRange::Loads {
                least: (LEAST_IN_FLIGHT / e2e_s(alone)).max(RATE.least),
                most: RATE.most,
            },
            CapacityQuantity::SpeedUp => CapacityRange::Loads { least: SPEED_UP.least, most: SPEED_UP.most },
            CapacityQuantity::Clients => {
                let traffic = &self.request.traffic;
                let needed = (MOST_NEEDED / (SESSIONS_PER_CLIENT * traffic.turns())) as u64;
                let needed = needed.min(MOST_CLIENTS);
                let most = match traffic.sessions.len() as u64 {
                    0 => traffic.requests.unwrap_or(needed),
                    sessions => sessions,
                };
                CapacityRange::WholeLoads { least: 1, most: most.clamp(1, CONCURRENCY.most_whole()) }
            }
            CapacityQuantity::Replicas => {
                CapacityRange::Sizes { least: 1, most: MOST_REPLICAS.max(self.unit()) }
            }
        }
    }

    /// Requests of a run where `in_flight` of them are in the system, or think: as many for each as those of a client.
    fn requests(&self, in_flight: f64) -> u64 {
        let needed = in_flight * SESSIONS_PER_CLIENT * self.request.traffic.turns();
        let usual = (in_flight * REQUESTS_PER_CLIENT as f64).min(MOST_SENT);
        REQUESTS_SENT.max(needed.max(usual) as u64)
    }

    /// The load, or the size, of this value.
    fn at(&self, value: f64, alone: Option<&TrialOutcome>) -> CapacityLoad {
        let (mut request, mut scenario) = (self.request.clone(), self.scenario.clone());
        let (mut settings, mut clients) = (self.settings.clone(), None);
        match self.quantity {
            CapacityQuantity::Rate => {
                scenario = Scenario { rate: Some(value), percentile: self.stated, ..scenario };
            }
            CapacityQuantity::SpeedUp => request.traffic.speed_up = Some(value),
            CapacityQuantity::Clients => {
                clients = Some(value as u64);
                request.scenario.concurrency = clients;
            }
            CapacityQuantity::Replicas => {
                let unit = self.unit();
                for pool in &mut settings.pools {
                    pool.replicas = (pool.replicas as u64 / unit * value as u64) as usize;
                }
                settings.operation.scaler = None;
            }
        }
        let in_flight = match scenario.rate {
            Some(per_s) => per_s * (e2e_s(alone) + request.traffic.think_time.unwrap_or(0.0)),
            None => clients.unwrap_or(self.plan.clients) as f64,
        };
        if !request.traffic.is_traced() {
            request.traffic.requests = request.traffic.requests.or(Some(self.requests(in_flight)));
        }
        CapacityLoad { request, scenario, settings, clients }
    }

    /// The run at a load; `None` where it was stopped.
    fn run(&self, load: &CapacityLoad, is_whole: bool) -> Option<(u64, TrialOutcome)> {
        let traffic = &load.request.traffic;
        let mut drawn = traffic.drawn(&load.scenario, &self.plan);
        if let Some(clients) = load.clients {
            drawn.arrivals = Arrivals::Clients(clients);
        }
        let requests = match (traffic.trace.len(), traffic.sessions.is_empty()) {
            (0, true) => drawn.requests,
            (0, false) => traffic.sessions.iter().map(|session| session.turns.len() as u64).sum(),
            (rows, _) => rows as u64,
        };
        let source = traffic.source(&drawn, &load.request.scenario);
        let warm_up = traffic.warm_up(&drawn);
        let found = self.tried(&load.settings, source, (requests, warm_up), is_whole)?;
        Some((requests, found))
    }

    fn tried(
        &self,
        settings: &DeploymentSettings,
        source: RequestSource,
        (requests, warm_up): (u64, u64),
        is_whole: bool,
    ) -> Option<TrialOutcome> {
        let front_end_s = self.plan.clock().front_end_s();
        let source = source.within(self.plan.window()).pausing(front_end_s);
        let rules = TrialRules { limits: self.plan.limits(), front_end_s, warm_up, requests, is_whole };
        tried((settings, self.plan.clocks()), source, &rules, &|| (self.stop)())
    }

    /// The first requests, one after the other. No request that shares its steps with others is faster: where too few of
    /// these are within the SLOs, no load meets them.
    fn alone(&self) -> Option<TrialOutcome> {
        let traffic = &self.request.traffic;
        let scenario = Scenario { rate: None, ..self.scenario.clone() };
        let requests = traffic.requests.unwrap_or(REQUESTS_SENT).min(REQUESTS_SENT);
        let drawn = traffic.drawn(&scenario, &self.plan);
        let drawn = DrawnTraffic { arrivals: Arrivals::Clients(1), requests, ..drawn };
        let warm_up = traffic.warm_up(&drawn).min(requests / 2);
        let source = match traffic.is_traced() {
            true => one_by_one(&traffic.trace, &traffic.sessions, REQUESTS_SENT as usize),
            false => RequestSource::new(drawn),
        };
        let client_timeout_s = self.settings.operation.client_timeout_s;
        let operation = OperationSettings { client_timeout_s, ..OperationSettings::default() };
        let settings = DeploymentSettings { operation, ..self.settings.clone() };
        self.tried(&settings, source, (requests, warm_up), true)
    }

    /// Whether those that are sent one after the other are all.
    fn is_brief(&self) -> bool {
        let traffic = &self.request.traffic;
        let turns: u64 = traffic.sessions.iter().map(|session| session.turns.len() as u64).sum();
        let stated = [traffic.requests.unwrap_or(0), traffic.trace.len() as u64, turns];
        stated.into_iter().all(|requests| requests <= REQUESTS_SENT)
    }

    /// The limit by a rule; `is_whole` where runs have to show more than that they miss the SLOs.
    fn bound(
        &mut self,
        (rule, is_whole): (CapacityRule, bool),
        start: f64,
        alone: Option<&TrialOutcome>,
    ) -> CapacityBound {
        let none = |end| CapacityBound::of(rule, CapacityBracket { met: None, missed: None, end });
        let Some(lonely) = alone else { return none(CapacityEnd::Stopped) };
        let is_lost = rule == CapacityRule::Slos && self.is_brief() && !self.meets(rule, lonely);
        if is_lost || lonely.times[2].count() == 0 {
            return none(CapacityEnd::NoneMeets);
        }
        let range = self.range(alone);
        let is_whole = is_whole || rule == CapacityRule::Cache;
        let found = range.search(start, |value| {
            let known = self.trials.iter().position(|(tried, ..)| *tried == value);
            let place = match known {
                Some(place) => place,
                None => {
                    let (requests, run) = self.run(&self.at(value, alone), is_whole)?;
                    self.trials.push((value, requests, run));
                    self.trials.len() - 1
                }
            };
            Some(self.meets(rule, &self.trials[place].2))
        });
        CapacityBound::of(rule, found)
    }

    /// The runs, by value.
    fn reported(&self, rule: CapacityRule) -> Vec<CapacityTrial> {
        let one = |(value, requests, run): &(f64, u64, TrialOutcome)| {
            CapacityTrial::of((*value, *requests), run, self.percentile(), self.meets(rule, run))
        };
        let mut trials: Vec<CapacityTrial> = self.trials.iter().map(one).collect();
        trials.sort_by(|one, other| one.value.total_cmp(&other.value));
        trials
    }

    /// The devices of that many replicas, and the same traffic with replicas that come and go.
    fn sized(
        &self,
        catalog: &Catalog,
        value: Option<f64>,
        alone: Option<&TrialOutcome>,
        control: &RequestControl,
    ) -> Result<(Option<u64>, Option<AutoscaledReplicas>), Error> {
        let priced = estimate(catalog, &EstimateRequest::of(self.plan.scenario.clone()), control)?.candidate;
        let devices = value.map(|value| priced.devices / self.unit() * value as u64);
        if self.settings.operation.scaler.is_none() {
            return Ok((devices, None));
        }
        let of_replica = priced.devices as f64 / self.plan.replicas().max(1) as f64;
        let device_hours = |run: &TrialOutcome| run.replica_seconds * of_replica / HOUR;
        let fixed =
            self.trials.iter().find(|(tried, ..)| Some(*tried) == value).map(|(.., run)| device_hours(run));
        let load = CapacityLoad { settings: self.settings.clone(), ..self.at(self.unit() as f64, alone) };
        let scaled = self.run(&load, true).map(|(_, run)| AutoscaledReplicas {
            within_slos: run.within.filter(|_| self.has_slos()),
            mean_replicas: run.replica_seconds / run.lasted_s.max(f64::MIN_POSITIVE),
            device_hours: device_hours(&run),
            fixed_device_hours: fixed,
        });
        Ok((devices, scaled))
    }

    /// The answer of `simulate` at this value.
    fn shown(
        self,
        catalog: &Catalog,
        value: f64,
        each: Option<RecordSink>,
        control: &RequestControl,
    ) -> Result<SimulateReport, Error> {
        let requests =
            self.trials.iter().find(|(tried, ..)| *tried == value).map(|(_, requests, _)| *requests);
        let CapacityLoad { mut request, scenario, settings, clients } = self.at(value, None);
        if !request.traffic.is_traced() {
            request.traffic.requests = requests.or(self.request.traffic.requests);
        }
        let planned = self.settings.pools == settings.pools
            && clients.is_none_or(|clients| clients == self.plan.clients);
        let unit = self.unit();
        let mut plan = self.plan;
        plan.clients = clients.unwrap_or(plan.clients);
        let whole = PlannedScenario { scenario, checked: None };
        let report = of_plan(catalog, &request, (whole, plan, settings), each, control)?;
        let closed_form = report.closed_form.filter(|_| planned);
        let notation = match self.quantity {
            CapacityQuantity::Replicas => replicated(&report.notation, unit, value as u64),
            _ => report.notation,
        };
        Ok(SimulateReport { closed_form, notation, ..report })
    }
}

/// A plan in one line with its replicas, `unit` of each kind in the least proportion, in another number.
fn replicated(notation: &str, unit: u64, units: u64) -> String {
    let stated = Deployment { plan: Some(notation.to_owned()), ..Deployment::default() };
    let Ok(PlanText { mut pools, weights, prefill_weights, kv, offload, host }) = stated.text() else {
        return notation.to_owned();
    };
    for pool in &mut pools {
        pool.degrees.replicas = Some(pool.degrees.replicas.unwrap_or(1) / unit.max(1) * units);
    }
    PlanText { pools, weights, prefill_weights, kv, offload, host }.to_string()
}

/// Mean E2E of requests that are alone.
fn e2e_s(alone: Option<&TrialOutcome>) -> f64 {
    alone.and_then(|run| run.times[2].mean()).unwrap_or(1.0)
}
