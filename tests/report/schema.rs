//! The schemas describe what is written.

use mantile::request::reference::schema_of as schema;
use mantile::spec::degree::Degrees;
use mantile::spec::deployment::Deployment;
use mantile::spec::scenario::Scenario;
use serde_json::{Value, to_value};

use super::{estimate, optimize, scenario};

fn describes(name: &str, value: &Value) {
    let schema = to_value(schema(name).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> =
        validator.iter_errors(value).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "{name}:\n{}", faults.join("\n"));
    // A schema that takes anything would take this too.
    assert!(!validator.is_valid(&Value::Array(vec![])));
}

#[test]
fn every_kind_of_answer_is_described() {
    let mode = Some(mantile::spec::plan_space::ServingMode::Disaggregated);
    let split = optimize(&Scenario { mode, ..scenario("Llama-3.1-8B", "2xh100") });
    assert!(split.front.iter().any(|point| point.plan.mode == "disaggregated"));
    let one = optimize(&scenario("Llama-3.1-8B", "1xh100"));
    assert_eq!(one.best.as_ref().unwrap().plan.mode, "aggregated");
    let full = optimize(&scenario("Llama-3.1-405B", "1xh100"));
    let slow = optimize(&Scenario { ttft: Some("1ms".into()), ..scenario("Llama-3.1-8B", "1xh100") });
    assert!(full.best.is_none() && slow.nearest.is_some());
    let unpriced = optimize(&scenario("gpt-oss-20b", "1xm4-max"));
    for answer in [split, one, full, slow, unpriced] {
        let value = to_value(&answer).unwrap();
        describes("result", &value);
        for key in ["status", "best", "alternatives", "front", "census"] {
            assert!(value.get(key).is_some(), "{key}");
        }
        let Some(best) = value["best"].as_object() else { continue };
        for key in [
            "plan",
            "weight_format",
            "kv_format",
            "concurrency",
            "devices",
            "feasibility",
            "memory",
            "bottleneck",
            "metrics",
        ] {
            assert!(best.get(key).is_some_and(|found| !found.is_null()), "{key}");
        }
    }
}

#[test]
fn every_kind_of_estimate_is_described() {
    for (tp, concurrency) in [(1, 8), (3, 8), (1, 100_000)] {
        let both = Degrees { tp: Some(tp), ..Degrees::default() };
        let estimated = estimate(&Scenario {
            deployment: Some(Deployment { both, ..Deployment::default() }),
            concurrency: Some(concurrency),
            ..scenario("Llama-3.1-8B", "4xh100")
        });
        let value = to_value(&estimated).unwrap();
        describes("estimate", &value);
        assert_eq!(value["metrics"].is_null(), (tp, concurrency) != (1, 8));
        assert_eq!(value["memory"].is_null(), tp == 3);
    }
}
