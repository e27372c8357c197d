//! Vision encoders, one file per kind. Wrappers attach them to language models.

pub mod clip;
pub mod conformer;
pub mod gemma3n;
pub mod gemma4;
pub mod glm;
pub mod intern;
pub mod llama4;
pub mod minicpm;
pub mod minimax;
pub mod mllama;
pub mod mobilenet;
pub mod moonvit;
pub mod omni;
pub mod patches;
pub mod pixtral;
pub mod qwen;
pub mod sam;
pub mod shuffle;
pub mod siglip2;
pub mod step;
pub mod whisper;

use super::super::part::encoder::{Projection, linear, once};
use crate::graph::assembly::Assembly;
use crate::graph::image_processor::{ImageProcessor, PatchGrid, SizeRounding};
use crate::graph::operator::{Operator, Split};
use crate::graph::part::misfit;
use crate::graph::tower::{Positions, TowerPart};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::image::ImageSize;
use petgraph::graph::NodeIndex;

/// Two matrices with an activation between them.
fn two_layers(block: &mut Assembly, from: NodeIndex, up: Projection, down: Projection) -> NodeIndex {
    let width = up.output;
    let up = linear(block, from, up, Split::Column);
    let activated = block.node("activation", Operator::Activation { width, gated: false }, vec![], &[up]);
    linear(block, activated, down, Split::Row)
}

/// Two matrices with an activation between them, as a part named `name`.
fn two_once(
    name: &'static str,
    up: Projection,
    down: Projection,
    prefix: &str,
    positions: impl Into<Positions>,
) -> TowerPart {
    let (mut block, stream) = Assembly::from_input(up.input);
    two_layers(&mut block, stream, up, down);
    once(block, name, prefix, positions)
}

/// A replicated matrix as a part named `name`.
fn matrix_once(
    name: &'static str,
    matrix: Projection,
    prefix: &str,
    positions: impl Into<Positions>,
) -> TowerPart {
    let (mut block, stream) = Assembly::from_input(matrix.input);
    linear(&mut block, stream, matrix, Split::Replicate);
    once(block, name, prefix, positions)
}

/// Patches along one side of an image.
fn side(image_size: Count, patch_size: Count) -> Result<u64, Error> {
    if image_size.value < patch_size.value {
        return Err(misfit(image_size, format!("at least the patch_size {}", patch_size.value)));
    }
    Ok(image_size.value / patch_size.value)
}

/// Images of any size, in cells of `merge` × `merge` patches, resized to whole cells.
fn stretched(patch: u64, merge: u64, usual: Option<ImageSize>) -> ImageProcessor {
    ImageProcessor::DynamicPatches(PatchGrid {
        side: patch * merge,
        rounding: SizeRounding::Nearest,
        longest: None,
        row_end: 0,
        usual,
    })
}

/// The width of `merge` × `merge` concatenated neighbours.
fn merged_width(hidden: Count, merge: Count) -> Count {
    let width = hidden.value * merge.value * merge.value;
    Count::derived("merged_width", width, "hidden_size × spatial_merge_size²")
}
