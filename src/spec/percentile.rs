//! Percentiles of requests, and of predictions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A percentile of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Percentile {
    /// The median request.
    #[default]
    P50,
    /// 90 % of requests have at most this latency.
    P90,
    /// 95 % of requests.
    P95,
    /// 99 % of requests.
    P99,
}

impl Percentile {
    pub const ALL: [Percentile; 4] = [Percentile::P50, Percentile::P90, Percentile::P95, Percentile::P99];

    /// Its name in files and flags, the fraction of requests at or below it, and its standard normal quantile
    /// (NIST/SEMATECH, e-Handbook of Statistical Methods, 1.3.6.7.1).
    const fn figures(self) -> (&'static str, f64, f64) {
        match self {
            Percentile::P50 => ("p50", 0.5, 0.0),
            Percentile::P90 => ("p90", 0.9, 1.2816),
            Percentile::P95 => ("p95", 0.95, 1.6449),
            Percentile::P99 => ("p99", 0.99, 2.3263),
        }
    }

    pub fn name(self) -> &'static str {
        self.figures().0
    }

    /// The fraction of requests at or below it.
    pub fn part(self) -> f64 {
        self.figures().1
    }

    /// The standard normal quantile.
    pub fn deviations(self) -> f64 {
        self.figures().2
    }
}

/// Prediction confidence of latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The prediction itself.
    #[default]
    P50,
    /// The upper 90 % bound: one in ten measurements exceeds it.
    P90,
}

impl Confidence {
    /// The end of a sentence about a latency at this confidence.
    pub fn words(self) -> &'static str {
        match self {
            Confidence::P50 => "",
            Confidence::P90 => " at prediction p90",
        }
    }
}
