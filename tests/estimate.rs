//! A plan in one line says everything: every answer of the search, typed again, comes to the same metrics.

use crate::ask;
use crate::cases;
use mantile::spec::offload::Offload;
use mantile::spec::offload::OffloadPolicy;
#[path = "estimate/outside.rs"]
mod outside;
#[path = "estimate/truth.rs"]
mod truth;

use std::cell::Cell;

use ask::{ask, on};
use mantile::report::answer::{forbidden, report_deployment};
use mantile::report::notation::notation;
use mantile::request::build_candidate::candidate;
use mantile::search::aggregated::measure;
use mantile::search::outcome::EvaluatedCandidate;
use mantile::search::problem::Problem;
use mantile::search::run::{UNWATCHED, run};
use mantile::spec::notation::PlanText;
use mantile::spec::scenario::Scenario;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

/// As close as two ways of adding up the same terms are.
const CLOSE: f64 = 1e-9;

/// Small models, with and without experts, windows and latent attention.
const MODELS: [&str; 7] = [
    "Llama-3.1-8B",
    "Qwen3-32B",
    "Qwen2.5-14B",
    "gpt-oss-20b",
    "Qwen3-30B-A3B",
    "TinyLlama-1.1B-Chat-v1.0",
    "DeepSeek-V2-Lite",
];

/// Up to eight devices; some hold too little, so that host memory is used.
const HARDWARE: [&str; 10] = [
    "1xh100-sxm",
    "2xh100-sxm",
    "3xh100-sxm",
    "2x2xh100-sxm",
    "5xa100-sxm-80gb",
    "3xl40s",
    "4xmi300x",
    "1xrtx-4090",
    "2xrtx-4090",
    "8xl40s",
];

const OBJECTIVES: [&str; 7] =
    ["throughput", "throughput", "latency", "interactive", "perf-per-dollar", "min-chips", "max-context"];

fn scenarios() -> impl Strategy<Value = Scenario> {
    let names = (
        prop::sample::select(&MODELS),
        prop::sample::select(&HARDWARE),
        prop::sample::select(&OBJECTIVES),
        prop::sample::select(&["vllm", "sglang", "trtllm"][..]),
    );
    let lengths = (64u64..8192, 2u64..1024);
    let limit = |least: f64, most: f64| {
        prop_oneof![
            2 => Just(Some("none".to_string())),
            2 => Just(None),
            1 => (least..most).prop_map(|seconds| Some(format!("{seconds} s"))),
        ]
    };
    let limits = (limit(0.2, 5.0), limit(0.01, 0.2), limit(2.0, 60.0));
    let traffic = prop_oneof![
        3 => Just((None, None)),
        1 => (1u64..200).prop_map(|requests| (Some(requests), None)),
        1 => (0.05..8.0).prop_map(|rate| (None, Some(rate))),
    ];
    let offload =
        prop::sample::select(&[OffloadPolicy::Auto, OffloadPolicy::Auto, OffloadPolicy::Always][..]);
    (names, lengths, limits, traffic, offload).prop_map(
        |(
            (model, hardware, objective, runtime),
            (isl, osl),
            (ttft, tpot, e2e),
            (concurrency, rate),
            offload,
        )| {
            Scenario {
                objective: Some(objective.into()),
                runtime: hardware.contains("mi300x").then_some("vllm").or(Some(runtime)).map(Into::into),
                isl: Some(isl),
                osl: Some(osl),
                ttft,
                tpot,
                e2e,
                concurrency,
                rate,
                offload: Some(offload),
                ..on(model, hardware)
            }
        },
    )
}

/// A row typed again: the same metrics, all of them.
fn again(problem: &Problem, found: &EvaluatedCandidate) -> Result<(), TestCaseError> {
    let text = notation(problem, &found.candidate).to_string();
    let plan: PlanText = text.parse().map_err(|fault| TestCaseError::fail(format!("{text}: {fault}")))?;
    let typed = candidate(problem, &plan).map_err(|fault| TestCaseError::fail(format!("{text}: {fault}")))?;
    let point = measure(problem, &typed);
    for (again, there) in point.iter().zip(&found.point) {
        let same = (again - there).abs() <= CLOSE * there.abs() || (again.is_nan() && there.is_nan());
        prop_assert!(same, "{text}: {there} is answered, {again} comes out");
    }
    prop_assert_eq!(typed.concurrency(&problem.traffic), found.candidate.concurrency(&problem.traffic));
    Ok(())
}

#[test]
fn every_answer_typed_again_comes_to_the_same_metrics() {
    let (answered, rows, unlike, cut) = (Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0));
    cases::each(40, scenarios(), |scenario| {
        // Some formats do not run everywhere.
        let Ok(problem) = ask(&scenario) else { return Ok(()) };
        let outcome = run(&problem, &UNWATCHED);
        answered.set(answered.get() + u32::from(outcome.best.is_some()));
        for found in outcome.best.iter().chain(&outcome.alternatives).chain(&outcome.front) {
            again(&problem, found).map_err(|error| match error {
                TestCaseError::Fail(why) => TestCaseError::fail(format!("{why}\n{scenario:?}")),
                reject => reject,
            })?;
            rows.set(rows.get() + 1);
            unlike.set(unlike.get() + u32::from(found.candidate.pools.len() > 2));
            cut.set(cut.get() + u32::from(notation(&problem, &found.candidate).to_string().contains('[')));
        }
        // As it is told, not only as it was found.
        if let Some(best) = &outcome.best {
            let shown = report_deployment(&problem, &best.candidate);
            let typed = candidate(&problem, &shown.notation.parse().unwrap()).unwrap();
            let again = serde_json::to_value(report_deployment(&problem, &typed)).unwrap();
            prop_assert_eq!(again, serde_json::to_value(&shown).unwrap(), "{:?}", scenario);
        }
        Ok(())
    });
    eprintln!("{} unlike, {} cut otherwise", unlike.get(), cut.get());
    if std::env::var_os("PROPTEST_CASES").is_none() {
        assert!(answered.get() > 15 && rows.get() > 200, "{} answers, {} rows", answered.get(), rows.get());
    }
}

/// Any deployment, not only those that win.
#[test]
fn every_deployment_typed_again_comes_to_the_same_metrics() {
    cases::each_case(40, |case| {
        let mut problem = case.problem.clone();
        // Pools are typed with their own loads, whatever the traffic.
        problem.traffic = mantile::search::problem::Traffic::Free;
        problem.offload = OffloadPolicy::Auto;
        if case.candidate.is_disaggregated() && case.candidate.offload != Offload::Nothing {
            return Ok(());
        }
        // What no rule allows is not laid out.
        if case.candidate.devices() > problem.cluster.devices()
            || !forbidden(&problem, &case.candidate).is_empty()
        {
            return Ok(());
        }
        again(
            &problem,
            &EvaluatedCandidate {
                point: measure(&problem, &case.candidate),
                candidate: case.candidate.clone(),
            },
        )
    });
}
