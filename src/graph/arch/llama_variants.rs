//! Families with Llama's layers whose classes differ only in defaults, biases and names.

use serde_json::json;

use crate::graph::arch::class_keys::ignored;
use crate::graph::assembly::Affine;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::{Arrangement, Layer};
use crate::graph::part::names::TensorNames;
use crate::graph::part::rope::RopeClass;
use crate::graph::part::window::{interleaved_windows, without_windows};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `granite`: multipliers on embedding, residual and logits change no shape.
pub fn build_granite(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    with_biases(keys, DecoderSpec::read(keys, false)?, None)
}

/// `hyperclovax`: Granite's layers, with norms after attention and network as well unless `use_post_norm` is off
/// (`modular_hyperclovax.py` of transformers 5.24).
pub fn build_hyperclovax(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let layer = biased_layer(keys, &whole, None)?;
    if !keys.flag("use_post_norm", true)? {
        return Ok(whole.uniform(layer));
    }
    let whole = DecoderSpec { names: HYPERCLOVAX_NAMES, ..whole };
    Ok(whole.uniform(Layer { arrangement: Arrangement::Sandwich, ..layer }))
}

/// The language model of Chameleon: norms with a shift for each head's queries and keys; with `swin_norm`, the norms
/// of a layer are behind attention and network (`modeling_chameleon.py` of transformers 5.24).
pub fn build_chameleon(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["model_parallel_size"]);
    let behind = keys.flag("swin_norm", false)?;
    let names = if behind { CHAMELEON_BEHIND } else { TensorNames::default() };
    let whole = DecoderSpec { names, ..DecoderSpec::read(keys, false)? };
    let (heads, kv_heads) = (keys.count("num_attention_heads")?, keys.count_or("num_key_value_heads", 32)?);
    let attention = Attention::of(whole.hidden, heads, kv_heads, None)?;
    let attention = attention.rotated(keys, RopeClass::WHOLE)?.biased(keys.flag("attention_bias", false)?);
    let attention = Attention { qk_norm: QkNorm::EachHeadWithShift, ..attention };
    let arrangement = if behind { Arrangement::PostNorm } else { Arrangement::PreNorm };
    let layer = Layer::new(attention, FeedForward::read_biased(keys, whole.hidden)?);
    Ok(whole.uniform(Layer { arrangement, ..layer }))
}

const CHAMELEON_BEHIND: TensorNames = TensorNames::of_table(&[
    ("post_attention_layernorm", "input_layernorm"),
    ("post_feedforward_layernorm", "post_attention_layernorm"),
]);

/// `smollm3`: some layers without position encoding; optional windows in those.
pub fn build_smollm3(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["no_rope_layers", "no_rope_layer_interval", "max_window_layers", "sliding_window"]);
    let whole = DecoderSpec::read(keys, true)?;
    let window = match keys.flag("use_sliding_window", false)? {
        true => keys.count_or_none("sliding_window")?,
        false => None,
    };
    // Without `layer_types`, the layers without position encoding slide: every fourth one by default.
    let every = keys.count_or("no_rope_layer_interval", 4)?.value;
    let ropes = keys.numbers("no_rope_layers")?.filter(|ropes| !ropes.is_empty());
    let plain = |layer: u64| match &ropes {
        Some(ropes) => ropes.get(layer as usize) == Some(&0),
        None => (layer + 1).is_multiple_of(every),
    };
    let windows = match window {
        Some(_) => interleaved_windows(keys, whole.layers, window, plain)?,
        None => without_windows(keys, whole.layers)?,
    };
    let layer = biased_layer(keys, &whole, None)?;
    let placed = |(index, window): (u64, Option<Count>)| match plain(index) {
        true => layer.sliding(window).rotated(None),
        false => layer.sliding(window),
    };
    Ok(whole.graph((0..).zip(windows).map(placed).collect(), vec![]))
}

