//! Qwen3-Next and Qwen3.5: gated DeltaNet, with gated attention in every fourth layer; dense or with experts.
//!
//! Defaults for missing keys: the configuration classes of transformers.

use super::qwen::headed_attention;
use super::vision::qwen as tower;
use super::wrapper::{INSIDE_MODEL, inside, vision, wrap};
use crate::graph::assembly::{below, weight};
use crate::graph::cache::StateWidth;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, OutputGate, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::delta::Delta;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::layer_kinds;
use crate::graph::part::layer::{Layer, Mixer, Network};
use crate::graph::part::moe::{Moe, SharedExperts};
use crate::graph::part::names::TensorNames;
use crate::graph::part::recurrent::Recurrent;
use crate::graph::part::rope::RopeClass;
use crate::graph::tensor::{TensorRole, Weight};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Qwen3-Next joins all projections of a layer into two matrices.
const NEXT: TensorNames = TensorNames::of_table(&[
    ("linear_attn.in_proj_qk linear_attn.in_proj_v linear_attn.in_proj_z", "linear_attn.in_proj_qkvz"),
    ("linear_attn.in_proj_b linear_attn.in_proj_a", "linear_attn.in_proj_ba"),
]);

/// Qwen3.5 joins queries, keys and values.
const FIVE: TensorNames =
    TensorNames::of_table(&[("linear_attn.in_proj_qk linear_attn.in_proj_v", "linear_attn.in_proj_qkv")]);

/// `qwen3_next`: experts in every layer unless the keys of Qwen3-MoE differ.
pub fn build_next(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec { names: NEXT, ..DecoderSpec::read(keys, false)? };
    let moe = moe(keys, whole.hidden, 512, 10)?;
    let step = keys.count_or("decoder_sparse_step", 1)?;
    let dense = keys.numbers("mlp_only_layers")?.unwrap_or_default();
    keys.set_aside(&["intermediate_size"]);
    let network = |layer| {
        if (layer + 1) % step.value == 0 && !dense.contains(&layer) {
            return Ok(moe.clone().into());
        }
        Ok(FeedForward::read(keys, whole.hidden)?.into())
    };
    let networks = (0..whole.layers.value).map(network).collect::<Result<Vec<Network>, Error>>()?;
    layers(keys, whole, networks, StateWidth::Single)
}

/// `qwen3_5`, the language model inside the wrapper.
pub fn build_5(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    wrapped(keys, "qwen3_5_text", build_5_text)
}

/// `qwen3_5_moe`, the language model inside the wrapper.
pub fn build_5_moe(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    wrapped(keys, "qwen3_5_moe_text", build_5_moe_text)
}

/// `qwen3_5_text`: a dense network in every layer.
pub fn build_5_text(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // Copied from the MoE class; not read.
    keys.set_aside(&["mlp_only_layers"]);
    let whole = DecoderSpec { names: FIVE, ..DecoderSpec::read(keys, false)? };
    let network = FeedForward::read(keys, whole.hidden)?;
    five(keys, whole, network.into())
}

/// `qwen3_5_moe_text`: experts in every layer.
pub fn build_5_moe_text(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // The class has no dense layers, whatever the inherited keys contain.
    keys.set_aside(&["decoder_sparse_step", "intermediate_size", "mlp_only_layers"]);
    let whole = DecoderSpec { names: FIVE, ..DecoderSpec::read(keys, false)? };
    let moe = moe(keys, whole.hidden, 256, 8)?;
    five(keys, whole, moe.into())
}

fn wrapped(
    keys: &Keys<'_>,
    class: &str,
    build: fn(&Keys<'_>) -> Result<ModelGraph, Error>,
) -> Result<ModelGraph, Error> {
    let graph = inside(keys, class, build)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower::qwen3_5(&vision(keys, "qwen3_5_vision")?)?]))
}

fn five(keys: &Keys<'_>, whole: DecoderSpec, network: Network) -> Result<ModelGraph, Error> {
    keys.only("attn_output_gate", &serde_json::json!(true))?;
    keys.only("mtp_use_dedicated_embeddings", &serde_json::json!(false))?;
    let single = keys.says("mamba_ssm_dtype", "float32");
    let networks = vec![network; whole.layers.value as usize];
    layers(keys, whole, networks, if single { StateWidth::Single } else { StateWidth::Native })
}

pub(super) fn moe(keys: &Keys<'_>, hidden: Count, experts: u64, top_k: u64) -> Result<Moe, Error> {
    let width = keys.count_or("shared_expert_intermediate_size", 512)?;
    let shared = SharedExperts {
        tensor: "mlp.shared_expert",
        network: FeedForward::gated(hidden, width),
        gate: Some("mlp.shared_expert_gate"),
    };
    let moe = Moe::routed(
        hidden,
        keys.count_or("num_experts", experts)?,
        keys.count_or("num_experts_per_tok", top_k)?,
        keys.count_or("moe_intermediate_size", 512)?,
    )?;
    Ok(Moe { shared: Some(shared), ..moe })
}

