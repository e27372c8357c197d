//! Benchmark files of other tools: each tool's own file, what it states and lacks, laws of reading, and spoilt files.

use std::fs;
use std::path::PathBuf;

use fastrand::Rng;
use mantile::request::UNCONTROLLED;
use mantile::request::diagnose::{DiagnoseRequest, diagnose};
use mantile::request::validate::given::GivenRunFacts;
use mantile::request::validate::table::{MeasuredTable, usable_rows};
use mantile::spec::percentile::Percentile;
use mantile::spec::run::{RunLatency, RunOrigin, RunOutcome, RunRecord, RunStatistic};
use mantile::validate::imported::{BenchTool, ImportedFile, UnstatedFact, imported_runs};
use mantile::validate::measured_traffic::MeasuredArrivals;
use mantile::validate::run_kind::RunKind;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::doors::catalog;
use crate::spoil;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/imports")
}

fn text(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap()
}

fn file(name: &str) -> ImportedFile {
    imported_runs(&text(name), name).unwrap_or_else(|fault| panic!("{fault}"))
}

/// The only run of a file.
fn only(name: &str) -> RunRecord {
    let found = file(name);
    let [one] = &found.runs[..] else { panic!("{name}: {:?}", found.runs) };
    one.run.clone()
}

fn p(run: &RunRecord, latency: RunLatency, part: Percentile) -> Option<f64> {
    run.metrics.latency(latency, RunStatistic::At(part))
}

/// Each file with its tool, the number of its runs, and the facts that its first run does not state.
const FILES: [(&str, BenchTool, usize, &[UnstatedFact]); 22] = [
    ("vllm.json", BenchTool::VllmBench, 1, &[UnstatedFact::Hardware, UnstatedFact::Degrees]),
    (
        "vllm-appended.json",
        BenchTool::VllmBench,
        2,
        &[UnstatedFact::Hardware, UnstatedFact::Degrees, UnstatedFact::Runtime],
    ),
    ("vllm-detailed.json", BenchTool::VllmBench, 1, &[UnstatedFact::Hardware, UnstatedFact::Degrees]),
    (
        "vllm.txt",
        BenchTool::VllmBench,
        1,
        &[UnstatedFact::Model, UnstatedFact::Hardware, UnstatedFact::Degrees, UnstatedFact::Runtime],
    ),
    (
        "vllm-rate.txt",
        BenchTool::VllmBench,
        1,
        &[UnstatedFact::Model, UnstatedFact::Hardware, UnstatedFact::Degrees, UnstatedFact::Runtime],
    ),
    (
        "sglang.jsonl",
        BenchTool::SglangBench,
        2,
        &[UnstatedFact::Model, UnstatedFact::Hardware, UnstatedFact::Degrees],
    ),
    (
        "sglang.txt",
        BenchTool::SglangBench,
        1,
        &[UnstatedFact::Model, UnstatedFact::Hardware, UnstatedFact::Degrees],
    ),
    (
        "aiperf.json",
        BenchTool::AiPerf,
        1,
        &[UnstatedFact::Hardware, UnstatedFact::Degrees, UnstatedFact::Runtime],
    ),
    (
        "aiperf.csv",
        BenchTool::AiPerf,
        1,
        &[
            UnstatedFact::Model,
            UnstatedFact::Hardware,
            UnstatedFact::Degrees,
            UnstatedFact::Runtime,
            UnstatedFact::Load,
        ],
    ),
    (
        "aiperf.jsonl",
        BenchTool::AiPerf,
        1,
        &[
            UnstatedFact::Model,
            UnstatedFact::Hardware,
            UnstatedFact::Degrees,
            UnstatedFact::Runtime,
            UnstatedFact::Load,
        ],
    ),
    (
        "genai-perf.json",
        BenchTool::AiPerf,
        1,
        &[UnstatedFact::Hardware, UnstatedFact::Degrees, UnstatedFact::Runtime],
    ),
    (
        "guidellm.json",
        BenchTool::GuideLlm,
        1,
        &[UnstatedFact::Hardware, UnstatedFact::Degrees, UnstatedFact::Runtime],
    ),
    (
        "guidellm-v1.json",
        BenchTool::GuideLlm,
        1,
        &[UnstatedFact::Hardware, UnstatedFact::Degrees, UnstatedFact::Runtime],
    ),
    ("llm-d.yaml", BenchTool::LlmD, 1, &[UnstatedFact::Runtime]),
    ("llama-bench.csv", BenchTool::LlamaBench, 1, &[]),
    ("llama-bench.json", BenchTool::LlamaBench, 1, &[]),
    ("llama-bench.md", BenchTool::LlamaBench, 2, &[UnstatedFact::Model, UnstatedFact::Hardware]),
    (
        "mlperf-server.txt",
        BenchTool::MlPerf,
        1,
        &[
            UnstatedFact::Model,
            UnstatedFact::Hardware,
            UnstatedFact::Degrees,
            UnstatedFact::Runtime,
            UnstatedFact::PromptLength,
        ],
    ),
    ("inferencex.json", BenchTool::InferenceX, 2, &[]),
    ("blis.json", BenchTool::Blis, 1, &[]),
    ("llmservingsim.csv", BenchTool::LlmServingSim, 1, &[UnstatedFact::Hardware, UnstatedFact::Degrees]),
    (
        "llmservingsim.jsonl",
        BenchTool::LlmServingSim,
        1,
        &[UnstatedFact::Model, UnstatedFact::Hardware, UnstatedFact::Degrees],
    ),
];

