//! Pictures as PNG: SVG drawn with the fonts of this machine.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Group, Node, Options, Tree};

use crate::spec::error::Error;

/// Pixels of the PNG per pixel of the picture, so that it stays sharp on dense screens and in print.
const SCALE: f32 = 2.0;

/// The picture as a PNG, with the fonts of this machine.
///
/// # Errors
/// This machine has no font that draws the texts, or the picture is too large for its memory.
pub fn png(svg: &str) -> Result<Vec<u8>, Error> {
    let mut fonts = Database::new();
    fonts.load_system_fonts();
    png_with(svg, fonts)
}

/// The same with these fonts.
///
/// # Errors
/// None of them draws the texts, or the picture is too large for the memory of this machine.
pub fn png_with(svg: &str, mut fonts: Database) -> Result<Vec<u8>, Error> {
    // A tree without fonts has no texts.
    if fonts.is_empty() {
        return Err(without("no font"));
    }
    // Fonts that the picture names may be absent: any sans-serif one has its texts.
    let families = ["DejaVu Sans", "Liberation Sans", "Noto Sans", "Arial", "Helvetica"];
    let has = |family: &str| fonts.faces().any(|face| face.families.iter().any(|(name, _)| name == family));
    let first = fonts.faces().next().and_then(|face| face.families.first()).map(|(name, _)| name.clone());
    let chosen =
        families.into_iter().find(|family| has(family)).map(str::to_owned).or(first).unwrap_or_default();
    fonts.set_sans_serif_family(chosen);
    let options = Options { fontdb: Arc::new(fonts), ..Options::default() };
    let write_svg = "write an .svg file";
    let tree = Tree::from_str(svg, &options).map_err(|fault| refused(fault.to_string(), write_svg))?;
    let [drawn, missing] = glyphs(tree.root());
    if missing > 0 && drawn <= missing {
        return Err(without("no font that has its letters"));
    }
    let size = tree.size();
    let [width, height] = [size.width(), size.height()].map(|side| (side * SCALE).ceil() as u32);
    let mut pixels = Pixmap::new(width, height)
        .ok_or_else(|| refused(format!("a picture of {width} x {height} pixels"), write_svg))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|fault| refused(fault.to_string(), write_svg))
}

/// The fault of a machine without what draws the texts.
fn without(fonts: &str) -> Error {
    let fix = "install a font, e.g. the package fonts-dejavu-core, or write an .svg file";
    refused(format!("{fonts} on this machine"), fix)
}

fn refused(found: String, fix: &str) -> Error {
    Error::new("plot", found, "a picture as PNG", fix)
}

/// Numbers of characters that a font draws, and that none does.
fn glyphs(group: &Group) -> [usize; 2] {
    let mut count = [0; 2];
    for node in group.children() {
        let inner = match node {
            Node::Group(inner) => glyphs(inner),
            Node::Text(text) => {
                let all = text.layouted().iter().flat_map(|span| &span.positioned_glyphs);
                let missing = all.clone().filter(|glyph| glyph.id.0 == 0).count();
                [all.count() - missing, missing]
            }
            _ => [0; 2],
        };
        count = [count[0] + inner[0], count[1] + inner[1]];
    }
    count
}
