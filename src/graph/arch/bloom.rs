//! BLOOM, Falcon and MPT: ALiBi or rotary positions, plain networks, tied embeddings.

use serde_json::json;

use crate::graph::arch::class_keys::ignored;
use crate::graph::assembly::Affine;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, mha};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::{Arrangement, Layer};
use crate::graph::part::names::TensorNames;
use crate::graph::part::rope::RopeClass;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `bloom`: a norm after the embedding, biases throughout.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // Keys for kernels and numerics. ALiBi is not optional here.
    keys.set_aside(ignored("bloom"));
    let norm = Affine::ScaleAndShift;
    let hidden = keys.count(keys.spelling(&["hidden_size", "n_embed"])?)?;
    let layers = keys.count(keys.spelling(&["n_layer", "num_hidden_layers"])?)?;
    let heads = keys.count(keys.spelling(&["n_head", "num_attention_heads"])?)?;
    keys.only("n_inner", &json!(4 * hidden.value)).or_else(|_| keys.only("n_inner", &json!(null)))?;
    let whole = DecoderSpec {
        norm,
        names: BLOOM_NAMES,
        embedding_norm: true,
        max_context: keys.count_or_none("seq_length")?.map(|length| length.value),
        ..DecoderSpec::of(keys, hidden, layers, keys.count("vocab_size")?, true)?
    };
    let attention = Attention::of(hidden, heads, mha(heads), None)?.biased(true);
    let network = FeedForward::plain(hidden, fourfold(hidden), true);
    Ok(whole.uniform(Layer { norm, ..Layer::new(attention, network) }))
}

/// `falcon`: one key/value head (7B), several (the new decoder architecture) or all (RW).
pub fn build_falcon(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["alibi", "apply_residual_connection_post_layernorm", "activation", "ff_factor"]);
    let norm = Affine::ScaleAndShift;
    let hidden = keys.count(keys.spelling(&["hidden_size", "n_embed"])?)?;
    let layers = keys.count(keys.spelling(&["num_hidden_layers", "n_layer"])?)?;
    let heads = keys.count(keys.spelling(&["num_attention_heads", "n_head"])?)?;
    let (new, multi_query) = (keys.flag("new_decoder_architecture", false)?, keys.flag("multi_query", true)?);
    let stated = keys.count_or_none(keys.spelling(&["num_kv_heads", "n_head_kv"])?)?;
    let kv_heads = match (new, multi_query) {
        (true, _) => stated.unwrap_or_else(|| mha(heads)),
        (false, true) => Count::derived("num_key_value_heads", 1, "one head, as multi_query sets"),
        (false, false) => mha(heads),
    };
    let norms =
        keys.count_or_none("num_ln_in_parallel_attn")?.map_or(if new { 2 } else { 1 }, |norms| norms.value);
    let arrangement = match (keys.flag("parallel_attn", true)?, new, norms) {
        (true, true, 2) => Arrangement::ParallelTwoNorms,
        (true, _, 1) => Arrangement::Parallel,
        (false, false, _) => Arrangement::PreNorm,
        (parallel, ..) => {
            return Err(Error::new(
                "num_ln_in_parallel_attn",
                format!("{norms}, with parallel_attn {parallel} and new_decoder_architecture {new}"),
                "one norm, or two in the new decoder architecture",
                "copy the keys from the model's config.json",
            ));
        }
    };
    let two = arrangement == Arrangement::ParallelTwoNorms;
    let names = if two { FALCON_TWO_NORMS } else { BLOOM_NAMES };
    let whole = DecoderSpec {
        norm,
        names,
        ..DecoderSpec::of(keys, hidden, layers, keys.count("vocab_size")?, true)?
    };
    let bias = keys.flag("bias", false)?;
    let attention = Attention::of(hidden, heads, kv_heads, None)?.biased(bias);
    let attention = match keys.flag_or_none("alibi")? {
        true => attention,
        false => attention.rotated(keys, RopeClass::WHOLE)?,
    };
    let width = keys.count_or_none("ffn_hidden_size")?.unwrap_or_else(|| fourfold(hidden));
    let network = FeedForward::plain(hidden, width, bias);
    Ok(whole.uniform(Layer { norm, arrangement, ..Layer::new(attention, network) }))
}

