//! The answer of `simulate`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capacity::CapacityReport;
use super::checked::SimulatedCheck;
use super::operation::OperationReport;
use super::result::Quantiles;
use super::sampled_replicas::SampledReplicas;
use super::sheet;
use super::simulated_figures::{
    LatencyIntervals, PoolUtilization, SimulatedCost, SimulatedEnergy, SimulatedIntervals,
};
use super::simulated_records::KeptRequests;
use super::tiers::TierReport;
use crate::spec::percentile::Percentile;
use crate::spec::role::Role;
use crate::spec::scenario::Scenario;
use crate::traffic::cache_tier::CacheTierSettings;
use crate::traffic::engine::SchedulerSettings;
use crate::traffic::outcome::{Distribution, RequestRecord, TimelinePoint};
use crate::traffic::router::RoutePolicy;
use crate::traffic::run::PoolSettings;
use crate::traffic::time_windows::WindowLatencies;

/// A deployment under traffic.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SimulateReport {
    /// The question, with the plan.
    pub scenario: Scenario,
    /// The plan in one line.
    pub notation: String,
    pub traffic: TrafficReport,
    /// The replicas.
    pub pools: Vec<SimulatedPool>,
    /// How requests are spread over them.
    pub router: RoutePolicy,
    /// Latencies as distributions over requests; times between tokens over tokens.
    pub latencies: Vec<LatencyRow>,
    /// Output tokens per second while the counted requests were in the system.
    pub output_tok_s: f64,
    /// Requests per second.
    pub requests_per_s: f64,
    /// Mean number of requests in the system, over the whole run.
    pub concurrency: f64,
    /// Share of the requests within all latency limits, of those too that were given up or failed; absent without limits.
    pub goodput: Option<f64>,
    /// Share of prompt tokens that were in the cache.
    pub hit_rate: f64,
    /// The same of a cache without limits, that holds all that came before.
    pub unlimited_hit_rate: f64,
    /// Tokens that a decoding step gives a request on average, with those that its draft proposed and the model accepted;
    /// absent without a draft.
    pub tokens_per_step: Option<f64>,
    /// How often a request lost its place in the cache to others.
    pub preemptions: u64,
    /// Steps of all replicas.
    pub steps: u64,
    /// The figures of the formulas of `estimate`, at the same load.
    pub closed_form: Option<ServedFigures>,
    /// The slowest requests, and why.
    pub slowest: Vec<SlowRequest>,
    /// The state of the run over time.
    pub timeline: Vec<TimelinePoint>,
    /// Latencies over time: up to 60 equal windows, from the first arrival of a counted request to the last.
    #[serde(default)]
    pub windows: Vec<LatencyWindow>,
    /// Clients that gave up, faults and scaling; absent where the request has none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationReport>,
    /// The simulation of the best plans that chose this one; absent where a plan was stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<SimulatedCheck>,
    /// The replicas that were simulated, where these are not all, and the standard errors of the figures above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<SampledReplicas>,
    /// The limit that was searched for; the other figures are of the run at the value found. Absent without a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<CapacityReport>,
    /// How far the replicas were used, by pool in their order.
    #[serde(default)]
    pub utilization: Vec<PoolUtilization>,
    /// Energy of the run; null where the power of the devices is unknown.
    #[serde(default)]
    pub energy: Option<SimulatedEnergy>,
    /// Devices held, and their cost.
    #[serde(default)]
    pub cost: Option<SimulatedCost>,
    /// Intervals of the figures; absent without `draws`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals: Option<SimulatedIntervals>,
    /// One record for each of the first requests; absent unless requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<KeptRequests>,
    /// Hits by tier of the KV cache; absent where only the devices have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tiers: Option<TierReport>,
}

/// Equal replicas.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SimulatedPool {
    /// Their part of a request.
    pub role: Role,
    pub replicas: u64,
    /// Attention ranks of a replica, each with its own scheduler and cache.
    pub attention_ranks: u64,
    pub scheduler: SchedulerSettings,
    /// Tiers of the KV cache behind the devices of each attention rank; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tiers: Option<CacheTierSettings>,
}