#[test]
fn each_file_is_recognised_by_its_content_and_says_what_it_lacks() {
    for (name, tool, runs, unstated) in FILES {
        let found = file(name);
        assert_eq!((found.tool, found.runs.len()), (tool, runs), "{name}");
        assert_eq!(found.runs[0].unstated, unstated, "{name}: {:?}", found.runs[0].run);
        // The name is for faults alone, and a file has the same ids whenever it is read.
        assert_eq!(imported_runs(&text(name), "x.bin").unwrap(), found, "{name}");
        let mut ids: Vec<&str> = found.runs.iter().map(|one| one.run.run_id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert!(ids.len() == runs && ids[0].len() == 32, "{name}: {ids:?}");
    }
}

#[test]
fn every_file_of_the_folder_has_a_source_and_is_read() {
    let sources = text("SOURCES.md");
    for entry in fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name != "SOURCES.md" {
            assert!(sources.contains(&format!("`{name}`")), "{name} has no source");
            assert!(!file(&name).runs.is_empty());
        }
    }
}

#[test]
fn vllm_states_its_statistics_and_its_load() {
    let run = only("vllm.json");
    assert_eq!((run.model_id.as_str(), run.runtime_id.as_str()), ("Qwen/Qwen3-8B", "vllm"));
    assert_eq!((run.context_tokens, run.output_tokens, run.concurrency), (1024, 1024, Some(32)));
    assert_eq!(
        (run.metrics.ttft_ms_p50, run.metrics.ttft_ms_mean, run.metrics.ttft_ms_p99),
        (Some(610.09), Some(618.96), Some(1128.58))
    );
    assert_eq!((run.metrics.tpot_ms_p50, run.metrics.decode_toks_sec), (Some(11.96), Some(2100.42)));
    // `datetime.now()` has no zone: no time in UTC is made of it.
    assert_eq!((run.timestamp_utc.as_str(), &run.env["local_time"]), ("", &json!("20260501-123456")));
    let both = file("vllm-appended.json");
    let [closed, open] = [&both.runs[0].run, &both.runs[1].run];
    assert_eq!((closed.concurrency, closed.metrics.latency_ms_p95), (Some(1), Some(189.58817801903933)));
    assert_eq!((open.rate_per_s, open.arrival_variation, open.concurrency), (Some(2.0), Some(2.0), None));
    assert!(open.doubt().unwrap().starts_with("3 of 4 requests were answered"), "{:?}", open.doubt());
    assert_eq!(closed.doubt(), None);
}

#[test]
fn percentiles_of_a_detailed_file_agree_with_the_stated_ones() {
    let name = "vllm-detailed.json";
    let stated = only(name);
    let mut bare: Value = serde_json::from_str(&text(name)).unwrap();
    bare.as_object_mut().unwrap().retain(|key, _| !key.ends_with("_ms"));
    let found = imported_runs(&bare.to_string(), name).unwrap().runs.remove(0).run;
    for latency in [RunLatency::Ttft, RunLatency::Tpot] {
        for part in [Percentile::P50, Percentile::P99] {
            let (made, said) = (p(&found, latency, part).unwrap(), p(&stated, latency, part).unwrap());
            assert!(
                (made - said).abs() < 1e-6,
                "{latency:?} {part:?}: {made} of the requests, {said} stated"
            );
        }
    }
    // Not stated: 90th percentiles of TPOT, and all of E2E.
    assert_eq!(
        (stated.metrics.ttft_ms_p90, found.metrics.ttft_ms_p90.map(f64::round)),
        (Some(370.0), Some(370.0))
    );
    assert!(stated.metrics.tpot_ms_p90.is_some() && stated.metrics.latency_ms_p95.is_some());
    // All requests at once, without a limit: as many in flight as there are, of which one failed.
    assert_eq!((stated.concurrency, stated.model_id.as_str()), (Some(5), "Qwen3-8B"));
    assert!(stated.doubt().is_some());
    let mut spoilt: Value = serde_json::from_str(&text(name)).unwrap();
    spoilt["ttfts"] = json!([0.1, 0.2]);
    let fault = imported_runs(&spoilt.to_string(), name).unwrap_err();
    assert_eq!((fault.key.as_str(), fault.found.as_str()), ("ttfts", "2 values"));
}

