//! `vllm bench serve` and SGLang's `bench_serving`: saved results, and the result that a terminal showed.
//!
//! Keys: `vllm/benchmarks/serve.py` of vllm-project/vllm (009e6d4), `python/sglang/bench_serving.py` of sgl-project/sglang
//! (0033168) and its successor `python/sglang/benchmark/serving.py` (00f9ec4).

use serde_json::Value;

use super::documents::{FileContent, labelled};
use super::fields::{FileFields, LatencyKeys, LatencyUnit};
use super::samples::{RequestSample, counted, is_held_back, set_statistics, with_draft};
use super::{first_has, model_of, objects, runtime_of};
use crate::spec::error::Error;
use crate::spec::limits::{ACCEPTANCE, ARRIVAL_VARIATION, DEGREE, MEASURED, RATE, RATIO, SECONDS};
use crate::spec::percentile::Percentile;
use crate::spec::run::{RunDegrees, RunLatency, RunRecord, RunStatistic};

const P50: RunStatistic = RunStatistic::At(Percentile::P50);
const P90: RunStatistic = RunStatistic::At(Percentile::P90);
const P95: RunStatistic = RunStatistic::At(Percentile::P95);
const P99: RunStatistic = RunStatistic::At(Percentile::P99);

/// Keys of one kind of result. An empty one is not stated there.
struct ServingKeys {
    model: &'static str,
    backend: &'static str,
    completed: &'static str,
    failed: &'static str,
    prompts: &'static str,
    clients: &'static str,
    rate: &'static str,
    burstiness: &'static str,
    prompt_tokens: &'static str,
    output_tokens: &'static str,
    requests_sec: &'static str,
    prefill_sec: &'static str,
    decode_sec: &'static str,
    in_flight: &'static str,
    latencies: LatencyKeys,
}

/// Statistics in saved results. The median is `p50` too where that percentile was chosen.
const SAVED: &[(RunStatistic, &str)] =
    &[(RunStatistic::Mean, "mean"), (P50, "median"), (P50, "p50"), (P90, "p90"), (P95, "p95"), (P99, "p99")];
/// The same where a terminal shows them.
const SHOWN: &[(RunStatistic, &str)] =
    &[(RunStatistic::Mean, "Mean"), (P50, "Median"), (P50, "P50"), (P90, "P90"), (P95, "P95"), (P99, "P99")];

const VLLM: ServingKeys = ServingKeys {
    model: "model_id",
    backend: "backend",
    completed: "completed",
    failed: "failed",
    prompts: "num_prompts",
    clients: "max_concurrency",
    rate: "request_rate",
    burstiness: "burstiness",
    prompt_tokens: "total_input_tokens",
    output_tokens: "total_output_tokens",
    requests_sec: "request_throughput",
    prefill_sec: "",
    decode_sec: "output_throughput",
    in_flight: "",
    latencies: LatencyKeys {
        path: "{s}_{l}_ms",
        latencies: &[
            (RunLatency::Ttft, "ttft"),
            (RunLatency::Tpot, "tpot"),
            (RunLatency::Itl, "itl"),
            (RunLatency::E2e, "e2el"),
        ],
        statistics: SAVED,
        unit: LatencyUnit::Of(1.0),
    },
};

const SGLANG: ServingKeys = ServingKeys {
    // Newer files have the settings of the server, which it reports; older ones have no model.
    model: "server_info.model_path",
    failed: "",
    prompts: "",
    burstiness: "",
    prefill_sec: "input_throughput",
    in_flight: "concurrency",
    latencies: LatencyKeys {
        path: "{s}_{l}_ms",
        latencies: &[
            (RunLatency::Ttft, "ttft"),
            (RunLatency::Tpot, "tpot"),
            (RunLatency::Itl, "itl"),
            (RunLatency::E2e, "e2e_latency"),
        ],
        statistics: SAVED,
        unit: LatencyUnit::Of(1.0),
    },
    ..VLLM
};

