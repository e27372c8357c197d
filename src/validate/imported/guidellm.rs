//! GuideLLM's `benchmarks.json`, of the schemas since version 0.2.
//!
//! Keys: `benchmark/schemas/{report,benchmark,base,metrics}.py`, `schemas/base/{statistics,request_stats}.py` and
//! `scheduler/strategies.py` of the package guidellm 0.8.1; the same of 0.5.0; before version 0.4 `benchmark/benchmark.py`
//! and `scheduler/{strategy,worker}.py` of 0.3.1, where the strategy and the model have other places. Its
//! `inter_token_latency_ms` leaves the first token out, as TPOT here; its `time_per_output_token_ms` does not.

use std::time::Duration;

use super::documents::FileContent;
use super::fields::{FileFields, LatencyKeys, LatencyUnit};
use super::samples::counted;
use super::{first_has, model_of, objects};
use crate::spec::error::Error;
use crate::spec::limits::{RATE, SECONDS};
use crate::spec::percentile::Percentile;
use crate::spec::run::{RunLatency, RunRecord, RunStatistic};
use crate::spec::text::in_utc;

const STATISTICS: &[(RunStatistic, &str)] = &[
    (RunStatistic::Mean, "mean"),
    (RunStatistic::At(Percentile::P50), "median"),
    (RunStatistic::At(Percentile::P90), "percentiles.p90"),
    (RunStatistic::At(Percentile::P95), "percentiles.p95"),
    (RunStatistic::At(Percentile::P99), "percentiles.p99"),
];

const IN_MS: LatencyKeys = LatencyKeys {
    path: "metrics.{l}.successful.{s}",
    latencies: &[(RunLatency::Ttft, "time_to_first_token_ms"), (RunLatency::Tpot, "inter_token_latency_ms")],
    statistics: STATISTICS,
    unit: LatencyUnit::Of(1.0),
};
const IN_S: LatencyKeys = LatencyKeys {
    path: "metrics.{l}.successful.{s}",
    latencies: &[(RunLatency::E2e, "request_latency")],
    statistics: STATISTICS,
    unit: LatencyUnit::Of(1e3),
};

pub(super) fn recognises(content: &FileContent<'_>) -> bool {
    first_has(content, &["benchmarks.0.metrics.requests_per_second.successful"])
}

pub(super) fn read(content: &FileContent<'_>) -> Result<Vec<RunRecord>, Error> {
    let mut runs = Vec::new();
    for report in objects(content) {
        for benchmark in report.items("benchmarks")? {
            runs.push(run(&report, &benchmark)?);
        }
    }
    Ok(runs)
}

fn run(report: &FileFields<'_>, benchmark: &FileFields<'_>) -> Result<RunRecord, Error> {
    let own = ["config.backend.model", "worker.backend_model"];
    let of_all = ["config.spec.backend.model", "args.model"];
    let model = match benchmark.text_of(&own)? {
        Some(model) => Some(model),
        None => report.text_of(&of_all)?,
    };
    // Version 0.3 writes the word where the server chooses the model.
    let model = model.filter(|model| *model != "None").map(model_of);
    let mut run = RunRecord { model_id: model.unwrap_or_default(), ..RunRecord::default() };
    if let Some(seconds) = benchmark.number("start_time", &SECONDS)? {
        run.timestamp_utc = in_utc(Duration::from_secs_f64(seconds));
    }
    let mean = |metric: &str| benchmark.measured(&format!("metrics.{metric}.successful.mean"));
    run.context_tokens = mean("prompt_token_count")?.unwrap_or(0.0).round() as u64;
    run.output_tokens = mean("output_token_count")?.unwrap_or(0.0).round() as u64;
    run.metrics.requests_sec = mean("requests_per_second")?;
    run.metrics.prefill_toks_sec = mean("prompt_tokens_per_second")?;
    run.metrics.decode_toks_sec = mean("output_tokens_per_second")?;
    run.metrics.mean_concurrency = mean("request_concurrency")?;
    IN_MS.read(benchmark, &mut run.metrics)?;
    IN_S.read(benchmark, &mut run.metrics)?;
    // Requests that were under way at the end are `incomplete`: they did not fail.
    let places = ["metrics.request_totals", "request_totals", "run_stats.requests_made"];
    let totals = places.iter().find_map(|place| benchmark.inside(place));
    if let Some(totals) = totals {
        let answered = totals.count("successful")?.unwrap_or(0);
        run.requests = Some(counted(answered, totals.count("errored")?.unwrap_or(0)));
    }
    let strategy = ["config.strategy", "args.strategy"].iter().find_map(|place| benchmark.inside(place));
    if let Some(strategy) = strategy {
        load(&strategy, &mut run)?;
    }
    Ok(run)
}

/// The load of a strategy. Without a limit as many requests as the throughput strategy had in flight are its clients.
fn load(strategy: &FileFields<'_>, run: &mut RunRecord) -> Result<(), Error> {
    let variation = match strategy.text("type_")? {
        Some("synchronous") => {
            run.concurrency = Some(1);
            None
        }
        Some("concurrent") => {
            run.concurrency = strategy.some("streams")?;
            None
        }
        Some("throughput") => {
            let measured = run.metrics.mean_concurrency.map(|clients| clients.round() as u64);
            run.concurrency = strategy.some("max_concurrency")?.or(measured).filter(|clients| *clients > 0);
            None
        }
        Some("constant") => Some(0.0),
        Some("poisson") => Some(1.0),
        _ => None,
    };
    if variation.is_some() {
        run.rate_per_s = strategy.number("rate", &RATE)?.filter(|rate| *rate > 0.0);
        run.arrival_variation = variation.filter(|_| run.rate_per_s.is_some());
    }
    Ok(())
}
