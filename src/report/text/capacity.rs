//! The limit of a simulated deployment as text.

use super::page::{heading, indent, paragraph};
use crate::report::capacity::{
    AutoscaledReplicas, CapacityBound, CapacityQuantity, CapacityReport, CapacityRule, CapacityTrial,
};
use crate::report::number::{change, count, digits, percent, time};
use crate::report::table::table;
use crate::traffic::capacity::CapacityEnd;

/// The limits, and the runs that show them.
pub fn capacity(report: &CapacityReport) -> String {
    let bounds = report.bounds.iter().map(|one| paragraph(&bound(report, one)));
    let mut text: String = bounds.collect();
    if let Some(devices) = report.devices {
        text.push_str(&paragraph(&format!("{} for these replicas", count(devices, "device"))));
    }
    if let Some(of) = &report.autoscaled {
        text.push_str(&paragraph(&autoscaled(of)));
    }
    let times: Vec<String> = report
        .alone
        .iter()
        .filter_map(|row| Some(format!("{} {}", row.metric.to_uppercase(), time(row.at(report.percentile)?))))
        .collect();
    if !times.is_empty() {
        let within = report.alone_within_slos.map_or_else(String::new, within);
        let percentile = report.percentile.name();
        text.push_str(&paragraph(&format!(
            "requests one after the other: {percentile} of {}{within}",
            times.join(", ")
        )));
    }
    if report.trials.is_empty() {
        return text;
    }
    let runs =
        format!("{}, latencies at {}", count(report.trials.len() as u64, "run"), report.percentile.name());
    text.push_str(&heading("Search", &runs));
    text.push_str(&indent(&trials(report), 2));
    text
}

/// A share in tenths of a percent: the two sides of a limit differ by less than one.
fn tenths(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn within(share: f64) -> String {
    format!(", {} within the SLOs", percent(share))
}

fn rule(report: &CapacityReport, rule: CapacityRule) -> String {
    match rule {
        CapacityRule::Slos => {
            format!("{} of the requests within the SLOs", percent(report.percentile.part()))
        }
        CapacityRule::Queue => "a queue that does not grow".to_owned(),
        CapacityRule::Cache => "at least 95 % of the cache hits of a cache without limits".to_owned(),
    }
}

/// One limit in a sentence.
fn bound(report: &CapacityReport, one: &CapacityBound) -> String {
    let (of, unit) = (rule(report, one.rule), report.quantity.unit());
    let missed = one.missed.map(|value| report.quantity.digits(value));
    let Some(value) = one.value else {
        return match (one.end, missed) {
            (CapacityEnd::Stopped, _) => format!("stopped before any run had {of}"),
            (_, Some(missed)) => format!("none has {of}: {missed} {unit} miss"),
            (_, None) => format!("none has {of}: requests one after the other miss too"),
        };
    };
    let missed = match (missed, one.end) {
        (Some(missed), CapacityEnd::Bracketed) => format!("{missed} miss"),
        (_, CapacityEnd::AllMeet) => "the last value that is tried".to_owned(),
        (Some(missed), _) => format!("{missed} miss; the search ended early"),
        (None, _) => "the search ended early".to_owned(),
    };
    let most = match report.quantity {
        CapacityQuantity::Rate => "highest rate",
        CapacityQuantity::SpeedUp => "highest speed",
        CapacityQuantity::Clients => "most clients",
        CapacityQuantity::Replicas => "fewest replicas",
    };
    format!("{most} with {of}: {} {unit}; {missed}", report.quantity.digits(value))
}

fn autoscaled(of: &AutoscaledReplicas) -> String {
    let fixed = of.fixed_device_hours.map_or_else(String::new, |hours| {
        format!(" ({} against {} without it)", change(hours, of.device_hours), digits(hours))
    });
    format!(
        "with autoscaling on average {} replicas, {} device-hours{fixed}{}",
        digits(of.mean_replicas),
        digits(of.device_hours),
        of.within_slos.map_or_else(String::new, within)
    )
}

fn trials(report: &CapacityReport) -> String {
    let has = |rule: CapacityRule| report.bounds.iter().any(|bound| bound.rule == rule);
    let (slos, cache) = (has(CapacityRule::Slos), has(CapacityRule::Cache));
    let mut header = vec![report.quantity.unit(), "requests", "TTFT", "TPOT", "E2E", "waited"];
    if slos {
        header.push("within SLOs");
    }
    if cache {
        header.extend(["cached", "without limits"]);
    }
    header.push("");
    let cell = |ms: Option<f64>| ms.map_or_else(String::new, time);
    let row = |one: &CapacityTrial| {
        let mut cells = vec![report.quantity.digits(one.value), one.requests.to_string()];
        cells.extend([one.ttft_ms, one.tpot_ms, one.e2e_ms].map(cell));
        cells.push(tenths(one.waited_share));
        if slos {
            cells.push(one.within_slos.map_or_else(|| "under 50 %".to_owned(), tenths));
        }
        if cache {
            cells.extend([one.hit_rate, one.unlimited_hit_rate].map(tenths));
        }
        cells.push(if one.meets { "meets" } else { "misses" }.to_owned());
        cells
    };
    table(&header, report.trials.iter().map(row))
}