/// `mpt`: no biases, not even in LayerNorm; the class supports ALiBi only.
pub fn build_mpt(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("mpt"));
    for (key, only) in [("no_bias", json!(true)), ("expansion_ratio", json!(4))] {
        alike(keys, key, &only)?;
    }
    keys.only("ffn_config", &json!({"ffn_type": "mptmlp"}))?;
    if let Some(attention) = keys.section_or_none("attn_config")? {
        attention.set_aside(ignored("mpt attn_config"));
        attention.only("attn_type", &json!("multihead_attention"))?;
        alike(&attention, "alibi", &json!(true))?;
        alike(&attention, "qk_ln", &json!(false))?;
    }
    let (hidden, layers) = (
        keys.count(keys.spelling(&["d_model", "hidden_size"])?)?,
        keys.count(keys.spelling(&["n_layers", "num_hidden_layers"])?)?,
    );
    let whole = DecoderSpec {
        names: MPT_NAMES,
        max_context: keys.count_or_none("max_seq_len")?.map(|length| length.value),
        ..DecoderSpec::of(keys, hidden, layers, keys.count("vocab_size")?, true)?
    };
    let heads = keys.count(keys.spelling(&["n_heads", "num_attention_heads"])?)?;
    let attention = Attention::of(hidden, heads, mha(heads), None)?;
    Ok(whole.uniform(Layer::new(attention, FeedForward::plain(hidden, fourfold(hidden), false))))
}

/// Returns an error for an option of MPT that transformers ignores while vLLM and the checkpoints' own code read it.
fn alike(keys: &Keys<'_>, key: &'static str, only: &serde_json::Value) -> Result<(), Error> {
    let fix = "take a checkpoint without this option: engines build different models of it";
    let expected = format!("{only}: transformers supports no other form and ignores the key, vLLM reads it");
    keys.only(key, only).map_err(|error| Error { expected, fix: fix.to_owned(), ..error })
}

fn fourfold(hidden: Count) -> Count {
    Count::derived("intermediate_size", 4 * hidden.value, "4 × hidden_size")
}

const BLOOM_NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.o_proj", "self_attention.dense"),
    ("self_attn.q_proj self_attn.k_proj self_attn.v_proj", "self_attention.query_key_value"),
    ("mlp.up_proj", "mlp.dense_h_to_4h"),
    ("mlp.down_proj", "mlp.dense_4h_to_h"),
    ("model.layers", "transformer.h"),
    ("model.norm", "transformer.ln_f"),
    ("model.embed_tokens", "transformer.word_embeddings"),
    ("model.embed_norm", "transformer.word_embeddings_layernorm"),
]);

const FALCON_TWO_NORMS: TensorNames = TensorNames::of_table(&[
    ("input_layernorm", "ln_attn"),
    ("post_attention_layernorm", "ln_mlp"),
    ("self_attn.o_proj", "self_attention.dense"),
    ("self_attn.q_proj self_attn.k_proj self_attn.v_proj", "self_attention.query_key_value"),
    ("mlp.up_proj", "mlp.dense_h_to_4h"),
    ("mlp.down_proj", "mlp.dense_4h_to_h"),
    ("model.layers", "transformer.h"),
    ("model.norm", "transformer.ln_f"),
    ("model.embed_tokens", "transformer.word_embeddings"),
]);

const MPT_NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.o_proj", "attn.out_proj"),
    ("self_attn.q_proj self_attn.k_proj self_attn.v_proj", "attn.Wqkv"),
    ("mlp", "ffn"),
    ("input_layernorm", "norm_1"),
    ("post_attention_layernorm", "norm_2"),
    ("model.layers", "transformer.blocks"),
    ("model.norm", "transformer.norm_f"),
    ("model.embed_tokens", "transformer.wte"),
]);
