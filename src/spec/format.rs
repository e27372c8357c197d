//! Number formats of weights and KV caches: true size, unquantized roles, native compute.

use schemars::JsonSchema;
use serde::Deserialize;

use super::device::Arithmetic;
use super::figure::{Bytes, Figure};

/// A storage format of weights or KV cache.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NumberFormat {
    /// File name without `.json`.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Other names.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Usable for weights.
    #[serde(default)]
    pub weights: bool,
    /// Usable for KV cache.
    #[serde(default)]
    pub kv: bool,
    /// Size of an element, scales included (`"4.25 bit"`).
    pub bits_per_element: Figure<Bytes>,
    /// Weights that share a scale; absent where shards of a matrix may end anywhere.
    pub block: Option<ScaleBlock>,
    /// Roles kept in the model's own dtype: `embedding`, `lm_head`, `norm`, `router`, `attention` …
    #[serde(default)]
    pub leaves: Vec<String>,
    /// The same for models without experts, where their checkpoints differ.
    pub dense_leaves: Option<Vec<String>>,
    /// The source of these roles.
    pub leaves_note: Option<String>,
    /// Compute formats, best first. The first one that the device supports is used; later ones require dequantization
    /// first.
    #[serde(default)]
    pub computes_in: Vec<Arithmetic>,
    /// Runtimes that support it.
    #[serde(default)]
    pub runtimes: Vec<String>,
    /// Published loss of quality.
    pub quality: Option<Quality>,
    /// Ends of the names of published checkpoints in it.
    #[serde(default)]
    pub suffixes: Vec<NameSuffix>,
    /// Remarks.
    pub notes: Option<String>,
}

/// Weights that share a scale: rows and columns of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScaleBlock {
    /// Outputs.
    #[serde(default = "one")]
    pub outputs: u64,
    /// Inputs.
    pub inputs: u64,
}

fn one() -> u64 {
    1
}

/// Ends of checkpoints' names that state a format.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NameSuffix {
    /// The ends, in words joined by `-`, e.g. `fp8-dynamic`.
    pub names: Vec<String>,
    /// The publishers who mean this format by them, before all others; empty for every publisher.
    #[serde(default)]
    pub owners: Vec<String>,
    /// The source.
    pub source: String,
    /// How a checkpoint with such a name differs from the format, where it does.
    pub differs: Option<String>,
}

/// A published quality loss of a format.
#[derive(Clone, Debug, Deserialize, JsonSchema, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct Quality {
    /// The metric.
    pub metric: String,
    /// The published figure.
    pub value: String,
    /// The model.
    pub model: String,
    /// The source.
    pub source: String,
}
