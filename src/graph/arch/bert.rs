//! BERT's layers as decoders: norms of each sum, learned positions, a norm on the embedding. BertGeneration, GIT,
//! BLIP and TrOCR.
//!
//! Source: the files of these classes in transformers 5.24.

use serde_json::json;

use super::described;
use super::wrapper::{self, WrapperPaths, wrap};
use crate::graph::assembly::Affine;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, mha};
use crate::graph::part::cross::Cross;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::{Arrangement, Layer};
use crate::graph::part::names::TensorNames;
use crate::graph::part::streams::{Extras, Side};
use crate::graph::tensor::{TensorRole, Weight};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NORM: Affine = Affine::ScaleAndShift;

const NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.q_proj", "attention.self.query"),
    ("self_attn.k_proj", "attention.self.key"),
    ("self_attn.v_proj", "attention.self.value"),
    ("self_attn.o_proj", "attention.output.dense"),
    ("post_attention_layernorm", "attention.output.LayerNorm"),
    ("cross_attn.q_proj", "crossattention.self.query"),
    ("cross_attn.k_proj", "crossattention.self.key"),
    ("cross_attn.v_proj", "crossattention.self.value"),
    ("cross_attn.o_proj", "crossattention.output.dense"),
    ("cross_layernorm", "crossattention.output.LayerNorm"),
    ("mlp.up_proj", "intermediate.dense"),
    ("mlp.down_proj", "output.dense"),
    ("post_feedforward_layernorm", "output.LayerNorm"),
    ("model.layers", "model.encoder.layer"),
    ("model.embed_tokens", "model.embeddings.word_embeddings"),
    ("model.embed_positions", "model.embeddings.position_embeddings"),
    ("model.embed_norm", "model.embeddings.LayerNorm"),
]);

const TROCR: TensorNames = TensorNames::of_table(&[
    ("self_attn.o_proj", "self_attn.out_proj"),
    ("post_attention_layernorm", "self_attn_layer_norm"),
    ("post_feedforward_layernorm", "final_layer_norm"),
    ("mlp.up_proj", "fc1"),
    ("mlp.down_proj", "fc2"),
    ("model.embed_norm", "model.decoder.layernorm_embedding"),
    ("lm_head", "output_projection"),
    ("model", "model.decoder"),
]);

/// A layer with attention and a plain network, both with biases.
fn layer(hidden: Count, heads: Count, width: Count) -> Result<(Attention, Layer), Error> {
    let attention = Attention::of(hidden, heads, mha(heads), None)?.biased(true);
    let network = FeedForward::plain(hidden, width, true);
    let layer = Layer::new(attention.clone(), network);
    Ok((attention, Layer { norm: NORM, arrangement: Arrangement::NormedSum, ..layer }))
}

/// The keys of BERT: everything but its layers, their attention, and a layer.
fn bert(keys: &Keys<'_>, tied: bool) -> Result<(DecoderSpec, Attention, Layer), Error> {
    let whole = DecoderSpec {
        norm: NORM,
        names: NAMES,
        final_norm: false,
        positions: Some(keys.count("max_position_embeddings")?),
        embedding_norm: true,
        head_bias: true,
        ..DecoderSpec::read(keys, tied)?
    };
    let (heads, width) = (keys.count("num_attention_heads")?, keys.count("intermediate_size")?);
    let (attention, layer) = layer(whole.hidden, heads, width)?;
    Ok((whole, attention, layer))
}

/// Names the bias of a head that is a module of its own. A head that is not tied has it twice.
fn with_own_bias(mut graph: ModelGraph, name: &str) -> ModelGraph {
    let tied = graph.tied;
    for node in graph.head.graph.node_weights_mut().filter(|node| node.name == "lm_head") {
        let Some(bias) = node.weights.iter_mut().find(|weight| weight.role == TensorRole::Bias) else {
            continue;
        };
        let own = Weight { name: name.to_owned(), ..bias.clone() };
        match tied {
            true => *bias = own,
            false => node.weights.push(own),
        }
    }
    graph
}

/// `bert-generation`: the decoder alone, without cross-attention.
pub fn build_generation(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.only("add_cross_attention", &json!(false))?;
    let (whole, _, layer) = bert(keys, true)?;
    let paths = WrapperPaths { model: "bert", head: "lm_head.decoder", others: "" };
    Ok(with_own_bias(wrap(whole.uniform(layer), paths, vec![]), "lm_head.bias"))
}

/// The language model of `git`: images are the first tokens of its sequence.
pub fn build_git(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let (whole, _, layer) = bert(keys, false)?;
    Ok(whole.uniform(layer))
}

/// `blip`: every layer attends to the positions of one image; a matrix and a norm before the head.
pub fn build_blip(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    wrapper::set_prompt_aside(keys);
    let text = wrapper::text(keys, "blip_text_model")?;
    // The class takes the width of the encoder's states from the encoder.
    text.set_aside(&["encoder_hidden_size", "label_smoothing", "projection_dim"]);
    text.only("is_decoder", &json!(true))?;
    let (whole, attention, layer) = bert(&text, true)?;
    let seen = wrapper::vision(keys, "blip_vision_model")?;
    let side = seen.count("image_size")?.value / seen.count("patch_size")?.value;
    let positions = Count::derived("positions", side * side + 1, "(image_size / patch_size)² + 1");
    let cross = Cross { attention, source: seen.count("hidden_size")?, positions, gates: &[] };
    let extras = Extras { crossed: Some(Box::new(cross)), ..Extras::default() };
    let whole = DecoderSpec { head_network: Some(true), ..whole };
    let graph = wrapper::tied(whole.uniform(Layer { extras, ..layer }), keys, &text)?;
    let towers = described::towers_of("blip", keys, &graph)?;
    let head = "text_decoder.cls.predictions.decoder";
    let graph = wrap(graph, WrapperPaths { model: "text_decoder.bert", head, others: "" }, towers);
    let mut graph = with_own_bias(graph, "text_decoder.cls.predictions.bias");
    for weight in graph.head.graph.node_weights_mut().flat_map(|node| &mut node.weights) {
        for (module, stored) in
            [("decoder.dense", "transform.dense"), ("decoder.norm", "transform.LayerNorm")]
        {
            weight.name = weight.name.replace(module, stored);
        }
    }
    Ok(graph)
}

