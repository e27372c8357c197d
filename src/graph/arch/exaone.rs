//! EXAONE: 3.x is Llama with other names; 4.0 has norms after attention and network only, and windows; the MoE model
//! has norms before them.

use serde_json::json;

use super::{deepseek, llama, qwen_next};
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::{Arrangement, Layer, Network, positioned};
use crate::graph::part::moe::Moe;
use crate::graph::part::names::TensorNames;
use crate::graph::part::window::{interleaved_windows, patterned_windows, uniform_window};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `exaone`: EXAONE 3.0 and 3.5. Transformers 5.24 reads them as Llama and writes Llama's keys.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    if keys.value("architectures").is_some_and(|stated| *stated == json!(["LlamaForCausalLM"])) {
        return llama::build(keys);
    }
    let hidden = keys.count("hidden_size")?;
    let layers = keys.count(keys.spelling(&["num_layers", "num_hidden_layers"])?)?;
    // The class's own default is not certain.
    keys.stated("tie_word_embeddings")?;
    let whole = DecoderSpec {
        names: NAMES,
        ..DecoderSpec::of(keys, hidden, layers, keys.count("vocab_size")?, false)?
    };
    let network = FeedForward::read(keys, hidden)?;
    Ok(whole.uniform(Layer::new(Attention::read_stated(keys, hidden)?, network)))
}

/// `exaone4`: norms after attention and network only.
pub fn build_exaone4(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let attention = Attention { qk_norm: QkNorm::PerHead, ..Attention::read_stated(keys, whole.hidden)? };
    let network = FeedForward::read(keys, whole.hidden)?;
    let layer = Layer { arrangement: Arrangement::PostNorm, ..Layer::new(attention, network) };
    let windows = windows(keys, whole.layers)?;
    Ok(whole.graph(positioned(windows, |window| layer.sliding(window)), vec![]))
}

/// `exaone_moe`: K-EXAONE: norms before, experts with a shared network, windows as in EXAONE 4.0.
pub fn build_moe(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let (hidden, layers) = (whole.hidden, whole.layers);
    // The class has no such biases and reads the network kinds from other keys.
    for key in ["attention_bias", "mlp_bias"] {
        keys.only(key, &json!(false))?;
    }
    let attention = Attention { qk_norm: QkNorm::PerHead, ..Attention::read_stated(keys, hidden)? };
    let moe = Moe {
        correction_bias: Some("mlp.gate.e_score_correction_bias"),
        shared: deepseek::shared_of(keys, hidden, "num_shared_experts")?,
        ..Moe::read(keys, hidden, ["num_experts", "num_experts_per_tok", "moe_intermediate_size"])?
    };
    let dense = FeedForward::read(keys, hidden)?;
    let sparse = deepseek::sparse_layers(keys, layers)?;
    keys.only("is_moe_layer", &json!(sparse))?;
    let layer = |(window, sparse): (Option<Count>, bool)| {
        let network = Network::either(sparse, &moe, &dense);
        Layer::new(attention.clone(), network).sliding(window)
    };
    let modules = keys.count_unless_zero("num_nextn_predict_layers")?.map_or(0, |modules| modules.value);
    // Multi-token prediction always has dense networks (vLLM, `exaone_moe_mtp.py`).
    let predicting = match modules {
        0 => vec![],
        _ => qwen_next::predicting(hidden, &Layer::new(attention.clone(), dense.clone()), modules),
    };
    let mut sparse = sparse.into_iter();
    let next = |window| layer((window, sparse.next().unwrap_or_default()));
    Ok(whole.graph(positioned(windows(keys, layers)?, next), predicting))
}

/// The window of each layer: `sliding_window_pattern` is a number, or a string of L (local) and G (global) layers.
fn windows(keys: &Keys<'_>, layers: Count) -> Result<Vec<Option<Count>>, Error> {
    let word = keys.value("sliding_window_pattern").and_then(|pattern| pattern.as_str());
    match word {
        Some(word) if !word.is_empty() => {
            let window = uniform_window(keys, Some(4096))?;
            let local = |layer: u64| word.as_bytes()[layer as usize % word.len()] == b'L';
            interleaved_windows(keys, layers, window, local)
        }
        _ => patterned_windows(keys, layers, 4096, 4),
    }
}

const NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.o_proj", "attn.attention.out_proj"),
    ("self_attn", "attn.attention"),
    ("mlp.gate_proj", "mlp.c_fc_0"),
    ("mlp.up_proj", "mlp.c_fc_1"),
    ("mlp.down_proj", "mlp.c_proj"),
    ("input_layernorm", "ln_1"),
    ("post_attention_layernorm", "ln_2"),
    ("model.layers", "transformer.h"),
    ("model.norm", "transformer.ln_f"),
    ("model.embed_tokens", "transformer.wte"),
]);
