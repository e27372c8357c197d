//! Encoders beside the language model: vision and audio towers, with what leads from them to the stream.
//!
//! They compute once per image or clip, before the prompt does. Knows nothing of how often that happens.

use super::image_processor::{ImagePatches, ImageProcessor};
use super::mask::AttentionMask;
use super::model::{Block, OperatorNode};
use super::operator::Operator;
use super::tensor::Weight;
use crate::quantity::count::Count;

/// An encoder.
#[derive(Clone, Debug)]
pub struct Tower {
    /// Modality: `vision` or `audio`.
    pub name: &'static str,
    /// Its blocks in execution order.
    pub parts: Vec<TowerPart>,
    /// How an image becomes what it computes.
    pub sight: ImageProcessor,
}

/// Positions that a part computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Positions {
    /// So many of every image, or of every piece of it.
    Each(Count),
    /// So many for each cell of an image of any size.
    PerCell(u64),
    /// Not told.
    Open,
}

impl From<Count> for Positions {
    fn from(count: Count) -> Positions {
        Positions::Each(count)
    }
}

impl Positions {
    /// Of a piece of an image so divided.
    pub fn of(self, view: &ImagePatches) -> Option<Count> {
        match self {
            Positions::Each(count) => Some(count),
            Positions::PerCell(each) => Some(Count::derived(
                "positions",
                each * view.cells,
                "cells of the image × positions of a cell",
            )),
            Positions::Open => None,
        }
    }
}

/// Equal layers of an encoder, or what stands before and after them.
#[derive(Clone, Debug)]
pub struct TowerPart {
    /// The checkpoint's name of it, e.g. `model.vision_tower.encoder.layers`; layers follow by number.
    pub prefix: String,
    /// Its operators; without `layers` it comes once.
    pub block: Block,
    /// Positions of one image or clip that it computes.
    pub positions: Positions,
}

impl TowerPart {
    /// How often the block comes.
    pub fn repeats(&self) -> u64 {
        self.block.layers.len().max(1) as u64
    }

    /// Tensors by their full names.
    fn tensors(&self) -> Vec<Weight> {
        let weights = self.block.weights();
        let under = |prefix: &str| {
            let named =
                |weight: &Weight| Weight { name: format!("{prefix}.{}", weight.name), ..weight.clone() };
            weights.iter().map(named).collect::<Vec<_>>()
        };
        match self.block.layers.as_slice() {
            [] => under(&self.prefix),
            layers => layers.iter().flat_map(|layer| under(&format!("{}.{layer}", self.prefix))).collect(),
        }
    }

    /// Operations of matrices and attention for one piece of an image; norms and activations are left out.
    fn flops(&self, view: &ImagePatches) -> Option<u128> {
        let positions = self.positions.of(view)?.value;
        let product = |factors: &[u64]| {
            factors.iter().fold(2 * u128::from(self.repeats()), |so_far, factor| {
                so_far.saturating_mul(u128::from(*factor))
            })
        };
        let one = |node: &OperatorNode| match node.operator {
            Operator::Linear { input, output, .. } => product(&[positions, input.value, output.value]),
            Operator::Attention { heads, head_dim, v_head_dim, reach, .. } => {
                let keys = match reach {
                    AttentionMask::Tile(tile) => positions.min(tile.value),
                    _ => positions,
                };
                product(&[positions, keys, heads.value, head_dim.value + v_head_dim.value])
            }
            _ => 0,
        };
        Some(self.block.graph.node_weights().map(one).fold(0, u128::saturating_add))
    }
}

impl Tower {
    /// Its parameters.
    pub fn parameters(&self) -> u64 {
        let of = |part: &TowerPart| {
            part.repeats() * part.block.graph.node_weights().map(OperatorNode::parameters).sum::<u64>()
        };
        self.parts.iter().map(of).sum()
    }

    /// Its persistent buffers.
    pub fn buffers(&self) -> u64 {
        self.tensors().iter().filter(|tensor| tensor.buffer).map(Weight::elements).sum()
    }

    /// Its tensors by their full names.
    pub fn tensors(&self) -> Vec<Weight> {
        self.parts.iter().flat_map(TowerPart::tensors).collect()
    }

    /// Operations for one image of the size that the file states; `None` where it states none.
    pub fn flops_per_image(&self) -> Option<u64> {
        self.all_flops()?.try_into().ok()
    }

    /// [`Tower::flops_per_image`] of any size.
    pub(super) fn all_flops(&self) -> Option<u128> {
        let view = self.sight.view(None)?;
        let mut parts = self.parts.iter().map(|part| part.flops(&view));
        parts.try_fold(0, |sum: u128, part| Some(sum.saturating_add(part?)))
    }

    /// What the encoder yields of one image of the size that the file states; `None` where it states none.
    pub fn tokens_per_image(&self) -> Option<u64> {
        let view = self.sight.view(None)?;
        Some(self.parts.last()?.positions.of(&view)?.value)
    }
}
