//! DeepSeek and families with the same expert layout: dense layers first, then routed and shared experts.

use serde_json::json;

use crate::graph::assembly::{below, weight};
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm, mha};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::{complete, kinds_of};
use crate::graph::part::latent::Latent;
use crate::graph::part::layer::{Arrangement, Layer, Mixer, Network};
use crate::graph::part::moe::{Moe, SharedExperts};
use crate::graph::part::rope::{Rope, RopeClass};
use crate::graph::part::window::{interleaved_windows, uniform_window};
use crate::graph::tensor::{TensorRole, Weight};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Weights that the checkpoint stores again for multi-token prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mtp {
    /// Embedding and head, in addition to the module's layer, projection and norms.
    WithCopies,
    /// None: the module uses the model's own.
    Shared,
}

/// Differences between the families with DeepSeek's layers.
#[derive(Clone, Copy, Debug)]
pub struct DeepseekVariant {
    /// The expert-balancing buffer.
    pub correction_bias: Option<&'static str>,
    /// Weights stored again for multi-token prediction.
    pub mtp: Mtp,
    /// A norm on the sum of routed and shared experts.
    pub output_norm: Option<&'static str>,
    /// Whether `mlp_bias` gives dense networks and shared experts biases.
    pub mlp_bias: bool,
    /// Keys of the number of routed experts; the first is the class's own.
    pub experts: &'static [&'static str],
    /// Keys of the number of routed experts per token.
    pub per_token: &'static [&'static str],
    /// Keys of the number of shared experts.
    pub shared: &'static [&'static str],
    /// Key of the width of one of these.
    pub shared_width: &'static str,
}

/// The families before DeepSeek-V3.
const EARLY: DeepseekVariant = DeepseekVariant {
    correction_bias: None,
    mtp: Mtp::WithCopies,
    output_norm: None,
    mlp_bias: false,
    experts: &["n_routed_experts"],
    per_token: &["num_experts_per_tok"],
    shared: &["n_shared_experts"],
    shared_width: "moe_intermediate_size",
};

/// DeepSeek-V3 and later families.
pub const V3: DeepseekVariant =
    DeepseekVariant { correction_bias: Some("mlp.gate.e_score_correction_bias"), ..EARLY };

/// Sarvam's models: the published files have other names of the numbers of experts.
const SARVAM: DeepseekVariant = DeepseekVariant {
    experts: &["n_routed_experts", "num_experts"],
    shared: &["n_shared_experts", "num_shared_experts"],
    ..V3
};

/// A.X-K1: one more norm in layers with experts.
const AXK1: DeepseekVariant = DeepseekVariant { output_norm: Some("mlp.post_mlp_layernorm"), ..V3 };

/// Hunyuan-3: the buffer is next to the router, and other keys count the experts.
const HUNYUAN: DeepseekVariant = DeepseekVariant {
    correction_bias: Some("mlp.e_score_correction_bias"),
    mtp: Mtp::Shared,
    mlp_bias: true,
    experts: &["num_experts", "num_local_experts"],
    shared: &["num_shared_experts"],
    ..V3
};

/// `deepseek_v2`: experts selected by plain scores.
pub fn build_v2(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    build(keys, DeepseekVariant { mlp_bias: true, ..EARLY })
}

/// `deepseek_v3`, `kimi_k2` and `glm4_moe_lite`: a buffer balances the experts.
pub fn build_v3(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    build(keys, V3)
}

/// `sarvam_mla`: DeepSeek-V3's layers. `q_head_dim` repeats the sum of the parts of a query
/// (`configuration_sarvam_mla.py` of transformers 5.24).
pub fn build_sarvam_mla(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["q_head_dim"]);
    build(keys, SARVAM)
}

/// `axk1`: DeepSeek-V3's layers, with a norm on the experts' results (`modular_axk1.py` of transformers 5.24).
pub fn build_axk1(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    build(keys, AXK1)
}

/// `youtu`: DeepSeek-V3's attention, a dense network in every layer (`modular_youtu.py` of transformers 5.24).
pub fn build_youtu(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["embedding_initializer_range"]);
    let whole = DecoderSpec::read(keys, true)?;
    let latent = Mixer::Latent(Latent::read(keys, whole.hidden)?);
    let network = FeedForward::read(keys, whole.hidden)?;
    Ok(whole.uniform(Layer::of(whole.hidden, latent, network)))
}

