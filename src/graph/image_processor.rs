//! Image preprocessing: encoder positions and prompt tokens per image, as in the processors of the model classes.
//!
//! The cost of encoding is computed elsewhere.

use crate::spec::image::ImageSize;

/// Method of a processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ImageProcessor {
    /// Resizes every image to the fixed size of the file.
    FixedSize,
    /// The same, with cross-attention layers: one prompt token represents the image.
    CrossAttended,
    /// Keeps the size, rounded to whole cells. Each cell becomes one token.
    DynamicPatches(PatchGrid),
    /// Divides an image into tiles, and adds the whole image as one more if there are several.
    Tiles {
        /// Side of a tile in pixels.
        side: u64,
        /// Maximum number of tiles, without the whole image.
        most: u64,
    },
    /// Not supported.
    Unknown,
}

/// Preprocessing of images of any size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PatchGrid {
    /// Side of a cell in pixels: the patch side times the patches per side of a token.
    pub side: u64,
    /// Rounding of a length to whole cells.
    pub rounding: SizeRounding,
    /// Longest side in pixels; larger images are scaled down.
    pub longest: Option<u64>,
    /// Tokens at the end of each row.
    pub row_end: u64,
    /// The fixed size of the file, if any.
    pub usual: Option<ImageSize>,
}

/// Rounding of a length to a multiple.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SizeRounding {
    /// To the nearest multiple, by resizing.
    Nearest,
    /// To the next multiple, by padding.
    RoundUp,
}

/// Result of preprocessing one image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImagePatches {
    /// Tiles, which are encoded independently.
    pub crops: u64,
    /// Cells per tile, if the processor has cells.
    pub cells: u64,
    /// Prompt tokens; `None` where they follow from the encoder's output per tile.
    pub tokens: Option<u64>,
}

impl ImageProcessor {
    /// Preprocesses an image of `size`; `None` where that is not supported.
    pub fn patches(&self, size: Option<ImageSize>) -> Option<ImagePatches> {
        match *self {
            ImageProcessor::FixedSize => Some(ImagePatches { crops: 1, cells: 0, tokens: None }),
            ImageProcessor::CrossAttended => Some(ImagePatches { crops: 1, cells: 0, tokens: Some(1) }),
            ImageProcessor::DynamicPatches(cells) => Some(cells.patches(size.or(cells.usual)?)),
            ImageProcessor::Tiles { side, most } => {
                let crops = with_whole(tiles(size?, side, most));
                Some(ImagePatches { crops, cells: 0, tokens: None })
            }
            ImageProcessor::Unknown => None,
        }
    }
}

impl PatchGrid {
    fn patches(&self, size: ImageSize) -> ImagePatches {
        let ImageSize { width, height } = self.shrunk(size);
        let along = |pixels: u64| match self.rounding {
            SizeRounding::Nearest => nearest(pixels, self.side).max(1),
            SizeRounding::RoundUp => pixels.div_ceil(self.side),
        };
        let (columns, rows) = (along(width), along(height));
        ImagePatches { crops: 1, cells: rows * columns, tokens: Some(rows * (columns + self.row_end)) }
    }

    /// The image, scaled down to the maximum size.
    fn shrunk(&self, size: ImageSize) -> ImageSize {
        let (length, longest) = (size.width.max(size.height), self.longest.unwrap_or(u64::MAX));
        if length <= longest {
            return size;
        }
        let one = |pixels: u64| (pixels * longest / length).max(1);
        ImageSize { width: one(size.width), height: one(size.height) }
    }
}

/// The multiple of `side` nearest to `pixels`; ties go to the even one, as in Python.
fn nearest(pixels: u64, side: u64) -> u64 {
    let (whole, rest) = (pixels / side, pixels % side);
    match (2 * rest).cmp(&side) {
        std::cmp::Ordering::Less => whole,
        std::cmp::Ordering::Equal => whole + whole % 2,
        std::cmp::Ordering::Greater => whole + 1,
    }
}

fn with_whole(tiles: u64) -> u64 {
    if tiles > 1 { tiles + 1 } else { tiles }
}

/// Tile grid with the aspect ratio nearest to the image, with at most `most` tiles (InternVL's `dynamic_preprocess`).
/// Of equally near grids, the larger one if the image fills half of it.
///
/// <https://huggingface.co/OpenGVLab/InternVL2-8B>, `find_closest_aspect_ratio` of its model card.
fn tiles(size: ImageSize, side: u64, most: u64) -> u64 {
    let ImageSize { width, height } = size;
    let mut grids: Vec<(u64, u64)> =
        (1..=most).flat_map(|columns| (1..=most / columns).map(move |rows| (columns, rows))).collect();
    grids.sort_by_key(|(columns, rows)| columns * rows);
    // |width / height - columns / rows| as a fraction over height × rows; heights cancel between two of them.
    let off = |(columns, rows): (u64, u64)| (width * rows).abs_diff(columns * height);
    let mut best = (1, 1);
    for grid in grids.into_iter().skip(1) {
        let (ours, theirs) =
            (u128::from(off(grid)) * u128::from(best.1), u128::from(off(best)) * u128::from(grid.1));
        let half_full = 2 * width * height > side * side * grid.0 * grid.1;
        if ours < theirs || (ours == theirs && half_full) {
            best = grid;
        }
    }
    best.0 * best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(width: u64, height: u64) -> ImageSize {
        ImageSize { width, height }
    }

    /// Qwen2-VL's own example: 1372 × 2044 in cells of 28 is 49 × 73 tokens
    /// (<https://huggingface.co/docs/transformers/model_doc/qwen2_vl>, image resolution).
    #[test]
    fn cells_round_as_the_processor_does() {
        let cells =
            PatchGrid { side: 28, rounding: SizeRounding::Nearest, longest: None, row_end: 0, usual: None };
        assert_eq!(cells.patches(of(1372, 2044)).tokens, Some(49 * 73));
        assert_eq!(cells.patches(of(10, 10)).tokens, Some(1), "never nothing");
        assert_eq!((nearest(42, 28), nearest(70, 28), nearest(71, 28)), (2, 2, 3), "halves go to even");
    }

    /// Pixtral: rows end in a token, and the longest side is 1540 pixels in cells of 28.
    #[test]
    fn long_images_shrink_and_rows_end_in_a_token() {
        let cells = PatchGrid {
            side: 28,
            rounding: SizeRounding::RoundUp,
            longest: Some(1540),
            row_end: 1,
            usual: None,
        };
        assert_eq!(
            cells.patches(of(1540, 1540)),
            ImagePatches { crops: 1, cells: 55 * 55, tokens: Some(55 * 56) }
        );
        assert_eq!(
            cells.patches(of(3080, 770)),
            ImagePatches { crops: 1, cells: 55 * 14, tokens: Some(14 * 56) }
        );
    }

    #[test]
    fn tiles_follow_the_shape_and_the_whole_comes_on_top() {
        let crops =
            |size| ImageProcessor::Tiles { side: 448, most: 12 }.patches(Some(size)).map(|view| view.crops);
        assert_eq!(crops(of(448, 448)), Some(1));
        assert_eq!(crops(of(896, 448)), Some(2 + 1));
        assert_eq!(crops(of(800, 600)), Some(12 + 1), "4:3 is met exactly by 4 × 3");
        assert_eq!(crops(of(1344, 1344)), Some(9 + 1), "3 × 3 is as near as 1 × 1 and more than half full");
        assert_eq!(crops(of(500, 500)), Some(1), "2 × 2 would be less than half full");
        assert_eq!(ImageProcessor::Tiles { side: 448, most: 12 }.patches(None), None);
    }
}
