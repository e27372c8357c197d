//! How many of the requests, and how many of the predictions, may be worse than what is told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A percentile of requests.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Percentile {
    /// The median request.
    #[default]
    P50,
    /// Nine in ten fare no worse.
    P90,
    /// Nineteen in twenty.
    P95,
    /// Ninety-nine in a hundred.
    P99,
}

impl Percentile {
    /// All of them.
    pub const ALL: [Percentile; 4] = [Percentile::P50, Percentile::P90, Percentile::P95, Percentile::P99];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Percentile::P50 => "p50",
            Percentile::P90 => "p90",
            Percentile::P95 => "p95",
            Percentile::P99 => "p99",
        }
    }

    /// The part of requests that fares no worse.
    pub fn part(self) -> f64 {
        match self {
            Percentile::P50 => 0.5,
            Percentile::P90 => 0.9,
            Percentile::P95 => 0.95,
            Percentile::P99 => 0.99,
        }
    }

    /// How many standard deviations above the mean of a normal distribution it lies (NIST/SEMATECH, e-Handbook of
    /// Statistical Methods, 1.3.6.7.1).
    pub fn deviations(self) -> f64 {
        match self {
            Percentile::P50 => 0.0,
            Percentile::P90 => 1.2816,
            Percentile::P95 => 1.6449,
            Percentile::P99 => 2.3263,
        }
    }
}

/// How sure latencies must be.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// As predicted.
    #[default]
    P50,
    /// At the end of the interval that measurements exceed one time in ten.
    P90,
}
