//! The longest context is what memory holds at the plan's load, up to the context of the model: the request of that
//! length is accepted, one token more is refused, and the length of the asked prompt does not matter.

use fastrand::Rng;
use serde_json::{Value, json};

use super::{answer, one, plan, problem, whole, with_plan};
use crate::draw::cases;

/// The estimate of a plan at its own load and formats, with another prompt.
fn at(requested: &Value, notation: &str, isl: u64) -> Value {
    let mut requested = with_plan(requested, notation);
    requested["isl"] = json!(isl);
    // The plan has the load.
    for traffic in ["concurrency", "rate"] {
        requested.as_object_mut().unwrap().remove(traffic);
    }
    answer("estimate", &json!({ "scenario": requested })).unwrap_or_else(|| panic!("{requested}"))
}

fn runs(found: &Value) -> bool {
    let fits = ["in_vram", "with_offload"].iter().any(|kind| found["feasibility"] == *kind);
    fits && !found["metrics"].is_null()
}

/// Tokens of the longest context, and whether memory bounds it.
fn context(found: &Value) -> (u64, bool) {
    let tokens = found["metrics"]["max_context_tokens"].as_f64().unwrap();
    assert_eq!(tokens, tokens.floor(), "whole tokens: {found}");
    (tokens as u64, found["context_bound"] == "memory")
}

/// The context of the first command of a launch.
fn launched(found: &Value) -> Option<u64> {
    let options = found["launch"]["workers"][0]["options"].as_array()?;
    let words = options.iter().filter_map(|option| option["words"].as_str());
    let mut stated = words.filter_map(|words| {
        ["--max-model-len ", "--context-length "].iter().find_map(|flag| words.strip_prefix(flag))
    });
    stated.next()?.parse().ok()
}

/// A plan that runs, with its answer; none in most draws.
fn running(random: &mut Rng) -> Option<(Value, Value)> {
    let requested = problem(random);
    let posed = json!({ "scenario": with_plan(&requested, &plan(random)) });
    let found = answer("estimate", &posed)?;
    runs(&found).then_some((requested, found))
}

#[test]
fn the_longest_context_is_accepted_and_one_token_more_is_refused() {
    let (mut memory, mut model) = (0, 0);
    for seed in 0..cases(60) {
        let Some((requested, found)) = running(&mut Rng::with_seed(seed)) else { continue };
        let (tokens, by_memory) = context(&found);
        let (notation, osl) = (found["notation"].as_str().unwrap(), requested["osl"].as_u64().unwrap());
        let isl = tokens - osl;
        let accepted = at(&requested, notation, isl);
        assert!(runs(&accepted), "{tokens} tokens: {requested} {notation} {}", accepted["violations"]);
        assert_eq!(context(&accepted), (tokens, by_memory), "{requested} {notation}");
        // A part in host memory grows with the request.
        if notation.contains("offload") || isl >= 99_000_000 {
            continue;
        }
        let refused = at(&requested, notation, isl + 1);
        assert!(!runs(&refused), "{tokens} tokens and one: {requested} {notation}");
        let kind = if by_memory { "insufficient_memory" } else { "illegal" };
        assert_eq!(refused["feasibility"], kind, "{requested} {notation}");
        (memory, model) = (memory + u64::from(by_memory), model + u64::from(!by_memory));
    }
    assert!(memory > 3 && model > 1, "{memory} by memory, {model} by the model");
}

#[test]
fn the_longest_context_does_not_depend_on_the_prompt() {
    let mut compared = 0;
    for seed in 0..cases(120) {
        let mut random = Rng::with_seed(1_000_000 + seed);
        let Some((requested, found)) = running(&mut random) else { continue };
        let notation = found["notation"].as_str().unwrap();
        let other = at(&requested, notation, whole(&mut random, 1.0, 60_000.0));
        if notation.contains("offload") || !runs(&other) {
            continue;
        }
        assert_eq!(context(&other), context(&found), "{requested} {notation}");
        compared += 1;
    }
    assert!(compared > 5, "{compared}");
}