impl SimulatedPool {
    /// The pool with these settings.
    pub fn of(settings: &PoolSettings) -> SimulatedPool {
        SimulatedPool {
            role: settings.role,
            replicas: settings.replicas as u64,
            attention_ranks: settings.ranks as u64,
            scheduler: settings.scheduler.clone(),
            tiers: settings.tiers.clone(),
        }
    }
}

/// The traffic of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct TrafficReport {
    /// Requests sent.
    pub requests: u64,
    /// Requests that figures count, after the warm-up.
    pub measured: u64,
    /// Requests that no replica's cache can hold.
    pub refused: u64,
    /// Mean prompt tokens of the requests that were answered.
    pub mean_isl: f64,
    /// Sessions that sent requests; absent where each request is on its own.
    pub sessions: Option<u64>,
    /// Sessions that ended early: the cache, or the model's window, does not hold their next request.
    pub sessions_cut: Option<u64>,
    /// Requests per second, where they arrive at a rate.
    pub rate_per_s: Option<f64>,
    /// Clients, where each sends its next request, or starts its next session, after its last answer.
    pub clients: Option<u64>,
    /// Seed of all that is random.
    pub seed: u64,
}

/// A latency as a distribution, in ms.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LatencyRow {
    /// `ttft`, `queue`, `tpot`, `itl` or `e2e`.
    pub metric: String,
    pub mean_ms: Option<f64>,
    pub p50_ms: Option<f64>,
    pub p90_ms: Option<f64>,
    pub p95_ms: Option<f64>,
    pub p99_ms: Option<f64>,
}

impl LatencyRow {
    /// Its value at a percentile, in ms.
    pub fn at(&self, percentile: Percentile) -> Option<f64> {
        match percentile {
            Percentile::P50 => self.p50_ms,
            Percentile::P90 => self.p90_ms,
            Percentile::P95 => self.p95_ms,
            Percentile::P99 => self.p99_ms,
        }
    }

    /// Its values: the mean, p50, p90, p95, p99.
    pub fn values(&self) -> [Option<f64>; 5] {
        [self.mean_ms, self.p50_ms, self.p90_ms, self.p95_ms, self.p99_ms]
    }

    /// The row of `values`, in seconds.
    pub fn of(metric: &str, values: &Distribution) -> LatencyRow {
        let part = |part| values.percentile(part).map(|seconds| seconds * 1e3);
        LatencyRow {
            metric: metric.to_owned(),
            mean_ms: values.mean().map(|seconds| seconds * 1e3),
            p50_ms: part(0.5),
            p90_ms: part(0.9),
            p95_ms: part(0.95),
            p99_ms: part(0.99),
        }
    }
}

/// Latencies of the counted requests that arrived in a window of the time.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LatencyWindow {
    /// Its beginning, in seconds from the start of the run.
    pub from_s: f64,
    /// Its end, in seconds from the start of the run.
    pub to_s: f64,
    /// Counted requests that arrived in it.
    pub requests: u64,
    /// Time to first token; null where no request arrived.
    pub ttft: Option<WindowPercentiles>,
    /// Time per output token; null where no request with more than one of them arrived.
    pub tpot: Option<WindowPercentiles>,
}

impl LatencyWindow {
    /// The window between these times, in seconds.
    pub fn of(([from_s, to_s], window): &([f64; 2], WindowLatencies)) -> LatencyWindow {
        LatencyWindow {
            from_s: *from_s,
            to_s: *to_s,
            requests: window.ttft.count(),
            ttft: WindowPercentiles::of(&window.ttft),
            tpot: WindowPercentiles::of(&window.tpot),
        }
    }
}

/// Percentiles of a latency over the requests of a window, in ms.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WindowPercentiles {
    /// Median, in ms.
    pub p50_ms: f64,
    /// 90th percentile, in ms.
    pub p90_ms: f64,
    /// 99th percentile, in ms.
    pub p99_ms: f64,
}

impl WindowPercentiles {
    /// Those of `values`, in seconds; `None` of nothing.
    fn of(values: &Distribution) -> Option<WindowPercentiles> {
        let at = |part| values.percentile(part).map(|seconds| seconds * 1e3);
        Some(WindowPercentiles { p50_ms: at(0.5)?, p90_ms: at(0.9)?, p99_ms: at(0.99)? })
    }
}

