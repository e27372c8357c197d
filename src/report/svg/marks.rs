//! Marks: points whose form and colour show their series, lines, bands, whiskers.

use super::escaped;
use super::palette::series as class;

/// Longest title of a mark, in characters.
const LONGEST: usize = 300;

/// Outline of a series' points around a place: circle, square, triangle, diamond.
fn outline(series: usize, [x, y]: [f64; 2], size: f64) -> String {
    let s = size;
    match series % 4 {
        0 => format!("M{:.1} {y:.1}a{s} {s} 0 1 0 {:.1} 0a{s} {s} 0 1 0 -{:.1} 0Z", x - s, 2.0 * s, 2.0 * s),
        1 => format!("M{:.1} {:.1}h{:.1}v{:.1}h-{:.1}Z", x - s, y - s, 2.0 * s, 2.0 * s, 2.0 * s),
        2 => format!("M{x:.1} {:.1}L{:.1} {:.1}H{:.1}Z", y - s, x + s, y + s, x - s),
        _ => format!("M{x:.1} {:.1}L{:.1} {y:.1}L{x:.1} {:.1}L{:.1} {y:.1}Z", y - s, x + s, y + s, x - s),
    }
}

/// Half the width of a point.
pub const SIZE: f64 = 3.5;
/// Half the width of one of many points.
pub const SMALL: f64 = 2.0;

pub fn point(series: usize, place: [f64; 2], title: &str) -> String {
    sized_point(series, place, SIZE, title)
}

/// The same of another size.
pub fn sized_point(series: usize, place: [f64; 2], size: f64, title: &str) -> String {
    let (class, outline) = (class(series), outline(series, place, size));
    let title = escaped(title, LONGEST);
    format!("<path class=\"mark {class}\" d=\"{outline}\"><title>{title}</title></path>\n")
}

/// The point of a plan, which a page can select.
pub fn plan_point(
    series: usize,
    place: [f64; 2],
    size: f64,
    (notation, title, across): (&str, &str, f64),
) -> String {
    let (class, outline) = (class(series), outline(series, place, size));
    let [notation, title] = [notation, title].map(|text| escaped(text, LONGEST));
    format!(
        "<path class=\"mark {class}\" data-plan=\"{notation}\" data-across=\"{across}\" d=\"{outline}\"><title>{title}</title></path>\n"
    )
}

/// Many points of a series under one title.
pub fn cloud(series: usize, places: &[[f64; 2]], title: &str) -> String {
    let (class, title) = (class(series), escaped(title, LONGEST));
    let points = places.iter().map(|[x, y]| format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2\"/>\n"));
    format!("<g class=\"cloud {class}\"><title>{title}</title>\n{}</g>\n", points.collect::<String>())
}

pub fn swatch(series: usize, place: [f64; 2]) -> String {
    format!("<path class=\"mark {}\" d=\"{}\"/>\n", class(series), outline(series, place, 4.5))
}

pub fn chosen([x, y]: [f64; 2], title: &str) -> String {
    let title = escaped(title, LONGEST);
    format!("<circle class=\"chosen\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"8\"><title>{title}</title></circle>\n")
}

/// A cross where a point does not run.
pub fn failed([x, y]: [f64; 2], title: &str) -> String {
    let (left, top) = (x - 4.0, y - 4.0);
    let title = escaped(title, LONGEST);
    format!(
        "<path class=\"failed\" d=\"M{left:.1} {top:.1}l8 8M{x:.1} {y:.1}m-4 4l8 -8\"><title>{title}</title></path>\n"
    )
}

pub fn path(series: usize, places: &[[f64; 2]]) -> String {
    if places.len() < 2 {
        return String::new();
    }
    format!("<path class=\"line {}\" d=\"{}\"/>\n", class(series), through(places))
}

fn through(places: &[[f64; 2]]) -> String {
    let steps = places.iter().map(|[x, y]| format!("{x:.1} {y:.1}"));
    format!("M{}", steps.collect::<Vec<_>>().join("L"))
}

/// A band between lower and upper places.
pub fn band(series: usize, lower: &[[f64; 2]], upper: &[[f64; 2]]) -> String {
    if lower.len() < 2 {
        return String::new();
    }
    let around: Vec<[f64; 2]> = lower.iter().chain(upper.iter().rev()).copied().collect();
    format!("<path class=\"band {}\" d=\"{}Z\"/>\n", class(series), through(&around))
}

pub fn whisker(series: usize, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) -> String {
    let class = class(series);
    format!("<path class=\"whisker {class}\" d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\"/>\n")
}

pub fn bar(series: usize, [x, y]: [f64; 2], [width, height]: [f64; 2], title: &str) -> String {
    let (class, title) = (class(series), escaped(title, LONGEST));
    // The sum has no negative zero.
    let width = width.max(0.0) + 0.0;
    rectangle(&format!("class=\"mark {class}\""), [x, y], [width, height], ("", &title))
}

/// A rectangle with attributes before and after its place, and a title that is escaped.
pub fn rectangle(
    attributes: &str,
    [x, y]: [f64; 2],
    [width, height]: [f64; 2],
    (more, title): (&str, &str),
) -> String {
    format!(
        "<rect {attributes} x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"{more}>\
         <title>{title}</title></rect>\n"
    )
}

/// A box with rounded corners and a title; `class` is one of the palette's.
pub fn framed(class: &str, corner: [f64; 2], size: [f64; 2], title: &str) -> String {
    rectangle(&format!("class=\"{class}\""), corner, size, (" rx=\"6\"", &escaped(title, LONGEST)))
}