#[test]
fn results_of_a_terminal_are_those_of_the_saved_file() {
    let run = only("vllm.txt");
    assert_eq!((run.concurrency, run.context_tokens, run.output_tokens), (Some(96), 4096, 512));
    assert_eq!((run.metrics.ttft_ms_p50, run.metrics.tpot_ms_p99), (Some(212.44), Some(38.12)));
    let run = only("vllm-rate.txt");
    assert_eq!((run.rate_per_s, run.arrival_variation, run.concurrency), (Some(0.2), Some(1.0), None));
    assert_eq!((run.metrics.ttft_ms_p90, run.metrics.ttft_ms_p95), (Some(803.44), Some(835.59)));
    let two = text("vllm.txt") + &text("vllm-rate.txt");
    let loads: Vec<String> =
        imported_runs(&two, "log").unwrap().runs.iter().map(|one| one.run.load()).collect();
    assert_eq!(loads, ["96 clients", "0.2 requests/s"]);
    let run = only("sglang.txt");
    assert_eq!((run.runtime_id.as_str(), run.concurrency), ("sglang", Some(80)));
    assert_eq!((run.metrics.latency_ms_p50, run.metrics.itl_ms_p95), (Some(26100.0), Some(60.0)));
}

#[test]
fn sglang_states_an_infinite_rate_and_the_settings_of_its_server() {
    let both = file("sglang.jsonl");
    let [closed, open] = [&both.runs[0].run, &both.runs[1].run];
    assert_eq!((closed.concurrency, closed.rate_per_s), (Some(16), None));
    assert_eq!((closed.metrics.prefill_toks_sec, closed.metrics.itl_ms_p95), (Some(2621.44), Some(14.0)));
    assert_eq!((open.rate_per_s, open.arrival_variation), (Some(4.0), Some(1.0)));
    let degrees = open.parallelism;
    assert_eq!(
        (degrees.tensor_parallel, degrees.data_parallel, degrees.replicas),
        (Some(2), Some(2), Some(1))
    );
    assert_eq!((open.model_id.as_str(), open.metrics.cached_share), ("Qwen/Qwen3-32B", Some(0.25)));
}

#[test]
fn aiperf_states_the_same_in_json_and_csv() {
    let (json, csv) = (only("aiperf.json"), only("aiperf.csv"));
    for latency in [RunLatency::Ttft, RunLatency::Tpot, RunLatency::E2e] {
        for part in Percentile::ALL {
            let [a, b] = [&json, &csv].map(|run| p(run, latency, part).unwrap());
            assert!((a - b).abs() < 0.01, "{latency:?} {part:?}: {a} and {b}");
        }
    }
    assert_eq!((json.concurrency, json.context_tokens, json.output_tokens), (Some(2), 256, 64));
    assert_eq!(json.metrics.tpot_ms_p50, Some(34.73));
    let one = only("aiperf.jsonl");
    assert_eq!((one.context_tokens, one.output_tokens), (550, 9));
    assert_eq!(one.timestamp_utc, "2025-10-07T05:00:07.532Z");
    assert!(one.doubt().unwrap().starts_with("1 of 2"));
    assert!((one.metrics.ttft_ms_p50.unwrap() - 255.886568).abs() < 1e-9);
    let genai = only("genai-perf.json");
    assert_eq!((genai.rate_per_s, genai.metrics.tpot_ms_p99), (Some(4.5), Some(1.94)));
    let spoilt = text("aiperf.json").replacen("\"unit\": \"ms\"", "\"unit\": \"fortnights\"", 1);
    assert_eq!(imported_runs(&spoilt, "x").unwrap_err().found, "`fortnights`");
}

/// The only run of a file of AIPerf or GenAI-Perf with these settings.
fn with_settings(settings: Value) -> RunRecord {
    let mut file: Value = serde_json::from_str(&text("aiperf.json")).unwrap();
    file["input_config"] = settings;
    imported_runs(&file.to_string(), "x").unwrap().runs.remove(0).run
}

