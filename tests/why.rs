//! Reasons for an answer, reasons against one, and saved answers checked again: each against searches of its own.

use mantile::report::answer::optimize_result;
use mantile::report::result::OptimizeResult;
use mantile::report::robustness::robustness;
use mantile::request::inputs;
use mantile::request::verify::optimize::OptimizeRerun;
use mantile::request::verify::{RandomSample, Rerun};
use mantile::search::duel::{Along, duel};
use mantile::search::family::StrategyFamily;
use mantile::search::layouts::Layouts;
use mantile::search::point::before;
use mantile::search::problem::{Problem, Traffic};
use mantile::search::relax::{Condition, conditions, conflicts, least, with, without};
use mantile::search::run::{UNWATCHED, run};
use mantile::search::sample::sample;
use mantile::search::why::{change_results, families, restricted_to};
use mantile::spec::objective::Metric;
use mantile::spec::percentile::{Confidence, OddsLevel};
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::resolved_scenario::ResolvedScenario;
use serde_json::Value;

fn scenario(model: &str, hardware: &str, objective: &str) -> Scenario {
    Scenario {
        model: Some(model.into()),
        hardware: Some(hardware.into()),
        objective: Some(objective.into()),
        ..Scenario::default()
    }
}

fn posed(scenario: &Scenario) -> (ResolvedScenario, Problem) {
    let resolved = ResolvedScenario::resolve(&Catalog::default(), scenario).unwrap();
    let problem = resolved.problem().unwrap();
    (resolved, problem)
}

#[test]
fn the_best_of_all_families_is_the_best() {
    for (model, hardware, objective) in [
        ("Llama-3.3-70B", "dgx-h100", "throughput"),
        ("gpt-oss-120b", "4xh100", "latency"),
        ("Llama-3.1-8B", "2xrtx-4090", "perf-per-dollar"),
    ] {
        let (_, mut problem) = posed(&scenario(model, hardware, objective));
        let best = run(&problem, &UNWATCHED).best.unwrap();
        problem.axes.clear();
        let name = format!("{model} on {hardware} for {objective}");
        // Unlike instances side by side may be of no one family.
        let mixed = StrategyFamily::of(&best.candidate) == StrategyFamily::Mixed;
        let tried = families(&problem, (&best, &Layouts::shared(&problem)), &UNWATCHED);
        let found: Vec<_> = tried.iter().filter_map(|one| one.best.as_ref()).collect();
        assert!(!found.iter().any(|one| before(&one.point, &best.point, &problem.objective)), "{name}");
        let as_good = found.iter().any(|one| !before(&best.point, &one.point, &problem.objective));
        assert!(as_good || mixed, "{name}");
        for one in &tried {
            assert_eq!(one.best.is_none(), one.none.is_some(), "{name}: {:?}", one.family);
            let family = one.best.as_ref().map(|found| StrategyFamily::of(&found.candidate));
            assert!(family.is_none_or(|family| family == one.family), "{name}: {family:?}");
        }
        let drawn = sample(&problem, Some(&best), 500, 3);
        assert!(drawn.kept > 0 && drawn.better.is_empty(), "{name}: {:?}", drawn.better.first());
    }
}

#[test]
fn families_change_places_where_it_is_shown() {
    let (_, problem) = posed(&scenario("Llama-3.1-8B", "4xh100", "throughput"));
    let families = [StrategyFamily::Tensor, StrategyFamily::Single];
    let bests = families.map(|family| run(&restricted_to(&problem, family), &UNWATCHED).best.unwrap());
    let pair = [(families[0], &bests[0]), (families[1], &bests[1])];
    let layouts = Layouts::shared(&problem);
    let found = duel(&problem, (Along::Concurrency, 64), pair, &layouts, &UNWATCHED).unwrap();
    assert!(!found.crossovers.is_empty(), "few requests are quicker split, many are not: {found:?}");
    for change in &found.crossovers {
        for (requests, leads, trails) in
            [(change.below, change.from, change.to), (change.at, change.to, change.from)]
        {
            let mut requested = problem.clone();
            requested.traffic = Traffic::InFlight(requests.into());
            let best = |family| run(&restricted_to(&requested, family), &UNWATCHED).best;
            let (first, second) = (best(leads).unwrap(), best(trails));
            let ahead =
                second.is_none_or(|second| !before(&second.point, &first.point, &requested.objective));
            assert!(ahead, "{leads:?} at {requests}");
        }
    }
}

