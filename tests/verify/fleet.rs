//! Saved fleets.

use mantile::report::fleet::{FleetProblem, FleetResult, fleet_answer};
use mantile::report::verify::Verified;
use mantile::request::verify::fleet::FleetRerun;
use mantile::request::verify::{RandomSample, Rerun};
use mantile::search::fleet::{FleetObjective, pinned};
use mantile::search::mip::solve::SolveBudget;
use mantile::search::outcome::Status;
use mantile::store::catalog::Catalog;
use serde_json::Value;

use super::{Spoiling, caught, more, saved, times};

fn requested(value: &Value) -> FleetRerun {
    let saved: FleetResult = serde_json::from_value(value.clone()).unwrap();
    FleetRerun::solve(&Catalog::default(), saved).unwrap_or_else(|fault| panic!("{fault}"))
}

fn check(requested: &FleetRerun, value: &Value) -> Verified {
    requested.check(value, RandomSample { count: 60, seed: 5 }).unwrap_or_else(|fault| panic!("{fault}"))
}

const SMALL: [&str; 5] = ["fleet", "--model", "Llama-3.1-8B", "--offers", "1xl40s,h100-sxm-x1,2xrtx-4090"];

#[test]
fn fleets_of_every_aim_hold() {
    for more in [
        ["--spare"].as_slice(),
        &["--aim", "devices"],
        &["--aim", "throughput", "--budget-hour", "3usd"],
        // Nothing serves all of it for so little.
        &["--budget-hour", "1usd"],
    ] {
        saved(&[&SMALL[..], more].concat());
    }
}

#[test]
fn a_spoilt_fleet_is_shown_by_what_is_wrong_with_it() {
    let value = saved(&SMALL);
    let requested = requested(&value);
    assert!(check(&requested, &value).holds);
    let spoilings: &[Spoiling] = &[
        ("one system more", "load", &|v| more(v, "/systems/0/count", 1)),
        ("no system", "systems", &|v| v["systems"][0]["count"] = 0.into()),
        ("a plan", "systems", &|v| v["systems"][0]["plan"] = "1 x tp64 bf16".into()),
        ("a price", "load", &|v| times(v, "/systems/0/usd_per_hour", 0.9)),
        ("what keeps it busy", "load", &|v| times(v, "/systems/0/busy", 0.9)),
        ("a share", "traffic", &|v| times(v, "/routes/0/share", 0.5)),
        ("a rate", "traffic", &|v| times(v, "/routes/0/requests_per_s", 2.0)),
        ("traffic of nobody", "traffic", &|v| more(v, "/routes/0/isl", 1)),
        ("a sum", "sums", &|v| times(v, "/usd_per_hour", 0.99)),
        ("devices in all", "sums", &|v| more(v, "/devices", 1)),
        ("the objective", "certificate", &|v| times(v, "/certificate/objective", 0.9)),
        ("a bound beyond it", "certificate", &|v| times(v, "/certificate/bound", 1.5)),
        ("a gap", "certificate", &|v| v["certificate"]["gap"] = 0.5.into()),
        ("what is proved", "search", &|v| v["certificate"]["status"] = "feasible".into()),
        ("what is left out", "search", &|v| v["unserved"] = Value::Array(vec!["all".into()])),
    ];
    caught(&value, spoilings, |value| check(&requested, value));
}

/// A fleet that is sound in every number and called the cheapest, though it has a system too many.
#[test]
fn a_sound_fleet_that_is_too_dear_is_beaten_by_a_sample() {
    let requested = requested(&saved(&SMALL));
    let FleetProblem { fleet, bounds, .. } = &requested.problem;
    let best = mantile::search::fleet::mix(fleet, FleetObjective::Cost, bounds, &SolveBudget::default());
    for kind in 0..fleet.kinds.len().min(6) {
        let mut counts = best.counts.clone();
        counts[kind] += 1;
        let mut mix = pinned(fleet, FleetObjective::Cost, bounds, &counts, &SolveBudget::default());
        assert_eq!(mix.solved.status, Status::Optimal, "of so many systems it is the best");
        let used = (0..counts.len()).filter(|kind| counts[*kind] > 0).collect::<Vec<_>>();
        let mut all = vec![0; counts.len()];
        used.iter().zip(&mix.counts).for_each(|(kind, count)| all[*kind] = *count);
        mix.counts = all;
        mix.parts.iter_mut().for_each(|part| part.kind = used[part.kind]);
        let found = check(&requested, &serde_json::to_value(fleet_answer(&requested.problem, &mix)).unwrap());
        let shown = |by: &str| {
            found.checks.iter().any(|check| check.what.starts_with(by) && !check.faults.is_empty())
        };
        assert!(shown("sample") && shown("search"), "{:?}", found.checks);
        assert!(!shown("traffic") && !shown("load") && !shown("sums"), "{:?}", found.checks);
    }
}
