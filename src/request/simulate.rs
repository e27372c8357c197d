//! `simulate`: a deployment under traffic, request by request and step by step.

mod sampled_replicas;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RequestControl;
use super::estimate::{EstimateRequest, estimate};
use super::optimize::{OptimizeRequest, at, optimize_under};
use super::priced_plan::PricedPlan;
use super::simulated_capacity::{CapacityTarget, found};
use super::simulated_draws::intervals;
use super::simulated_figures::{cost, energy, utilization};
use super::simulated_operation::SimulatedOperation;
use super::simulated_run::{PreparedRun, RecordSink};
use super::simulated_tiers::SimulatedTiers;
use super::traced_traffic::{arrivals, sessions, traced_in};
use crate::report::checked::SimulatedCheck;
use crate::report::operation::{FaultReport, OperationReport, ScalingReport};
use crate::report::result::{MetricsReport, ReportedDeployment};
use crate::report::simulate::{
    LatencyRow, LatencyWindow, ServedFigures, SimulateReport, SimulatedPool, SlowRequest, TrafficReport,
};
use crate::report::simulated_figures::SimulatedCost;
use crate::report::simulated_records::{KeptRequests, SimulatedRequest};
use crate::report::tiers::TierReport;
use crate::search::metered_clock::MeteredClock;
use crate::search::simulated_pool::tokens;
use crate::spec::error::Error;
use crate::spec::fleet::TracedRequest;
use crate::spec::limits::{
    ARRIVAL_VARIATION, DISTINCT_PROMPTS, DRAWS, ISL_VARIATION, OSL_VARIATION, SAMPLE_REPLICAS, SEED, SENT,
    SPEED_UP, THINK_TIME, THINK_TIME_VARIATION, TURN_ISL, TURN_ISL_VARIATION, TURNS, TURNS_VARIATION,
    WARM_UP,
};
use crate::spec::objective::LatencyLimits;
use crate::spec::scenario::Scenario;
use crate::spec::traced_session::TracedSession;
use crate::store::catalog::Catalog;
use crate::store::session_trace::read_sessions;
use crate::traffic::outcome::{Distribution, RequestRecord};
use crate::traffic::router::RoutePolicy;
use crate::traffic::run::{DeploymentSettings, RunTotals};
use crate::traffic::session::DrawnSessions;
use crate::traffic::source::{Arrivals, DrawnTraffic, LengthDistribution, RequestSource, played, replayed};
use crate::traffic::time_windows::TimeWindows;
use sampled_replicas::{sampled, sampled_part};

/// A request of `simulate`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SimulateRequest {
    /// The problem, with its `deployment`; without one, the best is found first. Its rate, or its concurrency, is the load.
    pub scenario: Scenario,
    /// The traffic.
    pub traffic: SimulatedTraffic,
    /// Clients that give up, faults, and replicas that come and go.
    pub operation: SimulatedOperation,
    /// Tiers of the KV cache behind that of the devices.
    pub tiers: SimulatedTiers,
    /// The quantity whose limit is searched for: the answer is that of the run at the value found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub find: Option<CapacityTarget>,
    /// Further runs of the same traffic, with step times as uncertain as the prediction: p10 to p90 of every figure
    /// [default: 0].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draws: Option<u64>,
    /// Whether the answer has one record for each of the first 10,000 requests.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub records: bool,
}