/// Latencies and throughput under a load.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ServedFigures {
    pub ttft_ms: f64,
    pub tpot_ms: f64,
    pub e2e_ms: f64,
    pub output_tok_s: f64,
}

/// Where the time of a request went, in ms.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SlowRequest {
    /// Its number, in order of arrival.
    pub id: u64,
    pub arrived_s: f64,
    pub isl: u32,
    pub osl: u32,
    pub e2e_ms: f64,
    /// Until its first step began.
    pub queue_ms: f64,
    /// From there to its first token.
    pub prefill_ms: f64,
    /// From the end of its prefill until a worker that decodes had its cache.
    pub transfer_ms: f64,
    /// From its first to its last token, without preemptions.
    pub decode_ms: f64,
    /// In the queue after preemptions.
    pub preempted_ms: f64,
    pub preemptions: u32,
    /// Tokens of its prompt that were in the cache.
    pub cached_tokens: u32,
    /// Of these, those that came from tiers behind the devices; absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded_tokens: Option<u32>,
    /// From the start of their load to its end: in the queue, or, where a step waits for them, in the prefill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_ms: Option<f64>,
}

impl SlowRequest {
    /// The request of a record.
    pub fn of(one: &RequestRecord) -> SlowRequest {
        let loaded_tokens = Some(one.host_tokens + one.store_tokens).filter(|tokens| *tokens > 0);
        SlowRequest {
            id: one.id,
            arrived_s: one.arrived_s,
            isl: one.prompt,
            osl: one.output,
            e2e_ms: one.e2e_s() * 1e3,
            queue_ms: (one.admitted_s - one.arrived_s) * 1e3,
            prefill_ms: (one.first_token_s - one.admitted_s - one.transfer_s) * 1e3,
            transfer_ms: one.transfer_s * 1e3,
            decode_ms: (one.last_token_s - one.first_token_s - one.preempted_s) * 1e3,
            preempted_ms: one.preempted_s * 1e3,
            preemptions: one.preemptions,
            cached_tokens: one.cached_tokens,
            loaded_tokens,
            load_ms: loaded_tokens.map(|_| one.load_s * 1e3),
        }
    }
}

/// Columns of the times of a latency, and of their standard errors.
const TIMES: [&str; 5] = ["mean_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms"];
const ERRORS: [&str; 5] = ["mean_error_ms", "p50_error_ms", "p90_error_ms", "p95_error_ms", "p99_error_ms"];

/// One row for each latency; with intervals, their ends follow each value, and where a sample of the replicas was
/// simulated, the standard errors follow all of them.
pub fn csv(report: &SimulateReport) -> String {
    let cell = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let drawn = report.intervals.as_ref().map(|found| &found.latencies);
    let header = TIMES.iter().flat_map(|name| match drawn {
        None => vec![(*name).to_owned()],
        Some(_) => vec![(*name).to_owned(), format!("{name}_p10"), format!("{name}_p90")],
    });
    let errors = report.sample.iter().flat_map(|_| ERRORS.map(str::to_owned));
    let header: Vec<String> = std::iter::once("metric".to_owned()).chain(header).chain(errors).collect();
    let row = |(at, one): (usize, &LatencyRow)| {
        let ends = drawn.map(|drawn| drawn.get(at).map_or([None; 5], LatencyIntervals::values));
        let cells = one.values().into_iter().enumerate().flat_map(|(place, value)| match &ends {
            None => vec![cell(value)],
            Some(ends) => {
                let of = |end: fn(&Quantiles) -> f64| cell(ends[place].as_ref().map(end));
                vec![cell(value), of(|ends| ends.p10), of(|ends| ends.p90)]
            }
        });
        let errors = report.sample.as_ref().and_then(|sample| sample.errors.latency(&one.metric));
        let errors = errors.into_iter().flat_map(|errors| errors.values().map(cell));
        std::iter::once(one.metric.clone()).chain(cells).chain(errors).collect::<Vec<_>>()
    };
    sheet::csv(header.iter().map(String::as_str), report.latencies.iter().enumerate().map(row))
}
