//! Bailing-MoE (Ling and Ring before 2.5): grouped attention, with norms on the heads of Q and K in the second
//! generation; experts after the first layers.
//!
//! Sources: `modeling_bailing_moe_v2.py` of <https://github.com/inclusionAI/Ling-V2>, and `bailing_moe.py` of
//! <https://github.com/vllm-project/vllm>, which reads the keys of both generations.

use serde_json::json;

use super::deepseek::{self, DeepseekVariant, Mtp, V3};
use crate::graph::arch::class_keys::ignored;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::layer::Mixer;
use crate::graph::part::names::TensorNames;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

pub(super) const NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.q_proj self_attn.k_proj self_attn.v_proj", "attention.query_key_value"),
    ("self_attn.q_norm", "attention.query_layernorm"),
    ("self_attn.k_norm", "attention.key_layernorm"),
    ("self_attn.o_proj self_attn.out_proj", "attention.dense"),
    ("self_attn", "attention"),
    ("mlp.gate.e_score_correction_bias", "mlp.gate.expert_bias"),
    ("model.embed_tokens", "model.word_embeddings"),
]);

/// `bailing_moe`, which both generations' files name, and `bailing_moe_v2`: their keys say which parts there are.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec { names: NAMES, ..DecoderSpec::read(keys, false)? };
    let family = family(keys)?;
    let qk_norm = if keys.flag("use_qk_norm", false)? { QkNorm::PerHead } else { QkNorm::Absent };
    let qkv_bias = keys.flag("use_qkv_bias", false)?;
    let attention = Attention { qk_norm, qkv_bias, ..Attention::read_stated(keys, whole.hidden)? };
    let same = vec![Mixer::Attention(attention); whole.layers.value as usize];
    deepseek::layers(keys, whole, same, None, family)
}

/// The experts of Ling 2 and 2.5: a buffer balances them where the keys say so.
pub(super) fn family(keys: &Keys<'_>) -> Result<DeepseekVariant, Error> {
    keys.set_aside(ignored("bailing_moe"));
    // The class of the first generation has biases unless the file says otherwise.
    keys.stated("use_bias")?;
    for key in ["use_bias", "multi_gate", "use_sliding_window"] {
        keys.only(key, &json!(false))?;
    }
    for key in ["use_rmsnorm", "moe_router_enable_shared_expert"] {
        keys.only(key, &json!(true))?;
    }
    let wide = "moe_shared_expert_intermediate_size";
    let balanced = keys.flag("moe_router_enable_expert_bias", false)?;
    Ok(DeepseekVariant {
        mtp: Mtp::Shared,
        correction_bias: V3.correction_bias.filter(|_| balanced),
        experts: &["num_experts"],
        shared: &["num_shared_experts"],
        shared_width: if keys.has(wide) { wide } else { V3.shared_width },
        ..V3
    })
}
