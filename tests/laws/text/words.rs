//! Answers in JSON are in words of a request in JSON: no text of one names a flag of the command line.

use fastrand::Rng;
use mantile::request::{UNCONTROLLED, entry};
use mantile::store::catalog::Catalog;
use serde_json::{Value, json};

use crate::draw::{between, cases};
use crate::requests::{LINES, request};

/// Parts that quote others: the request, commands and files of a launch, options of a runtime, sources.
const QUOTED: [&str; 10] = [
    "scenario",
    "command",
    "commands",
    "router",
    "files",
    "options",
    "unsupported",
    "rule",
    "words",
    "source",
];

/// Texts of `answer` outside quotations that hold a flag, with their places.
fn flags(answer: &Value, place: &str, found: &mut Vec<String>) {
    match answer {
        Value::String(text) => {
            let begins = |at: usize| text[at + 2..].starts_with(|letter: char| letter.is_ascii_lowercase());
            // A rule of a runtime names its options.
            if text.match_indices("--").any(|(at, _)| begins(at)) && !text.contains("(rule ") {
                found.push(format!("{place}: {text}"));
            }
        }
        Value::Array(parts) => parts.iter().for_each(|part| flags(part, place, found)),
        Value::Object(parts) => {
            for (key, part) in parts.iter().filter(|(key, _)| !QUOTED.contains(&key.as_str())) {
                flags(part, &format!("{place}.{key}"), found);
            }
        }
        _ => {}
    }
}

fn checked(name: &str, body: &Value) -> Option<Value> {
    let answer = (entry(name).unwrap().answer)(&Catalog::default(), body, &UNCONTROLLED).ok()?;
    let mut found = Vec::new();
    flags(&answer, name, &mut found);
    assert!(found.is_empty(), "{body}: {found:#?}");
    Some(answer)
}

/// A question of `optimize`, `estimate`, `deploy`, `recommend` or `place`, some without an answer.
fn drawn(random: &mut Rng) -> (&'static str, Value) {
    let models = ["Llama-3.3-70B", "Llama-3.1-8B", "gpt-oss-120b", "Qwen3-30B-A3B"];
    let systems = ["1xrtx-4090", "1xl4", "2xl40s", "1xh100"];
    let mut scenario = json!({
        "model": random.choice(models),
        "isl": random.u64(64..8000),
        "osl": random.u64(16..400),
    });
    let name = random.choice(["optimize", "optimize", "estimate", "deploy", "recommend", "place"]).unwrap();
    if name == "place" {
        scenario["hardware"] = json!(random.choice(["rtx-4090-3090", "spark-mac-studio"]));
        scenario["objective"] = json!(random.choice(["request", "latency", "throughput"]));
        scenario["weight_format"] = json!(random.bool().then_some("bf16"));
        scenario["offload"] = json!(random.bool().then_some("never"));
        return (name, json!({ "scenario": scenario }));
    }
    scenario["hardware"] = json!(random.choice(systems));
    scenario["host_memory"] = json!(random.bool().then_some("16GB"));
    for limit in ["ttft", "tpot"] {
        scenario[limit] = json!(random.bool().then(|| format!("{}ms", between(random, 1.0, 500.0).ceil())));
    }
    if name == "estimate" {
        scenario["deployment"] = json!({"plan": "1 x tp1 @4"});
    }
    match name {
        "recommend" => (name, json!({ "scenario": scenario, "users": random.u64(1..9) })),
        "optimize" => {
            scenario["concurrency"] = json!(random.bool().then(|| random.u64(1..4000)));
            (name, json!({ "scenario": scenario, "max_front_points": 0, "why": random.bool() }))
        }
        _ => (name, json!({ "scenario": scenario })),
    }
}

#[test]
fn answers_name_keys_and_no_flags() {
    let skipped = ["validate", "catalog"];
    for line in LINES.iter().filter(|line| !skipped.contains(&line[0])) {
        checked(line[0], &request(line)).unwrap_or_else(|| panic!("{line:?} has no answer"));
    }
    let mut random = Rng::with_seed(345);
    let (mut answered, mut remedies) = (0, 0);
    while answered < cases(8) {
        let (name, body) = drawn(&mut random);
        let Some(answer) = checked(name, &body) else { continue };
        answered += 1;
        let set = answer.pointer("/conflict/remedies").and_then(Value::as_array).into_iter().flatten();
        for remedy in set {
            // The keys with their values are the text, and a request takes them.
            let mut changed = body.clone();
            for (key, value) in remedy["set"].as_object().unwrap() {
                let text = remedy["flags"].as_str().unwrap();
                let spelled = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                assert!(text.contains(key) && text.contains(&spelled), "{remedy}");
                changed["scenario"][key] = value.clone();
            }
            let found = checked(name, &changed).unwrap_or_else(|| panic!("{changed} has no answer"));
            assert!(!found["best"].is_null(), "{remedy} of {body}");
            remedies += 1;
        }
    }
    assert!(remedies > 0, "no remedy in {answered} answers");
}
