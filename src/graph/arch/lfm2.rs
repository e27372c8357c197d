//! LFM2 and 3: gated short convolutions interleaved with attention, dense or with experts.
//!
//! Defaults for missing keys: `Lfm2Config` and `Lfm2MoeConfig` of transformers.

use serde_json::json;

use crate::graph::arch::class_keys::ignored;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, OutputGate, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::layer_kinds;
use crate::graph::part::layer::{Arrangement, Layer, Mixer, Network};
use crate::graph::part::moe::Moe;
use crate::graph::part::names::TensorNames;
use crate::graph::part::recurrent::Recurrent;
use crate::graph::part::rope::RopeClass;
use crate::graph::part::short_conv::GatedConv;
use crate::graph::part::unless_zero_or;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;
use crate::spec::model::value::WIDTH_LIMIT;

const NAMES: TensorNames = TensorNames::of_table(&[
    ("model.norm", "model.embedding_norm"),
    ("input_layernorm", "operator_norm"),
    ("post_attention_layernorm", "ffn_norm"),
    ("self_attn.o_proj", "self_attn.out_proj"),
    ("self_attn.q_norm", "self_attn.q_layernorm"),
    ("self_attn.k_norm", "self_attn.k_layernorm"),
    ("mlp.gate_proj", "feed_forward.w1"),
    ("mlp.up_proj", "feed_forward.w3"),
    ("mlp.down_proj", "feed_forward.w2"),
    ("mlp", "feed_forward"),
]);

const NAMES_3: TensorNames = TensorNames::of_table(&[
    ("model.norm", "model.embedding_norm"),
    ("input_layernorm", "operator_norm"),
    ("post_attention_layernorm", "ffn_norm"),
    ("mlp.gate_proj", "feed_forward.w1"),
    ("mlp.up_proj", "feed_forward.w3"),
    ("mlp.down_proj", "feed_forward.w2"),
]);

/// The same with norms after mixer and network.
const SANDWICH_NAMES: TensorNames = TensorNames::of_table(&[
    ("model.norm", "model.embedding_norm"),
    ("input_layernorm", "operator_norm"),
    ("post_attention_layernorm", "post_operator_norm"),
    ("pre_feedforward_layernorm", "ffn_norm"),
    ("post_feedforward_layernorm", "post_ffn_norm"),
    ("mlp.gate_proj", "feed_forward.w1"),
    ("mlp.up_proj", "feed_forward.w3"),
    ("mlp.down_proj", "feed_forward.w2"),
]);

/// `lfm2`: a dense network of two thirds of the configured width, rounded up, unless the file disables this.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = whole(keys)?;
    let stated = keys.count(if keys.has("block_ff_dim") { "block_ff_dim" } else { "intermediate_size" })?;
    keys.set_aside(&["intermediate_size"]);
    let multiple = keys.count_or("block_multiple_of", 256)?.value;
    let width = if keys.flag("block_auto_adjust_ff_dim", true)? {
        adjusted(keys, stated, multiple)?
    } else {
        keys.set_aside(&["block_ffn_dim_multiplier"]);
        stated
    };
    let network = FeedForward::gated(whole.hidden, width);
    let networks = vec![network.into(); whole.layers.value as usize];
    layers(keys, whole, networks)
}

/// Two thirds of the configured width, times a multiplier, rounded up to a multiple. `null` for the multiplier skips
/// both steps.
fn adjusted(keys: &Keys<'_>, stated: Count, multiple: u64) -> Result<Count, Error> {
    let key = "block_ffn_dim_multiplier";
    let two_thirds = 2 * stated.value / 3;
    let [numerator, denominator] = match keys.has(key) {
        false => [1, 1],
        true if keys.count_or_none(key) == Ok(None) => {
            return Ok(Count::derived("intermediate_size", two_thirds, "2/3 of intermediate_size"));
        }
        true => keys.decimal(key)?,
    };
    let width = u128::from(two_thirds) * u128::from(numerator) / u128::from(denominator);
    let width = width.next_multiple_of(u128::from(multiple));
    if width > u128::from(WIDTH_LIMIT) {
        let (found, expected) = (format!("a width of {width}"), format!("at most {WIDTH_LIMIT}"));
        return Err(Error::new(key, found, expected, "copy the value from the model's config.json"));
    }
    let how = "2/3 of intermediate_size × block_ffn_dim_multiplier, up to block_multiple_of";
    Ok(Count::derived("intermediate_size", width as u64, how))
}

