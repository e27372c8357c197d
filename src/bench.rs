//! Measurements of a server under stated loads: one record for each.
//!
//! The client sends requests, reads answers chunk by chunk and keeps the time of each. Before a load it makes the
//! prediction of `estimate` for it, so that each record compares both.

mod absent;
mod client;
mod load;
pub mod points;
mod probe;
mod prompts;
pub mod protocol;
mod read_clock;
pub mod records;
pub mod started;
mod subject;
mod summary;
pub mod telemetry;
mod tls;
pub mod trace;

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use crate::report::result::EstimateResult;
use crate::spec::error::Error;
use crate::spec::fleet::TracedRequest;
use crate::spec::run::{BenchMetrics, RunMethod, RunOutcome, RunRecord, RunRequests};
use crate::spec::telemetry::ReportingMachine;
use crate::spec::text::in_utc;
use client::{ClientTally, KeptConnection, RunContext, STOPPED, is_of_connection, is_unconnected};
use load::BodyMaker;
use points::{LoadPoint, PointLoad};
use probe::{ServerFacts, facts, grown, is_gone, scraped};
use prompts::{PromptScale, prompt, traced_prompt};
use protocol::{Protocol, TextRequest};
use subject::UnmeasuredRun;
use summary::{RunSummary, summary};
use telemetry::{MachineSource, Sampler, TelemetrySettings};
use trace::BenchTrace;

pub use absent::AbsentServer;
pub use client::Endpoint;
pub use probe::MODELS;
pub use subject::BenchSubject;

/// Settings of a measurement.
#[derive(Clone, Debug)]
pub struct BenchSettings {
    pub endpoint: Endpoint,
    pub protocol: Protocol,
    /// The name of the model in requests; that of the server's first where absent.
    pub model: Option<String>,
    /// Whether requests forbid an answer to end early, where the server can.
    pub fixed_length: bool,
    /// Parts of a run whose agreement is measured.
    pub repeats: u64,
    /// Requests that count, at least.
    pub requests: Option<u64>,
    /// Requests before these.
    pub warm_up: Option<u64>,
    /// Longest time of a request, in seconds.
    pub timeout_s: f64,
    pub seed: u64,
    /// Readings of this machine during a run.
    pub telemetry: TelemetrySettings,
}

/// Least number of repeats: fewer say little about their agreement.
pub const LEAST_REPEATS: u64 = 10;
/// Requests of a repeat under a rate.
const OF_REPEAT: u64 = 10;
/// Share of the requests under a rate that come before the counted ones.
const WARM_UP: f64 = 0.05;

/// Longest time of a request, in seconds, where none is stated.
pub const REQUEST_TIMEOUT_S: f64 = 600.0;

impl BenchSettings {
    /// The settings of a measurement where none are stated.
    pub fn of(endpoint: Endpoint) -> BenchSettings {
        BenchSettings {
            endpoint,
            protocol: Protocol::Chat,
            model: None,
            fixed_length: true,
            repeats: LEAST_REPEATS,
            requests: None,
            warm_up: None,
            timeout_s: REQUEST_TIMEOUT_S,
            seed: fresh_seed(),
            telemetry: TelemetrySettings::default(),
        }
    }

    /// Numbers of the requests of a load that count.
    pub fn counted(&self, point: &LoadPoint) -> Range<u64> {
        if let PointLoad::Trace(trace) = &point.load {
            return trace.counted(self.warm_up, self.requests);
        }
        let of_repeat = point.clients().unwrap_or(OF_REPEAT);
        let least = self.requests.unwrap_or(of_repeat.saturating_mul(self.repeats));
        // All repeats have the same number of requests.
        let requests = least.div_ceil(self.repeats).saturating_mul(self.repeats);
        let usual = point.clients().unwrap_or(((requests as f64 * WARM_UP) as u64).max(1));
        let warm_up = self.warm_up.unwrap_or(usual);
        warm_up..warm_up.saturating_add(requests)
    }

