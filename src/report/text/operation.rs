//! The operation of a simulated deployment as text.

use super::page::{heading, indent, paragraph};
use crate::report::number::{count, digits, time};
use crate::report::operation::{FaultReport, OperationReport, ScalingReport};
use crate::report::simulate::LatencyRow;
use crate::report::table::table;
use crate::traffic::scaler::ScaleSignal;

/// Requests without an answer, faults, replicas and their cost.
pub fn operation(report: &OperationReport) -> String {
    let mut text = String::new();
    if report.aborted > 0 {
        text.push_str(&paragraph(&format!("{} given up by their clients", count(report.aborted, "request"))));
    }
    if let Some(sessions) = report.sessions_given_up.filter(|sessions| *sessions > 0) {
        let why = "a request was given up or failed";
        text.push_str(&paragraph(&format!("{} ended early: {why}", count(sessions, "session"))));
    }
    if let Some(of) = &report.faults {
        text.push_str(&faults(of));
    }
    if report.wasted_tokens > 0 {
        text.push_str(&paragraph(&format!(
            "{} without a client: given up, or lost",
            count(report.wasted_tokens, "output token")
        )));
    }
    if let Some(of) = &report.scaling {
        text.push_str(&paragraph(&scaling(of)));
    }
    let cost = match (report.usd, report.usd_per_mtok) {
        (Some(usd), Some(each)) => {
            format!(", {} USD, {} USD/Mtok of answered output", digits(usd), digits(each))
        }
        _ => String::new(),
    };
    let held = format!(
        "on average {} held; {} device-hours{cost}",
        count_of(report.mean_replicas),
        digits(report.device_hours)
    );
    text.push_str(&paragraph(&held));
    text
}

fn count_of(replicas: f64) -> String {
    format!("{} replicas", digits(replicas))
}

fn faults(of: &FaultReport) -> String {
    let failed = if of.failed > 0 { format!(", {} failed", of.failed) } else { String::new() };
    let said = format!("{}: {} lost{failed}", count(of.faults, "fault"), count(of.lost, "request"));
    let mut text = paragraph(&said);
    if of.in_recovery == 0 {
        return text;
    }
    text.push_str(&heading("During recovery", "of requests that arrived then; others below"));
    let cell = |ms: Option<f64>| ms.map_or_else(String::new, time);
    let row = |(when, one): (&str, &LatencyRow)| {
        let times = [one.mean_ms, one.p50_ms, one.p90_ms, one.p95_ms, one.p99_ms].map(cell);
        std::iter::once(format!("{} {when}", one.metric.to_uppercase())).chain(times).collect::<Vec<_>>()
    };
    let within = of.recovery.iter().map(|one| ("in recovery", one));
    let rows = within.chain(of.outside.iter().map(|one| ("otherwise", one))).map(row);
    text.push_str(&indent(&table(&["", "mean", "p50", "p90", "p95", "p99"], rows), 2));
    text
}

fn scaling(of: &ScalingReport) -> String {
    let signal = match of.signal {
        ScaleSignal::Queue => "requests that wait",
        ScaleSignal::Requests => "requests that run or wait",
        ScaleSignal::KvCache => "of the KV cache in use",
    };
    format!(
        "{} to {} replicas, each for {} {signal}, every {} s; fewer after {} s",
        of.min_replicas,
        of.max_replicas,
        digits(of.target),
        digits(of.interval_s),
        digits(of.scale_down_s)
    )
}