const VLLM_TEXT: ServingKeys = ServingKeys {
    model: "",
    backend: "",
    completed: "Successful requests",
    failed: "Failed requests",
    prompts: "",
    clients: "Maximum request concurrency",
    rate: "Request rate configured (RPS)",
    burstiness: "Burstiness factor",
    prompt_tokens: "Total input tokens",
    output_tokens: "Total generated tokens",
    requests_sec: "Request throughput (req/s)",
    prefill_sec: "",
    decode_sec: "Output token throughput (tok/s)",
    in_flight: "",
    latencies: LatencyKeys {
        path: "{s} {l} (ms)",
        latencies: &[
            (RunLatency::Ttft, "TTFT"),
            (RunLatency::Tpot, "TPOT"),
            (RunLatency::Itl, "ITL"),
            (RunLatency::E2e, "E2EL"),
        ],
        statistics: SHOWN,
        unit: LatencyUnit::Of(1.0),
    },
};

const SGLANG_TEXT: ServingKeys = ServingKeys {
    backend: "Backend",
    failed: "",
    clients: "Max request concurrency",
    rate: "Traffic request rate",
    burstiness: "",
    prefill_sec: "Input token throughput (tok/s)",
    in_flight: "Concurrency",
    latencies: LatencyKeys {
        path: "{s} {l} (ms)",
        latencies: &[
            (RunLatency::Ttft, "TTFT"),
            (RunLatency::Tpot, "TPOT"),
            (RunLatency::Itl, "ITL"),
            (RunLatency::E2e, "E2E Latency"),
        ],
        statistics: SHOWN,
        unit: LatencyUnit::Of(1.0),
    },
    ..VLLM_TEXT
};

/// The line that begins a result in a terminal.
const TITLE: &str = " Serving Benchmark Result ";
/// Keys that every saved result of both tools has.
const COMMON: [&str; 3] = ["total_input_tokens", "output_throughput", "completed"];
/// A key, and a label, that only SGLang has.
const RETOKENIZED: [&str; 2] = ["total_output_tokens_retokenized", "Total generated tokens (retokenized)"];

pub(super) fn is_sglang(content: &FileContent<'_>) -> bool {
    let saved = first_has(content, &COMMON) && first_has(content, &[RETOKENIZED[0]]);
    saved || (content.text().contains(TITLE) && content.text().contains(RETOKENIZED[1]))
}

pub(super) fn is_vllm(content: &FileContent<'_>) -> bool {
    first_has(content, &COMMON) || content.text().contains(TITLE)
}

pub(super) fn read_sglang(content: &FileContent<'_>) -> Result<Vec<RunRecord>, Error> {
    read(content, &SGLANG, &SGLANG_TEXT)
}

pub(super) fn read_vllm(content: &FileContent<'_>) -> Result<Vec<RunRecord>, Error> {
    read(content, &VLLM, &VLLM_TEXT)
}

fn read(
    content: &FileContent<'_>,
    saved: &ServingKeys,
    shown: &ServingKeys,
) -> Result<Vec<RunRecord>, Error> {
    if let FileContent::Text(text) = content {
        return results(text).iter().map(|result| run(&FileFields::of(result), shown)).collect();
    }
    objects(content).map(|fields| run(&fields, saved)).collect()
}

/// The results in the text of a terminal, each with the lines before it that state its load.
fn results(text: &str) -> Vec<Value> {
    let mut parts = text.split(TITLE);
    let mut before = parts.next().unwrap_or_default();
    let mut found = Vec::new();
    for part in parts {
        let own = part.split_once("\n=====").map_or(part, |(own, _)| own);
        found.push(labelled(before.lines().chain(own.lines()).map(first_words)));
        before = part.get(own.len()..).unwrap_or_default();
    }
    found
}

/// A line without a remark in brackets at its end: `Burstiness factor: 1.0 (Poisson process)`.
fn first_words(line: &str) -> &str {
    let remark =
        line.rsplit_once(" (").filter(|(start, end)| start.contains(':') && end.trim().ends_with(')'));
    remark.map_or(line, |(start, _)| start)
}

