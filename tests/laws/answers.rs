//! Laws of one plan per answer: headline, launch files, formats and context agree.

mod context;
mod formats;
mod fronts;
mod lengths;
mod loads;
mod reasons;

use fastrand::Rng;
use mantile::request::{UNCONTROLLED, entry};
use mantile::store::catalog::Catalog;
use serde_json::{Value, json};

use crate::draw::between;

/// Models of the questions: dense, with experts, with a latent cache, with windows.
const MODELS: [&str; 6] = [
    "TinyLlama-1.1B-Chat-v1.0",
    "Llama-3.1-8B",
    "gpt-oss-20b",
    "Llama-3.3-70B",
    "DeepSeek-V2-Lite",
    "google/gemma-3-27b-it",
];
/// Hardware of the questions, most of it too small for some of the models.
const HARDWARE: [&str; 7] = ["1xl4", "1xh100", "2xl40s", "4xl40s", "8xh100", "1xrtx-4090", "2xh100-sxm"];

/// A whole number of any size between two.
fn whole(random: &mut Rng, low: f64, high: f64) -> u64 {
    between(random, low, high).round() as u64
}

/// One of several.
fn one<'a>(random: &mut Rng, all: &[&'a str]) -> &'a str {
    all[random.usize(0..all.len())]
}

/// A random problem, without a deployment.
fn problem(random: &mut Rng) -> Value {
    let mut scenario = json!({
        "model": one(random, &MODELS),
        "hardware": one(random, &HARDWARE),
        "isl": whole(random, 16.0, 20_000.0),
        "osl": whole(random, 2.0, 2_000.0),
    });
    match random.u8(0..4) {
        0 => scenario["concurrency"] = json!(whole(random, 1.0, 500.0)),
        1 => scenario["rate"] = json!(between(random, 0.05, 30.0)),
        _ => {}
    }
    if random.bool() {
        scenario["runtime"] = json!(one(random, &["vllm", "sglang", "llama.cpp"]));
    }
    if random.u8(0..3) == 0 {
        scenario["tpot"] = json!(format!("{}ms", whole(random, 3.0, 200.0)));
    }
    scenario
}

/// A random plan in one line, legal or not.
fn plan(random: &mut Rng) -> String {
    let degree = |random: &mut Rng| 1u64 << random.u8(0..4);
    let load = if random.bool() { format!(" @{}", whole(random, 1.0, 3_000.0)) } else { String::new() };
    let tp = degree(random);
    let formats = one(random, &["", ", weights bf16", ", weights fp8", ", weights bf16, kv bf16"]);
    match random.u8(0..6) {
        0 => format!("prefill 1 x tp{tp} @1, decode 1 x tp{}{load}{formats}", degree(random)),
        1 => format!("1 x pp2{load}{formats}, offload layers"),
        2 => format!("{} x tp{tp} pp2{load}{formats}", degree(random)),
        _ => format!("1 x tp{tp}{load}{formats}"),
    }
}

/// The answer of a request; none where it refuses the question.
fn answer(name: &str, request: &Value) -> Option<Value> {
    let catalog = Catalog::default();
    (entry(name).unwrap().answer)(&catalog, request, &UNCONTROLLED).ok()
}

/// The scenario with a deployment of one line.
fn with_plan(scenario: &Value, plan: &str) -> Value {
    let mut scenario = scenario.clone();
    scenario["deployment"] = json!({ "plan": plan });
    scenario
}
