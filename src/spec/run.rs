//! One run: a deployment under one load, with its measured or predicted figures.
//!
//! Published rows, imported files, own measurements and simulations are the same type, which differ by `origin`. A file of
//! runs has a JSON object a line. A run holds no prompt, no answer and no name of a host.

// Without measurements, their statistics have no user.
#![cfg_attr(not(feature = "bench"), allow(dead_code))]

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::percentile::Percentile;
use super::telemetry::RunTelemetry;

/// Where a run comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOrigin {
    /// Measured here, by `bench`.
    Own,
    /// Read from the file of another tool.
    #[default]
    Imported,
    /// From a published table.
    Published,
    /// Simulated.
    Simulated,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// Requests were answered: the figures are theirs.
    #[default]
    Measured,
    /// No request of the load was answered.
    Unanswered,
    /// The server could not be reached.
    Unreachable,
    /// The server did not start: its memory did not suffice.
    Oom,
    /// The server did not start for another reason.
    NotStarted,
    /// The server ended during the run: its figures are left out.
    Died,
}

/// One run of a deployment under one load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// Its id, unique among all runs.
    pub run_id: String,
    /// Its start: RFC 3339, UTC.
    pub timestamp_utc: String,
    /// Where it comes from.
    #[serde(default)]
    pub origin: RunOrigin,
    /// The program that made it with its version, or the address of its publisher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// How it ended.
    #[serde(default)]
    pub outcome: RunOutcome,
    /// Model: Hugging Face id where known, else the name that its server has for it.
    pub model_id: String,
    /// Runtime.
    pub runtime_id: String,
    /// Its version, as it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_version: Option<String>,
    /// Device, as `mantile-opt catalog devices` lists it, or another name of the hardware; absent where unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware_id: Option<String>,
    /// Devices of the deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices: Option<u64>,
    /// Weight format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quant: Option<String>,
    /// Format of keys and values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_format: Option<String>,
    /// The plan in one line, as `--plan` reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Degrees of an aggregated deployment.
    #[serde(default)]
    pub parallelism: RunDegrees,
    /// Mean tokens of a prompt.
    pub context_tokens: u64,
    /// Mean tokens of an answer.
    pub output_tokens: u64,
    /// Clients, each of which sends its next request after its last answer; absent under a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
    /// Requests per second that were sent, whether or not earlier ones were answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Coefficient of variation of the gaps between these: 0 for even gaps, 1 for Poisson arrivals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival_variation: Option<f64>,
    /// How it was measured; absent of runs that were not measured here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<RunMethod>,
    /// Requests by their end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<RunRequests>,
    /// The figures.
    #[serde(default)]
    pub metrics: BenchMetrics,
    /// How far its repeats agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<RunRepeats>,
    /// The client's own part in the figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientOverhead>,
    /// Driver, operating system, container and the like, by name.
    #[serde(default)]
    pub env: BTreeMap<String, Value>,
    /// The runtime's settings as it reports them: numbers, switches and names of methods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resolved_settings: BTreeMap<String, Value>,
    /// Metrics that the server exports, by name: the growth of counters over the run, gauges at its end.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub server_metrics: BTreeMap<String, f64>,
    /// Readings of the machine of the server, or else of the client, during the measured part of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<RunTelemetry>,
    /// The prediction that was made before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<RunPrediction>,
}

/// A load in words: `8 clients`, `4 requests/s`.
pub fn load_in_words(clients: Option<u64>, rate_per_s: Option<f64>) -> String {
    match (clients, rate_per_s) {
        (Some(1), _) => "1 client".to_owned(),
        (Some(clients), _) => format!("{clients} clients"),
        (None, Some(rate)) => format!("{rate} requests/s"),
        (None, None) => String::new(),
    }
}

impl RunRecord {
    /// Its load in words.
    pub fn load(&self) -> String {
        let plain = || load_in_words(self.concurrency, self.rate_per_s);
        self.trace().map_or_else(plain, RunTrace::words)
    }

    /// The trace whose requests were sent, if it was one.
    pub fn trace(&self) -> Option<&RunTrace> {
        self.method.as_ref()?.trace.as_ref()
    }

