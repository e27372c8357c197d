//! Nemotron-3 and 4, Arcee, Apertus, nanochat and Persimmon: plain networks of two matrices in pre-norm layers.

use serde_json::json;

use crate::graph::assembly::Affine;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm, mha};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::Layer;
use crate::graph::part::names::TensorNames;
use crate::graph::part::rope::RopeClass;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `nemotron`: LayerNorm with shift.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let norm = Affine::ScaleAndShift;
    let whole = DecoderSpec { norm, ..DecoderSpec::read(keys, false)? };
    let layer = Layer { norm, ..plain(keys, &whole, RopeClass::HALF)? };
    Ok(whole.uniform(layer))
}

/// `jais2`: LayerNorm with shift, and biases unless switched off.
pub fn build_jais2(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let norm = Affine::ScaleAndShift;
    let whole = DecoderSpec { norm, ..DecoderSpec::read(keys, false)? };
    let attention = Attention::read_grouped(keys, whole.hidden)?.biased(keys.flag("attention_bias", true)?);
    let (width, bias) = (keys.count("intermediate_size")?, keys.flag("mlp_bias", true)?);
    let network = FeedForward::plain(whole.hidden, width, bias);
    Ok(whole.uniform(Layer { norm, ..Layer::new(attention, network) }))
}

/// `nanochat`: norms have no learned parameters, including one after the embedding and those on the heads of Q and K.
pub fn build_nanochat(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let norm = Affine::Absent;
    let names = TensorNames::of_table(&[("mlp.up_proj", "mlp.fc1"), ("mlp.down_proj", "mlp.fc2")]);
    let whole = DecoderSpec { norm, embedding_norm: true, names, ..DecoderSpec::read(keys, false)? };
    let attention = Attention::read_grouped(keys, whole.hidden)?.biased(keys.flag("attention_bias", false)?);
    let attention = Attention { qk_norm: QkNorm::Plain, ..attention };
    let network = FeedForward::plain(whole.hidden, keys.count("intermediate_size")?, false);
    Ok(whole.uniform(Layer { norm, ..Layer::new(attention, network) }))
}

/// `arcee`: RMSNorm.
pub fn build_arcee(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    Ok(whole.uniform(plain(keys, &whole, RopeClass::WHOLE)?))
}

/// The language model of `cosmos3_edge`: the same under other names; its head is always stored separately
/// (`modular_cosmos3_edge.py` of transformers 5.24).
pub fn build_edge(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let names = TensorNames::of_table(&[("mlp.up_proj", "mlp.fc1"), ("mlp.down_proj", "mlp.fc2")]);
    let whole = DecoderSpec { names, tied: false, ..DecoderSpec::read(keys, false)? };
    Ok(whole.uniform(plain(keys, &whole, RopeClass::WHOLE)?))
}

/// `apertus`: a norm on each head of Q and K, and an activation (xIELU) with two learned scalars per layer.
pub fn build_apertus(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.only("post_norm", &json!(false))?;
    keys.only("qk_norm", &json!(true))?;
    keys.only("mlp_bias", &json!(false))?;
    let whole = DecoderSpec { names: APERTUS_NAMES, ..DecoderSpec::read(keys, false)? };
    let attention = Attention::read_grouped(keys, whole.hidden)?.biased(keys.flag("attention_bias", false)?);
    let attention = Attention { qk_norm: QkNorm::PerHead, ..attention };
    let network = FeedForward::plain(whole.hidden, keys.count("intermediate_size")?, false);
    let network = match keys.says("hidden_act", "xielu") {
        true => FeedForward {
            learned: &["act_fn.alpha_p", "act_fn.alpha_n"],
            constants: &["act_fn.beta", "act_fn.eps"],
            ..network
        },
        false => network,
    };
    Ok(whole.uniform(Layer::new(attention, network)))
}

/// `apertus1p5_text`: the same; a head of another size than the embedding is not supported
/// (`configuration_apertus1p5.py` of transformers 5.24).
pub fn build_apertus1p5(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.only("output_vocab_size", &json!(null))?;
    build_apertus(keys)
}

/// `persimmon`: LayerNorm with shift, also on the heads of Q and K; biases throughout.
pub fn build_persimmon(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let norm = Affine::ScaleAndShift;
    let whole = DecoderSpec { norm, names: PERSIMMON_NAMES, ..DecoderSpec::read(keys, false)? };
    let heads = keys.count("num_attention_heads")?;
    keys.only("num_key_value_heads", &json!(heads.value))?;
    let qk_norm = if keys.flag("qk_layernorm", true)? { QkNorm::PerHeadWithShift } else { QkNorm::Absent };
    let attention =
        Attention { qk_norm, ..Attention::of(whole.hidden, heads, mha(heads), None)?.biased(true) };
    let attention = attention.rotated(keys, RopeClass::HALF)?;
    let network = FeedForward::plain(whole.hidden, keys.count("intermediate_size")?, true);
    Ok(whole.uniform(Layer { norm, ..Layer::new(attention, network) }))
}

fn plain(keys: &Keys<'_>, whole: &DecoderSpec, class: RopeClass) -> Result<Layer, Error> {
    let attention = Attention::read_grouped(keys, whole.hidden)?.rotated(keys, class)?;
    let attention = attention.biased(keys.flag("attention_bias", false)?);
    let (width, bias) = (keys.count("intermediate_size")?, keys.flag("mlp_bias", false)?);
    Ok(Layer::new(attention, FeedForward::plain(whole.hidden, width, bias)))
}

const APERTUS_NAMES: TensorNames = TensorNames::of_table(&[
    ("input_layernorm", "attention_layernorm"),
    ("post_attention_layernorm", "feedforward_layernorm"),
]);

const PERSIMMON_NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.o_proj", "self_attn.dense"),
    ("self_attn.q_proj self_attn.k_proj self_attn.v_proj", "self_attn.query_key_value"),
    ("self_attn.q_norm", "self_attn.q_layernorm"),
    ("self_attn.k_norm", "self_attn.k_layernorm"),
    ("mlp.up_proj", "mlp.dense_h_to_4h"),
    ("mlp.down_proj", "mlp.dense_4h_to_h"),
    ("model.norm", "model.final_layernorm"),
]);
