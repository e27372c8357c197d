//! gpt-oss: alternating windows, attention sinks, experts with biases.

use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::layer::{Layer, Network};
use crate::graph::part::moe::{Moe, Stacking};
use crate::graph::part::window::interleaved_windows;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `gpt_oss`: biases everywhere; without `layer_types` the even layers slide.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // `experts_per_token` repeats `num_experts_per_tok`.
    keys.set_aside(&["experts_per_token"]);
    let whole = DecoderSpec::read(keys, false)?;
    keys.count("head_dim")?;
    let bias = keys.flag("attention_bias", true)?;
    let attention = Attention {
        qkv_bias: bias,
        o_bias: bias,
        sinks: true,
        ..Attention::read_stated(keys, whole.hidden)?
    };
    let window = keys.count("sliding_window")?;
    let windows = interleaved_windows(keys, whole.layers, Some(window), |layer| layer % 2 == 0)?;
    let moe = Moe {
        router: "mlp.router",
        router_bias: true,
        stacking: Stacking::InOutWithBias,
        ..Moe::routed(
            whole.hidden,
            keys.count("num_local_experts")?,
            keys.count("num_experts_per_tok")?,
            keys.count("intermediate_size")?,
        )?
    };
    let layer = |window: Option<Count>| {
        Layer::new(
            Attention { mask: window.into(), ..attention.clone() },
            Network::Moe(Box::new(moe.clone())),
        )
    };
    Ok(whole.graph(windows.into_iter().map(layer).collect(), vec![]))
}