    /// Why the run is neither scored nor learned from, if so.
    pub fn doubt(&self) -> Option<String> {
        let died = if self.outcome == RunOutcome::Died { "the server ended during the run; " } else { "" };
        if let Some(requests) = self.requests.as_ref().filter(|requests| requests.answered < requests.sent) {
            let late = (requests.timed_out > 0).then(|| format!("{} timed out", requests.timed_out));
            let failed = requests.errors.iter().map(|(reason, count)| format!("{count} x {reason}"));
            let reasons: Vec<String> = late.into_iter().chain(failed).collect();
            let (answered, sent) = (requests.answered, requests.sent);
            return Some(format!(
                "{died}{answered} of {sent} requests were answered; {}",
                reasons.join(", ")
            ));
        }
        if self.outcome != RunOutcome::Measured {
            return Some(format!("{died}no request was answered"));
        }
        if self.trace().is_some() {
            return Some("its load is that of a trace".to_owned());
        }
        let repeats = self.repeats.filter(|repeats| !repeats.stable)?;
        let widest = repeats.tpot_variation.unwrap_or(0.0).max(repeats.e2e_variation.unwrap_or(0.0));
        Some(match widest > 0.0 {
            true => format!("its repeats vary by {:.0} %", widest * 100.0),
            false => "its repeats are too few".to_owned(),
        })
    }
}

/// Degrees of one replica, and the number of replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunDegrees {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tensor_parallel: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipeline_parallel: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_parallel: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expert_parallel: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u64>,
}

/// Coefficient of variation of repeats above which a run is not learned from.
pub const MOST_VARIATION: f64 = 0.05;

/// `env.host` of a host that is described by the system of the question alone.
pub const OF_SYSTEM: &str = "system";

/// The workload of the catalogue whose requests all have the same lengths, as those of a measurement of `bench` have.
pub const EQUAL_LENGTHS: &str = "benchmark";

/// The runtime of a run whose server names none.
pub const UNKNOWN_RUNTIME: &str = "unknown";

/// How a run was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunMethod {
    /// The interface of the server.
    pub protocol: String,
    /// Tokens of a prompt, as requested.
    pub isl: u64,
    /// Tokens of an answer, as requested.
    pub osl: u64,
    /// Whether the request forbids the answer to end early.
    pub fixed_length: bool,
    /// Seed of prompts and arrivals.
    pub seed: u64,
    /// Whether every answer had a count of tokens by the server; else chunks were counted.
    pub counted_by_server: bool,
    /// The trace whose requests were sent; `isl` and `osl` are the means of its lengths. Absent of other loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<RunTrace>,
}

/// A trace whose requests were sent at their times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunTrace {
    /// SHA-256 of the text of its file, in hexadecimal digits.
    pub sha256: String,
    /// Requests in it.
    pub requests: u64,
    /// Time of the trace that passed in a second.
    pub speed_up: f64,
    /// Seconds from its first request to its last, at this speed.
    pub seconds: f64,
}

impl RunTrace {
    /// The load in words: `trace of 400 requests`.
    pub fn words(&self) -> String {
        format!("trace of {} requests", self.requests)
    }
}

/// Requests of a run, after the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRequests {
    /// Requests at the start that no figure counts.
    pub warm_up: u64,
    /// Requests that figures count.
    pub sent: u64,
    /// Of these, those that were answered.
    pub answered: u64,
    /// Those that had no answer in time.
    pub timed_out: u64,
    /// Those that failed, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
}

/// Parts of a run: each has the same number of requests, in the order in which they were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRepeats {
    /// Their number.
    pub count: u64,
    /// Coefficient of variation of their median TPOT.
    pub tpot_variation: Option<f64>,
    /// Coefficient of variation of their median E2E; absent under a rate, where queues come and go.
    pub e2e_variation: Option<f64>,
    /// Whether neither is above 5 %: only then is the run learned from.
    pub stable: bool,
}

/// The client's own part in the figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientOverhead {
    /// Delay between an event and its handling in the client, measured throughout the run: median, ms.
    pub delay_ms_p50: Option<f64>,
    /// Its 99th percentile, ms.
    pub delay_ms_p99: Option<f64>,
    /// The longest, ms.
    pub delay_ms_max: Option<f64>,
    /// Mean time from the arrival of a chunk of an answer until it is read, microseconds.
    pub chunk_us_mean: Option<f64>,
    /// How late requests were sent after their scheduled time, 99th percentile, ms; latencies count from the scheduled time.
    pub late_ms_p99: Option<f64>,
    /// Connections that were opened.
    pub connections: u64,
}

