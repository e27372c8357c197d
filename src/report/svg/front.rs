//! The Pareto front: configurations over two metrics, with prediction intervals, the SLO and the chosen point.

use super::SvgPanel;
use super::frame::{PlotAxis, PlotFrame};
use super::marks::{SIZE, SMALL, chosen, plan_point, whisker};
use super::scale::{PlotScale, drawable};
use crate::report::number::format_metric;
use crate::report::result::{OptimizeResult, ReportedDeployment};
use crate::report::text::front::{axes, is_disaggregated, label};
use crate::spec::objective::{LatencyLimits, Metric};

/// Maximum number of points whose intervals are drawn: more would cover the points.
const MOST_WHISKERS: usize = 400;

/// The ends of the 80 % interval of a metric.
fn ends(row: &ReportedDeployment, metric: Metric) -> Option<[f64; 2]> {
    row.intervals.as_ref()?.get(metric).map(|ends| [ends.p10, ends.p90])
}

/// The limit of a metric by the SLOs, in the unit of its column, and whether smaller values keep it.
fn limit(limits: &LatencyLimits, metric: Metric) -> Option<(f64, bool)> {
    match metric {
        Metric::Ttft => limits.ttft.map(|seconds| (seconds * 1e3, true)),
        Metric::Tpot => limits.tpot.map(|seconds| (seconds * 1e3, true)),
        Metric::E2e => limits.e2e.map(|seconds| (seconds * 1e3, true)),
        Metric::OutputTokSPerUser => limits.tpot.map(|seconds| (1.0 / seconds, false)),
        _ => None,
    }
}

/// A configuration in words: plan and both metrics.
fn title(row: &ReportedDeployment, across: Metric, up: Metric) -> String {
    let figures = [across, up].map(|metric| row.figure(metric).map(|value| format_metric(metric, value)));
    let figures: Vec<String> = figures.into_iter().flatten().collect();
    format!("{}: {}", row.notation, figures.join(", "))
}

/// The front of a search; `None` where two metrics of it are not known.
pub fn front(answer: &OptimizeResult) -> Option<SvgPanel> {
    let (across, up) = axes(answer)?;
    let place = |row: &ReportedDeployment| {
        let place = [row.figure(across)?, row.figure(up)?];
        place.iter().all(|value| drawable(*value)).then_some(place)
    };
    let rows: Vec<PlacedRow> =
        answer.front.iter().chain(&answer.best).filter_map(|row| Some((row, place(row)?))).collect();
    let many = rows.len() > MOST_WHISKERS;
    // Of many, only the chosen one, which is the last, has its intervals drawn.
    let first = if many && answer.best.is_some() { rows.len() - 1 } else { 0 };
    let reach = |at: usize, metric: Metric| -> Vec<f64> {
        let values = rows.iter().map(|(_, place)| place[at]);
        let ends = rows[first..].iter().filter_map(|(row, _)| ends(row, metric)).flatten();
        values.chain(ends).collect()
    };
    let (mut xs, ys) = (reach(0, across), reach(1, up));
    let slo = limit(&answer.question.limits, across);
    let (low, high) = xs.iter().fold((f64::MAX, 0.0f64), |(low, high), x| (low.min(*x), high.max(*x)));
    // A limit far away would leave the points no room.
    let slo = slo.filter(|(limit, _)| (low / 3.0..=high * 3.0).contains(limit));
    xs.extend(slo.map(|(limit, _)| limit));
    let axis = |values: Vec<f64>, metric| {
        let scale = PlotScale::over(values.into_iter())?;
        Some(PlotAxis { scale, label: label(metric) })
    };
    let frame = PlotFrame {
        title: format!(
            "Pareto front: {} of {} configurations (ring: chosen{}{})",
            answer.front.len(),
            answer.front_points,
            if answer.outside_front().is_some() { ", not on the front" } else { "" },
            if slo.is_some() { "; shaded: misses the SLO" } else { "" }
        ),
        x: axis(xs, across)?,
        y: axis(ys, up)?,
        width: 640.0,
        height: 320.0,
        legend: legend(&rows),
    };
    let (mut lines, mut marks) = (String::new(), String::new());
    for (number, (row, [x, y])) in rows.iter().enumerate() {
        let series = usize::from(is_disaggregated(row));
        let at = [frame.x(*x), frame.y(*y)];
        if let Some([low, high]) = ends(row, across).filter(|_| number >= first) {
            lines.push_str(&whisker(series, [frame.x(low), at[1]], [frame.x(high), at[1]]));
        }
        if let Some([low, high]) = ends(row, up).filter(|_| number >= first) {
            lines.push_str(&whisker(series, [at[0], frame.y(low)], [at[0], frame.y(high)]));
        }
        let size = if many { SMALL } else { SIZE };
        marks.push_str(&plan_point(series, at, size, (&row.notation, &title(row, across, up), *x)));
    }
    if let Some((best, [x, y])) = answer.best.as_ref().and_then(|best| Some((best, place(best)?))) {
        let words = format!("chosen: {}", title(best, across, up));
        marks.push_str(&chosen([frame.x(x), frame.y(y)], &words));
    }
    Some(frame.panel(&slo_region(&frame, slo), &(lines + &marks)))
}

/// A configuration and its values on both axes.
type PlacedRow<'a> = (&'a ReportedDeployment, [f64; 2]);

/// The kinds of configurations that are drawn.
fn legend(rows: &[PlacedRow]) -> Vec<(usize, String)> {
    let kinds = [(0, "aggregated", false), (1, "disaggregated", true)];
    let drawn =
        kinds.into_iter().filter(|(.., split)| rows.iter().any(|(row, _)| is_disaggregated(row) == *split));
    drawn.map(|(series, name, _)| (series, name.to_owned())).collect()
}

/// The part of the field that misses the SLO.
fn slo_region(frame: &PlotFrame, slo: Option<(f64, bool)>) -> String {
    let ticks = frame.x.scale.ticks();
    let Some(((limit, below), (first, last))) = slo.zip(ticks.first().zip(ticks.last())) else {
        return String::new();
    };
    if below { frame.region(limit, last.max(limit)) } else { frame.region(first.min(limit), limit) }
}
