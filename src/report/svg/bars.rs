//! Horizontal bars: lengths that compare, and stacks of parts.

use super::marks::{bar, swatch};
use super::scale::{PlotScale, drawable};
use super::{Anchor, SvgPanel, text, text_width};
use crate::spec::visible::elided;

#[derive(Clone, Debug, PartialEq)]
pub struct LabelledBar {
    pub label: String,
    /// Its parts: series, length, title.
    pub parts: Vec<(usize, f64, String)>,
    pub note: String,
}

const WIDTH: f64 = 380.0;
/// Height of a bar and its room.
const LINE: f64 = 26.0;
const THICK: f64 = 16.0;
/// Longest label, in characters.
const LONGEST: usize = 34;

/// Bars on one scale from 0, each as long as the sum of its parts, under a title and a legend.
pub fn bars(title: &str, legend: &[(usize, &str)], all: &[LabelledBar]) -> SvgPanel {
    let length = |one: &LabelledBar| -> f64 {
        one.parts.iter().map(|(_, length, _)| *length).filter(|length| drawable(*length)).sum()
    };
    let scale = PlotScale::from_zero(all.iter().map(length).fold(0.0, f64::max));
    stacked(title, legend, all, |_| scale)
}

/// Bars of equal length whose parts are shares of it.
pub fn shares(title: &str, legend: &[(usize, &str)], all: &[LabelledBar]) -> SvgPanel {
    let whole: Vec<LabelledBar> = all
        .iter()
        .map(|one| {
            let sum: f64 = one.parts.iter().map(|(_, length, _)| *length).sum();
            let share = |length: f64| if sum > 0.0 && sum.is_finite() { length / sum } else { 0.0 };
            let parts =
                one.parts.iter().map(|(series, length, title)| (*series, share(*length), title.clone()));
            LabelledBar { parts: parts.collect(), ..one.clone() }
        })
        .collect();
    let scale = PlotScale::from_zero(1.0);
    stacked(title, legend, &whole, |_| scale)
}

fn stacked(
    title: &str,
    legend: &[(usize, &str)],
    all: &[LabelledBar],
    scale: impl Fn(usize) -> PlotScale,
) -> SvgPanel {
    let label = |one: &LabelledBar| elided(&one.label, LONGEST).into_owned();
    let left = all.iter().map(|one| text_width(&label(one), 11.0)).fold(60.0, f64::max) + 10.0;
    let mut body = text("name", Anchor::Start, [0.0, 14.0], title);
    let mut x = 0.0;
    for (series, name) in legend {
        body.push_str(&swatch(*series, [x + 8.0, 32.0]));
        body.push_str(&text("tick", Anchor::Start, [x + 18.0, 36.0], name));
        x += 34.0 + text_width(name, 11.0);
    }
    let top = if legend.is_empty() { 26.0 } else { 48.0 };
    let mut right = x;
    for (at, one) in all.iter().enumerate() {
        let y = top + LINE * at as f64;
        body.push_str(&text("value", Anchor::End, [left - 8.0, y + 12.0], &label(one)));
        let mut x = left;
        for (series, length, words) in one.parts.iter().filter(|(_, length, _)| drawable(*length)) {
            let width = (scale(at).share(*length) * WIDTH).min(left + WIDTH - x);
            body.push_str(&bar(*series, [x, y], [width, THICK], words));
            x += width;
        }
        body.push_str(&text("tick", Anchor::Start, [x + 6.0, y + 12.0], &one.note));
        right = right.max(x + 12.0 + text_width(&one.note, 11.0));
    }
    let width = right.max(left + WIDTH).max(text_width(title, 13.0));
    SvgPanel { width, height: top + LINE * all.len() as f64 + 14.0, body }
}
