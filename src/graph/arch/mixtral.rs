//! Mixtral: Mistral's attention, a mixture of experts in every layer.

use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::layer::Layer;
use crate::graph::part::moe::Moe;
use crate::graph::part::window::uniform_window;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `mixtral`: `intermediate_size` is the width of one expert.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let window = uniform_window(keys, None)?;
    let attention = Attention { mask: window.into(), ..Attention::read_stated(keys, whole.hidden)? };
    Ok(whole.uniform(Layer::new(
        attention,
        Moe::read(keys, whole.hidden, ["num_local_experts", "num_experts_per_tok", "intermediate_size"])?,
    )))
}
