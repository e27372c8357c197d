//! MiMo-V2-Flash: full and sliding layers with different heads, values narrower than keys, experts.
//!
//! The checkpoints' own code and transformers read different keys. Those of the checkpoint take precedence. Defaults
//! for missing keys: `MiMoV2FlashConfig` of transformers.

use serde_json::json;

use crate::graph::arch::class_keys::ignored;
use crate::graph::mask::AttentionMask;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::{layer_kinds, layer_switches};
use crate::graph::part::layer::{Layer, Mixer, Network};
use crate::graph::part::moe::Moe;
use crate::graph::part::rope::RopeClass;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `mimo_v2_flash`: `hybrid_layer_pattern` is 1 for sliding layers, `moe_layer_freq` is 1 for layers with experts.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("mimo_v2_flash"));
    keys.only("n_shared_experts", &json!(0)).or_else(|_| keys.only("n_shared_experts", &json!(null)))?;
    let whole = DecoderSpec::read(keys, false)?;
    let hidden = whole.hidden;
    if !keys.has("hybrid_layer_pattern") && !keys.has("moe_layer_freq") {
        return build_by_class(keys, whole);
    }
    let slides = layer_switches(keys, "hybrid_layer_pattern", whole.layers)?;
    let sparse = layer_switches(keys, "moe_layer_freq", whole.layers)?;
    // The checkpoint's own code reads these for sliding layers, transformers the keys of full layers.
    for (sliding, full) in [
        ("swa_num_attention_heads", "num_attention_heads"),
        ("swa_head_dim", "head_dim"),
        ("swa_v_head_dim", "v_head_dim"),
    ] {
        keys.only(sliding, &json!(keys.count(full)?.value))?;
    }
    // Keys that transformers derives from the two lists.
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
        let attention = attention.rotated(keys, positions(reach))?;
        Ok::<_, Error>(Attention { v_head_dim, qkv_bias: bias, sinks, mask: reach, ..attention })
    };
    let full = attention(
        ["num_attention_heads", "num_key_value_heads", "head_dim", "v_head_dim"],
        keys.flag("add_full_attention_sink_bias", false)?,
        AttentionMask::All,
    )?;
    let sliding = attention(
        ["swa_num_attention_heads", "swa_num_key_value_heads", "swa_head_dim", "swa_v_head_dim"],
        keys.stated("add_swa_attention_sink_bias")?.flag("add_swa_attention_sink_bias", false)?,
        AttentionMask::Window(keys.count("sliding_window")?),
    )?;
    assemble(keys, whole, [full, sliding], slides, sparse)
}

/// The rotation of a layer with this mask: sliding layers have a base of their own.
fn positions(mask: AttentionMask) -> RopeClass {
    match mask {
        AttentionMask::Window(_) => RopeClass {
            names: &["swa_rope_theta", "rope_theta"],
            kind: "sliding_attention",
            ..RopeClass::WHOLE
        },
        _ => RopeClass::WHOLE,
    }
}

/// The keys that transformers writes: sliding layers have twice as many key/value heads, and sinks.
fn build_by_class(keys: &Keys<'_>, whole: DecoderSpec) -> Result<ModelGraph, Error> {
    let layers = whole.layers;
    let words = [("sliding_attention", true), ("full_attention", false)];
    let slides = layer_kinds(keys, "layer_types", layers, &words)?
        .unwrap_or_else(|| (0..layers.value).map(|at| at > 0 && !(at + 1).is_multiple_of(6)).collect());
    let sparse = layer_kinds(keys, "mlp_layer_types", layers, &[("sparse", true), ("dense", false)])?
        .unwrap_or_else(|| (0..layers.value).map(|layer| layer > 0).collect());
    let heads = keys.count("num_attention_heads")?;
    let kv_heads = keys.count_or("num_key_value_heads", 4)?;
    let twice = Count::derived("num_key_value_heads", 2 * kv_heads.value, "twice, in sliding layers");
    let (head_dim, v_head_dim) = (keys.count_or("head_dim", 192)?, keys.count_or("v_head_dim", 128)?);
    let bias = keys.flag("attention_bias", false)?;
    let attention = |kv_heads, sinks, reach| {
        let attention = Attention::of(whole.hidden, heads, kv_heads, Some(head_dim))?;
        let attention = attention.rotated(keys, positions(reach))?;
        let v_head_dim = Some(v_head_dim);
        Ok::<_, Error>(Attention { v_head_dim, qkv_bias: bias, sinks, mask: reach, ..attention })
    };
    let full = attention(kv_heads, false, AttentionMask::All)?;
    let sliding = attention(twice, true, AttentionMask::Window(keys.count_or("sliding_window", 129)?))?;
    assemble(keys, whole, [full, sliding], slides, sparse)
}

/// The model with full and sliding layers, with experts in the layers of `sparse`.
fn assemble(
    keys: &Keys<'_>,
    whole: DecoderSpec,
    [full, sliding]: [Attention; 2],
    slides: Vec<bool>,
    sparse: Vec<bool>,
) -> Result<ModelGraph, Error> {
    let hidden = whole.hidden;
    let moe = Moe {
        correction_bias: Some("mlp.gate.e_score_correction_bias"),
        ..Moe::read(keys, hidden, ["n_routed_experts", "num_experts_per_tok", "moe_intermediate_size"])?
    };
    let dense = FeedForward::read(keys, hidden)?;
    let layer = |(slides, sparse): (bool, bool)| {
        let mixer = Mixer::Attention(if slides { sliding.clone() } else { full.clone() });
        let network = Network::either(sparse, &moe, &dense);
        Layer::of(hidden, mixer, network)
    };
    let layers = slides.into_iter().zip(sparse).map(layer).collect();
    Ok(whole.graph(layers, vec![]))
}
