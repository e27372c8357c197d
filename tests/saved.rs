//! Saved answers as input: every row of every answer is explained, estimated, verified and compared from its file.

use mantile::report::explain::ExplainedNumber;
use mantile::report::fleet::FleetResult;
use mantile::report::place::PlacementResult;
use mantile::request::explain::{ExplainReport, ExplainRequest, Number, explain};
use mantile::request::saved_answer::of_saved;
use mantile::request::verify::{VerifyRequest, verify};
use mantile::request::{UNCONTROLLED, bundle, entry};
use mantile::spec::deployment::Deployment;
use mantile::spec::error::Error;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use serde_json::{Value, json};

use crate::requests::request;

fn answer(line: &[&str]) -> Value {
    (entry(line[0]).unwrap().answer)(&Catalog::default(), &request(line), &UNCONTROLLED).unwrap()
}

/// The scenario of a row with its deployment.
fn row(saved: &Value, row: Option<&str>) -> Result<Scenario, Error> {
    let (scenario, deployment) =
        of_saved(&saved.to_string(), row, &Scenario::default(), &Deployment::default())?;
    Ok(Scenario { deployment: Some(deployment), ..scenario })
}

fn explained(saved: &Value, picked: Option<&str>, number: Number) -> ExplainedNumber {
    let scenario = row(saved, picked).unwrap();
    let request = ExplainRequest { scenario, number, ..ExplainRequest::default() };
    match explain(&Catalog::default(), &request, &UNCONTROLLED).unwrap() {
        ExplainReport::Explained(explained) => *explained,
        ExplainReport::Infeasible { infeasible } => panic!("{infeasible}"),
    }
}

const ANSWERS: [(&[&str], &[(&str, &str)]); 6] = [
    (
        &["optimize", "--model", "Llama-3.1-8B", "--hardware", "2xl40s"],
        &[("best", "/best/metrics"), ("front/0", "/front/0/metrics")],
    ),
    (
        &["estimate", "--model", "Llama-3.1-8B", "--hardware", "2xh100", "--tp", "2", "--concurrency", "8"],
        &[("", "/metrics")],
    ),
    (
        &["recommend", "--model", "gpt-oss-20b", "--only", "nvidia-l40s", "--users", "3"],
        &[("", "/minimum/each/metrics"), ("builds/0", "/builds/0/each/metrics")],
    ),
    (
        &["recommend", "--hardware", "rtx-4090-x2", "--target-tok-s", "30"],
        &[("", "/models/0/build/each/metrics"), ("models/1", "/models/1/build/each/metrics")],
    ),
    (&["fleet", "--model", "Llama-3.1-8B", "--offers", "1xl40s,h100-sxm-x1"], &[]),
    (&["optimize", "--model", "Qwen3-30B-A3B", "--hardware", "1xh100", "--objective", "latency"], &[]),
];

/// The explained number of a row is the reported one, bit for bit.
#[test]
fn numbers_of_saved_rows_are_explained() {
    for (line, rows) in ANSWERS {
        let saved = answer(line);
        for (picked, metrics) in rows {
            let picked = Some(*picked).filter(|picked| !picked.is_empty());
            for (number, column) in [(Number::Tpot, "tpot_ms"), (Number::Ttft, "ttft_ms")] {
                let found = explained(&saved, picked, number);
                let reported = saved.pointer(&format!("{metrics}/{column}")).and_then(Value::as_f64).unwrap();
                assert_eq!(found.number.value * 1e3, reported, "{line:?} {picked:?} {column}");
            }
        }
    }
}

/// Every route of a fleet runs on its systems within the SLOs, at its own rate.
#[test]
fn routes_of_a_fleet_are_explained() {
    let saved = answer(ANSWERS[4].0);
    let found: FleetResult = serde_json::from_value(saved.clone()).unwrap();
    let (routes, limits) = (&found.routes, &found.question.limits);
    assert!(routes.len() > 1);
    for (at, route) in routes.iter().enumerate() {
        let picked = format!("routes/{at}");
        let of = |number| explained(&saved, Some(&picked), number).number.value;
        assert!(of(Number::Ttft) <= limits.ttft.unwrap(), "{picked}");
        assert!(of(Number::Tpot) <= limits.tpot.unwrap(), "{picked}");
        let count = found.systems[route.systems as usize].count as f64;
        let expected = route.requests_per_s * route.osl as f64 / count;
        assert!((of(Number::OutputTokS) / expected - 1.0).abs() < 1e-9, "{picked}");
    }
    let fault = row(&saved, Some(&format!("routes/{}", routes.len()))).unwrap_err();
    assert!(fault.expected.contains("routes/0"), "{fault}");
}

