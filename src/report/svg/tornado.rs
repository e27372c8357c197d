//! A tornado plot: the change of a metric where each input is larger, the strongest first.

use super::frame::line;
use super::marks::bar;
use super::{Anchor, SvgPanel, SvgPicture, text, text_width};
use crate::report::audit::{AuditReport, CHANGE, ORDERING};
use crate::report::number::{percent, word};
use crate::spec::objective::Metric;
use crate::spec::visible::elided;

/// Width of a side.
const SIDE: f64 = 170.0;
/// Height of a bar and its room.
const LINE: f64 = 22.0;
/// Bars of a metric.
const MOST: usize = 12;
/// Longest name, in characters.
const LONGEST: usize = 44;
/// Room of a number at the end of a bar.
const NUMBER: f64 = 56.0;

/// The picture of an audit: a plot for each of its metrics.
pub fn audit_picture(report: &AuditReport) -> SvgPicture {
    SvgPicture {
        title: format!(
            "Inputs of {} on {}, {}",
            report.question.model, report.question.hardware, report.notation
        ),
        subtitle: format!(
            "change of each metric where an input is {} larger, at the same plan",
            percent(CHANGE)
        ),
        panels: ORDERING.iter().filter_map(|metric| tornado(report, *metric)).collect(),
    }
}

fn tornado(report: &AuditReport, metric: Metric) -> Option<SvgPanel> {
    let mut effects: Vec<(String, f64, String)> = report
        .section
        .assumptions
        .iter()
        .chain(&report.known)
        .filter_map(|input| {
            let change = input.on(metric)?.at_10_percent_more;
            let words = format!("{} = {}, {}: {}", input.symbol, input.value, input.grade, signed(change));
            change.is_finite().then_some((input.name(), change, words))
        })
        .collect();
    effects.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    effects.truncate(MOST);
    let largest = effects.first().map(|(_, change, _)| change.abs()).filter(|change| *change > 0.0)?;
    let names: Vec<String> = effects.iter().map(|(name, ..)| elided(name, LONGEST).into_owned()).collect();
    let left = names.iter().map(|name| text_width(name, 11.0)).fold(60.0, f64::max) + 10.0;
    let middle = left + NUMBER + SIDE;
    let mut body = text("name", Anchor::Start, [0.0, 14.0], word(metric));
    let bottom = 26.0 + LINE * effects.len() as f64;
    for (at, ((_, change, words), name)) in effects.iter().zip(&names).enumerate() {
        let y = 26.0 + LINE * at as f64;
        let length = SIDE * change.abs() / largest;
        body.push_str(&text("value", Anchor::End, [left - 8.0, y + 12.0], name));
        let (x, anchor, end) = match *change < 0.0 {
            true => (middle - length, Anchor::End, middle - length - 6.0),
            false => (middle, Anchor::Start, middle + length + 6.0),
        };
        body.push_str(&bar(usize::from(*change > 0.0), [x, y], [length, LINE - 7.0], words));
        body.push_str(&text("tick", anchor, [end, y + 12.0], &signed(*change)));
    }
    body.push_str(&line("axis", [middle, 22.0], [middle, bottom]));
    Some(SvgPanel { width: middle + SIDE + NUMBER, height: bottom + 16.0, body })
}

fn signed(change: f64) -> String {
    format!("{}{}", if change < 0.0 { "-" } else { "+" }, percent(change.abs()))
}
