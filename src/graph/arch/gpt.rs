//! GPT-2 and related models of EleutherAI, BigCode and Salesforce: learned, rotary or computed positions, LayerNorm,
//! plain networks.

use serde_json::Value;

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

/// `gpt2`: matrices stored transposed, Q, K and V joined.
pub fn build_gpt2(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    gpt2(keys, GPT2_NAMES, false)
}

/// `gpt_bigcode`: one key/value head, unless `multi_query` is off.
pub fn build_bigcode(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // Keys for kernels and a serving runtime.
    keys.set_aside(ignored("gpt_bigcode"));
    let multi_query = keys.flag("multi_query", true)?;
    // Derived from `multi_query`, whatever the file contains.
    keys.set_aside(&["num_key_value_heads"]);
    gpt2(keys, BIGCODE_NAMES, multi_query)
}

fn gpt2(keys: &Keys<'_>, names: TensorNames, multi_query: bool) -> Result<ModelGraph, Error> {
    summary(keys);
    let norm = Affine::ScaleAndShift;
    let (hidden, layers, heads) = widths(keys)?;
    let positions = keys.count(keys.spelling(&["n_positions", "max_position_embeddings"])?)?;
    let whole = DecoderSpec {
        norm,
        names,
        positions: Some(positions),
        max_context: Some(positions.value),
        ..DecoderSpec::of(keys, hidden, layers, keys.count("vocab_size")?, true)?
    };
    let kv_heads = if multi_query {
        Count::derived("num_key_value_heads", 1, "one head, as multi_query sets")
    } else {
        mha(heads)
    };
    let attention = Attention::of(hidden, heads, kv_heads, None)?.biased(true);
    let network = FeedForward::plain(hidden, inner(keys, hidden, "n_inner")?, true);
    Ok(whole.uniform(Layer { norm, ..Layer::new(attention, network) }))
}

/// `gptj`: attention without biases, in parallel with the network; a bias on the head.
pub fn build_gptj(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    summary(keys);
    keys.set_aside(&["rotary"]);
    rotary(keys, GPTJ_NAMES)
}

/// `codegen`: GPT-J with Q, K and V stored joined.
pub fn build_codegen(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    summary(keys);
    rotary(keys, CODEGEN_NAMES)
}

fn rotary(keys: &Keys<'_>, names: TensorNames) -> Result<ModelGraph, Error> {
    let norm = Affine::ScaleAndShift;
    let (hidden, layers, heads) = widths(keys)?;
    let context = keys.count(keys.spelling(&["n_positions", "max_position_embeddings"])?)?;
    let whole = DecoderSpec {
        norm,
        names,
        head_bias: true,
        max_context: Some(context.value),
        ..DecoderSpec::of(keys, hidden, layers, keys.count("vocab_size")?, false)?
    };
    let attention = Attention::of(hidden, heads, mha(heads), None)?;
    // The classes rotate 64 elements where the file says nothing.
    let part = [64.min(attention.head_dim.value), attention.head_dim.value];
    let attention = attention.rotated(keys, RopeClass { share: part, ..RopeClass::WHOLE })?;
    let network = FeedForward::plain(hidden, inner(keys, hidden, "n_inner")?, true);
    let layer = Layer::new(attention, network);
    Ok(whole.uniform(Layer { norm, arrangement: Arrangement::Parallel, ..layer }))
}

/// `gpt_neo`: `attention_types` lists the layers with a window of `window_size`; no biases on Q, K and V.
pub fn build_neo(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    summary(keys);
    let norm = Affine::ScaleAndShift;
    let hidden = keys.count("hidden_size")?;
    let layers = keys.count(keys.spelling(&["num_layers", "num_hidden_layers"])?)?;
    let heads = keys.count(keys.spelling(&["num_heads", "num_attention_heads"])?)?;
    let positions = keys.count_or("max_position_embeddings", 2048)?;
    let whole = DecoderSpec {
        norm,
        names: NEO_NAMES,
        positions: Some(positions),
        ..DecoderSpec::of(keys, hidden, layers, keys.count("vocab_size")?, true)?
    };
    let attention = Attention { o_bias: true, ..Attention::of(hidden, heads, mha(heads), None)? };
    let network = FeedForward::plain(hidden, inner(keys, hidden, "intermediate_size")?, true);
    let layer = Layer { norm, ..Layer::new(attention, network) };
    let window = keys.count_or("window_size", 256)?;
    let local = local_layers(keys, layers)?;
    let layers = local.into_iter().map(|local| layer.sliding(local.then_some(window)));
    Ok(whole.graph(layers.collect(), vec![]))
}

