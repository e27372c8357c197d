//! A placement as it leaves the house: stages with their times and memory, the certificate, what others' splits
//! would take. Prices nothing by itself.

pub mod build;
pub mod why;

use schemars::JsonSchema;
use serde::Serialize;

use crate::spec::placing::PlacementScenario;

/// The question as it was understood.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlacementInputs {
    /// The model.
    pub model: String,
    /// The rig.
    pub rig: String,
    /// What is sought.
    pub objective: String,
    /// Prompt tokens.
    pub isl: u64,
    /// Output tokens.
    pub osl: u64,
    /// Prompt tokens that are cached already.
    pub prefix: u64,
    /// Requests in flight.
    pub concurrency: u64,
    /// Runtimes, of each member one.
    pub runtimes: Vec<String>,
    /// Of weights, and why.
    pub weight_format: String,
    /// Of keys and values.
    pub kv_format: String,
}

/// Whether something better may exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlacementStatus {
    /// No placement is better, by the programme.
    Optimal,
    /// One may be, by no more than the gap.
    Feasible,
    /// The same: its time was up.
    TimeLimit,
    /// The same: it was interrupted.
    Interrupted,
    /// There is none.
    Infeasible,
    /// It was stopped before any was found; there may be one.
    Unknown,
}

/// One stage of a placement.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StageReport {
    /// Who holds it.
    pub member: String,
    /// Others that each hold all of its layers too: requests are dealt evenly among them.
    pub copies: Vec<String>,
    /// Devices that share its layers.
    pub devices: u64,
    /// Its first layer.
    pub first_layer: usize,
    /// Its last layer.
    pub last_layer: usize,
    /// Layers, the last one counted.
    pub layers: usize,
    /// Holds the embedding.
    pub embedding: bool,
    /// Holds the head.
    pub head: bool,
    /// Its part of a decode step.
    pub decode_ms: f64,
    /// Its part of a prompt.
    pub prefill_ms: f64,
    /// Of the decode part, the way to the next stage.
    pub send_ms: f64,
    /// What each of its devices holds, host memory included.
    pub memory_bytes: f64,
    /// What the runtime may use of each.
    pub usable_bytes: f64,
    /// What of it lies in host memory or below.
    pub offloaded_bytes: f64,
    /// What of that lies in storage.
    pub disk_bytes: f64,
    /// The first and last layer whose routed experts lie there, the first perhaps in part; the rest stays.
    pub experts_out: Option<(usize, usize)>,
}

/// A placement.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlacementReport {
    /// First to last.
    pub stages: Vec<StageReport>,
    /// Members that hold nothing.
    pub unused: Vec<String>,
    /// The figure that was minimised: a decode step, a request, or a cycle of all requests.
    pub objective_ms: f64,
    /// A decode step, from the first stage to the last.
    pub token_ms: f64,
    /// A prompt.
    pub prefill_ms: f64,
    /// A request by itself: its prompt, and its answer token by token.
    pub request_ms: f64,
    /// Output tokens a second of all requests, prompts apart.
    pub decode_tok_s: f64,
    /// Micro-batches in flight.
    pub micro_batches: u64,
    /// Requests in each.
    pub requests_each: u64,
}

/// What proves the placement.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlacementCertificate {
    /// The figure that was minimised.
    pub objective_ms: f64,
    /// No placement takes less.
    pub lower_bound_ms: f64,
    /// Who says so.
    pub proved_by: String,
    /// How far apart they are, as a share of the figure.
    pub gap: f64,
    /// A bound by an argument of its own: order and links left out.
    pub independent_bound_ms: f64,
    /// States that the programmes looked at.
    pub states: u64,
    /// Members that are not interchangeable.
    pub unlike_members: usize,
}

/// A split by memory alone, under the same prices.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BaselineComparison {
    /// Whose rule.
    pub rule: String,
    /// The same figure; absent where the split does not fit.
    pub objective_ms: Option<f64>,
    /// How many times as long as the placement takes.
    pub times: Option<f64>,
    /// Layers of each member.
    pub layers: Vec<(String, usize)>,
}

/// Prefill and decode on different members.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DisaggregatedReport {
    /// Members that prefill, with their layers.
    pub prefill: Vec<(String, usize)>,
    /// Members that decode, with theirs.
    pub decode: Vec<(String, usize)>,
    /// A prompt.
    pub prefill_ms: f64,
    /// Of the cache's way, what outlasts the prompt.
    pub exposed_ms: f64,
    /// A decode step.
    pub token_ms: f64,
    /// A request.
    pub request_ms: f64,
    /// No such split takes less.
    pub lower_bound_ms: f64,
    /// Pairs of sets of members that were looked at.
    pub pairs: u64,
    /// How many times as fast a request is as on the best placement that does both.
    pub gain: f64,
}

/// A stage of the placement that comes nearest, and what it lacks.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StageShortfall {
    /// Who would hold it.
    pub member: String,
    /// Its first layer.
    pub first_layer: usize,
    /// Its last layer.
    pub last_layer: usize,
    /// Bytes that each of its devices lacks.
    pub short_bytes: f64,
}

/// A single change, tried by asking again.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TriedChange {
    /// What was changed, as a flag or in words.
    pub change: String,
    /// As stated.
    pub stated: String,
    /// What is needed; absent where it does not help by itself.
    pub needed: Option<String>,
}

/// Why there is none.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfeasibleReport {
    /// In one word.
    pub code: String,
    /// In a sentence with numbers.
    pub text: String,
    /// Bytes that are missing, where that is why.
    pub short_bytes: Option<f64>,
    /// Limits that cannot all be kept; leaving out any one of them, the others can.
    pub conflict: Vec<String>,
    /// Limits that are not needed for that.
    pub innocent: Vec<String>,
    /// Lifting one of `conflict` is not enough, as others conflict as well.
    pub several: bool,
    /// The placement for which the same more of memory for all would be least.
    pub nearest: Vec<StageShortfall>,
    /// Single changes, each tried.
    pub tried: Vec<TriedChange>,
    /// What would help where nothing was tried.
    pub fixes: Vec<String>,
}

/// The answer of `place`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlacementResult {
    /// Whether something better may exist.
    pub status: PlacementStatus,
    /// The flags and files that asked it, so that the answer can be checked; null where it was put otherwise.
    pub scenario: Option<PlacementScenario>,
    /// What was asked, every default filled in.
    pub question: PlacementInputs,
    /// Tokens of the longest context that fits, where that was sought.
    pub max_context: Option<u64>,
    /// Where the layers are.
    pub placement: Option<PlacementReport>,
    /// What proves it.
    pub certificate: Option<PlacementCertificate>,
    /// What splits by memory alone would take.
    pub compared: Vec<BaselineComparison>,
    /// What prefill and decode on different members would take.
    pub apart: Option<DisaggregatedReport>,
    /// A request on each member that can serve it by itself, in milliseconds, where requests are sought.
    pub alone: Vec<(String, f64)>,
    /// Why there is none.
    pub infeasible: Option<InfeasibleReport>,
    /// How to start it, where a runtime can be told.
    pub commands: Vec<String>,
    /// What to keep in mind.
    pub notes: Vec<String>,
}
