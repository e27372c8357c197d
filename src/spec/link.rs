//! A kind of link as its file states it. Knows nothing of who is joined by it.

use schemars::JsonSchema;
use serde::Deserialize;

use super::cluster::Topology;
use super::figure::{ByteRate, Figure, Ratio, Seconds};

/// A fabric or bus.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// File name without `.json`.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Other names.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Per direction.
    pub bandwidth: Figure<ByteRate>,
    /// Of one small message.
    pub latency: Option<Figure<Seconds>>,
    /// How it joins more than two, where nothing else is stated.
    pub topology: Option<Topology>,
    /// Fraction of the rate that is reached in practice.
    pub effective_fraction: Option<Figure<Ratio>>,
    /// Remarks.
    pub notes: Option<String>,
}
