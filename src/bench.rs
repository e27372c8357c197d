//! Measurements of a server under stated loads: one record for each.
//!
//! The client sends requests, reads answers chunk by chunk and keeps the time of each. Before a load it makes the
//! prediction of `estimate` for it, so that each record compares both.

mod client;
mod load;
pub mod points;
mod probe;
mod prompts;
pub mod protocol;
pub mod records;
pub mod started;
mod subject;
mod summary;
pub mod telemetry;
mod tls;

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
use crate::spec::run::{RunMethod, RunOutcome, RunRecord};
use crate::spec::telemetry::ReportingMachine;
use crate::spec::text::in_utc;
use client::{ClientTally, RunContext};
use load::{BodyMaker, LoadRun};
use points::{LoadPoint, PointLoad};
use probe::{ServerFacts, facts, grown, scraped};
use prompts::{TOKEN_BYTES, prompt};
use protocol::{Protocol, TextRequest};
use summary::{RunSummary, summary};
use telemetry::{MachineSource, Sampler, TelemetrySettings};

pub use client::Endpoint;
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
        let requests = self.counted(point).end as f64;
        match point.load {
            PointLoad::Rate { per_s, .. } => Some(requests / per_s),
            PointLoad::Clients(clients) => {
                let e2e_ms = found?.candidate.metrics.as_ref()?.e2e_ms;
                Some(requests / clients as f64 * e2e_ms / 1e3)
            }
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
const FITS: usize = 4;
/// Error of the length of a prompt that is small enough.
const FITTED: f64 = 0.01;

impl BenchSession {
    /// Reads the facts of a server.
    ///
    /// # Errors
    /// It cannot be reached, or does not name its model and no name is stated.
    pub fn begin(settings: BenchSettings) -> Result<BenchSession, Error> {
        let made = Builder::new_multi_thread().enable_all().build();
        let runtime = made.map_err(|fault: io::Error| {
            Error::new("", fault.to_string(), "threads for the client", "raise the limit of threads")
        })?;
        let facts = runtime.block_on(facts(&settings.endpoint))?;
        let model = settings.model.clone().or(facts.model.clone()).ok_or_else(|| {
            let fix = "set --served-model";
            Error::new("served-model", "a server that lists no model", "the name of its model", fix)
        })?;
        let of = match settings.endpoint.is_this_machine() {
            true => ReportingMachine::Server,
            false => ReportingMachine::Client,
        };
        let (machine, notes) = MachineSource::open(&settings.telemetry, of);
        Ok(BenchSession { settings, runtime, facts, model, machine: machine.map(Arc::new), notes })
    }

    /// The name of the model in requests.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The readings that are missing during the runs, and why.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Measures a load, whose prediction was made before. `progress` is called at the end of each counted request. A
    /// server that cannot be reached any more is an outcome of the record.
    pub fn measure(
        &self,
        subject: &BenchSubject<'_>,
        point: &LoadPoint,
        found: Option<&EstimateResult>,
        progress: Arc<dyn Fn() + Send + Sync>,
    ) -> RunRecord {
        let begun = SystemTime::now();
        let counted = self.settings.counted(point);
        let tally = Arc::new(ClientTally::default());
        let (run, metrics, sampler) = self.runtime.block_on(async {
            let bytes = self.fitted_bytes(point).await;
            let before = scraped(&self.settings.endpoint).await;
            let every = self.settings.telemetry.every;
            let sampler = self.machine.clone().and_then(|machine| Sampler::start(machine, every));
            let run = self.run(point, (bytes, counted.clone()), tally.clone(), progress).await;
            (run, grown(&before, scraped(&self.settings.endpoint).await), sampler)
        });
        let under_a_rate = matches!(point.load, PointLoad::Rate { .. });
        let counts = summary(&run, counted, self.settings.repeats, under_a_rate, &tally);
        let devices = found.map(|found| found.candidate.devices);
        let read = || sampler?.stop(run.begun?, counts.part?);
        let telemetry = read().map(|read| subject.with_energy(read, devices, &counts.metrics));
        RunRecord { telemetry, ..self.record(subject, point, (counts, found), (begun, metrics)) }
    }

    async fn run(
        &self,
        point: &LoadPoint,
        (bytes, counted): (usize, Range<u64>),
        tally: Arc<ClientTally>,
        progress: Arc<dyn Fn() + Send + Sync>,
    ) -> LoadRun {
        let bodies = self.bodies(point.osl, bytes);
        let made = |stop| self.context(tally, stop);
        load::run(point.load, self.settings.seed, counted, bodies, made, progress).await
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

    fn bodies(&self, output: u64, bytes: usize) -> BodyMaker {
        let (model, seed) = (self.model.clone(), self.settings.seed);
        let (protocol, fixed_length) = (self.settings.protocol.entry(), self.settings.fixed_length);
        Arc::new(move |number| {
            let prompt = prompt(seed, number, bytes);
            protocol.text_of(&TextRequest { model: &model, prompt: &prompt, output, fixed_length })
        })
    }

    /// Bytes of a prompt that the server counts as the tokens of a load.
    async fn fitted_bytes(&self, point: &LoadPoint) -> usize {
        let (_running, stop) = watch::channel(false);
        let context = self.context(Arc::default(), stop);
        let mut bytes = (point.isl as f64 * TOKEN_BYTES) as usize;
        let mut kept = None;
        for fit in 0..FITS {
            let body = self.bodies(1, bytes)(u64::MAX - fit as u64);
            let exchange = context.exchange(&mut kept, (fit as u64, context.now_s()), body).await;
            let Some(tokens) = exchange.prompt_tokens.filter(|tokens| *tokens > 0) else { break };
            let factor = point.isl as f64 / tokens as f64;
            if (factor - 1.0).abs() <= FITTED {
                break;
            }
            bytes = ((bytes as f64 * factor) as usize).max(1);
        }
        bytes
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
            PointLoad::Clients(_) => None,
            PointLoad::Rate { variation, .. } => Some(variation),
        };
        let connected = |(reason, _): (&String, &u64)| !reason.starts_with("connection");
        let outcome = match found.requests.answered {
            0 if found.requests.errors.iter().any(connected) || found.requests.timed_out > 0 => {
                RunOutcome::Unanswered
            }
            0 => RunOutcome::Unreachable,
            _ => RunOutcome::Measured,
        };
        let tokens = |mean: Option<f64>, requested: u64| mean.map_or(requested, |mean| mean.round() as u64);
        RunRecord {
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
            }),
            requests: Some(found.requests),
            metrics: found.metrics,
            repeats: Some(found.repeats),
            client: Some(found.client),
            resolved_settings: self.facts.settings.clone(),
            server_metrics,
            ..subject.record(&self.facts, &self.model, predicted)
        }
    }
}

/// Whether an earlier run of a file is of this load.
pub fn is_done(earlier: &[RunRecord], point: &LoadPoint, protocol: Protocol) -> bool {
    let measured = |run: &&RunRecord| run.outcome == RunOutcome::Measured;
    earlier.iter().filter(measured).any(|run| point.is_of(run, protocol.name()))
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