/// Traffic around the lengths and the load of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Traffic")]
pub struct SimulatedTraffic {
    /// Requests that are sent [default: 2000, and 20 or two sessions for each client]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = crate::spec::limits::whole(&SENT), allow_negative_numbers = true, help_heading = "Traffic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Requests at the start that no figure counts [default: one, or one session, for each client; 5 % under a rate]
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
    /// Mean number of turns of a session, log-normal: the prompt of each later turn is all that came before it, and more; 1 for single requests [default: 1]
    #[cfg_attr(feature = "cli", arg(long, value_name = "X", value_parser = crate::spec::limits::number(&TURNS), allow_negative_numbers = true, help_heading = "Traffic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<f64>,
    /// Coefficient of variation of the number of turns [default: 0]
    #[cfg_attr(feature = "cli", arg(long, value_name = "X", value_parser = crate::spec::limits::number(&TURNS_VARIATION), allow_negative_numbers = true, help_heading = "Traffic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns_variation: Option<f64>,
    /// New prompt tokens of each later turn, of a user or a tool [default: --isl without --prefix]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = crate::spec::limits::whole(&TURN_ISL), allow_negative_numbers = true, help_heading = "Traffic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_isl: Option<u64>,
    /// Coefficient of variation of these, log-normal [default: 0]
    #[cfg_attr(feature = "cli", arg(long, value_name = "X", value_parser = crate::spec::limits::number(&TURN_ISL_VARIATION), allow_negative_numbers = true, help_heading = "Traffic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_isl_variation: Option<f64>,
    /// Mean time from an answer to the next turn of its session, of a user or a tool, in seconds [default: 0]
    #[cfg_attr(feature = "cli", arg(long, value_name = "S", value_parser = crate::spec::limits::number(&THINK_TIME), allow_negative_numbers = true, help_heading = "Traffic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think_time: Option<f64>,
    /// Coefficient of variation of these times, log-normal [default: 0]
    #[cfg_attr(feature = "cli", arg(long, value_name = "X", value_parser = crate::spec::limits::number(&THINK_TIME_VARIATION), allow_negative_numbers = true, help_heading = "Traffic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think_time_variation: Option<f64>,
    /// Different prompts that are sent again and again [default: all differ]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = crate::spec::limits::whole(&DISTINCT_PROMPTS), allow_negative_numbers = true, help_heading = "Traffic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distinct_prompts: Option<u64>,
    /// How requests are spread over replicas and their attention ranks [default: least-requests]
    #[cfg_attr(feature = "cli", arg(long, value_name = "POLICY", help_heading = "Traffic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router: Option<RoutePolicy>,
    /// Replicas that are simulated of more: those that a random router, one in turn or one by session sends requests at a rate, else groups with their share of the load; the answer has standard errors [default: all up to 64, of more 64]
    #[cfg_attr(feature = "cli", arg(long, value_name = "K", value_parser = crate::spec::limits::whole(&SAMPLE_REPLICAS), allow_negative_numbers = true, help_heading = "Traffic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_replicas: Option<u64>,
    /// Seed of all that is random: equal seeds give equal requests to every plan [default: 1]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = crate::spec::limits::whole(&SEED), allow_negative_numbers = true, help_heading = "Traffic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Requests at stated times, instead of drawn ones.
    #[cfg_attr(feature = "cli", arg(skip))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<TracedRequest>,
    /// Sessions of a trace, instead of drawn ones: at their times, or one after the other by as many clients as the concurrency of the scenario says.
    #[cfg_attr(feature = "cli", arg(skip))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<TracedSession>,
    /// Text of the file of a trace, instead of its requests or sessions: of any format that `--trace` reads.
    #[cfg_attr(feature = "cli", arg(skip))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_text: Option<String>,
    /// Time of a trace that passes in a second [default: 1]
    #[cfg_attr(feature = "cli", arg(long, value_name = "X", value_parser = crate::spec::limits::number(&SPEED_UP), allow_negative_numbers = true, help_heading = "Traffic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_up: Option<f64>,
}

/// Requests that a run sends, and clients that send some at least each.
pub(super) const REQUESTS_SENT: u64 = 2000;
pub(super) const REQUESTS_PER_CLIENT: u64 = 20;
/// Sessions of a client at least: one that warms the servers up, and one that counts.
pub(super) const SESSIONS_PER_CLIENT: f64 = 2.0;
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
    if !request.records {
        return simulated(catalog, request, None, control);
    }
    let mut kept = KeptRequests::default();
    let report = simulated(catalog, request, Some(&mut |one: &SimulatedRequest| kept.keep(one)), control)?;
    Ok(SimulateReport { records: Some(kept), ..report })
}

