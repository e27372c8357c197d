//! Bailing-Hybrid: linear attention, latent attention in every sixth or eighth layer, experts after the first layers.
//!
//! Two models have this `model_type`. Ling 3 has Kimi Delta Attention with full-rank gates, and a gate on each head of
//! latent attention (`modular_bailing_hybrid.py` of transformers 5.24). Ling 2.5 and 2.6 have lightning attention with
//! a norm of groups (`modeling_bailing_moe_v2_5.py` of <https://github.com/inclusionAI/Ring-V2.5>).

use serde_json::json;

use super::bailing_moe;
use super::deepseek::{self, DeepseekVariant, Mtp, V3};
use super::wrapper::separate_head;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::OutputGate;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::kimi_delta::{GateRank, KimiDelta};
use crate::graph::part::kinds::layer_kinds;
use crate::graph::part::latent::Latent;
use crate::graph::part::layer::Mixer;
use crate::graph::part::lightning::{Lightning, LightningForm};
use crate::graph::part::misfit;
use crate::graph::part::names::TensorNames;
use crate::graph::part::recurrent::Recurrent;
use crate::graph::part::rope::{Rope, RopeClass};
use crate::quantity::count::Count;
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

/// Keys of Kimi Delta Attention, which Ling 2.5 does not have.
const DELTA: &[&str] = &[
    "kda_lower_bound",
    "kda_safe_gate",
    "linear_conv_kernel_dim",
    "linear_head_dim",
    "linear_num_heads",
    "no_kda_lora",
    "short_conv_kernel_size",
];

/// `bailing_hybrid`: Ling 2.5 by the size of its norm's groups or by its class, else Ling 3.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let groups = "group_norm_size";
    let named = keys.texts("architectures")?.unwrap_or_default();
    if !keys.has(groups) && !named.iter().any(|class| class == "BailingMoeV2_5ForCausalLM") {
        return build_delta(keys);
    }
    match DELTA.iter().find(|key| keys.has(key)) {
        None => build_lightning(keys),
        Some(delta) => Err(Error::new(
            *delta,
            format!("a key of Ling 3, with {groups} or the class of Ling 2.5"),
            "the keys of one of the two models",
            "copy the model's config.json unchanged",
        )),
    }
}

/// Ling 2.5 and 2.6: as many linear heads as query heads.
fn build_lightning(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    for key in ["linear_silu", "use_linear_silu", "use_qkv_bias"] {
        keys.only(key, &json!(false))?;
    }
    let whole = DecoderSpec { names: bailing_moe::NAMES, ..DecoderSpec::read(keys, false)? };
    let family = bailing_moe::family(keys)?;
    let latent = Mixer::Latent(Latent::read(keys, whole.hidden)?);
    let (heads, head_dim) = (keys.count("num_attention_heads")?, keys.count_or("head_dim", 128)?);
    let groups = keys.count_or("group_norm_size", 4)?;
    if !heads.value.is_multiple_of(groups.value) {
        return Err(misfit(groups, format!("a divisor of the {} heads", heads.value)));
    }
    let class = RopeClass { theta: 600_000, ..RopeClass::HALF };
    let rope = Rope::read(keys, head_dim, class)?;
    let form = LightningForm::Rotated { rope, normed: keys.flag("use_qk_norm", true)?, groups };
    // `chunk_simple_gla` of flash-linear-attention computes chunks of 64 tokens.
    let chunk = Count::derived("chunk", 64, "64 tokens per chunk, as in the kernels");
    let linear = Lightning { hidden: whole.hidden, heads, head_dim, chunk, form };
    let every = keys.count("layer_group_size")?.value;
    let in_groups = whole.layers.value / every * every;
    let mixer = |layer: u64| match layer > in_groups || layer.is_multiple_of(every) {
        true => latent.clone(),
        false => Mixer::Recurrent(Box::new(Recurrent::Lightning(linear.clone()))),
    };
    let mixers = (1..=whole.layers.value).map(mixer).collect();
    deepseek::layers(keys, whole, mixers, Some(latent.clone()), family)
}

/// Ling 3: the number and width of linear heads are those of attention, unless transformers wrote them.
fn build_delta(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::model::ModelConfig;

    fn built(more: &str) -> Result<ModelGraph, Error> {
        let text = format!(
            r#"{{"model_type": "bailing_hybrid", "hidden_size": 64, "intermediate_size": 96,
            "num_hidden_layers": 4, "num_attention_heads": 4, "head_dim": 16, "vocab_size": 100,
            "first_k_dense_replace": 1, "layer_group_size": 2, "kv_lora_rank": 16, "q_lora_rank": 24,
            "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "moe_intermediate_size": 32,
            "num_experts": 8, "num_experts_per_tok": 2, "num_shared_experts": 1, "use_bias": false {more}}}"#
        );
        ModelGraph::build(&ModelConfig::parse(&text).unwrap())
    }

    /// Every second layer has latent attention; the others have queries, keys, values, a gate and an output of 64 x 64.
    #[test]
    fn ling_2_5_by_hand() {
        let graph = built(r#", "group_norm_size": 4"#).unwrap();
        let linear = 5 * 64 * 64 + 2 * 16 + 64;
        let queries = 64 * 24 + 24 + 24 * 4 * (16 + 8);
        let latent = queries + 64 * (16 + 8) + 16 + 16 * 4 * (16 + 16) + 4 * 16 * 64;
        let (dense, experts) = (3 * 64 * 96, (8 + 1) * 3 * 64 * 32 + 8 * 64);
        let layers = 2 * (linear + latent) + 4 * 2 * 64 + dense + 3 * experts;
        assert_eq!(graph.parameters().unique, 2 * 100 * 64 + 64 + layers);
        let named = built(r#", "architectures": ["BailingMoeV2_5ForCausalLM"]"#).unwrap();
        assert_eq!(named.parameters().unique, graph.parameters().unique);
    }

    #[test]
    fn keys_of_both_models_are_refused() {
        let error = built(r#", "group_norm_size": 4, "short_conv_kernel_size": 4"#).unwrap_err();
        assert_eq!(error.key, "short_conv_kernel_size");
    }
}
