//! No door contradicts another: the same question has the same numbers wherever it is asked.

use fastrand::Rng;
use mantile::request::UNCONTROLLED;
use mantile::request::entry;
use mantile::store::catalog::Catalog;
use serde_json::{Value, json};

use super::{MODELS, SYSTEMS};
use crate::draw::{between, cases};

/// A random problem.
fn problem(random: &mut Rng) -> Value {
    let one = |random: &mut Rng, all: &[&str]| all[random.usize(0..all.len())].to_owned();
    let whole = |random: &mut Rng, low, high| between(random, low, high).round() as u64;
    let objectives = ["throughput", "latency", "perf-per-dollar", "min-chips", "single-user", "max-context"];
    let mut scenario = json!({
        "model": one(random, &MODELS),
        "hardware": one(random, &SYSTEMS),
        "isl": whole(random, 64.0, 4000.0),
        "osl": whole(random, 2.0, 500.0),
        "objective": one(random, &objectives),
    });
    match random.u8(0..3) {
        0 => scenario["concurrency"] = json!(whole(random, 1.0, 200.0)),
        1 => scenario["rate"] = json!(between(random, 0.05, 10.0)),
        _ => {}
    }
    if random.u8(0..3) == 0 {
        scenario["tpot"] = json!(format!("{}ms", whole(random, 5.0, 200.0)));
    }
    if random.u8(0..4) == 0 {
        scenario["hours_per_day"] = json!(whole(random, 1.0, 24.0));
    }
    if random.u8(0..4) == 0 {
        scenario["host_memory"] = json!("128GB");
    }
    scenario
}

fn ask(name: &str, request: &Value) -> Result<Value, String> {
    let entry = entry(name).map_err(|fault| fault.to_string())?;
    (entry.answer)(&Catalog::default(), request, &UNCONTROLLED).map_err(|fault| fault.to_string())
}

/// Numbers that differ, by key.
fn contradictions(a: &Value, b: &Value) -> Vec<String> {
    let keys = a.as_object().into_iter().flatten();
    keys.filter_map(|(key, one)| {
        let (one, other) = (one.as_f64()?, b.get(key)?.as_f64()?);
        let same = (one - other).abs() <= 1e-9 * one.abs().max(other.abs());
        (!same).then(|| format!("{key}: {one} {other}"))
    })
    .collect()
}

/// The answers of `optimize`, `estimate` of its plan, a sweep with one point and a comparison have one plan and one value
/// of each metric; each door that refuses the question is refused at the others.
#[test]
fn no_door_contradicts_another() {
    let mut random = Rng::with_seed(34);
    let (mut answered, mut faults) = (0, Vec::new());
    for case in 0..cases(30) {
        let scenario = problem(&mut random);
        let shown = format!("case {case}: {scenario}");
        let best = ask("optimize", &json!({"scenario": scenario, "max_front_points": 0}));
        let point =
            ask("sweep", &json!({"scenario": scenario, "vary": [format!("isl={}", scenario["isl"])]}));
        let row = point.map(|point| point["rows"][0].clone());
        let best = match best {
            Err(fault) => {
                if let Ok(row) = &row
                    && row["status"] != "invalid"
                {
                    faults.push(format!("{shown}: {fault}, sweep {row}"));
                }
                continue;
            }
            Ok(best) => best,
        };
        let row = row.unwrap_or_else(|fault| panic!("{shown}: {fault}"));
        if best["best"].is_null() {
            if !row["metrics"].is_null() {
                faults.push(format!("{shown}: optimize serves nothing, sweep {row}"));
            }
            continue;
        }
        answered += 1;
        let (plan, metrics) = (&best["best"]["notation"], &best["best"]["metrics"]);
        let mut doors = vec![("sweep", row["notation"].clone(), row["metrics"].clone())];
        let mut with_plan = scenario.clone();
        with_plan["deployment"] = json!({"plan": plan});
        match ask("estimate", &json!({"scenario": with_plan})) {
            Ok(found) => {
                doors.push(("estimate", found["notation"].clone(), found["metrics"].clone()));
            }
            Err(fault) => faults.push(format!("{shown}: estimate {fault}")),
        }
        let entries = [("searched", &scenario), ("given", &with_plan)];
        let entries = entries.map(|(name, scenario)| json!({"name": name, "scenario": scenario}));
        match ask("compare", &json!({"entries": entries})) {
            Ok(found) => {
                for row in found["rows"].as_array().unwrap() {
                    doors.push(("compare", row["notation"].clone(), row["metrics"].clone()));
                }
            }
            Err(fault) => faults.push(format!("{shown}: compare {fault}")),
        }
        for (door, notation, figures) in doors {
            let differs = contradictions(metrics, &figures);
            if notation != *plan || figures.is_null() || !differs.is_empty() {
                faults.push(format!("{shown}: {door} {notation}, optimize {plan}: {differs:?}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(answered >= cases(30) / 3, "{answered} answered");
}

/// A build of `recommend` is what `estimate` says of its plan on a copy of its system.
#[test]
fn a_recommended_build_is_estimated_the_same() {
    let mut random = Rng::with_seed(35);
    let (mut compared, mut faults) = (0, Vec::new());
    for _ in 0..cases(8) {
        let mut scenario = problem(&mut random);
        for key in ["concurrency", "rate", "tpot", "objective"] {
            scenario.as_object_mut().unwrap().remove(key);
        }
        let users = random.u64(1..30);
        let request =
            json!({"scenario": scenario, "users": users, "target_tok_s": between(&mut random, 2.0, 60.0)});
        let Ok(answer) = ask("recommend", &request) else { continue };
        for build in answer["builds"].as_array().unwrap() {
            let mut alone = answer["scenario"].clone();
            for key in ["model", "runtime"] {
                alone[key] = build[key].clone();
            }
            alone["deployment"] = json!({"plan": build["each"]["notation"]});
            alone["concurrency"] = json!(users.div_ceil(build["copies"].as_u64().unwrap()));
            let found = ask("estimate", &json!({"scenario": alone}));
            let found = found.unwrap_or_else(|fault| panic!("{request}: {fault}"));
            let differs = contradictions(&build["each"]["metrics"], &found["metrics"]);
            if found["metrics"].is_null() || !differs.is_empty() {
                faults.push(format!("{request}: {} {differs:?}", build["each"]["notation"]));
            }
            compared += 1;
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(compared > 0);
}
