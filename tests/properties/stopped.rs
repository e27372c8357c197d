//! Searches that are stopped: the best so far is one, and nothing is beyond the bound that is told.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use mantile::report::proof::proof;
use mantile::search::outcome::Status;
use mantile::search::physical_bound::physical_bound;
use mantile::search::point::{before, place};
use mantile::search::problem::Problem;
use mantile::search::run::{Control, UNWATCHED, run};
use mantile::spec::objective::Direction;
use mantile::spec::percentile::Confidence;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::resolved_scenario::ResolvedScenario;

fn question(model: &str, hardware: &str, objective: &str, concurrency: Option<u64>) -> Problem {
    let scenario = Scenario {
        model: Some(model.into()),
        hardware: Some(hardware.into()),
        objective: Some(objective.into()),
        concurrency,
        ..Scenario::default()
    };
    ResolvedScenario::resolve(&Catalog::default(), &scenario).unwrap().problem().unwrap()
}

/// Stopped at once, after some shapes, and after all of them when pairs are looked at: against the whole search.
#[test]
fn nothing_is_beyond_the_bound_of_a_search_that_is_stopped() {
    let (mut feasible, mut shown) = (0, 0);
    for (model, hardware, objective, concurrency) in [
        ("Llama-3.1-8B", "2xl40s", "throughput", None),
        ("Llama-3.3-70B", "dgx-h100", "throughput", None),
        ("Llama-3.3-70B", "dgx-h100", "interactive", Some(24)),
        ("gpt-oss-120b", "4xh100", "latency", None),
        ("Llama-3.1-8B", "2xrtx-4090", "perf-per-dollar", None),
        ("Qwen3-30B-A3B", "4xl40s", "perf-per-dollar", Some(7)),
        ("Llama-3.1-8B", "4xh100", "perf-per-watt", None),
    ] {
        let name = format!("{model} on {hardware} for {objective}");
        let problem = question(model, hardware, objective, concurrency);
        let whole = run(&problem, &UNWATCHED);
        let best = whole.best.clone().unwrap();
        let aim = problem.objective[0];
        let figure = |point: &mantile::search::point::Point| point[place(aim.metric)];
        assert_eq!(whole.bound, Some(figure(&best.point)), "{name}: what is proved is its own bound");
        assert_eq!(proof(&problem, &whole).gap, Some(0.0));
        let steps = AtomicUsize::new(0);
        let counted = |_: usize, _: usize| {
            steps.fetch_add(1, Relaxed);
        };
        run(&problem, &Control { progress: &counted, ..UNWATCHED });
        let all = steps.load(Relaxed);
        for most in [0, 1, 3, all / 4, all / 2, all * 3 / 4, all - 1] {
            steps.store(0, Relaxed);
            let stop = || steps.load(Relaxed) >= most;
            let stopped = run(&problem, &Control { progress: &counted, stop: &stop });
            let bound = stopped.bound.unwrap_or_else(|| panic!("{name} after {most}: no bound"));
            // Bounds allow for rounding themselves; eleven digits are told apart.
            let tolerance = 1e-9 * bound.abs();
            let holds = match aim.direction {
                Direction::Minimize => bound <= figure(&best.point) + tolerance,
                Direction::Maximize => bound >= figure(&best.point) - tolerance,
            };
            assert!(holds, "{name} after {most} of {all}: {bound}, but {}", figure(&best.point));
            let proof = proof(&problem, &stopped);
            match (&stopped.best, stopped.status) {
                (Some(found), Status::Feasible) => {
                    feasible += 1;
                    assert!(!before(&found.point, &best.point, &problem.objective), "{name}");
                    assert!(problem.missed(&found.point, found.candidate.margin(&problem)).is_none());
                    let gap = (figure(&found.point) - bound).abs() / figure(&found.point).abs();
                    assert!((proof.gap.unwrap() - gap).abs() < 1e-12, "{name}");
                    shown += usize::from(gap < 1.0);
                }
                (None, Status::Unknown) => assert!(proof.gap.is_none()),
                (_, status) => panic!("{name} after {most} of {all}: {status:?}"),
            }
        }
    }
    assert!(
        feasible > 25 && shown > 10,
        "{feasible} with a best, {shown} of them with a gap that says something"
    );
}

/// A bound that says something: within a few times the optimum, without laying anything out.
#[test]
fn the_bound_that_needs_no_layout_is_near_the_optimum() {
    for (model, hardware, objective, times) in [
        ("Llama-3.1-8B", "2xl40s", "throughput", 2.0),
        ("Llama-3.3-70B", "dgx-h100", "throughput", 3.0),
        ("Qwen3-30B-A3B", "4xl40s", "perf-per-dollar", 3.0),
        ("Qwen3-235B-A22B", "8xh200", "throughput", 4.0),
        ("Llama-3.1-8B", "4xh100", "perf-per-watt", 2.0),
        ("gpt-oss-120b", "4xh100", "latency", 2.0),
        ("Llama-3.3-70B", "dgx-h100", "latency", 2.0),
    ] {
        let problem = question(model, hardware, objective, None).at_confidence(Confidence::Median);
        let best = run(&problem, &UNWATCHED).best.unwrap();
        let aim = problem.objective[0];
        let [bound, found] = [physical_bound(&problem), best.point].map(|point| point[place(aim.metric)]);
        let ratio = match aim.direction {
            Direction::Minimize => found / bound,
            Direction::Maximize => bound / found,
        };
        assert!((1.0..=times).contains(&ratio), "{model} on {hardware} for {objective}: {ratio:.2}");
    }
}

/// Where the host computes a part, its peak counts too.
#[test]
fn nothing_is_beyond_the_bound_where_the_host_computes() {
    for objective in ["throughput", "latency", "perf-per-watt"] {
        let scenario = Scenario {
            runtime: Some("llama.cpp".into()),
            objective: Some(objective.into()),
            ttft: Some("none".into()),
            tpot: Some("none".into()),
            ..Scenario::of("Llama-3.3-70B", "1xrtx-4090")
        };
        let resolved = ResolvedScenario::resolve(&Catalog::default(), &scenario).unwrap();
        let problem = resolved.problem().unwrap();
        assert!(problem.formats.iter().all(|formats| formats.plain().host.is_some()));
        let best = run(&problem, &UNWATCHED).best.unwrap();
        assert!(!before(&best.point, &physical_bound(&problem), &problem.objective), "{objective}");
    }
}

#[test]
fn of_requests_at_a_rate_nobody_shows_what_was_not_looked_at() {
    let mut problem = question("Llama-3.1-8B", "2xl40s", "throughput", None);
    problem.traffic = mantile::search::problem::Traffic::Rate(0.5);
    let stopped = run(&problem, &Control { stop: &|| true, ..UNWATCHED });
    // The rate is known, and nothing else.
    let tokens = 0.5 * problem.workload.lengths.osl as f64;
    assert_eq!((stopped.status, stopped.bound), (Status::Unknown, Some(tokens)));
}