/// `mistral4`: DeepSeek-V3's layers, experts selected by plain scores.
pub fn build_mistral4(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["num_key_value_heads", "head_dim", "qk_head_dim"]);
    // The class has no such layers.
    keys.only("num_nextn_predict_layers", &json!(0))
        .or_else(|_| keys.only("num_nextn_predict_layers", &json!(null)))?;
    build(keys, EARLY)
}

/// `deepseek`: the first DeepSeek-MoE, whose attention is Llama's.
pub fn build_v1(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let attention = Attention::read_stated(keys, whole.hidden)?.biased(keys.flag("attention_bias", false)?);
    let plain = vec![Mixer::Attention(attention); whole.layers.value as usize];
    layers(keys, whole, plain, None, EARLY)
}

/// The language model of DeepSeek-VL2 and DeepSeek-OCR: latent attention, or the first DeepSeek-MoE's where `use_mla`
/// is off (`modeling_deepseek.py` of <https://github.com/deepseek-ai/DeepSeek-VL2>).
pub fn build_vl2(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["lm_head", "rm_head"]);
    if keys.flag("use_mla", true)? {
        return build(keys, EARLY);
    }
    keys.set_aside(&["kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"]);
    build_v1(keys)
}

/// The language model of Unlimited-OCR and DeepSeek-OCR 2: the first DeepSeek-MoE without biases. In reference sliding
/// layers every token sees the whole prompt, and of the text that follows it the last tokens: counted as if all were
/// kept (`modular_unlimited_ocr.py` of transformers 5.24).
pub fn build_unlimited(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // The class divides the width by the number of heads, whatever `head_dim` contains.
    keys.set_aside(&["head_dim", "layer_types", "sliding_window"]);
    let whole = DecoderSpec::read(keys, false)?;
    let heads = keys.count("num_attention_heads")?;
    let kv_heads = keys.count_or_none("num_key_value_heads")?.unwrap_or_else(|| mha(heads));
    let attention = Attention::of(whole.hidden, heads, kv_heads, None)?.rotated(keys, RopeClass::WHOLE)?;
    let attention = attention.biased(keys.flag("attention_bias", false)?);
    let plain = vec![Mixer::Attention(attention); whole.layers.value as usize];
    layers(keys, whole, plain, None, DeepseekVariant { mlp_bias: true, ..EARLY })
}

/// `glm4_moe`: GLM-4.5 to 4.7: biases on Q, K and V, norms on their heads if `use_qk_norm`.
pub fn build_glm4(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    glm4(keys, false)
}

/// The same; `bias` is the class's default of `attention_bias`, which differs in GLM-4.5V's language model.
pub fn glm4(keys: &Keys<'_>, bias: bool) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let attention = Attention {
        qkv_bias: keys.flag("attention_bias", bias)?,
        qk_norm: if keys.flag("use_qk_norm", false)? { QkNorm::PerHead } else { QkNorm::Absent },
        ..Attention::read_rounded(keys.stated("num_key_value_heads")?, whole.hidden)?
    };
    let attention = attention.rotated(keys, RopeClass::HALF)?;
    let same = vec![Mixer::Attention(attention); whole.layers.value as usize];
    layers(keys, whole, same, None, V3)
}

/// `sarvam_moe`: the same with whole heads rotated, norms on the heads of Q and K by default, and other names of keys
/// in published files (`configuration_sarvam_moe.py` of transformers 5.24).
pub fn build_sarvam_moe(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let bias = keys.spelling(&["attention_bias", "use_qkv_bias"])?;
    let attention = Attention {
        qkv_bias: keys.flag(bias, false)?,
        qk_norm: if keys.flag("use_qk_norm", true)? { QkNorm::PerHead } else { QkNorm::Absent },
        ..Attention::read_stated(keys, whole.hidden)?
    };
    let attention = attention.rotated(keys, RopeClass { theta: 8_000_000, ..RopeClass::WHOLE })?;
    let same = vec![Mixer::Attention(attention); whole.layers.value as usize];
    layers(keys, whole, same, None, SARVAM)
}

