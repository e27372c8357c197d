//! Random command lines of every question that needs no file.

use fastrand::Rng;

/// Small enough that a search of each takes a fraction of a second.
const MODELS: [&str; 9] = [
    "Qwen3-0.6B",
    "Qwen3-8B",
    "Llama-3.1-8B",
    "gpt-oss-20b",
    "Qwen3-30B-A3B",
    "Llama-3.3-70B",
    "gemma-3-27b-it",
    "DeepSeek-V2-Lite",
    "falcon-mamba-7b",
];
const HARDWARE: [&str; 10] = [
    "1xh100",
    "2xl40s",
    "8xh100-sxm",
    "1xrtx-4090",
    "2xmi300x",
    "1xm3-ultra",
    "3xa100-sxm",
    "2x4xh200-sxm",
    "4xb200-sxm",
    "dgx-spark-x1",
];
/// Flags of every question about a model on hardware, with values.
const FLAGS: [(&str, &[&str]); 25] = [
    (
        "objective",
        &[
            "latency",
            "throughput",
            "perf-per-dollar",
            "min-chips",
            "interactive",
            "least-cost",
            "max-context",
        ],
    ),
    ("isl", &["1", "128", "1000", "8k"]),
    ("osl", &["1", "64", "500"]),
    ("concurrency", &["1", "7", "64", "500"]),
    ("rate", &["0.1", "2", "30"]),
    ("ttft", &["200ms", "2s", "none"]),
    ("tpot", &["10ms", "50ms", "none"]),
    ("e2e", &["5s", "60s"]),
    ("risk", &["p50", "p90"]),
    ("prefix", &["0", "100"]),
    ("weight-format", &["bf16", "fp8", "any", "q4_k_m", "int4-awq"]),
    ("kv-format", &["bf16", "fp8"]),
    ("runtime", &["vllm", "sglang", "llama.cpp", "tensorrt-llm", "any"]),
    ("offload", &["auto", "never", "always"]),
    ("max-num-seqs", &["1", "64"]),
    ("max-num-batched-tokens", &["512", "16k"]),
    ("max-model-len", &["16k", "64k"]),
    ("gpu-memory-utilization", &["0.5", "0.9"]),
    ("usd-per-device-hour", &["0.5", "4"]),
    ("price-basis", &["owned", "rented"]),
    ("hours-per-day", &["8"]),
    ("electricity-usd-per-kwh", &["0.1"]),
    ("host-memory", &["64GB", "1TB"]),
    ("theoretical", &["true"]),
    ("set", &["device.memory.bandwidth=1 TB/s"]),
];
const RIGS: [&str; 3] = ["spark-mac-studio", "rtx-4090-3090", "rtx-4090-workstation"];

fn one<'a>(random: &mut Rng, all: &[&'a str]) -> &'a str {
    all[random.usize(..all.len())]
}

/// Up to `most` flags with values.
fn flags(random: &mut Rng, most: usize) -> Vec<String> {
    let mut all: Vec<usize> = (0..FLAGS.len()).collect();
    random.shuffle(&mut all);
    all.truncate(random.usize(..=most));
    let mut words: Vec<String> = all
        .into_iter()
        .flat_map(|at| {
            let (flag, values) = FLAGS[at];
            [format!("--{flag}"), one(random, values).to_owned()]
        })
        .collect();
    if words.iter().any(|word| word == "--rate") && random.bool() {
        words.extend(["--percentile".to_owned(), one(random, &["p50", "p90", "p99"]).to_owned()]);
    }
    words
}

/// Plans with the devices that they need.
const PLANS: [(u64, &str); 9] = [
    (1, "1 x tp1 @1"),
    (1, "1 x tp1 @16"),
    (1, "1 x tp1, weights fp8"),
    (2, "1 x tp2 @8"),
    (2, "2 x tp1 @3"),
    (2, "prefill 1 x tp1 @1, decode 1 x tp1 @4"),
    (2, "1 x tp1 dp2 @8"),
    (4, "1 x tp4 @16"),
    (4, "1 x tp2 pp2 @4"),
];

/// A plan that the hardware holds, but for one in twenty.
fn plan(random: &mut Rng, hardware: &str) -> &'static str {
    let devices: u64 =
        hardware.split('x').map_while(|count| count.parse::<u64>().ok()).product::<u64>().max(1);
    let any = random.u8(..20) == 0;
    let fit: Vec<&str> =
        PLANS.iter().filter(|(needed, _)| any || *needed <= devices).map(|(_, plan)| *plan).collect();
    one(random, &fit)
}

/// A command line.
pub fn question(random: &mut Rng) -> Vec<String> {
    let kinds = [
        "optimize",
        "optimize",
        "optimize",
        "estimate",
        "estimate",
        "explain",
        "deploy",
        "recommend",
        "compare",
        "sweep",
        "audit",
        "place",
        "static",
        "nearest",
        "diagnose",
        "fleet",
        "inspect",
    ];
    let kind = one(random, &kinds);
    let (model, hardware) = (one(random, &MODELS), one(random, &HARDWARE));
    let mut line: Vec<String> = vec![kind.to_owned()];
    if kind != "inspect" {
        line.extend(["--model".to_owned(), model.to_owned()]);
    }
    let mut add = |words: &[&str]| line.extend(words.iter().map(|word| (*word).to_owned()));
    match kind {
        "place" => {
            let objective = one(random, &["latency", "request", "throughput", "max-context"]);
            add(&["--hardware", one(random, &RIGS), "--objective", objective]);
            add(&["--isl", one(random, &["16", "2k"]), "--osl", one(random, &["2", "300"])]);
        }
        "fleet" => add(&["--offers", one(random, &["1xl40s", "1xl40s,h100-sxm-x1", "1xl40s,1xrtx-4090"])]),
        "recommend" => {
            let only = one(random, &["nvidia-rtx-4090", "nvidia-l40s", "apple-m4-max"]);
            add(&["--only", only, "--users", one(random, &["1", "8", "40"]), "--target-tok-s", "12"]);
        }
        "inspect" => add(&[model]),
        "compare" => {
            let both = format!("{hardware},{}", one(random, &HARDWARE));
            add(&["--hardware", &both]);
        }
        _ => add(&["--hardware", hardware]),
    }
    match kind {
        "estimate" | "deploy" | "audit" | "explain" | "nearest" | "diagnose" => {
            add(&["--plan", plan(random, hardware)])
        }
        "static" => add(&["--tp", one(random, &["1", "2"]), "--batch", one(random, &["1", "32"])]),
        "sweep" => add(&["--vary", one(random, &["isl=100,1000", "tp=1,2", "concurrency=1,8"])]),
        _ => {}
    }
    match kind {
        "explain" => add(&["--number", one(random, &["ttft", "tpot", "output_tok_s"])]),
        "diagnose" => add(&["--measured-tpot-ms", one(random, &["9", "30"])]),
        _ => {}
    }
    let most = match kind {
        "optimize" => 5,
        "estimate" | "deploy" | "explain" | "audit" | "nearest" | "diagnose" | "compare" => 2,
        _ => 0,
    };
    line.extend(flags(random, most));
    line
}
