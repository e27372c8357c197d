//! Patches of an image without an encoder: one matrix to the width of the language model (Fuyu).
//!
//! Source: `modeling_fuyu.py` of transformers 5.24.

use crate::graph::assembly::Assembly;
use crate::graph::image_processor::ImageProcessor;
use crate::graph::part::encoder::{Patches, once};
use crate::graph::tower::{Positions, Tower};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// The matrix, by the wrapper's own keys. Rows of an image end in a token, which the processor adds.
pub fn fuyu(keys: &Keys<'_>, text: Count) -> Result<Tower, Error> {
    let (patch, channels) = (keys.count_or("patch_size", 30)?.value, keys.count_or("num_channels", 3)?.value);
    let shape = vec![text.value, channels * patch * patch];
    let mut block = Assembly::default();
    Patches { tensor: "vision_embed_tokens", shape, bias: true, embeddings: vec![] }
        .assemble(&mut block, text);
    let parts = vec![once(block, "patches", "model", Positions::Open)];
    Ok(Tower { name: "vision", parts, image_processor: ImageProcessor::Unknown })
}
