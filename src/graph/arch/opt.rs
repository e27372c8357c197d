//! OPT: learned positions, biases throughout; the 350M model has norms after its sums and a narrow embedding. BioGPT,
//! XGLM and the language models of Kosmos have its layers.

use serde_json::json;

use crate::graph::assembly::Affine;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, mha};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::{Arrangement, Layer};
use crate::graph::part::names::TensorNames;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `opt`: positions start at row 2.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["learned_embeddings", "output_projection"]);
    let before = keys.flag("do_layer_norm_before", true)?;
    let removed = keys.flag("_remove_final_layer_norm", false)?;
    let affine = keys.flag("layer_norm_elementwise_affine", true)?;
    let bias = keys.flag("enable_bias", true)?;
    let norm = if affine { Affine::ScaleAndShift } else { Affine::Absent };
    let whole = DecoderSpec::read(keys, true)?;
    let rows = keys.count("max_position_embeddings")?.value + 2;
    let embedding_width = keys.count_or_none("word_embed_proj_dim")?;
    let whole = DecoderSpec {
        norm,
        names: if before { NAMES } else { NAMES_AFTER },
        final_norm: before && !removed,
        positions: Some(Count::derived("positions", rows, "max_position_embeddings + 2")),
        embedding_width: embedding_width.filter(|width| width.value != whole.hidden.value),
        ..whole
    };
    let heads = keys.count("num_attention_heads")?;
    let attention = Attention::of(whole.hidden, heads, mha(heads), None)?.biased(bias);
    let network = FeedForward::plain(whole.hidden, keys.count("ffn_dim")?, bias);
    let arrangement = if before { Arrangement::PreNorm } else { Arrangement::NormedSum };
    Ok(whole.uniform(Layer { norm, arrangement, ..Layer::new(attention, network) }))
}

/// `biogpt`: OPT's layers under other names (`modular_biogpt.py` of transformers 5.24).
pub fn build_biogpt(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["scale_embedding"]);
    let whole = DecoderSpec::read(keys, true)?;
    let rows = keys.count("max_position_embeddings")?.value + 2;
    let positions = Some(Count::derived("positions", rows, "max_position_embeddings + 2"));
    let heads = keys.count("num_attention_heads")?;
    let width = keys.count("intermediate_size")?;
    biased(DecoderSpec { positions, names: BIOGPT_NAMES, ..whole }, heads, width)
}

/// `xglm`: the same with computed positions (`modeling_xglm.py` of transformers 5.24).
pub fn build_xglm(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["scale_embedding"]);
    keys.only("add_cross_attention", &json!(false))?;
    let named = |names: [&'static str; 2]| keys.count(keys.spelling(&names)?);
    let hidden = named(["d_model", "hidden_size"])?;
    let layers = named(["num_layers", "num_hidden_layers"])?;
    let whole = DecoderSpec::of(keys, hidden, layers, keys.count("vocab_size")?, true)?;
    let heads = named(["attention_heads", "num_attention_heads"])?;
    biased(DecoderSpec { names: XGLM_NAMES, ..whole }, heads, keys.count("ffn_dim")?)
}

/// The language model of Kosmos-2: computed positions, norms before the last matrices of attention and network
/// (`modeling_kosmos2.py` of transformers 5.24).
pub fn build_kosmos2(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.only("add_cross_attention", &json!(false))?;
    kosmos(keys, Some(("self_attn.inner_attn_ln", Affine::ScaleAndShift)), None)
}

/// The language model of Kosmos-2.5: without the norm in attention, with a table for text and image
/// (`modeling_kosmos2_5.py` of transformers 5.24).
pub fn build_kosmos2_5(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    kosmos(keys, None, Some(Count::derived("segments", 2, "text and image")))
}

