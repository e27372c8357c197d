//! AFMoE (Arcee's Trinity): gated attention with three sliding layers per full one, experts after the first layers.
//! Beam: five sliding layers per full one, a gate with a bias per head.
//!
//! Defaults for missing keys: `AfmoeConfig` of transformers.

use super::deepseek::shared_of;
use crate::graph::arch::class_keys::ignored;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, OutputGate, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::layer_kinds;
use crate::graph::part::layer::{Arrangement, Layer, Network, positioned};
use crate::graph::part::moe::Moe;
use crate::graph::part::names::TensorNames;
use crate::graph::part::rope::RopeClass;
use crate::graph::part::window::{interleaved_windows, uniform_window};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: TensorNames = TensorNames::of_table(&[
    ("pre_feedforward_layernorm", "pre_mlp_layernorm"),
    ("post_feedforward_layernorm", "post_mlp_layernorm"),
]);

/// `beam`: no shared experts; full layers are not rotated (`modular_beam.py` of transformers 5.24).
pub fn build_beam(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let (hidden, layers) = (whole.hidden, whole.layers);
    let attention = Attention {
        qk_norm: QkNorm::PerHead,
        output_gate: Some(OutputGate::BiasPerHead("gate_proj")),
        ..Attention::read_stated(keys, hidden)?.biased(keys.flag("attention_bias", false)?)
    };
    let attention = attention.rotated(keys, RopeClass::SLIDING)?;
    let moe = Moe {
        correction_bias: Some("mlp.gate.e_score_correction_bias"),
        ..Moe::read(keys, hidden, ["num_experts", "num_experts_per_tok", "moe_intermediate_size"])?
    };
    let dense = FeedForward::read(keys, hidden)?;
    let words = [("dense", false), ("sparse", true)];
    let sparse = layer_kinds(keys, "mlp_layer_types", layers, &words)?
        .unwrap_or_else(|| (0..layers.value).map(|layer| layer >= 3).collect());
    let window = uniform_window(keys, Some(512))?;
    let last = layers.value - 1;
    let slides = |layer: u64| !(layer + 1).is_multiple_of(6) && layer != last;
    let windows = interleaved_windows(keys, layers, window, slides)?;
    let layer = |(window, sparse): (Option<Count>, bool)| {
        let rope = attention.rope.filter(|_| window.is_some());
        let network = Network::either(sparse, &moe, &dense);
        let layer = Layer::new(Attention { mask: window.into(), rope, ..attention.clone() }, network);
        Layer { arrangement: Arrangement::Sandwich, ..layer }
    };
    Ok(whole.graph(windows.into_iter().zip(sparse).map(layer).collect(), vec![]))
}

/// `afmoe`: norms before and after; the attention output gate is a separate matrix.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // Score scaling and balancing, which matter in training only.
    keys.set_aside(ignored("afmoe"));
    let whole = DecoderSpec { names: NAMES, ..DecoderSpec::read(keys, false)? };
    let (hidden, layers) = (whole.hidden, whole.layers);
    let attention = Attention {
        qk_norm: QkNorm::PerHead,
        output_gate: Some(OutputGate::PerElement("gate_proj")),
        ..Attention::read_grouped(keys, hidden)?.biased(keys.flag("attention_bias", false)?)
    };
    let moe = Moe {
        router: "mlp.router.gate",
        learned_bias: Some("mlp.expert_bias"),
        shared: shared_of(keys, hidden, "num_shared_experts")?,
        ..Moe::read(keys, hidden, ["num_experts", "num_experts_per_tok", "moe_intermediate_size"])?
    };
    let dense = FeedForward::read(keys, hidden)?;
    let first = keys.stated("num_dense_layers")?.count_unless_zero("num_dense_layers")?;
    let first = first.map_or(0, |dense| dense.value);
    let every = keys.count_or("global_attn_every_n_layers", 4)?.value;
    let window = uniform_window(keys, Some(1024))?;
    let windows = interleaved_windows(keys, layers, window, |layer| !(layer + 1).is_multiple_of(every))?;
    let mut index = 0..;
    let layer = |window| {
        let network = Network::either(index.next().is_none_or(|index| index >= first), &moe, &dense);
        let layer = Layer::new(attention.clone(), network).sliding(window);
        Layer { arrangement: Arrangement::Sandwich, ..layer }
    };
    Ok(whole.graph(positioned(windows, layer), vec![]))
}
