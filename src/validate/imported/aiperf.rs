//! AIPerf (`profile_export_aiperf.json` and `.csv`, `profile_export.jsonl`) and GenAI-Perf
//! (`profile_export_genai_perf.json`).
//!
//! Keys: `exporters/metrics_json_exporter.py`, `metrics_csv_exporter.py`, `common/models/export_models.py`,
//! `record_models.py`, `metrics/types` and `config/phases.py` of the package aiperf 0.13.0; settings before version 0.9:
//! `common/config/loadgen_config.py` and `user_config.py` of 0.3.0, 0.6.0 and 0.8.0. `export_data/json_exporter.py` and
//! `config/input` of the package genai-perf 0.0.16, and `parser.py` of 0.0.8. Their `inter_token_latency` is, for each
//! request, the time after the first token over the tokens after it: TPOT here.

use std::time::Duration;

use serde_json::{Map, Value};

use super::documents::FileContent;
use super::fields::{FileFields, LatencyKeys, LatencyUnit, to_ms};
use super::samples::{RequestSample, counted, fill, is_held_back, with_draft};
use super::{first_has, model_of, objects, runtime_of};
use crate::spec::error::Error;
use crate::spec::limits::{ARRIVAL_VARIATION, MEASURED, RATE, RATIO};
use crate::spec::percentile::Percentile;
use crate::spec::run::{RunLatency, RunRecord, RunStatistic};
use crate::spec::text::in_utc;

const LATENCIES: LatencyKeys = LatencyKeys {
    path: "{l}.{s}",
    latencies: &[
        (RunLatency::Ttft, "time_to_first_token"),
        (RunLatency::Tpot, "inter_token_latency"),
        (RunLatency::Itl, "inter_chunk_latency"),
        (RunLatency::E2e, "request_latency"),
    ],
    statistics: &[
        (RunStatistic::Mean, "avg"),
        (RunStatistic::At(Percentile::P50), "p50"),
        (RunStatistic::At(Percentile::P90), "p90"),
        (RunStatistic::At(Percentile::P95), "p95"),
        (RunStatistic::At(Percentile::P99), "p99"),
    ],
    unit: LatencyUnit::Stated("{l}.unit"),
};

/// Names of metrics in CSV, and their keys in JSON.
const NAMES: [(&str, &str); 12] = [
    ("Time to First Token", "time_to_first_token"),
    ("Inter Token Latency", "inter_token_latency"),
    ("Inter Chunk Latency", "inter_chunk_latency"),
    ("Request Latency", "request_latency"),
    ("Input Sequence Length", "input_sequence_length"),
    ("Output Sequence Length", "output_sequence_length"),
    ("Input Token Throughput", "input_token_throughput"),
    ("Output Token Throughput", "output_token_throughput"),
    ("Acceptance Length", "spec_decode_acceptance_length"),
    ("Request Throughput", "request_throughput"),
    ("Request Count", "request_count"),
    ("Error Request Count", "error_request_count"),
];

/// Keys of a request in `profile_export.jsonl`.
const OF_A_REQUEST: [&str; 2] = ["metadata.request_start_ns", "metadata.request_end_ns"];

pub(super) fn recognises(content: &FileContent<'_>) -> bool {
    let first = first_metric(content);
    let csv = content.has_columns(&["Metric", "avg", "p99"]) && first.is_some_and(|name| name.contains('('));
    let json = ["request_latency.avg", "request_throughput.avg"].iter().any(|key| first_has(content, &[key]));
    csv || json || first_has(content, &OF_A_REQUEST)
}

fn first_metric<'a>(content: &'a FileContent<'_>) -> Option<&'a str> {
    content.rows().first()?.get("Metric")?.as_str()
}

pub(super) fn read(content: &FileContent<'_>) -> Result<Vec<RunRecord>, Error> {
    if let FileContent::Csv(rows) = content {
        return summary(&FileFields::of(&of_table(rows))).map(|run| vec![run]);
    }
    if first_has(content, &OF_A_REQUEST) {
        return requests(content).map(|run| vec![run]);
    }
    objects(content).map(|fields| summary(&fields)).collect()
}

/// The rows of a table as the object that the tool writes in JSON. The second part of the table has one value a row.
fn of_table(rows: &[Value]) -> Value {
    let mut object = Map::new();
    for row in rows {
        let Some(name) = row.get("Metric").and_then(Value::as_str) else { continue };
        let (name, unit) = name.split_once(" (").unwrap_or((name, ""));
        let Some((_, key)) = NAMES.iter().find(|(known, _)| *known == name) else { continue };
        let mut metric = row.as_object().cloned().unwrap_or_default();
        metric.retain(|_, cell| cell.as_str().is_some_and(|text| !text.is_empty()));
        metric.insert("unit".to_owned(), Value::String(unit.trim_end_matches(')').to_owned()));
        object.insert((*key).to_owned(), Value::Object(metric));
    }
    Value::Object(object)
}

