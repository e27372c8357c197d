//! Inkling-2: Inkling's relative positions and short convolutions, without rotation and shared experts; gated attention
//! with a sink that each token scores, and layers that read a mixture of the results of earlier blocks. In the looped form,
//! the middle layers run several times; from the second pass on, gates mix in messages of the pass before.
//!
//! Source: `modular_inkling2.py` and `modular_inkling2_loop.py` of transformers 5.24.

use std::ops::Range;

use super::mllama::lengthen;
use crate::graph::assembly::weight;
use crate::graph::cache::Cache;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, OutputGate};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::kinds::{COPY, layer_kinds};
use crate::graph::part::layer::Layer;
use crate::graph::part::moe::Moe;
use crate::graph::part::names::TensorNames;
use crate::graph::part::recurrent::conv_state;
use crate::graph::part::runs;
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
    text(keys, None)
}

/// `inkling2_loop_text`.
pub fn build_loop(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    text(keys, Some(LayerLoop::read(keys)?))
}

fn text(keys: &Keys<'_>, looped: Option<LayerLoop>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["log_scaling_alpha", "log_scaling_n_floor", "route_scale", "routed_scaling_factor"]);
    keys.set_aside(&["mlp_gate_softcap", "mlp_up_softcap", "final_logit_softcapping", "scoring_func"]);
    keys.set_aside(&["qk_l2_clip_threshold", "rel_l2_clip_threshold", "n_layers_per_attn_res_block"]);
    let (hidden, layers) = (keys.count("hidden_size")?, keys.count("num_hidden_layers")?);
    let (rows, head) = (keys.count("vocab_size")?, keys.count_or("unpadded_vocab_size", 200_058)?);
    let order: Vec<(usize, bool)> = looped.as_ref().map_or_else(
        || (0..layers.value as usize).map(|layer| (layer, false)).collect(),
        |looped| looped.order(layers.value as usize),
    );
    let all = if looped.is_some() { runs("loop_num_passes", order.len() as u64)? } else { layers };
    let whole = DecoderSpec::of(keys, hidden, all, head, false)?;
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
    let layer = |&(index, gated): &(usize, bool)| {
        let slides = slides[index];
        let (attention, mut sides, states) = if slides { near.clone() } else { far.clone() };
        if index > 0 {
            let queries = if slides { vec![hidden.value] } else { vec![3, hidden.value] };
            sides.push(Side::elements("attention_input.query", queries));
        }
        sides.extend(looped.iter().filter(|_| gated).flat_map(|looped| looped.gates(hidden.value)));
        let extras = Extras { sides, states, ..Extras::default() };
        Layer { extras, ..Layer::new(attention, moe.clone()) }
    };
    let mut graph = whole.graph(order.iter().map(layer).collect(), vec![]);
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
        if let Some(looped) = &looped {
            let queries = vec![looped.layers.len() as u64, 4, hidden.value];
            norm.weights.push(weight("model.message_input.query", queries, TensorRole::Norm));
        }
    }
    let Some(looped) = looped else { return Ok(graph) };
    graph.carried = Some(looped.carried(hidden, layers.value));
    Ok(graph.repeating(order.iter().map(|(layer, _)| *layer)))
}

/// The layers that run several times.
struct LayerLoop {
    layers: Range<usize>,
    passes: u64,
    /// Rank of the gates.
    rank: u64,
    /// Layers whose sum later layers read.
    block: u64,
}

impl LayerLoop {
    fn read(keys: &Keys<'_>) -> Result<LayerLoop, Error> {
        // Older files have the keys in a section, which takes precedence.
        let section = keys.section_or_none("loop_config")?;
        let number = |inner: &'static str, key: &'static str, default: u64| -> Result<u64, Error> {
            let stated = match &section {
                Some(section) => section.count_or_none(inner)?,
                None => None,
            };
            let outer = keys.count_or(key, default)?;
            Ok(stated.unwrap_or(outer).value)
        };
        let from = number("core_start", "loop_layer_index_start", 6)?;
        let to = number("core_end", "loop_layer_index_end", 18)?;
        let passes = number("num_passes", "loop_num_passes", 3)?;
        let block = keys.count_or("n_layers_per_attn_res_block", 6)?.value;
        let ends = [("loop_layer_index_start", from), ("loop_layer_index_end", to)];
        if let Some((key, end)) = ends.into_iter().find(|(_, end)| !end.is_multiple_of(block)) {
            let expected = format!("a multiple of n_layers_per_attn_res_block {block}");
            return Err(Error::new(key, end.to_string(), expected, COPY));
        }
        if to <= from {
            let expected = format!("more than loop_layer_index_start {from}");
            return Err(Error::new("loop_layer_index_end", to.to_string(), expected, COPY));
        }
        if passes < 2 {
            let expected = "at least 2: the gates of later passes are in the checkpoint";
            return Err(Error::new("loop_num_passes", passes.to_string(), expected, COPY));
        }
        runs("loop_num_passes", (to - from).saturating_mul(passes))?;
        let rank = number("gate_rank", "loop_gate_rank", 64)?;
        Ok(LayerLoop { layers: from as usize..to as usize, passes, rank, block })
    }

    /// The stored layer of each run of a model of `layers` layers, and whether gates mix messages into it.
    fn order(&self, layers: usize) -> Vec<(usize, bool)> {
        let [from, to] = [self.layers.start, self.layers.end].map(|end| end.min(layers));
        let pass = |pass: u64| (from..to).map(move |layer| (layer, pass > 0));
        let loops = (0..self.passes).flat_map(pass);
        (0..from)
            .map(|layer| (layer, false))
            .chain(loops)
            .chain((to..layers).map(|layer| (layer, false)))
            .collect()
    }

    /// The gates of messages to queries, keys, values and experts.
    fn gates(&self, hidden: u64) -> Vec<Side> {
        let gate = |of: &str| {
            let matrix = |name: &str, shape| Side::matrix(&format!("{of}_message_gate.{name}"), shape);
            [
                matrix("down_proj", vec![self.rank, 2 * hidden]),
                matrix("forget_gate_proj", vec![hidden, self.rank]),
                matrix("message_gate_proj", vec![hidden, self.rank]),
            ]
        };
        ["q", "k", "v", "mlp"].into_iter().flat_map(gate).collect()
    }

    /// The stream and the sums of blocks that later layers read, where they are most: in a pass, those of this pass and
    /// of the one before; after the loop, those of all layers.
    fn carried(&self, hidden: Count, layers: u64) -> Count {
        let blocks = |layers: u64| layers.div_ceil(self.block);
        let inside = self.layers.len() as u64;
        let sums = blocks(self.layers.start as u64 + 2 * inside).max(blocks(layers));
        Count::derived("streams_and_sums", (1 + sums) * hidden.value, "(1 + sums of blocks) × hidden_size")
    }
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
