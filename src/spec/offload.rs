//! Offload to host memory: whether it may be used, of which part, and how a deployment uses it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::host_part::HostPart;

/// Offload to host memory of weights, experts or KV cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum OffloadPolicy {
    /// As additional candidates.
    #[default]
    Auto,
    /// Never.
    Never,
    /// As additional candidates, in `place` too.
    Always,
}

impl OffloadPolicy {
    /// Its name, as typed.
    pub fn name(self) -> &'static str {
        match self {
            OffloadPolicy::Auto => "auto",
            OffloadPolicy::Never => "never",
            OffloadPolicy::Always => "always",
        }
    }
}

/// Part of the model that is offloaded to host memory, as far as device memory is too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum OffloadPart {
    /// Weights of whole layers.
    Layers,
    /// Routed experts.
    Experts,
    /// KV cache.
    Kv,
}

impl OffloadPart {
    /// Every part.
    pub const EACH: [OffloadPart; 3] = [OffloadPart::Layers, OffloadPart::Experts, OffloadPart::Kv];

    /// Its placement in words.
    pub fn in_host_memory(self) -> &'static str {
        match self {
            OffloadPart::Layers => "layers in host memory, read at every step",
            OffloadPart::Experts => "experts in host memory, read at every step",
            OffloadPart::Kv => "a KV cache in host memory, read at every step",
        }
    }
}

/// The part of a deployment in host memory, and how it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Offload {
    Nothing,
    /// A part that is read over the host link at every step, of the experts those that are touched.
    Streamed(OffloadPart),
    /// A part that the host's processor computes.
    Host(HostPart),
}

impl Offload {
    /// The part that is read from host memory at every step.
    pub fn streamed(self) -> Option<OffloadPart> {
        match self {
            Offload::Streamed(part) => Some(part),
            Offload::Nothing | Offload::Host(_) => None,
        }
    }
}
