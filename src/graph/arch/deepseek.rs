//! DeepSeek and those who distribute experts as it does: dense layers first, then routed and shared experts.

use serde_json::json;

use crate::graph::assembly::weight;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm};
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::latent::Latent;
use crate::graph::part::layer::{Layer, Mixer, Network};
use crate::graph::part::moe::{Moe, Shared};
use crate::graph::part::whole::Whole;
use crate::graph::part::window::{interleaved_windows, uniform_window};
use crate::graph::tensor::{Role, Weight};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `deepseek_v2`: experts chosen by plain scores.
pub fn build_v2(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    build(keys, None)
}

/// `deepseek_v3` and `kimi_k2`: a buffer balances the experts.
pub fn build_v3(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    build(keys, CORRECTION)
}

/// `deepseek`: the first DeepSeek-MoE, whose attention is Llama's.
pub fn build_v1(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = Whole::read(keys, false)?;
    let attention = Attention::read_stated(keys, whole.hidden)?.biased(keys.flag("attention_bias", false)?);
    let plain = vec![Mixer::Attention(attention); whole.layers.value as usize];
    layers(keys, whole, plain, None)
}

/// `glm4_moe`: GLM-4.5 to 4.7: biases on Q, K and V, norms on their heads if `use_qk_norm`.
pub fn build_glm4(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = Whole::read(keys, false)?;
    let attention = Attention {
        qkv_bias: keys.flag("attention_bias", false)?,
        qk_norm: if keys.flag("use_qk_norm", false)? { QkNorm::PerHead } else { QkNorm::Absent },
        ..Attention::read_stated(keys, whole.hidden)?
    };
    let same = vec![Mixer::Attention(attention); whole.layers.value as usize];
    layers(keys, whole, same, CORRECTION)
}

/// `dots1`: a norm on each head of Q and K; layers from `max_window_layers` on slide, where there is a window.
pub fn build_dots1(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = Whole::read(keys, false)?;
    let attention = Attention::read_stated(keys, whole.hidden)?.biased(keys.flag("attention_bias", false)?);
    let attention = Attention { qk_norm: QkNorm::PerHead, ..attention };
    let first = keys.count_or("max_window_layers", 62)?.value;
    let window = uniform_window(keys, Some(4096))?;
    let windows = interleaved_windows(keys, whole.layers, window, |layer| layer >= first)?;
    let windows = windows.into_iter();
    let mixers = windows.map(|window| Mixer::Attention(Attention { window, ..attention.clone() }));
    layers(keys, whole, mixers.collect(), CORRECTION)
}

/// The buffer that balances the experts from DeepSeek-V3 on.
const CORRECTION: Option<&str> = Some("mlp.gate.e_score_correction_bias");

fn build(keys: &Keys<'_>, correction_bias: Option<&'static str>) -> Result<ModelGraph, Error> {
    let whole = Whole::read(keys, false)?;
    let latent = Mixer::Latent(Latent::read(keys, whole.hidden)?);
    let same = vec![latent; whole.layers.value as usize];
    layers(keys, whole, same, correction_bias)
}

/// One layer for each of `mixers`: the first `first_k_dense_replace` with a dense network, the rest with experts.
fn layers(
    keys: &Keys<'_>,
    whole: Whole,
    mixers: Vec<Mixer>,
    correction_bias: Option<&'static str>,
) -> Result<ModelGraph, Error> {
    let hidden = whole.hidden;
    keys.only("moe_layer_freq", &json!(1))?;
    let moe = Moe { correction_bias, shared: shared(keys, hidden)?, ..routed(keys, hidden)? };
    let dense = keys
        .stated("first_k_dense_replace")?
        .count_unless_zero("first_k_dense_replace")?
        .map_or(0, |layers| layers.value);
    let mut layers = Vec::with_capacity(whole.layers.value as usize);
    keys.set_aside(&["intermediate_size"]);
    for (index, mixer) in (0..).zip(&mixers) {
        let network = if index < dense {
            Network::Dense(FeedForward::gated(hidden, keys.count("intermediate_size")?))
        } else {
            Network::Moe(Box::new(moe.clone()))
        };
        layers.push(Layer::of(hidden, mixer.clone(), network));
    }
    let modules = keys.count_unless_zero("num_nextn_predict_layers")?.map_or(0, |modules| modules.value);
    let last = mixers.last().map(|mixer| Layer::of(hidden, mixer.clone(), Network::Moe(Box::new(moe))));
    let mut mtp = vec![];
    for module in 0..modules {
        mtp.extend(last.iter().flat_map(|layer| mtp_module(&whole, layer, whole.layers.value + module)));
    }
    Ok(whole.graph(layers, mtp))
}

fn routed(keys: &Keys<'_>, hidden: Count) -> Result<Moe, Error> {
    let (experts, top_k) = (keys.count("n_routed_experts")?, keys.count("num_experts_per_tok")?);
    Moe::routed(hidden, experts, top_k, keys.count("moe_intermediate_size")?)
}

/// The shared experts, which the checkpoint keeps as one network of their joint width.
fn shared(keys: &Keys<'_>, hidden: Count) -> Result<Option<Shared>, Error> {
    let Some(experts) = keys.stated("n_shared_experts")?.count_unless_zero("n_shared_experts")? else {
        return Ok(None);
    };
    let width = experts.value * keys.count("moe_intermediate_size")?.value;
    let width = Count::derived("shared_intermediate", width, "n_shared_experts × moe_intermediate_size");
    let network = FeedForward::gated(hidden, width);
    Ok(Some(Shared { tensor: "mlp.shared_experts", network, gate: None }))
}

/// The weights of a multi-token-prediction module: a layer, its two-to-one projection, three norms,
/// and copies of embedding and head that the checkpoint stores again.
fn mtp_module(whole: &Whole, layer: &Layer, index: u64) -> Vec<Weight> {
    let (hidden, vocab) = (whole.hidden.value, whole.vocab.value);
    let mut weights = vec![
        weight("embed_tokens.weight", vec![vocab, hidden], Role::Embedding),
        weight("enorm.weight", vec![hidden], Role::Norm),
        weight("hnorm.weight", vec![hidden], Role::Norm),
        weight("eh_proj.weight", vec![hidden, 2 * hidden], Role::Mlp),
    ];
    let block = layer.block("mtp_layer", vec![]);
    weights.extend(block.graph.node_weights().flat_map(|node| node.weights.clone()));
    weights.push(weight("shared_head.norm.weight", vec![hidden], Role::Norm));
    weights.push(weight("shared_head.head.weight", vec![vocab, hidden], Role::LmHead));
    for weight in &mut weights {
        weight.name = format!("model.layers.{index}.{}", weight.name);
    }
    weights
}
