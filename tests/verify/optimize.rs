//! Saved answers of searches that were stopped.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use mantile::report::answer::optimize_result;
use mantile::request::inputs;
use mantile::request::verify::optimize::OptimizeRerun;
use mantile::request::verify::{RandomSample, Rerun, rerun};
use mantile::search::outcome::Status;
use mantile::search::run::{Control, UNWATCHED, run};
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::resolved_scenario::ResolvedScenario;
use serde_json::to_value;

use super::{Spoiling, caught, saved, times};

#[test]
fn answers_without_time_hold() {
    let none = saved(&["--model", "Llama-3.1-8B", "--hardware", "2xl40s", "--time-limit", "0"]);
    assert_eq!((&none["status"], &none["proof"]["stopped_by"]), (&"unknown".into(), &"time_limit".into()));
    assert!(none["best"].is_null() && none["proof"]["bound"].as_f64().is_some());
    let all = saved(&["--model", "Llama-3.1-8B", "--hardware", "2xl40s", "--time-limit", "600"]);
    assert_eq!((&all["status"], &all["proof"]["gap"]), (&"optimal".into(), &0.0.into()));
    let (bound, most) = (&none["proof"]["bound"], &all["best"]["metrics"]["output_tok_s"]);
    assert!(bound.as_f64() >= most.as_f64(), "{bound} {most}");
    let rig = ["place", "--model", "gpt-oss-120b", "--hardware", "mac-five", "--objective", "throughput"];
    let soon = saved(&[&rig[..], &["--time-limit", "0"]].concat());
    assert!(soon["placement"].is_object(), "splits by memory need no time");
}

#[test]
fn a_stopped_answer_is_shown_by_what_is_wrong_with_it() {
    let scenario = Scenario {
        model: Some("Llama-3.1-8B".into()),
        hardware: Some("2xl40s".into()),
        ..Scenario::default()
    };
    let resolved = ResolvedScenario::resolve(&Catalog::default(), &scenario).unwrap();
    let problem = resolved.problem().unwrap();
    let answered = |control: &Control| {
        let outcome = run(&problem, control);
        let lower = inputs::lower_format(&resolved, (&problem, &outcome), &UNWATCHED).unwrap();
        optimize_result(
            &problem,
            inputs::report_inputs(&resolved, &problem),
            &outcome,
            lower,
            usize::MAX.into(),
        )
    };
    let fresh = answered(&UNWATCHED);
    // After some configurations were evaluated.
    let evaluated = AtomicUsize::new(0);
    let progress = |done, _| evaluated.store(done, Relaxed);
    let stop = || evaluated.load(Relaxed) >= 2;
    let stopped = answered(&Control { progress: &progress, stop: &stop });
    assert_eq!(stopped.status, Status::Feasible);
    let value = to_value(&stopped).unwrap();
    let again = OptimizeRerun { problem: problem.clone(), fresh };
    let check = |value: &_| again.check(value, RandomSample { count: 300, seed: 5 }).unwrap();
    let sound = check(&value);
    assert!(sound.holds, "{:?}", sound.checks);
    let spoilings: &[Spoiling] = &[
        ("a gap", "proof", &|v| times(v, "/proof/gap", 0.5)),
        ("a bound below the best", "proof", &|v| times(v, "/proof/bound", 0.01)),
        ("a bound that is beaten", "search", &|v| {
            v["proof"]["bound"] = v["best"]["metrics"]["output_tok_s"].clone();
            v["proof"]["gap"] = 0.0.into();
        }),
        ("what is proved", "proof", &|v| v["status"] = "optimal".into()),
    ];
    caught(&value, spoilings, check);
}

fn sound(typed: &str) {
    let words: Vec<&str> = typed.split(' ').collect();
    let value = saved(&words);
    let catalog = Catalog::default();
    let again = rerun(&catalog, &value).unwrap();
    let verified = again.check(&value, RandomSample { count: 600, seed: 1 }).unwrap();
    assert!(verified.holds, "{typed}: {:?}", verified.checks);
}

/// One replica and three of it differ in the last digit of their output per device.
#[test]
fn an_optimum_that_fewer_devices_equal_but_for_rounding_is_off_the_front() {
    sound(
        "--model TinyLlama-1.1B-Chat-v1.0 --hardware 3xl40s --objective interactive --isl 35 --osl 1934 \
         --e2e 58870ms --host-memory 256GB --pareto output_tok_s_per_device,devices",
    );
}

/// With one output token two requests at once pass slower than one after the other, and sixteen do not: their fuller
/// batches save energy, but one at a time sustains the rate.
#[test]
fn loads_above_the_lowest_that_sustains_a_rate_are_no_choice() {
    let typed = "--model Llama-3.1-8B --hardware 2xrtx-4090 --objective perf-per-watt --isl 886 --osl 1 --rate 18.1 \
                 --percentile p99 --ttft none --tpot none --e2e none --pareto ttft,output_tok_s";
    sound(typed);
}