/// `helium`: biases on Q, K and V only; the output is square, so the head dimension is the stream's width over the
/// number of heads.
pub fn build_helium(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let head_dim = keys.count("head_dim")?.value;
    let attention = Attention {
        qkv_bias: keys.flag("attention_bias", false)?,
        ..Attention::read_stated(keys, whole.hidden)?
    };
    if attention.heads.value * head_dim != whole.hidden.value {
        let expected = format!("hidden_size {} / num_attention_heads", whole.hidden.value);
        let fix = "copy all three from the model's config.json";
        return Err(Error::new("head_dim", head_dim.to_string(), expected, fix));
    }
    let network = FeedForward::read_biased(keys, whole.hidden)?;
    Ok(whole.uniform(Layer::new(attention, network)))
}

/// `seed_oss`: biases on Q, K and V, and on the output by a separate key; heads of 128.
pub fn build_seed_oss(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    keys.count("head_dim")?;
    let attention = Attention {
        qkv_bias: keys.flag("attention_bias", true)?,
        o_bias: keys.flag("attention_out_bias", false)?,
        ..Attention::read_stated(keys, whole.hidden)?
    };
    let network = FeedForward::read_biased(keys, whole.hidden)?;
    Ok(whole.uniform(Layer::new(attention, network)))
}

/// `ernie4_5`: one key, `use_bias`, for all matrices; heads of 128.
pub fn build_ernie(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, true)?;
    keys.count("head_dim")?;
    keys.stated("num_key_value_heads")?;
    keys.set_aside(&["compression_ratio"]);
    let bias = keys.flag("use_bias", false)?;
    with_biases(keys, whole, Some(bias))
}

/// `hunyuan_v1_dense`: a norm on each head of Q and K.
pub fn build_hunyuan(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // The class normalises Q and K whatever `use_qk_norm` contains.
    keys.only("use_qk_norm", &json!(true))?;
    keys.set_aside(ignored("hunyuan_v1_dense"));
    keys.only("num_experts", &json!(1))?;
    let whole = DecoderSpec { names: HUNYUAN_NAMES, ..DecoderSpec::read(keys, false)? };
    let attention = Attention::read_grouped(keys, whole.hidden)?.biased(keys.flag("attention_bias", false)?);
    let attention = Attention { qk_norm: QkNorm::PerHead, ..attention };
    Ok(whole.uniform(Layer::new(attention, FeedForward::read(keys, whole.hidden)?)))
}

/// `internlm2`: Q, K and V stored joined; `bias` on attention.
pub fn build_internlm2(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["attn_implementation"]);
    let whole = DecoderSpec { names: INTERNLM2_NAMES, ..DecoderSpec::read(keys, false)? };
    let bias = keys.stated("bias")?.flag("bias", true)?;
    let attention = Attention::read_stated(keys, whole.hidden)?.biased(bias);
    Ok(whole.uniform(Layer::new(attention, FeedForward::read(keys, whole.hidden)?)))
}

/// `internlm`, first generation: `bias` on attention.
pub fn build_internlm(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let bias = keys.stated("bias")?.flag("bias", true)?;
    let heads = keys.count("num_attention_heads")?;
    keys.only("num_key_value_heads", &json!(heads.value))?;
    let attention = Attention::read_grouped(keys, whole.hidden)?.biased(bias);
    Ok(whole.uniform(Layer::new(attention, FeedForward::read(keys, whole.hidden)?)))
}

/// `internlm3`: Llama without biases; the class of transformers 5.24 is Llama's, with its switches.
pub fn build_internlm3(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.only("bias", &json!(false))?;
    keys.only("qkv_bias", &json!(false))?;
    keys.stated("num_key_value_heads")?.stated("head_dim")?;
    with_biases(keys, DecoderSpec::read(keys, false)?, None)
}

/// `orion`: LayerNorm with shift.
pub fn build_orion(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let norm = Affine::ScaleAndShift;
    let whole = DecoderSpec { norm, ..DecoderSpec::read(keys, false)? };
    let network = FeedForward::read(keys, whole.hidden)?;
    let layer = Layer::new(Attention::read_grouped(keys, whole.hidden)?, network);
    Ok(whole.uniform(Layer { norm, ..layer }))
}

