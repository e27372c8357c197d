//! Hostile input: real files and flags, spoilt at random, through every door. None may panic, and no answer may hold a
//! number that is not finite.
//!
//! `MANTILE_FUZZ=100000 cargo test hostile:: -- --nocapture --test-threads 1` tries that many, fewer where one
//! takes long, and holds each to a second of the processor and 500 MB besides. `MANTILE_SEED` draws others.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use fastrand::Rng;

use crate::doors as hostile;
use crate::source;
use crate::spoil;

use source::files;

/// Inputs of each door where nobody asks for more.
const CASES: usize = 300;
/// What one input may take, where that is looked at.
const BOUND: Duration = Duration::from_secs(1);
/// Bytes that one input may take, where that is looked at.
const MEMORY: u64 = 500 << 20;

/// Inputs that somebody asked for.
fn requested() -> Option<usize> {
    std::env::var("MANTILE_FUZZ").ok()?.parse().ok()
}

/// The most memory that the process had, in bytes, since it was asked last.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    Some(kib << 10)
}

/// What the processor did for this process so far, where that is looked at. A busy machine is no fault of an input.
fn spent() -> Duration {
    let read = || {
        let stat = requested().and_then(|_| std::fs::read_to_string("/proc/self/stat").ok())?;
        let after = stat.rsplit_once(") ")?.1;
        let ticks: u64 =
            after.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        // A hundred a second, whatever the kernel counts in (USER_HZ).
        Some(Duration::from_millis(10 * ticks))
    };
    read().unwrap_or_default()
}

/// Takes spoilt `seeds` through the door `name`.
fn through(name: &str, seeds: &[String], share: usize) {
    let (_, door) = hostile::DOORS.into_iter().find(|(known, _)| *known == name).unwrap();
    seeds.iter().for_each(|seed| door(seed));
    let cases = requested().map_or(CASES, |cases| cases.div_ceil(share));
    let mut rng =
        Rng::with_seed(std::env::var("MANTILE_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(7));
    let (mut slowest, mut faults) = (Duration::ZERO, Vec::new());
    for _ in 0..cases {
        let [seed, other] = [0; 2].map(|_| &seeds[rng.usize(..seeds.len())]);
        let text = spoil::spoilt(&mut rng, seed, other);
        let (begun, before) = (spent(), requested().and_then(|_| peak()).unwrap_or(0));
        if catch_unwind(AssertUnwindSafe(|| door(&text))).is_err() {
            faults.push(format!("a panic on:\n{text}"));
        }
        let took = spent().saturating_sub(begun);
        slowest = slowest.max(took);
        if took > BOUND {
            faults.push(format!("{took:?} on:\n{text}"));
        }
        if requested().and_then(|_| peak()).unwrap_or(0).saturating_sub(before) > MEMORY {
            faults.push(format!("more than {MEMORY} bytes on:\n{text}"));
        }
        assert!(faults.len() < 20, "{name}: {} faults so far:\n{}", faults.len(), faults.join("\n\n"));
    }
    println!("{name}: {cases} inputs, slowest {slowest:?}");
    assert!(faults.is_empty(), "{name}: {} faults:\n{}", faults.len(), faults.join("\n\n"));
}

fn texts(folders: &[&str]) -> Vec<String> {
    folders.iter().flat_map(|folder| files(folder, "json")).map(|file| file.text).collect()
}

#[test]
fn configurations() {
    let models = texts(&["models"]);
    let config =
        |text: &String| serde_json::from_str::<serde_json::Value>(text).unwrap()["config"].to_string();
    let alone: Vec<String> = models.iter().map(config).collect();
    let quantised = r#"{"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}"#;
    through("configuration", &[alone, models, vec![quantised.into()]].concat(), 1);
}

#[test]
fn hardware() {
    let own = ["devices", "systems", "links", "formats", "runtimes"].map(|kind| format!("hardware/{kind}"));
    let folders: Vec<&str> = own.iter().map(String::as_str).chain(["objectives"]).collect();
    let defaults = files("hardware", "json").into_iter().filter(|file| file.name.ends_with("defaults.json"));
    let scenario = r#"{"model": "Qwen3-8B", "hardware": "8xh100", "isl": 2048, "osl": 512, "rate": 2.5, "ttft": "2 s",
        "pue": 1.2, "deployment": {"both": {"tp": 4}}}"#;
    let all = [texts(&folders), defaults.map(|file| file.text).collect(), vec![scenario.into()]].concat();
    through("hardware", &all, 1);
}

#[test]
fn rigs() {
    through("rig", &texts(&["hardware/rigs"]), 4);
}

#[test]
fn benchmark_files() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/imports");
    let read =
        |entry: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(entry.unwrap().path()).unwrap();
    let mut all: Vec<String> = std::fs::read_dir(folder).unwrap().map(read).collect();
    all.sort();
    through("import", &all, 4);
}

#[test]
fn fleets() {
    let file = r#"{"model": "Qwen3-0.6B", "buckets": [{"isl": 2048, "osl": 512, "rate": 4, "prefix": 100, "model": "a"}],
        "offers": [{"hardware": "1xl40s", "available": 8}, {"hardware": "1xh100", "terms": "spot", "usd_per_hour": 1.4}],
        "limits": {"ttft": "2 s", "tpot": "50 ms"}}"#;
    let trace = "arrival,isl,osl\n0,1000,100\n1.5,900,128\n4e0,20,7\n";
    through("fleet", &[file.into(), trace.into()], 2);
}