/// Simulates the deployment; `each` gets one record for each counted request, in order of arrival.
///
/// # Errors
/// The request is faulty, or the deployment cannot run.
pub fn simulated(
    catalog: &Catalog,
    request: &SimulateRequest,
    each: Option<RecordSink>,
    control: &RequestControl,
) -> Result<SimulateReport, Error> {
    if let Some(draws) = request.draws {
        DRAWS.check_whole("draws", draws)?;
    }
    if request.traffic.trace_text.is_some() {
        let read = SimulateRequest { traffic: request.traffic.with_trace()?, ..request.clone() };
        return simulated(catalog, &read, each, control);
    }
    match request.find {
        Some(target) => found(catalog, request, target, each, control),
        None => of_plan(catalog, request, request.deployed(catalog, control)?, each, control),
    }
}

/// Simulates a request on the plan of its scenario.
pub(super) fn of_plan(
    catalog: &Catalog,
    request: &SimulateRequest,
    (planned, plan, settings): (PlannedScenario, PricedPlan, DeploymentSettings),
    each: Option<RecordSink>,
    control: &RequestControl,
) -> Result<SimulateReport, Error> {
    let PlannedScenario { scenario, checked } = planned;
    let draws = request.draws.filter(|draws| *draws > 0);
    let whole = each.is_some() || draws.is_some();
    if let Some(part) = sampled_part(request, (&scenario, &plan), &settings, whole)? {
        let report = sampled(catalog, request, (&scenario, &plan, &settings), &part, control)?;
        return Ok(SimulateReport { scenario, checked, ..report });
    }
    let (traffic, stop) = (request.traffic.drawn(&scenario, &plan), control.search.stop);
    let prepared = PreparedRun { request, plan: &plan, settings: &settings, traffic: &traffic, stop };
    let clock = MeteredClock::of(plan.clocks());
    let (totals, measured) = prepared.run(&clock, plan.clock().front_end_s(), each);
    let formulas = formulas(catalog, &scenario, &totals, control)?;
    let cost = match formulas.as_ref().filter(|found| found.metrics.is_some()) {
        Some(priced) => cost(&totals, priced, plan.replicas()),
        None => {
            let priced = estimate(catalog, &EstimateRequest::of(plan.scenario.clone()), control)?;
            cost(&totals, &priced.candidate, plan.replicas())
        }
    };
    let operation =
        (!request.operation.is_plain()).then(|| operation_report(&settings, &totals, &measured, &cost));
    // The formulas have requests of the stated lengths: those of a session are longer.
    let closed_form = formulas.and_then(|found| found.metrics);
    let sent = if request.traffic.is_traced() {
        totals.answered + totals.refused + totals.unanswered.len() as u64
    } else {
        traffic.requests
    };
    let load = sent_traffic(request.traffic.load(&traffic, &request.scenario), sent, &totals, &measured);
    let report = report(&plan, (&settings, load), (&totals, measured), closed_form.as_ref());
    Ok(SimulateReport {
        scenario,
        checked,
        operation,
        utilization: utilization(&plan, (&settings, &totals), &clock),
        energy: energy(&plan, &totals, &clock),
        cost: Some(cost),
        intervals: draws.map(|draws| intervals(prepared, draws, control)).transpose()?,
        ..report
    })
}

/// The deployment by the formulas of `estimate`, whose requests are on their own.
fn formulas(
    catalog: &Catalog,
    scenario: &Scenario,
    totals: &RunTotals,
    control: &RequestControl,
) -> Result<Option<ReportedDeployment>, Error> {
    match totals.sessions.started {
        0 => Ok(Some(estimate(catalog, &EstimateRequest::of(scenario.clone()), control)?.candidate)),
        _ => Ok(None),
    }
}

/// A load with what followed from its run, in which this many requests were sent.
fn sent_traffic(
    load: TrafficReport,
    requests: u64,
    totals: &RunTotals,
    measured: &Measured,
) -> TrafficReport {
    let sessions = totals.sessions;
    TrafficReport {
        requests,
        measured: measured.times.e2e.count(),
        refused: totals.refused,
        mean_isl: totals.prompt_tokens as f64 / totals.answered.max(1) as f64,
        sessions: (sessions.started > 0).then_some(sessions.started),
        sessions_cut: (sessions.started > 0).then_some(sessions.cut),
        ..load
    }
}

