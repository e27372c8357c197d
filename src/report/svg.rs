//! Pictures as SVG: scales, axes, marks and legends, and the pictures that are made of them.
//!
//! Every mark has a class and a `<title>`, so that a page can style it, a mouse can hover over it and a screen reader
//! can read it. Colours are those of [`palette`], for light and dark pages. Texts from outside are escaped.

pub mod bars;
pub mod compare;
pub mod deployment;
pub mod fleet;
pub mod frame;
pub mod front;
pub mod heat;
pub mod layout;
pub mod lines;
pub mod marks;
pub mod palette;
pub mod place;
pub mod recommend;
pub mod scale;
pub mod simulate;
pub mod static_batch;
pub mod sweep;
pub mod timeline;
pub mod tornado;
pub mod why;

use crate::spec::visible::{elided, visible_xml};
use palette::{SvgTheme, style};

/// A part of a picture, in coordinates from its own corner.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SvgPanel {
    /// Width in pixels.
    pub width: f64,
    /// Height in pixels.
    pub height: f64,
    pub body: String,
}

/// A picture: panels below each other under a title.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SvgPicture {
    pub title: String,
    pub subtitle: String,
    /// Panels, top to bottom.
    pub panels: Vec<SvgPanel>,
}

/// Room at the edges of a picture.
pub const EDGE: f64 = 20.0;
/// Room of the title and its line.
const HEAD: f64 = 58.0;
/// Width of a letter over the size of its font, at most.
const LETTER: f64 = 0.6;
/// Longest title, in characters.
const LONGEST: usize = 110;

/// Width of a text in a font of `size` pixels, at most.
pub fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * LETTER
}

/// A text in printable form, for elements and attributes, at most `most` characters long.
pub fn escaped(text: &str, most: usize) -> String {
    visible_xml(&elided(text, most))
}

/// Class of a text, its anchor on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A text element; `class` is one of the palette's.
pub fn text(class: &str, anchor: Anchor, [x, y]: [f64; 2], words: &str) -> String {
    let (anchor, words) = (["start", "middle", "end"][anchor as usize], escaped(words, LONGEST));
    format!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>\n")
}

impl SvgPicture {
    pub fn is_empty(&self) -> bool {
        self.panels.is_empty()
    }

    pub fn svg(&self, theme: SvgTheme) -> String {
        let widest = self.panels.iter().map(|panel| panel.width).fold(320.0, f64::max);
        let heading = text_width(&elided(&self.title, LONGEST), 16.0)
            .max(text_width(&elided(&self.subtitle, LONGEST), 12.0));
        let width = widest.max(heading) + 2.0 * EDGE;
        let mut body = String::new();
        let mut y = HEAD;
        for panel in &self.panels {
            body.push_str(&format!("<g transform=\"translate({EDGE},{y:.1})\">\n{}</g>\n", panel.body));
            y += panel.height;
        }
        let height = y + EDGE;
        let names = [escaped(&self.title, LONGEST), escaped(&self.subtitle, 4 * LONGEST)];
        let heading = text("heading", Anchor::Start, [EDGE, 30.0], &self.title)
            + &text("label", Anchor::Start, [EDGE, 48.0], &self.subtitle);
        svg_document(
            [width, height],
            &names,
            &format!("<style>{}</style>\n", style(theme)),
            &(heading + &body),
        )
    }

    /// The picture in a page that needs nothing else.
    pub fn html(&self) -> String {
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n\
             <style>body{{margin:0}}svg{{max-width:100%;height:auto}}</style>\n</head>\n<body>\n<main>\n{}</main>\n\
             </body>\n</html>\n",
            escaped(&self.title, LONGEST),
            self.svg(SvgTheme::Adaptive)
        )
    }
}

/// An SVG file of this size: title and description, which are escaped, its style sheet, and its elements.
pub fn svg_document(
    [width, height]: [f64; 2],
    [title, about]: &[String; 2],
    style: &str,
    body: &str,
) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"graphics-document\" aria-labelledby=\"title desc\">\n\
         <title id=\"title\">{title}</title>\n<desc id=\"desc\">{about}</desc>\n{style}\
         <rect class=\"page\" width=\"100%\" height=\"100%\"/>\n{body}</svg>\n"
    )
}

/// Panels next to each other, `columns` in a row; those of a column begin at one place.
pub fn side_by_side(panels: &[SvgPanel], columns: usize) -> SvgPanel {
    let columns = columns.max(1);
    let widest = |column: usize| {
        panels.iter().skip(column).step_by(columns).map(|panel| panel.width).fold(0.0, f64::max)
    };
    let widths: Vec<f64> = (0..columns.min(panels.len())).map(widest).collect();
    let mut whole = SvgPanel { width: widths.iter().sum(), ..SvgPanel::default() };
    for row in panels.chunks(columns) {
        let mut x = 0.0;
        for (panel, width) in row.iter().zip(&widths) {
            let y = whole.height;
            whole.body.push_str(&format!("<g transform=\"translate({x:.1},{y:.1})\">\n{}</g>\n", panel.body));
            x += width;
        }
        whole.height += row.iter().map(|panel| panel.height).fold(0.0, f64::max);
    }
    whole
}