#[test]
fn tables() {
    let serving = "id,model,hardware,devices,runtime,runtime_version,weight_format,kv_format,mode,isl,osl,concurrency,tp,pp,dp,ep,ttft_ms,tpot_ms,output_tok_s_per_device,source,doubt\n\
        1,Qwen3-0.6B,h100,2,vllm,0.9.0,bf16,,agg,1024,256,16,2,1,1,1,35.5,7.25,900,mine,\n\
        2,Qwen3-0.6B,h100,4,vllm,,fp8,bf16,agg,1024.0,256,64,1,1,1,1,,9,,InferenceX,\n";
    let split = "model,hardware,runtime,mode,isl,osl,concurrency,prefill_workers,prefill_tp,prefill_pp,prefill_dp,prefill_ep,decode_workers,decode_tp,decode_pp,decode_dp,decode_ep,ttft_ms,tpot_ms\n\
        Qwen3-0.6B,h100,vllm,disagg,1024,256,16,1,2,1,1,1,1,4,1,1,1,100,9\n";
    let single = "model,model_as_published,hardware,devices,runtime,weight_format,mode,isl,osl,concurrency,metric,value,notes\n\
        Qwen3-0.6B,,rtx-4090,1,llama.cpp,q4_k_m,tg-bench,512,128,1,decode_tok_s_per_user,250.5,tg128 @ d4096\n\
        ,Qwen3-0.6B Q8,rtx-4090,1.0,llama.cpp,q8_0,,512,128,,vram_gb,2.5,\n";
    through("table", &[serving.into(), split.into(), single.into()], 4);
}

#[test]
fn answers() {
    let all: Vec<String> = hostile::answers().iter().map(ToString::to_string).collect();
    through("answer", &all, 20);
}

#[test]
fn units() {
    let seeds = [
        "3.35 TB/s",
        "81559 MiB",
        "4.25 bit",
        "989.4 TFLOP/s",
        "0.09 USD/kWh",
        "6.93 us",
        "90 %",
        "500ms",
        "none",
        "8xh100-sxm",
        "2x8xb200",
        "256x4xgb200",
        "72xnvidia-gb200",
        "1024x768",
        "32k",
        "$15000",
        "1_000",
        "mi300x",
        "1 FLOP*B/s/s",
        "tpot",
        "15000usd/h",
        "1xepyc-9755",
        "4xl40s",
    ];
    through("units", &seeds.map(String::from), 1);
}

#[test]
fn flags() {
    let lines = crate::requests::LINES.iter().map(|line| line.join("\n")).collect::<Vec<_>>();
    through("flags", &lines, 1);
}

#[test]
fn gguf_headers() {
    let header = |(model, architecture)| {
        let bytes = crate::gguf::converted(model, architecture, 15).bytes();
        bytes.into_iter().map(char::from).collect::<String>()
    };
    let small = crate::gguf::MODELS.into_iter().filter(|(model, _)| model.contains("0.6B")).map(header);
    through("gguf", &small.collect::<Vec<_>>(), 4);
}

#[test]
fn plans_of_inspect() {
    let seeds = [
        "1 x tp2 pp2[14,14] @3",
        "prefill 2 x tp1 @1, decode 1 x tp2 dcp2 @24, weights fp8",
        "1 x tp4 ffn-tp2 + 2 x dp2 sp",
    ];
    through("inspect", &seeds.map(String::from), 2);
}

#[test]
fn launch_commands_and_scripts() {
    let seeds = [
        "vllm serve Qwen/Qwen3-0.6B -tp 2 --max-num-seqs 64 --max-model-len 8k --kv-cache-dtype fp8",
        "#!/bin/sh\nset -e\nCUDA_VISIBLE_DEVICES=0,1 python3 -m sglang.launch_server --model-path Qwen/Qwen3-0.6B --tp 2",
        "llama-server -m q.gguf -c 4096 -np 4 -ngl 99 --host 0.0.0.0",
        "trtllm-serve Qwen/Qwen3-0.6B --tp_size 2 --max_batch_size 32",
        "apiVersion: apps/v1\nkind: Deployment\nspec:\n  template:\n    spec:\n      containers:\n      - command: [vllm, serve, Qwen/Qwen3-0.6B]\n",
    ];
    through("launch", &seeds.map(String::from), 4);
}

#[test]
fn names_in_emitted_files() {
    let seeds = [
        "fp8\nvllm\nmodels/mine\nhardware/systems/own",
        "bf16\nsglang",
        "$(touch pwned)\n'; touch pwned; '\nmodels/$(touch pwned)",
        "=cmd|'x'!A1\n\u{1b}[31m\nhardware/devices/a b",
    ];
    through("emitted", &seeds.map(String::from), 4);
}

#[test]
fn messages_of_assistants() {
    let seeds = [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"mantile://catalog/devices/l40s"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"mantile://explain/m1.x/ttft","_meta":{"progressToken":3}}}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
    ];
    through("message", &seeds.map(String::from), 8);
}

#[test]
fn permalinks() {
    let question =
        r#"{"request": "estimate", "scenario": {"model": "Qwen3-0.6B", "isl": 100, "set": ["a=b"]}}"#;
    let seeds = [question.to_owned(), hostile::link_of(question), "m1.AAAA".to_owned(), "m2.x".to_owned()];
    through("permalink", &seeds, 1);
}
