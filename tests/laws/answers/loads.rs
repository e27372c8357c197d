//! A load that is not given is the best one for the plan, as the search chooses it.

use fastrand::Rng;
use mantile::spec::notation::PlanText;
use serde_json::json;

use super::{answer, plan, problem, with_plan};
use crate::draw::cases;

/// The plan without its loads.
fn unloaded(notation: &str) -> String {
    let mut plan: PlanText = notation.parse().unwrap();
    plan.pools.iter_mut().for_each(|pool| pool.concurrency = None);
    plan.to_string()
}

#[test]
fn an_open_load_is_that_of_the_optimum() {
    let mut random = Rng::with_seed(343);
    let (mut checked, mut tried) = (0, 0);
    while checked < cases(8) {
        tried += 1;
        assert!(tried < 100 * cases(8), "too few are feasible");
        let mut requested = problem(&mut random);
        requested.as_object_mut().unwrap().retain(|key, _| !["rate", "concurrency"].contains(&key.as_str()));
        let request = json!({ "scenario": requested, "max_front_points": 0 });
        let Some(found) = answer("optimize", &request) else { continue };
        let Some(best) = found["best"]["notation"].as_str() else { continue };
        let plan: PlanText = best.parse().unwrap();
        if plan.pools.len() > 1 || found["question"]["concurrency"].is_number() {
            continue;
        }
        checked += 1;
        let again =
            answer("estimate", &json!({ "scenario": with_plan(&requested, &unloaded(best)) })).unwrap();
        assert_eq!(again["notation"].as_str(), Some(best), "{requested}");
        assert!(again["chosen_load"].is_string(), "{requested}");
    }
}

#[test]
fn an_open_load_misses_an_slo_only_where_every_load_does() {
    let mut random = Rng::with_seed(344);
    let (mut checked, mut missed, mut tried) = (0, 0, 0);
    while checked < cases(24) {
        tried += 1;
        assert!(tried < 100 * cases(24), "too few run");
        let mut requested = problem(&mut random);
        requested.as_object_mut().unwrap().retain(|key, _| !["rate", "concurrency"].contains(&key.as_str()));
        let plan = unloaded(&plan(&mut random));
        let Some(found) = answer("estimate", &json!({ "scenario": with_plan(&requested, &plan) })) else {
            continue;
        };
        if found["metrics"].is_null() || found["question"]["concurrency"].is_number() {
            continue;
        }
        checked += 1;
        if found["violations"] == json!([]) {
            continue;
        }
        missed += 1;
        let mut least: PlanText = found["notation"].as_str().unwrap().parse().unwrap();
        for pool in &mut least.pools {
            pool.concurrency = Some(pool.degrees.dp.unwrap_or(1));
        }
        let least =
            answer("estimate", &json!({ "scenario": with_plan(&requested, &least.to_string()) })).unwrap();
        assert_ne!(least["violations"], json!([]), "{requested} {plan}");
    }
    assert!(missed > 0, "some plans miss an SLO at every load");
}