    /// Seconds of a load, by its estimate.
    pub fn seconds(&self, point: &LoadPoint, found: Option<&EstimateResult>) -> Option<f64> {
        let counted = self.counted(point);
        let requests = counted.end as f64;
        let e2e_s = || Some(found?.candidate.metrics.as_ref()?.e2e_ms / 1e3);
        match &point.load {
            PointLoad::Rate { per_s, .. } => Some(requests / per_s),
            PointLoad::Clients(clients) => Some(requests / *clients as f64 * e2e_s()?),
            PointLoad::Trace(trace) => Some(trace.seconds(&counted) + e2e_s().unwrap_or(0.0)),
        }
    }
}

/// A server that is measured.
pub struct BenchSession {
    settings: BenchSettings,
    runtime: Runtime,
    facts: ServerFacts,
    model: String,
    machine: Option<Arc<MachineSource>>,
    notes: Vec<String>,
}

/// Longest time of a request, whatever is set: 30 years.
const LONGEST: Duration = Duration::from_secs(1_000_000_000);
/// Tries to fit the length of a prompt.
const FITS: u64 = 4;
/// Error of the length of a prompt that is small enough.
const FITTED: f64 = 0.01;

impl BenchSession {
    /// Reads the facts of a server.
    ///
    /// # Errors
    /// It cannot be reached, or does not name its model and no name is stated.
    pub fn begin(settings: BenchSettings) -> Result<BenchSession, Error> {
        BenchSession::reached(settings)?.map_err(|absent| absent.fault)
    }

    /// The same, where a server that is absent is an outcome.
    ///
    /// # Errors
    /// The address has another encryption, or the server does not name its model and no name is stated.
    pub fn reached(settings: BenchSettings) -> Result<Result<BenchSession, AbsentServer>, Error> {
        let made = Builder::new_multi_thread().enable_all().build();
        let runtime = made.map_err(|fault: io::Error| {
            Error::new("", fault.to_string(), "threads for the client", "raise the limit of threads")
        })?;
        let facts = match runtime.block_on(facts(&settings.endpoint))? {
            Ok(facts) => facts,
            Err(absent) => return Ok(Err(absent)),
        };
        let model = settings.model.clone().or(facts.model.clone()).ok_or_else(|| {
            let fix = "set --served-model";
            Error::new("served-model", "a server that lists no model", "the name of its model", fix)
        })?;
        let of = match settings.endpoint.is_this_machine() {
            true => ReportingMachine::Server,
            false => ReportingMachine::Client,
        };
        let (machine, notes) = MachineSource::open(&settings.telemetry, of);
        Ok(Ok(BenchSession { settings, runtime, facts, model, machine: machine.map(Arc::new), notes }))
    }

    /// The name of the model in requests.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The readings that are missing during the runs, and why.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Measures a load, whose estimate was made before. `progress` is called at the end of each counted request. A
    /// server that cannot be reached any more, or that ends during the run, is an outcome of the record.
    pub fn measure(
        &self,
        subject: &BenchSubject<'_>,
        point: &LoadPoint,
        found: Option<&EstimateResult>,
        progress: Arc<dyn Fn() + Send + Sync>,
    ) -> RunRecord {
        let counted = self.settings.counted(point);
        let simulated = found.and_then(|found| subject.simulated(point, &counted, found));
        let begun = SystemTime::now();
        let tally = Arc::new(ClientTally::default());
        let (run, metrics, sampler) = self.runtime.block_on(async {
            let bodies = self.bodies(point).await;
            let before = scraped(&self.settings.endpoint).await;
            let every = self.settings.telemetry.every;
            let sampler = self.machine.clone().and_then(|machine| Sampler::start(machine, every));
            let (seed, made) = (self.settings.seed, |stop| self.context(tally.clone(), stop));
            let run = load::run(&point.load, seed, counted.clone(), bodies, made, progress).await;
            (run, grown(&before, scraped(&self.settings.endpoint).await), sampler)
        });
        let under_a_rate = !matches!(point.load, PointLoad::Clients(_));
        let counts = summary(&run, counted, self.settings.repeats, under_a_rate, &tally);
        let devices = found.map(|found| found.candidate.devices);
        let read = || sampler?.stop(run.begun?, counts.part?);
        let telemetry = read().map(|read| subject.with_energy(read, devices, &counts.metrics));
        let record = self.record(subject, point, (counts, found), (begun, metrics));
        let record = RunRecord { telemetry, ..record };
        let is_traced = point.trace().is_some();
        RunRecord {
            // The estimate of a trace is that of its means.
            prediction: simulated.or(record.prediction.filter(|_| !is_traced)),
            // The parts of a trace have loads of their own.
            repeats: record.repeats.filter(|_| !is_traced),
            ..record
        }
    }

