//! Kimi-Linear: Kimi Delta Attention interleaved with latent attention, experts after the first layers.
//!
//! Defaults for missing keys: `KimiLinearConfig` in the checkpoint, and the class of transformers for the keys that it
//! writes instead.

use serde_json::json;

use super::wrapper::separate_head;
use crate::graph::arch::class_keys::ignored;
use crate::graph::model::ModelGraph;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kimi_delta::{GateRank, KimiDelta};
use crate::graph::part::kinds::layer_kinds;
use crate::graph::part::latent::Latent;
use crate::graph::part::layer::{Layer, Mixer, Network};
use crate::graph::part::moe::{Moe, SharedExperts};
use crate::graph::part::names::TensorNames;
use crate::graph::part::recurrent::Recurrent;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: TensorNames = TensorNames::of_table(&[
    ("mlp.experts", "block_sparse_moe.experts"),
    ("mlp.gate.weight", "block_sparse_moe.gate.weight"),
    ("mlp.gate.e_score_correction_bias", "block_sparse_moe.gate.e_score_correction_bias"),
    ("mlp.shared_experts", "block_sparse_moe.shared_experts"),
]);

/// `kimi_linear`: `linear_attn_config` lists the layers of each attention kind, counted from 1.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("kimi_linear"));
    keys.only("moe_layer_freq", &json!(1))?;
    keys.only("num_nextn_predict_layers", &json!(0))?;
    let max_context = keys.count_or_none("model_max_length")?.map(|tokens| tokens.value);
    let whole = DecoderSpec { names: NAMES, max_context, ..DecoderSpec::read(keys, false)? };
    let whole = DecoderSpec { tied: separate_head(keys)?, ..whole };
    let hidden = whole.hidden;
    let latent = Latent::read(keys, hidden)?;
    let latent = match keys.flag_or_none("mla_use_nope")? {
        true => Latent { rope: None, ..latent },
        false => latent,
    };
    let (delta, recurrent) = linear_attention(keys, hidden, whole.layers)?;
    let words = [("sparse", true), ("dense", false)];
    let sparse = match layer_kinds(keys, "mlp_layer_types", whole.layers, &words)? {
        Some(sparse) => {
            keys.set_aside(&["first_k_dense_replace"]);
            sparse
        }
        None => {
            let dense = keys.count_unless_zero("first_k_dense_replace")?.map_or(0, |layers| layers.value);
            (0..whole.layers.value).map(|layer| layer >= dense).collect()
        }
    };
    let (moe, network) = (moe(keys, hidden)?, FeedForward::read(keys, hidden)?);
    let mut layers = vec![];
    for (recurrent, sparse) in recurrent.into_iter().zip(sparse) {
        let mixer = match recurrent {
            true => Mixer::Recurrent(Box::new(Recurrent::KimiDelta(delta.clone()))),
            false => Mixer::Latent(latent.clone()),
        };
        let network = Network::either(sparse, &moe, &network);
        layers.push(Layer::of(hidden, mixer, network));
    }
    Ok(whole.graph(layers, vec![]))
}

/// The linear attention by the keys of transformers; `heads` is the class's number of heads.
pub fn delta_of(keys: &Keys<'_>, hidden: Count, heads: u64) -> Result<KimiDelta, Error> {
    Ok(KimiDelta {
        hidden,
        heads: keys.count_or("linear_num_heads", heads)?,
        head_dim: keys.count_or("linear_head_dim", 128)?,
        kernel: keys.count_or("linear_conv_kernel_dim", 4)?,
        gates: GateRank::Low,
    })
}

/// The linear attention and its layers: by `linear_attn_config`, which counts layers from 1, or by the keys that
/// transformers writes instead.
fn linear_attention(keys: &Keys<'_>, hidden: Count, layers: Count) -> Result<(KimiDelta, Vec<bool>), Error> {
    let words = [("linear_attention", true), ("full_attention", false)];
    let Some(linear) = keys.section_or_none("linear_attn_config")? else {
        let delta = delta_of(keys, hidden, 32)?;
        let kinds = layer_kinds(keys, "layer_types", layers, &words)?;
        let usual = || (0..layers.value).map(|layer| layer == 0 || !layer.is_multiple_of(4)).collect();
        return Ok((delta, kinds.unwrap_or_else(usual)));
    };
    // Copies that transformers writes in addition.
    keys.set_aside(&["linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim", "layer_types"]);
    let delta = KimiDelta {
        hidden,
        heads: linear.count("num_heads")?,
        head_dim: linear.count("head_dim")?,
        kernel: linear.count("short_conv_kernel_size")?,
        gates: GateRank::Low,
    };
    let mut recurrent = vec![None; layers.value as usize];
    for (key, is_recurrent) in [("kda_layers", true), ("full_attn_layers", false)] {
        for layer in linear.stated(key)?.numbers(key)?.unwrap_or_default() {
            match recurrent.get_mut((layer as usize).wrapping_sub(1)) {
                Some(kind @ None) => *kind = Some(is_recurrent),
                _ => return Err(unlisted(key, layer, layers)),
            }
        }
    }
    let said = |(kind, at): (Option<bool>, u64)| kind.ok_or_else(|| unlisted("kda_layers", at, layers));
    let recurrent = recurrent.into_iter().zip(1..).map(said).collect::<Result<_, _>>()?;
    Ok((delta, recurrent))
}

fn moe(keys: &Keys<'_>, hidden: Count) -> Result<Moe, Error> {
    let named = |names: [&'static str; 2]| keys.spelling(&names);
    let experts = keys.count(named(["num_experts", "num_local_experts"])?)?;
    let top_k = keys.count(named(["num_experts_per_token", "num_experts_per_tok"])?)?;
    let inner = keys.count("moe_intermediate_size")?;
    let shared = named(["num_shared_experts", "n_shared_experts"])?;
    let shared = keys.count_unless_zero(shared)?.map(|shared| {
        let how = "num_shared_experts × moe_intermediate_size";
        let width = Count::derived("shared_intermediate", shared.value * inner.value, how);
        SharedExperts { tensor: "mlp.shared_experts", network: FeedForward::gated(hidden, width), gate: None }
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
