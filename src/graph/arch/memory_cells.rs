//! RWKV-4 and xLSTM: mixers with states of fixed size in every layer.
//!
//! Source: `modeling_rwkv.py` and `modeling_xlstm.py` of transformers 5.24.

use serde_json::json;

use crate::graph::assembly::Affine;
use crate::graph::model::ModelGraph;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::{Layer, Mixer};
use crate::graph::part::memory_cells::{Mlstm, Wkv};
use crate::graph::part::misfit;
use crate::graph::part::names::TensorNames;
use crate::graph::part::recurrent::Recurrent;
use crate::graph::part::streams::{Extras, Side};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const RWKV: TensorNames = TensorNames::of_table(&[
    ("input_layernorm", "ln1"),
    ("post_attention_layernorm", "ln2"),
    ("mlp.up_proj", "feed_forward.key"),
    ("mlp.down_proj", "feed_forward.value"),
    ("model.embed_tokens", "rwkv.embeddings"),
    ("model.layers", "rwkv.blocks"),
    ("model.norm", "rwkv.ln_out"),
    ("lm_head", "head"),
]);

/// `rwkv`: the first layer has one more norm.
pub fn build_rwkv(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["rescale_every"]);
    let norm = Affine::ScaleAndShift;
    let max_context = keys.count_or_none("context_length")?.map(|tokens| tokens.value);
    let whole = DecoderSpec { names: RWKV, norm, max_context, ..DecoderSpec::read(keys, false)? };
    let hidden = whole.hidden;
    let inner = keys.count_or_none("attention_hidden_size")?.unwrap_or(hidden);
    let width = match keys.count_or_none("intermediate_size")? {
        Some(width) => width,
        None => Count::derived("intermediate_size", 4 * hidden.value, "4 × hidden_size"),
    };
    let mixer = Mixer::Recurrent(Box::new(Recurrent::Wkv(Wkv { hidden, inner })));
    let vector = |name: &str| Side::elements(name, vec![1, 1, hidden.value]);
    let sides = [
        Side::matrix("feed_forward.receptance", vec![hidden.value, hidden.value]),
        vector("feed_forward.time_mix_key"),
        vector("feed_forward.time_mix_receptance"),
    ];
    let first = ["pre_ln.weight", "pre_ln.bias"].map(|name| Side::elements(name, vec![hidden.value]));
    let layer = Layer { norm, ..Layer::of(hidden, mixer, FeedForward::plain(hidden, width, false)) };
    let placed = |index: u64| {
        let more = first.iter().filter(|_| index == 0).cloned();
        let sides = sides.iter().cloned().chain(more).collect();
        Layer { extras: Extras { sides, ..Extras::default() }, ..layer.clone() }
    };
    Ok(whole.graph((0..whole.layers.value).map(placed).collect(), vec![]))
}

const XLSTM: TensorNames = TensorNames::of_table(&[
    ("input_layernorm", "norm_mlstm"),
    ("post_attention_layernorm", "norm_ffn"),
    ("mlp.gate_proj", "ffn.proj_up_gate"),
    ("mlp.up_proj", "ffn.proj_up"),
    ("mlp.down_proj", "ffn.proj_down"),
    ("model.embed_tokens", "backbone.embeddings"),
    ("model.layers", "backbone.blocks"),
    ("model.norm", "backbone.out_norm"),
]);

/// `xlstm`: matrix memories alone.
pub fn build_xlstm(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.only("use_bias", &json!(false))?;
    keys.only("weight_mode", &json!("single"))?;
    keys.set_aside(&[
        "autocast_kernel_dtype",
        "chunkwise_kernel",
        "gate_soft_cap",
        "inference_state_dtype",
        "max_inference_chunksize",
        "mode",
        "norm_reduction_force_float32",
        "output_logit_soft_cap",
        "return_last_states",
        "sequence_kernel",
        "step_kernel",
    ]);
    let hidden = keys.count(keys.spelling(&["hidden_size", "embedding_dim"])?)?;
    let layers = keys.count(keys.spelling(&["num_hidden_layers", "num_blocks"])?)?;
    keys.set_aside(&["embedding_dim", "num_blocks"]);
    let whole = DecoderSpec::of(keys, hidden, layers, keys.count("vocab_size")?, false)?;
    let whole = DecoderSpec { names: XLSTM, final_norm: keys.flag("add_out_norm", true)?, ..whole };
    let heads = keys.count_or("num_heads", 8)?;
    let per_head = |key, usual: u64, symbol| -> Result<Count, Error> {
        let width = keys.scaled(key, hidden.value)?.unwrap_or(usual);
        match width.is_multiple_of(heads.value) && width > 0 {
            true => Ok(Count::derived(symbol, width / heads.value, "hidden_size × its factor / num_heads")),
            false => Err(misfit(heads, format!("a divisor of hidden_size × {key}, {width}"))),
        }
    };
    let mixer = Mlstm {
        hidden,
        heads,
        key_dim: per_head("qk_dim_factor", hidden.value / 2, "key_dim")?,
        value_dim: per_head("v_dim_factor", hidden.value, "value_dim")?,
        chunk: keys.count_or("chunk_size", 64)?,
    };
    let multiple = keys.count_or("ffn_round_up_to_multiple_of", 64)?.value;
    let width = keys.scaled("ffn_proj_factor", hidden.value)?.unwrap_or(hidden.value * 2667 / 1000);
    let width = width.div_ceil(multiple) * multiple;
    let width = Count::derived("ffn_width", width, "hidden_size × ffn_proj_factor, rounded up");
    let mixer = Mixer::Recurrent(Box::new(Recurrent::Mlstm(mixer)));
    Ok(whole.uniform(Layer::of(hidden, mixer, FeedForward::gated(hidden, width))))
}

#[cfg(test)]
mod tests {
    use crate::graph::model::ModelGraph;
    use crate::spec::model::ModelConfig;

    fn graph(text: &str) -> ModelGraph {
        ModelGraph::build(&ModelConfig::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn weighted_sums_keep_three_numbers_a_channel_and_two_tokens() {
        let graph = graph(
            r#"{"model_type": "rwkv", "hidden_size": 6, "num_hidden_layers": 2, "vocab_size": 11,
            "attention_hidden_size": 8, "intermediate_size": 10}"#,
        );
        let layer = 4 * 6 * 8 + 2 * 8 + 5 * 6 + 2 * 6 * 10 + 6 * 6 + 4 * 6;
        assert_eq!(graph.parameters().unique, 2 * 11 * 6 + 2 * 6 + 2 * layer + 2 * 6);
        assert_eq!(graph.state_bytes_per_sequence(), 2 * (3 * 8 * 4 + 2 * 6 * 2));
    }

    #[test]
    fn matrix_memories_keep_a_matrix_a_vector_and_a_number_a_head() {
        let graph = graph(
            r#"{"model_type": "xlstm", "hidden_size": 8, "num_hidden_layers": 2, "vocab_size": 11, "num_heads": 2,
            "ffn_round_up_to_multiple_of": 4}"#,
        );
        let layer = 2 * 8 * 4 + 3 * 8 * 8 + 2 * (8 * 2 + 2) + 8 + 3 * 8 * 24 + 2 * 8;
        assert_eq!(graph.parameters().unique, 2 * 11 * 8 + 8 + 2 * layer);
        assert_eq!(graph.state_bytes_per_sequence(), 2 * 2 * (2 * 4 + 2 + 1) * 4);
    }
}