    fn context(&self, tally: Arc<ClientTally>, stop: watch::Receiver<bool>) -> RunContext {
        RunContext {
            endpoint: Arc::new(self.settings.endpoint.clone()),
            protocol: self.settings.protocol.entry(),
            begun: Instant::now(),
            timeout: Duration::try_from_secs_f64(self.settings.timeout_s).unwrap_or(LONGEST),
            stop,
            tally,
        }
    }

    /// Makes the body of a request for an answer of some tokens to a prompt.
    fn texts(&self) -> impl Fn(&str, u64) -> String + Send + Sync + use<> {
        let model = self.model.clone();
        let (protocol, fixed_length) = (self.settings.protocol.entry(), self.settings.fixed_length);
        move |prompt, output| protocol.text_of(&TextRequest { model: &model, prompt, output, fixed_length })
    }

    /// The bodies of a load, whose prompts are fitted to the tokens that the server counts.
    async fn bodies(&self, point: &LoadPoint) -> BodyMaker {
        match &point.load {
            PointLoad::Trace(trace) => self.traced_bodies(trace.clone(), self.scale(trace).await),
            PointLoad::Clients(_) | PointLoad::Rate { .. } => {
                self.equal_bodies(point.osl, self.fitted_bytes(point).await)
            }
        }
    }

    fn equal_bodies(&self, output: u64, bytes: usize) -> BodyMaker {
        let (seed, text) = (self.settings.seed, self.texts());
        Arc::new(move |number| text(&prompt(seed, number, bytes), output))
    }

    fn traced_bodies(&self, trace: Arc<BenchTrace>, scale: PromptScale) -> BodyMaker {
        let (seed, text) = (self.settings.seed, self.texts());
        Arc::new(move |number| {
            let of = |request: &TracedRequest| {
                let prompt = traced_prompt(seed, number, &request.content, (scale, request.isl));
                text(&prompt, request.osl)
            };
            // The numbers are those of the trace.
            trace.request(number).map(of).unwrap_or_default()
        })
    }

    /// Tokens that the server counts in a prompt of `bytes` bytes.
    async fn probed(&self, kept: &mut KeptConnection, number: u64, bytes: usize) -> Option<u64> {
        let (_running, stop) = watch::channel(false);
        let context = self.context(Arc::default(), stop);
        let body = self.equal_bodies(1, bytes)(u64::MAX - number);
        let exchange = context.exchange(kept, (number, context.now_s()), body).await;
        exchange.prompt_tokens.filter(|tokens| *tokens > 0)
    }

    /// Bytes of a prompt that the server counts as the tokens of a load.
    async fn fitted_bytes(&self, point: &LoadPoint) -> usize {
        let mut bytes = PromptScale::UNCOUNTED.bytes(point.isl);
        let mut kept = None;
        for fit in 0..FITS {
            let Some(tokens) = self.probed(&mut kept, fit, bytes).await else { break };
            let factor = point.isl as f64 / tokens as f64;
            if (factor - 1.0).abs() <= FITTED {
                break;
            }
            bytes = ((bytes as f64 * factor) as usize).max(1);
        }
        bytes
    }

