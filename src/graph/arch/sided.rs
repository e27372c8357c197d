//! Families whose layers are Llama's or Qwen's with further tensors: CPM-Ant, DiffLlama, Doge, JetMoe, ModernBERT's
//! decoder and Inkling.
//!
//! Source: the files of these classes in transformers 5.24.

use serde_json::json;

use super::mllama::lengthen;
use crate::graph::assembly::{Affine, weight};
use crate::graph::cache::Cache;
use crate::graph::model::{ModelGraph, OperatorNode};
use crate::graph::operator::Operator;
use crate::graph::part::attention::{Attention, QkNorm, mha};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::layer_kinds;
use crate::graph::part::layer::{Layer, Network};
use crate::graph::part::moe::{Moe, SharedExperts};
use crate::graph::part::names::TensorNames;
use crate::graph::part::recurrent::conv_state;
use crate::graph::part::rope::RopeClass;
use crate::graph::part::streams::{Extras, Side};
use crate::graph::part::window::{interleaved_windows, uniform_window};
use crate::graph::tensor::TensorRole;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// A layer with further tensors.
fn with_sides(layer: Layer, sides: Vec<Side>) -> Layer {
    Layer { extras: Extras { sides, ..Extras::default() }, ..layer }
}

/// The operators of this name, in all layers.
fn named<'g>(graph: &'g mut ModelGraph, name: &'static str) -> impl Iterator<Item = &'g mut OperatorNode> {
    let nodes = graph.blocks.iter_mut().flat_map(|block| block.graph.node_weights_mut());
    nodes.filter(move |node| node.name == name)
}

/// `diffllama`: two softmaxes over values of twice the width, one subtracted from the other.
pub fn build_diffllama(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["lambda_std_dev"]);
    let whole = DecoderSpec::read(keys, false)?;
    let attention = Attention::read_grouped(keys, whole.hidden)?.biased(keys.flag("attention_bias", false)?);
    let width = attention.head_dim.value;
    let lambdas = ["lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"];
    let sides = lambdas.map(|name| Side::elements(&format!("self_attn.{name}"), vec![width])).to_vec();
    let network = FeedForward::read_biased(keys, whole.hidden)?;
    let mut graph = whole.uniform(with_sides(Layer::new(attention, network), sides));
    for node in named(&mut graph, "attention") {
        if let Operator::Attention(dims) = &mut node.operator {
            dims.v_head_dim =
                Count::derived("v_head_dim", 2 * width, "2 × head_dim: each map reads both values");
        }
    }
    Ok(graph)
}

/// `doge`: a learned decay of each head's scores, scaled residuals.
pub fn build_doge(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.only("is_moe", &json!(false))?;
    keys.set_aside(&["keep_window_size", "num_experts", "num_experts_per_tok"]);
    let whole = DecoderSpec::read(keys, false)?;
    let (hidden, bias) = (whole.hidden, keys.flag("attention_bias", false)?);
    let attention = Attention::read_grouped(keys, hidden)?.biased(bias);
    let mask = uniform_window(keys, None)?.into();
    let attention = Attention { qk_norm: QkNorm::PerHead, mask, ..attention };
    let heads = attention.kv_heads.value;
    let mut sides = vec![
        Side::elements("self_attn.A", vec![heads]),
        Side::matrix("self_attn.dt_proj", vec![heads, heads * attention.head_dim.value]),
        Side::elements("input_residual", vec![hidden.value]),
        Side::elements("post_attention_residual", vec![hidden.value]),
    ];
    sides.extend(bias.then(|| Side::elements("self_attn.dt_proj.bias", vec![heads])));
    let network = FeedForward::read_biased(keys, hidden)?;
    Ok(whole.uniform(with_sides(Layer::new(attention, network), sides)))
}