fn run(fields: &FileFields<'_>, keys: &ServingKeys) -> Result<RunRecord, Error> {
    let mut run = RunRecord {
        model_id: fields.text(keys.model)?.map(model_of).unwrap_or_default(),
        runtime_id: fields.text(keys.backend)?.map(runtime_of).unwrap_or_default(),
        ..RunRecord::default()
    };
    if let Some(date) = fields.text("date")? {
        // `datetime.now()` without a zone: no time in UTC.
        run.env.insert("local_time".to_owned(), Value::String(date.to_owned()));
    }
    let completed = fields.count(keys.completed)?.unwrap_or(0);
    let prompts = fields.count(keys.prompts)?;
    let failed = fields.count(keys.failed)?;
    let failed = failed.unwrap_or_else(|| prompts.map_or(0, |prompts| prompts.saturating_sub(completed)));
    run.requests = Some(counted(completed, failed));
    let mean = |key: &str| {
        let total = fields.number(key, &MEASURED)?;
        Ok::<_, Error>(
            total.filter(|_| completed > 0).map_or(0, |total| (total / completed as f64).round() as u64),
        )
    };
    run.context_tokens = mean(keys.prompt_tokens)?;
    run.output_tokens = mean(keys.output_tokens)?;
    run.metrics.requests_sec = fields.measured(keys.requests_sec)?;
    run.metrics.prefill_toks_sec = fields.measured(keys.prefill_sec)?;
    run.metrics.decode_toks_sec = fields.measured(keys.decode_sec)?;
    run.metrics.mean_concurrency = fields.measured(keys.in_flight)?;
    keys.latencies.read(fields, &mut run.metrics)?;
    detailed(fields, &mut run)?;
    load(fields, keys, &mut run)?;
    server(fields, &mut run)?;
    for key in ["spec_decode_acceptance_length", "accept_length"] {
        if let Some(length) = fields.measured(key)? {
            with_draft(&mut run, length);
        }
    }
    Ok(run)
}

/// Settings that SGLang's server reports (`server_info`): degrees, where attention may be data-parallel over the devices
/// of TP, and the version. And the share of prompts that its cache had.
fn server(fields: &FileFields<'_>, run: &mut RunRecord) -> Result<(), Error> {
    let share = fields.number("cache_report.cache_hit_rate_pct", &RATIO)?.map(|percent| percent / 100.0);
    share.map_or(Ok(()), |share| ACCEPTANCE.check("cache_report.cache_hit_rate_pct", share))?;
    run.metrics.cached_share = share;
    let Some(info) = fields.inside("server_info") else { return Ok(()) };
    let degree = |key: &str| {
        let found = info.some(key)?;
        found.map_or(Ok(()), |number| DEGREE.check_whole(key, number))?;
        Ok::<_, Error>(found)
    };
    let [tp, pp, dp, ep] = ["tp_size", "pp_size", "dp_size", "ep_size"].map(degree);
    let (tp, pp, dp, ep) = (tp?, pp?, dp?.unwrap_or(1), ep?);
    let ranks = if info.is_true("enable_dp_attention") { dp } else { 1 };
    run.runtime_version = info.text("version")?.map(str::to_owned);
    run.parallelism = RunDegrees {
        tensor_parallel: tp.map(|tp| (tp / ranks).max(1)),
        pipeline_parallel: pp,
        data_parallel: tp.map(|_| ranks),
        expert_parallel: ep,
        replicas: tp.map(|_| dp / ranks),
    };
    Ok(())
}

