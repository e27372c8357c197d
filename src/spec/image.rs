//! The size of an image in user input. Independent of encoders.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::IMAGE_SIDE;

/// Width and height in pixels, written `1024x768`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct ImageSize {
    /// Width in pixels.
    pub width: u64,
    /// Height in pixels.
    pub height: u64,
}

impl ImageSize {
    pub const fn square(side: u64) -> ImageSize {
        ImageSize { width: side, height: side }
    }
}

impl FromStr for ImageSize {
    type Err = String;

    fn from_str(text: &str) -> Result<ImageSize, String> {
        let side =
            |text: &str| text.trim().parse::<u64>().ok().filter(|pixels| IMAGE_SIDE.holds(*pixels as f64));
        let sides = text.split_once(['x', 'X', '×']).and_then(|(w, h)| Some((side(w)?, side(h)?)));
        let (width, height) = sides.ok_or_else(|| {
            let range = IMAGE_SIDE.range();
            format!("`{text}`: expected width and height of {range}, written e.g. 1024x768")
        })?;
        Ok(ImageSize { width, height })
    }
}

impl TryFrom<String> for ImageSize {
    type Error = String;

    fn try_from(text: String) -> Result<ImageSize, String> {
        text.parse()
    }
}

impl From<ImageSize> for String {
    fn from(size: ImageSize) -> String {
        size.to_string()
    }
}

impl fmt::Display for ImageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_two_lengths_within_reason() {
        let read = |text: &str| text.parse::<ImageSize>();
        assert_eq!(read("1024x768"), Ok(ImageSize { width: 1024, height: 768 }));
        assert_eq!(read(" 8 X 9 ").map(|size| size.to_string()).as_deref(), Ok("8x9"));
        for wrong in ["", "1024", "0x5", "5x-1", "5x65536", "axb", "1x2x3"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