#[test]
fn a_little_more_is_never_worse() {
    let (_, mut problem) = posed(&scenario("Llama-3.3-70B", "4xh100", "throughput"));
    problem.axes.clear();
    let best = run(&problem, &UNWATCHED).best.unwrap();
    let worths = change_results(&problem, (&best, &Layouts::shared(&problem)), &UNWATCHED);
    assert!(worths.len() >= 6);
    for worth in &worths {
        let then = worth.best.as_ref().unwrap();
        assert!(!before(&best.point, &then.point, &problem.objective), "{:?}", worth.change);
    }
    let gains = worths.iter().filter(|worth| {
        worth.best.as_ref().is_some_and(|then| before(&then.point, &best.point, &problem.objective))
    });
    assert!(gains.count() > 0, "more of something is worth something");
}

#[test]
fn every_minimal_set_of_conditions_that_conflicts_is_found() {
    let tight = Scenario {
        tpot: Some("6 ms".into()),
        ttft: Some("150 ms".into()),
        concurrency: Some(64),
        ..scenario("Llama-3.3-70B", "4xh100", "throughput")
    };
    let (_, problem) = posed(&tight);
    let found = conflicts(std::slice::from_ref(&problem), &UNWATCHED).unwrap();
    assert!(!found.bare && !found.sets.is_empty(), "{found:?}");
    let all = conditions(&problem);
    assert_eq!(all.len(), 3);
    let keeps = |kept: &[Condition]| {
        let lifted: Vec<Condition> = all.iter().copied().filter(|one| !kept.contains(one)).collect();
        run(&without(&problem, &lifted), &UNWATCHED).best.is_some()
    };
    for mask in 0..1u32 << all.len() {
        let kept: Vec<Condition> =
            (0..all.len()).filter(|one| mask >> one & 1 == 1).map(|one| all[one]).collect();
        let holds_one = found.sets.iter().any(|set| set.iter().all(|one| kept.contains(one)));
        assert_eq!(keeps(&kept), !holds_one, "{kept:?}");
    }
    // The smallest limit is feasible, and a slightly smaller one is not; with odds, it is known to half a percent.
    let free = without(&problem, &[Condition::InFlight(64), Condition::Limit(Metric::Tpot, 0.0)]);
    for (confidence, below) in [(Confidence::Median, 0.999_999), (Confidence::default(), 0.994)] {
        let free = free.clone().at_confidence(confidence);
        let seconds = least(std::slice::from_ref(&free), Metric::Ttft, &UNWATCHED).unwrap().unwrap();
        let answered = |seconds: f64| {
            run(&with(&free, Condition::Limit(Metric::Ttft, seconds)), &UNWATCHED).best.is_some()
        };
        assert!(answered(seconds * 1.000_001) && !answered(seconds * below), "{seconds} at {confidence}");
    }
}

fn saved(scenario: &Scenario) -> (Problem, OptimizeResult, Value) {
    let (resolved, problem) = posed(scenario);
    let outcome = run(&problem, &UNWATCHED);
    let lower = inputs::lower_format(&resolved, (&problem, &outcome), &UNWATCHED).unwrap();
    let shown = optimize_result(
        &problem,
        inputs::report_inputs(&resolved, &problem),
        &outcome,
        lower,
        usize::MAX.into(),
    );
    let value = serde_json::to_value(&shown).unwrap();
    (problem, shown, value)
}