const CPMANT: TensorNames = TensorNames::of_table(&[
    ("input_layernorm", "self_att.layernorm_before_attention"),
    ("self_attn.q_proj", "self_att.self_attention.project_q"),
    ("self_attn.k_proj", "self_att.self_attention.project_k"),
    ("self_attn.v_proj", "self_att.self_attention.project_v"),
    ("self_attn.o_proj", "self_att.self_attention.attention_out"),
    ("post_attention_layernorm", "ffn.layernorm_before_ffn"),
    ("mlp.gate_proj", "ffn.ffn.w_in.w_0"),
    ("mlp.up_proj", "ffn.ffn.w_in.w_1"),
    ("mlp.down_proj", "ffn.ffn.w_out"),
    ("model.layers", "cpmant.encoder.layers"),
    ("model.norm", "cpmant.encoder.output_layernorm"),
    ("model.embed_tokens", "cpmant.input_embedding"),
    ("model.embed_segments", "cpmant.segment_embedding"),
]);

/// `cpmant`: learned prompts and segments in the embedding, one table of score biases for all layers, a head that no
/// key ties.
pub fn build_cpmant(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["position_bias_max_distance"]);
    let segments = keys.count_or("segment_types", 32)?;
    let whole = DecoderSpec {
        names: CPMANT,
        tied: false,
        segments: Some(segments),
        ..DecoderSpec::read(keys, false)?
    };
    let heads = keys.count("num_attention_heads")?;
    let attention = Attention::of(whole.hidden, heads, mha(heads), Some(keys.count("dim_head")?))?;
    let network = FeedForward::gated(whole.hidden, keys.count("dim_ff")?);
    let mut graph = whole.uniform(Layer::new(attention, network));
    let prompts = keys.count_or("prompt_types", 32)?.value * keys.count_or("prompt_length", 32)?.value;
    let rows = whole.vocab.value + prompts;
    let rows = Count::derived("embedding_rows", rows, "vocab_size + prompt_types × prompt_length");
    lengthen(&mut graph.embedding, rows);
    let biases = keys.count_or("position_bias_num_buckets", 512)?.value + segments.value * segments.value;
    let name = "cpmant.position_bias.relative_attention_bias";
    let table = weight(name, vec![biases, heads.value], TensorRole::Norm);
    let norm = graph.head.graph.node_weights_mut().find(|node| node.name == "final_norm");
    norm.into_iter().for_each(|node| node.weights.push(table.clone()));
    Ok(graph)
}

const JETMOE: TensorNames = TensorNames::of_table(&[
    ("self_attn.k_proj self_attn.v_proj", "self_attention.kv_proj"),
    ("mlp.experts.gate_up_proj", "mlp.input_linear.weight"),
    ("mlp.experts.down_proj", "mlp.output_linear.weight"),
]);

/// `jetmoe`: queries and output by experts too: each of those selected has a head for every head of keys.
pub fn build_jetmoe(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["num_attention_heads", "aux_loss_coef", "activation_function"]);
    let whole = DecoderSpec { names: JETMOE, ..DecoderSpec::read(keys, true)? };
    let hidden = whole.hidden;
    let (kv_heads, head_dim) =
        (keys.count_or("num_key_value_heads", 16)?, keys.count_or("kv_channels", 128)?);
    let moe = Moe::read(keys, hidden, ["num_local_experts", "num_experts_per_tok", "intermediate_size"])?;
    let moe = Moe { router: "mlp.router.layer", ..moe };
    let (experts, selected) = (moe.experts.value, moe.top_k.value);
    let heads =
        Count::derived("num_attention_heads", kv_heads.value * selected, "key heads × selected experts");
    let attention =
        Attention::of(hidden, heads, kv_heads, Some(head_dim))?.rotated(keys, RopeClass::WHOLE)?;
    let sides = vec![
        Side::matrix("self_attention.experts.router.layer", vec![experts, hidden.value]),
        Side::elements("self_attention.experts.bias", vec![hidden.value]),
        Side::elements("mlp.bias", vec![hidden.value]),
    ];
    let mut graph = whole.uniform(with_sides(Layer::new(attention, moe), sides));
    let inner = kv_heads.value * head_dim.value;
    for (name, stored, shape) in [
        ("q_proj", "input_linear", vec![experts, inner, hidden.value]),
        ("o_proj", "output_linear", vec![experts, hidden.value, inner]),
    ] {
        let tensor = weight(format!("self_attention.experts.{stored}.weight"), shape, TensorRole::Expert);
        named(&mut graph, name).for_each(|node| node.weights = vec![tensor.clone()]);
    }
    Ok(graph)
}

