//! SigLIP's layers for images of any size: SigLIP-2 before LFM2-VL, the encoders of VideoLLaMA-3 and PaddleOCR-VL.
//!
//! Source: `modeling_lfm2_vl.py`, `modular_video_llama_3.py` and `modular_paddleocr_vl.py` of transformers 5.24.

use serde_json::json;

use super::clip::{NAMES, idle_head};
use super::{merged_width, side, stretched, two_layers, two_once};
use crate::graph::assembly::Assembly;
use crate::graph::image_processor::ImageProcessor;
use crate::graph::part::encoder::{Encoder, Patches, Projection, norm, norm_once, once};
use crate::graph::tower::{Positions, Tower, TowerPart};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Patches, layers and the last norm under `prefix`, with `rows` learned positions, if any; `flat`: the matrix of patches
/// has two dimensions.
fn encoder(
    keys: &Keys<'_>,
    prefix: &str,
    (rows, flat): (Option<u64>, bool),
    positions: Positions,
) -> Result<(Count, Vec<TowerPart>), Error> {
    keys.set_aside(&["model_type"]);
    let channels = keys.count_or("num_channels", 3)?.value;
    let (hidden, heads) = (keys.count("hidden_size")?, keys.count("num_attention_heads")?);
    let patch = keys.count("patch_size")?.value;
    let shape = match flat {
        true => vec![hidden.value, channels * patch * patch],
        false => vec![hidden.value, channels, patch, patch],
    };
    let table = rows.map(|rows| ("embeddings.position_embedding.weight", vec![rows, hidden.value]));
    let embeddings = table.into_iter().collect();
    let mut block = Assembly::default();
    Patches { tensor: "embeddings.patch_embedding", shape, bias: true, embeddings }
        .assemble(&mut block, hidden);
    let stem = once(block, "patches", prefix, positions);
    let encoder = Encoder::biased(hidden, heads, keys.count("intermediate_size")?, &NAMES);
    let layers = keys.count("num_hidden_layers")?;
    let layers = encoder.layers(&format!("{prefix}.encoder.layers"), layers, positions, &[])?;
    let last = norm_once("post_norm", "post_layernorm", hidden, true, prefix, positions);
    Ok((hidden, vec![stem, layers, last]))
}

/// Keys of LFM2-VL's projector.
pub struct UnshuffledProjector {
    /// The language model's width.
    pub text: Count,
    /// Neighbours per side that are joined into one token.
    pub merge: Count,
    /// Width between its two matrices.
    pub inner: Count,
    /// Whether both have biases.
    pub bias: bool,
    /// Whether there is a norm before them.
    pub normed: bool,
}

/// SigLIP-2 and LFM2-VL's projector. Images are divided into tiles by the processor.
pub fn lfm2(keys: &Keys<'_>, projector: &UnshuffledProjector) -> Result<Tower, Error> {
    let UnshuffledProjector { text, merge, inner, bias, normed } = *projector;
    keys.only("model_type", &json!("siglip2_vision_model"))?;
    let prefix = "model.vision_tower";
    let rows = keys.count_or("num_patches", 256)?.value;
    let (hidden, mut parts) = encoder(keys, prefix, (Some(rows), true), Positions::Open)?;
    if keys.flag("vision_use_head", true)? {
        parts.push(idle_head(keys, hidden, prefix)?);
    }
    let wide = merged_width(hidden, merge);
    let (mut block, mut stream) = Assembly::from_input(wide);
    if normed {
        stream = norm(&mut block, stream, "projector_norm", "layer_norm", wide, true);
    }
    let up = Projection { name: "linear_1", tensor: "linear_1", input: wide, output: inner, bias };
    let down = Projection { name: "linear_2", tensor: "linear_2", input: inner, output: text, bias };
    two_layers(&mut block, stream, up, down);
    parts.push(once(block, "projector", "model.multi_modal_projector", Positions::Open));
    Ok(Tower { name: "vision", parts, image_processor: ImageProcessor::Unknown })
}

/// Cosmos-3 Edge: SigLIP-2, and a merger of width `inner` (`modular_cosmos3_edge.py` of transformers 5.24).
pub fn cosmos(keys: &Keys<'_>, text: Count, inner: Count) -> Result<Tower, Error> {
    let rows = keys.count_or("num_patches", 256)?.value;
    let merge = keys.count_or("spatial_merge_size", 2)?;
    let patch = keys.count("patch_size")?.value;
    let positions = Positions::PerCell(merge.value * merge.value);
    let (hidden, mut parts) = encoder(keys, "model.visual", (Some(rows), true), positions)?;
    let place = "model.projector";
    parts.push(norm_once("projector_norm", "norm", hidden, true, place, positions));
    let wide = merged_width(hidden, merge);
    let up = Projection { name: "linear_1", tensor: "linear_fc1", input: wide, output: inner, bias: true };
    let down = Projection { name: "linear_2", tensor: "linear_fc2", input: inner, output: text, bias: true };
    parts.push(two_once("projector", up, down, place, Positions::PerCell(1)));
    Ok(Tower { name: "vision", parts, image_processor: stretched(patch, merge.value, None) })
}

/// VideoLLaMA-3's encoder, which rotates instead of learning positions, and two matrices.
pub fn video_llama(keys: &Keys<'_>, text: Count) -> Result<Tower, Error> {
    let (hidden, mut parts) = encoder(keys, "model.vision_model", (None, false), Positions::Open)?;
    let up = Projection { name: "linear_1", tensor: "0", input: hidden, output: text, bias: true };
    let down = Projection { name: "linear_2", tensor: "2", input: text, output: text, bias: true };
    parts.push(two_once("projector", up, down, "model.projector.readout", Positions::Open));
    Ok(Tower { name: "vision", parts, image_processor: ImageProcessor::Unknown })
}

/// PaddleOCR-VL's encoder, and a projector of merged neighbours.
pub fn paddle(keys: &Keys<'_>, text: Count) -> Result<Tower, Error> {
    let patch = keys.count("patch_size")?;
    let side = side(keys.count("image_size")?, patch)?;
    let merge = keys.count_or("spatial_merge_size", 2)?;
    let positions = Positions::PerCell(merge.value * merge.value);
    let prefix = "model.visual.vision_model";
    let (hidden, mut parts) = encoder(keys, prefix, (Some(side * side), false), positions)?;
    let place = "model.projector";
    parts.push(norm_once("projector_norm", "pre_norm", hidden, true, place, positions));
    let wide = merged_width(hidden, merge);
    let up = Projection { name: "linear_1", tensor: "linear_1", input: wide, output: wide, bias: true };
    let down = Projection { name: "linear_2", tensor: "linear_2", input: wide, output: text, bias: true };
    parts.push(two_once("projector", up, down, place, Positions::PerCell(1)));
    Ok(Tower { name: "vision", parts, image_processor: stretched(patch.value, merge.value, None) })
}