/// `lfm2_moe`: dense layers first, then experts with a balancing buffer.
pub fn build_moe(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = whole(keys)?;
    let dense = unless_zero_or(keys, "num_dense_layers", 2)?.map_or(0, |dense| dense.value);
    let moe = Moe {
        correction_bias: keys.flag("use_expert_bias", true)?.then_some("mlp.expert_bias"),
        ..Moe::routed(
            whole.hidden,
            keys.count_or("num_experts", 32)?,
            keys.count_or("num_experts_per_tok", 4)?,
            keys.count_or("moe_intermediate_size", 1792)?,
        )?
    };
    let network = FeedForward::read(keys, whole.hidden)?;
    let networks =
        (0..whole.layers.value).map(|layer| Network::either(layer >= dense, &moe, &network)).collect();
    layers(keys, whole, networks)
}

/// `lfm3`: sliding layers, a gate on each head, and norms after mixer and network by switches; the network is as wide as
/// its key says (`modular_lfm3.py` of transformers 5.24).
pub fn build_3(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let sandwich = keys.flag("use_sandwich_norm", true)?;
    let names = if sandwich { SANDWICH_NAMES } else { NAMES_3 };
    let whole = DecoderSpec { names, ..DecoderSpec::read(keys, true)? };
    let hidden = whole.hidden;
    let window = keys.count_or("sliding_window", 256)?;
    let [conv, sliding, full] = [None, Some(Some(window)), Some(None)];
    let words = [("conv", conv), ("sliding_attention", sliding), ("full_attention", full)];
    let usual = |layer: u64| match layer % 4 {
        2 => full,
        0 if layer > 0 => sliding,
        _ => conv,
    };
    let kinds = layer_kinds(keys, "layer_types", whole.layers, &words)?
        .unwrap_or_else(|| (0..whole.layers.value).map(usual).collect());
    keys.count("head_dim")?;
    let gate = keys.flag("use_attention_gate", true)?.then_some(OutputGate::PerHead("g_proj"));
    let attention = Attention::read_stated(keys, hidden)?.biased(keys.flag("attention_bias", false)?);
    let attention = Attention { qk_norm: QkNorm::PerHead, output_gate: gate, ..attention };
    let far = RopeClass { theta: 1_000_000, share: [1, 2], ..RopeClass::WHOLE };
    let (far, near) = (attention.clone().rotated(keys, far)?, attention.rotated(keys, RopeClass::SLIDING)?);
    let kernel = keys.count_or("conv_L_cache", 7)?;
    let conv = Recurrent::Conv(GatedConv { hidden, kernel, bias: keys.flag("conv_bias", false)? });
    let network = FeedForward::read(keys, hidden)?;
    let layer = |kind: Option<Option<Count>>| {
        let mixer = match kind {
            None => Mixer::Recurrent(Box::new(conv.clone())),
            Some(None) => Mixer::Attention(far.clone()),
            Some(window) => Mixer::Attention(Attention { mask: window.into(), ..near.clone() }),
        };
        let arrangement = if sandwich { Arrangement::Sandwich } else { Arrangement::PreNorm };
        Layer { arrangement, ..Layer::of(hidden, mixer, network.clone()) }
    };
    Ok(whole.graph(kinds.into_iter().map(layer).collect(), vec![]))
}

fn whole(keys: &Keys<'_>) -> Result<DecoderSpec, Error> {
    // Keys of the first checkpoints that repeat others or concern initialisation.
    keys.set_aside(ignored("lfm2"));
    let tied = keys.flag("tie_embedding", true)?;
    if keys.has("tie_embedding") {
        keys.only("tie_word_embeddings", &json!(tied))?;
    }
    Ok(DecoderSpec { names: NAMES, ..DecoderSpec::read(keys, tied)? })
}

fn layers(keys: &Keys<'_>, whole: DecoderSpec, networks: Vec<Network>) -> Result<ModelGraph, Error> {
    let hidden = whole.hidden;
    let kinds = [("conv", false), ("full_attention", true)];
    let attends = match layer_kinds(keys, "layer_types", whole.layers, &kinds)? {
        Some(attends) => {
            keys.set_aside(&["full_attn_idxs"]);
            attends
        }
        None => match keys.numbers("full_attn_idxs")? {
            Some(attending) => (0..whole.layers.value).map(|layer| attending.contains(&layer)).collect(),
            None => vec![true; whole.layers.value as usize],
        },
    };
    let attention = Attention { qk_norm: QkNorm::PerHead, ..Attention::read_stated(keys, hidden)? };
    let bias = keys.flag("conv_bias", false)?;
    let kernel = keys.count_or("conv_L_cache", 3)?;
    let conv = Recurrent::Conv(GatedConv { hidden, kernel, bias });
    let layer = |(attends, network): (bool, Network)| {
        Layer::of(hidden, Mixer::either(attends, &attention, &conv), network)
    };
    let layers = attends.into_iter().zip(networks).map(layer).collect();
    Ok(whole.graph(layers, vec![]))
}
