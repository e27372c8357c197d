//! `mlperf_log_summary.txt` of MLPerf's LoadGen, of the scenarios Offline, Server and SingleStream. An interactive
//! submission is one of Server.
//!
//! Lines: `PerformanceSummary::LogSummary` in `loadgen/results.cc`, and `ToString` of the scenarios in
//! `loadgen/test_settings_internal.cc` of mlcommons/inference (05a9cec). Times are nanoseconds. A summary names neither
//! model nor device nor lengths: its data sets are fixed by the rules.

use serde_json::Value;

use super::documents::{FileContent, labelled};
use super::fields::{FileFields, LatencyKeys, LatencyUnit};
use crate::spec::error::Error;
use crate::spec::limits::RATE;
use crate::spec::percentile::Percentile;
use crate::spec::run::{RunLatency, RunRecord, RunStatistic};

const TITLE: &str = "MLPerf Results Summary";
const NS: LatencyUnit = LatencyUnit::Of(1e-6);

const MEANS: LatencyKeys = LatencyKeys {
    path: "Mean {l} (ns)",
    latencies: &[
        (RunLatency::Ttft, "First Token latency"),
        (RunLatency::Tpot, "Time to Output Token"),
        (RunLatency::E2e, "latency"),
    ],
    statistics: &[(RunStatistic::Mean, "")],
    unit: NS,
};
const PERCENTILES: LatencyKeys = LatencyKeys {
    path: "{s} percentile {l} (ns)",
    latencies: &[
        (RunLatency::Ttft, "first token latency"),
        (RunLatency::Tpot, "time to output token"),
        (RunLatency::E2e, "latency"),
    ],
    statistics: &[
        (RunStatistic::At(Percentile::P50), "50.00"),
        (RunStatistic::At(Percentile::P90), "90.00"),
        (RunStatistic::At(Percentile::P95), "95.00"),
        (RunStatistic::At(Percentile::P99), "99.00"),
    ],
    unit: NS,
};

pub(super) fn recognises(content: &FileContent<'_>) -> bool {
    content.text().contains(TITLE)
}

pub(super) fn read(content: &FileContent<'_>) -> Result<Vec<RunRecord>, Error> {
    let parts = content.text().split(TITLE).skip(1);
    parts.map(|part| run(&FileFields::of(&labelled(part.lines())))).collect()
}

fn run(fields: &FileFields<'_>) -> Result<RunRecord, Error> {
    let mut run = RunRecord::default();
    let scenario = fields.text("Scenario")?.unwrap_or_default();
    match scenario {
        // Poisson arrivals at the target rate: `schedule_distribution` of Server in loadgen.
        "Server" => {
            run.rate_per_s = fields.number("target_qps", &RATE)?.filter(|rate| *rate > 0.0);
            run.arrival_variation = run.rate_per_s.map(|_| 1.0);
        }
        "SingleStream" => run.concurrency = Some(1),
        // All samples are one query at the start.
        "Offline" => run.concurrency = fields.some("samples_per_query")?,
        _ => {
            let found = fields.find("Scenario").unwrap_or(&Value::Null);
            return Err(fields.fault("Scenario", found, "Offline, Server or SingleStream"));
        }
    }
    for key in ["Tokens per second", "Completed tokens per second"] {
        run.metrics.decode_toks_sec = run.metrics.decode_toks_sec.or(fields.measured(key)?);
    }
    for key in ["Samples per second", "Completed samples per second"] {
        run.metrics.requests_sec = run.metrics.requests_sec.or(fields.measured(key)?);
    }
    if let Some((tokens, samples)) = run.metrics.decode_toks_sec.zip(run.metrics.requests_sec) {
        run.output_tokens = (tokens / samples).round() as u64;
    }
    // Offline latencies are times from the start of the whole query, in which all wait for all.
    if scenario != "Offline" {
        MEANS.read(fields, &mut run.metrics)?;
        PERCENTILES.read(fields, &mut run.metrics)?;
    }
    if let Some(result) = fields.text("Result is")? {
        run.env.insert("result".to_owned(), Value::String(result.to_owned()));
    }
    Ok(run)
}
