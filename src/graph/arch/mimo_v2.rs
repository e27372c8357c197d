//! MiMo-V2-Flash: full and sliding layers with heads of their own, values narrower than keys, experts.
//!
//! Every key that shapes a layer must be stated: transformers reads other ones than the checkpoint has.

use serde_json::json;

use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::{Layer, Mixer, Network};
use crate::graph::part::moe::Moe;
use crate::graph::part::whole::Whole;
use crate::graph::reach::Reach;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `mimo_v2_flash`: `hybrid_layer_pattern` is 1 where a layer slides, `moe_layer_freq` where it has experts.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&[
        "attention_chunk_size",
        "attention_value_scale",
        "layernorm_epsilon",
        "sliding_window_size",
        "swa_rope_theta",
    ]);
    keys.only("n_shared_experts", &json!(0)).or_else(|_| keys.only("n_shared_experts", &json!(null)))?;
    let whole = Whole::read(keys, false)?;
    let hidden = whole.hidden;
    let slides = pattern(keys, "hybrid_layer_pattern", whole.layers)?;
    let sparse = pattern(keys, "moe_layer_freq", whole.layers)?;
    // The checkpoint's own code reads these for sliding layers, transformers those of the full ones.
    for (sliding, full) in [
        ("swa_num_attention_heads", "num_attention_heads"),
        ("swa_head_dim", "head_dim"),
        ("swa_v_head_dim", "v_head_dim"),
    ] {
        keys.only(sliding, &json!(keys.count(full)?.value))?;
    }
    // What transformers works out from the two lists.
    let named = |list: &[bool], [yes, no]: [&str; 2]| {
        json!(list.iter().map(|on| if *on { yes } else { no }).collect::<Vec<_>>())
    };
    keys.only("layer_types", &named(&slides, ["sliding_attention", "full_attention"]))?;
    keys.only("mlp_layer_types", &named(&sparse, ["sparse", "dense"]))?;
    let bias = keys.flag("attention_bias", false)?;
    let attention = |names: [&'static str; 4], sinks, reach| {
        let [heads, kv_heads, head_dim, v_head_dim] = names;
        let v_head_dim = Some(keys.count(v_head_dim)?);
        let (heads, kv_heads) = (keys.count(heads)?, keys.count(kv_heads)?);
        let attention = Attention::of(hidden, heads, kv_heads, Some(keys.count(head_dim)?))?;
        Ok::<_, Error>(Attention { v_head_dim, qkv_bias: bias, sinks, reach, ..attention })
    };
    let full = attention(
        ["num_attention_heads", "num_key_value_heads", "head_dim", "v_head_dim"],
        keys.flag("add_full_attention_sink_bias", false)?,
        Reach::All,
    )?;
    let sliding = attention(
        ["swa_num_attention_heads", "swa_num_key_value_heads", "swa_head_dim", "swa_v_head_dim"],
        keys.stated("add_swa_attention_sink_bias")?.flag("add_swa_attention_sink_bias", false)?,
        Reach::Window(keys.count("sliding_window")?),
    )?;
    let (experts, top_k) = (keys.count("n_routed_experts")?, keys.count("num_experts_per_tok")?);
    let moe = Moe {
        correction_bias: Some("mlp.gate.e_score_correction_bias"),
        ..Moe::routed(hidden, experts, top_k, keys.count("moe_intermediate_size")?)?
    };
    let dense = FeedForward::gated(hidden, keys.count("intermediate_size")?);
    let layer = |(slides, sparse): (bool, bool)| {
        let mixer = Mixer::Attention(if slides { sliding.clone() } else { full.clone() });
        let network = match sparse {
            true => Network::Moe(Box::new(moe.clone())),
            false => Network::Dense(dense.clone()),
        };
        Layer::of(hidden, mixer, network)
    };
    let layers = slides.into_iter().zip(sparse).map(layer).collect();
    Ok(whole.graph(layers, vec![]))
}

/// A list of 0 and 1, one for each layer.
fn pattern(keys: &Keys<'_>, key: &'static str, layers: Count) -> Result<Vec<bool>, Error> {
    let numbers = keys.stated(key)?.numbers(key)?.unwrap_or_default();
    if numbers.len() as u64 == layers.value && numbers.iter().all(|number| *number <= 1) {
        return Ok(numbers.into_iter().map(|number| number == 1).collect());
    }
    let expected = format!("0 or 1 for each of the {} layers", layers.value);
    let found = format!("a list of {}", numbers.len());
    Err(Error::new(key, found, expected, "copy the list from the model's config.json"))
}
