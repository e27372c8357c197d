//! MiniMax-Text-01: lightning attention interleaved with softmax attention, experts in every layer.
//!
//! Defaults for missing keys: `MiniMaxConfig` of transformers.

use crate::graph::arch::class_keys::ignored;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::kinds::layer_kinds;
use crate::graph::part::layer::{Layer, Mixer};
use crate::graph::part::lightning::{Lightning, LightningForm};
use crate::graph::part::moe::Moe;
use crate::graph::part::recurrent::Recurrent;
use crate::graph::part::window::uniform_window;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `minimax`: without `layer_types` every other layer is linear, starting with the second.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("minimax"));
    let whole = DecoderSpec::read(keys, false)?;
    let hidden = whole.hidden;
    let kinds = [("full_attention", true), ("linear_attention", false)];
    let attends = layer_kinds(keys, "layer_types", whole.layers, &kinds)?;
    let attends = attends.unwrap_or_else(|| (0..whole.layers.value).map(|layer| layer % 2 == 0).collect());
    let reach = uniform_window(keys, None)?.into();
    let attention = Attention { mask: reach, ..Attention::read_stated(keys, hidden)? };
    let chunk = keys.count_or("block_size", 256)?;
    let form = LightningForm::Activated;
    let linear = Lightning { hidden, heads: attention.heads, head_dim: attention.head_dim, chunk, form };
    let linear = Recurrent::Lightning(linear);
    let moe = Moe::routed(
        hidden,
        keys.count("num_local_experts")?,
        keys.count_or("num_experts_per_tok", 2)?,
        keys.count("intermediate_size")?,
    )?;
    let layer = |attends| Layer::of(hidden, Mixer::either(attends, &attention, &linear), moe.clone());
    let layers = attends.into_iter().map(layer).collect();
    Ok(whole.graph(layers, vec![]))
}
