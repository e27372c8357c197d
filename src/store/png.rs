//! Pictures as PNG: SVG drawn with the fonts of this machine.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use crate::spec::error::Error;

/// Pixels of the PNG per pixel of the picture, so that it stays sharp on dense screens and in print.
const SCALE: f32 = 2.0;

/// The picture as a PNG.
///
/// # Errors
/// This machine has no font, or the picture is too large for its memory.
pub fn png(svg: &str) -> Result<Vec<u8>, Error> {
    let refused = |found: String, fix: &str| Error::new("plot", found, "a picture as PNG", fix);
    let mut options = Options::default();
    options.fontdb_mut().load_system_fonts();
    if options.fontdb.is_empty() {
        let fix = "install a font, e.g. the package fonts-dejavu-core, or write an .svg file";
        return Err(refused("no font on this machine".to_owned(), fix));
    }
    // Fonts that the picture names may be absent: any sans-serif one has its texts.
    let families = ["DejaVu Sans", "Liberation Sans", "Noto Sans", "Arial", "Helvetica"];
    let has = |family: &str| {
        options.fontdb.faces().any(|face| face.families.iter().any(|(name, _)| name == family))
    };
    let first =
        options.fontdb.faces().next().and_then(|face| face.families.first()).map(|(name, _)| name.clone());
    let chosen =
        families.into_iter().find(|family| has(family)).map(str::to_owned).or(first).unwrap_or_default();
    options.fontdb_mut().set_sans_serif_family(chosen);
    let write_svg = "write an .svg file";
    let tree = Tree::from_str(svg, &options).map_err(|fault| refused(fault.to_string(), write_svg))?;
    let size = tree.size();
    let [width, height] = [size.width(), size.height()].map(|side| (side * SCALE).ceil() as u32);
    let mut pixels = Pixmap::new(width, height)
        .ok_or_else(|| refused(format!("a picture of {width} x {height} pixels"), write_svg))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|fault| refused(fault.to_string(), write_svg))
}
