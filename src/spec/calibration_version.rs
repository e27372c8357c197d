//! A version of the calibration of a runtime: a profile that was learned from stored runs, never changed afterwards.

// Without a store of runs, nothing has a version.
#![cfg_attr(not(feature = "runs"), allow(dead_code))]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A version of the calibration of a runtime.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CalibrationVersion {
    /// Its number in the store; 0 before it is there.
    #[serde(default)]
    pub number: u64,
    /// When it was made: RFC 3339, UTC.
    pub created_utc: String,
    /// The program with its version.
    pub program: String,
    /// Runtime.
    pub runtime: String,
    /// Versions of the runtime in the runs that it rests on.
    #[serde(default)]
    pub runtime_versions: Vec<String>,
    /// Drivers in these runs.
    #[serde(default)]
    pub drivers: Vec<String>,
    /// Versions of CUDA in these runs.
    #[serde(default)]
    pub cuda: Vec<String>,
    /// Number of these runs.
    pub runs: u64,
    /// The version whose profile it has again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restores: Option<u64>,
    /// Median errors before it, and of predictions of each run by a fit without it.
    #[serde(default)]
    pub medians: Vec<VersionMedian>,
    /// The profile of the runtime, as a file of `hardware/runtimes`.
    pub profile: String,
}

/// The median absolute error of a figure before and after a version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VersionMedian {
    /// Device.
    pub hardware: String,
    /// Range of total parameters of the models.
    pub model_class: String,
    /// `decode`, `ttft` or `memory`.
    pub figure: String,
    /// Number of runs.
    pub n: u64,
    /// By the version before.
    pub before: f64,
    /// By a fit without the run.
    pub after: f64,
}
