//! StarCoder2: GQA, LayerNorm, and a plain feed-forward network, with biases throughout.

use crate::graph::arch::class_keys::ignored;
use crate::graph::assembly::Affine;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::Layer;
use crate::graph::part::names::TensorNames;
use crate::graph::part::window::uniform_window;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `starcoder2`: one key, `use_bias`, for all matrices; LayerNorm always has its shift.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let norm = Affine::ScaleAndShift;
    let whole = DecoderSpec { norm, names: NAMES, ..DecoderSpec::read(keys, true)? };
    // A remnant of the first StarCoder, which the class does not read.
    keys.set_aside(ignored("starcoder2"));
    let bias = keys.flag("use_bias", true)?;
    let window = uniform_window(keys, None)?;
    let attention = Attention::read_stated(keys, whole.hidden)?.biased(bias);
    let attention = Attention { mask: window.into(), ..attention };
    let network = FeedForward::plain(whole.hidden, keys.count("intermediate_size")?, bias);
    Ok(whole.uniform(Layer { norm, ..Layer::new(attention, network) }))
}

const NAMES: TensorNames =
    TensorNames::of_table(&[("mlp.up_proj", "mlp.c_fc"), ("mlp.down_proj", "mlp.c_proj")]);
