//! Inkling-2: Inkling's relative positions and short convolutions, without rotation and shared experts; gated attention
//! with a sink that each token scores, and layers that read a mixture of the results of earlier blocks.
//!
//! Source: `modular_inkling2.py` of transformers 5.24.

use super::mllama::lengthen;
use crate::graph::assembly::weight;
use crate::graph::cache::Cache;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, OutputGate};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::kinds::layer_kinds;
use crate::graph::part::layer::Layer;
use crate::graph::part::moe::Moe;
use crate::graph::part::names::TensorNames;
use crate::graph::part::recurrent::conv_state;
use crate::graph::part::streams::{Extras, Side};
use crate::graph::tensor::TensorRole;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: TensorNames = TensorNames::of_table(&[
    ("model.embed_norm", "model.embed_tokens.embed_norm"),
    ("self_attn.q_proj.weight", "self_attn.q_proj.linear.weight"),
    ("self_attn.k_proj.weight", "self_attn.k_proj.linear.weight"),
    ("self_attn.v_proj.weight", "self_attn.v_proj.linear.weight"),
    ("self_attn.o_proj.weight", "self_attn.o_proj.linear.weight"),
]);

/// `inkling2_text`.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["log_scaling_alpha", "log_scaling_n_floor", "route_scale", "routed_scaling_factor"]);
    keys.set_aside(&["mlp_gate_softcap", "mlp_up_softcap", "final_logit_softcapping", "scoring_func"]);
    keys.set_aside(&["qk_l2_clip_threshold", "rel_l2_clip_threshold", "n_layers_per_attn_res_block"]);
    let (hidden, layers) = (keys.count("hidden_size")?, keys.count("num_hidden_layers")?);
    let (rows, head) = (keys.count("vocab_size")?, keys.count_or("unpadded_vocab_size", 200_058)?);
    let whole = DecoderSpec::of(keys, hidden, layers, head, false)?;
    let whole = DecoderSpec { names: NAMES, embedding_norm: true, tied: false, ..whole };
    let words = [("hybrid_sliding", true), ("hybrid", false)];
    let slides = layer_kinds(keys, "layer_types", layers, &words)?
        .unwrap_or_else(|| (1..=layers.value).map(|layer| !layer.is_multiple_of(6)).collect());
    let experts = keys.count(keys.spelling(&["n_routed_experts", "num_local_experts"])?)?;
    let width = keys.count(keys.spelling(&["moe_intermediate_size", "intermediate_size"])?)?;
    let moe = Moe::routed(hidden, experts, keys.count_or("num_experts_per_tok", 8)?, width)?;
    let moe = Moe { correction_bias: Some("mlp.gate.e_score_correction_bias"), ..moe };
    let [near, far] =
        [InklingReader { keys, hidden, slides: true }, InklingReader { keys, hidden, slides: false }];
    let [near, far] = [near.attention()?, far.attention()?];
    let layer = |(index, slides): (usize, bool)| {
        let (attention, mut sides, states) = if slides { near.clone() } else { far.clone() };
        if index > 0 {
            let queries = if slides { vec![hidden.value] } else { vec![3, hidden.value] };
            sides.push(Side::elements("attention_input.query", queries));
        }
        let extras = Extras { sides, states, ..Extras::default() };
        Layer { extras, ..Layer::new(attention, moe.clone()) }
    };
    let mut graph = whole.graph(slides.into_iter().enumerate().map(layer).collect(), vec![]);
    lengthen(&mut graph.embedding, rows);
    // Queries, keys and values of full layers have a norm each.
    let full =
        graph.blocks.iter_mut().filter(|block| block.caches.iter().all(|cache| cache.limit().is_none()));
    for node in full.flat_map(|block| block.graph.node_weights_mut()).filter(|node| node.name == "input_norm")
    {
        node.weights.iter_mut().for_each(|weight| weight.name = format!("q_{}", weight.name));
    }
    if let Some(norm) = graph.head.graph.node_weights_mut().find(|node| node.name == "final_norm") {
        norm.weights.push(weight("model.final_input.query", vec![hidden.value], TensorRole::Norm));
    }
    Ok(graph)
}

struct InklingReader<'k, 'c> {
    keys: &'k Keys<'c>,
    hidden: Count,
    slides: bool,
}

impl InklingReader<'_, '_> {
    /// Attention, its further tensors, and the states of the layer's convolutions.
    fn attention(&self) -> Result<(Attention, Vec<Side>, Vec<Cache>), Error> {
        let InklingReader { keys, hidden, slides } = *self;
        let window = keys.count_or(keys.spelling(&["sliding_window_size", "sliding_window"])?, 1024)?;
        let kernel = keys.count_or(keys.spelling(&["conv_kernel_size", "sconv_kernel_size"])?, 4)?;
        let [heads, kv_heads, head_dim] = match slides {
            true => ["swa_num_attention_heads", "swa_num_key_value_heads", "swa_head_dim"],
            false => ["num_attention_heads", "num_key_value_heads", "head_dim"],
        };
        let extent = keys.count_or("rel_extent", 1024)?;
        let extent = if slides { window } else { extent }.value;
        let (heads, kv_heads, head_dim) = (keys.count(heads)?, keys.count(kv_heads)?, keys.count(head_dim)?);
        let attention = Attention {
            output_gate: Some(OutputGate::PerElement("o_proj.gate_proj")),
            mask: Some(window).filter(|_| slides).into(),
            ..Attention::of(hidden, heads, kv_heads, Some(head_dim))?
        };
        let (relative, taps) = (keys.count_or("d_rel", 16)?.value, kernel.value);
        let kv = Count::derived("kv_width", kv_heads.value * head_dim.value, "key heads × head_dim");
        let conv = |name: &str, channels: Count| {
            Side::matrix(&format!("{name}.conv1d"), vec![channels.value, 1, taps])
        };
        let bias = |name: &str| format!("self_attn.relative_position_bias.{name}");
        let mut sides = vec![
            Side::elements("self_attn.q_proj.norm.scale", vec![heads.value, head_dim.value]),
            Side::matrix("self_attn.sink_proj", vec![heads.value, hidden.value]),
            Side::matrix(&bias("linear"), vec![heads.value * relative, hidden.value]),
            Side::elements(&bias("norm.scale"), vec![heads.value, relative]),
            Side::elements(&bias("proj"), vec![relative, extent]),
            conv("post_attention_convolution", hidden),
            conv("post_mlp_convolution", hidden),
            Side::elements("mlp_input.query", vec![hidden.value]),
        ];
        for one in ["k", "v"] {
            let name = format!("self_attn.{one}_proj.sconv");
            if slides {
                sides.push(conv(&name, kv));
                continue;
            }
            // Taps that every token adds to the static ones, for each head.
            let dynamic = vec![kv_heads.value * taps, hidden.value];
            sides.push(Side::elements(&format!("{name}.static_weight"), vec![taps, kv.value]));
            sides.push(Side::matrix(&format!("{name}.weight_proj"), dynamic));
            sides.push(Side::elements(&format!("{one}_input_layernorm.weight"), vec![hidden.value]));
        }
        let states = [(kv, kv_heads), (kv, kv_heads), (hidden, heads), (hidden, heads)];
        Ok((attention, sides, states.map(|(channels, parts)| conv_state(channels, kernel, parts)).to_vec()))
    }
}
