//! RecurrentGemma (Griffin): RG-LRU interleaved with local attention.
//!
//! Defaults for missing keys: `RecurrentGemmaConfig` of transformers.

use serde_json::Value;

use crate::graph::arch::class_keys::ignored;
use crate::graph::mask::AttentionMask;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::{COPY, kinds_of};
use crate::graph::part::layer::{Layer, Mixer};
use crate::graph::part::lru::Lru;
use crate::graph::part::names::TensorNames;
use crate::graph::part::recurrent::Recurrent;
use crate::graph::part::rope::RopeClass;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: TensorNames = TensorNames::of_table(&[
    ("model.norm", "model.final_norm"),
    ("input_layernorm", "temporal_pre_norm"),
    ("post_attention_layernorm", "channel_pre_norm"),
    ("self_attn", "temporal_block"),
    ("mlp", "mlp_block"),
]);

/// `recurrent_gemma`: `block_types` repeat over the depth; `intermediate_size` is twice the network's width.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("recurrent_gemma"));
    let whole = DecoderSpec { names: NAMES, ..DecoderSpec::read(keys, true)? };
    let hidden = whole.hidden;
    let kinds = [("recurrent", false), ("attention", true)];
    let words = keys.texts("block_types")?;
    let attends = match &words {
        Some(words) => kinds_of("block_types", words, &kinds, COPY)?,
        None => vec![false, false, true],
    };
    let bias = keys.flag("attention_bias", false)?;
    let window = keys.count_or("attention_window_size", 2048)?;
    let attention = Attention::read_grouped(keys, hidden)?.rotated(keys, RopeClass::HALF)?;
    let attention =
        Attention { qkv_bias: bias, o_bias: true, mask: AttentionMask::Window(window), ..attention };
    let width = keys.count_or_none("lru_width")?.unwrap_or(hidden);
    let blocks = attention.heads;
    let (Some(_), false) =
        (width.value.checked_rem(blocks.value).filter(|rest| *rest == 0), attends.is_empty())
    else {
        return Err(Error::new(
            "lru_width",
            width.value.to_string(),
            format!("a multiple of num_attention_heads {}, and non-empty block_types", blocks.value),
            "copy the values from the model's config.json",
        ));
    };
    let block_width =
        Count::derived("block_width", width.value / blocks.value, "lru_width / num_attention_heads");
    let kernel = keys.count_or("conv1d_width", 4)?;
    let lru = Recurrent::Lru(Lru { hidden, width, blocks, block_width, kernel });
    let inner = keys.count("intermediate_size")?;
    let inner = Count::derived("intermediate", inner.value / 2, "intermediate_size / 2");
    let network = FeedForward { bias: true, ..FeedForward::gated(hidden, inner) };
    keys.only("sliding_window", &Value::Null)?;
    let layer = |layer: u64| {
        let mixer = Mixer::either(attends[layer as usize % attends.len()], &attention, &lru);
        Layer::of(hidden, mixer, network.clone())
    };
    let layers = (0..whole.layers.value).map(layer).collect();
    Ok(whole.graph(layers, vec![]))
}
