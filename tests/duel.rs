//! Crossovers between two families: on random questions, the leader at each value is that of two complete searches.

use mantile::search::duel::{Along, Duel, duel, parameters};
use mantile::search::family::StrategyFamily;
use mantile::search::layouts::Layouts;
use mantile::search::outcome::EvaluatedCandidate;
use mantile::search::point::before;
use mantile::search::problem::Problem;
use mantile::search::run::{UNWATCHED, run};
use mantile::search::why::{families, restricted_to};
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::resolved_scenario::ResolvedScenario;

use super::draw::{between, cases, name};

/// Questions that are tried; `PROPTEST_CASES` sets another number.
const CASES: u64 = 24;

const MODELS: [&str; 3] = ["TinyLlama-1.1B-Chat-v1.0", "gpt-oss-20b", "Qwen3-30B-A3B"];
const HARDWARE: [&str; 6] = ["2xl40s", "3xrtx-4090", "2xh100", "4xh100", "2x2xh100", "2x2xl40s"];
const OBJECTIVES: [&str; 5] = ["throughput", "latency", "interactive", "perf-per-dollar", "perf-per-watt"];

fn drawn(random: &mut fastrand::Rng) -> Scenario {
    let limit = |random: &mut fastrand::Rng, low: f64, high: f64| {
        let limited = random.u8(0..3) == 0;
        limited.then(|| format!("{:.3}ms", between(random, low, high)))
    };
    let traffic = random.u8(0..3);
    Scenario {
        model: name(random, &MODELS),
        hardware: name(random, &HARDWARE),
        objective: name(random, &OBJECTIVES),
        isl: Some(between(random, 64.0, 8000.0) as u64),
        osl: Some(between(random, 16.0, 1000.0) as u64),
        ttft: limit(random, 20.0, 5000.0),
        tpot: limit(random, 3.0, 100.0),
        concurrency: (traffic == 1).then(|| between(random, 1.0, 2000.0) as u64),
        rate: (traffic == 2).then(|| between(random, 0.1, 50.0)),
        ..Scenario::default()
    }
}

/// The problem, without a front, and the two best families with their deployments, the better first.
fn two_families(scenario: &Scenario) -> Option<(Problem, [(StrategyFamily, EvaluatedCandidate); 2])> {
    let mut problem = ResolvedScenario::resolve(&Catalog::default(), scenario).ok()?.problem().ok()?;
    problem.axes.clear();
    let best = run(&problem, &UNWATCHED).best?;
    let tried = families(&problem, (&best, &Layouts::shared(&problem)), &UNWATCHED);
    let mut tried: Vec<_> = tried.into_iter().filter_map(|one| Some((one.family, one.best?))).collect();
    tried.sort_by(|(_, a), (_, b)| {
        before(&b.point, &a.point, &problem.objective).cmp(&before(&a.point, &b.point, &problem.objective))
    });
    let mut tried = tried.into_iter();
    Some((problem, [tried.next()?, tried.next()?]))
}

/// The family with the better optimum, the first of equals.
fn leader(problem: &Problem, families: [StrategyFamily; 2]) -> Option<StrategyFamily> {
    let [first, second] = families.map(|family| run(&restricted_to(problem, family), &UNWATCHED).best);
    match (first, second) {
        (None, None) => None,
        (Some(_), None) => Some(families[0]),
        (None, Some(_)) => Some(families[1]),
        (Some(a), Some(b)) => Some(families[usize::from(before(&b.point, &a.point, &problem.objective))]),
    }
}

/// Checks every power of two that a duel compares, and both sides of its crossovers.
fn check(
    problem: &Problem,
    families: [StrategyFamily; 2],
    (along, now): (Along, u64),
    found: &Duel,
) -> usize {
    let at = |value: u64| problem.with_change(along.change(now, value));
    let mut powers: Vec<u64> = (0..9).map(|power| (now << power) >> 4).collect();
    powers.dedup();
    let led = powers
        .into_iter()
        .filter(|value| *value > 0)
        .filter_map(|value| Some((value, leader(&at(value)?, families)?)));
    let led: Vec<(u64, StrategyFamily)> = led.collect();
    assert_eq!(found.leader, led.first().map(|(_, leader)| *leader));
    let changes = led.windows(2).filter(|pair| pair[0].1 != pair[1].1);
    let changes: Vec<&[(u64, StrategyFamily)]> = changes.collect();
    assert_eq!(found.crossovers.len(), changes.len(), "{found:?} {led:?}");
    for (crossover, pair) in found.crossovers.iter().zip(changes) {
        assert_eq!((crossover.from, crossover.to), (pair[0].1, pair[1].1));
        assert!(pair[0].0 <= crossover.below && crossover.below < crossover.at && crossover.at <= pair[1].0);
        assert_eq!(leader(&at(crossover.below).unwrap(), families), Some(crossover.from), "{crossover:?}");
        assert_ne!(leader(&at(crossover.at).unwrap(), families), Some(crossover.from), "{crossover:?}");
    }
    led.len()
}

#[test]
fn the_leader_at_each_value_is_that_of_two_complete_searches() {
    let cases = cases(CASES);
    let (mut tried, mut compared, mut crossed) = (0, 0, 0);
    let mut random = fastrand::Rng::with_seed(5);
    while tried < cases {
        let scenario = drawn(&mut random);
        let Some((problem, bests)) = two_families(&scenario) else { continue };
        tried += 1;
        let families = bests.each_ref().map(|(family, _)| *family);
        let both = bests.each_ref().map(|(family, best)| (*family, best));
        let layouts = Layouts::shared(&problem);
        for parameter in parameters(&problem, &bests[0].1) {
            eprintln!("{parameter:?} of {families:?} in {}", serde_json::to_string(&scenario).unwrap());
            let Some(found) = duel(&problem, parameter, both, &layouts, &UNWATCHED) else { continue };
            compared += check(&problem, families, parameter, &found);
            crossed += found.crossovers.len();
        }
    }
    assert!(compared > 5 * cases as usize && crossed > 0, "{compared} values, {crossed} crossovers");
}
