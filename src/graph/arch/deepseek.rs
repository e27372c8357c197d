//! DeepSeek and families with the same expert layout: dense layers first, then routed and shared experts.

use serde_json::json;

use crate::graph::assembly::{below, weight};
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::{complete, kinds_of};
use crate::graph::part::latent::Latent;
use crate::graph::part::layer::{Layer, Mixer, Network};
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
}

/// The families before DeepSeek-V3.
const EARLY: DeepseekVariant = DeepseekVariant { correction_bias: None, mtp: Mtp::WithCopies };

/// DeepSeek-V3 and later families.
pub const V3: DeepseekVariant =
    DeepseekVariant { correction_bias: Some("mlp.gate.e_score_correction_bias"), mtp: Mtp::WithCopies };

/// `deepseek_v2`: experts selected by plain scores.
pub fn build_v2(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    build(keys, EARLY)
}

/// `deepseek_v3`, `kimi_k2` and `glm4_moe_lite`: a buffer balances the experts.
pub fn build_v3(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    build(keys, V3)
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
    let hidden = whole.hidden;
    keys.only("moe_layer_freq", &json!(1))?;
    let correction_bias = family.correction_bias;
    let moe = Moe { correction_bias, shared: shared(keys, hidden)?, ..routed(keys, hidden)? };
    let sparse = sparse_layers(keys, whole.layers)?;
    let mut layers = Vec::with_capacity(mixers.len());
    keys.set_aside(&["intermediate_size"]);
    for (sparse, mixer) in sparse.into_iter().zip(&mixers) {
        let network: Network =
            if sparse { moe.clone().into() } else { FeedForward::read(keys, hidden)?.into() };
        layers.push(Layer::of(hidden, mixer.clone(), network));
    }
    let modules = keys.count_unless_zero("num_nextn_predict_layers")?.map_or(0, |modules| modules.value);
    let mixer = predicting.or(mixers.last().cloned());
    let layer = mixer.map(|mixer| Layer::of(hidden, mixer, moe));
    let mut mtp = vec![];
    for index in whole.layers.value..whole.layers.value + modules {
        mtp.extend(layer.iter().flat_map(|layer| mtp_module(&whole, layer, index, family.mtp)));
    }
    Ok(whole.graph(layers, mtp))
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
    let Some(experts) = keys.stated(number)?.count_unless_zero(number)? else { return Ok(None) };
    let width = experts.value * keys.count("moe_intermediate_size")?.value;
    let width = Count::derived("shared_intermediate", width, "shared experts × moe_intermediate_size");
    let network = FeedForward::gated(hidden, width);
    Ok(Some(SharedExperts { tensor: "mlp.shared_experts", network, gate: None }))
}

/// The weights of a multi-token-prediction module: a layer, its two-to-one projection, three norms, and copies of
/// embedding and head if the checkpoint stores them again.
fn mtp_module(whole: &DecoderSpec, layer: &Layer, index: u64, mtp: Mtp) -> Vec<Weight> {
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
