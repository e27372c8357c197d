//! Nemotron-3 and 4, Arcee and Apertus: plain networks of two matrices in pre-norm layers.

use crate::graph::assembly::Affine;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::{Layer, Network};
use crate::graph::part::whole::Whole;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `nemotron`: LayerNorm with shift.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let norm = Affine::ScaleAndShift;
    let whole = Whole { norm, ..Whole::read(keys, false)? };
    let layer = Layer { norm, ..plain(keys, &whole)? };
    Ok(whole.uniform(layer))
}

/// `arcee`: RMSNorm.
pub fn build_arcee(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = Whole::read(keys, false)?;
    let layer = plain(keys, &whole)?;
    Ok(whole.uniform(layer))
}

fn plain(keys: &Keys<'_>, whole: &Whole) -> Result<Layer, Error> {
    let attention = Attention::read_stated(keys, whole.hidden)?.biased(keys.flag("attention_bias", false)?);
    let (width, bias) = (keys.count("intermediate_size")?, keys.flag("mlp_bias", false)?);
    Ok(Layer::new(attention, Network::Dense(FeedForward::plain(whole.hidden, width, bias))))
}