#[test]
fn each_version_of_aiperf_states_its_load_in_its_own_words() {
    let load = |settings: Value| {
        let run = with_settings(settings);
        (run.concurrency, run.rate_per_s, run.arrival_variation)
    };
    // 0.82 requests per second were answered.
    let phase = |phase: Value| load(json!({"phases": [phase]}));
    let none = (None, None, None);
    for (settings, expected) in [
        (json!({"type": "gamma", "rate": 0.8, "smoothness": 4.0}), (None, Some(0.8), Some(0.5))),
        (json!({"type": "gamma", "rate": 0.8}), (None, Some(0.8), Some(1.0))),
        (json!({"type": "poisson", "rate": 0.8, "concurrency": 4}), (None, Some(0.8), Some(1.0))),
        // The limit of clients held requests back.
        (json!({"type": "constant", "rate": 5.0, "concurrency": 4}), (Some(4), None, None)),
        (json!({"type": "poisson", "rate": 0.8, "rate_ramp": {"duration": 30}}), none),
        (json!({"type": "poisson", "rate_series": {"points": []}}), none),
        (json!({"type": "fixed_schedule", "concurrency": 64}), none),
        (json!({"type": "user_centric", "rate": 0.8, "users": 5}), none),
        (json!({"type": "concurrency", "concurrency": 3}), (Some(3), None, None)),
    ] {
        assert_eq!(phase(settings.clone()), expected, "{settings}");
    }
    let two = json!({"phases": [{"type": "concurrency", "concurrency": 3}, {"type": "concurrency", "concurrency": 9}]});
    assert_eq!(load(two), none);
    for (settings, expected) in [
        (json!({"request_rate": 0.8, "arrival_pattern": "constant"}), (None, Some(0.8), Some(0.0))),
        (json!({"request_rate": 0.8, "request_rate_mode": "constant"}), (None, Some(0.8), Some(0.0))),
        (
            json!({"request_rate": 0.8, "arrival_pattern": "gamma", "arrival_smoothness": 0.25}),
            (None, Some(0.8), Some(2.0)),
        ),
        (json!({"request_rate": 0.8, "request_rate_ramp_duration": 9.0}), none),
        (json!({"concurrency": 2}), (Some(2), None, None)),
    ] {
        assert_eq!(load(json!({"loadgen": settings})), expected, "{settings}");
    }
    assert_eq!(load(json!({"loadgen": {"concurrency": 2}, "input": {"fixed_schedule": true}})), none);
}

#[test]
fn genai_perf_states_a_backend_whatever_it_sends_to() {
    let of = |kind: &str, endpoint: &str| {
        let endpoint = json!({"service_kind": kind, "type": endpoint, "backend": "tensorrtllm"});
        with_settings(json!({"model_names": ["m"], "endpoint": endpoint})).runtime_id
    };
    assert_eq!((of("openai", "chat").as_str(), of("triton", "kserve").as_str()), ("", "trtllm"));
    assert_eq!((of("triton", "generate").as_str(), of("tensorrtllm_engine", "x").as_str()), ("", "trtllm"));
    // Before its settings were in groups.
    let old = with_settings(
        json!({"model": ["m"], "service_kind": "openai", "backend": "tensorrtllm", "concurrency": 7}),
    );
    assert_eq!((old.model_id.as_str(), old.runtime_id.as_str(), old.concurrency), ("m", "", Some(7)));
}

#[test]
fn a_result_of_aiperf_that_was_cut_off_is_in_doubt_and_a_draft_is_stated() {
    let mut file: Value = serde_json::from_str(&text("aiperf.json")).unwrap();
    file["is_complete"] = json!(false);
    file["input_token_throughput"] = json!({"unit": "tokens/sec", "avg": 210.0});
    file["spec_decode_acceptance_length"] = json!({"unit": "ratio", "avg": 2.5});
    let run = imported_runs(&file.to_string(), "x").unwrap().runs.remove(0).run;
    let cells = mantile::validate::run_cells::RunCells::of(&run);
    assert_eq!(cells.record().0["doubt"], "its tool calls the result invalid");
    assert_eq!(run.metrics.prefill_toks_sec, Some(210.0));
    assert_eq!((&run.env["speculative"], &run.env["acceptance_length"]), (&json!("a draft"), &json!(2.5)));
}

