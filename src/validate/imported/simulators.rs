//! Requests and results of simulators, and of the measurements that they replay.
//!
//! Keys: BLIS, `sim/metrics_utils.go`, `sim/workload/tracev2.go`, `docs/guide/results.md` and
//! `testdata/goldendataset.json` of inference-sim/inference-sim (f90a1e3); LLMServingSim, `serving/core/scheduler.py`,
//! `bench/core/recorder.py` and `bench/examples` of casys-kaist/LLMServingSim (5daddb2).

use serde_json::Value;

use super::documents::FileContent;
use super::fields::{FileFields, LatencyKeys, LatencyUnit};
use super::samples::{RequestSample, arrivals, counted, fill};
use super::{first_has, model_of, objects};
use crate::spec::error::Error;
use crate::spec::limits::{DEGREE, MEASURED, RATE, SECONDS};
use crate::spec::percentile::Percentile;
use crate::spec::run::{RunLatency, RunOrigin, RunRecord, RunStatistic};
use crate::spec::text::in_utc;

/// Latencies of BLIS results: no median.
const LATENCIES: LatencyKeys = LatencyKeys {
    path: "{l}_{s}_ms",
    latencies: &[(RunLatency::Ttft, "ttft"), (RunLatency::Itl, "itl"), (RunLatency::E2e, "e2e")],
    statistics: &[
        (RunStatistic::Mean, "mean"),
        (RunStatistic::At(Percentile::P90), "p90"),
        (RunStatistic::At(Percentile::P95), "p95"),
        (RunStatistic::At(Percentile::P99), "p99"),
    ],
    unit: LatencyUnit::Of(1.0),
};

/// Keys of BLIS results, columns of its traces.
const RESULT: [&str; 3] = ["completed_requests", "responses_per_sec", "tokens_per_sec"];
const TRACE: [&str; 4] = ["arrival_time_us", "first_chunk_time_us", "last_chunk_time_us", "status"];
/// Columns of LLMServingSim's results, and keys of the requests that it measured.
const SIMULATED: [&str; 5] = ["instance id", "request id", "arrival", "latency", "TTFT"];
const MEASURED_REQUEST: [&str; 4] = ["input_toks", "output_toks", "first_token_ts", "last_token_ts"];

pub(super) fn is_blis(content: &FileContent<'_>) -> bool {
    let tested = RESULT.map(|key| format!("tests.0.metrics.{key}"));
    first_has(content, &RESULT)
        || first_has(content, &tested.each_ref().map(String::as_str))
        || content.has_columns(&TRACE)
}

pub(super) fn is_llmservingsim(content: &FileContent<'_>) -> bool {
    content.has_columns(&SIMULATED) || first_has(content, &MEASURED_REQUEST)
}

pub(super) fn read_blis(content: &FileContent<'_>) -> Result<Vec<RunRecord>, Error> {
    if let FileContent::Csv(rows) = content {
        return trace(rows).map(|run| vec![run]);
    }
    let mut runs = Vec::new();
    for fields in objects(content) {
        let tests = fields.items("tests")?;
        for test in &tests {
            runs.push(
                test.inside("metrics").map_or_else(|| Ok(RunRecord::default()), |of| result(&of, test))?,
            );
        }
        if tests.is_empty() {
            runs.push(result(&fields, &fields)?);
        }
    }
    Ok(runs)
}

/// A result, with its settings where a test has them.
fn result(fields: &FileFields<'_>, test: &FileFields<'_>) -> Result<RunRecord, Error> {
    let mut run = RunRecord { origin: RunOrigin::Simulated, ..RunRecord::default() };
    let requests = fields.items("requests")?;
    let mut samples = Vec::new();
    for request in &requests {
        let number = |key: &str| Ok::<_, Error>(request.number(key, &MEASURED)?.unwrap_or(0.0));
        let sample = RequestSample {
            isl: number("num_prefill_tokens")?,
            osl: number("num_decode_tokens")?,
            sent_s: request.number("arrived_at", &SECONDS)?,
            ttft_ms: request.measured("ttft_ms")?,
            e2e_ms: request.measured("e2e_ms")?,
            ..RequestSample::default()
        };
        samples.extend(sample.e2e_ms.is_some().then(|| sample.with_tpot()));
    }
    LATENCIES.read(fields, &mut run.metrics)?;
    run.metrics.requests_sec = fields.measured("responses_per_sec")?;
    run.metrics.decode_toks_sec = fields.measured("tokens_per_sec")?;
    fill(&mut run, &samples, 0)?;
    let completed = fields.count("completed_requests")?.unwrap_or(0);
    let sent = fields.count("injected_requests")?.unwrap_or(completed);
    run.requests = Some(counted(completed, sent.saturating_sub(completed)));
    let mean = |key: &str| {
        let total = fields.number(key, &MEASURED)?.unwrap_or(0.0);
        Ok::<_, Error>((total / completed.max(1) as f64).round() as u64)
    };
    run.context_tokens = mean("total_input_tokens")?;
    run.output_tokens = mean("total_output_tokens")?;
    settings(test, &mut run)?;
    if run.rate_per_s.is_none() {
        (run.rate_per_s, run.arrival_variation) = arrivals(&samples).unzip();
    }
    Ok(run)
}