/// The figures of clients that give up, faults and scaling.
fn operation_report(
    settings: &DeploymentSettings,
    totals: &RunTotals,
    measured: &Measured,
    cost: &SimulatedCost,
) -> OperationReport {
    let of = &settings.operation;
    OperationReport {
        aborted: totals.aborted,
        wasted_tokens: totals.wasted,
        sessions_given_up: (totals.sessions.started > 0).then_some(totals.sessions.given_up),
        faults: of.faults.as_ref().map(|_| FaultReport {
            faults: totals.faults,
            lost: totals.lost,
            failed: totals.failed,
            in_recovery: measured.recovery.e2e.count(),
            recovery: measured.recovery.rows(),
            outside: measured.outside.rows(),
        }),
        scaling: of.scaler.as_ref().map(ScalingReport::of),
        mean_replicas: totals.replica_seconds / totals.lasted_s.max(f64::MIN_POSITIVE),
        device_hours: cost.device_hours,
        usd: cost.usd,
        usd_per_mtok: cost.usd_per_mtok,
    }
}

impl SimulateRequest {
    /// The scenario with its plan, priced, and the replicas that requests reach.
    ///
    /// # Errors
    /// The request is faulty, or the deployment cannot run, or is not simulated.
    pub(crate) fn deployed(
        &self,
        catalog: &Catalog,
        control: &RequestControl,
    ) -> Result<(PlannedScenario, PricedPlan, DeploymentSettings), Error> {
        self.traffic.check()?;
        self.tiers.check()?;
        let planned = self.planned(catalog, control)?;
        // How many requests come is the traffic's matter: a plan that a rate overloads has a queue that grows.
        let priced = Scenario { rate: None, percentile: None, ..planned.scenario.clone() };
        let plan = match PricedPlan::new(catalog, &EstimateRequest::of(priced.clone()), control) {
            Ok(plan) => plan,
            // More clients than the cache holds at once wait for each other.
            Err(fault) => {
                let clients = priced.concurrency.ok_or_else(|| fault.clone())?;
                let priced = Scenario { concurrency: None, ..priced };
                let waiting = PricedPlan::new(catalog, &EstimateRequest::of(priced), control);
                let mut plan = waiting.map_err(|_| fault)?;
                plan.clients = clients;
                plan
            }
        };
        let seed = self.traffic.seed.unwrap_or(DEFAULT_SEED);
        let mut settings = plan.deployment(self.traffic.router.unwrap_or_default(), seed)?;
        self.tiers.apply(&plan, &mut settings.pools)?;
        let operation = self.operation.settings(&settings.pools, plan.clock().front_end_s())?;
        Ok((planned, plan, DeploymentSettings { operation, ..settings }))
    }

    /// The scenario with its deployment, or with the best one under this traffic.
    fn planned(&self, catalog: &Catalog, control: &RequestControl) -> Result<PlannedScenario, Error> {
        let scenario = self.traffic.described(&self.scenario);
        if scenario.deployment.is_some() {
            return Ok(PlannedScenario { scenario, checked: None });
        }
        let request = OptimizeRequest { check: Some(true), ..OptimizeRequest::best_of(scenario.clone()) };
        let found = optimize_under(catalog, &request, &self.traffic, control)?;
        let none =
            || Error::new("deployment", "no plan that can run", "a plan", "see `optimize` for the reasons");
        // Of several runtimes, the one that has the plan.
        let scenario = Scenario { runtime: scenario.runtime.map(|_| found.question.runtime), ..scenario };
        Ok(PlannedScenario {
            scenario: at(&scenario, found.best.as_ref().ok_or_else(none)?),
            checked: found.checked,
        })
    }
}

/// A scenario with its plan.
pub(crate) struct PlannedScenario {
    pub scenario: Scenario,
    /// The simulation that chose the plan, where none was stated.
    pub checked: Option<SimulatedCheck>,
}