#[test]
fn reports_of_llm_d_are_read_by_the_tool_that_made_the_load() {
    let of = |load: Value, requests: Value| {
        let latency = json!({
            "time_to_first_token": {"units": "s", "mean": 0.1},
            "inter_token_latency": {"units": "s/token", "mean": 0.02, "p50": 0.019},
        });
        let aggregate = json!({"requests": requests, "latency": latency});
        let report = json!({
            "version": "0.2.1", "run": {"uid": "x"}, "scenario": {"load": {"standardized": load}},
            "results": {"request_performance": {"aggregate": aggregate}},
        });
        imported_runs(&report.to_string(), "x").unwrap().runs.remove(0).run
    };
    let counts = |run: &RunRecord| run.requests.as_ref().map(|found| (found.answered, found.sent));
    // Its time between tokens is that of a request, and its total has no failed ones.
    let aiperf = of(json!({"tool": "aiperf", "concurrency": 8}), json!({"total": 50, "failures": 2}));
    assert_eq!((aiperf.metrics.tpot_ms_p50, aiperf.metrics.itl_ms_mean), (Some(19.0), None));
    assert_eq!((counts(&aiperf), aiperf.concurrency), (Some((50, 52)), Some(8)));
    // Requests that were under way at the end are neither answered nor failed.
    let guidellm = of(
        json!({"tool": "guidellm", "rate_qps": 2.0}),
        json!({"total": 60, "failures": 3, "incomplete": 7}),
    );
    assert_eq!((counts(&guidellm), guidellm.rate_per_s), (Some((50, 53)), Some(2.0)));
    // Without a limit of either, all are sent at once.
    let vllm = |concurrency: Value| {
        let load = json!({"tool": "vllm-benchmark", "rate_qps": "inf", "concurrency": concurrency});
        let run = of(load, json!({"total": 40, "failures": 0}));
        (run.rate_per_s, run.concurrency, run.metrics.itl_ms_mean)
    };
    assert_eq!(vllm(json!(16)), (None, Some(16), Some(20.0)));
    assert_eq!(vllm(Value::Null), (None, Some(40), Some(20.0)));
}

#[test]
fn guidellm_states_each_benchmark_in_either_schema() {
    let new = only("guidellm.json");
    assert_eq!((new.rate_per_s, new.arrival_variation), (Some(2.0), Some(0.0)));
    // TPOT leaves the first token out, which `time_per_output_token_ms` does not.
    assert_eq!((new.metrics.tpot_ms_p50, new.metrics.ttft_ms_p50), (Some(1.14), Some(11.276006698608398)));
    assert_eq!(
        (new.metrics.latency_ms_mean, new.timestamp_utc.as_str()),
        (Some(19.78909969329834), "2026-08-14T03:29:08.252Z")
    );
    let old = only("guidellm-v1.json");
    assert_eq!(
        (old.concurrency, old.model_id.as_str()),
        (Some(8), "neuralmagic/Meta-Llama-3.1-8B-Instruct-quantized.w4a16")
    );
    assert!(old.doubt().unwrap().starts_with("79 of 80"));
}

#[test]
fn reports_of_llm_d_have_units_and_degrees() {
    let run = only("llm-d.yaml");
    assert_eq!((run.rate_per_s, run.concurrency), (Some(10.0), None));
    assert_eq!((run.parallelism.tensor_parallel, run.parallelism.replicas), (Some(8), Some(2)));
    assert_eq!(run.metrics.ttft_ms_p50, Some(36.22930939309299));
    assert_eq!((run.context_tokens, run.timestamp_utc.as_str()), (2262, "2025-11-05T18:00:42Z"));
    let json: Value = serde_json::to_value(&run).unwrap();
    assert_eq!(json["metrics"]["latency_ms_mean"], json!(36857.8234128654));
}

#[test]
fn llama_bench_states_a_prompt_and_an_answer_in_every_format() {
    for name in ["llama-bench.csv", "llama-bench.json"] {
        let run = only(name);
        assert_eq!((run.model_id.as_str(), run.quant.as_deref()), ("Qwen2.5-7B-Instruct", Some("Q4_K_M")));
        assert_eq!((run.context_tokens, run.output_tokens, run.concurrency), (512, 128, Some(1)));
        assert_eq!(run.hardware_id.as_deref(), Some("NVIDIA GeForce RTX 4080"));
        assert_eq!((run.runtime_version.as_deref(), run.kv_format.as_deref()), (Some("b5163"), Some("fp16")));
    }
    let run = only("llama-bench.json");
    assert_eq!(
        (run.metrics.prefill_toks_sec, run.metrics.tpot_ms_mean),
        (Some(7100.002165), Some(1e3 / 118.881588))
    );
    let both = file("llama-bench.md");
    let deep = &both.runs[1].run;
    assert_eq!((deep.context_tokens, deep.metrics.cached_share), (1024, Some(0.5)));
    assert_eq!(
        (both.runs[0].run.metrics.prefill_toks_sec, deep.metrics.prefill_toks_sec),
        (Some(7340.2), Some(6425.91))
    );
    let lines: Vec<String> = serde_json::from_str::<Vec<Value>>(&text("llama-bench.json"))
        .unwrap()
        .iter()
        .map(Value::to_string)
        .collect();
    assert_eq!(imported_runs(&lines.join("\n"), "x").unwrap(), file("llama-bench.json"));
}