/// The traced times of placements are those of the solver, which adds up whole ticks; every input has a source.
#[test]
fn times_of_placements_are_explained_by_stages_and_links() {
    let placed = [
        ("Llama-3.1-8B", "rtx-4090-3090", "latency"),
        ("Llama-3.1-8B", "rtx-4090-3090", "request"),
        ("Llama-3.1-8B", "rtx-4090-3090", "max-context"),
        ("Qwen3-32B", "mac-five", "latency"),
        ("gpt-oss-120b", "mac-five", "throughput"),
        ("Llama-3.3-70B", "spark-mac-studio", "latency"),
    ];
    for (model, rig, objective) in placed {
        let saved = answer(&["place", "--model", model, "--hardware", rig, "--objective", objective]);
        let found: PlacementResult = serde_json::from_str(&saved.to_string()).unwrap();
        let found = found.placement.unwrap();
        assert!(found.stages.iter().all(|stage| stage.offloaded_bytes == 0.0), "{model} on {rig}");
        let explained = |number| {
            let request =
                ExplainRequest { placement: Some(saved.clone()), number, ..ExplainRequest::default() };
            match explain(&Catalog::default(), &request, &UNCONTROLLED).unwrap() {
                ExplainReport::Explained(found) => found.number,
                ExplainReport::Infeasible { infeasible } => panic!("{infeasible}"),
            }
        };
        let times = [
            (Number::Tpot, found.token_ms),
            (Number::Ttft, found.prefill_ms),
            (Number::E2e, found.request_ms),
        ];
        for (number, ms) in times {
            let traced = explained(number);
            let error = 1e3 * traced.value / ms - 1.0;
            assert!(
                error.abs() < 1e-6,
                "{model} on {rig}, {objective}: {number:?} {} is not {ms}",
                traced.value
            );
        }
        let traced = explained(Number::Tpot);
        let stages = traced.parts.iter().filter(|part| part.symbol == "t_placed_stage").count();
        assert!(stages >= 1 || found.stages.len() > 2, "{:?}", traced.formula);
    }
    let saved = answer(&["place", "--model", "Llama-3.1-8B", "--hardware", "rtx-4090-3090"]);
    let request =
        ExplainRequest { placement: Some(saved), number: Number::Watts, ..ExplainRequest::default() };
    assert!(explain(&Catalog::default(), &request, &UNCONTROLLED).unwrap_err().fix.contains("tpot"));
}

#[test]
fn a_placement_is_refused_with_the_place_to_look() {
    let saved = answer(&["place", "--model", "Llama-3.1-8B", "--hardware", "rtx-4090-3090"]);
    assert_eq!(row(&saved, None).unwrap_err().key, "placement");
}

#[test]
fn a_bundle_is_an_answer_too() {
    let question = request(ANSWERS[1].0);
    let bundled = bundle::bundle(&Catalog::default(), "estimate", &question, &UNCONTROLLED).unwrap();
    let saved = serde_json::to_value(&bundled).unwrap();
    let plain = explained(&answer(ANSWERS[1].0), None, Number::Tpot).number.value;
    assert_eq!(explained(&saved, None, Number::Tpot).number.value, plain);
}

/// Latencies and the output rate have an interval with its source; a term of them has none.
#[test]
fn intervals_are_explained() {
    let saved = answer(ANSWERS[1].0);
    let found = explained(&saved, None, Number::Tpot);
    let interval = found.interval.unwrap();
    let reported = &saved["intervals"]["tpot_ms"];
    assert_eq!(
        (json!(interval.p10), json!(interval.p90)),
        (reported["p10"].clone(), reported["p90"].clone())
    );
    assert!(!interval.measured.is_empty(), "an H100 was measured with vLLM");
    assert!(interval.measured.iter().all(|one| one.hardware.starts_with("nvidia-h100")), "{interval:?}");
    assert!(explained(&saved, None, Number::Memory).interval.is_none());
}

fn verified(result: Value) -> mantile::report::verify::Verified {
    let request = VerifyRequest { result, sample: 10, seed: 1 };
    verify(&Catalog::default(), &request, &UNCONTROLLED).unwrap()
}

/// An estimate is made again from its file, and every edit of a number is found.
#[test]
fn estimates_are_verified() {
    let saved = answer(ANSWERS[1].0);
    assert!(verified(saved.clone()).holds);
    for path in
        ["/metrics/tpot_ms", "/memory/total_bytes", "/intervals/ttft_ms/p90", "/detail/phases/0/flops"]
    {
        let mut edited = saved.clone();
        let number = edited.pointer_mut(path).unwrap();
        *number = json!(number.as_f64().unwrap() * 1.01);
        let found = verified(edited);
        assert!(!found.holds, "{path}");
    }
}

/// Two estimates are compared by their inputs.
#[test]
fn estimates_are_compared() {
    let other =
        ["estimate", "--model", "Llama-3.1-8B", "--hardware", "2xh200", "--tp", "2", "--concurrency", "8"];
    let (a, b) = (answer(ANSWERS[1].0), answer(&other));
    let found = (entry("diff").unwrap().answer)(&Catalog::default(), &json!({"a": a, "b": b}), &UNCONTROLLED);
    let found = found.unwrap();
    assert_eq!(found["inputs"][0]["names"], json!(["hardware"]));
    assert_eq!(found["inputs"].as_array().unwrap().len(), 1);
}

/// Every formula is listed once with its parts, and a word finds it.
#[test]
fn formulas_are_listed() {
    let all = mantile::report::formulas::formulas(None);
    assert_eq!(all.len(), mantile::cost::formulas().len() + mantile::serving::formulas().len());
    for one in &all {
        assert!(!one.symbol.is_empty() && !one.why.is_empty() && !one.source.is_empty(), "{one:?}");
        let found = mantile::report::formulas::formulas(Some(&one.why.to_uppercase()));
        assert!(found.contains(one), "{one:?}");
    }
    assert!(mantile::report::formulas::formulas(Some("no such word")).is_empty());
}