/// Gemma 3 27B on a 3090: layers with windows, whose cache does not grow along a line.
#[test]
fn windows_do_not_make_the_longest_context_depend_on_the_prompt() {
    let of = |isl: u64| {
        let requested = json!({
            "model": "google/gemma-3-27b-it", "hardware": "1xrtx-3090", "weight_format": "gguf-q4_k_m",
            "concurrency": 1, "isl": isl, "osl": 100
        });
        context(&answer("estimate", &json!({ "scenario": requested })).unwrap())
    };
    let all = [200, 2_048, 28_000, 60_000].map(of);
    assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
    assert!((75_000..90_000).contains(&all[0].0) && all[0].1, "{all:?}");
}

#[test]
fn more_memory_never_shortens_the_context() {
    let mut compared = 0;
    for seed in 0..cases(40) {
        let mut random = Rng::with_seed(2_000_000 + seed);
        let Some((mut requested, found)) = running(&mut random) else { continue };
        let notation = found["notation"].as_str().unwrap();
        let isl = requested["isl"].as_u64().unwrap();
        let of = |share: f64| {
            requested["gpu_memory_utilization"] = json!(share);
            let found = at(&requested, notation, isl);
            runs(&found).then(|| context(&found).0)
        };
        let [less, more] = [0.7, 0.95].map(of);
        assert!(less <= more, "{less:?} {more:?}: {requested} {notation}");
        compared += u64::from(more.is_some());
    }
    assert!(compared > 5, "{compared}");
}

#[test]
fn launches_take_the_requests_of_the_workload_and_no_more_than_runs() {
    let mut read = 0;
    for seed in 0..cases(60) {
        let Some((requested, found)) = running(&mut Rng::with_seed(3_000_000 + seed)) else {
            continue;
        };
        let Some(stated) = launched(&found) else { continue };
        let [isl, osl] = ["isl", "osl"].map(|key| requested[key].as_u64().unwrap());
        assert!(stated >= isl + osl, "{stated}: {requested} {}", found["notation"]);
        let (tokens, _) = context(&found);
        // Beyond what the load holds only for a chat template.
        assert!(stated <= tokens.max(isl + osl + 2 * 256), "{stated} of {tokens}: {requested}");
        assert!(stated + 256 > tokens, "{stated} of {tokens}: {requested}");
        read += 1;
    }
    assert!(read > 5, "{read}");
}

#[test]
fn the_context_of_a_recommended_model_is_that_of_its_build() {
    let hardware = one(&mut Rng::with_seed(353), &["1xl40s", "1xrtx-4090", "1xh100"]);
    let requested = json!({ "hardware": hardware, "isl": 1_000, "osl": 200 });
    let found =
        answer("recommend", &json!({ "scenario": requested, "users": 2, "target_tok_s": 5.0 })).unwrap();
    let models = found["models"].as_array().unwrap();
    let tokens = |served: &Value| served["build"]["max_context_tokens"].as_f64().unwrap();
    for served in models.iter().take(cases(3) as usize) {
        let build = &served["build"];
        let mut scenario = found["scenario"].clone();
        for (key, value) in [("model", &build["model"]), ("runtime", &build["runtime"])] {
            scenario[key] = value.clone();
        }
        scenario["hardware"] = json!(hardware);
        scenario["concurrency"] = json!(2);
        let plan = build["each"]["notation"].as_str().unwrap();
        let again = answer("estimate", &json!({ "scenario": with_plan(&scenario, plan) })).unwrap();
        assert_eq!(context(&again).0 as f64, tokens(served), "{build}");
    }
    let of = |name: &Value| models.iter().find(|one| one["build"]["model"] == *name).map(tokens).unwrap();
    let listed: Vec<f64> = found["longest_contexts"].as_array().unwrap().iter().map(of).collect();
    assert!(listed.is_sorted_by(|a, b| a >= b), "{listed:?}");
}
