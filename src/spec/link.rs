//! A kind of link as in its file. Independent of the devices that it joins.

use schemars::JsonSchema;
use serde::Deserialize;

use super::cluster::Topology;
use super::figure::{ByteRate, Figure, Seconds};

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
    /// Bandwidth per direction.
    pub bandwidth: Figure<ByteRate>,
    /// Latency of a small message.
    pub latency: Option<Figure<Seconds>>,
    /// Topology for more than two devices, where none is given.
    pub topology: Option<Topology>,
    /// Whether it joins different hosts; devices on another link are on one host.
    #[serde(default)]
    pub joins_hosts: bool,
    /// Remarks.
    pub notes: Option<String>,
}
