//! The part of a model that lies in host memory and is computed by the host's processor.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::figure::{ByteRate, Figure, FlopRate, Ratio, Seconds};

/// Tensors that the host's processor can compute with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HostedTensors {
    /// Routed experts; everything else stays on the device.
    Experts,
    /// Whole layers with their KV cache.
    Layers,
}

impl HostedTensors {
    /// Every kind, in the order of the search.
    pub const EACH: [HostedTensors; 2] = [HostedTensors::Experts, HostedTensors::Layers];

    pub fn name(self) -> &'static str {
        match self {
            HostedTensors::Experts => "experts",
            HostedTensors::Layers => "layers",
        }
    }
}

/// The tensors of the first layers of every pipeline stage, in host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPart {
    pub tensors: HostedTensors,
    /// Number of layers of each pipeline stage, counted from its first.
    pub layers: u32,
}

impl fmt::Display for HostPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.tensors.name(), self.layers)
    }
}

impl HostPart {
    /// `experts 40` or `layers 12`; `None` for other text.
    pub fn parse(text: &str) -> Option<HostPart> {
        let (name, layers) = text.split_once(char::is_whitespace)?;
        let tensors = HostedTensors::EACH.into_iter().find(|tensors| tensors.name() == name)?;
        let layers = layers.trim().parse().ok().filter(|layers| *layers > 0)?;
        Some(HostPart { tensors, layers })
    }
}

/// How a prompt passes tensors in host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PromptWay {
    /// Their weights are copied to the device, which computes.
    Stream,
    /// The host's processor computes.
    Compute,
}

/// Tensors that a runtime computes on the host's processor, and the efficiencies it reaches there.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostCompute {
    /// The tensors that can lie in host memory and be computed there.
    pub computes: Vec<HostedTensors>,
    /// How a prompt passes them; the faster of those listed.
    pub prompt: Vec<PromptWay>,
    /// Fraction of the host memory's bandwidth that its processor reaches when it generates.
    pub memory: Figure<Ratio>,
    /// Operations over the fp32 vector peak of the processor in prompts; products of small integers exceed 1.
    pub compute: Figure<Ratio>,
    /// The same on a processor that has all layers, for weights of formats that reach another rate there.
    #[serde(default)]
    pub compute_alone: Vec<FormatCompute>,
    /// The same when it generates: products of a few tokens, whose arithmetic and whose loads take turns. Where it is not
    /// known, the arithmetic is inside the bandwidth that is reached.
    #[serde(default)]
    pub decode: Option<Figure<Ratio>>,
    /// Exponent with which the operations that are reached grow with that peak, from 4 TFLOP/s on: 1 for a fixed fraction.
    pub growth: Figure<Ratio>,
    /// Fraction of the host link's bandwidth that copies of weights reach.
    pub link: Figure<Ratio>,
    /// Time per layer in which device and processor wait for each other.
    pub crossing: Figure<Seconds>,
    /// Tokens of a step from which weights are copied.
    pub stream_from: Figure<Ratio>,
    /// Tokens that share one copy of the weights.
    pub micro_batch: Figure<Ratio>,
}

/// The rate of products with weights of these formats, in prompts on a processor that has all layers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FormatCompute {
    /// Ids of formats.
    pub weight_formats: Vec<String>,
    /// Operations over the fp32 vector peak of the processor.
    pub compute: Figure<Ratio>,
}

impl HostCompute {
    /// Operations over the fp32 vector peak that products with weights of the format `id` reach in prompts, on a processor
    /// that has all layers.
    pub fn products_alone(&self, id: &str) -> &Figure<Ratio> {
        let own = self.compute_alone.iter().find(|own| own.weight_formats.iter().any(|format| format == id));
        own.map_or(&self.compute, |own| &own.compute)
    }
}

/// The processor of a host, with its memory.
#[derive(Clone, Debug)]
pub struct HostProcessor {
    pub bandwidth: Figure<ByteRate>,
    /// Peak of its vector units in fp32.
    pub peak: Figure<FlopRate>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_printed_part_reads_back(layers in 1u32..5000, experts in any::<bool>()) {
            let tensors = HostedTensors::EACH[usize::from(experts)];
            let part = HostPart { tensors, layers };
            prop_assert_eq!(HostPart::parse(&part.to_string()), Some(part));
        }
    }

    #[test]
    fn other_text_is_no_part() {
        for text in ["", "experts", "experts 0", "experts -1", "kv 3", "layers x", "layers 1.5"] {
            assert_eq!(HostPart::parse(text), None, "{text}");
        }
    }
}
