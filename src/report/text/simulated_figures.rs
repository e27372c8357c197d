//! Utilisation, energy, cost and intervals of a simulation as text.

use super::page::{heading, indent, paragraph};
use crate::report::number::{count, digits, percent, time};
use crate::report::result::Quantiles;
use crate::report::simulate::SimulateReport;
use crate::report::simulated_figures::{LatencyIntervals, PoolUtilization, SimulatedIntervals};
use crate::report::table::table;
use crate::spec::role::Role;

/// How far the devices are used, their energy and their cost.
pub fn devices(report: &SimulateReport) -> String {
    let mut text = String::new();
    for pool in &report.utilization {
        text.push_str(&paragraph(&utilization(pool)));
    }
    let energy = report.energy.as_ref().map(|energy| {
        format!(
            "{} W on average, {} J per output token, {} Wh per request",
            digits(energy.watts),
            digits(energy.joules_per_output_token),
            digits(energy.wh_per_request)
        )
    });
    // With an operation, its own lines have the cost.
    let cost = report.cost.as_ref().filter(|_| report.operation.is_none());
    let cost = cost.and_then(|cost| cost.usd_per_mtok.zip(cost.usd_per_mtok_total)).map(|(output, total)| {
        format!("{} USD/Mtok of output, {} USD/Mtok in total", digits(output), digits(total))
    });
    let parts: Vec<String> = energy.into_iter().chain(cost).collect();
    if !parts.is_empty() {
        text.push_str(&paragraph(&parts.join("; ")));
    }
    text
}

fn utilization(pool: &PoolUtilization) -> String {
    let of = match pool.role {
        Role::Aggregated => String::new(),
        role => format!("{} workers: ", role.name()),
    };
    format!(
        "{of}steps run {} of the time; KV cache {} in use on average, {} at most; MFU {}, MBU {}",
        percent(pool.busy),
        percent(pool.kv_used_mean),
        percent(pool.kv_used_max),
        percent(pool.mfu),
        percent(pool.mbu)
    )
}

/// The intervals; nothing without any.
pub fn intervals(found: Option<&SimulatedIntervals>) -> String {
    let Some(found) = found else { return String::new() };
    let rest = format!("p10 to p90 of {} with the errors of the prediction", count(found.draws, "run"));
    let cell = |one: Option<Quantiles>| one.map_or_else(String::new, |one| span(&one, time));
    let row = |one: &LatencyIntervals| {
        let times = one.values().map(cell);
        std::iter::once(one.metric.to_uppercase()).chain(times).collect::<Vec<_>>()
    };
    let rows = found.latencies.iter().map(row);
    let good = found.goodput.as_ref();
    let good = good.map_or_else(String::new, |good| format!("within the SLOs {}; ", span(good, percent)));
    heading("Intervals", &rest)
        + &indent(&table(&["", "mean", "p50", "p90", "p95", "p99"], rows), 2)
        + &paragraph(&format!("{good}{} output tok/s", span(&found.output_tok_s, digits)))
}

/// The ends of an interval: `34.2 to 103 ms`.
fn span(one: &Quantiles, words: fn(f64) -> String) -> String {
    let (low, high) = (words(one.p10), words(one.p90));
    match low.rsplit_once(' ').zip(high.rsplit_once(' ')) {
        Some(((number, unit), (_, other))) if unit == other => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}
