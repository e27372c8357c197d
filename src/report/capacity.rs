//! The part of an answer of `simulate` that is of the search for a limit: the highest load, or the fewest replicas.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::number::{digits, plain};
use super::simulate::LatencyRow;
use crate::spec::percentile::Percentile;
use crate::traffic::capacity::{CapacityBracket, CapacityEnd};
use crate::traffic::trial::TrialOutcome;

/// The limit of a deployment under traffic, and the runs that show it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CapacityReport {
    /// The quantity whose limit was searched for.
    pub quantity: CapacityQuantity,
    /// The share of the requests that is to be within the SLOs; latencies of the runs are at this percentile.
    pub percentile: Percentile,
    /// The limits, by each rule; the first is that of the other figures of the answer.
    pub bounds: Vec<CapacityBound>,
    /// The value of the quantity in the run whose figures the rest of the answer has: that of the first bound; where none
    /// meets, the easiest one that was tried, or that with which the search starts.
    pub shown: f64,
    /// Devices of the replicas found; absent where replicas are not searched for. The hardware need not have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices: Option<u64>,
    /// The same traffic with replicas that come and go; absent without `autoscale`, or where replicas are not searched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaled: Option<AutoscaledReplicas>,
    /// Latencies of the first requests, sent one after the other.
    pub alone: Vec<LatencyRow>,
    /// The share of these within the SLOs.
    pub alone_within_slos: Option<f64>,
    /// The runs of the search, by value.
    pub trials: Vec<CapacityTrial>,
}

/// A quantity whose limit is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityQuantity {
    /// Requests per second.
    Rate,
    /// Time of a trace that passes in a second.
    SpeedUp,
    /// Clients, or sessions, at a time.
    Clients,
    /// Replicas of the plan, or its workers of all roles in their proportion: the fewest.
    Replicas,
}

impl CapacityQuantity {
    /// Its unit.
    pub fn unit(self) -> &'static str {
        match self {
            CapacityQuantity::Rate => "requests/s",
            CapacityQuantity::SpeedUp => "times the speed",
            CapacityQuantity::Clients => "clients",
            CapacityQuantity::Replicas => "replicas",
        }
    }

    /// A value of it as text.
    pub fn digits(self, value: f64) -> String {
        match self {
            CapacityQuantity::Rate | CapacityQuantity::SpeedUp => digits(value),
            CapacityQuantity::Clients | CapacityQuantity::Replicas => plain(value),
        }
    }
}

/// A rule that a value meets or misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityRule {
    /// The share of the requests within all SLOs is at least that of the percentile; under a rate the queue does not grow
    /// either.
    Slos,
    /// The queue does not grow: the last tenth of the requests waits for at most 1 % of the time that has passed.
    Queue,
    /// The cache has at least 95 % of the prompt tokens that one without limits would have.
    Cache,
}

/// A limit by one rule.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CapacityBound {
    pub rule: CapacityRule,
    /// The hardest value that meets it; absent where none does.
    pub value: Option<f64>,
    /// The easiest value that misses it; absent where none does.
    pub missed: Option<f64>,
    /// The reason why the search ended.
    pub end: CapacityEnd,
}

impl CapacityBound {
    /// The bound that a search found.
    pub fn of(rule: CapacityRule, found: CapacityBracket) -> CapacityBound {
        CapacityBound { rule, value: found.met, missed: found.missed, end: found.end }
    }
}

/// A run of a search.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CapacityTrial {
    /// The value of the quantity.
    pub value: f64,
    /// Requests sent, at most.
    pub requests: u64,
    /// Whether it meets the first of the bounds.
    pub meets: bool,
    /// Share of the requests within the SLOs; absent where the run ended early, because more than half of all missed.
    pub within_slos: Option<f64>,
    /// The time that the last tenth of the requests waited, as a share of the time that had passed.
    pub waited_share: f64,
    pub requests_per_s: f64,
    pub ttft_ms: Option<f64>,
    pub tpot_ms: Option<f64>,
    pub e2e_ms: Option<f64>,
    /// Share of prompt tokens that were in the cache.
    pub hit_rate: f64,
    /// The same of a cache without limits.
    pub unlimited_hit_rate: f64,
}

impl CapacityTrial {
    /// The run at `value`, of that many requests, with its latencies at a percentile.
    pub fn of(
        (value, requests): (f64, u64),
        run: &TrialOutcome,
        percentile: Percentile,
        meets: bool,
    ) -> Self {
        let at = |metric: usize| run.times[metric].percentile(percentile.part()).map(|seconds| seconds * 1e3);
        CapacityTrial {
            value,
            requests,
            meets,
            within_slos: run.within,
            waited_share: run.waited,
            requests_per_s: run.requests_per_s,
            ttft_ms: at(0),
            tpot_ms: at(1),
            e2e_ms: at(2),
            hit_rate: run.hit_rate,
            unlimited_hit_rate: run.unlimited_hit_rate,
        }
    }
}

/// The latencies of a run.
pub fn latencies(run: &TrialOutcome) -> Vec<LatencyRow> {
    ["ttft", "tpot", "e2e"]
        .iter()
        .zip(&run.times)
        .map(|(metric, values)| LatencyRow::of(metric, values))
        .collect()
}

/// Replicas that come and go, compared with the fewest that meet the SLOs all the time.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AutoscaledReplicas {
    /// Share of the requests within the SLOs.
    pub within_slos: Option<f64>,
    /// Mean number of replicas that were held.
    pub mean_replicas: f64,
    /// Hours that devices were held.
    pub device_hours: f64,
    /// Those of the replicas found, held all the time; absent where none were found.
    pub fixed_device_hours: Option<f64>,
}