impl SimulatedTraffic {
    pub(super) fn check(&self) -> Result<(), Error> {
        for (limit, name, value) in [
            (&ARRIVAL_VARIATION, "arrival_variation", self.arrival_variation),
            (&ISL_VARIATION, "isl_variation", self.isl_variation),
            (&OSL_VARIATION, "osl_variation", self.osl_variation),
            (&SPEED_UP, "speed_up", self.speed_up),
            (&TURNS, "turns", self.turns),
            (&TURNS_VARIATION, "turns_variation", self.turns_variation),
            (&TURN_ISL_VARIATION, "turn_isl_variation", self.turn_isl_variation),
            (&THINK_TIME, "think_time", self.think_time),
            (&THINK_TIME_VARIATION, "think_time_variation", self.think_time_variation),
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
            (&TURN_ISL, "turn_isl", self.turn_isl),
            (&SAMPLE_REPLICAS, "sample_replicas", self.sample_replicas),
        ] {
            if let Some(value) = value {
                limit.check_whole(name, value)?;
            }
        }
        let of_turns = [
            ("turns_variation", self.turns_variation.is_some()),
            ("turn_isl", self.turn_isl.is_some()),
            ("turn_isl_variation", self.turn_isl_variation.is_some()),
            ("think_time", self.think_time.is_some()),
            ("think_time_variation", self.think_time_variation.is_some()),
        ];
        if let Some((name, _)) = of_turns.iter().find(|(_, stated)| *stated && self.turns() <= 1.0) {
            let fix = "state the mean number of turns too, or leave this out";
            return Err(Error::new(*name, "single requests", "sessions: `turns` above 1", fix));
        }
        if !self.trace.is_empty() && !self.sessions.is_empty() {
            return Err(Error::new("sessions", "`trace` too", "one of the two", "leave one of them out"));
        }
        self.trace.iter().try_for_each(TracedRequest::check)?;
        let mut numbered = self.sessions.iter().enumerate();
        numbered.try_for_each(|(at, session)| session.check(&format!("sessions[{at}]")))
    }

    /// The traffic with the requests or the sessions that its text of a trace has.
    ///
    /// # Errors
    /// The text is in no known format, or there are requests or sessions next to it.
    pub fn with_trace(&self) -> Result<SimulatedTraffic, Error> {
        let Some(text) = &self.trace_text else { return Ok(self.clone()) };
        if self.is_traced() {
            let fix = "leave one of them out";
            return Err(Error::new("trace_text", "requests or sessions too", "one of the two", fix));
        }
        let own = SimulatedTraffic { trace_text: None, ..self.clone() };
        if let Some(sessions) = read_sessions(text)? {
            return Ok(SimulatedTraffic { sessions, ..own });
        }
        Ok(SimulatedTraffic { trace: traced_in(text)?, ..own })
    }

    /// Whether requests or sessions of a trace are sent.
    pub(super) fn is_traced(&self) -> bool {
        !self.trace.is_empty() || !self.sessions.is_empty()
    }

    /// The scenario with the mean lengths of a trace, and with the rate of its requests, where it states none itself.
    pub(crate) fn described(&self, scenario: &Scenario) -> Scenario {
        let lengths: Vec<[u64; 2]> = if self.sessions.is_empty() {
            self.trace.iter().map(|one| [one.isl, one.osl]).collect()
        } else {
            self.sessions.iter().flat_map(TracedSession::lengths).collect()
        };
        let mean = |of: usize| {
            let sum: f64 = lengths.iter().map(|one| one[of] as f64).sum();
            (!lengths.is_empty()).then(|| (sum / lengths.len() as f64).round().max(1.0) as u64)
        };
        let arrivals = self.trace.iter().map(|one| one.arrival);
        let [first, last] = arrivals.fold([f64::INFINITY, 0.0], |[a, b], at| [at.min(a), at.max(b)]);
        let gaps = self.trace.len().saturating_sub(1) as f64;
        let rate = (last > first).then(|| gaps * self.speed_up.unwrap_or(1.0) / (last - first));
        Scenario {
            isl: scenario.isl.or_else(|| mean(0)),
            osl: scenario.osl.or_else(|| mean(1)),
            rate: scenario.rate.or(rate.filter(|_| scenario.concurrency.is_none())),
            ..scenario.clone()
        }
    }

