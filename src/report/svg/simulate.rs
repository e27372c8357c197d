//! A simulation as lines over time, and its latencies by percentile.

use super::lines::{LinePoint, PlotLine, courses, lines};
use super::{SvgPanel, SvgPicture, side_by_side};
use crate::report::capacity::{CapacityReport, CapacityRule, CapacityTrial};
use crate::report::number::{digits, percent, time};
use crate::report::result::Quantiles;
use crate::report::simulate::{LatencyRow, SimulateReport};
use crate::traffic::outcome::TimelinePoint;

/// Windows over which throughput is averaged.
const WINDOWS: usize = 80;

/// The picture of a simulation.
pub fn simulate_picture(report: &SimulateReport) -> SvgPicture {
    let over_time = |of: &[(&str, fn(&TimelinePoint) -> f64)], words: fn(f64) -> String| {
        let line = |(name, value): &(&str, fn(&TimelinePoint) -> f64)| PlotLine {
            name: if of.len() > 1 { (*name).to_owned() } else { String::new() },
            points: report.timeline.iter().map(|point| at(point.time_s, value(point), name, words)).collect(),
        };
        of.iter().map(line).collect::<Vec<_>>()
    };
    let requests = over_time(
        &[("running", |point| point.running as f64), ("waiting", |point| point.waiting as f64)],
        digits,
    );
    let cache = over_time(&[("KV cache", |point| point.kv_used)], percent);
    let replicas: Vec<PlotLine> =
        over_time(&[("replicas", |point| point.replicas.unwrap_or(0) as f64)], digits)
            .into_iter()
            .filter(|_| report.timeline.iter().any(|point| point.replicas.is_some()))
            .collect();
    let panels = [
        report.found.as_ref().and_then(within_slos),
        courses("Requests over time", ["s", "requests"], &requests),
        courses("KV cache in use", ["s", "share"], &cache),
        if replicas.is_empty() { None } else { courses("Replicas that serve", ["s", "replicas"], &replicas) },
        courses("Output tokens per second", ["s", "tok/s"], &[throughput(report)]),
        lines("Latencies by percentile", ["percentile", "ms"], &latencies(report)),
    ];
    let panels: Vec<_> = panels.into_iter().flatten().collect();
    SvgPicture {
        title: format!("{} under traffic", report.notation),
        subtitle: format!(
            "{} requests counted, {} output tok/s",
            report.traffic.measured,
            digits(report.output_tok_s)
        ),
        panels: if panels.is_empty() { vec![] } else { vec![side_by_side(&panels, 2)] },
    }
}

/// The share of the requests within the SLOs, over the load; runs that ended early are marked at the bottom.
fn within_slos(found: &CapacityReport) -> Option<SvgPanel> {
    let point = |one: &CapacityTrial| LinePoint {
        x: one.value,
        y: one.within_slos,
        ends: None,
        title: format!(
            "{} {}: {} within the SLOs",
            found.quantity.digits(one.value),
            found.quantity.unit(),
            one.within_slos.map_or_else(|| "under 50 %".to_owned(), percent)
        ),
    };
    let line = PlotLine { name: String::new(), points: found.trials.iter().map(point).collect() };
    let has_slos = found.bounds.iter().any(|bound| bound.rule == CapacityRule::Slos);
    has_slos.then(|| lines("Requests within the SLOs", [found.quantity.unit(), "share"], &[line])).flatten()
}

fn at(x: f64, y: f64, name: &str, words: fn(f64) -> String) -> LinePoint {
    LinePoint { x, y: Some(y), ends: None, title: format!("{} s: {name} {}", digits(x), words(y)) }
}

/// Output between the points of the timeline.
fn throughput(report: &SimulateReport) -> PlotLine {
    let every = report.timeline.len().div_ceil(WINDOWS).max(1);
    let ends: Vec<&TimelinePoint> = report.timeline.iter().step_by(every).collect();
    let between = |pair: &[&TimelinePoint]| {
        let [before, after] = pair else { return None };
        let lasted = after.time_s - before.time_s;
        let tokens = (after.output_tokens - before.output_tokens) as f64;
        (lasted > 0.0).then(|| at(after.time_s, tokens / lasted, "output tok/s", digits))
    };
    PlotLine { name: String::new(), points: ends.windows(2).filter_map(between).collect() }
}

fn latencies(report: &SimulateReport) -> Vec<PlotLine> {
    let line = |row: &LatencyRow| {
        let drawn = report.intervals.as_ref();
        let drawn = drawn.and_then(|found| found.latencies.iter().find(|one| one.metric == row.metric));
        let parts = [
            (50.0, row.p50_ms, drawn.and_then(|one| one.p50_ms)),
            (90.0, row.p90_ms, drawn.and_then(|one| one.p90_ms)),
            (95.0, row.p95_ms, drawn.and_then(|one| one.p95_ms)),
            (99.0, row.p99_ms, drawn.and_then(|one| one.p99_ms)),
        ];
        let point = |(x, y, drawn): (f64, Option<f64>, Option<Quantiles>)| LinePoint {
            x,
            y,
            ends: drawn.map(|drawn| (drawn.p10, drawn.p90)),
            title: format!("{} p{x}: {}", row.metric, y.map_or_else(String::new, time)),
        };
        PlotLine { name: row.metric.clone(), points: parts.into_iter().map(point).collect() }
    };
    report.latencies.iter().map(line).collect()
}
