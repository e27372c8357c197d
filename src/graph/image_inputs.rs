//! The images of a request before the encoder: how many pieces and positions, and the tokens that they become.
//!
//! Knows nothing of what computing them takes.

use super::cache::Cache;
use super::image_processor::{ImagePatches, ImageProcessor};
use super::model::{Block, ModelGraph};
use super::operator::Operator;
use super::tower::Tower;
use crate::quantity::count::{Count, Origin};
use crate::spec::error::Error;
use crate::spec::image::ImageSize;

/// Images of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageInputs {
    /// How many.
    pub images: Count,
    /// Tokens of the prompt that stand for one.
    pub tokens: Count,
    /// Pieces of one that are encoded apart.
    pub crops: Count,
    /// The encoder among the model's.
    pub tower: usize,
    /// Positions of a piece in each of the encoder's parts.
    pub positions: Vec<Count>,
}

impl ImageInputs {
    /// Tokens of all images together.
    pub fn all_tokens(&self) -> u64 {
        self.images.value.saturating_mul(self.tokens.value)
    }
}

/// Most images of a request that are taken seriously.
pub const MOST_IMAGES: u64 = 100_000;

impl ModelGraph {
    /// The same model asked with so many images, each of `size`, in every request.
    ///
    /// # Errors
    /// There is no encoder of images, it takes images of any size and none is stated, or how it divides them is
    /// not told.
    pub fn seeing(self, images: u64, size: Option<ImageSize>) -> Result<ModelGraph, Error> {
        if images == 0 {
            return match size {
                None => Ok(self),
                Some(size) => Err(Error::new(
                    "image-size",
                    format!("{size} without images"),
                    "how many images a request has",
                    "state --images N as well",
                )),
            };
        }
        if images > MOST_IMAGES {
            let fix = "state how many images one request has";
            return Err(Error::new("images", images.to_string(), format!("0 to {MOST_IMAGES}"), fix));
        }
        let Some(tower) = self.towers.iter().position(|tower| tower.name == "vision") else {
            return Err(Error::new(
                "images",
                format!(
                    "{images} images a request for `{}`, which has no encoder of images",
                    self.model_type
                ),
                "a model with a vision encoder",
                "leave the images out, or choose another model (`mantile-opt inspect` lists encoders)",
            ));
        };
        let seen = seen(&self.towers[tower], tower, images, size, &self.model_type)?;
        let mut graph = self;
        if graph.towers[tower].sight == ImageProcessor::Aside {
            graph.blocks.iter_mut().for_each(|block| attend_to(block, images));
        }
        graph.seen = Some(seen);
        Ok(graph)
    }
}

fn seen(
    tower: &Tower,
    index: usize,
    images: u64,
    size: Option<ImageSize>,
    model_type: &str,
) -> Result<ImageInputs, Error> {
    let view = tower.sight.view(size).ok_or_else(|| match tower.sight {
        ImageProcessor::Untold => Error::new(
            "images",
            format!("{images} images a request for `{model_type}`"),
            "an encoder whose division of images is told",
            "leave the images out: weights and cache are exact without them",
        ),
        _ => Error::new(
            "image-size",
            "nothing",
            format!("the size of each image: the encoder of `{model_type}` takes any"),
            "state it in pixels, e.g. --image-size 1024x768",
        ),
    })?;
    let positions: Option<Vec<Count>> = tower.parts.iter().map(|part| part.positions.of(&view)).collect();
    let positions = positions.filter(|all| !all.is_empty()).ok_or_else(|| {
        let expected = "an encoder whose every part is told by the size of an image";
        let fix = "leave the images out: weights and cache are exact without them";
        Error::new("images", format!("{images} images a request for `{model_type}`"), expected, fix)
    })?;
    Ok(ImageInputs {
        images: Count { value: images, symbol: "images", origin: Origin::Workload("images") },
        tokens: Count::derived(
            "image_tokens",
            tokens(&view, &positions),
            "tokens of the prompt for one image",
        ),
        crops: Count::derived("crops", view.crops, "pieces of an image that are encoded apart"),
        tower: index,
        positions,
    })
}

/// Tokens that stand for one image: as many as the last part yields unless the processor says otherwise.
fn tokens(view: &ImagePatches, positions: &[Count]) -> u64 {
    view.tokens.unwrap_or_else(|| view.crops * positions.last().map_or(0, |last| last.value))
}

/// Layers that attend to the encoder's states see those of all images.
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
