//! Llama, Mistral and related models: GQA and a gated feed-forward network.

use crate::graph::assembly::Affine;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::Layer;
use crate::graph::part::streams::{Extras, Side};
use crate::graph::part::window::{interleaved_windows, uniform_window};
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `llama`: biases by `attention_bias` (Q, K, V and output) and `mlp_bias`.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let bias = keys.flag("attention_bias", false)?;
    let attention =
        Attention { qkv_bias: bias, o_bias: bias, ..Attention::read_grouped(keys, whole.hidden)? };
    let network = FeedForward::read_biased(keys, whole.hidden)?;
    Ok(whole.uniform(Layer::new(attention, network)))
}

/// `bitnet`: norms before the last matrices of attention and network (`modular_bitnet.py` of transformers 5.24). Their
/// ternary values are a weight format.
pub fn build_bitnet(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let attention = Attention::read_grouped(keys, whole.hidden)?.biased(keys.flag("attention_bias", false)?);
    let attention = Attention { result_norm: Some(("self_attn.attn_sub_norm", Affine::Scale)), ..attention };
    let network = FeedForward {
        inner_norm: Some(("ffn_sub_norm", Affine::Scale)),
        ..FeedForward::read(keys, whole.hidden)?
    };
    Ok(whole.uniform(Layer::new(attention, network)))
}

/// `mistral`: one window for all layers; the class default is 4096 if the key is missing.
pub fn build_mistral(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // `sliding_window_size`, `attention_sink_size` and `prefill_chunk_size` are keys of a serving runtime.
    keys.set_aside(&["sliding_window_size", "attention_sink_size", "prefill_chunk_size"]);
    let whole = DecoderSpec::read(keys, false)?;
    let window = uniform_window(keys, Some(4096))?;
    let attention = Attention { mask: window.into(), ..Attention::read_stated(keys, whole.hidden)? };
    Ok(whole.uniform(Layer::new(attention, FeedForward::read(keys, whole.hidden)?)))
}

/// The language model of Voxtral Realtime: each layer scales its network's input by the delay of the transcript, through
/// two matrices that run once per request (`modular_voxtral_realtime.py` of transformers 5.24).
pub fn build_voxtral_realtime(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, true)?;
    let hidden = whole.hidden;
    let window = uniform_window(keys, Some(8192))?;
    let attention = Attention { mask: window.into(), ..Attention::read_stated(keys, hidden)? };
    let side = |name: &str, shape| Side::elements(&format!("ada_rms_norm.{name}.weight"), shape);
    let sides = vec![side("linear1", vec![32, hidden.value]), side("linear2", vec![hidden.value, 32])];
    let layer = Layer::new(attention, FeedForward::read(keys, hidden)?);
    Ok(whole.uniform(Layer { extras: Extras { sides, ..Extras::default() }, ..layer }))
}

/// `ministral3`: as Mistral, with windows by `layer_types` if present.
pub fn build_ministral3(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    windowed(keys, None, false, |_| true)
}

/// `ministral`: the same, with the window of Mistral's class.
pub fn build_ministral(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    windowed(keys, Some(4096), false, |_| true)
}

/// `cwm`: every fourth layer has full attention, starting with the first.
pub fn build_cwm(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    windowed(keys, Some(8192), keys.flag("mlp_bias", false)?, |layer| layer % 4 != 0)
}

/// Llama's layers; those in `sliding` have a window, `default` if the key is missing. `bias` is that of the network.
fn windowed(
    keys: &Keys<'_>,
    default: Option<u64>,
    bias: bool,
    sliding: impl Fn(u64) -> bool,
) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let windows = interleaved_windows(keys, whole.layers, uniform_window(keys, default)?, sliding)?;
    let attention = Attention::read_stated(keys, whole.hidden)?;
    let width = keys.count("intermediate_size")?;
    let network = FeedForward { bias, ..FeedForward::gated(whole.hidden, width) };
    Ok(whole.windowed(&Layer::new(attention, network), windows))
}
