//! Encoders next to the language model: vision and audio towers, with their projectors.
//!
//! They run once per image or clip, before prefill. The number of images is set elsewhere.

use super::assembly::below;
use super::dimensions::SoftmaxAttention;
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
    pub image_processor: ImageProcessor,
}

/// Positions of an encoder part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Positions {
    /// A fixed number per image or tile.
    Each(Count),
    /// A number per cell, for images of any size.
    PerCell(u64),
    /// Unknown.
    Open,
}

impl From<Count> for Positions {
    fn from(count: Count) -> Positions {
        Positions::Each(count)
    }
}

impl Positions {
    /// Positions for a tile with these cells.
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

/// Identical layers of an encoder, or the modules before and after them.
#[derive(Clone, Debug)]
pub struct TowerPart {
    /// Its name in the checkpoint, e.g. `model.vision_tower.encoder.layers`; layers are numbered.
    pub prefix: String,
    /// Its operators; without `layers` it occurs once.
    pub block: Block,
    /// Positions per image or clip.
    pub positions: Positions,
}

impl TowerPart {
    /// Tensors by full name.
    fn tensors(&self) -> Vec<Weight> {
        let weights = self.block.weights();
        let under = |prefix: &str| below(prefix, weights.clone()).collect::<Vec<_>>();
        match self.block.layers.as_slice() {
            [] => under(&self.prefix),
            layers => layers.iter().flat_map(|layer| under(&format!("{}.{layer}", self.prefix))).collect(),
        }
    }

    /// Operations of matrices and attention per tile; without norms and activations.
    fn flops(&self, view: &ImagePatches) -> Option<u128> {
        let positions = self.positions.of(view)?.value;
        let product = |factors: &[u64]| {
            factors.iter().fold(2 * u128::from(self.block.repeats()), |so_far, factor| {
                so_far.saturating_mul(u128::from(*factor))
            })
        };
        let one = |node: &OperatorNode| match node.operator {
            Operator::Linear { input, output, .. } => product(&[positions, input.value, output.value]),
            Operator::Attention(SoftmaxAttention { heads, head_dim, v_head_dim, mask, .. }) => {
                let keys = match mask {
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
    pub fn parameters(&self) -> u64 {
        let of = |part: &TowerPart| {
            part.block.repeats() * part.block.graph.node_weights().map(OperatorNode::parameters).sum::<u64>()
        };
        self.parts.iter().map(of).sum()
    }

    /// Its persistent buffers.
    pub fn buffers(&self) -> u64 {
        let of = |part: &TowerPart| {
            let weights = part.block.graph.node_weights().flat_map(|node| &node.weights);
            part.block.repeats() * weights.filter(|weight| weight.buffer).map(Weight::elements).sum::<u64>()
        };
        self.parts.iter().map(of).sum()
    }

    /// Its tensors by full name.
    pub fn tensors(&self) -> Vec<Weight> {
        self.parts.iter().flat_map(TowerPart::tensors).collect()
    }

    /// Operations per image at the size that the file fixes; `None` where it fixes none.
    pub fn flops_per_image(&self) -> Option<u64> {
        self.all_flops()?.try_into().ok()
    }

    /// [`Tower::flops_per_image`] at any size.
    pub(super) fn all_flops(&self) -> Option<u128> {
        let view = self.image_processor.patches(None)?;
        let mut parts = self.parts.iter().map(|part| part.flops(&view));
        parts.try_fold(0, |sum: u128, part| Some(sum.saturating_add(part?)))
    }

    /// Output tokens per image at the size that the file fixes; `None` where it fixes none.
    pub fn tokens_per_image(&self) -> Option<u64> {
        let view = self.image_processor.patches(None)?;
        Some(self.parts.last()?.positions.of(&view)?.value)
    }
}
