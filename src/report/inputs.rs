//! The inputs of a problem, with every default filled in, as reported with its result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::cluster::PeerToPeer;
use crate::spec::image::ImageSize;
use crate::spec::objective::{LatencyLimits, ObjectiveTerm};
use crate::spec::percentile::{Confidence, Percentile};
use crate::spec::price::PriceBasis;

/// Images of a request.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReportImages {
    /// Number of images.
    pub number: u64,
    /// Size of each, if given.
    pub size: Option<ImageSize>,
    /// Tokens that each adds to the prompt.
    pub tokens: u64,
}

/// The inputs of a problem.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReportInputs {
    /// The model's name.
    pub model: String,
    /// The model of the catalogue, or the file of the repository, and its format, that this name was read as, where it
    /// is not the name of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_as: Option<String>,
    /// The system's name.
    pub hardware: String,
    /// Devices of the system.
    pub devices: u64,
    /// Its interconnect, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interconnect: Vec<ReportedTier>,
    /// The serving runtime.
    pub runtime: String,
    /// Its version, if given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_version: Option<String>,
    /// No constant was fitted to this version: it counts as the mean of all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub version_counts_as_mean: bool,
    /// Whether the rules of the runtime are lifted: it may not run the plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub theoretical: bool,
    /// The traffic's name.
    pub workload: String,
    /// Prompt tokens.
    pub isl: u64,
    /// Output tokens.
    pub osl: u64,
    /// Cached prompt tokens.
    pub prefix: u64,
    /// Images of each request, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<ReportImages>,
    /// Concurrency, if given.
    pub concurrency: Option<u64>,
    /// Requests per second, if given.
    pub rate: Option<f64>,
    /// Latency percentile, under a request rate.
    pub percentile: Option<Percentile>,
    /// Prediction confidence of the latencies: p50 or p90.
    pub risk: Confidence,
    /// Speculative decoding, if any.
    pub speculation: Option<Speculation>,
    /// Latency limits.
    pub limits: LatencyLimits,
    /// The objective's name.
    pub objective: String,
    /// Objectives, most important first.
    pub optimize: Vec<ObjectiveTerm>,
    /// Axes of the front.
    pub pareto: Vec<String>,
    /// Weight formats considered, with reasons.
    pub weight_formats: Vec<String>,
    /// KV formats considered, with reasons.
    pub kv_formats: Vec<String>,
    /// Owned or rented; null without a price on that basis.
    #[serde(default)]
    pub price_basis: Option<PriceBasis>,
    /// Amortization period of owned devices, in months.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amortization_months: Option<f64>,
    /// Fraction of that period in which owned devices serve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization: Option<f64>,
    /// Hours of a day in which the hardware serves, of which the costs of a day and a month are; null without a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours_per_day: Option<f64>,
    /// Warnings, e.g. about ignored keys of the model's configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A level of the interconnect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedTier {
    /// Its name: `nvlink domain`, `node`, `network` …
    pub name: String,
    /// Devices of one unit of it.
    pub devices: u64,
    /// Id of the link.
    pub link: String,
    /// Bandwidth per direction and device, bytes/s.
    pub bandwidth_bytes_per_s: f64,
    /// Whether devices on PCIe read each other's memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p2p: Option<PeerToPeer>,
    /// Whether it is the usual network between such nodes: no system states its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed_network: bool,
}

/// Speculative decoding.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Speculation {
    /// `mtp`, the model's own module, or the name of a smaller model.
    pub draft: String,
    /// Draft tokens per step.
    pub tokens: u64,
    /// Accepted draft tokens over draft tokens, as given; 0 where it is not.
    pub acceptance: f64,
    /// The range of figures, where the acceptance is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unstated: Option<String>,
}
