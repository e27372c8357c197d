//! A tornado plot: the change of a metric where each input is larger, the strongest first.

use super::frame::line;
use super::marks::{bar, swatch};
use super::{Anchor, SvgPanel, SvgPicture, text, text_width};
use crate::report::audit::{AuditReport, CHANGE, ORDERING};
use crate::report::number::{percent, word};
use crate::spec::objective::{Direction, Metric};
use crate::spec::visible::elided;

const SIDE: f64 = 170.0;
/// Height of a bar and its room.
const LINE: f64 = 22.0;
const MOST: usize = 12;
/// Longest name, in characters.
const LONGEST: usize = 44;
/// Series of a change for the better, and for the worse.
const BETTER: usize = 2;
const WORSE: usize = 1;
/// Room of a number at the end of a bar.
const NUMBER: f64 = 56.0;

/// The change of a metric by one change of the problem.
#[derive(Clone, Debug, PartialEq)]
pub struct TornadoBar {
    pub name: String,
    pub change: f64,
    pub better: bool,
    /// Title of the bar, to which the change is added.
    pub words: String,
}

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
        panels: ORDERING.iter().filter_map(|metric| of_metric(report, *metric)).collect(),
    }
}

fn of_metric(report: &AuditReport, metric: Metric) -> Option<SvgPanel> {
    let larger_is_better = metric.entry().direction == Direction::Maximize;
    let inputs = report.section.assumptions.iter().chain(&report.known);
    let all = inputs.filter_map(|input| {
        let change = input.on(metric)?.at_10_percent_more;
        let words = format!("{} = {}, {}", input.symbol, input.value, input.grade);
        Some(TornadoBar { name: input.name(), change, better: (change > 0.0) == larger_is_better, words })
    });
    tornado(word(metric), all.collect())
}

/// The changes of a metric, the largest first; none where nothing changes it.
pub fn tornado(title: &str, mut all: Vec<TornadoBar>) -> Option<SvgPanel> {
    all.retain(|one| one.change.is_finite());
    all.sort_by(|a, b| b.change.abs().total_cmp(&a.change.abs()));
    all.truncate(MOST);
    let largest = all.first().map(|one| one.change.abs()).filter(|change| *change > 0.0)?;
    let names: Vec<String> = all.iter().map(|one| elided(&one.name, LONGEST).into_owned()).collect();
    let left = names.iter().map(|name| text_width(name, 11.0)).fold(60.0, f64::max) + 10.0;
    let middle = left + NUMBER + SIDE;
    let mut body = text("name", Anchor::Start, [0.0, 14.0], title);
    let mut x = text_width(title, 13.0) + 24.0;
    for (series, name) in [(BETTER, "better"), (WORSE, "worse")] {
        body.push_str(&swatch(series, [x, 10.0]));
        body.push_str(&text("tick", Anchor::Start, [x + 10.0, 14.0], name));
        x += 26.0 + text_width(name, 11.0);
    }
    let bottom = 26.0 + LINE * all.len() as f64;
    for (at, (one, name)) in all.iter().zip(&names).enumerate() {
        let y = 26.0 + LINE * at as f64;
        let length = SIDE * one.change.abs() / largest;
        body.push_str(&text("value", Anchor::End, [left - 8.0, y + 12.0], name));
        let (x, anchor, end) = match one.change < 0.0 {
            true => (middle - length, Anchor::End, middle - length - 6.0),
            false => (middle, Anchor::Start, middle + length + 6.0),
        };
        let words = format!("{}: {}", one.words, signed(one.change));
        let series = if one.better { BETTER } else { WORSE };
        body.push_str(&bar(series, [x, y], [length, LINE - 7.0], &words));
        body.push_str(&text("tick", anchor, [end, y + 12.0], &signed(one.change)));
    }
    body.push_str(&line("axis", [middle, 22.0], [middle, bottom]));
    Some(SvgPanel { width: x.max(middle + SIDE + NUMBER), height: bottom + 16.0, body })
}

fn signed(change: f64) -> String {
    format!("{}{}", if change < 0.0 { "-" } else { "+" }, percent(change.abs()))
}