    /// The traffic that a search checks its plans with.
    pub(super) fn of_check(&self) -> SimulatedTraffic {
        let requests = self.requests.map_or(REQUESTS_SENT, |number| number.min(REQUESTS_SENT));
        SimulatedTraffic { requests: Some(requests), ..self.clone() }
    }

    /// Mean number of turns of a drawn session.
    pub(super) fn turns(&self) -> f64 {
        self.turns.unwrap_or(1.0)
    }

    /// Where requests come from.
    pub(super) fn source(&self, drawn: &DrawnTraffic, scenario: &Scenario) -> RequestSource {
        let speed = self.speed_up.unwrap_or(1.0);
        match (self.trace.is_empty(), self.sessions.is_empty()) {
            (true, true) => RequestSource::new(drawn.clone()),
            (true, false) => played(sessions(&self.sessions, speed), scenario.concurrency),
            (false, _) => replayed(arrivals(&self.trace, speed)),
        }
    }

    /// The load, without what follows from a run.
    fn load(&self, drawn: &DrawnTraffic, scenario: &Scenario) -> TrafficReport {
        let (rate_per_s, clients) = match drawn.arrivals {
            _ if !self.sessions.is_empty() => (None, scenario.concurrency),
            _ if !self.trace.is_empty() => (None, None),
            Arrivals::Rate { per_s, .. } => (Some(per_s), None),
            Arrivals::Clients(clients) => (None, Some(clients)),
        };
        TrafficReport { rate_per_s, clients, seed: drawn.seed, ..TrafficReport::default() }
    }

    pub(super) fn drawn(&self, scenario: &Scenario, plan: &PricedPlan) -> DrawnTraffic {
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
        let later = lengths.isl.saturating_sub(lengths.prefix).max(1);
        let sessions = (self.turns() > 1.0).then(|| DrawnSessions {
            turns: self.turns(),
            turns_variation: self.turns_variation.unwrap_or(0.0),
            new: of(self.turn_isl.unwrap_or(later), self.turn_isl_variation),
            think_s: self.think_time.unwrap_or(0.0),
            think_variation: self.think_time_variation.unwrap_or(0.0),
        });
        let each = REQUESTS_PER_CLIENT.max((SESSIONS_PER_CLIENT * self.turns()) as u64);
        DrawnTraffic {
            arrivals,
            requests: self.requests.unwrap_or(REQUESTS_SENT.max(clients.saturating_mul(each))),
            sessions,
            prompt: of(lengths.isl, self.isl_variation),
            output: of(lengths.osl, self.osl_variation),
            prefix: tokens(lengths.prefix),
            prefix_groups: scenario.prefix_groups.unwrap_or(1),
            distinct_prompts: self.distinct_prompts.unwrap_or(0),
            seed: self.seed.unwrap_or(DEFAULT_SEED),
        }
    }

    /// Requests at the start that no figure counts.
    pub(super) fn warm_up(&self, drawn: &DrawnTraffic) -> u64 {
        let usual = match drawn.arrivals {
            _ if self.is_traced() => 0,
            Arrivals::Clients(clients) => clients.saturating_mul(self.turns() as u64).min(drawn.requests / 2),
            Arrivals::Rate { .. } => (drawn.requests as f64 * WARM_UP_SHARE) as u64,
        };
        self.warm_up.unwrap_or(usual)
    }
}

/// Latencies of some requests.
#[derive(Default)]
struct MeasuredTimes {
    ttft: Distribution,
    tpot: Distribution,
    e2e: Distribution,
    queue: Distribution,
}

impl MeasuredTimes {
    fn count(&mut self, one: &RequestRecord) {
        self.ttft.add(one.ttft_s(), 1);
        self.e2e.add(one.e2e_s(), 1);
        self.queue.add(one.admitted_s - one.arrived_s, 1);
        if let Some(tpot) = one.tpot_s() {
            self.tpot.add(tpot, 1);
        }
    }

