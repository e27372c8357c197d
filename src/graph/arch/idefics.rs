//! IDEFICS: Llama's layers, with a layer of cross-attention to an image before every one, or before some.
//!
//! Source: `modeling_idefics.py` of transformers 5.24. Layers are numbered in the order in which they run, those of
//! cross-attention too.

use serde_json::json;

use super::described;
use super::wrapper::{self, WrapperPaths, wrap};
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm, mha};
use crate::graph::part::cross::Cross;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::{Layer, Mixer};
use crate::graph::part::names::TensorNames;
use crate::graph::part::rope::RopeClass;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: TensorNames = TensorNames::of_table(&[
    ("cross_attn.q_norm", "cross_attn.q_layer_norm"),
    ("cross_attn.k_norm", "cross_attn.k_layer_norm"),
]);

/// `idefics`: a sequence attends to the positions of one image, or to those that the resampler makes of it. Rows of the
/// additional vocabulary count as rows of the embedding and of the head.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    wrapper::set_prompt_aside(keys);
    keys.set_aside(&["freeze_lm_head", "freeze_text_layers", "freeze_text_module_exceptions"]);
    keys.set_aside(&["freeze_vision_layers", "freeze_vision_module_exceptions"]);
    keys.only("alpha_type", &json!("float"))?;
    let (hidden, own) = (keys.count("hidden_size")?, keys.count("num_hidden_layers")?);
    let vocab = keys.count("vocab_size")?;
    let vocab = match keys.count_unless_zero("additional_vocab_size")? {
        Some(more) => {
            Count::derived("vocab_size", vocab.value + more.value, "vocab_size + additional_vocab_size")
        }
        None => vocab,
    };
    let heads = keys.count("num_attention_heads")?;
    let attention = Attention::of(hidden, heads, mha(heads), None)?.rotated(keys, RopeClass::WHOLE)?;
    let network = FeedForward::read(keys, hidden)?;
    let crossing = Layer::of(hidden, Mixer::Cross(cross(keys, &attention)?), network.clone());
    let layer = Layer::new(attention, network);
    let every = keys.count_or("cross_layer_interval", 1)?.value;
    let mut layers = vec![];
    for index in 0..own.value {
        if index.is_multiple_of(every) && index / every < own.value / every {
            layers.push(crossing.clone());
        }
        layers.push(layer.clone());
    }
    let all = Count::derived("layers", layers.len() as u64, "layers of text and of cross-attention");
    let whole = DecoderSpec { names: NAMES, ..DecoderSpec::of(keys, hidden, all, vocab, false)? };
    let graph = whole.graph(layers, vec![]);
    let towers = described::towers_of("idefics", keys, &graph)?;
    Ok(wrap(graph, WrapperPaths { model: "model", head: "lm_head", others: "" }, towers))
}

/// Cross-attention with the heads of the text.
fn cross(keys: &Keys<'_>, text: &Attention) -> Result<Cross, Error> {
    let qk_norm = if keys.flag("qk_layer_norms", false)? { QkNorm::PerHead } else { QkNorm::Absent };
    let seen = wrapper::vision(keys, "idefics_vision")?;
    let side = seen.count("image_size")?.value / seen.count("patch_size")?.value;
    let positions = match keys.flag("use_resampler", false)? {
        true => keys.section("perceiver_config")?.count_or("resampler_n_latents", 64)?,
        false => Count::derived("positions", side * side + 1, "(image_size / patch_size)² + 1"),
    };
    let attention = Attention { qk_norm, ..text.clone() };
    let gates = &["alpha_cross_attn", "alpha_dense"];
    Ok(Cross { attention, source: seen.count("embed_dim")?, positions, gates })
}

#[cfg(test)]
mod tests {
    use crate::graph::model::ModelGraph;
    use crate::spec::model::ModelConfig;

    const IDEFICS: &str = r#"{"model_type": "idefics", "hidden_size": 6, "num_hidden_layers": 4, "vocab_size": 11,
        "additional_vocab_size": 2, "num_attention_heads": 3, "intermediate_size": 10, "cross_layer_interval": 2,
        "qk_layer_norms": false, "use_resampler": false, "vision_config": {"embed_dim": 4, "intermediate_size": 5,
        "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 8, "patch_size": 2},
        "perceiver_config": {"resampler_depth": 2, "resampler_n_heads": 3, "resampler_head_dim": 5,
        "resampler_n_latents": 7, "qk_layer_norms_perceiver": false}}"#;

    fn graph(text: &str) -> ModelGraph {
        ModelGraph::build(&ModelConfig::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn every_second_layer_has_one_of_cross_attention_before_it() {
        let plain = graph(IDEFICS);
        let layer = 4 * 6 * 6 + 3 * 6 * 10 + 2 * 6;
        let crossing = 2 * 6 * 6 + 2 * 4 * 6 + 3 * 6 * 10 + 2 * 6 + 2;
        let parameters = plain.parameters();
        assert_eq!(parameters.unique - parameters.towers, 2 * 13 * 6 + 6 + 4 * layer + 2 * crossing);
        assert_eq!(plain.layer_block, [0, 1, 1, 0, 1, 1]);
        assert_eq!(plain.state_bytes_per_sequence(), 2 * 17 * 2 * 6 * 2);
        let normed = graph(&IDEFICS.replace(r#""qk_layer_norms": false"#, r#""qk_layer_norms": true"#));
        assert_eq!(normed.parameters().unique - parameters.unique, 2 * 2 * 2);
    }

    #[test]
    fn a_resampler_has_its_own_positions() {
        let plain = graph(IDEFICS);
        let resampled = graph(&IDEFICS.replace(r#""use_resampler": false"#, r#""use_resampler": true"#));
        let block = 4 * 4 + 4 * 4 * 15 + 8 + 2 * 4 * 16;
        let towers = resampled.parameters().towers - plain.parameters().towers;
        assert_eq!(towers, 7 * 4 + 8 + 2 * block);
        assert_eq!(resampled.state_bytes_per_sequence(), 2 * 7 * 2 * 6 * 2);
    }
}