const MODERNBERT: TensorNames = TensorNames::of_table(&[
    ("self_attn.o_proj", "attn.Wo"),
    ("self_attn", "attn"),
    ("input_layernorm", "attn_norm"),
    ("post_attention_layernorm", "mlp_norm"),
    ("mlp.gate_proj mlp.up_proj", "mlp.Wi"),
    ("mlp.down_proj", "mlp.Wo"),
    ("model.embed_tokens", "model.embeddings.tok_embeddings"),
    ("model.embed_norm", "model.embeddings.norm"),
    ("model.norm", "model.final_norm"),
    ("lm_head.weight", "decoder.weight"),
    ("lm_head.bias", "decoder.bias"),
]);

/// `modernbert-decoder`: no norm before the first attention, a matrix and a norm before the head.
pub fn build_modernbert(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&[
        "classifier_activation",
        "initializer_cutoff_factor",
        "local_attention",
        "deterministic_flash_attn",
    ]);
    keys.set_aside(&["global_attn_every_n_layers", "classifier_pooling", "cls_token_id", "sep_token_id"]);
    let norm = Affine::shift(keys.flag("norm_bias", false)?);
    let whole = DecoderSpec {
        names: MODERNBERT,
        norm,
        embedding_norm: true,
        head_bias: keys.flag("decoder_bias", true)?,
        head_network: Some(keys.flag("classifier_bias", false)?),
        ..DecoderSpec::read(keys, true)?
    };
    let attention = Attention::read_grouped(keys, whole.hidden)?.biased(keys.flag("attention_bias", false)?);
    let every = keys.count_or("global_attn_every_n_layers", 3)?.value;
    let window = keys.count_or("sliding_window", 64)?;
    let windows =
        interleaved_windows(keys, whole.layers, Some(window), |layer| !layer.is_multiple_of(every))?;
    let network = FeedForward::read_biased(keys, whole.hidden)?;
    let layer = Layer { norm, ..Layer::new(attention, network) };
    let placed = |(index, window): (usize, Option<Count>)| {
        let layer = layer.sliding(window);
        Layer { extras: Extras { unnormed: index == 0, ..Extras::default() }, ..layer }
    };
    Ok(whole.graph(windows.into_iter().enumerate().map(placed).collect(), vec![]))
}

const INKLING: TensorNames = TensorNames::of_table(&[("model.embed_norm", "model.embed_tokens.embed_norm")]);

