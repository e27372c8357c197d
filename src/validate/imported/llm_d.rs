//! Benchmark reports of llm-d-benchmark, versions 0.2 and 0.2.1, in YAML or JSON.
//!
//! Keys and units: `llmdbenchmark/analysis/benchmark_report/schema_v0_2.py`, `schema_v0_2_components.py`,
//! `schema_v0_2_1.py`, which adds sizes of media alone, `base.py`, `native_to_br0_2.py`, `guidellm_native.py` and
//! `br_v0_2_example.yaml` of llm-d/llm-d-benchmark (8bc9f1d).

use super::documents::FileContent;
use super::fields::{FileFields, LatencyKeys, LatencyUnit};
use super::samples::{counted, is_held_back};
use super::{first_has, model_of, objects, runtime_of};
use crate::spec::degree::Degrees;
use crate::spec::error::Error;
use crate::spec::limits::{DEGREE, RATE};
use crate::spec::notation::{PlanText, PoolText};
use crate::spec::percentile::Percentile;
use crate::spec::role::Role;
use crate::spec::run::{RunDegrees, RunLatency, RunRecord, RunStatistic};

const STATISTICS: &[(RunStatistic, &str)] = &[
    (RunStatistic::Mean, "mean"),
    (RunStatistic::At(Percentile::P50), "p50"),
    (RunStatistic::At(Percentile::P90), "p90"),
    (RunStatistic::At(Percentile::P95), "p95"),
    (RunStatistic::At(Percentile::P99), "p99"),
];
const PATH: &str = "results.request_performance.aggregate.latency.{l}.{s}";
const UNIT: LatencyUnit = LatencyUnit::Stated("results.request_performance.aggregate.latency.{l}.units");

const LATENCIES: LatencyKeys = LatencyKeys {
    path: PATH,
    latencies: &[
        (RunLatency::Ttft, "time_to_first_token"),
        (RunLatency::Tpot, "time_per_output_token"),
        (RunLatency::Itl, "inter_token_latency"),
        (RunLatency::E2e, "request_latency"),
    ],
    statistics: STATISTICS,
    unit: UNIT,
};
const AIPERF: &str = "aiperf";
/// The tools whose times are those of whole requests.
const OF_A_REQUEST: [&str; 2] = ["guidellm", AIPERF];
/// The same of loads that these tools made: GuideLLM's time per output token has the first token in it, AIPerf has none,
/// and their time between tokens is that of a request after the first.
const BY_REQUEST: LatencyKeys = LatencyKeys {
    path: PATH,
    latencies: &[
        (RunLatency::Ttft, "time_to_first_token"),
        (RunLatency::Tpot, "inter_token_latency"),
        (RunLatency::E2e, "request_latency"),
    ],
    statistics: STATISTICS,
    unit: UNIT,
};

pub(super) fn recognises(content: &FileContent<'_>) -> bool {
    first_has(content, &["results.request_performance.aggregate", "scenario"])
}

pub(super) fn read(content: &FileContent<'_>) -> Result<Vec<RunRecord>, Error> {
    objects(content).map(|report| run(&report)).collect()
}