    /// The length of the prompts of a trace, by those of two of them.
    async fn scale(&self, trace: &BenchTrace) -> PromptScale {
        let (mut kept, mut counts) = (None, vec![]);
        for (number, tokens) in (0..).zip(trace.probed_lengths()) {
            let bytes = PromptScale::UNCOUNTED.bytes(tokens);
            let counted = self.probed(&mut kept, number, bytes).await;
            counts.extend(counted.map(|counted| (bytes, counted)));
        }
        PromptScale::of(&counts)
    }

    fn record(
        &self,
        subject: &BenchSubject<'_>,
        point: &LoadPoint,
        (found, predicted): (RunSummary, Option<&EstimateResult>),
        (begun, server_metrics): (SystemTime, BTreeMap<String, f64>),
    ) -> RunRecord {
        let settings = &self.settings;
        let arrival_variation = match point.load {
            PointLoad::Rate { variation, .. } => Some(variation),
            PointLoad::Clients(_) | PointLoad::Trace(_) => None,
        };
        let lost = found.requests.errors.keys().find(|reason| is_of_connection(reason)).cloned();
        let gone = lost.filter(|_| self.runtime.block_on(is_gone(&settings.endpoint)));
        let outcome = outcome(&found.requests, gone.is_some());
        let measured = outcome == RunOutcome::Measured;
        let tokens = |mean: Option<f64>, requested: u64| mean.map_or(requested, |mean| mean.round() as u64);
        let mut run = RunRecord {
            timestamp_utc: in_utc(begun.duration_since(UNIX_EPOCH).unwrap_or_default()),
            outcome,
            context_tokens: tokens(found.prompt_tokens, point.isl),
            output_tokens: tokens(found.output_tokens, point.osl),
            concurrency: point.clients(),
            rate_per_s: point.rate_per_s(),
            arrival_variation,
            method: Some(RunMethod {
                protocol: settings.protocol.name().to_owned(),
                isl: point.isl,
                osl: point.osl,
                fixed_length: settings.fixed_length && settings.protocol.entry().fixes_length(),
                seed: settings.seed,
                counted_by_server: found.counted_by_server,
                trace: point.trace().map(|trace| trace.described.clone()),
            }),
            requests: Some(found.requests),
            metrics: if measured { found.metrics } else { BenchMetrics::default() },
            repeats: Some(found.repeats),
            client: Some(found.client),
            resolved_settings: self.facts.settings.clone(),
            server_metrics,
            ..subject.record(&self.facts, &self.model, predicted)
        };
        if let Some(reason) = gone {
            let why = UnmeasuredRun { outcome, failure: reason.into(), stage: RUNNING.to_owned() };
            why.explain(&mut run);
        }
        run
    }
}

/// When a server failed that ended during a run, as failed starts state it.
const RUNNING: &str = "run";

/// How a run ended, after which the server may be gone.
fn outcome(requests: &RunRequests, gone: bool) -> RunOutcome {
    let reached = |reason: &String| !is_unconnected(reason) && reason != STOPPED;
    let was_reached = requests.answered > 0 || requests.timed_out > 0 || requests.errors.keys().any(reached);
    match requests.answered {
        _ if was_reached && gone => RunOutcome::Died,
        0 if was_reached => RunOutcome::Unanswered,
        0 => RunOutcome::Unreachable,
        _ => RunOutcome::Measured,
    }
}

/// Whether an earlier run of a file is of this deployment under this load, whose estimate is `found`.
pub fn is_done(
    earlier: &[RunRecord],
    subject: &BenchSubject<'_>,
    (point, found): (&LoadPoint, Option<&EstimateResult>),
    protocol: Protocol,
) -> bool {
    let measured = earlier.iter().filter(|run| run.outcome == RunOutcome::Measured);
    measured.filter(|run| subject.is_of(run, found)).any(|run| point.is_of(run, protocol.name()))
}

