//! The part of an answer of `simulate` that is of clients that gave up, faults, and replicas that came and went.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::simulate::LatencyRow;
use crate::traffic::scaler::{ScaleSignal, ScalerSettings};

/// The outcome of the operation of a deployment.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OperationReport {
    /// Requests that their clients gave up; no figure of latency or throughput counts them, and none is within the SLOs.
    pub aborted: u64,
    /// Output tokens of requests that were given up or lost: no client has them.
    pub wasted_tokens: u64,
    /// Sessions that ended early because one of their requests was given up or failed; absent without sessions.
    pub sessions_given_up: Option<u64>,
    /// Faults; absent where none can happen.
    pub faults: Option<FaultReport>,
    /// Scaling; absent where the number of replicas does not change.
    pub scaling: Option<ScalingReport>,
    /// Mean number of replicas that were held: that served, started or were emptied.
    pub mean_replicas: f64,
    /// Hours that devices were held, all of them together.
    pub device_hours: f64,
    /// Their cost in US dollars; absent without a price.
    pub usd: Option<f64>,
    /// Cost per million output tokens that were answered.
    pub usd_per_mtok: Option<f64>,
}

/// Faults of replicas.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FaultReport {
    /// Faults of a replica that served.
    pub faults: u64,
    /// How often a request was lost in one.
    pub lost: u64,
    /// Requests that were lost once too often, and failed.
    pub failed: u64,
    /// Requests that figures count and that arrived while a replica that had failed was starting again.
    pub in_recovery: u64,
    /// Latencies of these.
    pub recovery: Vec<LatencyRow>,
    /// Latencies of the others.
    pub outside: Vec<LatencyRow>,
}

/// The scaler of replicas.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ScalingReport {
    /// The signal that replicas are added and removed by.
    pub signal: ScaleSignal,
    /// Its value that a replica should have.
    pub target: f64,
    pub min_replicas: u64,
    pub max_replicas: u64,
    /// Seconds between two readings of the signal.
    pub interval_s: f64,
    /// Seconds for which fewer replicas must have sufficed before any was removed.
    pub scale_down_s: f64,
}

impl ScalingReport {
    /// The scaler with these settings.
    pub fn of(settings: &ScalerSettings) -> ScalingReport {
        ScalingReport {
            signal: settings.signal,
            target: settings.target,
            min_replicas: settings.least as u64,
            max_replicas: settings.most as u64,
            interval_s: settings.interval_s,
            scale_down_s: settings.scale_down_s,
        }
    }
}