/// `inkling_text`: scores by relative positions instead of rotation, short convolutions after keys, values, attention and
/// network; shared experts that the router weighs.
pub fn build_inkling(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["chain_hidden_post_norm", "log_scaling_alpha", "log_scaling_n_floor", "route_scale"]);
    keys.set_aside(&["logits_mup_width_multiplier", "mtp_hidden_states_first", "mtp_local_layer_ids"]);
    keys.set_aside(&["rms_norm_eps_moe_gate", "number_of_conv_states"]);
    keys.only("unpadded_vocab_size", &json!(null))?;
    keys.only("shared_expert_sink", &json!(true))?;
    let whole =
        DecoderSpec { names: INKLING, embedding_norm: true, tied: false, ..DecoderSpec::read(keys, false)? };
    let (hidden, layers) = (whole.hidden, whole.layers);
    let words = [("hybrid_sliding", true), ("hybrid", false)];
    let local = keys.numbers("local_layer_ids")?;
    let slides = layer_kinds(keys, "layer_types", layers, &words)?.unwrap_or_else(|| {
        let is_local = |layer: u64| match &local {
            Some(local) => local.contains(&layer),
            None => !(layer + 1).is_multiple_of(6),
        };
        (0..layers.value).map(is_local).collect()
    });
    let first = keys.count_unless_zero("dense_mlp_idx")?.map_or(0, |first| first.value);
    let words = [("dense", false), ("sparse", true)];
    let sparse = layer_kinds(keys, "mlp_layer_types", layers, &words)?
        .unwrap_or_else(|| (0..layers.value).map(|layer| layer >= first).collect());
    let old = keys.count_or_none("dense_intermediate_size")?;
    let width = keys.count("intermediate_size")?;
    let inner = if old.is_some() { width } else { keys.count_or("moe_intermediate_size", 3072)? };
    let dense = FeedForward::gated(hidden, old.unwrap_or(width));
    let (moe, shared) = inkling_experts(keys, hidden, inner)?;
    let [near, far] = [inkling_attention(keys, hidden, true)?, inkling_attention(keys, hidden, false)?];
    let layer = |(slides, sparse): (bool, bool)| {
        let (attention, sides, states) = if slides { near.clone() } else { far.clone() };
        let scale = if sparse { "mlp.gate.global_scale" } else { "mlp.global_scale" };
        let sides = [sides, vec![Side::elements(scale, vec![1])]].concat();
        let extras = Extras { sides, states, ..Extras::default() };
        Layer { extras, ..Layer::new(attention, Network::either(sparse, &moe, &dense)) }
    };
    let built = slides.into_iter().zip(sparse).map(layer).collect();
    let mut graph = whole.graph(built, vec![]);
    let scored = vec![moe.experts.value + shared, hidden.value];
    for node in named(&mut graph, "router") {
        let gates = node.weights.iter_mut().filter(|weight| weight.name == "mlp.gate.weight");
        gates.for_each(|weight| weight.shape.clone_from(&scored));
    }
    for (name, shape) in [
        ("shared_gate_proj", vec![shared, inner.value, hidden.value]),
        ("shared_up_proj", vec![shared, inner.value, hidden.value]),
        ("shared_down_proj", vec![shared, hidden.value, inner.value]),
    ] {
        let stored = name.trim_start_matches("shared_");
        let tensor = weight(format!("mlp.shared_experts.{stored}"), shape, TensorRole::SharedExpert);
        named(&mut graph, name).for_each(|node| node.weights = vec![tensor.clone()]);
    }
    Ok(graph)
}

/// The experts, and the number of those that every token passes.
fn inkling_experts(keys: &Keys<'_>, hidden: Count, inner: Count) -> Result<(Moe, u64), Error> {
    let shared = keys.count_or("n_shared_experts", 2)?.value;
    let width = Count::derived("shared_intermediate", shared * inner.value, "shared experts × their width");
    let network = FeedForward::gated(hidden, width);
    let experts = keys.count(keys.spelling(&["n_routed_experts", "num_local_experts"])?)?;
    let moe = Moe {
        correction_bias: Some("mlp.gate.e_score_correction_bias"),
        shared: Some(SharedExperts { tensor: "mlp.shared_experts", network, gate: None }),
        ..Moe::routed(hidden, experts, keys.count_or("num_experts_per_tok", 6)?, inner)?
    };
    Ok((moe, shared))
}

/// Attention of sliding or full layers, its further tensors, and the states of the layer's convolutions.
fn inkling_attention(
    keys: &Keys<'_>,
    hidden: Count,
    slides: bool,
) -> Result<(Attention, Vec<Side>, Vec<Cache>), Error> {
    let window = keys.count_or(keys.spelling(&["sliding_window_size", "sliding_window"])?, 512)?;
    let kernel = keys.count_or(keys.spelling(&["conv_kernel_size", "sconv_kernel_size"])?, 4)?;
    let names = match slides {
        true => ["swa_num_attention_heads", "swa_num_key_value_heads", "swa_head_dim"],
        false => ["num_attention_heads", "num_key_value_heads", "head_dim"],
    };
    let extent = if slides { window } else { keys.count_or("rel_extent", 1024)? };
    let [heads, kv_heads, head_dim] = names;
    let (heads, kv_heads, head_dim) = (keys.count(heads)?, keys.count(kv_heads)?, keys.count(head_dim)?);
    let attention = Attention::of(hidden, heads, kv_heads, Some(head_dim))?;
    let attention =
        Attention { qk_norm: QkNorm::PerHead, mask: Some(window).filter(|_| slides).into(), ..attention };
    let relative = keys.count_or("d_rel", 16)?.value;
    let kv = Count::derived("kv_width", kv_heads.value * head_dim.value, "key heads × head_dim");
    let taps = kernel.value;
    let conv =
        |name: &str, channels: Count| Side::matrix(&format!("{name}.conv1d"), vec![channels.value, 1, taps]);
    let sides = vec![
        Side::matrix("self_attn.r_proj", vec![heads.value * relative, hidden.value]),
        Side::elements("self_attn.rel_logits_proj.proj", vec![relative, extent.value]),
        conv("self_attn.k_sconv", kv),
        conv("self_attn.v_sconv", kv),
        conv("attn_sconv", hidden),
        conv("mlp_sconv", hidden),
    ];
    let states = [(kv, kv_heads), (kv, kv_heads), (hidden, heads), (hidden, heads)];
    let states = states.map(|(channels, parts)| conv_state(channels, kernel, parts)).to_vec();
    Ok((attention, sides, states))
}

