//! Kimi-Linear: Kimi Delta Attention with latent attention in between, experts after the first layers.
//!
//! Defaults of missing keys: `KimiLinearConfig`, which the checkpoint ships.

use serde_json::json;

use crate::graph::model::ModelGraph;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kimi_delta::KimiDelta;
use crate::graph::part::latent::Latent;
use crate::graph::part::layer::{Layer, Mixer, Network};
use crate::graph::part::moe::{Moe, Shared};
use crate::graph::part::names::Names;
use crate::graph::part::recurrent::Recurrent;
use crate::graph::part::whole::Whole;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: Names = Names {
    table: &[
        ("mlp.experts", "block_sparse_moe.experts"),
        ("mlp.gate.weight", "block_sparse_moe.gate.weight"),
        ("mlp.gate.e_score_correction_bias", "block_sparse_moe.gate.e_score_correction_bias"),
        ("mlp.shared_experts", "block_sparse_moe.shared_experts"),
    ],
    transposed: false,
};

/// `kimi_linear`: `linear_attn_config` lists, from 1, which layers have which attention.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&[
        "mla_use_nope",
        "moe_renormalize",
        "moe_router_activation_func",
        "num_expert_group",
        "use_grouped_topk",
    ]);
    keys.only("moe_layer_freq", &json!(1))?;
    keys.only("num_nextn_predict_layers", &json!(0))?;
    let max_context = keys.count_or_none("model_max_length")?.map(|tokens| tokens.value);
    let whole = Whole { names: NAMES, max_context, ..Whole::read(keys, false)? };
    let hidden = whole.hidden;
    let latent = Latent::read(keys, hidden)?;
    let linear = keys.section("linear_attn_config")?;
    let delta = KimiDelta {
        hidden,
        heads: linear.count("num_heads")?,
        head_dim: linear.count("head_dim")?,
        kernel: linear.count("short_conv_kernel_size")?,
    };
    let mut recurrent = vec![None; whole.layers.value as usize];
    for (key, is_recurrent) in [("kda_layers", true), ("full_attn_layers", false)] {
        for layer in linear.stated(key)?.numbers(key)?.unwrap_or_default() {
            match recurrent.get_mut((layer as usize).wrapping_sub(1)) {
                Some(kind @ None) => *kind = Some(is_recurrent),
                _ => return Err(unlisted(key, layer, whole.layers)),
            }
        }
    }
    let dense = keys.count_unless_zero("first_k_dense_replace")?.map_or(0, |layers| layers.value);
    let (moe, network) = (moe(keys, hidden)?, FeedForward::gated(hidden, keys.count("intermediate_size")?));
    let mut layers = vec![];
    for (index, recurrent) in (0..).zip(recurrent) {
        let mixer = match recurrent {
            Some(true) => Mixer::Recurrent(Box::new(Recurrent::KimiDelta(delta.clone()))),
            Some(false) => Mixer::Latent(latent.clone()),
            None => return Err(unlisted("kda_layers", index + 1, whole.layers)),
        };
        let network =
            if index < dense { Network::Dense(network.clone()) } else { Network::Moe(Box::new(moe.clone())) };
        layers.push(Layer::of(hidden, mixer, network));
    }
    Ok(whole.graph(layers, vec![]))
}

fn moe(keys: &Keys<'_>, hidden: Count) -> Result<Moe, Error> {
    let (experts, top_k) = (keys.count("num_experts")?, keys.count("num_experts_per_token")?);
    let inner = keys.count("moe_intermediate_size")?;
    let shared = keys.count_unless_zero("num_shared_experts")?.map(|shared| {
        let how = "num_shared_experts × moe_intermediate_size";
        let width = Count::derived("shared_intermediate", shared.value * inner.value, how);
        Shared { tensor: "mlp.shared_experts", network: FeedForward::gated(hidden, width), gate: None }
    });
    let correction_bias = Some("mlp.gate.e_score_correction_bias");
    Ok(Moe { correction_bias, shared, ..Moe::routed(hidden, experts, top_k, inner)? })
}

fn unlisted(key: &str, layer: u64, layers: Count) -> Error {
    Error::new(
        format!("linear_attn_config.{key}"),
        format!("layer {layer} not exactly once"),
        format!("each layer from 1 to {} in kda_layers or in full_attn_layers", layers.value),
        "copy linear_attn_config from the model's config.json",
    )
}