/// `trocr`: the decoder alone. Its cross-attention is stored and computes nothing, since there is no encoder.
pub fn build_trocr(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["scale_embedding", "decoder_layerdrop"]);
    let named = |names: [&'static str; 2]| keys.count(keys.spelling(&names)?);
    let hidden = named(["d_model", "hidden_size"])?;
    let layers = named(["decoder_layers", "num_hidden_layers"])?;
    let heads = named(["decoder_attention_heads", "num_attention_heads"])?;
    let rows = keys.count("max_position_embeddings")?.value + 2;
    let positions = Count::derived("positions", rows, "max_position_embeddings + 2");
    let learned = keys.flag("use_learned_position_embeddings", true)?;
    let whole = DecoderSpec {
        norm: NORM,
        names: TROCR,
        final_norm: false,
        positions: learned.then_some(positions),
        embedding_norm: keys.flag("layernorm_embedding", true)?,
        ..DecoderSpec::of(keys, hidden, layers, keys.count("vocab_size")?, true)?
    };
    let (_, layer) = layer(hidden, heads, keys.count("decoder_ffn_dim")?)?;
    let source = keys.count_or_none("cross_attention_hidden_size")?.unwrap_or(hidden);
    let mut sides = vec![];
    for (name, input) in [("q_proj", hidden), ("k_proj", source), ("v_proj", source), ("out_proj", hidden)] {
        let name = format!("encoder_attn.{name}");
        sides.push(Side::elements(&format!("{name}.weight"), vec![hidden.value, input.value]));
        sides.push(Side::elements(&format!("{name}.bias"), vec![hidden.value]));
    }
    for end in ["weight", "bias"] {
        sides.push(Side::elements(&format!("encoder_attn_layer_norm.{end}"), vec![hidden.value]));
    }
    Ok(whole.uniform(Layer { extras: Extras { sides, ..Extras::default() }, ..layer }))
}

#[cfg(test)]
mod tests {
    use crate::graph::model::ModelGraph;
    use crate::spec::model::ModelConfig;

    const KEYS: &str = r#""hidden_size": 6, "num_hidden_layers": 2, "vocab_size": 11, "num_attention_heads": 3,
        "intermediate_size": 10, "max_position_embeddings": 7"#;

    fn graph(text: &str) -> ModelGraph {
        ModelGraph::build(&ModelConfig::parse(text).unwrap()).unwrap()
    }

    /// Four matrices with biases and a norm; two matrices with biases and a norm.
    const LAYER: u64 = 4 * (6 * 6 + 6) + 12 + (2 * 6 * 10 + 10 + 6) + 12;

    #[test]
    fn a_head_that_is_not_tied_has_its_bias_twice() {
        let text = format!(r#"{{"model_type": "bert-generation", "tie_word_embeddings": true, {KEYS}}}"#);
        let tied = graph(&text).parameters().unique;
        assert_eq!(tied, 11 * 6 + 7 * 6 + 12 + 2 * LAYER + 11);
        let separate = graph(&text.replace("true", "false")).parameters().unique;
        assert_eq!(separate - tied, 11 * 6 + 11);
    }

    #[test]
    fn layers_of_blip_attend_to_an_image_of_the_encoders_width() {
        let graph = graph(&format!(
            r#"{{"model_type": "blip", "transformers_version": "5.24.0", "text_config": {{{KEYS}}}, "vision_config":
            {{"hidden_size": 4, "intermediate_size": 5, "num_hidden_layers": 1, "num_attention_heads": 2,
            "image_size": 8, "patch_size": 2}}}}"#
        ));
        let cross = 2 * (6 * 6 + 6) + 2 * (4 * 6 + 6) + 12;
        let head = 6 * 6 + 6 + 12 + 11;
        let parameters = graph.parameters();
        assert_eq!(parameters.unique - parameters.towers, 11 * 6 + 7 * 6 + 12 + 2 * (LAYER + cross) + head);
        assert_eq!(graph.state_bytes_per_sequence(), 2 * 17 * 2 * 6 * 2);
        let seen = 4 * 4 * 3 + 4 * 3 + 4 * 4 + 4 + 4 * 5 + 5 + 5 * 4 + 4 + 4 * 4;
        assert_eq!(parameters.towers, 4 + 17 * 4 + 4 * 3 * 2 * 2 + 4 + seen + 8);
    }

    #[test]
    fn a_decoder_of_trocr_stores_cross_attention_that_computes_nothing() {
        let text = r#"{"model_type": "trocr", "d_model": 6, "decoder_layers": 2, "vocab_size": 11,
            "decoder_attention_heads": 3, "decoder_ffn_dim": 10, "max_position_embeddings": 7,
            "cross_attention_hidden_size": 4}"#;
        let cross = 2 * (6 * 6 + 6) + 2 * (4 * 6 + 6) + 12;
        let graph = graph(text);
        assert_eq!(graph.parameters().unique, 11 * 6 + 9 * 6 + 12 + 2 * (LAYER + cross));
        assert_eq!(graph.state_bytes_per_sequence(), 0);
    }
}
