//! AFMoE (Arcee's Trinity): gated attention with three sliding layers per full one, experts after the first layers.
//!
//! Defaults for missing keys: `AfmoeConfig` of transformers.

use super::deepseek::shared_of;
use crate::graph::arch::class_keys::ignored;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::{Arrangement, Layer, Network, positioned};
use crate::graph::part::moe::Moe;
use crate::graph::part::names::TensorNames;
use crate::graph::part::window::{interleaved_windows, uniform_window};
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: TensorNames = TensorNames::of_table(&[
    ("pre_feedforward_layernorm", "pre_mlp_layernorm"),
    ("post_feedforward_layernorm", "post_mlp_layernorm"),
]);

/// `afmoe`: norms before and after; the attention output gate is a separate matrix.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // Score scaling and balancing, which matter in training only.
    keys.set_aside(ignored("afmoe"));
    let whole = DecoderSpec { names: NAMES, ..DecoderSpec::read(keys, false)? };
    let (hidden, layers) = (whole.hidden, whole.layers);
    let attention = Attention {
        qk_norm: QkNorm::PerHead,
        output_gate: Some("gate_proj"),
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
