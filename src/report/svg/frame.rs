//! The field of a plot: axes with ticks and labels, and the legend.

use super::marks::swatch;
use super::scale::{PlotScale, tick};
use super::{Anchor, SvgPanel, escaped, text, text_width};

#[derive(Clone, Debug, PartialEq)]
pub struct PlotAxis {
    pub scale: PlotScale,
    /// Its label, with the unit.
    pub label: String,
}

impl PlotAxis {
    fn label(&self) -> String {
        let note = if self.scale.is_logarithmic() { ", logarithmic" } else { "" };
        format!("{}{note}", self.label)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct PlotFrame {
    pub title: String,
    /// To the right.
    pub x: PlotAxis,
    /// Upwards.
    pub y: PlotAxis,
    pub width: f64,
    pub height: f64,
    /// Series and names of the legend.
    pub legend: Vec<(usize, String)>,
}

const LEFT: f64 = 64.0;
/// Room above a field, without legend.
const TOP: f64 = 44.0;
const RIGHT: f64 = 28.0;
const BOTTOM: f64 = 48.0;
const LEGEND: f64 = 18.0;
/// Longest name in a legend, in characters.
const LONGEST_NAME: usize = 44;

impl PlotFrame {
    fn top(&self) -> f64 {
        let (_, lines) = self.legend_lines();
        TOP + LEGEND * lines as f64
    }

    pub fn left(&self) -> f64 {
        LEFT
    }

    pub fn bottom(&self) -> f64 {
        self.top() + self.height
    }

    pub fn x(&self, value: f64) -> f64 {
        LEFT + self.width * self.x.scale.share(value)
    }

    pub fn y(&self, value: f64) -> f64 {
        self.top() + self.height * (1.0 - self.y.scale.share(value))
    }

    /// Places of the names of the legend, and the number of its lines.
    fn legend_lines(&self) -> (Vec<(f64, usize)>, usize) {
        let (mut x, mut line, mut places) = (0.0, 0, Vec::new());
        for (_, name) in &self.legend {
            let width = 34.0 + text_width(&escaped(name, LONGEST_NAME), 11.0);
            if x > 0.0 && x + width > LEFT + self.width + RIGHT {
                (x, line) = (0.0, line + 1);
            }
            places.push((x, line));
            x += width;
        }
        let lines = if self.legend.is_empty() { 0 } else { line + 1 };
        (places, lines)
    }

    fn legend(&self) -> String {
        let (places, _) = self.legend_lines();
        let entry = |((series, name), (x, line)): (&(usize, String), (f64, usize))| {
            let y = 34.0 + LEGEND * line as f64;
            let name: String = crate::spec::visible::elided(name, LONGEST_NAME).into_owned();
            swatch(*series, [x + 8.0, y - 4.0]) + &text("tick", Anchor::Start, [x + 18.0, y], &name)
        };
        self.legend.iter().zip(places).map(entry).collect()
    }

    /// Rectangle of the field between two values of x, or all of it.
    pub fn region(&self, from: f64, to: f64) -> String {
        let (a, b) = (self.x(from), self.x(to));
        let (x, width) = (a.min(b), (b - a).abs());
        format!(
            "<rect class=\"out\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>\n",
            self.top(),
            self.height
        )
    }

    /// The panel with grid, ticks and labels around `marks`, over `below`.
    pub fn panel(&self, below: &str, marks: &str) -> SvgPanel {
        let (top, bottom, right) = (self.top(), self.bottom(), LEFT + self.width);
        let mut body = text("name", Anchor::Start, [0.0, 14.0], &self.title) + &self.legend() + below;
        for value in self.x.scale.ticks() {
            let x = self.x(value);
            body.push_str(&line("grid", [x, top], [x, bottom]));
            body.push_str(&text("tick", Anchor::Middle, [x, bottom + 16.0], &tick(value)));
        }
        for value in self.y.scale.ticks() {
            let y = self.y(value);
            body.push_str(&line("grid", [LEFT, y], [right, y]));
            body.push_str(&text("tick", Anchor::End, [LEFT - 6.0, y + 4.0], &tick(value)));
        }
        body.push_str(&line("axis", [LEFT, bottom], [right, bottom]));
        body.push_str(&line("axis", [LEFT, top], [LEFT, bottom]));
        body.push_str(marks);
        let middle = LEFT + self.width / 2.0;
        body.push_str(&text("label", Anchor::Middle, [middle, bottom + 34.0], &self.x.label()));
        body.push_str(&text("label", Anchor::Start, [0.0, top - 10.0], &self.y.label()));
        SvgPanel { width: LEFT + self.width + RIGHT, height: bottom + BOTTOM, body }
    }
}

pub fn line(class: &str, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) -> String {
    format!("<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>\n")
}