/// A prediction of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunPrediction {
    /// The program with its version.
    pub version: String,
    /// Median TTFT, ms.
    pub ttft_ms: Option<f64>,
    /// Its p10 and p90.
    pub ttft_ms_interval: Option<[f64; 2]>,
    /// Median TPOT, ms.
    pub tpot_ms: Option<f64>,
    /// Its p10 and p90.
    pub tpot_ms_interval: Option<[f64; 2]>,
    /// Median E2E, ms.
    pub latency_ms: Option<f64>,
    /// Output tokens per second of the deployment.
    pub decode_toks_sec: Option<f64>,
    /// Energy of the devices per output token, J.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joules_per_token: Option<f64>,
}

/// Latencies of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLatency {
    Ttft,
    Tpot,
    Itl,
    E2e,
}

impl RunLatency {
    pub const ALL: [RunLatency; 4] = [RunLatency::Ttft, RunLatency::Tpot, RunLatency::Itl, RunLatency::E2e];
}

/// A statistic of latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatistic {
    Mean,
    At(Percentile),
}

/// Declares the figures of a run, and where each latency is among them.
macro_rules! run_metrics {
    ($($(#[$doc:meta])* $field:ident $(= $latency:ident $statistic:expr)?;)*) => {
        /// Figures of a run; absent where unknown.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct BenchMetrics {$(
            $(#[$doc])*
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $field: Option<f64>,
        )*}

        impl BenchMetrics {
            /// The place of a latency.
            pub fn latency_mut(&mut self, latency: RunLatency, statistic: RunStatistic) -> Option<&mut Option<f64>> {
                $($(
                    if (latency, statistic) == (RunLatency::$latency, $statistic) {
                        return Some(&mut self.$field);
                    }
                )?)*
                None
            }

            /// A latency in ms.
            pub fn latency(&self, latency: RunLatency, statistic: RunStatistic) -> Option<f64> {
                *self.clone().latency_mut(latency, statistic)?
            }
        }
    };
}

const P50: RunStatistic = RunStatistic::At(Percentile::P50);
const P90: RunStatistic = RunStatistic::At(Percentile::P90);
const P95: RunStatistic = RunStatistic::At(Percentile::P95);
const P99: RunStatistic = RunStatistic::At(Percentile::P99);

run_metrics! {
    /// Mean time to first token, ms.
    ttft_ms_mean = Ttft RunStatistic::Mean;
    /// Its median, ms.
    ttft_ms_p50 = Ttft P50;
    /// Its 90th percentile, ms.
    ttft_ms_p90 = Ttft P90;
    /// Its 95th percentile, ms.
    ttft_ms_p95 = Ttft P95;
    /// Its 99th percentile, ms.
    ttft_ms_p99 = Ttft P99;
    /// Mean time per output token after the first, ms.
    tpot_ms_mean = Tpot RunStatistic::Mean;
    /// Its median over requests, ms.
    tpot_ms_p50 = Tpot P50;
    /// Its 90th percentile, ms.
    tpot_ms_p90 = Tpot P90;
    /// Its 95th percentile, ms.
    tpot_ms_p95 = Tpot P95;
    /// Its 99th percentile, ms.
    tpot_ms_p99 = Tpot P99;
    /// Mean time between chunks of an answer, ms.
    itl_ms_mean = Itl RunStatistic::Mean;
    /// Its median over chunks, ms.
    itl_ms_p50 = Itl P50;
    /// Its 90th percentile, ms.
    itl_ms_p90 = Itl P90;
    /// Its 95th percentile, ms.
    itl_ms_p95 = Itl P95;
    /// Its 99th percentile, ms.
    itl_ms_p99 = Itl P99;
    /// Mean time of a request, to its last token, ms.
    latency_ms_mean = E2e RunStatistic::Mean;
    /// Its median, ms.
    latency_ms_p50 = E2e P50;
    /// Its 90th percentile, ms.
    latency_ms_p90 = E2e P90;
    /// Its 95th percentile, ms.
    latency_ms_p95 = E2e P95;
    /// Its 99th percentile, ms.
    latency_ms_p99 = E2e P99;
    /// Prompt tokens per second.
    prefill_toks_sec;
    /// Output tokens per second of all requests.
    decode_toks_sec;
    /// Answered requests per second.
    requests_sec;
    /// Mean number of requests in flight.
    mean_concurrency;
    /// Share of prompt tokens that the server had in its cache; absent where it does not say.
    cached_share;
    /// Device memory in use, all devices, GB.
    vram_peak_gb;
    /// Host memory in use, GB.
    ram_peak_gb;
    /// Traffic over PCIe, GB/s.
    pcie_tx_gbps;
    /// Utilization of the devices, percent.
    gpu_util_pct;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The record of the interface that this one goes on from.
    const PUBLISHED: &str = r#"{
        "run_id": "uuid", "timestamp_utc": "2026-02-07T21:00:00Z", "model_id": "llama-3.1-70b-instruct",
        "runtime_id": "vllm-0.6.4-cuda12.4", "hardware_id": "dual-4090-epyc", "quant": "awq-int4",
        "context_tokens": 8192, "output_tokens": 512, "concurrency": 8,
        "parallelism": {"tensor_parallel": 2, "pipeline_parallel": 1},
        "metrics": {"ttft_ms_p50": 420, "ttft_ms_p95": 690, "prefill_toks_sec": 1650, "decode_toks_sec": 168,
            "latency_ms_p50": 940, "latency_ms_p95": 1870, "vram_peak_gb": 45.8, "ram_peak_gb": 71.0,
            "pcie_tx_gbps": 19.1, "gpu_util_pct": 87},
        "env": {"driver": "550.120", "os": "ubuntu-24.04", "container_hash": "sha256:..."}
    }"#;

    #[test]
    fn a_run_of_a_trace_and_one_whose_server_died_are_in_doubt() {
        let method = RunMethod {
            trace: Some(RunTrace { requests: 3, speed_up: 1.0, ..RunTrace::default() }),
            ..RunMethod::default()
        };
        let traced = RunRecord { method: Some(method), ..RunRecord::default() };
        assert_eq!(traced.doubt().as_deref(), Some("its load is that of a trace"));
        assert_eq!(traced.load(), "trace of 3 requests");
        let again: RunRecord = serde_json::from_str(&serde_json::to_string(&traced).unwrap()).unwrap();
        assert_eq!(again, traced);
        let errors = [("no answer".to_owned(), 2)].into();
        let requests = RunRequests { sent: 5, answered: 3, errors, ..RunRequests::default() };
        let died = RunRecord { outcome: RunOutcome::Died, requests: Some(requests), ..RunRecord::default() };
        let doubt = died.doubt().unwrap();
        assert_eq!(doubt, "the server ended during the run; 3 of 5 requests were answered; 2 x no answer");
        assert_eq!(RunRecord::default().doubt(), None);
    }

    #[test]
    fn a_published_record_is_a_run_and_every_statistic_has_its_place() {
        let read: RunRecord = serde_json::from_str(PUBLISHED).unwrap();
        assert_eq!((read.origin, read.outcome), (RunOrigin::Imported, RunOutcome::Measured));
        assert_eq!(read.metrics.latency(RunLatency::Ttft, P95), Some(690.0));
        assert_eq!(read.metrics.latency(RunLatency::E2e, P50), Some(940.0));
        assert_eq!(read.parallelism.tensor_parallel, Some(2));
        let again: RunRecord = serde_json::from_str(&serde_json::to_string(&read).unwrap()).unwrap();
        assert_eq!(again, read);
        let mut metrics = BenchMetrics::default();
        for (number, latency) in RunLatency::ALL.into_iter().enumerate() {
            let parts = Percentile::ALL.map(RunStatistic::At);
            for (place, statistic) in [RunStatistic::Mean].into_iter().chain(parts).enumerate() {
                *metrics.latency_mut(latency, statistic).unwrap() = Some((number * 10 + place) as f64);
                assert_eq!(metrics.latency(latency, statistic), Some((number * 10 + place) as f64));
            }
        }
        assert_eq!((metrics.itl_ms_p99, metrics.tpot_ms_mean), (Some(24.0), Some(10.0)));
    }
}
