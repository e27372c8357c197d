//! The same answer whatever the number of threads or the order in which formats are named.

use mantile::search::outcome::Outcome;
use mantile::search::point::Point;
use mantile::search::problem::Problem;
use mantile::search::run::{UNWATCHED, run};
use mantile::spec::scenario::Scenario;
use rayon::ThreadPoolBuilder;

use super::ask::{ask, on};
use super::brute::ranks;

/// Questions of every kind of traffic, with pools apart and without.
fn questions() -> Vec<Problem> {
    let ask = |scenario: &Scenario| ask(scenario).unwrap_or_else(|fault| panic!("{fault}"));
    let any = Some("any".to_owned());
    vec![
        ask(&on("Llama-3.1-8B", "4xh100-sxm")),
        ask(&Scenario { weight_format: any.clone(), rate: Some(2.0), ..on("gpt-oss-20b", "4xh100-sxm") }),
        ask(&Scenario { weight_format: any, concurrency: Some(40), ..on("Qwen3-30B-A3B", "8xh100-sxm") }),
        ask(&Scenario { isl: Some(20_000), ..on("Mixtral-8x7B-v0.1", "4xh200-sxm") }),
    ]
}

fn with_threads(problem: &Problem, threads: usize) -> Outcome {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| run(problem, &UNWATCHED))
}

/// Everything that is told: bits of the figures, candidates, census.
fn shown(outcome: &Outcome) -> String {
    let bits = |point: &Point| point.map(f64::to_bits);
    let found = outcome.best.iter().chain(&outcome.alternatives).chain(&outcome.front);
    let found: Vec<_> = found.map(|found| (bits(&found.point), &found.candidate)).collect();
    let nearest =
        outcome.nearest.as_ref().map(|(found, reason)| (bits(&found.point), &found.candidate, reason));
    format!("{:?} {found:?} {nearest:?} {:?}", outcome.status, outcome.census)
}

#[test]
fn any_number_of_threads_shows_the_same() {
    for problem in questions() {
        let one = shown(&with_threads(&problem, 1));
        for threads in [2, 5] {
            assert_eq!(one, shown(&with_threads(&problem, threads)), "{threads} threads");
        }
    }
}

#[test]
fn the_order_of_formats_changes_no_value() {
    for problem in questions() {
        let mut turned = problem.clone();
        std::sync::Arc::make_mut(&mut turned.formats).reverse();
        let (one, other) = (run(&problem, &UNWATCHED), run(&turned, &UNWATCHED));
        let objectives = |outcome: &Outcome| {
            let point = outcome.best.as_ref()?.point;
            Some(problem.objective.iter().map(|aim| point[aim.metric as usize].to_bits()).collect::<Vec<_>>())
        };
        assert!(one.best.is_some());
        assert_eq!(objectives(&one), objectives(&other));
        let front = |outcome: &Outcome| {
            outcome.front.iter().map(|found| ranks(&problem, &found.point)).collect::<Vec<_>>()
        };
        assert_eq!(front(&one), front(&other));
    }
}

#[test]
fn nobody_on_the_front_is_dominated() {
    for problem in questions() {
        let front = run(&problem, &UNWATCHED).front;
        let ranks: Vec<_> = front.iter().map(|found| ranks(&problem, &found.point)).collect();
        assert!(ranks.len() > 1);
        for (at, a) in ranks.iter().enumerate() {
            for (other, b) in ranks.iter().enumerate().filter(|(other, _)| *other != at) {
                let no_worse = b.iter().zip(a).all(|(b, a)| b <= a);
                assert!(!no_worse, "{:?} by {:?}", front[at], front[other]);
            }
        }
    }
}
