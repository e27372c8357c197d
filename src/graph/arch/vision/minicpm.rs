//! MiniCPM-V 4.6 and MiniCPM-OCR: SigLIP with a merger of windows between two of its layers, and further mergers before
//! the language model.
//!
//! Source: `modular_minicpmv4_6.py` and `modular_minicpm_ocr.py` of transformers 5.24. Image tiling is defined by
//! processors only.

use serde_json::json;

use super::clip::{NAMES, Vit, encoder};
use super::{merged_width, two_layers};
use crate::graph::assembly::Assembly;
use crate::graph::image_processor::ImageProcessor;
use crate::graph::mask::AttentionMask;
use crate::graph::part::encoder::{Encoder, Projection, norm, once};
use crate::graph::tower::{Positions, Tower, TowerPart};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Neighbours per side that a merger joins.
const TWO: Count = Count::class_default("merge_kernel_size", 2);

/// The encoder; `times` mergers to the width `text`; `shorter`: its last layer is dropped.
pub fn tower(keys: &Keys<'_>, text: Count, times: Count, shorter: bool) -> Result<Tower, Error> {
    keys.set_aside(&["model_type", "insert_layer_id"]);
    keys.only("window_kernel_size", &json!([2, 2]))?;
    let prefix = "model.vision_tower";
    let Vit { hidden, mut parts, .. } = encoder(keys, false, prefix)?;
    if shorter && let Some(layers) = parts.get_mut(1) {
        layers.block.layers.pop();
    }
    // Slices of an image differ in size.
    parts.iter_mut().for_each(|part| part.positions = Positions::Open);
    parts.extend(window_merger(keys, hidden, &format!("{prefix}.vit_merger"))?);
    for index in 0..times.value {
        let out = if index + 1 == times.value { text } else { hidden };
        let wide = merged_width(hidden, TWO);
        parts.push(merger(&format!("model.merger.mlp.{index}"), [wide, wide, out]));
    }
    Ok(Tower { name: "vision", parts, image_processor: ImageProcessor::Unknown })
}

/// Whether a file drops the last layer of the encoder.
pub fn drops_last(keys: &Keys<'_>) -> Result<bool, Error> {
    keys.set_aside(&["downsample_mode", "image_size", "insert_layer_id", "patch_size"]);
    keys.only("merge_kernel_size", &json!([2, 2]))?;
    keys.flag_or_none("drop_vision_last_layer")
}

/// Attention inside windows of two by two, which are then joined.
fn window_merger(keys: &Keys<'_>, hidden: Count, prefix: &str) -> Result<Vec<TowerPart>, Error> {
    let wide = merged_width(hidden, TWO);
    let inner = keys.count("intermediate_size")?;
    let four = Count::derived("merged_intermediate", 4 * inner.value, "4 × intermediate_size");
    let layer = Encoder::biased(hidden, keys.count("num_attention_heads")?, inner, &NAMES);
    let mask = AttentionMask::Tile(Count::derived("window_positions", 4, "window_kernel_size²"));
    let attention = layer.attention_once(prefix, "window_attention", mask, Positions::Open)?;
    Ok(vec![attention, merger(prefix, [wide, four, hidden])])
}

/// A norm and two matrices of these widths.
fn merger(prefix: &str, [wide, inner, out]: [Count; 3]) -> TowerPart {
    let (mut block, stream) = Assembly::from_input(wide);
    let stream = norm(&mut block, stream, "merger_norm", "pre_norm", wide, true);
    let up = Projection { name: "merger_1", tensor: "linear_1", input: wide, output: inner, bias: true };
    let down = Projection { name: "merger_2", tensor: "linear_2", input: inner, output: out, bias: true };
    two_layers(&mut block, stream, up, down);
    once(block, "merger", prefix, Positions::Open)
}
