//! MiniMax-M3's encoder: CLIP's layers with rotary positions, pairs of frames, two projectors.
//!
//! Defaults for missing keys: `MiniMaxM3VLVisionConfig` of transformers.

use serde_json::json;

use super::clip::NAMES;
use super::{merged_width, side, stretched, two_once};
use crate::graph::arch::class_keys::ignored;
use crate::graph::assembly::Assembly;
use crate::graph::part::encoder::{Encoder, Patches, Projection, norm, once};
use crate::graph::tower::{Positions, Tower};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::image::ImageSize;
use crate::spec::model::keys::Keys;

/// Merged patches per side, and frames per patch: in a nested object, which transformers writes too, or next to the
/// other keys.
fn merged(keys: &Keys<'_>) -> Result<(Count, u64), Error> {
    let Some(compression) = keys.section_or_none("img_token_compression_config")? else {
        let frames = keys.count_or("temporal_patch_size", 2)?.value;
        return Ok((keys.count_or("spatial_merge_size", 2)?, frames));
    };
    compression.only("image_token_compression_method", &json!("patch_merge"))?;
    let merge = compression.count("spatial_merge_size")?;
    let frames = compression.count("temporal_patch_size")?.value;
    keys.only("spatial_merge_size", &json!(merge.value))?;
    keys.only("temporal_patch_size", &json!(frames))?;
    Ok((merge, frames))
}

/// The encoder; `text` is the language model's width, `projector` the width between the first two matrices.
pub fn tower(keys: &Keys<'_>, text: Count, projector: Count) -> Result<Tower, Error> {
    keys.set_aside(ignored("minimax_m3_vl vision_config"));
    let channels = keys.count_or("num_channels", 3)?.value;
    keys.only("position_embedding_type", &json!("rope"))?;
    keys.only("rope_mode", &json!("3d"))?;
    let (merge, frames) = merged(keys)?;
    let (hidden, heads) = (keys.count_or("hidden_size", 1280)?, keys.count_or("num_attention_heads", 16)?);
    let patch = keys.count_or("patch_size", 14)?;
    let largest = keys.count_or("image_size", 2016)?;
    side(largest, patch)?;
    let positions = Positions::PerCell(merge.value * merge.value);
    let sight = stretched(patch.value, merge.value, Some(ImageSize::square(largest.value)));
    let prefix = "model.vision_tower";
    let mut block = Assembly::default();
    let shape = vec![hidden.value, channels, frames, patch.value, patch.value];
    let patches = Patches { tensor: "embeddings.proj", shape, bias: false, embeddings: vec![] };
    let stream = patches.assemble(&mut block, hidden);
    norm(&mut block, stream, "pre_norm", "pre_layrnorm", hidden, true);
    let stem = once(block, "patches", prefix, positions);
    let encoder = Encoder::biased(hidden, heads, keys.count_or("intermediate_size", 5120)?, &NAMES);
    let layers = keys.count_or("num_hidden_layers", 32)?;
    let layers = encoder.layers(&format!("{prefix}.layers"), layers, positions, &[])?;
    let prefix = "model.multi_modal_projector";
    let matrix = |name, input, output| Projection { name, tensor: name, input, output, bias: true };
    let (up, down) = (matrix("linear_1", hidden, projector), matrix("linear_2", projector, text));
    let each = two_once("projector", up, down, prefix, positions);
    let wide = merged_width(text, merge);
    let (up, down) = (matrix("merge_linear_1", wide, projector), matrix("merge_linear_2", projector, text));
    let joined = two_once("merger", up, down, prefix, Positions::PerCell(1));
    Ok(Tower { name: "vision", parts: vec![stem, layers, each, joined], image_processor: sight })
}