/// The local layers by `attention_types`: alternating kinds and their repeats, e.g. `[[["global", "local"], 12]]`.
fn local_layers(keys: &Keys<'_>, layers: Count) -> Result<Vec<bool>, Error> {
    let refuse = |found: String| {
        let expected = format!("kinds and repeats that make {} layers", layers.value);
        Error::new("attention_types", found, expected, "copy it from the model's config.json")
    };
    // The repeated kinds, e.g. `[["global", "local"], 12]`.
    let turn = |turn: &Value| -> Option<Vec<bool>> {
        let repeats = turn.get(1)?.as_u64().filter(|repeats| *repeats <= layers.value)?;
        let kinds = turn.get(0)?.as_array()?.iter().map(|kind| match kind.as_str() {
            Some("global") => Some(false),
            Some("local") => Some(true),
            _ => None,
        });
        Some(kinds.collect::<Option<Vec<_>>>()?.repeat(repeats as usize))
    };
    keys.set_aside(&["attention_layers"]);
    let stated = keys.stated("attention_types")?.value("attention_types").and_then(Value::as_array);
    let turns = stated.and_then(|turns| turns.iter().map(turn).collect::<Option<Vec<_>>>());
    let local = turns.ok_or_else(|| refuse("another form".to_owned()))?.concat();
    if local.len() as u64 == layers.value {
        Ok(local)
    } else {
        Err(refuse(format!("{} layers", local.len())))
    }
}

/// `gpt_neox`: attention and network in parallel, each behind its own norm, unless switched off.
pub fn build_neox(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let norm = Affine::ScaleAndShift;
    let whole = DecoderSpec { norm, names: NEOX_NAMES, ..DecoderSpec::read(keys, false)? };
    let parallel = keys.flag("use_parallel_residual", true)?;
    let arrangement = if parallel { Arrangement::ParallelTwoNorms } else { Arrangement::PreNorm };
    let heads = keys.count("num_attention_heads")?;
    let attention = Attention::of(whole.hidden, heads, mha(heads), None)?;
    let attention = attention.rotated(keys, RopeClass::QUARTER)?.biased(keys.flag("attention_bias", true)?);
    let network = FeedForward::plain(whole.hidden, keys.count("intermediate_size")?, true);
    Ok(whole.uniform(Layer { norm, arrangement, ..Layer::new(attention, network) }))
}

/// `gpt_neox_japanese`: pre-norm layers without biases but one, on the last layer's output projection
/// (`modeling_gpt_neox_japanese.py` of transformers 5.24).
pub fn build_japanese(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let norm = Affine::ScaleAndShift;
    let whole = DecoderSpec { norm, names: JAPANESE_NAMES, ..DecoderSpec::read(keys, true)? };
    let heads = keys.count("num_attention_heads")?;
    let attention = Attention::of(whole.hidden, heads, mha(heads), None)?.rotated(keys, RopeClass::WHOLE)?;
    let times = keys.count_or("intermediate_multiple_size", 4)?.value;
    let width = whole.hidden.value * times;
    let width = Count::derived("intermediate_size", width, "intermediate_multiple_size × hidden_size");
    let network = FeedForward::plain(whole.hidden, width, false);
    let last = whole.layers.value - 1;
    let layer = |layer: u64| {
        let attention = Attention { o_bias: layer == last, ..attention.clone() };
        Layer { norm, ..Layer::new(attention, network.clone()) }
    };
    Ok(whole.graph((0..=last).map(layer).collect(), vec![]))
}