/// A number that differs from run to run, for prompts that no cache of the server has.
pub fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Whole numbers up to this are exact in JSON.
    since.as_micros() as u64 & ((1 << 53) - 1)
}

/// A random UUID (RFC 9562, version 4).
fn fresh_id() -> String {
    let random = fastrand::u128(..);
    let version = (random & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{version:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// The machine of the client.
fn environment() -> BTreeMap<String, Value> {
    let cores = std::thread::available_parallelism().map_or(Value::Null, |cores| json!(cores.get()));
    [("client_os", json!(std::env::consts::OS)), ("client_cores", cores)]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::next_run::ROUNDS;

    #[test]
    fn ids_are_uuids_and_differ() {
        let (one, other) = (fresh_id(), fresh_id());
        assert!(one != other && one.len() == 36);
        assert_eq!((&one[14..15], one.as_bytes()[8]), ("4", b'-'));
        assert!("89ab".contains(&one[19..20]), "{one}");
    }

    #[test]
    fn the_outcome_is_that_of_the_requests_and_of_the_server_afterwards() {
        let of = |answered, errors: &[&str], gone| {
            let errors = errors.iter().map(|reason| ((*reason).to_owned(), 1)).collect();
            outcome(&RunRequests { answered, errors, ..RunRequests::default() }, gone)
        };
        let refused = "connection: connection refused";
        assert_eq!(of(3, &[], false), RunOutcome::Measured);
        assert_eq!(of(3, &["no answer", "status 500"], false), RunOutcome::Measured);
        assert_eq!(of(3, &["no answer", refused], true), RunOutcome::Died);
        assert_eq!(of(0, &["no answer"], true), RunOutcome::Died);
        assert_eq!(of(0, &["no answer", "status 503"], false), RunOutcome::Unanswered);
        assert_eq!(of(0, &[refused, STOPPED], true), RunOutcome::Unreachable);
        assert_eq!(of(0, &[refused], false), RunOutcome::Unreachable);
    }

    #[test]
    fn a_trace_has_its_own_time_and_all_of_its_requests_count() {
        let row = |arrival| TracedRequest { arrival, isl: 100, osl: 10, content: vec![] };
        let trace = BenchTrace::of("x", vec![row(4.0), row(0.0), row(10.0)], 2.0);
        let point = LoadPoint::of_trace(Arc::new(trace));
        let settings = BenchSettings::of(Endpoint::parse("http://127.0.0.1:1", None).unwrap());
        assert_eq!((settings.counted(&point), settings.seconds(&point, None)), (0..3, Some(5.0)));
        assert_eq!((point.load_text().as_str(), point.isl, point.osl), ("trace of 3 requests", 100, 10));
        let settings = BenchSettings { warm_up: Some(1), requests: Some(1), ..settings };
        assert_eq!((settings.counted(&point), settings.seconds(&point, None)), (1..2, Some(2.0)));
    }

    #[test]
    fn repeats_have_equal_numbers_of_requests() {
        let settings = BenchSettings::of(Endpoint::parse("http://127.0.0.1:1", None).unwrap());
        let point = |load| LoadPoint { isl: 1, osl: 1, load };
        let counted = settings.counted(&point(PointLoad::Clients(4)));
        assert_eq!(counted, 4..44);
        // The suggested run of an answer is of this length.
        assert_eq!(counted.end as f64 / 4.0, ROUNDS);
        assert_eq!(settings.counted(&point(PointLoad::Rate { per_s: 2.0, variation: 1.0 })), 5..105);
        let settings = BenchSettings { requests: Some(25), warm_up: Some(0), ..settings };
        assert_eq!(settings.counted(&point(PointLoad::Clients(4))), 0..30);
    }
}