    fn rows(&self) -> Vec<LatencyRow> {
        let rows = [("ttft", &self.ttft), ("queue", &self.queue), ("tpot", &self.tpot), ("e2e", &self.e2e)];
        rows.iter().map(|(metric, values)| LatencyRow::of(metric, values)).collect()
    }
}

/// The requests that figures count.
pub(super) struct Measured {
    warm_up: u64,
    times: MeasuredTimes,
    /// Of those that arrived while a replica that had failed was starting again, and of the others.
    recovery: MeasuredTimes,
    outside: MeasuredTimes,
    first_s: f64,
    last_s: f64,
    output_tokens: u64,
    slowest: Vec<RequestRecord>,
    windows: TimeWindows,
    limits: LatencyLimits,
    within_limits: u64,
}

impl Measured {
    pub(super) fn of(warm_up: u64, limits: LatencyLimits) -> Measured {
        Measured {
            warm_up,
            limits,
            times: MeasuredTimes::default(),
            recovery: MeasuredTimes::default(),
            outside: MeasuredTimes::default(),
            first_s: f64::INFINITY,
            last_s: 0.0,
            output_tokens: 0,
            slowest: vec![],
            windows: TimeWindows::default(),
            within_limits: 0,
        }
    }

    pub(super) fn count(&mut self, one: &RequestRecord) {
        if one.id < self.warm_up {
            return;
        }
        self.times.count(one);
        self.windows.count(one);
        if one.in_recovery {
            self.recovery.count(one)
        } else {
            self.outside.count(one)
        }
        self.within_limits += u64::from(one.is_within(&self.limits));
        self.first_s = self.first_s.min(one.arrived_s);
        self.last_s = self.last_s.max(one.last_token_s);
        self.output_tokens += u64::from(one.output);
        let place = self.slowest.partition_point(|known| known.e2e_s() >= one.e2e_s());
        self.slowest.insert(place, *one);
        self.slowest.truncate(SLOWEST);
    }
}

/// The answer, without the figures of devices.
pub(super) fn report(
    plan: &PricedPlan,
    (settings, traffic): (&DeploymentSettings, TrafficReport),
    (totals, measured): (&RunTotals, Measured),
    closed_form: Option<&MetricsReport>,
) -> SimulateReport {
    let rows = [
        ("ttft", &measured.times.ttft),
        ("queue", &measured.times.queue),
        ("tpot", &measured.times.tpot),
        ("itl", &totals.itl),
        ("e2e", &measured.times.e2e),
    ];
    let has_draft = settings.pools.iter().any(|pool| pool.scheduler.draft().is_some());
    let lasted = (measured.last_s - measured.first_s).max(f64::MIN_POSITIVE);
    let unanswered = totals.unanswered.iter().filter(|id| **id >= measured.warm_up).count() as u64;
    SimulateReport {
        scenario: plan.scenario.clone(),
        notation: plan.notation.clone(),
        traffic,
        pools: settings.pools.iter().map(SimulatedPool::of).collect(),
        router: settings.router,
        latencies: rows.iter().map(|(metric, values)| LatencyRow::of(metric, values)).collect(),
        output_tok_s: measured.output_tokens as f64 / lasted,
        requests_per_s: measured.times.e2e.count() as f64 / lasted,
        concurrency: totals.request_seconds / totals.end_s.max(f64::MIN_POSITIVE),
        goodput: (!measured.limits.is_empty())
            .then(|| measured.within_limits as f64 / (measured.times.e2e.count() + unanswered).max(1) as f64),
        hit_rate: totals.cached_tokens as f64 / totals.prompt_tokens.max(1) as f64,
        unlimited_hit_rate: totals.reusable_tokens as f64 / totals.prompt_tokens.max(1) as f64,
        tokens_per_step: has_draft
            .then(|| totals.decoded as f64 / (totals.decoded - totals.accepted).max(1) as f64),
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
        windows: measured.windows.all().iter().map(LatencyWindow::of).collect(),
        operation: None,
        checked: None,
        sample: None,
        found: None,
        utilization: vec![],
        energy: None,
        cost: None,
        intervals: None,
        records: None,
        tiers: TierReport::of(&settings.pools, totals),
    }
}