/// The load. Without a rate as many clients as allowed send their next request after their last answer; without a limit
/// all requests are sent at once, so that as many are in flight.
fn load(fields: &FileFields<'_>, keys: &ServingKeys, run: &mut RunRecord) -> Result<(), Error> {
    // A rate that grows, or times of a trace, are no load that is the same throughout.
    if fields.has("ramp_up_strategy")
        || matches!(fields.find(keys.rate), Some(Value::String(text)) if text == "trace")
    {
        return Ok(());
    }
    let unlimited = |path: &str| matches!(fields.find(path), Some(Value::String(text)) if is_unlimited(text));
    let rate =
        if unlimited(keys.rate) { None } else { fields.number(keys.rate, &RATE)? }.filter(|rate| *rate > 0.0);
    let clients = if unlimited(keys.clients) { None } else { fields.some(keys.clients)? };
    let all = run.requests.as_ref().map(|requests| requests.sent).filter(|sent| *sent > 0);
    match (rate, clients) {
        (Some(rate), Some(clients)) if is_held_back(rate, run) => run.concurrency = Some(clients),
        (Some(rate), _) => {
            run.rate_per_s = Some(rate);
            // A gamma distribution of this shape has this coefficient of variation; 1 is Poisson.
            let shape =
                fields.number(keys.burstiness, &MEASURED)?.filter(|shape| *shape > 0.0).unwrap_or(1.0);
            let variation = 1.0 / shape.sqrt();
            ARRIVAL_VARIATION.check(keys.burstiness, variation)?;
            run.arrival_variation = Some(variation);
        }
        (None, clients) => run.concurrency = clients.or(all),
    }
    Ok(())
}

/// Words for no limit: `inf` in both tools, `not set` and `None` where a terminal shows them.
fn is_unlimited(text: &str) -> bool {
    ["inf", "not set", "none"].contains(&text.trim().to_lowercase().as_str())
}

/// Statistics that the file does not state, from its requests where it has them one by one (`--save-detailed`,
/// `--output-details`).
fn detailed(fields: &FileFields<'_>, run: &mut RunRecord) -> Result<(), Error> {
    let samples = samples(fields)?;
    for (latency, of) in [
        (RunLatency::Ttft, (|one| one.ttft_ms) as fn(&RequestSample) -> Option<f64>),
        (RunLatency::Tpot, |one| one.tpot_ms),
        (RunLatency::E2e, |one| one.e2e_ms),
    ] {
        set_statistics(&mut run.metrics, latency, samples.iter().filter_map(of).collect())?;
    }
    let chunks = samples.into_iter().flat_map(|one| one.chunks_ms);
    set_statistics(&mut run.metrics, RunLatency::Itl, chunks.collect())
}

/// The answered requests of a detailed file.
fn samples(fields: &FileFields<'_>) -> Result<Vec<RequestSample>, Error> {
    let lists = ["input_lens", "output_lens", "ttfts", "itls", "errors"];
    if !lists[..4].iter().all(|list| fields.has(list)) {
        return Ok(vec![]);
    }
    let [isls, osls, ttfts, itls, errors] = lists.map(|list| fields.items(list));
    let (isls, osls, ttfts, itls, errors) = (isls?, osls?, ttfts?, itls?, errors?);
    for (list, found) in [("output_lens", osls.len()), ("ttfts", ttfts.len()), ("itls", itls.len())] {
        if found != isls.len() {
            let expected = format!("{}, as input_lens has", isls.len());
            return Err(Error::new(list, format!("{found} values"), expected, "give the whole file"));
        }
    }
    let mut samples = Vec::new();
    for (number, ((isl, osl), (ttft, itl))) in isls.iter().zip(&osls).zip(ttfts.iter().zip(&itls)).enumerate()
    {
        let failed = errors.get(number).is_some_and(|error| !matches!(error.text(""), Ok(None)));
        let gaps = itl.items("")?;
        let chunks_s = gaps.iter().map(|gap| Ok(gap.number("", &SECONDS)?.unwrap_or(0.0)));
        let chunks_s: Vec<f64> = chunks_s.collect::<Result<_, Error>>()?;
        let number = |one: &FileFields<'_>| Ok::<_, Error>(one.number("", &MEASURED)?.unwrap_or(0.0));
        let (isl, osl, ttft_s) = (number(isl)?, number(osl)?, ttft.number("", &SECONDS)?.unwrap_or(0.0));
        if failed || osl == 0.0 || ttft_s == 0.0 {
            continue;
        }
        let sample = RequestSample {
            isl,
            osl,
            ttft_ms: Some(1e3 * ttft_s),
            e2e_ms: Some(1e3 * (ttft_s + chunks_s.iter().sum::<f64>())),
            chunks_ms: chunks_s.into_iter().map(|seconds| 1e3 * seconds).collect(),
            ..RequestSample::default()
        };
        samples.push(sample.with_tpot());
    }
    Ok(samples)
}