#[cfg(test)]
mod tests {
    use crate::graph::model::ModelGraph;
    use crate::spec::model::ModelConfig;

    const KEYS: &str = r#""hidden_size": 6, "num_hidden_layers": 2, "vocab_size": 11, "num_attention_heads": 3,
        "num_key_value_heads": 3, "intermediate_size": 10"#;

    fn graph(text: &str) -> ModelGraph {
        ModelGraph::build(&ModelConfig::parse(&format!("{{{text}, {KEYS}}}")).unwrap()).unwrap()
    }

    #[test]
    fn experts_of_attention_are_active_where_selected() {
        let graph = graph(
            r#""model_type": "jetmoe", "kv_channels": 2, "num_local_experts": 5, "num_experts_per_tok": 2"#,
        );
        let expert = 2 * 6 * 6 + 3 * 6 * 10;
        let layer = 2 * 5 * 6 + 2 * 6 + 2 * 6 * 6 + 2 * 6 + 5 * expert;
        assert_eq!(graph.parameters().unique, 11 * 6 + 6 + 2 * layer);
        assert_eq!(graph.parameters().unique - graph.parameters().active, 2 * 3 * expert);
    }

    #[test]
    fn a_decoder_of_bert_has_no_first_norm_and_a_network_before_its_head() {
        let graph = graph(r#""model_type": "modernbert-decoder""#);
        let layer = 4 * 6 * 6 + 3 * 6 * 10 + 2 * 6;
        assert_eq!(graph.parameters().unique, 11 * 6 + 2 * layer - 6 + 2 * 6 + 6 * 6 + 6 + 11);
    }

    #[test]
    fn prompts_are_rows_of_the_embedding_and_biases_of_scores_are_there_once() {
        let text = r#"{"model_type": "cpmant", "hidden_size": 6, "num_hidden_layers": 2, "vocab_size": 11,
            "num_attention_heads": 3, "dim_head": 5, "dim_ff": 10, "prompt_types": 2, "prompt_length": 4,
            "segment_types": 3, "position_bias_num_buckets": 8, "tie_word_embeddings": true}"#;
        let graph = ModelGraph::build(&ModelConfig::parse(text).unwrap()).unwrap();
        let layer = 4 * 6 * 15 + 3 * 6 * 10 + 2 * 6;
        let embedding = (11 + 2 * 4 + 3) * 6;
        assert_eq!(graph.parameters().unique, embedding + 2 * layer + 6 + (8 + 3 * 3) * 3 + 11 * 6);
    }

    #[test]
    fn differences_of_attention_read_values_of_twice_the_width() {
        let graph = graph(r#""model_type": "diffllama""#);
        let layer = 4 * 6 * 6 + 3 * 6 * 10 + 2 * 6 + 4 * 2;
        assert_eq!(graph.parameters().unique, 2 * 11 * 6 + 6 + 2 * layer);
        assert_eq!(graph.kv_elements_per_token().growing, 2 * 2 * 6);
    }
}