fn kosmos(
    keys: &Keys<'_>,
    result_norm: Option<(&'static str, Affine)>,
    segments: Option<Count>,
) -> Result<ModelGraph, Error> {
    keys.set_aside(&["scale_embedding"]);
    let norm = Affine::ScaleAndShift;
    let named = |names: [&'static str; 2]| keys.count(keys.spelling(&names)?);
    let hidden = named(["embed_dim", "hidden_size"])?;
    let layers = named(["layers", "num_hidden_layers"])?;
    let heads = named(["attention_heads", "num_attention_heads"])?;
    let whole = DecoderSpec::of(keys, hidden, layers, keys.count("vocab_size")?, true)?;
    let whole = DecoderSpec { norm, names: KOSMOS_NAMES, segments, ..whole };
    let attention = Attention::of(hidden, heads, mha(heads), None)?.biased(true);
    let network = FeedForward::plain(hidden, keys.count("ffn_dim")?, true);
    let network = FeedForward { inner_norm: Some(("ffn_layernorm", norm)), ..network };
    Ok(whole.uniform(Layer { norm, ..Layer::new(Attention { result_norm, ..attention }, network) }))
}

/// Pre-norm layers with biases throughout.
fn biased(whole: DecoderSpec, heads: Count, width: Count) -> Result<ModelGraph, Error> {
    let norm = Affine::ScaleAndShift;
    let attention = Attention::of(whole.hidden, heads, mha(heads), None)?.biased(true);
    let network = FeedForward::plain(whole.hidden, width, true);
    Ok(DecoderSpec { norm, ..whole }.uniform(Layer { norm, ..Layer::new(attention, network) }))
}

const KOSMOS_NAMES: TensorNames = TensorNames::of_table(&[
    ("input_layernorm", "self_attn_layer_norm"),
    ("post_attention_layernorm", "final_layer_norm"),
    ("self_attn.o_proj", "self_attn.out_proj"),
    ("mlp.up_proj", "ffn.fc1"),
    ("mlp.down_proj", "ffn.fc2"),
    ("mlp", "ffn"),
    ("model.norm", "model.layer_norm"),
    ("model.embed_segments", "model.segment_emb"),
]);

const BIOGPT_NAMES: TensorNames = TensorNames::of_table(&[
    ("input_layernorm", "self_attn_layer_norm"),
    ("post_attention_layernorm", "final_layer_norm"),
    ("self_attn.o_proj", "self_attn.out_proj"),
    ("mlp.up_proj", "fc1"),
    ("mlp.down_proj", "fc2"),
    ("model.norm", "biogpt.layer_norm"),
    ("lm_head", "output_projection"),
    ("model", "biogpt"),
]);

const XGLM_NAMES: TensorNames = TensorNames::of_table(&[
    ("input_layernorm", "self_attn_layer_norm"),
    ("post_attention_layernorm", "final_layer_norm"),
    ("self_attn.o_proj", "self_attn.out_proj"),
    ("mlp.up_proj", "fc1"),
    ("mlp.down_proj", "fc2"),
    ("model.norm", "model.layer_norm"),
]);

const NAMES: TensorNames = TensorNames::of_table(&[
    ("input_layernorm", "self_attn_layer_norm"),
    ("post_attention_layernorm", "final_layer_norm"),
    ("self_attn.o_proj", "self_attn.out_proj"),
    ("mlp.up_proj", "fc1"),
    ("mlp.down_proj", "fc2"),
    ("model.norm", "model.decoder.final_layer_norm"),
    ("model", "model.decoder"),
]);

const NAMES_AFTER: TensorNames = TensorNames::of_table(&[
    ("post_attention_layernorm", "self_attn_layer_norm"),
    ("post_feedforward_layernorm", "final_layer_norm"),
    ("self_attn.o_proj", "self_attn.out_proj"),
    ("mlp.up_proj", "fc1"),
    ("mlp.down_proj", "fc2"),
    ("model", "model.decoder"),
]);

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;

    #[test]
    fn norms_inside_attention_and_network_have_shifts() {
        let text = r#"{"embed_dim": 6, "layers": 2, "attention_heads": 3, "ffn_dim": 10, "vocab_size": 11}"#;
        let map: Map<String, Value> = serde_json::from_str(text).unwrap();
        let unique = |build: fn(&Keys<'_>) -> Result<ModelGraph, Error>| {
            build(&Keys::new(&map)).unwrap().parameters().unique
        };
        let layer = 4 * (6 * 6 + 6) + 2 * 6 * 10 + 10 + 6 + 20 + 2 * 12;
        assert_eq!(unique(build_kosmos2), 11 * 6 + 2 * (layer + 12) + 12);
        assert_eq!(unique(build_kosmos2_5), (11 + 2) * 6 + 2 * layer + 12);
    }
}
