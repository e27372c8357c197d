//! Phi-3 and Phi-4-mini: Llama's layers with Q, K and V stored joined, and gate and up stored joined.

use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::Layer;
use crate::graph::part::names::TensorNames;
use crate::graph::part::window::uniform_window;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `phi3`: no biases. A file that sets them would be another model.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec { names: NAMES, ..DecoderSpec::read(keys, false)? };
    let window = uniform_window(keys, None)?;
    let attention = Attention { mask: window.into(), ..Attention::read_grouped(keys, whole.hidden)? };
    Ok(whole.uniform(Layer::new(attention, FeedForward::read(keys, whole.hidden)?)))
}

const NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.q_proj self_attn.k_proj self_attn.v_proj", "self_attn.qkv_proj"),
    ("mlp.gate_proj mlp.up_proj", "mlp.gate_up_proj"),
]);
