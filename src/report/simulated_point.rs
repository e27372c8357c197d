//! A point of a sweep under traffic: its figures, and their columns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::simulate::{LatencyRow, SimulateReport};
use crate::spec::percentile::Percentile;

/// A point of a sweep, simulated request by request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SimulatedPoint {
    /// Why it was not simulated; null where it was.
    pub reason: Option<String>,
    /// Latencies as distributions; none where it was not simulated.
    pub latencies: Vec<LatencyRow>,
    /// Output tokens per second.
    pub output_tok_s: Option<f64>,
    /// Requests per second.
    pub requests_per_s: Option<f64>,
    /// Share of the requests within all latency limits; null without limits.
    pub goodput: Option<f64>,
    /// Share of prompt tokens that were in the cache.
    pub hit_rate: Option<f64>,
    /// Replicas that were simulated, where these are not all.
    pub sampled_replicas: Option<u64>,
}

impl SimulatedPoint {
    /// The figures of a simulation.
    pub fn of(report: &SimulateReport) -> SimulatedPoint {
        SimulatedPoint {
            reason: None,
            latencies: report.latencies.clone(),
            output_tok_s: Some(report.output_tok_s),
            requests_per_s: Some(report.requests_per_s),
            goodput: report.goodput,
            hit_rate: Some(report.hit_rate),
            sampled_replicas: report.sample.as_ref().map(|sample| sample.simulated),
        }
    }

    /// A point that was not simulated.
    pub fn without(reason: String) -> SimulatedPoint {
        SimulatedPoint { reason: Some(reason), ..SimulatedPoint::default() }
    }

    fn latency(&self, metric: &str, percentile: Percentile) -> Option<f64> {
        self.latencies.iter().find(|row| row.metric == metric)?.at(percentile)
    }
}

/// A figure of a simulated point.
#[derive(Clone, Copy, Debug)]
pub struct SimulatedFigure {
    /// Its column.
    pub column: &'static str,
    /// Its name in texts and pictures, with its unit.
    pub label: &'static str,
    /// Whether a table and a picture show it where nothing else is chosen.
    pub is_shown: bool,
    read: fn(&SimulatedPoint) -> Option<f64>,
}

impl SimulatedFigure {
    /// Its value.
    pub fn of(&self, point: &SimulatedPoint) -> Option<f64> {
        (self.read)(point).filter(|value| value.is_finite())
    }
}

/// Rows of the table of figures.
macro_rules! figures {
    ($($column:literal $label:literal $shown:literal $read:expr;)*) => {
        /// Every figure, in the order of columns.
        pub const SIMULATED_FIGURES: &[SimulatedFigure] = &[
            $(SimulatedFigure { column: $column, label: $label, is_shown: $shown, read: $read },)*
        ];
    };
}

figures! {
    "simulated_ttft_p50_ms" "TTFT p50 ms" false |one| one.latency("ttft", Percentile::P50);
    "simulated_ttft_p90_ms" "TTFT p90 ms" false |one| one.latency("ttft", Percentile::P90);
    "simulated_ttft_p95_ms" "TTFT p95 ms" false |one| one.latency("ttft", Percentile::P95);
    "simulated_ttft_p99_ms" "TTFT p99 ms" true |one| one.latency("ttft", Percentile::P99);
    "simulated_tpot_p50_ms" "TPOT p50 ms" false |one| one.latency("tpot", Percentile::P50);
    "simulated_tpot_p90_ms" "TPOT p90 ms" false |one| one.latency("tpot", Percentile::P90);
    "simulated_tpot_p95_ms" "TPOT p95 ms" false |one| one.latency("tpot", Percentile::P95);
    "simulated_tpot_p99_ms" "TPOT p99 ms" true |one| one.latency("tpot", Percentile::P99);
    "simulated_e2e_p50_ms" "E2E p50 ms" false |one| one.latency("e2e", Percentile::P50);
    "simulated_e2e_p90_ms" "E2E p90 ms" false |one| one.latency("e2e", Percentile::P90);
    "simulated_e2e_p95_ms" "E2E p95 ms" false |one| one.latency("e2e", Percentile::P95);
    "simulated_e2e_p99_ms" "E2E p99 ms" false |one| one.latency("e2e", Percentile::P99);
    "simulated_output_tok_s" "tok/s" true |one| one.output_tok_s;
    "simulated_requests_per_s" "requests/s" false |one| one.requests_per_s;
    "simulated_goodput" "goodput" true |one| one.goodput;
    "simulated_hit_rate" "cache hits" false |one| one.hit_rate;
}

/// The column of the reason for which a point was not simulated, and that of the replicas that were simulated of more.
pub const SIMULATED_REASON: &str = "simulated_reason";
pub const SIMULATED_REPLICAS: &str = "simulated_replicas";