#[test]
fn mlperf_states_tokens_and_latencies_in_nanoseconds() {
    let server = only("mlperf-server.txt");
    assert_eq!((server.rate_per_s, server.output_tokens), (Some(104.0), 296));
    for (found, stated) in
        [(server.metrics.ttft_ms_p99, 1760.966679), (server.metrics.tpot_ms_mean, 126.269215)]
    {
        assert!((found.unwrap() / stated - 1.0).abs() < 1e-12, "{found:?} of {stated}");
    }
    let offline = only("mlperf-offline.txt");
    assert_eq!((offline.concurrency, offline.metrics.decode_toks_sec), (Some(73260), Some(33396.9)));
    assert_eq!(offline.metrics.latency_ms_mean, None);
    let invalid = text("mlperf-server.txt").replace("Result is : VALID", "Result is : INVALID");
    let run = &imported_runs(&invalid, "x").unwrap().runs[0].run;
    let cells = mantile::validate::run_cells::RunCells::of(run);
    assert_eq!(cells.record().0["doubt"], "its tool calls the result invalid");
}

#[test]
fn inferencex_states_seconds_and_rates_of_a_device() {
    let both = file("inferencex.json");
    let [one, two] = [&both.runs[0].run, &both.runs[1].run];
    assert_eq!((one.context_tokens, one.concurrency, one.devices), (922, Some(128), Some(8)));
    assert_eq!(
        (one.metrics.ttft_ms_p50, one.hardware_id.as_deref()),
        (Some(1760.25066152215), Some("mi300x"))
    );
    assert!((one.metrics.decode_toks_sec.unwrap() - 8.0 * 130.21526637990956).abs() < 1e-9);
    assert_eq!(two.plan.as_deref(), Some("prefill 5 x tp1 dp4 ep4, decode 1 x tp8 ep8"));
    assert_eq!((two.metrics.decode_toks_sec, two.devices), (Some(12000.0), Some(28)));
    assert_eq!((two.hardware_id.as_deref(), two.runtime_id.as_str()), (Some("gb200"), "trtllm"));
}

#[test]
fn simulators_say_that_they_simulate() {
    let run = only("blis.json");
    assert_eq!(
        (run.origin, run.rate_per_s, run.parallelism.tensor_parallel),
        (RunOrigin::Simulated, Some(10.0), Some(1))
    );
    assert_eq!((run.context_tokens, run.metrics.itl_ms_mean), (354, Some(6.865885186901451)));
    let trace = only("blis-trace.csv");
    assert_eq!((trace.origin, trace.context_tokens, trace.output_tokens), (RunOrigin::Imported, 104, 11));
    assert_eq!((trace.metrics.ttft_ms_mean, trace.metrics.tpot_ms_p50), (Some(55.0), Some(10.0)));
    let simulated = only("llmservingsim.csv");
    assert_eq!((simulated.origin, simulated.metrics.tpot_ms_p50), (RunOrigin::Simulated, Some(30.626101)));
    let measured = only("llmservingsim.jsonl");
    assert_eq!(
        (measured.origin, measured.timestamp_utc.as_str()),
        (RunOrigin::Imported, "2026-08-20T23:19:40.082Z")
    );
    assert!((measured.metrics.ttft_ms_mean.unwrap() - 441.0).abs() < 3.0, "{:?}", measured.metrics);
}

fn table(name: &str) -> MeasuredTable {
    MeasuredTable { name: name.to_owned(), csv: text(name) }
}

#[test]
fn a_file_is_a_row_where_flags_give_what_it_lacks() {
    let lacking = usable_rows(&[table("vllm.json")], &GivenRunFacts::default()).unwrap_err();
    assert_eq!(lacking.key, "row 1: hardware");
    assert_eq!(lacking.expected, "hardware, degrees of the run");
    assert_eq!(lacking.fix, "add --hardware [COUNTx]DEVICE, --tp N");
    let given = GivenRunFacts { hardware: Some("1xmi300x".to_owned()), ..GivenRunFacts::default() };
    let read = usable_rows(&[table("vllm.json")], &given).unwrap();
    let [row] = &read.rows[..] else { panic!("{:?}", read.rows) };
    assert_eq!((row.hardware.as_str(), row.devices, row.concurrency), ("mi300x", Some(1), Some(32)));
    assert_eq!((row.outcome.ttft_ms, row.outcome.tpot_ms, row.isl), (Some(610.09), Some(11.96), 1024));
    let given =
        GivenRunFacts { hardware: Some("mi300x".to_owned()), tp: Some(8), ..GivenRunFacts::default() };
    let row = usable_rows(&[table("vllm.json")], &given).unwrap().rows.remove(0);
    assert_eq!((row.devices, row.pools[0].tp), (None, 8));
    let given = GivenRunFacts {
        model: Some("Llama-3.1-8B".to_owned()),
        hardware: Some("h100".to_owned()),
        runtime: Some("vllm".to_owned()),
        concurrency: Some(4),
        ..GivenRunFacts::default()
    };
    let row = usable_rows(&[table("vllm-rate.txt")], &given).unwrap().rows.remove(0);
    assert_eq!(
        (row.model.as_str(), row.runtime.as_str(), row.concurrency),
        ("Llama-3.1-8B", "vllm", Some(4))
    );
    let beyond = GivenRunFacts { tp: Some(0), ..given };
    assert_eq!(usable_rows(&[table("vllm.json")], &beyond).unwrap_err().key, "row 1: tp");
}