fn run(report: &FileFields<'_>) -> Result<RunRecord, Error> {
    let mut run = RunRecord::default();
    if let Some(started) = report.text("run.time.start")? {
        run.timestamp_utc = started.to_owned();
    }
    let mean = |path: &str| report.measured(&format!("results.request_performance.aggregate.{path}.mean"));
    run.context_tokens = mean("requests.input_length")?.unwrap_or(0.0).round() as u64;
    run.output_tokens = mean("requests.output_length")?.unwrap_or(0.0).round() as u64;
    run.metrics.requests_sec = mean("throughput.request_rate")?;
    run.metrics.prefill_toks_sec = mean("throughput.input_token_rate")?;
    run.metrics.decode_toks_sec = mean("throughput.output_token_rate")?;
    let tool = report.text("scenario.load.standardized.tool")?.unwrap_or_default();
    if let Some(requests) = report.inside("results.request_performance.aggregate.requests") {
        let failed = requests.count("failures")?.unwrap_or(0);
        let total = requests.count("total")?.unwrap_or(0);
        // Requests that were under way at the end did not fail. The total of AIPerf has no failed ones.
        let others = if tool == AIPERF { 0 } else { failed + requests.count("incomplete")?.unwrap_or(0) };
        run.requests = Some(counted(total.saturating_sub(others), failed));
    }
    let latencies = if OF_A_REQUEST.contains(&tool) { &BY_REQUEST } else { &LATENCIES };
    latencies.read(report, &mut run.metrics)?;
    load(report, &mut run)?;
    stack(report, &mut run)?;
    Ok(run)
}

/// The load: a rate, else clients. No limit of either is written as infinity: all requests are sent at once then.
fn load(report: &FileFields<'_>, run: &mut RunRecord) -> Result<(), Error> {
    let Some(load) = report.inside("scenario.load.standardized") else { return Ok(()) };
    let unlimited = |key: &str| load.find(key).and_then(|found| found.as_str()) == Some("inf");
    if !unlimited("rate_qps") {
        run.rate_per_s = load.number("rate_qps", &RATE)?.filter(|rate| *rate > 0.0);
    }
    let clients = if unlimited("concurrency") { None } else { load.some("concurrency")? };
    match run.rate_per_s {
        Some(rate) if clients.is_some() && is_held_back(rate, run) => {
            (run.rate_per_s, run.concurrency) = (None, clients);
        }
        Some(_) => {}
        None => {
            let all = run.requests.as_ref().map(|requests| requests.sent);
            run.concurrency = clients.or(all.filter(|all| *all > 0 && unlimited("rate_qps")));
        }
    }
    Ok(())
}

/// Model, device and degrees of the engines. Prefill and decode workers are two pools.
fn stack(report: &FileFields<'_>, run: &mut RunRecord) -> Result<(), Error> {
    let mut pools = Vec::new();
    for component in report.items("scenario.stack")? {
        let Some(engine) = component.inside("standardized") else { continue };
        if engine.text("kind")? != Some("inference_engine") {
            continue;
        }
        if let Some(model) = engine.text("model.name")? {
            run.model_id = model_of(model);
        }
        if let Some(device) = engine.text("accelerator.model")? {
            run.hardware_id = Some(device.to_owned());
        }
        run.runtime_id = engine.text("tool")?.map(runtime_of).unwrap_or_default();
        let degree = |key: &str| {
            let found = engine.some(&format!("accelerator.parallelism.{key}"))?;
            found.map_or(Ok(()), |number| DEGREE.check_whole(key, number))?;
            Ok::<_, Error>(found)
        };
        let replicas = engine.some("replicas")?;
        let role = match engine.text("role")? {
            Some("prefill") => Role::Prefill,
            Some("decode") => Role::Decode,
            _ => Role::Aggregated,
        };
        pools.push(PoolText {
            role,
            degrees: Degrees {
                replicas,
                tp: degree("tp")?,
                pp: degree("pp")?,
                dp: degree("dp")?,
                ep: degree("ep")?,
                ..Degrees::default()
            },
            concurrency: None,
        });
    }
    let has = |role| pools.iter().any(|pool| pool.role == role);
    match &pools[..] {
        _ if has(Role::Prefill) && has(Role::Decode) => {
            run.plan = Some(PlanText { pools, ..PlanText::default() }.to_string());
        }
        [one] => {
            let Degrees { tp, pp, dp, ep, replicas, .. } = one.degrees;
            run.parallelism = RunDegrees {
                tensor_parallel: tp,
                pipeline_parallel: pp,
                data_parallel: dp,
                expert_parallel: ep,
                replicas,
            };
        }
        _ => {}
    }
    Ok(())
}
