//! Jamba: Mamba-1 interleaved with attention, and experts in every other layer.
//!
//! Defaults for missing keys: `JambaConfig` of transformers.

use serde_json::{Value, json};

use super::mamba::{dt_rank, inner};
use crate::graph::arch::class_keys::ignored;
use crate::graph::assembly::Affine;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::{Layer, Mixer, Network};
use crate::graph::part::mamba::Mamba;
use crate::graph::part::moe::Moe;
use crate::graph::part::names::TensorNames;
use crate::graph::part::recurrent::Recurrent;
use crate::graph::part::unless_zero_or;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: TensorNames = TensorNames::of_table(&[
    ("model.norm", "model.final_layernorm"),
    ("post_attention_layernorm", "pre_ff_layernorm"),
    ("mlp", "feed_forward"),
]);

/// `jamba`: a period and an offset each determine the attention layers and the expert layers.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("jamba"));
    keys.only("mamba_inner_layernorms", &json!(true))?;
    keys.only("sliding_window", &Value::Null)?;
    let whole = DecoderSpec { names: NAMES, ..DecoderSpec::read(keys, false)? };
    let hidden = whole.hidden;
    let mamba = Recurrent::Mamba(Mamba {
        hidden,
        inner: inner(keys, hidden, "mamba_expand", None)?,
        state: keys.count_or("mamba_d_state", 16)?,
        dt_rank: dt_rank(keys, hidden, "mamba_dt_rank")?,
        kernel: keys.count_or("mamba_d_conv", 4)?,
        bias: keys.flag("mamba_proj_bias", false)?,
        conv_bias: keys.flag("mamba_conv_bias", true)?,
        norms: Some(Affine::Scale),
        heads: None,
    });
    // State layers know the position.
    let attention = Attention { rope: None, ..Attention::read_stated(keys, hidden)? };
    let network = FeedForward::read(keys, hidden)?;
    let experts = keys.count_or("num_experts", 16)?;
    let top_k = keys.count_or("num_experts_per_tok", 2)?;
    let attends = every(keys, ["attn_layer_period", "attn_layer_offset"], [8, 4])?;
    let sparse = every(keys, ["expert_layer_period", "expert_layer_offset"], [2, 1])?;
    let mut layers = vec![];
    for layer in 0..whole.layers.value {
        let network: Network = if sparse(layer) && experts.value > 1 {
            let moe = Moe::routed(hidden, experts, top_k, network.intermediate)?;
            Moe { router: "mlp.router", ..moe }.into()
        } else {
            network.clone().into()
        };
        layers.push(Layer::of(hidden, Mixer::either(attends(layer), &attention, &mamba), network));
    }
    Ok(whole.graph(layers, vec![]))
}

/// Every `period`-th layer from `offset` on, by two keys and their class defaults.
fn every(
    keys: &Keys<'_>,
    names: [&'static str; 2],
    defaults: [u64; 2],
) -> Result<impl Fn(u64) -> bool + use<>, Error> {
    let period = keys.count_or(names[0], defaults[0])?.value;
    let offset = unless_zero_or(keys, names[1], defaults[1])?.map_or(0, |offset| offset.value);
    if offset >= period {
        let expected = format!("less than {} {period}", names[0]);
        return Err(Error::new(
            names[1],
            offset.to_string(),
            expected,
            "copy both from the model's config.json",
        ));
    }
    Ok(move |layer| layer % period == offset)
}
