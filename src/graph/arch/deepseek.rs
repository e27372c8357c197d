//! DeepSeek-V2 and V3, and Kimi-K2: latent attention, dense layers first, then routed and shared experts.

use serde_json::json;

use crate::graph::assembly::weight;
use crate::graph::model::ModelGraph;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::latent::Latent;
use crate::graph::part::layer::{Layer, Mixer, Network};
use crate::graph::part::moe::{Moe, Shared};
use crate::graph::part::whole::Whole;
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
    build(keys, Some("mlp.gate.e_score_correction_bias"))
}

fn build(keys: &Keys<'_>, correction_bias: Option<&'static str>) -> Result<ModelGraph, Error> {
    let whole = Whole::read(keys, false)?;
    let hidden = whole.hidden;
    keys.only("moe_layer_freq", &json!(1))?;
    let latent = Latent::read(keys, hidden)?;
    let moe = Moe { correction_bias, shared: shared(keys, hidden)?, ..routed(keys, hidden)? };
    let layer = |network| Layer::of(hidden, Mixer::Latent(latent.clone()), network);
    let dense = keys
        .stated("first_k_dense_replace")?
        .count_unless_zero("first_k_dense_replace")?
        .map_or(0, |layers| layers.value);
    let mut layers = Vec::with_capacity(whole.layers.value as usize);
    keys.set_aside(&["intermediate_size"]);
    for index in 0..whole.layers.value {
        layers.push(layer(if index < dense {
            Network::Dense(FeedForward::gated(hidden, keys.count("intermediate_size")?))
        } else {
            Network::Moe(Box::new(moe.clone()))
        }));
    }
    let modules = keys.count_unless_zero("num_nextn_predict_layers")?.map_or(0, |modules| modules.value);
    let mtp = (0..modules)
        .flat_map(|module| {
            mtp_module(&whole, &layer(Network::Moe(Box::new(moe.clone()))), whole.layers.value + module)
        })
        .collect();
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
