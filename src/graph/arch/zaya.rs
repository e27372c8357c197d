//! Zaya (Zyphra): queries and keys through two convolutions, half of the values from the token before, a network as
//! router, and a class of the router that skips the experts.
//!
//! Source: `modular_zaya.py` of transformers 5.24.

use crate::graph::assembly::weight;
use crate::graph::cache::{Cache, StateWidth};
use crate::graph::model::ModelGraph;
use crate::graph::operator::Operator;
use crate::graph::part::attention::Attention;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::kinds::layer_kinds;
use crate::graph::part::layer::Layer;
use crate::graph::part::moe::Moe;
use crate::graph::part::names::TensorNames;
use crate::graph::part::recurrent::conv_state;
use crate::graph::part::rope::RopeClass;
use crate::graph::part::streams::{Extras, Side};
use crate::graph::part::window::uniform_window;
use crate::graph::tensor::{TensorRole, Weight};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.q_proj", "self_attn.qkv_proj.q_proj"),
    ("self_attn.k_proj", "self_attn.qkv_proj.k_proj"),
]);

/// `zaya`.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let head_bias = keys.flag("lm_head_bias", false)?;
    let whole = DecoderSpec { names: NAMES, head_bias, ..DecoderSpec::read(keys, true)? };
    let (hidden, bias) = (whole.hidden, keys.flag("attention_bias", false)?);
    let class = |kind| RopeClass { kind, theta: 10_000, ..RopeClass::HALF };
    let plain = Attention::read_stated(keys, hidden)?.biased(bias);
    let window = uniform_window(keys, None)?;
    let words = [("hybrid", false), ("hybrid_sliding", true)];
    let slides = layer_kinds(keys, "layer_types", whole.layers, &words)?
        .unwrap_or_else(|| vec![false; whole.layers.value as usize]);
    let rank = keys.count_or("router_hidden_size", 256)?;
    let one = Count::derived("skipping_class", 1, "a class of the router without an expert");
    let moe = Moe::read(keys, hidden, ["num_experts", "num_experts_per_tok", "moe_intermediate_size"])?;
    let moe = Moe { idle: Some(one), ..moe };
    let (sides, states) = (sides(keys, &plain, rank.value)?, states(keys, &plain)?);
    let mut layers = Vec::with_capacity(slides.len());
    for (index, slides) in slides.into_iter().enumerate() {
        let kind = if slides { "hybrid_sliding" } else { "hybrid" };
        let attention = plain.clone().rotated(keys, class(kind))?;
        let attention = Attention { mask: window.filter(|_| slides).into(), ..attention };
        let mut sides = sides.clone();
        sides.extend((index > 0).then(|| Side::elements("mlp.gate.router_states_scale", vec![rank.value])));
        let extras = Extras { sides, states: states.clone(), ..Extras::default() };
        layers.push(Layer { extras, ..Layer::new(attention, moe.clone()) });
    }
    let mut graph = whole.graph(layers, vec![]);
    let half = plain.kv_heads.value * plain.head_dim.value / 2;
    let scored = moe.experts.value + 1;
    for node in graph.blocks.iter_mut().flat_map(|block| block.graph.node_weights_mut()) {
        match (node.name, &mut node.operator) {
            ("v_proj", _) => node.weights = values(half, hidden.value, bias),
            ("router", Operator::Router { hidden, .. }) => {
                *hidden = rank;
                node.weights = router(scored, rank.value);
            }
            _ => {}
        }
    }
    let norm = graph.head.graph.node_weights_mut().find(|node| node.name == "final_norm");
    let whole_model = ["model.input_hidden_states_scale", "model.input_hidden_states_bias"];
    let whole_model = whole_model.map(|name| weight(name, vec![hidden.value], TensorRole::Norm));
    norm.into_iter().for_each(|node| node.weights.extend(whole_model.iter().cloned()));
    Ok(graph)
}

/// The two halves of the values' matrix.
fn values(half: u64, hidden: u64, bias: bool) -> Vec<Weight> {
    let one = |name: &str| {
        let name = format!("self_attn.qkv_proj.v_proj_{name}");
        let matrix = weight(format!("{name}.weight"), vec![half, hidden], TensorRole::Attention);
        let shift = weight(format!("{name}.bias"), vec![half], TensorRole::Bias);
        if bias { vec![matrix, shift] } else { vec![matrix] }
    };
    [one("current"), one("delayed")].concat()
}