/// `hy_v3`: Hunyuan-3: a norm on each head of Q and K, biases by `attention_bias` and `mlp_bias`
/// (`modular_hy_v3.py` of transformers 5.24).
pub fn build_hunyuan(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["enable_moe_fp32_combine", "router_scaling_factor"]);
    let whole = DecoderSpec::read(keys, false)?;
    let attention = Attention::read_stated(keys, whole.hidden)?.biased(keys.flag("attention_bias", false)?);
    let class = RopeClass { theta: 11_158_840, ..RopeClass::WHOLE };
    let attention = Attention { qk_norm: QkNorm::PerHead, ..attention.rotated(keys, class)? };
    let same = vec![Mixer::Attention(attention); whole.layers.value as usize];
    layers(keys, whole, same, None, HUNYUAN)
}

/// `solar_open`: GLM-4.5's experts in every layer, without its norms.
pub fn build_solar(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // The class has neither dense layers nor a rotary fraction, whatever the inherited keys contain.
    keys.set_aside(&["first_k_dense_replace", "intermediate_size"]);
    let whole = DecoderSpec::read(keys, false)?;
    let attention = Attention {
        qkv_bias: keys.flag("attention_bias", false)?,
        ..Attention::read_stated(keys, whole.hidden)?
    };
    let rope = Some(Rope::of(keys, attention.head_dim, RopeClass::WHOLE)?);
    let attention = Attention { rope, ..attention };
    let (hidden, correction_bias) = (whole.hidden, V3.correction_bias);
    let moe = Moe { correction_bias, shared: shared(keys, hidden)?, ..routed(keys, hidden)? };
    let layer = Layer::of(hidden, Mixer::Attention(attention), moe);
    Ok(whole.uniform(layer))
}

/// `dots1`: a norm on each head of Q and K; layers from `max_window_layers` on slide, if there is a window.
pub fn build_dots1(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let attention = Attention::read_stated(keys, whole.hidden)?.biased(keys.flag("attention_bias", false)?);
    let attention = Attention { qk_norm: QkNorm::PerHead, ..attention };
    let first = keys.count_or("max_window_layers", 62)?.value;
    let window = uniform_window(keys, Some(4096))?;
    let windows = interleaved_windows(keys, whole.layers, window, |layer| layer >= first)?;
    let windows = windows.into_iter();
    let mixers =
        windows.map(|window| Mixer::Attention(Attention { mask: window.into(), ..attention.clone() }));
    layers(keys, whole, mixers.collect(), None, V3)
}

fn build(keys: &Keys<'_>, family: DeepseekVariant) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let latent = Mixer::Latent(Latent::read(keys, whole.hidden)?);
    let same = vec![latent; whole.layers.value as usize];
    layers(keys, whole, same, None, family)
}

/// One layer for each of `mixers`: dense networks first, then experts. Multi-token prediction uses `predicting`, or
/// else the parts of the last layer.
pub fn layers(
    keys: &Keys<'_>,
    whole: DecoderSpec,
    mixers: Vec<Mixer>,
    predicting: Option<Mixer>,
    family: DeepseekVariant,
) -> Result<ModelGraph, Error> {
    let (layers, mtp) = layers_and_mtp(keys, &whole, mixers, predicting, family)?;
    Ok(whole.graph(layers, mtp))
}

/// The same before they are joined to a graph.
pub(super) fn layers_and_mtp(
    keys: &Keys<'_>,
    whole: &DecoderSpec,
    mixers: Vec<Mixer>,
    predicting: Option<Mixer>,
    family: DeepseekVariant,
) -> Result<(Vec<Layer>, Vec<Weight>), Error> {
    let hidden = whole.hidden;
    keys.only("moe_layer_freq", &json!(1))?;
    let correction_bias = family.correction_bias;
    let [experts, top_k] = [keys.spelling(family.experts)?, keys.spelling(family.per_token)?];
    let bias = family.mlp_bias && keys.flag("mlp_bias", false)?;
    let shared = shared_as_wide(keys, hidden, keys.spelling(family.shared)?, family.shared_width)?;
    let arranged = |layer: Layer| match whole.streams {
        Some(hyper) => Layer { arrangement: Arrangement::HyperConnected(hyper), ..layer },
        None => layer,
    };
    let moe = Moe {
        correction_bias,
        shared: shared.map(|shared| shared.biased(bias)),
        output_norm: family.output_norm,
        ..Moe::read(keys, hidden, [experts, top_k, "moe_intermediate_size"])?
    };
    let sparse = sparse_layers(keys, whole.layers)?;
    let mut layers = Vec::with_capacity(mixers.len());
    keys.set_aside(&["intermediate_size"]);
    for (sparse, mixer) in sparse.into_iter().zip(&mixers) {
        let network: Network = match sparse {
            true => moe.clone().into(),
            false => FeedForward { bias, ..FeedForward::read(keys, hidden)? }.into(),
        };
        layers.push(arranged(Layer::of(hidden, mixer.clone(), network)));
    }
    let modules = keys.count_unless_zero("num_nextn_predict_layers")?.map_or(0, |modules| modules.value);
    let mixer = predicting.or(mixers.last().cloned());
    let layer = mixer.map(|mixer| arranged(Layer::of(hidden, mixer, moe)));
    let mut mtp = vec![];
    for index in whole.layers.value..whole.layers.value + modules {
        mtp.extend(layer.iter().flat_map(|layer| mtp_module(whole, layer, index, family.mtp)));
    }
    Ok((layers, mtp))
}