/// `lara_mini`: Qwen3.5's delta layers, attention without a gate in sliding and in full layers, a shared expert without
/// a gate (`modular_lara_mini.py` of transformers 5.24).
pub fn build_lara_mini(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec { names: FIVE, ..DecoderSpec::read(keys, true)? };
    let hidden = whole.hidden;
    let window = keys.count_or("sliding_window", 512)?;
    let words = [
        ("linear_attention", None),
        ("sliding_attention", Some(Some(window))),
        ("full_attention", Some(None)),
    ];
    let period = [0, 1, 0, 2, 1].map(|kind: usize| words[kind].1);
    let kinds = layer_kinds(keys, "layer_types", whole.layers, &words)?
        .unwrap_or_else(|| period.into_iter().cycle().take(whole.layers.value as usize).collect());
    let attention = headed_attention(keys, &whole)?;
    keys.count("linear_num_key_heads")?;
    keys.count("linear_num_value_heads")?;
    let delta = Box::new(Recurrent::Delta(Delta::read(keys, hidden, StateWidth::Single)?));
    let moe = moe(keys, hidden, 128, 4)?;
    let moe = Moe { shared: moe.shared.map(|shared| SharedExperts { gate: None, ..shared }), ..moe };
    let layer = |kind: Option<Option<Count>>| {
        let mixer = match kind {
            None => Mixer::Recurrent(delta.clone()),
            Some(window) => Mixer::Attention(Attention { mask: window.into(), ..attention.clone() }),
        };
        Layer::of(hidden, mixer, moe.clone())
    };
    Ok(whole.graph(kinds.into_iter().map(layer).collect(), vec![]))
}

/// `layer_types`, else attention in every `full_attention_interval`-th layer.
fn layers(
    keys: &Keys<'_>,
    whole: DecoderSpec,
    networks: Vec<Network>,
    width: StateWidth,
) -> Result<ModelGraph, Error> {
    let hidden = whole.hidden;
    keys.set_aside(&["full_attention_interval"]);
    let kinds = [("linear_attention", false), ("full_attention", true)];
    let attends = match layer_kinds(keys, "layer_types", whole.layers, &kinds)? {
        Some(attends) => attends,
        None => {
            let interval = keys.count_or("full_attention_interval", 4)?;
            (1..=whole.layers.value).map(|layer| layer % interval.value == 0).collect()
        }
    };
    let heads = keys.count("num_attention_heads")?;
    let kv_heads = keys.count("num_key_value_heads")?;
    let head_dim = keys.count_or("head_dim", 256)?;
    let bias = keys.flag("attention_bias", false)?;
    let attention = Attention::of(hidden, heads, kv_heads, Some(head_dim))?.biased(bias);
    let attention = Attention {
        qk_norm: QkNorm::PerHead,
        output_gate: Some(OutputGate::PerElement("q_proj")),
        ..attention
    };
    let attention = attention.rotated(keys, RopeClass::QUARTER)?;
    let delta = Recurrent::Delta(Delta::read(keys, hidden, width)?);
    let layer =
        |attends, network: Network| Layer::of(hidden, Mixer::either(attends, &attention, &delta), network);
    let modules = keys.count_unless_zero("mtp_num_hidden_layers")?.map_or(0, |modules| modules.value);
    let last = networks.last().cloned().unwrap_or(Network::Absent);
    let mtp = if modules > 0 { predicting(hidden, &layer(true, last), modules) } else { vec![] };
    let layers = attends.into_iter().zip(networks).map(|(attends, network)| layer(attends, network));
    Ok(whole.graph(layers.collect(), mtp))
}

/// The multi-token-prediction weights: layers of full attention, a two-to-one projection and three norms.
pub(super) fn predicting(hidden: Count, layer: &Layer, modules: u64) -> Vec<Weight> {
    let hidden = hidden.value;
    let norm = |name: &str| weight(format!("mtp.{name}.weight"), vec![hidden], TensorRole::Norm);
    let mut weights = vec![norm("pre_fc_norm_embedding"), norm("pre_fc_norm_hidden"), norm("norm")];
    weights.push(weight("mtp.fc.weight", vec![hidden, 2 * hidden], TensorRole::Mlp));
    let block = layer.block("mtp_layer", vec![]);
    for module in 0..modules {
        weights.extend(below(&format!("mtp.layers.{module}"), block.weights()));
    }
    weights
}
