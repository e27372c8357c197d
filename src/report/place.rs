//! The reported placement: stages with times and memory, the certificate, and baselines under the same
//! cost model. Computes no costs itself.

pub mod build;
pub mod evidence;
pub mod why;

use crate::report::proof::StoppedBy;
use crate::search::outcome::Status;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::evidence::PlanEvidence;
use super::launch::LaunchReport;
use crate::spec::placing::PlacementScenario;
use evidence::PlacementIntervals;

/// The problem, with every default filled in.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlacementInputs {
    /// The model.
    pub model: String,
    /// The system of heterogeneous devices.
    pub rig: String,
    /// The objective.
    pub objective: String,
    /// Prompt tokens.
    pub isl: u64,
    /// Output tokens.
    pub osl: u64,
    /// Cached prompt tokens.
    pub prefix: u64,
    /// Concurrency.
    pub concurrency: u64,
    /// Runtime of each device.
    pub runtimes: Vec<String>,
    /// Weight format.
    pub weight_format: String,
    /// The reason for the weight format.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub weight_format_why: String,
    /// KV format.
    pub kv_format: String,
    /// Inputs that the request leaves open, as flags that state them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defaults: Vec<String>,
}

/// One stage of a placement.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StageReport {
    /// The device that holds it.
    pub member: String,
    /// Further devices that each hold all of its layers; requests are spread evenly over them.
    pub copies: Vec<String>,
    /// Number of tensor-parallel devices.
    pub devices: u64,
    /// Its first layer.
    pub first_layer: usize,
    /// Its last layer.
    pub last_layer: usize,
    /// Number of layers.
    pub layers: usize,
    /// Whether it holds the embedding.
    pub embedding: bool,
    /// Whether it holds the head.
    pub head: bool,
    /// Its time in a decode step, ms.
    pub decode_ms: f64,
    /// Its time in a prefill, ms.
    pub prefill_ms: f64,
    /// Part of the decode time for the transfer to the next stage, ms.
    pub send_ms: f64,
    /// Part of the prefill time for the transfer to the next stage, ms.
    pub prefill_send_ms: f64,
    /// Memory per device, bytes, host memory included.
    pub memory_bytes: f64,
    /// Usable memory per device, bytes.
    pub usable_bytes: f64,
    /// Part in host memory or storage, bytes.
    pub offloaded_bytes: f64,
    /// Part of that in storage, bytes.
    pub disk_bytes: f64,
    /// First and last layer whose routed experts are offloaded, the first possibly in part.
    pub experts_out: Option<(usize, usize)>,
}

/// A placement.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlacementReport {
    /// Stages, first to last.
    pub stages: Vec<StageReport>,
    /// Unused devices.
    pub unused: Vec<String>,
    /// The minimised objective: a decode step, a request, or a cycle of all requests.
    pub objective_ms: f64,
    /// A decode step through all stages, ms.
    pub token_ms: f64,
    /// A prefill, ms.
    pub prefill_ms: f64,
    /// End-to-end time of a single request, ms.
    pub request_ms: f64,
    /// Output tokens per second of all requests, decode only.
    pub decode_tok_s: f64,
    /// Micro-batches in flight.
    pub micro_batches: u64,
    /// Requests per micro-batch.
    pub requests_each: u64,
}

/// The certificate of a placement.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlacementCertificate {
    /// The minimised objective.
    pub objective_ms: f64,
    /// Lower bound of the objective.
    pub lower_bound_ms: f64,
    /// Method that proves the bound.
    pub proved_by: String,
    /// Gap between objective and bound, as a fraction of the objective.
    pub gap: f64,
    /// Independent lower bound, with device order and links relaxed.
    pub independent_bound_ms: f64,
    /// States visited by the dynamic programs.
    pub states: u64,
    /// Number of kinds of devices.
    pub unlike_members: usize,
}

/// The best placement of all, where no software starts it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TheoreticalPlacement {
    /// Why no software starts it.
    pub why: Vec<String>,
    /// Runtime of each device.
    pub runtimes: Vec<String>,
    /// Weight format.
    pub weight_format: String,
    /// The placement.
    pub placement: PlacementReport,
    /// Its certificate.
    pub certificate: PlacementCertificate,
}

/// A baseline placement by memory alone, under the same cost model.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BaselineComparison {
    /// The rule, with the software that uses it.
    pub rule: String,
    /// Its objective; absent if it does not fit.
    pub objective_ms: Option<f64>,
    /// Its objective relative to the placement's.
    pub times: Option<f64>,
    /// Layers of each device.
    pub layers: Vec<(String, usize)>,
}