/// The last matrix of the router and its balancing buffer.
fn router(classes: u64, rank: u64) -> Vec<Weight> {
    let buffer = weight("mlp.gate.balancing_biases", vec![classes], TensorRole::Router);
    let matrix = weight("mlp.gate.router_mlp.out_proj.weight", vec![classes, rank], TensorRole::Router);
    vec![matrix, Weight { buffer: true, ..buffer }]
}

/// The tensors of a layer outside attention and experts.
fn sides(keys: &Keys<'_>, attention: &Attention, rank: u64) -> Result<Vec<Side>, Error> {
    let (hidden, width) = (attention.hidden.value, attention.head_dim.value);
    let channels = (attention.heads.value + attention.kv_heads.value) * width;
    let (first, second) = (keys.count_or("cca_time0", 2)?.value, keys.count_or("cca_time1", 2)?.value);
    let conv = |name: &str| format!("self_attn.qkv_proj.conv_qk_{name}");
    let gate = |name: &str| format!("mlp.gate.{name}");
    let mut sides = vec![
        Side::matrix(&conv("depthwise"), vec![channels, 1, first]),
        Side::elements(&conv("depthwise.bias"), vec![channels]),
        Side::matrix(&conv("grouped"), vec![channels, width, second]),
        Side::elements(&conv("grouped.bias"), vec![channels]),
        Side::elements("self_attn.qk_norm.temp", vec![attention.kv_heads.value]),
        Side::matrix(&gate("down_proj"), vec![rank, hidden]),
        Side::elements(&gate("down_proj.bias"), vec![rank]),
        Side::elements(&gate("router_mlp.norm.weight"), vec![rank]),
    ];
    for name in ["router_mlp.fc1", "router_mlp.fc2"] {
        sides.push(Side::matrix(&gate(name), vec![rank, rank]));
        sides.push(Side::elements(&gate(&format!("{name}.bias")), vec![rank]));
    }
    for place in ["post_attention_residual_scale", "post_mlp_residual_scale"] {
        let names = ["hidden_states_scale", "hidden_states_bias", "residual_scale", "residual_bias"];
        sides.extend(names.map(|name| Side::elements(&format!("{place}.{name}"), vec![hidden])));
    }
    Ok(sides)
}

/// The last queries and keys before the convolutions, and the last normed token, for the delayed values.
fn states(keys: &Keys<'_>, attention: &Attention) -> Result<Vec<Cache>, Error> {
    let channels = (attention.heads.value + attention.kv_heads.value) * attention.head_dim.value;
    let channels = Count::derived("qk_width", channels, "(query + key heads) × head_dim");
    let taps = keys.count_or("cca_time0", 2)?.value + keys.count_or("cca_time1", 2)?.value - 2;
    let taps = Count::derived("qk_taps", taps.max(1), "cca_time0 + cca_time1 - 2");
    let (parts, width) = (attention.kv_heads, StateWidth::Native);
    let token = Cache::State { name: "delayed", elements: attention.hidden, parts, width };
    Ok(vec![conv_state(channels, taps, parts), token])
}

#[cfg(test)]
mod tests {
    use crate::graph::model::ModelGraph;
    use crate::spec::model::ModelConfig;

    #[test]
    fn a_token_passes_one_expert_and_a_layer_keeps_the_inputs_of_its_convolutions() {
        let text = r#"{"model_type": "zaya", "hidden_size": 6, "num_hidden_layers": 2, "vocab_size": 11,
            "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 2, "num_experts": 3,
            "num_experts_per_tok": 1, "moe_intermediate_size": 5, "router_hidden_size": 4}"#;
        let graph = ModelGraph::build(&ModelConfig::parse(text).unwrap()).unwrap();
        let attention = 2 * 6 * 8 + 2 * 6 * 4 + 12 * 2 + 12 + 12 * 2 * 2 + 12 + 2;
        let router = 4 * 6 + 4 + 4 + 2 * (4 * 4 + 4) + 4 * 4;
        let expert = 3 * 6 * 5;
        let layer = attention + router + 3 * expert + 2 * 6 + 8 * 6;
        assert_eq!(graph.parameters().unique, 11 * 6 + 6 + 2 * 6 + 2 * layer + 4);
        assert_eq!(graph.parameters().unique - graph.parameters().active, 2 * 2 * expert);
        assert_eq!(graph.state_bytes_per_sequence(), 2 * (12 * 2 + 6) * 2);
    }
}