/// Which layers have experts: `mlp_layer_types`, else those after `first_k_dense_replace`.
pub(super) fn sparse_layers(keys: &Keys<'_>, layers: Count) -> Result<Vec<bool>, Error> {
    let Some(types) = keys.texts("mlp_layer_types")? else {
        let dense = keys.stated("first_k_dense_replace")?.count_unless_zero("first_k_dense_replace")?;
        return Ok((0..layers.value).map(|layer| layer >= dense.map_or(0, |dense| dense.value)).collect());
    };
    keys.set_aside(&["first_k_dense_replace"]);
    let (key, fix) = ("mlp_layer_types", "copy mlp_layer_types from the model's config.json");
    complete(key, types.len(), layers, fix)?;
    kinds_of(key, &types, &[("dense", false), ("sparse", true)], fix)
}

/// The routed experts.
pub fn routed(keys: &Keys<'_>, hidden: Count) -> Result<Moe, Error> {
    Moe::read(keys, hidden, ["n_routed_experts", "num_experts_per_tok", "moe_intermediate_size"])
}

/// The shared experts, which the checkpoint stores as one network of their total width.
pub fn shared(keys: &Keys<'_>, hidden: Count) -> Result<Option<SharedExperts>, Error> {
    shared_of(keys, hidden, "n_shared_experts")
}

/// The same for another key of their number.
pub fn shared_of(
    keys: &Keys<'_>,
    hidden: Count,
    number: &'static str,
) -> Result<Option<SharedExperts>, Error> {
    shared_as_wide(keys, hidden, number, "moe_intermediate_size")
}

/// The same for another key of the width of one.
fn shared_as_wide(
    keys: &Keys<'_>,
    hidden: Count,
    number: &'static str,
    width: &'static str,
) -> Result<Option<SharedExperts>, Error> {
    let Some(experts) = keys.stated(number)?.count_unless_zero(number)? else { return Ok(None) };
    let width = experts.value * keys.count(width)?.value;
    let width = Count::derived("shared_intermediate", width, "shared experts × moe_intermediate_size");
    let network = FeedForward::gated(hidden, width);
    Ok(Some(SharedExperts { tensor: "mlp.shared_experts", network, gate: None }))
}

/// The weights of a multi-token-prediction module: a layer, its two-to-one projection, three norms, and copies of
/// embedding and head if the checkpoint stores them again.
pub(super) fn mtp_module(whole: &DecoderSpec, layer: &Layer, index: u64, mtp: Mtp) -> Vec<Weight> {
    let (hidden, vocab) = (whole.hidden.value, whole.vocab.value);
    let copy = |name, role| (mtp == Mtp::WithCopies).then(|| weight(name, vec![vocab, hidden], role));
    let mut weights: Vec<Weight> = copy("embed_tokens.weight", TensorRole::Embedding).into_iter().collect();
    weights.extend([
        weight("enorm.weight", vec![hidden], TensorRole::Norm),
        weight("hnorm.weight", vec![hidden], TensorRole::Norm),
        weight("eh_proj.weight", vec![hidden, 2 * hidden], TensorRole::Mlp),
    ]);
    let block = layer.block("mtp_layer", vec![]);
    weights.extend(block.graph.node_weights().flat_map(|node| node.weights.clone()));
    weights.push(weight("shared_head.norm.weight", vec![hidden], TensorRole::Norm));
    weights.extend(copy("shared_head.head.weight", TensorRole::LmHead));
    below(&format!("model.layers.{index}"), weights).collect()
}
