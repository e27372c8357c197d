//! What cannot run has no launch and no time at any door, and a reason whose numbers imply it.

use clap::Parser;
use fastrand::Rng;

use mantile::cli::subcommand::Command;
use mantile::cli::{Cli, ExitStatus};
use mantile::report::format::Format;
use mantile::report::result::EstimateResult;
use mantile::report::text::{self, screen};
use mantile::request::entry;
use mantile::store::catalog::Catalog;
use serde_json::{Value, json};

use super::{answer, plan, problem, with_plan};
use crate::draw::cases;
use mantile::search::outcome::Status;

/// Times and rates anywhere in an answer, by their keys; what was asked has its own.
fn times(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, field) in
                fields.iter().filter(|(key, _)| !["question", "scenario"].contains(&key.as_str()))
            {
                times(field, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(rows) => rows.iter().for_each(|row| times(row, at, found)),
        Value::Number(_) if at.ends_with("_ms") || at.contains("tok_s") => found.push(at.to_owned()),
        _ => {}
    }
}

/// A number with its unit of bytes, in GiB.
fn gib(number: &str, unit: &str) -> Option<f64> {
    const GIB: f64 = (1u64 << 30) as f64;
    let units = [("GiB", GIB), ("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)];
    let (_, bytes) = units.into_iter().find(|(known, _)| *known == unit.trim_end_matches([',', ':', ';']))?;
    number.replace(',', "").parse::<f64>().ok().map(|number| number * bytes / GIB)
}

/// The bytes after `before` in a sentence, in GiB.
fn gib_after(text: &str, before: &str) -> Option<f64> {
    let mut words = text.split_once(before)?.1.split_whitespace();
    gib(words.next()?, words.next()?)
}

/// The bytes before `after` in a sentence, in GiB.
fn gib_before(text: &str, after: &str) -> Option<f64> {
    let mut words = text.split_once(after)?.0.rsplit(' ');
    let unit = words.next()?;
    gib(words.next()?, unit)
}

/// The numbers of a memory shortage imply it.
fn implied(why: &str) {
    let Some(usable) = gib_before(why, " usable") else { return };
    let needed = gib_before(why, " needed").or_else(|| gib_after(why, " take "));
    let needed = needed.unwrap_or_else(|| panic!("{why}"));
    assert!(needed >= usable, "{why}");
    if let Some(short) = gib_before(why, " short") {
        assert!((needed - usable - short).abs() < 0.011 + needed * 1e-3, "{why}");
    }
}

/// What every door says of a deployment that cannot run.
fn nothing_runs(requested: &Value, found: &Value) {
    let said = |what: &str| format!("{what}: {requested} {found}");
    let violations = found["violations"].as_array().unwrap();
    assert!(!violations.is_empty(), "{}", said("no reason"));
    for key in ["launch", "bottleneck", "intervals", "price_bounds", "audit", "chosen_load"] {
        assert!(found[key].is_null(), "{}", said(key));
    }
    let mut timed = Vec::new();
    times(found, "", &mut timed);
    assert!(timed.is_empty(), "{timed:?} {}", said("times"));
    violations.iter().filter_map(Value::as_str).for_each(implied);
    let report: EstimateResult = serde_json::from_value(found.clone()).unwrap();
    let refused = |text: &str| text.contains("CANNOT RUN") || text.contains("NEAR CAPACITY");
    for shown in [screen::estimate(&report, 100), text::estimate(&report)] {
        assert!(refused(&shown) && !shown.contains("Launch:"), "{shown}");
    }
    let html =
        entry("estimate").unwrap().formatted(&Catalog::default(), found, Format::Section).unwrap().unwrap();
    let html = String::from_utf8(html).unwrap();
    assert!(refused(&html) && !html.contains("Copy launch command"), "{}", said("page"));
    let request = json!({ "scenario": requested });
    let deployed = answer("deploy", &request).unwrap();
    assert!(deployed["workers"] == json!([]) && deployed["files"] == json!([]), "{}", said("deploy"));
    assert_eq!(deployed["infeasible"], found["violations"], "{}", said("deploy"));
    let explained = answer("explain", &request).unwrap();
    assert!(explained["infeasible"].is_string(), "{}", said("explain"));
}

#[test]
fn what_cannot_run_has_no_launch_and_no_time() {
    let mut random = Rng::with_seed(341);
    let (mut checked, mut runs, mut tried) = (0, 0, 0);
    while checked < cases(10) {
        tried += 1;
        assert!(tried < 100 * cases(10), "most questions are refused");
        let requested = with_plan(&problem(&mut random), &plan(&mut random));
        let Some(found) = answer("estimate", &json!({ "scenario": requested })) else { continue };
        if found["metrics"].is_null() {
            nothing_runs(&requested, &found);
            checked += 1;
        } else {
            assert!(found["launch"].is_object(), "{requested}");
            let report: EstimateResult = serde_json::from_value(found).unwrap();
            let shown = screen::estimate(&report, 100);
            assert!(!shown.contains(" short of "), "{shown}");
            runs += 1;
        }
    }
    assert!(runs > 0, "some plans run");
}

#[test]
fn a_command_that_launches_nothing_exits_so_and_writes_nothing() {
    let line = "--model Llama-3.3-70B --hardware 1xh100 --plan";
    let plan = "1 x tp1 @1, weights bf16, kv bf16";
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("launch");
    let run = |emits: bool, name: &str| {
        let out = folder.path().join("out");
        let mut words = vec!["mantile-opt", name];
        words.extend(line.split(' '));
        words.extend([plan, "--out", out.to_str().unwrap()]);
        if emits {
            words.extend(["--emit", files.to_str().unwrap()]);
        }
        let cli = Cli::try_parse_from(words).unwrap();
        let catalog = Catalog::default();
        match cli.command {
            Some(Command::Deploy(command)) => command.run(&catalog),
            Some(Command::Estimate(command)) => command.run(&catalog),
            _ => panic!("{name}"),
        }
    };
    for name in ["deploy", "estimate"] {
        assert!(matches!(run(false, name), Ok(ExitStatus::Searched(Status::Infeasible))), "{name}");
        assert!(run(true, name).is_err() && !files.exists(), "{name}");
    }
}

#[test]
fn the_numbers_of_a_reason_imply_it() {
    let mut random = Rng::with_seed(342);
    let (mut checked, mut tried) = (0, 0);
    while checked < cases(10) {
        tried += 1;
        assert!(tried < 100 * cases(10), "too few are infeasible");
        let mut requested = problem(&mut random);
        requested.as_object_mut().unwrap().remove("rate");
        let request = json!({ "scenario": requested, "max_front_points": 0 });
        let Some(found) = answer("optimize", &request) else { continue };
        if found["status"] != "infeasible" {
            continue;
        }
        checked += 1;
        let conflicts = found["conflict"]["conflicts"].as_array().unwrap();
        for why in conflicts.iter().filter_map(|one| one["why"].as_str()) {
            implied(why);
            assert!(!why.contains("holds the model"), "{why}");
        }
        // Where a deployment was evaluated, memory is not what is short.
        assert!(found["nearest"].is_null() || found["weights_need"] == json!([]), "{requested}");
    }
}

/// The number after `before` in a sentence, a time in milliseconds.
fn number_after(text: &str, before: &str) -> Option<f64> {
    let mut words = text.split_once(before)?.1.split_whitespace();
    let mut word = || words.next().map(|word| word.trim_end_matches([',', ';', ':', ')', '.']));
    let number: f64 = word()?.replace(',', "").parse().ok()?;
    Some(match word() {
        Some("s") => 1e3 * number,
        Some("µs") => 1e-3 * number,
        _ => number,
    })
}

/// Sentences with two numbers: the words before what is needed, and before what there is.
const COMPARED: [[&str; 2]; 6] = [
    ["ISL + OSL of ", "holds at most "],
    ["ISL + OSL of ", "supports at most "],
    ["max-model-len is ", " of at most "],
    [" is ", "the SLO is "],
    ["requests/s, ", "capacity is "],
    ["an instance of ", "in one domain of "],
];

/// Every sentence of an answer that gives a reason.
fn reasons(found: &Value) -> Vec<String> {
    let texts = |value: &Value| value.as_str().map(str::to_owned);
    let conflicts = found["conflict"]["conflicts"].as_array().into_iter().flatten();
    let census = found["census"]["illegal"].as_object().into_iter().flatten();
    let violations = [&found["violations"], &found["nearest"]["violations"]];
    let violations = violations.into_iter().filter_map(Value::as_array).flatten();
    let all = conflicts.filter_map(|one| texts(&one["why"]));
    all.chain(census.filter_map(|(_, one)| texts(&one["example"])))
        .chain(violations.filter_map(texts))
        .collect()
}

#[test]
fn every_reason_needs_more_than_there_is() {
    let mut random = Rng::with_seed(352);
    let (mut read, mut tried) = (0, 0);
    while read < cases(8) {
        tried += 1;
        assert!(tried < 100 * cases(8), "too few reasons have two numbers");
        let mut requested = problem(&mut random);
        if random.u8(0..3) == 0 {
            requested["max_model_len"] = json!(random.u64(2_000..200_000));
        }
        let found = match random.bool() {
            true => answer("optimize", &json!({ "scenario": requested, "max_front_points": 0 })),
            false => answer("estimate", &json!({ "scenario": with_plan(&requested, &plan(&mut random)) })),
        };
        let Some(found) = found else { continue };
        let feasible = found["best"].is_object() || found["metrics"].is_object();
        for why in reasons(&found) {
            implied(&why);
            for [needed, there] in COMPARED {
                if let (Some(needed), Some(there)) = (number_after(&why, needed), number_after(&why, there)) {
                    assert!(needed > there, "{why}: {requested}");
                    read += 1;
                }
            }
            assert!(!feasible || !why.contains("holds the model"), "{why}: {requested}");
        }
        let short = found["violations"].to_string().contains(" short ");
        assert!(!short || found["metrics"].is_null(), "{requested} {}", found["violations"]);
    }
}

/// Where leaving out one stated limit of the server makes a question feasible, every conflict names it, and a remedy sets it.
#[test]
fn a_stated_limit_that_is_in_the_way_is_named() {
    let mut random = Rng::with_seed(353);
    let (mut named, mut tried) = (0, 0);
    let of = |scenario: &Value| answer("optimize", &json!({ "scenario": scenario, "max_front_points": 0 }));
    while named < cases(1) {
        tried += 1;
        assert!(tried < 200 * cases(1), "{named} limits are in the way");
        let mut question = problem(&mut random);
        let (key, limit) = match random.bool() {
            true => ("max_num_seqs", json!(random.u64(1..=60))),
            false => ("offload", json!("never")),
        };
        question[key] = limit;
        let Some(found) = of(&question).filter(|found| found["status"] == "infeasible") else { continue };
        let mut without = question.clone();
        without.as_object_mut().unwrap().remove(key);
        let feasible = of(&without).is_some_and(|found| found["best"].is_object());
        let conflicts = found["conflict"]["conflicts"].as_array().unwrap();
        let names = |set: &Value| set["conditions"].to_string().contains(key);
        let remedies = found["conflict"]["remedies"].as_array().unwrap();
        let remedy = remedies.iter().find(|one| one["set"].as_object().unwrap().contains_key(key));
        assert_eq!(feasible, conflicts.iter().any(names), "{question}: {}", found["conflict"]);
        assert_eq!(feasible, remedy.is_some(), "{question}: {}", found["conflict"]);
        let Some(remedy) = remedy else { continue };
        assert!(conflicts.iter().all(names), "{question}: {}", found["conflict"]);
        let mut changed = question.clone();
        changed[key] = remedy["set"][key].clone();
        assert!(of(&changed).unwrap()["best"].is_object(), "{changed}");
        named += 1;
    }
}
