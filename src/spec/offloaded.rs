//! Parts of a model that a runtime can keep in host memory.

/// Part of the model that is offloaded to host memory, as far as device memory is too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Offloaded {
    /// Weights of whole layers.
    Layers,
    /// Routed experts.
    Experts,
    /// KV cache.
    Kv,
}

impl Offloaded {
    /// Every part.
    pub const EACH: [Offloaded; 3] = [Offloaded::Layers, Offloaded::Experts, Offloaded::Kv];

    /// Its placement in words.
    pub fn in_host_memory(self) -> &'static str {
        match self {
            Offloaded::Layers => "layers in host memory, read at every step",
            Offloaded::Experts => "experts in host memory, read at every step",
            Offloaded::Kv => "a KV cache in host memory, read at every step",
        }
    }
}