#[test]
fn a_run_under_a_rate_is_simulated_and_one_of_a_machine_alone_is_timed_separately() {
    let rows = |name: &str| usable_rows(&[table(name)], &GivenRunFacts::default()).unwrap().rows;
    let blis = rows("blis.json").remove(0);
    let expected = MeasuredArrivals::Rate { per_s: 10.0, variation: 1.0 };
    assert_eq!((blis.traffic.unwrap().arrivals, blis.warning.as_str()), (expected, "it is simulated"));
    let llama = rows("llama-bench.json").remove(0);
    assert!(llama.timed_separately && llama.kind == RunKind::Served);
    assert_eq!((llama.isl, llama.osl, llama.outcome.tpot_ms), (512, 128, Some(1e3 / 118.881588)));
    let part = text("llama-bench.json").replace("\"n_gpu_layers\": -1", "\"n_gpu_layers\": 20");
    let part = MeasuredTable { name: "x".to_owned(), csv: part };
    let home = usable_rows(&[part], &GivenRunFacts::default()).unwrap().rows.remove(0);
    let RunKind::Home(machine) = home.kind else { panic!("{:?}", home.kind) };
    assert_eq!((machine.gpu.as_str(), machine.offload.as_str()), ("NVIDIA GeForce RTX 4080", "-ngl 20"));
}

#[test]
fn a_measured_run_is_diagnosed() {
    let request = DiagnoseRequest {
        scenario: mantile::spec::scenario::Scenario {
            hardware: Some("1xmi300x".to_owned()),
            ..Default::default()
        },
        run: Some(table("vllm.json")),
        ..DiagnoseRequest::default()
    };
    let found = diagnose(catalog(), &request, &UNCONTROLLED).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(found.metrics.len(), 3, "{:?}", found.metrics);
    let several = DiagnoseRequest { run: Some(table("vllm-appended.json")), ..request };
    assert_eq!(diagnose(catalog(), &several, &UNCONTROLLED).unwrap_err().key, "run");
}

#[test]
fn a_file_that_is_not_understood_says_what_it_is() {
    for (text, found) in [
        ("{\"loss\": 1, \"step\": 2}", "JSON with the keys `loss`, `step`"),
        ("[1, 2]", "JSON without an object that has keys"),
        ("epoch,loss\n1,2\n", "a table with the columns `epoch`, `loss`"),
        ("Dear reader\n", "a text that begins `Dear reader`"),
        ("", "a text that begins `an empty file`"),
    ] {
        let fault = imported_runs(text, "f").unwrap_err();
        assert_eq!((fault.file.as_str(), fault.found.as_str()), ("f", found));
        assert!(BenchTool::ALL.iter().all(|tool| fault.expected.contains(tool.name())), "{}", fault.expected);
    }
}

/// A run as `vllm bench serve` saves it.
fn as_vllm(run: &RunRecord) -> Value {
    let requests = run.requests.clone().unwrap();
    let mut saved = json!({
        "backend": run.runtime_id, "model_id": run.model_id, "num_prompts": requests.sent, "max_concurrency": run.concurrency,
        "request_rate": run.rate_per_s.map_or(json!("inf"), |rate| json!(rate)),
        "burstiness": run.arrival_variation.map_or(1.0, |variation| 1.0 / (variation * variation)),
        "completed": requests.answered, "failed": requests.sent - requests.answered,
        "total_input_tokens": run.context_tokens * requests.answered,
        "total_output_tokens": run.output_tokens * requests.answered,
        "output_throughput": run.metrics.decode_toks_sec,
    });
    for (latency, name) in [
        (RunLatency::Ttft, "ttft"),
        (RunLatency::Tpot, "tpot"),
        (RunLatency::Itl, "itl"),
        (RunLatency::E2e, "e2el"),
    ] {
        saved[format!("mean_{name}_ms")] = json!(run.metrics.latency(latency, RunStatistic::Mean));
        for part in Percentile::ALL {
            saved[format!("{}_{name}_ms", part.name())] = json!(p(run, latency, part));
        }
    }
    saved
}

