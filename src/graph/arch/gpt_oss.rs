//! gpt-oss: alternating windows, attention sinks, experts with biases.

use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::layer::Layer;
use crate::graph::part::moe::{Moe, Stacking};
use crate::graph::part::window::interleaved_windows;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `gpt_oss`: biases everywhere; without `layer_types` the even layers slide.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // `experts_per_token` repeats `num_experts_per_tok`.
    keys.set_aside(&["experts_per_token"]);
    let whole = DecoderSpec::read(keys, false)?;
    keys.count("head_dim")?;
    let bias = keys.flag("attention_bias", true)?;
    let attention = Attention { sinks: true, ..Attention::read_stated(keys, whole.hidden)?.biased(bias) };
    let window = keys.count("sliding_window")?;
    let windows = interleaved_windows(keys, whole.layers, Some(window), |layer| layer % 2 == 0)?;
    let moe = Moe {
        router: "mlp.router",
        router_bias: true,
        stacking: Stacking::InOutWithBias,
        ..Moe::read(keys, whole.hidden, ["num_local_experts", "num_experts_per_tok", "intermediate_size"])?
    };
    Ok(whole.windowed(&Layer::new(attention, moe), windows))
}
