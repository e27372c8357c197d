//! Mixtral: Mistral's attention, a mixture of experts in every layer.

use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::layer::{Layer, Network};
use crate::graph::part::moe::Moe;
use crate::graph::part::window::uniform_window;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `mixtral`: `intermediate_size` is the width of one expert.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let window = uniform_window(keys, None)?;
    let attention = Attention { mask: window.into(), ..Attention::read_stated(keys, whole.hidden)? };
    let moe = Moe::routed(
        whole.hidden,
        keys.count("num_local_experts")?,
        keys.count("num_experts_per_tok")?,
        keys.count("intermediate_size")?,
    )?;
    Ok(whole.uniform(Layer::new(attention, Network::Moe(Box::new(moe)))))
}
