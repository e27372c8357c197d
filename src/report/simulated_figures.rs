//! The part of an answer of `simulate` that is of its devices: utilisation, energy and cost; and the intervals of its
//! figures.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::result::Quantiles;
use crate::spec::nearness::Nearness;
use crate::spec::role::Role;

/// How far the replicas of a pool were used while they were held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PoolUtilization {
    /// Their part of a request.
    pub role: Role,
    /// Share of the time in which a scheduler's step runs; the mean over attention ranks and replicas.
    pub busy: f64,
    /// Share of the KV cache in use by requests, on average over the time.
    pub kv_used_mean: f64,
    /// The largest share of a replica's KV cache that was in use at a time.
    pub kv_used_max: f64,
    /// Model FLOPs utilisation (MFU) over the time, steps and idle times together.
    pub mfu: f64,
    /// Model bandwidth utilisation (MBU), in the same way.
    pub mbu: f64,
}

/// Energy of a run, warm-up included: of each step by its own arithmetic and memory traffic, and idle power between steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulatedEnergy {
    /// Energy of the devices, in joules.
    pub joules: f64,
    /// Mean power of the devices.
    pub watts: f64,
    /// Mean power of devices, nodes and facility; absent where the system's is unknown.
    pub facility_watts: Option<f64>,
    /// Energy of the devices per output token that was answered.
    pub joules_per_output_token: f64,
    /// Energy of the devices per request that was answered, in watt-hours.
    pub wh_per_request: f64,
}

/// Devices that a run held, warm-up included, and their cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulatedCost {
    /// Hours that devices were held, all of them together.
    pub device_hours: f64,
    /// Their cost in US dollars; absent without a price.
    pub usd: Option<f64>,
    /// Cost per million output tokens that were answered.
    pub usd_per_mtok: Option<f64>,
    /// Cost per million tokens of prompt or output.
    pub usd_per_mtok_total: Option<f64>,
}

/// Intervals of the figures: the same traffic, run again with step times as uncertain as the prediction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulatedIntervals {
    /// Number of runs, each with a draw of the errors of prefill and decode steps.
    pub draws: u64,
    /// Similarity of the deployment to the measured ones.
    pub near: Nearness,
    /// Of latencies.
    pub latencies: Vec<LatencyIntervals>,
    /// Of output tokens per second.
    pub output_tok_s: Quantiles,
    /// Of requests per second.
    pub requests_per_s: Quantiles,
    /// Of the share of requests within both latency limits; absent without limits.
    pub goodput: Option<Quantiles>,
    /// Source of the errors.
    pub source: String,
}

/// Intervals of a latency, in ms: of its mean, and of each percentile over requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyIntervals {
    /// `ttft`, `queue`, `tpot`, `itl` or `e2e`.
    pub metric: String,
    pub mean_ms: Option<Quantiles>,
    pub p50_ms: Option<Quantiles>,
    pub p90_ms: Option<Quantiles>,
    pub p95_ms: Option<Quantiles>,
    pub p99_ms: Option<Quantiles>,
}

impl LatencyIntervals {
    /// Those of the mean, of p50, p90, p95 and p99.
    pub fn values(&self) -> [Option<Quantiles>; 5] {
        [self.mean_ms, self.p50_ms, self.p90_ms, self.p95_ms, self.p99_ms]
    }
}

impl Quantiles {
    /// Those of draws: each is the value that its share of the draws does not exceed; `None` of nothing.
    pub fn of_draws(mut values: Vec<f64>) -> Option<Quantiles> {
        values.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let rank = (part * values.len() as f64).ceil().max(1.0) as usize;
            values.get(rank - 1).copied()
        };
        Some(Quantiles { p10: at(0.1)?, p50: at(0.5)?, p90: at(0.9)? })
    }
}
