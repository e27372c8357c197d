//! OpenELM: numbers of heads and network widths that grow with depth.
//!
//! Widths follow Apple's own code, which is not part of transformers.

use serde_json::json;

use crate::graph::arch::class_keys::ignored;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::Layer;
use crate::graph::part::names::TensorNames;
use crate::graph::part::rope::RopeClass;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;
use crate::spec::model::value::WIDTH_LIMIT;

const NAMES: TensorNames = TensorNames::of_table(&[
    ("model.embed_tokens", "transformer.token_embeddings"),
    ("model", "transformer"),
    ("input_layernorm", "attn_norm"),
    ("post_attention_layernorm", "ffn_norm"),
    ("self_attn.q_proj self_attn.k_proj self_attn.v_proj", "attn.qkv_proj"),
    ("self_attn.o_proj", "attn.out_proj"),
    ("self_attn", "attn"),
    ("mlp.gate_proj mlp.up_proj", "ffn.proj_1"),
    ("mlp.down_proj", "ffn.proj_2"),
]);

/// `openelm`: a number of heads and a network-width multiplier per layer, all in the file.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("openelm"));
    keys.only("ffn_with_glu", &json!(true))?;
    let max_context = keys.count_or_none("max_context_length")?.map(|tokens| tokens.value);
    let (hidden, layers) = (keys.count("model_dim")?, keys.count("num_transformer_layers")?);
    let tied = keys.flag("share_input_output_layers", true)?;
    keys.only("tie_word_embeddings", &json!(tied))?;
    let whole = DecoderSpec::of(keys, hidden, layers, keys.count("vocab_size")?, tied)?;
    let whole = DecoderSpec { names: NAMES, max_context, ..whole };
    let head_dim = keys.count("head_dim")?;
    let qk_norm = match keys.flag("normalize_qk_projections", true)? {
        true => QkNorm::PerHead,
        false => QkNorm::Absent,
    };
    let heads = list(keys, "num_query_heads", layers)?;
    let kv_heads = list(keys, "num_kv_heads", layers)?;
    let widths = widths(keys, hidden, layers)?;
    let mut kinds = vec![];
    for ((heads, kv_heads), width) in heads.into_iter().zip(kv_heads).zip(widths) {
        let attention = Attention::of(hidden, heads, kv_heads, Some(head_dim))?;
        let attention = Attention { qk_norm, ..attention.rotated(keys, RopeClass::WHOLE)? };
        kinds.push(Layer::new(attention, FeedForward::gated(hidden, width)));
    }
    Ok(whole.graph(kinds, vec![]))
}

/// One number of heads per layer.
fn list(keys: &Keys<'_>, key: &'static str, layers: Count) -> Result<Vec<Count>, Error> {
    let numbers = keys.stated(key)?.numbers(key)?.unwrap_or_default();
    if numbers.len() as u64 != layers.value || numbers.contains(&0) {
        let expected = format!("a number for each of the {} layers", layers.value);
        let fix = "copy the list from the model's config.json";
        return Err(Error::new(key, format!("a list of {}", numbers.len()), expected, fix));
    }
    Ok(numbers.into_iter().map(|number| Count::config(key, number)).collect())
}

/// `ffn_multipliers × model_dim`, rounded to the nearest multiple of `ffn_dim_divisor`, but never more than 10 % down.
fn widths(keys: &Keys<'_>, hidden: Count, layers: Count) -> Result<Vec<Count>, Error> {
    let key = "ffn_multipliers";
    let divisor = u128::from(keys.count_or("ffn_dim_divisor", 256)?.value);
    let multipliers = keys.decimals(key)?;
    if multipliers.len() as u64 != layers.value {
        let expected = format!("a multiplier for each of the {} layers", layers.value);
        let fix = "copy the list from the model's config.json";
        return Err(Error::new(key, format!("a list of {}", multipliers.len()), expected, fix));
    }
    let width = |[numerator, denominator]: [u64; 2]| {
        let (exact, parts) = (u128::from(numerator) * u128::from(hidden.value), u128::from(denominator));
        let nearest = (2 * exact + divisor * parts) / (2 * parts) / divisor * divisor;
        let mut width = nearest.max(divisor);
        if 10 * width * parts < 9 * exact {
            width += divisor;
        }
        if width > u128::from(WIDTH_LIMIT) {
            let (found, expected) = (format!("a width of {width}"), format!("at most {WIDTH_LIMIT}"));
            return Err(Error::new(key, found, expected, "copy the list from the model's config.json"));
        }
        let how = "ffn_multipliers × model_dim, to a multiple of ffn_dim_divisor";
        Ok(Count::derived("intermediate", width as u64, how))
    };
    multipliers.into_iter().map(width).collect()
}
