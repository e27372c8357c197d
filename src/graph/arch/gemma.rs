//! Gemma 1 to 3: tied embeddings with a large vocabulary, four norms per layer from Gemma 2 on, alternating windows.

use super::gemma3n::local_and_global;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::{Arrangement, Layer};
use crate::graph::part::names::TensorNames;
use crate::graph::part::rope::RopeClass;
use crate::graph::part::window::patterned_windows;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Returns an error for a model with bidirectional attention.
pub(super) fn causal(keys: &Keys<'_>) -> Result<(), Error> {
    let key = "use_bidirectional_attention";
    if keys.is_aside(key) || !keys.flag_or_none(key)? {
        return Ok(());
    }
    Err(Error::new(
        key,
        "true: every token attends to later ones",
        "false or null: only text-generation models are supported",
        "take the model's text-generation checkpoint",
    ))
}

/// `gemma`: Llama's layers; heads of 256 by default.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    causal(keys)?;
    let whole = DecoderSpec::read(keys, true)?;
    Ok(whole.uniform(layer(keys, &whole)?))
}

/// `gemma2`: norms before and after attention and network; even layers slide.
pub fn build_gemma2(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    causal(keys)?;
    // `sliding_window_size` repeats `sliding_window`.
    keys.set_aside(&["sliding_window_size"]);
    let whole = DecoderSpec::read(keys, true)?;
    let layer = Layer { arrangement: Arrangement::Sandwich, ..layer(keys, &whole)? };
    let windows = patterned_windows(keys, whole.layers, 4096, 2)?;
    Ok(whole.windowed(&layer, windows))
}

/// `vaultgemma`: Gemma-2 without the norms after attention and network.
pub fn build_vault(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let table = &[("post_attention_layernorm", "pre_feedforward_layernorm")];
    let whole = DecoderSpec { names: TensorNames::of_table(table), ..DecoderSpec::read(keys, true)? };
    let layer = layer(keys, &whole)?;
    let windows = patterned_windows(keys, whole.layers, 4096, 2)?;
    Ok(whole.windowed(&layer, windows))
}

/// `gemma3_text`: additionally a norm on each head of Q and K, and one full layer in six.
///
/// Files of the larger models omit keys that equal the class's defaults (transformers' `Gemma3TextConfig`).
pub fn build_gemma3(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    causal(keys)?;
    let (hidden, layers) = (keys.count_or("hidden_size", 2304)?, keys.count_or("num_hidden_layers", 26)?);
    let whole = DecoderSpec::of(keys, hidden, layers, keys.count_or("vocab_size", 262_208)?, true)?;
    let (heads, kv_heads) =
        (keys.count_or("num_attention_heads", 8)?, keys.count_or("num_key_value_heads", 4)?);
    let head_dim = keys.count_or("head_dim", 256)?;
    let attention = Attention {
        qk_norm: QkNorm::PerHead,
        ..Attention::of(hidden, heads, kv_heads, Some(head_dim))?.biased(keys.flag("attention_bias", false)?)
    };
    let network = FeedForward::gated(hidden, keys.count_or("intermediate_size", 9216)?);
    let layer = Layer { arrangement: Arrangement::Sandwich, ..Layer::new(attention, network) };
    let [near, far] = local_and_global(keys, [head_dim; 2])?.map(|rope| layer.clone().rotated(Some(rope)));
    let windows = patterned_windows(keys, layers, 4096, 6)?;
    let layer = |window: Option<Count>| if window.is_some() { near.sliding(window) } else { far.clone() };
    Ok(whole.graph(windows.into_iter().map(layer).collect(), vec![]))
}

/// A layer of Gemma 1 or 2, whose files contain all keys except, in some cases, `head_dim`.
fn layer(keys: &Keys<'_>, whole: &DecoderSpec) -> Result<Layer, Error> {
    let (heads, kv_heads) = (keys.count("num_attention_heads")?, keys.count("num_key_value_heads")?);
    let head_dim = keys.count_or("head_dim", 256)?;
    let attention = Attention::of(whole.hidden, heads, kv_heads, Some(head_dim))?;
    let attention = attention.rotated(keys, RopeClass::WHOLE)?;
    let network = FeedForward::read(keys, whole.hidden)?;
    Ok(Layer::new(attention.biased(keys.flag("attention_bias", false)?), network))
}
