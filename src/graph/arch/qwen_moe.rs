//! Qwen with experts: Qwen1.5-MoE and Qwen2-57B-A14B with a gated shared expert; Qwen3-MoE without one. Mellum and
//! Flint: Qwen3-MoE's layers with windows.

use serde_json::json;

use super::qwen::headed_attention;
use super::qwen_next;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::layer_kinds;
use crate::graph::part::layer::{Layer, Network};
use crate::graph::part::moe::{Moe, SharedExperts};
use crate::graph::part::rope::{Rope, RopeClass};
use crate::graph::part::window::{interleaved_windows, qwen_windows, uniform_window};
use crate::quantity::count::Count;
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
    uniform(keys, whole, attention, moe)
}

/// `qwen3_moe`: Qwen3's attention, routed experts only.
pub fn build_qwen3(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    keys.only("shared_expert_intermediate_size", &json!(0))?;
    let attention = headed_attention(keys, &whole)?;
    let moe = routed(keys, &whole)?;
    uniform(keys, whole, attention, moe)
}

/// The language model of `qwen3_omni_moe_thinker`: heads of `hidden_size` over their number, rounded down, if the file
/// has no `head_dim` (`modeling_qwen3_omni_moe.py` of transformers 5.24).
pub fn build_omni(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let bias = keys.flag("attention_bias", false)?;
    let attention = Attention::read_rounded(keys.stated("num_key_value_heads")?, whole.hidden)?.biased(bias);
    let attention = Attention { qk_norm: QkNorm::PerHead, ..attention };
    let window = uniform_window(keys, None)?;
    let moe = routed(keys, &whole)?;
    let layers_of = vec![Attention { mask: window.into(), ..attention }; whole.layers.value as usize];
    layers(keys, whole, layers_of, moe, &[])
}

/// `mellum`: Qwen3-MoE's layers, with windows and dense networks by lists of kinds; layers of each kind have their own
/// base of angles (`modular_mellum.py` of transformers 5.24).
pub fn build_mellum(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["mtp_layer_types", "mtp_mlp_layer_types"]);
    let whole = DecoderSpec::read(keys, false)?;
    let attention = headed_attention(keys, &whole)?;
    let far = RopeClass { theta: 500_000, ..RopeClass::WHOLE };
    let ropes = [far, RopeClass::SLIDING].map(|class| Rope::read(keys, attention.head_dim, class));
    let [far, near] = ropes;
    let (far, near) = (far?, near?);
    let moe = routed(keys, &whole)?;
    let window = uniform_window(keys, Some(1024))?;
    let windows = interleaved_windows(keys, whole.layers, window, |_| false)?;
    let words = [("sparse", true), ("dense", false)];
    let sparse = layer_kinds(keys, "mlp_layer_types", whole.layers, &words)?;
    let sparse = sparse.unwrap_or_else(|| vec![true; whole.layers.value as usize]);
    let dense = FeedForward::read(keys, whole.hidden)?;
    let layer = |(window, sparse): (Option<Count>, bool)| {
        let rope = Some(if window.is_some() { near } else { far });
        let network = Network::either(sparse, &moe, &dense);
        Layer::new(Attention { mask: window.into(), rope, ..attention.clone() }, network)
    };
    let modules = keys.count_unless_zero("num_nextn_predict_layers")?;
    let predicting = match modules {
        Some(modules) => qwen_next::predicting(whole.hidden, &layer((window, true)), modules.value),
        None => vec![],
    };
    Ok(whole.graph(windows.into_iter().zip(sparse).map(layer).collect(), predicting))
}

/// `flint`: sinks in every layer, a shared expert without a gate, rotation in sliding layers only
/// (`modular_flint.py` of transformers 5.24).
pub fn build_flint(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let attention = Attention { sinks: true, ..headed_attention(keys, &whole)? };
    let shared = SharedExperts {
        tensor: "mlp.shared_expert",
        network: FeedForward::gated(whole.hidden, keys.count_or("shared_expert_intermediate_size", 1024)?),
        gate: None,
    };
    let moe = Moe { shared: Some(shared), ..routed(keys, &whole)? };
    let window = keys.count_or("sliding_window", 513)?;
    let last = whole.layers.value - 1;
    let slides = |layer: u64| layer >= 2 && layer % 4 != 1 && layer != last;
    let windows = interleaved_windows(keys, whole.layers, Some(window), slides)?;
    let attentions = windows.into_iter().map(|window| Attention {
        mask: window.into(),
        rope: attention.rope.filter(|_| window.is_some()),
        ..attention.clone()
    });
    layers(keys, whole, attentions.collect(), moe, &[0, 1])
}

fn routed(keys: &Keys<'_>, whole: &DecoderSpec) -> Result<Moe, Error> {
    let experts = keys.spelling(&["num_experts", "num_local_experts"])?;
    Moe::read(keys, whole.hidden, [experts, "num_experts_per_tok", "moe_intermediate_size"])
}

/// One attention for all layers, with the windows of Qwen.
fn uniform(keys: &Keys<'_>, whole: DecoderSpec, attention: Attention, moe: Moe) -> Result<ModelGraph, Error> {
    let windows = qwen_windows(keys, whole.layers)?.into_iter();
    let attentions = windows.map(|window| Attention { mask: window.into(), ..attention.clone() });
    layers(keys, whole, attentions.collect(), moe, &[])
}

/// Every `decoder_sparse_step`-th layer has experts, except `mlp_only_layers`, by default those of `dense`;
/// `intermediate_size` is for the others.
fn layers(
    keys: &Keys<'_>,
    whole: DecoderSpec,
    attentions: Vec<Attention>,
    moe: Moe,
    dense: &[u64],
) -> Result<ModelGraph, Error> {
    let step = keys.count_or("decoder_sparse_step", 1)?;
    let dense_layers = keys.numbers("mlp_only_layers")?.unwrap_or_else(|| dense.to_vec());
    keys.set_aside(&["intermediate_size"]);
    let mut layers = Vec::with_capacity(attentions.len());
    for (layer, attention) in (0..).zip(attentions) {
        let network: Network = if (layer + 1) % step.value == 0 && !dense_layers.contains(&layer) {
            moe.clone().into()
        } else {
            FeedForward::read(keys, whole.hidden)?.into()
        };
        layers.push(Layer::new(attention, network));
    }
    Ok(whole.graph(layers, vec![]))
}
