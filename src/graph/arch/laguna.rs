//! Laguna (Poolside): softplus gates on attention, a number of heads and a rotation by layer, experts after the first
//! layer.
//!
//! Source: `modular_laguna.py` of transformers 5.24.

use serde_json::Value;

use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, OutputGate, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::{COPY, complete, layer_kinds};
use crate::graph::part::layer::{Layer, Network};
use crate::graph::part::moe::{Moe, SharedExperts};
use crate::graph::part::rope::RopeClass;
use crate::graph::part::window::interleaved_windows;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Full layers rotate half of a head.
const FULL: RopeClass = RopeClass { theta: 500_000, share: [1, 2], ..RopeClass::WHOLE };

/// `laguna`: the balancing bias of the router is a parameter.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["moe_router_logit_softcapping", "moe_routed_scaling_factor"]);
    let whole = DecoderSpec::read(keys, false)?;
    let (hidden, layers) = (whole.hidden, whole.layers);
    let (kv_heads, head_dim) = (keys.count("num_key_value_heads")?, keys.count("head_dim")?);
    let (bias, gate) = (keys.flag("attention_bias", false)?, gate(keys)?);
    let attention = |(heads, window): (Count, Option<Count>)| {
        let class = if window.is_some() { RopeClass::SLIDING } else { FULL };
        let attention = Attention::of(hidden, heads, kv_heads, Some(head_dim))?.biased(bias);
        let attention = attention.rotated(keys, class)?;
        let (qk_norm, mask) = (QkNorm::PerHead, window.into());
        Ok::<_, Error>(Attention { qk_norm, mask, output_gate: Some(gate), ..attention })
    };
    let width = keys.count("shared_expert_intermediate_size")?;
    let network = FeedForward::gated(hidden, width);
    let moe = Moe {
        learned_bias: Some("mlp.gate.e_score_correction_bias"),
        shared: Some(SharedExperts { tensor: "mlp.shared_experts", network, gate: None }),
        ..Moe::read(keys, hidden, ["num_experts", "num_experts_per_tok", "moe_intermediate_size"])?
    };
    let dense = FeedForward::read(keys, hidden)?;
    let sparse = layer_kinds(keys, "mlp_layer_types", layers, &[("dense", false), ("sparse", true)])?
        .unwrap_or_else(|| (0..layers.value).map(|layer| layer > 0).collect());
    let window = keys.count_or("sliding_window", 512)?;
    let windows = interleaved_windows(keys, layers, Some(window), |_| false)?;
    let mut built = Vec::with_capacity(windows.len());
    for (mixer, sparse) in heads(keys, layers)?.into_iter().zip(windows).zip(sparse) {
        built.push(Layer::new(attention(mixer)?, Network::either(sparse, &moe, &dense)));
    }
    Ok(whole.graph(built, vec![]))
}

/// The gate of `gating`: `true` and `per-head` have one number per head, anything else one per element.
fn gate(keys: &Keys<'_>) -> Result<OutputGate, Error> {
    match keys.value("gating") {
        None | Some(Value::Bool(true)) => Ok(OutputGate::PerHead("g_proj")),
        Some(Value::String(form)) if form == "per-head" => Ok(OutputGate::PerHead("g_proj")),
        Some(Value::String(_) | Value::Bool(false)) => Ok(OutputGate::PerElement("g_proj")),
        Some(other) => {
            let expected = "true, \"per-head\" or \"per-element\"";
            Err(Error::new("gating", other.to_string(), expected, COPY))
        }
    }
}

/// Query heads of each layer: `num_attention_heads_per_layer`, else the same number in all.
fn heads(keys: &Keys<'_>, layers: Count) -> Result<Vec<Count>, Error> {
    let key = "num_attention_heads_per_layer";
    let same = keys.count("num_attention_heads")?;
    let Some(heads) = keys.numbers(key)? else { return Ok(vec![same; layers.value as usize]) };
    complete(key, heads.len(), layers, COPY)?;
    if heads.contains(&0) {
        return Err(Error::new(key, "a layer without heads", "at least one head in each layer", COPY));
    }
    Ok(heads.into_iter().map(|heads| Count::config(key, heads)).collect())
}