fn summary(fields: &FileFields<'_>) -> Result<RunRecord, Error> {
    let mut run = RunRecord::default();
    let config = ["endpoint.model_names.0", "models.items.0.name", "model_names.0", "model.0"]
        .map(|path| format!("input_config.{path}"));
    run.model_id = fields.text_of(&config.each_ref().map(String::as_str))?.map(model_of).unwrap_or_default();
    run.runtime_id = backend(fields)?.map(runtime_of).unwrap_or_default();
    if let Some(started) = fields.text("start_time")? {
        // `datetime.fromtimestamp` without a zone: no time in UTC.
        run.env.insert("local_time".to_owned(), Value::String(started.to_owned()));
    }
    let mean = |key: &str| fields.measured(&format!("{key}.avg"));
    run.context_tokens = mean("input_sequence_length")?.unwrap_or(0.0).round() as u64;
    run.output_tokens = mean("output_sequence_length")?.unwrap_or(0.0).round() as u64;
    run.metrics.requests_sec = mean("request_throughput")?;
    run.metrics.prefill_toks_sec = mean("input_token_throughput")?;
    run.metrics.decode_toks_sec = mean("output_token_throughput")?;
    if let Some(length) = mean("spec_decode_acceptance_length")? {
        with_draft(&mut run, length);
    }
    let is_whole = fields.find("is_complete") != Some(&Value::Bool(false));
    if !is_whole || fields.is_true("was_cancelled") {
        run.env.insert("result".to_owned(), Value::String("INVALID".to_owned()));
    }
    let count = |key: &str| fields.number(&format!("{key}.avg"), &MEASURED);
    if let Some(answered) = count("request_count")? {
        let failed = count("error_request_count")?.unwrap_or(0.0);
        run.requests = Some(counted(answered as u64, failed as u64));
    }
    LATENCIES.read(fields, &mut run.metrics)?;
    load(fields, &mut run)?;
    Ok(run)
}

/// The backend of a server of Triton. GenAI-Perf writes one whatever it sends to.
fn backend<'a>(fields: &FileFields<'a>) -> Result<Option<&'a str>, Error> {
    let of = |key: &str| {
        let paths = [format!("input_config.endpoint.{key}"), format!("input_config.{key}")];
        fields.text_of(&paths.each_ref().map(String::as_str))
    };
    Ok(match of("service_kind")? {
        Some("triton") if fields.text("input_config.endpoint.type")?.is_none_or(|kind| kind == "kserve") => {
            of("backend")?
        }
        Some("tensorrtllm_engine") => Some("tensorrtllm"),
        _ => None,
    })
}

/// Where the load is stated, below a path.
struct LoadKeys {
    below: &'static str,
    clients: &'static str,
    rate: &'static str,
    /// The pattern of arrivals: the first key that is there.
    patterns: &'static [&'static str],
    /// The pattern where none is stated.
    usual: &'static str,
    /// The shape of a gamma distribution of the gaps.
    shape: &'static str,
    /// Settings under which the load is not the same throughout, or that of no clients and no rate.
    unsteady: &'static [&'static str],
}

/// The places of a load: AIPerf's until version 0.8, and GenAI-Perf's in files that have its settings in groups and in
/// those of its versions before.
const LOADS: [LoadKeys; 3] = [
    LoadKeys {
        below: "input_config.loadgen",
        clients: "concurrency",
        rate: "request_rate",
        // The second until version 0.3.
        patterns: &["arrival_pattern", "request_rate_mode"],
        usual: "poisson",
        shape: "arrival_smoothness",
        unsteady: &["user_centric_rate", "request_rate_ramp_duration", "concurrency_ramp_duration"],
    },
    OF_GENAI_PERF,
    LoadKeys { below: "input_config", ..OF_GENAI_PERF },
];
const OF_GENAI_PERF: LoadKeys = LoadKeys {
    below: "input_config.perf_analyzer.stimulus",
    clients: "concurrency",
    rate: "request_rate",
    patterns: &[],
    // The default of `perf_analyzer` (its docs/cli.md, `--request-distribution`), which GenAI-Perf leaves as it is.
    usual: "constant",
    shape: "",
    unsteady: &[],
};
/// The load of a phase, since version 0.9 of AIPerf.
const OF_A_PHASE: LoadKeys = LoadKeys {
    below: "",
    clients: "concurrency",
    rate: "rate",
    patterns: &["type"],
    usual: "concurrency",
    shape: "smoothness",
    unsteady: &["rate_series", "rate_ramp", "concurrency_ramp", "users", "timing_mode"],
};

