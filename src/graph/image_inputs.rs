//! Images of a request before the encoder: the number of tiles and positions, and the resulting tokens.
//!
//! The cost of encoding is computed elsewhere.

use super::cache::Cache;
use super::image_processor::{ImagePatches, ImageProcessor};
use super::model::{Block, ModelGraph};
use super::operator::Operator;
use super::tower::Tower;
use crate::quantity::count::{Count, Origin};
use crate::spec::error::Error;
use crate::spec::image::ImageSize;

/// Images per request.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageInputs {
    /// Number of images.
    pub images: Count,
    /// Prompt tokens per image.
    pub tokens: Count,
    /// Tiles per image, which are encoded independently.
    pub crops: Count,
    /// Index of the encoder in the model.
    pub tower: usize,
    /// Positions of a tile in each part of the encoder.
    pub positions: Vec<Count>,
}

impl ImageInputs {
    /// Tokens of all images.
    pub fn all_tokens(&self) -> u64 {
        self.images.value.saturating_mul(self.tokens.value)
    }
}

/// Maximum number of images per request.
pub const MOST_IMAGES: u64 = 100_000;

impl ModelGraph {
    /// The same model with this number of images per request, each of `size`.
    ///
    /// # Errors
    /// There is no image encoder, the encoder takes any size and none is given, or its image preprocessing is not
    /// supported.
    pub fn with_images(self, images: u64, size: Option<ImageSize>) -> Result<ModelGraph, Error> {
        if images == 0 {
            return match size {
                None => Ok(self),
                Some(size) => Err(Error::new(
                    "image-size",
                    format!("{size} without images"),
                    "the number of images per request",
                    "add --images N",
                )),
            };
        }
        if images > MOST_IMAGES {
            let fix = "give the number of images per request";
            return Err(Error::new("images", images.to_string(), format!("0 to {MOST_IMAGES}"), fix));
        }
        let Some(tower) = self.towers.iter().position(|tower| tower.name == "vision") else {
            return Err(Error::new(
                "images",
                format!("{images} images per request for `{}`, which has no image encoder", self.model_type),
                "a model with a vision encoder",
                "leave the images out, or choose another model (`mantile-opt inspect` lists encoders)",
            ));
        };
        let seen = image_inputs(&self.towers[tower], tower, images, size, &self.model_type)?;
        let mut graph = self;
        if graph.towers[tower].image_processor == ImageProcessor::CrossAttended {
            graph.blocks.iter_mut().for_each(|block| attend_to(block, images));
        }
        graph.image_inputs = Some(seen);
        Ok(graph)
    }
}

fn image_inputs(
    tower: &Tower,
    index: usize,
    images: u64,
    size: Option<ImageSize>,
    model_type: &str,
) -> Result<ImageInputs, Error> {
    let view = tower.image_processor.patches(size).ok_or_else(|| match tower.image_processor {
        ImageProcessor::Unknown => Error::new(
            "images",
            format!("{images} images per request for `{model_type}`"),
            "an encoder whose image preprocessing is supported",
            "leave the images out: weights and cache are exact without them",
        ),
        _ => Error::new(
            "image-size",
            "nothing",
            format!("the size of each image: the encoder of `{model_type}` accepts any size"),
            "give it in pixels, e.g. --image-size 1024x768",
        ),
    })?;
    let positions: Option<Vec<Count>> = tower.parts.iter().map(|part| part.positions.of(&view)).collect();
    let positions = positions.filter(|all| !all.is_empty()).ok_or_else(|| {
        let expected = "an encoder whose parts all follow from the image size";
        let fix = "leave the images out: weights and cache are exact without them";
        Error::new("images", format!("{images} images per request for `{model_type}`"), expected, fix)
    })?;
    Ok(ImageInputs {
        images: Count { value: images, symbol: "images", origin: Origin::Workload("images") },
        tokens: Count::derived("image_tokens", tokens(&view, &positions), "prompt tokens per image"),
        crops: Count::derived("crops", view.crops, "tiles per image"),
        tower: index,
        positions,
    })
}

/// Tokens per image: the output of the last part, unless the processor sets another number.
fn tokens(view: &ImagePatches, positions: &[Count]) -> u64 {
    view.tokens.unwrap_or_else(|| view.crops * positions.last().map_or(0, |last| last.value))
}

/// Layers with cross-attention to the encoder attend to all images.
fn attend_to(block: &mut Block, images: u64) {
    let times = |count: &mut Count| count.value = count.value.saturating_mul(images);
    for node in block.graph.node_weights_mut() {
        if let Operator::CrossAttention { positions, .. } = &mut node.operator {
            times(positions);
        }
    }
    for cache in &mut block.caches {
        if let Cache::State { name: "cross_kv", elements, .. } = cache {
            times(elements);
        }
    }
}