fn settings(test: &FileFields<'_>, run: &mut RunRecord) -> Result<(), Error> {
    run.model_id = test.text("model")?.map(model_of).unwrap_or_default();
    run.hardware_id = test.text("hardware")?.map(|name| name.to_lowercase());
    run.parallelism.tensor_parallel = test.some("tp")?;
    run.parallelism.tensor_parallel.map_or(Ok(()), |tp| DEGREE.check_whole("tp", tp))?;
    // It simulates vLLM.
    run.runtime_id = "vllm".to_owned();
    run.rate_per_s = test.number("rate", &RATE)?.filter(|rate| *rate > 0.0);
    run.arrival_variation = run.rate_per_s.map(|_| 1.0);
    Ok(())
}

/// The requests of a trace. Only measured ones have the tokens that a server counted (`server_input_tokens`).
fn trace(rows: &[Value]) -> Result<RunRecord, Error> {
    let (mut samples, mut failed, mut counted_by_server) = (Vec::new(), 0, false);
    let mut run = RunRecord::default();
    for (number, row) in rows.iter().enumerate() {
        let fields = FileFields::numbered(row, number);
        if fields.text("status")? != Some("ok") {
            failed += 1;
            continue;
        }
        let us = |key: &str| Ok::<_, Error>(fields.number(key, &MEASURED)?.unwrap_or(0.0));
        let (arrival, sent) = (us("arrival_time_us")?, us("send_time_us")?);
        let from = if sent > 0.0 { sent } else { arrival };
        let since = |end: f64| Some((end - from) / 1e3).filter(|ms| *ms > 0.0);
        counted_by_server |= fields.some("server_input_tokens")?.is_some();
        if let Some(model) = fields.text("model")? {
            run.model_id = model_of(model);
        }
        let isl = fields.measured("server_input_tokens")?;
        let sample = RequestSample {
            isl: isl.map_or_else(|| us("input_tokens"), Ok)?,
            osl: us("output_tokens")?,
            sent_s: Some(from / 1e6),
            ttft_ms: since(us("first_chunk_time_us")?),
            e2e_ms: since(us("last_chunk_time_us")?),
            ..RequestSample::default()
        };
        samples.push(sample.with_tpot());
    }
    run.origin = if counted_by_server { RunOrigin::Imported } else { RunOrigin::Simulated };
    run.runtime_id = "vllm".to_owned();
    fill(&mut run, &samples, failed)?;
    (run.rate_per_s, run.arrival_variation) = arrivals(&samples).unzip();
    Ok(run)
}

pub(super) fn read_llmservingsim(content: &FileContent<'_>) -> Result<Vec<RunRecord>, Error> {
    let (mut run, samples) = match content {
        FileContent::Csv(rows) => simulated(rows)?,
        _ => measured(content)?,
    };
    fill(&mut run, &samples, 0)?;
    (run.rate_per_s, run.arrival_variation) = arrivals(&samples).unzip();
    // It simulates vLLM, and measures it.
    run.runtime_id = "vllm".to_owned();
    Ok(vec![run])
}

/// Simulated requests. Times are nanoseconds; the answer is counted without the prompt.
fn simulated(rows: &[Value]) -> Result<(RunRecord, Vec<RequestSample>), Error> {
    let mut run = RunRecord { origin: RunOrigin::Simulated, ..RunRecord::default() };
    let mut samples = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let fields = FileFields::numbered(row, number);
        if let Some(model) = fields.text("model")? {
            run.model_id = model_of(model);
        }
        let number = |key: &str| Ok::<_, Error>(fields.number(key, &MEASURED)?.unwrap_or(0.0));
        let ms = |key: &str| Ok::<_, Error>(Some(number(key)? / 1e6).filter(|ms| *ms > 0.0));
        samples.push(RequestSample {
            isl: number("input")?,
            osl: number("output")?,
            sent_s: Some(number("arrival")? / 1e9),
            ttft_ms: ms("TTFT")?,
            tpot_ms: ms("TPOT")?,
            e2e_ms: ms("latency")?,
            chunks_ms: vec![],
        });
    }
    Ok((run, samples))
}

/// Measured requests: `requests.jsonl`. `arrival_time` is seconds since 1970, the others are those of another clock, from
/// when the request was in the queue.
fn measured(content: &FileContent<'_>) -> Result<(RunRecord, Vec<RequestSample>), Error> {
    let mut samples = Vec::new();
    let mut first_s = f64::INFINITY;
    for fields in objects(content) {
        let seconds = |key: &str| Ok::<_, Error>(fields.number(key, &SECONDS)?.unwrap_or(0.0));
        let (arrived, queued) = (seconds("arrival_time")?, seconds("queued_ts")?);
        let since = |at: f64| Some(1e3 * (at - queued)).filter(|ms| *ms > 0.0);
        first_s = first_s.min(arrived);
        let number = |key: &str| Ok::<_, Error>(fields.number(key, &MEASURED)?.unwrap_or(0.0));
        let sample = RequestSample {
            isl: number("input_toks")?,
            osl: number("output_toks")?,
            sent_s: Some(arrived),
            ttft_ms: since(seconds("first_token_ts")?),
            e2e_ms: since(seconds("last_token_ts")?),
            ..RequestSample::default()
        };
        samples.push(sample.with_tpot());
    }
    let mut run = RunRecord::default();
    if first_s.is_finite() && first_s > 0.0 {
        run.timestamp_utc = in_utc(std::time::Duration::from_secs_f64(first_s));
    }
    Ok((run, samples))
}
