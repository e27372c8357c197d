//! EXAONE: 3.x is Llama under names of its own; 4.0 has norms after attention and network only, and windows.

use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm};
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::{Arrangement, Layer, Network};
use crate::graph::part::names::Names;
use crate::graph::part::whole::Whole;
use crate::graph::part::window::{interleaved_windows, patterned_windows, uniform_window};
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `exaone`: EXAONE 3.0 and 3.5.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let hidden = keys.count("hidden_size")?;
    let layers = keys.count(keys.spelling(&["num_layers", "num_hidden_layers"])?)?;
    // The class's own default is not known for certain.
    keys.stated("tie_word_embeddings")?;
    let whole = Whole { names: NAMES, ..Whole::of(keys, hidden, layers, keys.count("vocab_size")?, false)? };
    let network = Network::Dense(FeedForward::gated(hidden, keys.count("intermediate_size")?));
    Ok(whole.uniform(Layer::new(Attention::read_stated(keys, hidden)?, network)))
}

/// `exaone4`: `sliding_window_pattern` is a number, or a word of L (local) and G (global) layers.
pub fn build_exaone4(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = Whole::read(keys, false)?;
    let attention = Attention { qk_norm: QkNorm::PerHead, ..Attention::read_stated(keys, whole.hidden)? };
    let network = Network::Dense(FeedForward::gated(whole.hidden, keys.count("intermediate_size")?));
    let layer = Layer { arrangement: Arrangement::PostNorm, ..Layer::new(attention, network) };
    let word = keys.value("sliding_window_pattern").and_then(|pattern| pattern.as_str());
    let windows = match word {
        Some(word) if !word.is_empty() => {
            let window = uniform_window(keys, Some(4096))?;
            let local = |layer: u64| word.as_bytes()[layer as usize % word.len()] == b'L';
            interleaved_windows(keys, whole.layers, window, local)?
        }
        _ => patterned_windows(keys, whole.layers, 4096, 4)?,
    };
    Ok(whole.graph(windows.into_iter().map(|window| layer.sliding(window)).collect(), vec![]))
}

const NAMES: Names = Names {
    table: &[
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
    ],
    transposed: false,
};