/// `baichuan`: MHA with Q, K and V stored joined.
pub fn build_baichuan(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["gradient_checkpointing"]);
    keys.only("num_key_value_heads", &json!(null))?;
    let context = keys.count_or_none("model_max_length")?.map(|length| length.value);
    let whole =
        DecoderSpec { names: BAICHUAN_NAMES, max_context: context, ..DecoderSpec::read(keys, false)? };
    let network = FeedForward::read(keys, whole.hidden)?;
    Ok(whole.uniform(Layer::new(Attention::read_grouped(keys, whole.hidden)?, network)))
}

/// `xverse`: Llama without biases.
pub fn build_xverse(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["max_tokenizer_truncation"]);
    let whole = DecoderSpec::read(keys, false)?;
    let network = FeedForward::read(keys, whole.hidden)?;
    Ok(whole.uniform(Layer::new(Attention::read_grouped(keys, whole.hidden)?, network)))
}

/// Llama's layers with `attention_bias` and `mlp_bias`, or one key for all.
fn with_biases(keys: &Keys<'_>, whole: DecoderSpec, all: Option<bool>) -> Result<ModelGraph, Error> {
    Ok(whole.uniform(biased_layer(keys, &whole, all)?))
}

/// One of those layers.
fn biased_layer(keys: &Keys<'_>, whole: &DecoderSpec, all: Option<bool>) -> Result<Layer, Error> {
    let (attention_bias, bias) = match all {
        Some(all) => (all, all),
        None => (keys.flag("attention_bias", false)?, keys.flag("mlp_bias", false)?),
    };
    let attention = Attention::read_grouped(keys, whole.hidden)?.biased(attention_bias);
    let network = FeedForward { bias, ..FeedForward::read(keys, whole.hidden)? };
    Ok(Layer::new(attention, network))
}

const HYPERCLOVAX_NAMES: TensorNames = TensorNames::of_table(&[
    ("post_attention_layernorm", "post_norm1"),
    ("pre_feedforward_layernorm", "post_attention_layernorm"),
    ("post_feedforward_layernorm", "post_norm2"),
]);

const HUNYUAN_NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.q_norm", "self_attn.query_layernorm"),
    ("self_attn.k_norm", "self_attn.key_layernorm"),
]);

const INTERNLM2_NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.q_proj self_attn.k_proj self_attn.v_proj", "attention.wqkv"),
    ("self_attn.o_proj", "attention.wo"),
    ("mlp.gate_proj", "feed_forward.w1"),
    ("mlp.up_proj", "feed_forward.w3"),
    ("mlp.down_proj", "feed_forward.w2"),
    ("input_layernorm", "attention_norm"),
    ("post_attention_layernorm", "ffn_norm"),
    ("model.embed_tokens", "model.tok_embeddings"),
    ("lm_head", "output"),
]);

const BAICHUAN_NAMES: TensorNames =
    TensorNames::of_table(&[("self_attn.q_proj self_attn.k_proj self_attn.v_proj", "self_attn.W_pack")]);

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;

    #[test]
    fn norms_of_chameleon_are_of_each_head_before_or_behind_the_layer() {
        let text = r#"{"hidden_size": 6, "num_hidden_layers": 2, "vocab_size": 11, "num_attention_heads": 3,
            "num_key_value_heads": 1, "intermediate_size": 10, "swin_norm": false}"#;
        let names = |text: &str| {
            let map: Map<String, Value> = serde_json::from_str(text).unwrap();
            let graph = build_chameleon(&Keys::new(&map)).unwrap();
            let layer = 2 * 6 * 6 + 2 * 2 * 6 + 3 * 6 * 10 + 2 * 6 + 2 * (3 + 1) * 2;
            assert_eq!(graph.parameters().unique, 2 * 11 * 6 + 6 + 2 * layer);
            let mut names: Vec<String> = graph.tensors().into_iter().map(|tensor| tensor.name).collect();
            names.sort();
            names
        };
        assert_eq!(names(text), names(&text.replace("false", "true")));
    }
}
