//! SigLIP with pixel shuffle before the projector: Idefics3, SmolVLM, Command A Vision, Aya Vision.
//!
//! Defaults for missing keys: `Idefics3VisionConfig` and the corresponding classes of transformers. Image tiling is
//! defined by processors only.

use super::clip::{Vit, encoder, siglip};
use super::{matrix_once, merged_width};
use crate::graph::assembly::Assembly;
use crate::graph::image_processor::ImageProcessor;
use crate::graph::operator::{Operator, Split};
use crate::graph::part::encoder::{Projection, linear, norm, once};
use crate::graph::tower::{Positions, Tower};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Idefics3's projector: one matrix without a bias after a pixel shuffle of `scale`.
pub fn idefics(keys: &Keys<'_>, text: Count, scale: Count) -> Result<Tower, Error> {
    // Image sizes before tiling.
    keys.set_aside(&["max_image_size", "size", "use_base_siglip", "model_type"]);
    let Vit { hidden, mut parts, .. } = encoder(keys, false, "model.vision_model")?;
    let wide = merged_width(hidden, scale);
    let tensor = "modality_projection.proj";
    let matrix = Projection { name: "projection", tensor, input: wide, output: text, bias: false };
    parts.push(matrix_once("connector", matrix, "model.connector", Positions::Open));
    Ok(Tower { name: "vision", parts, image_processor: ImageProcessor::Unknown })
}

/// Cohere's projector: two matrices with a gate between them, so that the second is half as wide as the first;
/// `normed`: after a norm (Aya).
pub fn cohere(
    keys: &Keys<'_>,
    text: Count,
    (scale, inner): (Count, Count),
    normed: bool,
) -> Result<Tower, Error> {
    let Vit { hidden, mut parts, .. } = siglip(keys)?;
    let wide = merged_width(hidden, scale);
    if !inner.value.is_multiple_of(2) {
        let fix = "copy the value from the model's config.json";
        return Err(Error::new(inner.symbol, inner.value.to_string(), "an even number", fix));
    }
    let half = Count::derived("gated_width", inner.value / 2, "half of the first matrix");
    let (mut block, mut stream) = Assembly::from_input(wide);
    if normed {
        stream = norm(&mut block, stream, "projector_norm", "layernorm", wide, true);
    }
    let up = Projection { name: "linear_1", tensor: "linear_1", input: wide, output: inner, bias: true };
    let down = Projection { name: "linear_2", tensor: "linear_2", input: half, output: text, bias: true };
    let up = linear(&mut block, stream, up, Split::Column);
    let gated = Operator::Activation { width: half, gated: true };
    let gated = block.node("activation", gated, vec![], &[up]);
    linear(&mut block, gated, down, Split::Row);
    parts.push(once(block, "projector", "model.multi_modal_projector", Positions::Open));
    Ok(Tower { name: "vision", parts, image_processor: ImageProcessor::Unknown })
}
