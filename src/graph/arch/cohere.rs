//! Cohere's Command models: attention and network in parallel behind one LayerNorm without shift.

use serde_json::json;

use crate::graph::arch::class_keys::ignored;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::{Arrangement, Layer, positioned};
use crate::graph::part::window::patterned_windows;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `cohere`: Command R; Command R+ with one scale per head of Q and K.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, true)?;
    let each = keys.flag("use_qk_norm", false)?;
    let qk_norm = if each { QkNorm::EachHead } else { QkNorm::Absent };
    Ok(whole.uniform(layer(keys, &whole, qk_norm)?))
}

/// `cohere2`: Command A and R7B: one full layer in four.
pub fn build_cohere2(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, true)?;
    let layer = layer(keys, &whole, QkNorm::Absent)?;
    let windows = patterned_windows(keys, whole.layers, 4096, 4)?;
    Ok(whole.graph(positioned(windows, |window| layer.sliding(window)), vec![]))
}

fn layer(keys: &Keys<'_>, whole: &DecoderSpec, qk_norm: QkNorm) -> Result<Layer, Error> {
    // Vendor metadata in the checkpoints; the layer has one form.
    keys.set_aside(ignored("cohere"));
    for key in
        ["use_parallel_block", "use_gated_activation", "use_embedding_sharing", "use_parallel_embedding"]
    {
        keys.only(key, &json!(true))?;
    }
    let attention = Attention::read_grouped(keys, whole.hidden)?.biased(keys.flag("attention_bias", false)?);
    let network = FeedForward::read(keys, whole.hidden)?;
    let layer = Layer::new(Attention { qk_norm, ..attention }, network);
    Ok(Layer { arrangement: Arrangement::Parallel, ..layer })
}
