//! GLM-4 without experts: ChatGLM2 and 3, GLM-4-9B, and GLM-4-0414 with four norms per layer.

use serde_json::json;

use crate::graph::arch::class_keys::ignored;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::{Arrangement, Layer};
use crate::graph::part::names::TensorNames;
use crate::graph::part::rope::RopeClass;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `glm`: biases on Q, K and V; gate and up stored joined.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec { names: NAMES, ..DecoderSpec::read(keys, false)? };
    Ok(whole.uniform(layer(keys, &whole)?))
}

/// `glm4`: norms after attention and network as well.
pub fn build_glm4(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec { names: GLM4_NAMES, ..DecoderSpec::read(keys, false)? };
    let layer = Layer { arrangement: Arrangement::Sandwich, ..layer(keys, &whole)? };
    Ok(whole.uniform(layer))
}

/// The language model of `glm_ocr`: no biases, whole heads rotated (`modeling_glm_ocr.py` of transformers 5.24).
pub fn build_ocr(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec { names: GLM4_NAMES, ..DecoderSpec::read(keys, false)? };
    let attention = Attention::read_stated(keys, whole.hidden)?;
    let network = FeedForward::read(keys, whole.hidden)?;
    let layer = Layer { arrangement: Arrangement::Sandwich, ..Layer::new(attention, network) };
    Ok(whole.uniform(layer))
}

/// The language model of `glm4v`: biases on Q, K and V by class, heads of `hidden_size / num_attention_heads`.
pub fn build_glm4v(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.only("attention_bias", &json!(true))?;
    let whole = DecoderSpec { names: GLM4_NAMES, ..DecoderSpec::read(keys, false)? };
    let attention = Attention::read_stated(keys, whole.hidden)?.rotated(keys, RopeClass::HALF)?;
    let attention = Attention { qkv_bias: true, ..attention };
    let network = FeedForward::read(keys, whole.hidden)?;
    let layer = Layer { arrangement: Arrangement::Sandwich, ..Layer::new(attention, network) };
    Ok(whole.uniform(layer))
}

fn layer(keys: &Keys<'_>, whole: &DecoderSpec) -> Result<Layer, Error> {
    let (heads, kv_heads) = (keys.count("num_attention_heads")?, keys.count("num_key_value_heads")?);
    let attention = Attention {
        qkv_bias: keys.flag("attention_bias", true)?,
        ..Attention::of(whole.hidden, heads, kv_heads, Some(keys.count_or("head_dim", 128)?))?
    };
    let attention = attention.rotated(keys, RopeClass::HALF)?;
    let network = FeedForward::read(keys, whole.hidden)?;
    Ok(Layer::new(attention, network))
}

/// `chatglm`: the keys and tensor names of the checkpoints' own code.
pub fn build_chatglm(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // Keys for kernels and numerics; `vocab_size` counts the tokenizer's entries without padding.
    keys.set_aside(ignored("chatglm"));
    for (key, only) in [
        ("add_bias_linear", false),
        ("apply_residual_connection_post_layernorm", false),
        ("fp32_residual_connection", false),
        ("multi_query_attention", true),
        ("post_layer_norm", true),
        ("rmsnorm", true),
    ] {
        keys.only(key, &json!(only))?;
    }
    let hidden = keys.count("hidden_size")?;
    let layers = keys.count(keys.spelling(&["num_layers", "num_hidden_layers"])?)?;
    let vocab = keys.count("padded_vocab_size")?;
    let whole = DecoderSpec {
        names: CHATGLM_NAMES,
        max_context: keys.count_or_none("seq_length")?.map(|length| length.value),
        ..DecoderSpec::of(keys, hidden, layers, vocab, false)?
    };
    let (heads, kv_heads) = (keys.count("num_attention_heads")?, keys.count("multi_query_group_num")?);
    let attention = Attention {
        qkv_bias: keys.stated("add_qkv_bias")?.flag("add_qkv_bias", false)?,
        ..Attention::of(hidden, heads, kv_heads, Some(keys.count("kv_channels")?))?
    };
    // The checkpoints' code rotates half of a head, with 10000 × rope_ratio.
    let theta = RopeClass::HALF.theta * keys.count_or("rope_ratio", 1)?.value;
    let attention = attention.rotated(keys, RopeClass { theta, ..RopeClass::HALF })?;
    let network = FeedForward::gated(hidden, keys.count("ffn_hidden_size")?);
    Ok(whole.uniform(Layer::new(attention, network)))
}

const NAMES: TensorNames = TensorNames::of_table(&[("mlp.gate_proj mlp.up_proj", "mlp.gate_up_proj")]);

/// Names of the four norms a layer in GLM-4-0414, and in families with its arrangement.
pub(super) const SANDWICH_NAMES: TensorNames = TensorNames::of_table(&[
    ("post_attention_layernorm", "post_self_attn_layernorm"),
    ("pre_feedforward_layernorm", "post_attention_layernorm"),
    ("post_feedforward_layernorm", "post_mlp_layernorm"),
]);

const GLM4_NAMES: TensorNames = TensorNames::of_table(&[
    ("mlp.gate_proj mlp.up_proj", "mlp.gate_up_proj"),
    ("post_attention_layernorm", "post_self_attn_layernorm"),
    ("pre_feedforward_layernorm", "post_attention_layernorm"),
    ("post_feedforward_layernorm", "post_mlp_layernorm"),
]);

const CHATGLM_NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.o_proj", "self_attention.dense"),
    ("self_attn.q_proj self_attn.k_proj self_attn.v_proj", "self_attention.query_key_value"),
    ("mlp.gate_proj mlp.up_proj", "mlp.dense_h_to_4h"),
    ("mlp.down_proj", "mlp.dense_4h_to_h"),
    ("model.layers", "transformer.encoder.layers"),
    ("model.norm", "transformer.encoder.final_layernorm"),
    ("model.embed_tokens", "transformer.embedding.word_embeddings"),
    ("lm_head", "transformer.output_layer"),
]);
