//! StarCoder2: GQA, LayerNorm, and a plain feed-forward network, with biases throughout.

use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::feed_forward::{FeedForward, Form};
use crate::graph::part::layer::{Layer, Network};
use crate::graph::part::whole::Whole;
use crate::graph::part::window::uniform_window;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `starcoder2`: one switch, `use_bias`, for all matrices; LayerNorm always has its shift.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = Whole { norm_bias: true, ..Whole::read(keys, true)? };
    let bias = keys.flag("use_bias", true)?;
    let window = uniform_window(keys, None)?;
    let attention = Attention {
        qkv_bias: bias,
        o_bias: bias,
        reach: window.into(),
        ..Attention::read_stated(keys, whole.hidden)?
    };
    let form = Form::Plain { up: "c_fc", down: "c_proj" };
    let network =
        FeedForward { form, bias, ..FeedForward::gated(whole.hidden, keys.count("intermediate_size")?) };
    let layer = Layer { norm_bias: true, ..Layer::new(attention, Network::Dense(network)) };
    Ok(whole.uniform(layer))
}