/// `openai-gpt`: the first GPT: norms of each sum, none at the end (`modeling_openai.py` of transformers 5.24).
pub fn build_first(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    summary(keys);
    keys.set_aside(&["afn"]);
    let norm = Affine::ScaleAndShift;
    let (hidden, layers, heads) = widths(keys)?;
    let positions = keys.count(keys.spelling(&["n_positions", "max_position_embeddings"])?)?;
    let whole = DecoderSpec {
        norm,
        names: FIRST_NAMES,
        final_norm: false,
        positions: Some(positions),
        max_context: Some(positions.value),
        ..DecoderSpec::of(keys, hidden, layers, keys.count("vocab_size")?, true)?
    };
    let attention = Attention::of(hidden, heads, mha(heads), None)?.biased(true);
    let width = Count::derived("intermediate_size", 4 * hidden.value, "4 × n_embd");
    let layer = Layer::new(attention, FeedForward::plain(hidden, width, true));
    Ok(whole.uniform(Layer { norm, arrangement: Arrangement::NormedSum, ..layer }))
}

/// `ctrl`: computed positions, matrices of their own for Q, K and V, a bias on the head (`modeling_ctrl.py` of
/// transformers 5.24).
pub fn build_ctrl(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    summary(keys);
    let norm = Affine::ScaleAndShift;
    let (hidden, layers, heads) = widths(keys)?;
    let context = keys.count(keys.spelling(&["n_positions", "max_position_embeddings"])?)?;
    let whole = DecoderSpec {
        norm,
        names: CTRL_NAMES,
        head_bias: true,
        max_context: Some(context.value),
        ..DecoderSpec::of(keys, hidden, layers, keys.count("vocab_size")?, true)?
    };
    let attention = Attention::of(hidden, heads, mha(heads), None)?.biased(true);
    let network = FeedForward::plain(hidden, keys.count("dff")?, true);
    Ok(whole.uniform(Layer { norm, ..Layer::new(attention, network) }))
}

/// Hidden size, layers and heads under GPT-2's key names.
fn widths(keys: &Keys<'_>) -> Result<(Count, Count, Count), Error> {
    Ok((
        keys.count(keys.spelling(&["n_embd", "hidden_size"])?)?,
        keys.count(keys.spelling(&["n_layer", "num_hidden_layers"])?)?,
        keys.count(keys.spelling(&["n_head", "num_attention_heads"])?)?,
    ))
}

/// The network's width; if missing or `null`, four times the stream's.
fn inner(keys: &Keys<'_>, hidden: Count, key: &'static str) -> Result<Count, Error> {
    Ok(match keys.count_or_none(key)? {
        Some(stated) => stated,
        None => Count::derived("intermediate_size", 4 * hidden.value, "4 × hidden_size"),
    })
}

/// Classification heads, which language models do not have, and keys for numerics.
fn summary(keys: &Keys<'_>) {
    keys.set_aside(ignored("gpt"));
}

const BIGCODE_NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.o_proj", "attn.c_proj"),
    ("self_attn.q_proj self_attn.k_proj self_attn.v_proj", "attn.c_attn"),
    ("mlp.up_proj", "mlp.c_fc"),
    ("mlp.down_proj", "mlp.c_proj"),
    ("input_layernorm", "ln_1"),
    ("post_attention_layernorm", "ln_2"),
    ("model.layers", "transformer.h"),
    ("model.norm", "transformer.ln_f"),
    ("model.embed_tokens", "transformer.wte"),
    ("model.embed_positions", "transformer.wpe"),
]);

const GPT2_NAMES: TensorNames = TensorNames { transposed: true, ..BIGCODE_NAMES };

const FIRST_NAMES: TensorNames = TensorNames {
    table: &[
        ("self_attn.o_proj", "attn.c_proj"),
        ("self_attn.q_proj self_attn.k_proj self_attn.v_proj", "attn.c_attn"),
        ("mlp.up_proj", "mlp.c_fc"),
        ("mlp.down_proj", "mlp.c_proj"),
        ("post_attention_layernorm", "ln_1"),
        ("post_feedforward_layernorm", "ln_2"),
        ("model.layers", "transformer.h"),
        ("model.embed_tokens", "transformer.tokens_embed"),
        ("model.embed_positions", "transformer.positions_embed"),
    ],
    transposed: true,
};

