//! A heat map: a metric over two keys.

use super::marks::rectangle;
use super::palette::heat;
use super::scale::{PlotScale, drawable, tick};
use super::{Anchor, SvgPanel, escaped, text, text_width};
use crate::report::number::digits;

/// A map of cells in rows, the first row at the bottom.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatMap {
    pub title: String,
    /// Label and values of the columns.
    pub across: (String, Vec<String>),
    /// Label and values of the rows.
    pub up: (String, Vec<String>),
    /// A cell for each column of each row: its value, `None` where unknown, and its title.
    pub cells: Vec<Vec<(Option<f64>, String)>>,
}

const HIGH: f64 = 26.0;
const TOP: f64 = 52.0;
/// Width from which a cell has its value as text.
const VALUE_WIDTH: f64 = 44.0;
/// Width of all cells, as far as the texts allow.
const WIDTH: f64 = 640.0;
const KEY: f64 = 120.0;
const STEPS: u32 = 20;

impl HeatMap {
    /// The map as a panel; `None` without any known value.
    pub fn panel(&self) -> Option<SvgPanel> {
        let values = || self.cells.iter().flatten().filter_map(|(value, _)| *value).filter(|v| drawable(*v));
        let scale = PlotScale::over(values())?;
        let (low, high) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
        let columns = self.across.1.len().max(1) as f64;
        let wide = (WIDTH / columns).clamp(6.0, 72.0);
        let left = self.up.1.iter().map(|name| text_width(name, 11.0)).fold(40.0, f64::max) + 10.0;
        let bottom = TOP + HIGH * self.cells.len() as f64;
        let mut body = text("name", Anchor::Start, [0.0, 14.0], &self.title);
        body.push_str(&text("label", Anchor::Start, [0.0, TOP - 8.0], &self.up.0));
        let span = scale.share(high) - scale.share(low);
        for (row, cells) in self.cells.iter().enumerate() {
            let y = bottom - HIGH * (row + 1) as f64;
            let name = self.up.1.get(row).map_or("", String::as_str);
            body.push_str(&text("tick", Anchor::End, [left - 6.0, y + HIGH / 2.0 + 4.0], name));
            for (column, (value, title)) in cells.iter().enumerate() {
                let x = left + wide * column as f64;
                let value = value.filter(|value| drawable(*value));
                let share =
                    value.map(
                        |value| {
                            if span > 0.0 { (scale.share(value) - scale.share(low)) / span } else { 0.5 }
                        },
                    );
                body.push_str(&cell([x, y], wide, share.zip(value), title));
            }
        }
        let every = (VALUE_WIDTH / wide).ceil().max(1.0) as usize;
        for (column, name) in self.across.1.iter().enumerate().step_by(every) {
            let x = left + wide * (column as f64 + 0.5);
            body.push_str(&text("tick", Anchor::Middle, [x, bottom + 15.0], name));
        }
        let width = (left + wide * columns).max(text_width(&self.title, 13.0)) + VALUE_WIDTH;
        body.push_str(&text(
            "label",
            Anchor::Middle,
            [left + wide * columns / 2.0, bottom + 32.0],
            &self.across.0,
        ));
        let ends = [tick_of(low), tick_of(high)];
        let key_width = KEY + ends.iter().map(|end| text_width(end, 11.0) + 8.0).sum::<f64>();
        body.push_str(&key([left, bottom + 44.0], ends));
        Some(SvgPanel { width: width.max(left + key_width), height: bottom + 76.0, body })
    }
}

fn tick_of(value: f64) -> String {
    if value.abs() >= 1e7 { tick(value) } else { digits(value) }
}

fn cell([x, y]: [f64; 2], wide: f64, value: Option<(f64, f64)>, title: &str) -> String {
    let title = escaped(title, 300);
    let inner = [wide - 1.0, HIGH - 1.0];
    let drawn = |attributes: &str| rectangle(attributes, [x, y], inner, ("", &title));
    let Some((share, value)) = value else { return drawn("class=\"empty\"") };
    let (fill, ink) = heat(share);
    let mut body = drawn(&format!("class=\"cell\" fill=\"{fill}\""));
    if wide >= VALUE_WIDTH {
        body.push_str(&text(ink, Anchor::Middle, [x + wide / 2.0, y + HIGH / 2.0 + 4.0], &tick_of(value)));
    }
    body
}

/// The colours from least to most.
fn key([x, y]: [f64; 2], [low, high]: [String; 2]) -> String {
    let left = x + text_width(&low, 11.0) + 8.0;
    let mut body = text("tick", Anchor::Start, [x, y + 10.0], &low);
    for step in 0..STEPS {
        let (fill, _) = heat(f64::from(step) / f64::from(STEPS - 1));
        let x = left + KEY / f64::from(STEPS) * f64::from(step);
        body.push_str(&format!(
            "<rect fill=\"{fill}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"6.5\" height=\"12\"/>\n"
        ));
    }
    body + &text("tick", Anchor::Start, [left + KEY + 8.0, y + 10.0], &high)
}
