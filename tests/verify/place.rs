//! Saved placements.

use mantile::report::place::PlacementResult;
use mantile::report::place::build::placement_report;
use mantile::report::verify::Verified;
use mantile::request::verify::place::PlaceRerun;
use mantile::request::verify::{RandomSample, Rerun};
use mantile::search::placement::chain::Stage;
use mantile::search::placement::evaluate::PlacementEvaluator;
use mantile::search::placement::sample::neighbours;
use mantile::store::catalog::Catalog;
use serde_json::{Value, json};

use super::{Spoiling, caught, more, saved, times};

/// A placement of several stages.
const FOUR_CARDS: [&str; 7] =
    ["place", "--model", "Llama-3.3-70B", "--weight-format", "q4_k_m", "--hardware", "pcie-four-cards"];

fn requested(value: &Value) -> PlaceRerun {
    let saved: PlacementResult = serde_json::from_value(value.clone()).unwrap();
    PlaceRerun::solve(&Catalog::default(), &saved).unwrap_or_else(|fault| panic!("{fault}"))
}

fn check(requested: &PlaceRerun, value: &Value) -> Verified {
    requested.check(value, RandomSample { count: 300, seed: 5 }).unwrap_or_else(|fault| panic!("{fault}"))
}

#[test]
fn placements_of_every_objective_hold() {
    for args in [
        ["--model", "Llama-3.1-8B", "--hardware", "spark-mac-studio", "--objective", "request"].as_slice(),
        &["--model", "gpt-oss-120b", "--hardware", "mac-five", "--objective", "throughput"],
        // Experts in host memory, and hosts that members share.
        &["--model", "gpt-oss-120b", "--hardware", "rtx-4090-workstation"],
        &["--model", "gpt-oss-120b", "--hardware", "pcie-four-cards"],
        &["--model", "Llama-3.1-8B", "--hardware", "rtx-4090-3090", "--objective", "max-context"],
        &["--model", "Qwen3-8B", "--device", "2xrtx-3090", "--device", "rtx-4090", "--link", "pcie4x16"],
        // Nothing fits.
        &["--model", "Llama-3.3-70B", "--hardware", "rtx-4090-3090", "--offload", "never"],
    ] {
        saved(&[&["place"], args].concat());
    }
    let of_a_rig = saved(&["--model", "Llama-3.1-8B", "--hardware", "rtx-4090-3090"]);
    assert!(of_a_rig["placement"].is_object(), "`optimize` of a rig is a placement");
}

#[test]
fn a_spoilt_placement_is_shown_by_what_is_wrong_with_it() {
    let value = saved(&FOUR_CARDS);
    let stages = value["placement"]["stages"].as_array().unwrap().len();
    assert!(stages > 1, "there is a cut to be moved");
    let requested = requested(&value);
    assert!(check(&requested, &value).holds);
    let spoilings: &[Spoiling] = &[
        ("a layer lost", "stages", &|v| more(v, "/placement/stages/0/last_layer", -1)),
        ("a number of layers", "stages", &|v| more(v, "/placement/stages/0/layers", 1)),
        ("a member", "stages", &|v| v["placement"]["stages"][0]["member"] = "nobody".into()),
        ("a member twice", "stages", &|v| {
            v["placement"]["stages"][1]["member"] = v["placement"]["stages"][0]["member"].clone();
        }),
        ("a cut moved", "objective", &|v| {
            more(v, "/placement/stages/0/last_layer", -1);
            more(v, "/placement/stages/0/layers", -1);
            more(v, "/placement/stages/1/first_layer", -1);
            more(v, "/placement/stages/1/layers", 1);
        }),
        ("members in each other's place", "objective", &|v| {
            let first = v["placement"]["stages"][0]["member"].take();
            v["placement"]["stages"][0]["member"] = v["placement"]["stages"][1]["member"].take();
            v["placement"]["stages"][1]["member"] = first;
        }),
        ("memory", "memory", &|v| times(v, "/placement/stages/0/memory_bytes", 0.9)),
        ("a time", "times", &|v| times(v, "/placement/stages/1/decode_ms", 0.999)),
        ("a pace", "objective", &|v| times(v, "/placement/decode_tok_s", 1.01)),
        ("the objective", "certificate", &|v| times(v, "/certificate/objective_ms", 0.99)),
        ("a bound too high", "certificate", &|v| times(v, "/certificate/lower_bound_ms", 1.01)),
        ("a bound too low", "certificate", &|v| times(v, "/certificate/lower_bound_ms", 0.9)),
        ("what is proved", "certificate", &|v| v["status"] = "feasible".into()),
        ("no answer", "search", &|v| v["placement"] = Value::Null),
        ("another's split", "search", &|v| times(v, "/compared/0/objective_ms", 0.5)),
        ("the question", "question", &|v| more(v, "/question/isl", 1)),
    ];
    caught(&value, spoilings, |value| check(&requested, value));
    let found = check(&requested, &{
        let mut spoilt = value.clone();
        times(&mut spoilt, "/placement/token_ms", 2.0);
        spoilt
    });
    let shown: Vec<&String> = found.checks.iter().flat_map(|check| &check.faults).collect();
    assert!(
        shown.iter().any(|fault| fault.contains(": saved ") && fault.contains("recomputed ")),
        "{shown:?}"
    );
}