const CTRL_NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.q_proj", "multi_head_attention.Wq"),
    ("self_attn.k_proj", "multi_head_attention.Wk"),
    ("self_attn.v_proj", "multi_head_attention.Wv"),
    ("self_attn.o_proj", "multi_head_attention.dense"),
    ("mlp.up_proj", "ffn.0"),
    ("mlp.down_proj", "ffn.2"),
    ("input_layernorm", "layernorm1"),
    ("post_attention_layernorm", "layernorm2"),
    ("model.layers", "transformer.h"),
    ("model.norm", "transformer.layernorm"),
    ("model.embed_tokens", "transformer.w"),
]);

const JAPANESE_NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.o_proj.bias", "attention.dense_bias"),
    ("self_attn.o_proj", "attention.dense"),
    ("self_attn.q_proj self_attn.k_proj self_attn.v_proj", "attention.query_key_value"),
    ("mlp.up_proj", "mlp.dense_h_to_4h"),
    ("mlp.down_proj", "mlp.dense_4h_to_h"),
    ("model.norm", "gpt_neox_japanese.final_layer_norm"),
    ("model.embed_tokens", "gpt_neox_japanese.embed_in"),
    ("lm_head", "embed_out"),
    ("model", "gpt_neox_japanese"),
]);

const GPTJ_NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.o_proj", "attn.out_proj"),
    ("self_attn", "attn"),
    ("mlp.up_proj", "mlp.fc_in"),
    ("mlp.down_proj", "mlp.fc_out"),
    ("input_layernorm", "ln_1"),
    ("model.layers", "transformer.h"),
    ("model.norm", "transformer.ln_f"),
    ("model.embed_tokens", "transformer.wte"),
]);

const CODEGEN_NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.o_proj", "attn.out_proj"),
    ("self_attn.q_proj self_attn.k_proj self_attn.v_proj", "attn.qkv_proj"),
    ("mlp.up_proj", "mlp.fc_in"),
    ("mlp.down_proj", "mlp.fc_out"),
    ("input_layernorm", "ln_1"),
    ("model.layers", "transformer.h"),
    ("model.norm", "transformer.ln_f"),
    ("model.embed_tokens", "transformer.wte"),
]);

const NEO_NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.o_proj", "attn.attention.out_proj"),
    ("self_attn", "attn.attention"),
    ("mlp.up_proj", "mlp.c_fc"),
    ("mlp.down_proj", "mlp.c_proj"),
    ("input_layernorm", "ln_1"),
    ("post_attention_layernorm", "ln_2"),
    ("model.layers", "transformer.h"),
    ("model.norm", "transformer.ln_f"),
    ("model.embed_tokens", "transformer.wte"),
    ("model.embed_positions", "transformer.wpe"),
]);

const NEOX_NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.o_proj", "attention.dense"),
    ("self_attn.q_proj self_attn.k_proj self_attn.v_proj", "attention.query_key_value"),
    ("mlp.up_proj", "mlp.dense_h_to_4h"),
    ("mlp.down_proj", "mlp.dense_4h_to_h"),
    ("model.norm", "gpt_neox.final_layer_norm"),
    ("model.embed_tokens", "gpt_neox.embed_in"),
    ("model", "gpt_neox"),
]);

#[cfg(test)]
mod tests {
    use crate::graph::model::ModelGraph;
    use crate::spec::model::ModelConfig;

    #[test]
    fn a_tied_head_keeps_its_bias() {
        let text = r#"{"model_type": "ctrl", "n_embd": 6, "n_layer": 2, "n_head": 3, "dff": 10, "vocab_size": 11,
            "n_positions": 7, "tie_word_embeddings": true}"#;
        let unique =
            |text: &str| ModelGraph::build(&ModelConfig::parse(text).unwrap()).unwrap().parameters().unique;
        let layer = 4 * (6 * 6 + 6) + 2 * 6 * 10 + 10 + 6 + 2 * 12;
        assert_eq!(unique(text), 11 * 6 + 2 * layer + 12 + 11);
        assert_eq!(unique(&text.replace("true", "false")) - unique(text), 11 * 6);
    }
}
