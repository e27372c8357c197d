//! A question as it was understood, every default filled in: what is told with its answer.

use schemars::JsonSchema;
use serde::Serialize;

use crate::spec::image::ImageSize;
use crate::spec::objective::{LatencyLimits, ObjectiveTerm};
use crate::spec::percentile::{Confidence, Percentile};

/// Images of a request.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ReportImages {
    /// How many.
    pub number: u64,
    /// Size of each, where stated.
    pub size: Option<ImageSize>,
    /// Tokens that each adds to the prompt.
    pub tokens: u64,
}

/// A question, in full.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ReportInputs {
    /// The model's name.
    pub model: String,
    /// The system's name.
    pub hardware: String,
    /// Devices of the system.
    pub devices: u64,
    /// The serving runtime.
    pub runtime: String,
    /// Its version, where stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_version: Option<String>,
    /// The traffic's name.
    pub workload: String,
    /// Prompt tokens.
    pub isl: u64,
    /// Output tokens.
    pub osl: u64,
    /// Prompt tokens that are cached already.
    pub prefix: u64,
    /// Images of each request, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<ReportImages>,
    /// Requests in flight, where stated.
    pub concurrency: Option<u64>,
    /// Requests per second, where stated.
    pub rate: Option<f64>,
    /// Which part of the requests latencies are of, where they come at a rate.
    pub percentile: Option<Percentile>,
    /// How sure latencies must be.
    pub risk: Confidence,
    /// What guesses tokens ahead, where anything does.
    pub speculation: Option<Speculation>,
    /// Latency limits.
    pub limits: LatencyLimits,
    /// The objective's name.
    pub objective: String,
    /// What is optimised, most important first.
    pub optimize: Vec<ObjectiveTerm>,
    /// Axes of the front.
    pub pareto: Vec<String>,
    /// Weight formats that came into question, and why.
    pub weight_formats: Vec<String>,
    /// KV formats that came into question, and why.
    pub kv_formats: Vec<String>,
}

/// What guesses tokens ahead.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Speculation {
    /// `mtp`, the model's own module, or the name of a smaller model.
    pub draft: String,
    /// Tokens guessed before each step.
    pub tokens: u64,
    /// Probability that a guess is accepted, as stated.
    pub acceptance: f64,
}
