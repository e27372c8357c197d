//! Dense Qwen and MiMo-7B: the first Qwen with its own names; Qwen1.5, 2 and 2.5 with biases on Q, K and V; Qwen3 with
//! a norm on each head of Q and K.

use serde_json::json;

use crate::graph::arch::class_keys::ignored;
use crate::graph::assembly::{below, weight};
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm, mha};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::Layer;
use crate::graph::part::names::TensorNames;
use crate::graph::part::rope::RopeClass;
use crate::graph::part::window::qwen_windows;
use crate::graph::tensor::TensorRole;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `qwen2`: Q, K and V always have biases, without a key; the output projection has none.
pub fn build_qwen2(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // `use_mrope` and `is_causal` select position encoding and mask; chunks are for contexts beyond the trained one.
    keys.set_aside(&["use_mrope", "is_causal", "dual_chunk_attention_config"]);
    let whole = DecoderSpec::read(keys, false)?;
    let attention = Attention { qkv_bias: true, ..Attention::read_stated(keys, whole.hidden)? };
    dense(keys, whole, attention)
}

/// `qwen`, first generation: keys and tensor names of the checkpoints' own code; `intermediate_size` is the sum of gate
/// and up.
pub fn build_qwen(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // Keys for kernels and position encoding.
    keys.set_aside(ignored("qwen"));
    let hidden = keys.count("hidden_size")?;
    let layers = keys.count("num_hidden_layers")?;
    let whole = DecoderSpec {
        names: QWEN_NAMES,
        max_context: keys.count_or_none("seq_length")?.map(|length| length.value),
        ..DecoderSpec::of(keys, hidden, layers, keys.count("vocab_size")?, false)?
    };
    let heads = keys.count("num_attention_heads")?;
    let attention = Attention {
        qkv_bias: true,
        o_bias: !keys.flag("no_bias", true)?,
        ..Attention::of(hidden, heads, mha(heads), Some(keys.count("kv_channels")?))?
    };
    let attention = attention.rotated(keys, RopeClass::WHOLE)?;
    keys.only("no_bias", &json!(true))?;
    let both = keys.count("intermediate_size")?.value;
    let width = Count::derived("intermediate_size", both / 2, "intermediate_size / 2");
    let network = FeedForward::gated(hidden, width);
    Ok(whole.uniform(Layer::new(attention, network)))
}

const QWEN_NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.o_proj", "attn.c_proj"),
    ("self_attn.q_proj self_attn.k_proj self_attn.v_proj", "attn.c_attn"),
    ("mlp.gate_proj", "mlp.w2"),
    ("mlp.up_proj", "mlp.w1"),
    ("mlp.down_proj", "mlp.c_proj"),
    ("input_layernorm", "ln_1"),
    ("post_attention_layernorm", "ln_2"),
    ("model.layers", "transformer.h"),
    ("model.norm", "transformer.ln_f"),
    ("model.embed_tokens", "transformer.wte"),
]);

/// `mimo`: Qwen2's layers, and multi-token-prediction modules with three norms and a two-to-one projection.
pub fn build_mimo(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["use_mrope"]);
    let whole = DecoderSpec::read(keys, false)?;
    let hidden = whole.hidden.value;
    let qkv_bias = keys.flag("attention_bias", true)?;
    let attention = Attention { qkv_bias, ..Attention::read_stated(keys, whole.hidden)? };
    let width = keys.count("intermediate_size")?;
    let module = Layer::new(attention.clone(), FeedForward::gated(whole.hidden, width));
    let modules = keys.count_unless_zero("num_nextn_predict_layers")?.map_or(0, |modules| modules.value);
    let mut graph = dense(keys, whole, attention)?;
    for index in 0..modules {
        let mut weights = module.block("mtp_layer", vec![]).weights();
        weights.push(weight("input_proj.weight", vec![hidden, 2 * hidden], TensorRole::Mlp));
        let norms = ["token_layernorm.weight", "hidden_layernorm.weight", "final_layernorm.weight"];
        weights.extend(norms.map(|norm| weight(norm, vec![hidden], TensorRole::Norm)));
        graph.mtp.extend(below(&format!("model.mtp_layers.{index}"), weights));
    }
    Ok(graph)
}

/// `qwen3`: a norm of `head_dim` on each head of Q and K. The class's default of `head_dim` is not a quotient, so the
/// key is required.
pub fn build_qwen3(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let attention = normed_attention(keys, &whole)?;
    dense(keys, whole, attention)
}

/// Attention of Qwen3.
fn normed_attention(keys: &Keys<'_>, whole: &DecoderSpec) -> Result<Attention, Error> {
    keys.count("head_dim")?;
    headed_attention(keys, whole)
}

/// The same for a missing `head_dim`, which is the stream's width over the number of heads: the MoE class has no
/// default.
pub(super) fn headed_attention(keys: &Keys<'_>, whole: &DecoderSpec) -> Result<Attention, Error> {
    let bias = keys.flag("attention_bias", false)?;
    Ok(Attention { qk_norm: QkNorm::PerHead, ..Attention::read_stated(keys, whole.hidden)?.biased(bias) })
}

fn dense(keys: &Keys<'_>, whole: DecoderSpec, attention: Attention) -> Result<ModelGraph, Error> {
    let windows = qwen_windows(keys, whole.layers)?;
    let network = FeedForward::read(keys, whole.hidden)?;
    Ok(whole.windowed(&Layer::new(attention, network), windows))
}
