//! No number that is not finite leaves: questions at the edges of every limit, told as text, CSV and JSON, where a
//! number that is none would be `null` and break the schema.

use mantile::report::answer::{estimate_result, optimize_result};
use mantile::report::{rows, text};
use mantile::request::reference::schema_of as schema;
use mantile::request::{build_candidate, inputs};
use mantile::search::run::{UNWATCHED, run};
use mantile::spec::degree::Degrees;
use mantile::spec::deployment::Deployment;
use mantile::spec::limits::{self, Limit};
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::resolved_scenario::ResolvedScenario;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use serde_json::Value;

#[allow(dead_code)]
use crate::doors as hostile;

use hostile::{MODEL, finite};

/// Questions of each property; `PROPTEST_CASES` sets another number.
const CASES: u32 = 96;

/// A number that a limit allows: an end, or anything between on a scale of ratios.
fn within(limit: &'static Limit) -> impl Strategy<Value = f64> {
    let least = limit.least.max(limit.most * 1e-18).max(1e-18);
    let between = (least.ln()..=limit.most.ln()).prop_map(|power| power.exp());
    let clamped = between.prop_map(|value| if limit.whole { value.round() } else { value });
    let clamped = clamped.prop_map(|value| value.clamp(limit.least, limit.most));
    let lowest = if limit.or_zero { 0.0 } else { limit.least };
    prop_oneof![1 => Just(lowest), 1 => Just(limit.least), 1 => Just(limit.most), 3 => clamped]
}

fn maybe(limit: &'static Limit) -> impl Strategy<Value = Option<f64>> {
    prop::option::weighted(0.4, within(limit))
}

fn questions() -> impl Strategy<Value = Scenario> {
    let lengths = (maybe(&limits::ISL), maybe(&limits::OSL), maybe(&limits::PREFIX), any::<bool>());
    let load = (maybe(&limits::CONCURRENCY), maybe(&limits::RATE), any::<bool>());
    let owned = (
        maybe(&limits::ELECTRICITY),
        maybe(&limits::PUE),
        maybe(&limits::AMORTIZATION),
        maybe(&limits::UTILIZATION),
        maybe(&limits::USD_PER_DEVICE_HOUR),
        any::<bool>(),
    );
    let times = (maybe(&limits::TTFT), maybe(&limits::TPOT), maybe(&limits::E2E));
    let hardware =
        prop::sample::select(vec!["1xh100", "2xrtx-4090", "1xm4-max", "8xh100", "2x8xb200", "1xmi300x"]);
    let model = prop::sample::select(vec![MODEL, "Qwen3-30B-A3B", "Llama-3.1-8B"]);
    (lengths, load, owned, times, hardware, model).prop_map(
        |(lengths, load, owned, times, hardware, model)| {
            let whole = |value: Option<f64>| value.map(|value| value as u64);
            let spell = |limit: Option<f64>| limit.map(|seconds| format!("{seconds} s"));
            let one_token = lengths.3.then_some(1);
            Scenario {
                model: Some(model.into()),
                hardware: Some(hardware.into()),
                isl: whole(lengths.0),
                osl: whole(lengths.1).or(one_token),
                prefix: whole(lengths.2).filter(|prefix| whole(lengths.0).is_some_and(|isl| *prefix < isl)),
                concurrency: whole(load.0.filter(|_| load.2)),
                rate: load.1.filter(|_| !load.2),
                usd_per_device_hour: owned.4.filter(|_| owned.5),
                electricity_usd_per_kwh: owned.0.filter(|_| !owned.5),
                pue: owned.1.filter(|_| !owned.5),
                amortization_months: owned.2.filter(|_| !owned.5),
                utilization: owned.3.filter(|_| !owned.5),
                ttft: spell(times.0).or(Some("none".into())),
                tpot: spell(times.1).or(Some("none".into())),
                e2e: spell(times.2),
                ..Scenario::default()
            }
        },
    )
}

/// What a schema has against `value`; `null` where a number belongs is such a fault.
fn faults(name: &str, value: &Value) -> Vec<String> {
    let schema = serde_json::to_value(schema(name).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    validator.iter_errors(value).map(|fault| format!("{}: {fault}", fault.instance_path())).collect()
}

fn each<S: Strategy>(cases: u32, strategy: S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { Config::default().cases } else { cases };
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 50, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
        .run(&strategy, property)
        .unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn an_estimate_at_the_edges_of_every_limit_shows_finite_numbers() {
    let shown = std::cell::Cell::new(0);
    each(CASES, (questions(), prop::option::of(0_u32..4)), |(mut requested, tp)| {
        let both = Degrees { tp: tp.map(|power| 1 << power), ..Degrees::default() };
        requested.deployment = tp.map(|_| Deployment { both, ..Deployment::default() });
        let Ok(resolved) = ResolvedScenario::resolve(&Catalog::default(), &requested) else { return Ok(()) };
        let deployment = resolved.deployment.clone().unwrap_or_default();
        let (Ok(problem), Ok(plan)) = (resolved.problem(), deployment.text()) else { return Ok(()) };
        let Ok(candidate) = build_candidate::candidate(&problem, &plan) else { return Ok(()) };
        let estimated = estimate_result(&problem, inputs::report_inputs(&resolved, &problem), &candidate);
        finite(&text::estimate(&estimated));
        finite(&rows::csv(std::slice::from_ref(&estimated.candidate), &estimated.question));
        let wrong = faults("estimate", &serde_json::to_value(&estimated).unwrap());
        prop_assert!(wrong.is_empty(), "{wrong:?}\n{requested:?}");
        shown.set(shown.get() + 1);
        Ok(())
    });
    assert!(shown.get() > CASES / 4, "{} questions were answered", shown.get());
}

#[test]
fn an_answer_at_the_edges_of_every_limit_shows_finite_numbers() {
    each(CASES / 4, questions(), |requested| {
        let requested =
            Scenario { model: Some(MODEL.into()), hardware: Some("1xrtx-4090".into()), ..requested };
        let Ok(resolved) = ResolvedScenario::resolve(&Catalog::default(), &requested) else { return Ok(()) };
        let Ok(problem) = resolved.problem() else { return Ok(()) };
        let outcome = run(&problem, &UNWATCHED);
        let answer = optimize_result(
            &problem,
            inputs::report_inputs(&resolved, &problem),
            &outcome,
            None,
            usize::MAX.into(),
        );
        finite(&text::table(&answer));
        finite(&rows::csv(&answer.front, &answer.question));
        let wrong = faults("result", &serde_json::to_value(&answer).unwrap());
        prop_assert!(wrong.is_empty(), "{wrong:?}\n{requested:?}");
        Ok(())
    });
}
