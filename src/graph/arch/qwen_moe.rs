//! Qwen with experts: Qwen1.5-MoE and Qwen2-57B-A14B with a gated shared expert; Qwen3-MoE without one.

use serde_json::json;

use super::qwen::headed_attention;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::{Layer, Network};
use crate::graph::part::moe::{Moe, SharedExperts};
use crate::graph::part::window::qwen_windows;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `qwen2_moe`: biases on Q, K and V; a shared expert behind a sigmoid gate.
pub fn build_qwen2(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let qkv_bias = keys.flag("qkv_bias", true)?;
    let attention = Attention { qkv_bias, ..Attention::read_stated(keys, whole.hidden)? };
    let shared = SharedExperts {
        tensor: "mlp.shared_expert",
        network: FeedForward::gated(whole.hidden, keys.count("shared_expert_intermediate_size")?),
        gate: Some("mlp.shared_expert_gate"),
    };
    let moe = Moe { shared: Some(shared), ..routed(keys, &whole)? };
    layers(keys, whole, attention, moe)
}

/// `qwen3_moe`: Qwen3's attention, routed experts only.
pub fn build_qwen3(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    keys.only("shared_expert_intermediate_size", &json!(0))?;
    let attention = headed_attention(keys, &whole)?;
    let moe = routed(keys, &whole)?;
    layers(keys, whole, attention, moe)
}

fn routed(keys: &Keys<'_>, whole: &DecoderSpec) -> Result<Moe, Error> {
    let experts = keys.spelling(&["num_experts", "num_local_experts"])?;
    Moe::read(keys, whole.hidden, [experts, "num_experts_per_tok", "moe_intermediate_size"])
}

/// Every `decoder_sparse_step`-th layer has experts, except `mlp_only_layers`; `intermediate_size` is for the others.
fn layers(keys: &Keys<'_>, whole: DecoderSpec, attention: Attention, moe: Moe) -> Result<ModelGraph, Error> {
    let step = keys.count_or("decoder_sparse_step", 1)?;
    let dense_layers = keys.numbers("mlp_only_layers")?.unwrap_or_default();
    let windows = qwen_windows(keys, whole.layers)?;
    keys.set_aside(&["intermediate_size"]);
    let mut layers = Vec::with_capacity(windows.len());
    for (layer, window) in (0..).zip(windows) {
        let network: Network = if (layer + 1) % step.value == 0 && !dense_layers.contains(&layer) {
            moe.clone().into()
        } else {
            FeedForward::read(keys, whole.hidden)?.into()
        };
        layers.push(Layer::new(Attention { mask: window.into(), ..attention.clone() }, network));
    }
    Ok(whole.graph(layers, vec![]))
}