#[test]
fn stages_that_like_members_share_are_checked_too() {
    let value = saved(&[
        "place",
        "--model",
        "Llama-3.1-8B",
        "--weight-format",
        "q4_k_m",
        "--runtime",
        "llama.cpp",
        "--device",
        "3xrtx-4090",
        "--device",
        "2xrtx-3090",
        "--link",
        "ethernet-100g",
        "--objective",
        "throughput",
        "--concurrency",
        "12",
    ]);
    let stages = value["theoretical"]["placement"]["stages"].as_array().unwrap();
    let shared = stages.iter().position(|stage| !stage["copies"].as_array().unwrap().is_empty());
    let shared = shared.expect("a stage that several hold");
    let requested = requested(&value);
    assert!(check(&requested, &value).holds);
    let at = format!("/theoretical/placement/stages/{shared}");
    let spoilings: &[Spoiling] = &[
        ("a copy that is no member", "search", &|v| {
            v.pointer_mut(&at).unwrap()["copies"][0] = "nobody".into()
        }),
        ("a copy that holds it already", "search", &|v| {
            let stage = v.pointer_mut(&at).unwrap();
            stage["copies"][0] = stage["member"].clone();
        }),
        ("a copy lost", "search", &|v| {
            drop(v.pointer_mut(&at).unwrap()["copies"].as_array_mut().unwrap().pop())
        }),
        ("micro-batches", "search", &|v| more(v, "/theoretical/placement/micro_batches", 1)),
        ("memory", "search", &|v| times(v, &format!("{at}/memory_bytes"), 0.9)),
        ("a time", "search", &|v| times(v, &format!("{at}/decode_ms"), 0.999)),
        ("the objective", "search", &|v| times(v, "/theoretical/certificate/objective_ms", 0.99)),
    ];
    caught(&value, spoilings, |value| check(&requested, value));
}

/// A placement that is sound in every number and called the best, though one beside it is better.
#[test]
fn a_sound_placement_that_is_not_the_best_is_beaten_by_a_sample() {
    let value = saved(&FOUR_CARDS);
    let requested = requested(&value);
    let questions = &requested.rigged.problems;
    let scales = PlacementEvaluator::new(&questions[0], requested.aim);
    let stage = |stage: &Value| Stage {
        member: questions[0].members.iter().position(|offer| stage["member"] == *offer.name).unwrap(),
        from: stage["first_layer"].as_u64().unwrap() as usize,
        to: stage["last_layer"].as_u64().unwrap() as usize + 1,
    };
    let best: Vec<Stage> = value["placement"]["stages"].as_array().unwrap().iter().map(stage).collect();
    let least = scales.seconds(&best, None).unwrap();
    let next_to = neighbours(&best, questions[0].members.len());
    let worse = next_to.iter().filter_map(|stages| scales.to_solved(stages, None, None).ok());
    let mut tried = 0;
    for worse in worse.filter(|other| other.seconds > least * 1.000001).step_by(7) {
        let mut other = value.clone();
        other["placement"] = serde_json::to_value(placement_report(&questions[0], &worse)).unwrap();
        for key in ["objective_ms", "lower_bound_ms"] {
            other["certificate"][key] = json!(1e3 * worse.seconds);
        }
        let found = check(&requested, &other);
        let shown = |by: &str| {
            found.checks.iter().any(|check| check.what.starts_with(by) && !check.faults.is_empty())
        };
        assert!(shown("sample") && shown("search"), "{:?}", worse.stages);
        assert!(
            !shown("stages") && !shown("memory") && !shown("times") && !shown("objective"),
            "{:?}",
            found.checks
        );
        tried += 1;
    }
    assert!(tried > 3, "{tried}");
}