/// Prefill and decode on different devices: theoretical, since no software starts it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DisaggregatedReport {
    /// No software starts it.
    #[serde(default)]
    pub theoretical: bool,
    /// Runtime of each device.
    #[serde(default)]
    pub runtimes: Vec<String>,
    /// Weight format.
    #[serde(default)]
    pub weight_format: String,
    /// Prefill devices, with their layers.
    pub prefill: Vec<(String, usize)>,
    /// Decode devices, with their layers.
    pub decode: Vec<(String, usize)>,
    /// A prefill, ms.
    pub prefill_ms: f64,
    /// Part of the KV-cache transfer after the end of the prefill, ms.
    pub exposed_ms: f64,
    /// A decode step.
    pub token_ms: f64,
    /// A request end to end, ms.
    pub request_ms: f64,
    /// Lower bound of the request time, ms.
    pub lower_bound_ms: f64,
    /// Number of pairs of device sets considered.
    pub pairs: u64,
    /// Speedup of a request over the best aggregated placement.
    pub gain: f64,
}

/// A stage of the nearest placement, with its memory shortage.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StageShortfall {
    /// The device that would hold it.
    pub member: String,
    /// Its first layer.
    pub first_layer: usize,
    /// Its last layer.
    pub last_layer: usize,
    /// Memory shortage per device, bytes.
    pub short_bytes: f64,
}

/// A single change, re-optimized.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TriedChange {
    /// The change, as a flag or in words.
    pub change: String,
    /// The current value.
    pub stated: String,
    /// The value needed; absent if the change alone does not suffice.
    pub needed: Option<String>,
}

/// Reason of infeasibility.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct InfeasibleReport {
    /// Code of the reason.
    pub code: String,
    /// Description with numbers.
    pub text: String,
    /// Memory shortage in bytes, if memory is the reason.
    pub short_bytes: Option<f64>,
    /// Minimal conflicting constraints: dropping any one makes the others feasible.
    pub conflict: Vec<String>,
    /// Constraints that are not part of the conflict.
    pub innocent: Vec<String>,
    /// Whether other constraints conflict as well, so that relaxing one of `conflict` is not enough.
    pub several: bool,
    /// The placement that needs the smallest equal memory increase of all devices.
    pub nearest: Vec<StageShortfall>,
    /// Single changes, each re-optimized.
    pub tried: Vec<TriedChange>,
    /// Possible changes, if none was tried.
    pub fixes: Vec<String>,
}

/// The result of `place`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlacementResult {
    /// Proof status of a placement.
    pub status: Status,
    /// Reason for an early end of the search; absent if it was complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<StoppedBy>,
    /// The flags and files of the request, so that the result can be verified; null if posed otherwise.
    pub scenario: Option<PlacementScenario>,
    /// The problem, with every default filled in.
    pub question: PlacementInputs,
    /// Longest context that fits, tokens, if that is the objective.
    pub max_context: Option<u64>,
    /// The best placement that software starts; where it starts none, the best of all, and `launch` says why.
    pub placement: Option<PlacementReport>,
    /// Its prediction intervals; null without a placement.
    #[serde(default)]
    pub intervals: Option<PlacementIntervals>,
    /// Measured runs with stages like its own; null without a placement.
    #[serde(default)]
    pub evidence: Option<PlanEvidence>,
    /// Its certificate.
    pub certificate: Option<PlacementCertificate>,
    /// A better placement that no software starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theoretical: Option<TheoreticalPlacement>,
    /// Baselines by memory alone.
    pub compared: Vec<BaselineComparison>,
    /// The best disaggregated placement.
    #[serde(alias = "apart")]
    pub disaggregated: Option<DisaggregatedReport>,
    /// Request time on each device that holds the whole model, ms, if the objective is `request`.
    pub alone: Vec<(String, f64)>,
    /// Reason of infeasibility.
    pub infeasible: Option<InfeasibleReport>,
    /// Its launch: commands and files; null without a placement.
    #[serde(default)]
    pub launch: Option<LaunchReport>,
    /// Notes.
    pub notes: Vec<String>,
}

impl PlacementResult {
    /// Whether no software starts the placement.
    pub fn is_theoretical(&self) -> bool {
        // A runtime whose options the catalogue lacks may still start it.
        let refused =
            |launch: &LaunchReport| !launch.unsupported.is_empty() && !launch.runtime_version.is_empty();
        self.placement.is_some() && self.launch.as_ref().is_some_and(refused)
    }
}
