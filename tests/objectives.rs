//! The deployments that meet the conditions do not depend on the objective: on random questions, the optimum of one
//! objective is never better than that of another at its own, and its latencies are SLOs that every objective meets.

use mantile::search::outcome::EvaluatedCandidate;
use mantile::search::point::{before, place};
use mantile::search::problem::Problem;
use mantile::search::run::{UNWATCHED, run};
use mantile::spec::objective::{Direction, Metric, ObjectiveTerm};
use mantile::spec::percentile::Confidence;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::resolved_scenario::ResolvedScenario;

use super::draw::{between, cases, name};

/// Questions that are tried; `PROPTEST_CASES` sets another number.
const CASES: u64 = 60;

const MODELS: [&str; 4] = ["TinyLlama-1.1B-Chat-v1.0", "gpt-oss-20b", "Qwen3-30B-A3B", "Llama-3.1-8B"];
const HARDWARE: [&str; 6] = ["1xh100", "2xl40s", "3xrtx-4090", "4xh100", "2x2xh100", "8xh100"];

const OBJECTIVES: [(Metric, Direction); 7] = [
    (Metric::OutputTokS, Direction::Maximize),
    (Metric::OutputTokSPerDevice, Direction::Maximize),
    (Metric::TokPerJoule, Direction::Maximize),
    (Metric::Ttft, Direction::Minimize),
    (Metric::Tpot, Direction::Minimize),
    (Metric::E2e, Direction::Minimize),
    (Metric::Devices, Direction::Minimize),
];

fn drawn(random: &mut fastrand::Rng) -> Scenario {
    let traffic = random.u8(0..6);
    Scenario {
        model: name(random, &MODELS),
        hardware: name(random, &HARDWARE),
        isl: Some(between(random, 16.0, 8000.0) as u64),
        osl: Some(between(random, 2.0, 1000.0) as u64),
        ttft: Some(format!("{:.3}ms", between(random, 50.0, 20_000.0))),
        tpot: Some(format!("{:.3}ms", between(random, 5.0, 500.0))),
        concurrency: (traffic > 1).then(|| between(random, 1.0, 5000.0) as u64),
        rate: (traffic == 1).then(|| between(random, 0.1, 100.0)),
        ..Scenario::default()
    }
}

/// The optimum of each objective.
fn optima(problem: &Problem) -> Vec<(Problem, Option<EvaluatedCandidate>)> {
    let each = OBJECTIVES.into_iter().map(|(metric, direction)| {
        let mut aimed = problem.clone();
        aimed.objective = vec![ObjectiveTerm { metric, direction }];
        let best = run(&aimed, &UNWATCHED).best;
        (aimed, best)
    });
    each.collect()
}

fn check(optima: &[(Problem, Option<EvaluatedCandidate>)], text: &str) {
    let feasible = optima.iter().filter(|(_, best)| best.is_some()).count();
    assert!(feasible == 0 || feasible == optima.len(), "{feasible} of {} objectives: {text}", optima.len());
    for (problem, best) in optima {
        for (_, other) in optima {
            let (Some(best), Some(other)) = (best, other) else { continue };
            let aim = problem.objective[0].metric;
            assert!(
                !before(&other.point, &best.point, &problem.objective),
                "{aim:?}: {:?} is better than {:?}: {text}",
                other.candidate,
                best.candidate
            );
        }
    }
}

#[test]
fn what_one_objective_finds_another_does_not_overlook() {
    let cases = cases(CASES);
    let mut random = fastrand::Rng::with_seed(11);
    let mut tightened = 0;
    for _ in 0..cases {
        let scenario = drawn(&mut random);
        let text = serde_json::to_string(&scenario).unwrap();
        let resolved = ResolvedScenario::resolve(&Catalog::default(), &scenario);
        let Some(mut problem) = resolved.ok().and_then(|resolved| resolved.problem().ok()) else { continue };
        problem.axes.clear();
        // Deployments that repeat in units are sized for the largest share of the concurrency, and may miss their own SLO.
        problem.split &= problem.tiers().len() == 1;
        // A limit at a prediction is met by it, whatever the odds.
        let problem = problem.at_confidence(Confidence::Median);
        let found = optima(&problem);
        check(&found, &text);
        for (_, best) in &found {
            let Some(best) = best else { continue };
            // Above rounding.
            let limit = |metric: Metric| Some(best.point[place(metric)] * (1.0 + 1e-9));
            let mut tight = problem.clone();
            (tight.limits.ttft, tight.limits.tpot) = (limit(Metric::Ttft), limit(Metric::Tpot));
            let again = optima(&tight);
            let missing: Vec<Metric> = again
                .iter()
                .filter(|(_, best)| best.is_none())
                .map(|(one, _)| one.objective[0].metric)
                .collect();
            assert!(missing.is_empty(), "{missing:?}: {:?} {:?} in {text}", best.candidate, best.point);
            check(&again, &text);
            tightened += 1;
        }
    }
    assert!(tightened > cases, "{tightened} optima");
}