fn drawn_run() -> impl Strategy<Value = RunRecord> {
    let times = prop::collection::vec(0.001..1e6_f64, 20);
    let load = (1..1000_u64, 0.01..1e3_f64, prop::sample::select(vec![0.5, 1.0, 2.0]), any::<bool>());
    (times, load, 1..10_000_u64, 1..10_000_u64, 1..500_u64, 0..3_u64).prop_map(
        |(times, (clients, rate, variation, open), isl, osl, answered, failed)| {
            let mut run = RunRecord {
                model_id: "a/b".to_owned(),
                runtime_id: "vllm".to_owned(),
                context_tokens: isl,
                output_tokens: osl,
                concurrency: (!open).then_some(clients),
                rate_per_s: open.then_some(rate),
                arrival_variation: open.then_some(variation),
                ..RunRecord::default()
            };
            run.requests = Some(mantile::spec::run::RunRequests {
                sent: answered + failed,
                answered,
                errors: (failed > 0).then(|| ("failed".to_owned(), failed)).into_iter().collect(),
                ..Default::default()
            });
            run.metrics.decode_toks_sec = Some(times[0]);
            let mut times = times.into_iter();
            for latency in RunLatency::ALL {
                let all = [RunStatistic::Mean].into_iter().chain(Percentile::ALL.map(RunStatistic::At));
                for statistic in all {
                    *run.metrics.latency_mut(latency, statistic).unwrap() = times.next();
                }
            }
            run
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_run_that_is_written_as_vllm_saves_it_is_read_back(run in drawn_run()) {
        let saved = as_vllm(&run).to_string();
        let back = imported_runs(&saved, "x").unwrap().runs.remove(0).run;
        let expected = RunRecord { run_id: back.run_id.clone(), source: back.source.clone(), ..run };
        prop_assert_eq!(back, expected);
    }

    #[test]
    fn speeds_that_are_written_as_llama_bench_prints_them_are_read_back(
        prompt in 1..100_000_u64, answer in 1..10_000_u64, depth in 0..50_000_u64,
        pp in 0.01..1e6_f64, tg in 0.01..1e6_f64,
    ) {
        let test = |prompt: u64, answer: u64, speed: f64| json!({
            "build_commit": "c", "build_number": 7, "gpu_info": "x", "model_filename": "M-Q8_0.gguf", "type_k": "f16",
            "type_v": "f16", "n_gpu_layers": 99, "n_prompt": prompt, "n_gen": answer, "n_depth": depth, "avg_ts": speed,
        });
        let tests = json!([test(prompt, 0, pp), test(0, answer, tg)]).to_string();
        let run = imported_runs(&tests, "x").unwrap().runs.remove(0).run;
        prop_assert_eq!((run.context_tokens, run.output_tokens), (depth + prompt, answer));
        prop_assert_eq!(run.metrics.prefill_toks_sec, Some(pp));
        prop_assert_eq!(run.metrics.decode_toks_sec, Some(tg));
    }

    #[test]
    fn a_spoilt_file_ends_in_an_answer_or_a_fault(seed in any::<u64>()) {
        let mut rng = Rng::with_seed(seed);
        let [one, other] = [0; 2].map(|_| text(FILES[rng.usize(..FILES.len())].0));
        let spoilt = spoil::spoilt(&mut rng, &one, &other);
        if let Ok(found) = imported_runs(&spoilt, "x") {
            for run in found.runs {
                let line = serde_json::to_string(&run.run).unwrap();
                prop_assert_eq!(serde_json::from_str::<RunRecord>(&line).unwrap(), run.run);
            }
        }
    }
}

#[test]
fn hostile_files_end_in_a_fault() {
    let deep = format!("{{\"completed\": {}1{}}}", "[".repeat(5000), "]".repeat(5000));
    let vllm = |key: &str, value: Value| {
        let mut saved: Value = serde_json::from_str(&text("vllm.json")).unwrap();
        saved[key] = value;
        saved.to_string()
    };
    for text in [
        deep,
        "{\"completed\": 1".to_owned(),
        vllm("mean_ttft_ms", json!(-3.0)),
        vllm("median_tpot_ms", json!(1e300)),
        vllm("completed", json!("many")),
        vllm("completed", json!(1.5)),
        vllm("max_concurrency", json!({"a": 1})),
        vllm("model_id", json!(7)),
        vllm("total_input_tokens", json!(1e14)),
        vllm("request_rate", json!(-1)),
        vllm("itls", json!([]))
            .replace("\"completed\"", "\"input_lens\": 3, \"output_lens\": [], \"ttfts\": [], \"completed\""),
    ] {
        let fault = imported_runs(&text, "x").unwrap_err();
        assert!(!fault.found.is_empty() && !fault.fix.is_empty(), "{text}: {fault}");
    }
    let none = vllm("completed", json!(0));
    let run = &imported_runs(&none, "x").unwrap().runs[0].run;
    assert_eq!((run.outcome, run.doubt().is_some()), (RunOutcome::Unanswered, true));
}
