//! Evolla: Llama's layers, some with cross-attention to the latents of a protein at their end.
//!
//! Source: `modular_evolla.py` of transformers 5.24.

use serde_json::json;

use super::described;
use super::wrapper::{WrapperPaths, wrap};
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, mha};
use crate::graph::part::cross::{Cross, CrossAdapter};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::Layer;
use crate::graph::part::names::TensorNames;
use crate::graph::part::rope::RopeClass;
use crate::graph::part::streams::Extras;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: TensorNames = TensorNames::of_table(&[
    ("cross_attn.q_proj", "adapter.query"),
    ("cross_attn.k_proj", "adapter.key_protein"),
    ("cross_attn.v_proj", "adapter.value_protein"),
    ("cross_attn.o_proj", "adapter.out_proj"),
    ("adapter.ff.up_proj", "adapter.ff.fc1"),
    ("adapter.ff.down_proj", "adapter.ff.fc2"),
]);

/// `evolla`: the last of every few layers attends to the latents; no key ties the head.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.only("add_cross_attention", &json!(false))?;
    let whole = DecoderSpec { names: NAMES, tied: false, ..DecoderSpec::read(keys, false)? };
    let hidden = whole.hidden;
    let (heads, kv_heads) = (keys.count("num_attention_heads")?, keys.count_or("num_key_value_heads", 8)?);
    let attention = Attention::of(hidden, heads, kv_heads, keys.count_or_none("head_dim")?)?;
    let attention = attention.rotated(keys, RopeClass::WHOLE)?.biased(keys.flag("attention_bias", false)?);
    let layer = Layer::new(attention, FeedForward::read_biased(keys, hidden)?);
    let adapter = adapter(keys, hidden, heads)?;
    let every = whole.layers.value / keys.count_or("aligner_num_add_layers", 8)?.value;
    let placed = |index: u64| match index.is_multiple_of(every.max(1)) {
        true => {
            let extras = Extras { adapter: Some(Box::new(adapter.clone())), ..Extras::default() };
            Layer { extras, ..layer.clone() }
        }
        false => layer.clone(),
    };
    let graph = whole.graph((1..=whole.layers.value).map(placed).collect(), vec![]);
    let towers = described::towers_of("evolla", keys, &graph)?;
    Ok(wrap(graph, WrapperPaths { model: "model", head: "lm_head", others: "" }, towers))
}

/// Cross-attention with as many key heads as query heads, and its network.
fn adapter(keys: &Keys<'_>, hidden: Count, heads: Count) -> Result<CrossAdapter, Error> {
    keys.set_aside(&["aligner_attention_probs_dropout_prob"]);
    let attention = Attention::of(hidden, heads, mha(heads), None)?;
    let attention =
        Attention { qkv_bias: true, o_bias: keys.flag("aligner_enable_bias", true)?, ..attention };
    let positions = keys.count_or("resampler_num_latents", 64)?;
    let gates = &["adapter.gate_attention", "adapter.gate_ffw"];
    let times = keys.count_or("aligner_ffn_mult", 4)?.value;
    let width = Count::derived("adapter_width", times * hidden.value, "aligner_ffn_mult × hidden_size");
    let network = FeedForward::plain(hidden, width, false);
    Ok(CrossAdapter { cross: Cross { attention, source: hidden, positions, gates }, network })
}

#[cfg(test)]
mod tests {
    use crate::graph::model::ModelGraph;
    use crate::spec::model::ModelConfig;

    #[test]
    fn the_last_of_every_few_layers_attends_to_the_latents() {
        let text = r#"{"model_type": "evolla", "hidden_size": 6, "num_hidden_layers": 5, "vocab_size": 11,
            "num_attention_heads": 3, "num_key_value_heads": 1, "intermediate_size": 10, "aligner_num_add_layers": 2,
            "aligner_ffn_mult": 2, "resampler_num_latents": 7, "resampler_depth": 1, "resampler_heads": 2,
            "resampler_dim_head": 3, "resampler_ff_mult": 2, "protein_encoder_config": {"hidden_size": 4,
            "intermediate_size": 5, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 9}}"#;
        let graph = ModelGraph::build(&ModelConfig::parse(text).unwrap()).unwrap();
        let layer = 2 * 6 * 6 + 2 * 2 * 6 + 3 * 6 * 10 + 12;
        let adapter = 4 * (6 * 6 + 6) + 6 + 12 + 2 * 6 * 12 + 2;
        let parameters = graph.parameters();
        assert_eq!(parameters.unique - parameters.towers, 2 * 11 * 6 + 6 + 5 * layer + 2 * adapter);
        assert_eq!(graph.layer_block, [0, 1, 0, 1, 0]);
        assert_eq!(graph.state_bytes_per_sequence(), 2 * 7 * 2 * 6 * 2);
        let protein = 9 * 4 + 4 * (4 * 4 + 4) + 8 + 2 * 4 * 5 + 5 + 4 + 8 + 8;
        let resampler = 7 * 4 + 16 + 4 * 4 * 6 + 8 + 2 * 4 * 8 + 6 * 4 + 6 + 12;
        assert_eq!(parameters.towers, protein + resampler);
    }
}