/// The load: clients, or a rate. The times of a trace are none, and neither are several phases.
fn load(fields: &FileFields<'_>, run: &mut RunRecord) -> Result<(), Error> {
    let mut phases = fields.items("input_config.phases")?;
    phases.retain(|phase| !phase.is_true("exclude_from_results"));
    match &phases[..] {
        [phase] => return stated_load(phase, &OF_A_PHASE, run),
        [] if !fields.is_true("input_config.input.fixed_schedule") => {}
        _ => return Ok(()),
    }
    for keys in LOADS {
        if let Some(stated) = fields.inside(keys.below) {
            return stated_load(&stated, &keys, run);
        }
    }
    Ok(())
}

fn stated_load(stated: &FileFields<'_>, keys: &LoadKeys, run: &mut RunRecord) -> Result<(), Error> {
    let pattern = stated.text_of(keys.patterns)?.unwrap_or(keys.usual).to_lowercase();
    if pattern == "fixed_schedule" || keys.unsteady.iter().any(|key| stated.has(key)) {
        return Ok(());
    }
    let clients = stated.some(keys.clients)?;
    let rate = stated.number(keys.rate, &RATE)?.filter(|rate| *rate > 0.0);
    let Some(per_s) = rate.filter(|rate| clients.is_none() || !is_held_back(*rate, run)) else {
        run.concurrency = clients;
        return Ok(());
    };
    let variation = match pattern.as_str() {
        "constant" => Some(0.0),
        "poisson" => Some(1.0),
        // A gamma distribution of this shape has this coefficient of variation; of none, its shape is 1.
        "gamma" => {
            let shape = stated.number(keys.shape, &RATIO)?.filter(|shape| *shape > 0.0);
            Some(1.0 / shape.unwrap_or(1.0).sqrt())
        }
        _ => None,
    };
    variation.map_or(Ok(()), |variation| ARRIVAL_VARIATION.check(keys.shape, variation))?;
    run.rate_per_s = variation.map(|_| per_s);
    run.arrival_variation = variation;
    Ok(())
}

/// Requests one by one. Their times are nanoseconds since 1970, the metrics have their units.
fn requests(content: &FileContent<'_>) -> Result<RunRecord, Error> {
    let (mut samples, mut failed, mut first_ns) = (Vec::new(), 0, u64::MAX);
    for fields in objects(content) {
        let phase = fields.text("metadata.benchmark_phase")?;
        if phase.is_some_and(|phase| phase != "profiling") {
            continue;
        }
        if fields.has("error") {
            failed += 1;
            continue;
        }
        let start = fields.find("metadata.request_start_ns");
        let start_ns = start.and_then(Value::as_u64).ok_or_else(|| {
            fields.fault("metadata.request_start_ns", start.unwrap_or(&Value::Null), "nanoseconds since 1970")
        })?;
        first_ns = first_ns.min(start_ns);
        let value = |key: &str| fields.measured(&format!("metrics.{key}.value"));
        let ms = |key: &str| {
            let factor = to_ms(&fields, &format!("metrics.{key}.unit"))?;
            Ok::<_, Error>(value(key)?.zip(factor).map(|(value, factor)| value * factor))
        };
        let chunk = to_ms(&fields, "metrics.inter_chunk_latency.unit")?.unwrap_or(1.0);
        let gaps = fields.items("metrics.inter_chunk_latency.value")?;
        let gaps = gaps.iter().map(|gap| Ok(gap.number("", &MEASURED)?.unwrap_or(0.0) * chunk));
        samples.push(RequestSample {
            isl: value("input_sequence_length")?.unwrap_or(0.0),
            osl: value("output_sequence_length")?.unwrap_or(0.0),
            sent_s: Some(start_ns as f64 / 1e9),
            ttft_ms: ms("time_to_first_token")?,
            tpot_ms: ms("inter_token_latency")?,
            e2e_ms: ms("request_latency")?,
            chunks_ms: gaps.collect::<Result<_, Error>>()?,
        });
    }
    let mut run = RunRecord::default();
    if first_ns < u64::MAX {
        run.timestamp_utc = in_utc(Duration::from_nanos(first_ns));
    }
    fill(&mut run, &samples, failed)?;
    Ok(run)
}
