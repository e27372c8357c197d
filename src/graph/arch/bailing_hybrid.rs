//! Bailing-Hybrid (Ling 3): Kimi Delta Attention with full-rank gates, latent attention with a gate on each head in every
//! sixth layer, experts after the first layers.
//!
//! Source: `modular_bailing_hybrid.py` of transformers 5.24.

use serde_json::json;

use super::deepseek::{self, DeepseekVariant, Mtp, V3};
use super::wrapper::separate_head;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::OutputGate;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::kimi_delta::{GateRank, KimiDelta};
use crate::graph::part::kinds::layer_kinds;
use crate::graph::part::latent::Latent;
use crate::graph::part::layer::Mixer;
use crate::graph::part::names::TensorNames;
use crate::graph::part::recurrent::Recurrent;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.q_conv1d self_attn.k_conv1d self_attn.v_conv1d", "self_attn.conv1d"),
    ("self_attn.f_proj", "self_attn.forget_gate.f_proj"),
    ("self_attn.A_log", "self_attn.forget_gate.A_log"),
    ("self_attn.dt_bias", "self_attn.forget_gate.dt_bias"),
]);

/// The files name the numbers of experts in several ways.
const EXPERTS: DeepseekVariant = DeepseekVariant {
    mtp: Mtp::Shared,
    experts: &["num_experts", "num_local_experts", "n_routed_experts"],
    per_token: &["num_experts_per_token", "num_experts_per_tok"],
    shared: &["num_shared_experts", "n_shared_experts"],
    ..V3
};

/// `bailing_hybrid`: the number and width of linear heads are those of attention, unless transformers wrote them.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // Numerics of the decay, of the router and of training.
    keys.set_aside(&["kda_lower_bound", "kda_safe_gate", "moe_renormalize", "num_expert_group"]);
    keys.set_aside(&["mtp_loss_scaling_factor"]);
    let max_context = keys.count_or_none("model_max_length")?.map(|tokens| tokens.value);
    let whole = DecoderSpec { names: NAMES, max_context, ..DecoderSpec::read(keys, false)? };
    let whole = DecoderSpec { tied: separate_head(keys)?, ..whole };
    let hidden = whole.hidden;
    let latent = Latent { output_gate: Some(OutputGate::PerHead("g_proj")), ..Latent::read(keys, hidden)? };
    // The class prefers the keys that it writes; it then writes the width of rotation under `head_dim`.
    let written = |key: &'static str, published| if keys.has(key) { key } else { published };
    let kernel = written("linear_conv_kernel_dim", "short_conv_kernel_size");
    let head_dim = written("linear_head_dim", "head_dim");
    keys.set_aside(&["short_conv_kernel_size"]);
    let delta = KimiDelta {
        hidden,
        heads: keys.count(written("linear_num_heads", "num_attention_heads"))?,
        head_dim: keys.count_or(head_dim, 128)?,
        kernel: keys.count_or(kernel, 4)?,
        gates: GateRank::Full,
    };
    let words = [("linear_attention", true), ("full_attention", false)];
    let every = keys.count_or("layer_group_size", 6)?.value;
    let recurrent = layer_kinds(keys, "layer_types", whole.layers, &words)?
        .unwrap_or_else(|| (1..=whole.layers.value).map(|layer| !layer.is_multiple_of(every)).collect());
    let mixer = |recurrent: bool| match recurrent {
        true => Mixer::Recurrent(Box::new(Recurrent::KimiDelta(delta.clone()))),
        false => Mixer::Latent(latent.clone()),
    };
    keys.only("moe_layer_freq", &json!(1))?;
    let mixers = recurrent.into_iter().map(mixer).collect();
    deepseek::layers(keys, whole, mixers, Some(mixer(false)), EXPERTS)
}