#[test]
fn an_answer_holds_and_a_tampered_one_does_not() {
    let (problem, fresh, value) = saved(&scenario("Llama-3.1-8B", "2xl40s", "throughput"));
    let again = OptimizeRerun { problem, fresh };
    let check = |value: &Value| again.check(value, RandomSample { count: 300, seed: 5 }).unwrap();
    let sound = check(&value);
    let faults: Vec<&String> = sound.checks.iter().flat_map(|check| &check.faults).collect();
    assert!(sound.holds, "{faults:?}");
    let front = value["front"].as_array().unwrap().len();
    assert!(front > 2);
    type Tamper<'a> = (&'a str, &'a dyn Fn(&mut Value));
    let tampers: [Tamper; 9] = [
        ("a pace", &|v| {
            v["best"]["metrics"]["tpot_ms"] =
                (v["best"]["metrics"]["tpot_ms"].as_f64().unwrap() * 0.999).into()
        }),
        ("a dollar", &|v| v["best"]["metrics"]["usd_per_mtok"] = 0.01.into()),
        ("a plan", &|v| v["best"]["plan"]["decode"]["replicas"] = 1.into()),
        ("requests", &|v| v["best"]["plan"]["prefill"]["concurrency_per_replica"] = 1.into()),
        ("a row of the front", &|v| v["front"][1]["metrics"]["ttft_ms"] = 1.0.into()),
        ("another best", &|v| v["best"] = v["front"][0].clone()),
        ("the question", &|v| v["question"]["isl"] = 7.into()),
        ("the status", &|v| v["status"] = "infeasible".into()),
        ("the census", &|v| v["census"]["candidates"] = 1.into()),
    ];
    for (what, tamper) in tampers {
        let mut other = value.clone();
        tamper(&mut other);
        if other != value {
            assert!(!check(&other).holds, "{what} was changed and nothing found");
        }
    }
}

/// At p90 confidence, the best plan meets all limits in nine of ten draws.
#[test]
fn robustness_at_p90_does_not_count_errors_twice() {
    for (model, hardware) in [("Llama-3.1-8B", "1xh100"), ("Qwen3-32B", "4xh100")] {
        let p90 = Scenario {
            risk: Some(Confidence::Odds(OddsLevel::P90)),
            ..scenario(model, hardware, "throughput")
        };
        let (_, problem) = posed(&p90);
        let outcome = run(&problem, &UNWATCHED);
        let best = outcome.best.as_ref().unwrap();
        let found = robustness(&problem, best, &outcome.front).unwrap();
        assert!(found.meets_slos >= 0.88, "{model}: {found:?}");
    }
}

/// Shares of draws: certain where predictions are exact, and never more than all draws.
#[test]
fn robustness_is_a_share_and_certain_without_errors() {
    for (model, hardware, objective) in [
        ("Llama-3.1-8B", "2xl40s", "throughput"),
        ("Qwen3-32B", "4xh100", "perf-per-dollar"),
        ("Llama-3.1-8B", "4xh100", "latency"),
    ] {
        let (_, mut problem) = posed(&scenario(model, hardware, objective));
        let outcome = run(&problem, &UNWATCHED);
        let best = outcome.best.as_ref().unwrap();
        let found = robustness(&problem, best, &outcome.front).unwrap();
        let wins = found.stays_best_independent + found.rival.as_ref().map_or(0.0, |rival| rival.wins);
        assert!(wins <= 1.0 + 1e-12, "{model}: {found:?}");
        for share in [found.stays_best_independent, found.stays_best_common, found.meets_slos] {
            assert!((0.0..=1.0).contains(&share), "{model}: {found:?}");
        }
        assert!(found.stays_best_independent <= found.meets_slos, "{model}: a winner meets the SLOs");
        assert_eq!(robustness(&problem, best, &outcome.front).unwrap(), found, "the same draws");
        std::sync::Arc::make_mut(&mut problem.formats).iter_mut().for_each(|pair| {
            let sure = pair.intervals.as_mut().unwrap();
            let all = [&mut sure.aggregated, &mut sure.disaggregated];
            let beyond = sure.beyond.as_mut().map(|(_, beyond)| beyond);
            for one in all.into_iter().chain(beyond) {
                (one.ttft, one.tpot, one.throughput) = ([1.0; 3], [1.0; 3], [1.0; 3]);
            }
        });
        let exact = robustness(&problem, best, &outcome.front).unwrap();
        assert_eq!(
            (exact.stays_best_independent, exact.stays_best_common, exact.meets_slos),
            (1.0, 1.0, 1.0)
        );
        assert_eq!(exact.rival, None);
    }
}
