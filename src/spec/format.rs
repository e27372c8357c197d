//! Number formats of weights and KV caches: true size, what they leave alone, what computes them.

use schemars::JsonSchema;
use serde::Deserialize;

use super::device::Arithmetic;
use super::figure::{Bytes, Figure};

/// How weights or cached keys and values are stored.
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
    /// May hold weights.
    #[serde(default)]
    pub weights: bool,
    /// May hold a KV cache.
    #[serde(default)]
    pub kv: bool,
    /// Size of an element, scales included (`"4.25 bit"`).
    pub bits_per_element: Figure<Bytes>,
    /// Block of the scales along the divided dimension, which a shard may not cut.
    pub block: Option<u64>,
    /// Roles kept in the model's own dtype: `embedding`, `lm_head`, `norm`, `router`, `attention` …
    #[serde(default)]
    pub leaves: Vec<String>,
    /// The same for models without experts, where their checkpoints differ.
    pub dense_leaves: Option<Vec<String>>,
    /// Why these.
    pub leaves_note: Option<String>,
    /// Arithmetics that can compute it, best first: the first that the device has is used, the
    /// others mean dequantising first.
    #[serde(default)]
    pub computes_in: Vec<Arithmetic>,
    /// Runtimes that run it.
    #[serde(default)]
    pub runtimes: Vec<String>,
    /// A format that holds every value of this one exactly.
    pub lossless_to: Option<String>,
    /// Published loss of quality.
    pub quality: Option<Quality>,
    /// Remarks.
    pub notes: Option<String>,
}

/// What a format was seen to cost in quality.
#[derive(Clone, Debug, Deserialize, JsonSchema, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct Quality {
    /// What was measured.
    pub metric: String,
    /// The figure as published.
    pub value: String,
    /// On which model.
    pub model: String,
    /// Where.
    pub source: String,
}
