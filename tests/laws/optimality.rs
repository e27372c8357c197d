//! Laws of optimality and infeasibility: a larger space is never worse, the optimum is on its own front, and what is
//! said of several runtimes holds for all of them.

use mantile::report::relax::RemedyClaim;
use mantile::request::UNCONTROLLED;
use mantile::request::estimate::{EstimateRequest, estimate};
use mantile::request::optimize::{OptimizeRequest, at, optimize};
use mantile::request::remedy::of_each_runtime;
use mantile::request::verify::{RandomSample, rerun};
use mantile::search::outcome::{EvaluatedCandidate, Status};
use mantile::search::point::{cost, place};
use mantile::search::problem::Problem;
use mantile::search::run::{Control, UNWATCHED, run};
use mantile::spec::objective::{Direction, ObjectiveTerm};
use mantile::spec::offload::OffloadPolicy;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;

use super::super::ask::ask;
use super::super::draw::{between, cases, name};

pub(super) const MODELS: [&str; 6] = [
    "TinyLlama-1.1B-Chat-v1.0",
    "Llama-3.1-8B",
    "gpt-oss-20b",
    "Qwen3-30B-A3B",
    "Qwen3-32B",
    "Llama-3.3-70B",
];
const OBJECTIVES: [&str; 8] = [
    "throughput",
    "latency",
    "interactive",
    "perf-per-dollar",
    "perf-per-watt",
    "min-chips",
    "max-context",
    "least-cost",
];
/// Devices that exist in every number up to eight, and nodes of eight.
pub(super) const DEVICES: [&str; 4] = ["h100-sxm", "l40s", "a100-sxm-80gb", "b200-sxm"];

fn limit(random: &mut fastrand::Rng, low: f64, high: f64) -> Option<String> {
    match random.u8(0..3) {
        0 => Some("none".into()),
        1 => Some(format!("{:.3}ms", between(random, low, high))),
        _ => None,
    }
}

/// A question about `hardware` of any objective.
pub(super) fn drawn(random: &mut fastrand::Rng, hardware: &str) -> Scenario {
    let traffic = random.u8(0..4);
    Scenario {
        model: name(random, &MODELS),
        hardware: Some(hardware.into()),
        objective: name(random, &OBJECTIVES),
        isl: Some(between(random, 16.0, 16_000.0) as u64),
        osl: Some(between(random, 2.0, 1000.0) as u64),
        ttft: limit(random, 20.0, 20_000.0),
        tpot: limit(random, 3.0, 300.0),
        concurrency: (traffic == 1).then(|| between(random, 1.0, 600.0) as u64),
        rate: (traffic == 2).then(|| between(random, 0.02, 20.0)),
        ..Scenario::default()
    }
}

/// The best of the problem of each runtime, without a front.
fn best(scenario: &Scenario) -> Option<(Problem, Option<EvaluatedCandidate>)> {
    let mut found: Option<(Problem, Option<EvaluatedCandidate>)> = None;
    for scenario in of_each_runtime(&Catalog::default(), scenario).ok()? {
        let Ok(mut problem) = ask(&scenario) else { continue };
        problem.axes.clear();
        let best = run(&problem, &UNWATCHED).best;
        let ahead = |known: &Option<EvaluatedCandidate>| match (&best, known) {
            (Some(best), Some(known)) => problem.is_better(&best.point, &known.point),
            (best, known) => best.is_some() && known.is_none(),
        };
        if found.as_ref().is_none_or(|(_, known)| ahead(known)) {
            found = Some((problem, best));
        }
    }
    found
}

/// Whether the second is worse than the first in the first term of the objective, by more than rounding.
fn worse(problem: &Problem, small: &Option<EvaluatedCandidate>, large: &Option<EvaluatedCandidate>) -> bool {
    let Some(small) = small else { return false };
    let Some(large) = large else { return true };
    let ObjectiveTerm { metric, direction } = problem.objective[0];
    let (a, b) = (cost(&small.point, metric, direction), cost(&large.point, metric, direction));
    b - a > 1e-9 * a.abs()
}

/// The same question over a larger space, in one way.
fn larger(
    random: &mut fastrand::Rng,
    (device, count): (&str, u64),
    requested: &Scenario,
) -> (Scenario, Scenario) {
    let on = |hardware: String| Scenario { hardware: Some(hardware), ..requested.clone() };
    let (small, any) = (requested.clone(), Some("any".to_string()));
    match random.u8(0..7) {
        0 | 1 => (small, on(format!("{}x{device}", random.u64(count..=8)))),
        2 => (on(format!("8x{device}")), on(format!("{}x8x{device}", random.u64(2..=3)))),
        3 => (small, Scenario { weight_format: any, ..requested.clone() }),
        4 => (small, Scenario { kv_format: any, ..requested.clone() }),
        5 => (Scenario { offload: Some(OffloadPolicy::Never), ..small }, requested.clone()),
        _ => (small, Scenario { runtime: any, ..requested.clone() }),
    }
}

pub(super) fn spelled(scenario: &Scenario) -> String {
    serde_json::to_string(scenario).unwrap()
}

#[test]
fn more_is_never_worse() {
    let mut random = fastrand::Rng::with_seed(34);
    let (cases, mut tried) = (cases(40), 0);
    while tried < cases {
        let device = DEVICES[random.usize(0..DEVICES.len())];
        let count = random.u64(1..=8);
        let requested = drawn(&mut random, &format!("{count}x{device}"));
        let (small, large) = larger(&mut random, (device, count), &requested);
        let (Some((problem, few)), Some((_, many))) = (best(&small), best(&large)) else { continue };
        tried += 1;
        assert!(
            !worse(&problem, &few, &many),
            "{few:#?}\n{many:#?}\n{}\n{}",
            spelled(&small),
            spelled(&large)
        );
    }
}

#[test]
fn offloading_counts_wherever_it_can_win() {
    let free = |model: &str, hardware: &str, objective: &str| Scenario {
        model: Some(model.into()),
        hardware: Some(hardware.into()),
        objective: Some(objective.into()),
        ttft: Some("none".into()),
        tpot: Some("none".into()),
        ..Scenario::default()
    };
    let first = |scenario: &Scenario| {
        let (problem, found) = best(scenario).unwrap();
        found.unwrap().point[place(problem.objective[0].metric)]
    };
    let chips = |hardware: &str| {
        let format = Some("bf16".to_string());
        first(&Scenario { weight_format: format, ..free("Llama-3.3-70B", hardware, "min-chips") })
    };
    assert_eq!([chips("1xh100-sxm"), chips("2xh100-sxm")], [1.0, 1.0]);
    let dollars = |hardware: &str, format: Option<&str>| {
        let weight_format = format.map(String::from);
        let load = Scenario {
            isl: Some(512),
            osl: Some(2048),
            rate: Some(0.05),
            weight_format,
            ..free("DeepSeek-V3", hardware, "perf-per-dollar")
        };
        first(&load)
    };
    let one = dollars("8xh100-sxm", None);
    assert!(dollars("2x8xh100-sxm", None) <= one * (1.0 + 1e-9));
    let seven = dollars("7xh100-sxm", None);
    assert!(dollars("7xh100-sxm", Some("any")) <= seven * (1.0 + 1e-9));
}

#[test]
fn the_optimum_is_on_the_front_and_no_row_beats_it() {
    let mut random = fastrand::Rng::with_seed(3);
    let (cases, mut tried) = (cases(30), 0);
    let mut requested = vec![Scenario {
        model: Some("c4ai-command-r-v01".into()),
        hardware: Some("3x8xb200-sxm".into()),
        objective: Some("latency".into()),
        isl: Some(300),
        osl: Some(30),
        concurrency: Some(500),
        ttft: Some("1s".into()),
        ..Scenario::default()
    }];
    while tried < cases {
        let scenario = requested.pop().unwrap_or_else(|| {
            let device = DEVICES[random.usize(0..DEVICES.len())];
            let nodes = [1, 1, 1, 2, 3][random.usize(0..5)];
            let each = if nodes == 1 { random.u64(1..=8) } else { 8 };
            let hardware =
                if nodes == 1 { format!("{each}x{device}") } else { format!("{nodes}x{each}x{device}") };
            drawn(&mut random, &hardware)
        });
        let Ok(problem) = ask(&scenario) else { continue };
        tried += 1;
        let found = run(&problem, &UNWATCHED);
        let Some(best) = &found.best else { continue };
        let said = spelled(&scenario);
        for row in &found.front {
            let order = problem.by_objective(&row.point, &best.point);
            assert!(!order.is_lt(), "{:?} is better, {said}", row.candidate);
        }
        let same = |row: &EvaluatedCandidate| {
            problem.axes.iter().all(|axis| {
                let (a, b) = (row.point[place(*axis)], best.point[place(*axis)]);
                a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-9 * b.abs()
            })
        };
        assert!(found.front.iter().any(same), "the best is not on the front: {said}");
    }
}

/// The optimum of each axis, searched alone, is on the front: no row is better, and the best row is as good, within the
/// steps in which the front lists loads and replicas.
#[test]
fn every_axis_has_its_optimum_on_the_front() {
    let mut random = fastrand::Rng::with_seed(10);
    let (cases, mut tried) = (cases(8), 0);
    while tried < cases {
        let device = DEVICES[random.usize(0..DEVICES.len())];
        let hardware = format!("{}x{device}", random.u64(1..=8));
        let requested = drawn(&mut random, &hardware);
        let Ok(problem) = ask(&requested) else { continue };
        let found = run(&problem, &UNWATCHED);
        if found.front.is_empty() {
            continue;
        }
        tried += 1;
        for axis in problem.distinct_axes() {
            let direction = axis.entry().direction;
            let mut alone = problem.clone();
            alone.axes.clear();
            alone.objective = vec![ObjectiveTerm { metric: axis, direction }];
            let best = run(&alone, &UNWATCHED).best.unwrap();
            let best = cost(&best.point, axis, direction);
            let rows = found.front.iter().map(|row| cost(&row.point, axis, direction));
            let row = rows.fold(f64::INFINITY, f64::min);
            let said = || format!("{axis:?} {best} {row}: {}", spelled(&requested));
            assert!(row >= best - 1e-9 * best.abs(), "{}", said());
            assert!(row <= best + LISTED * best.abs(), "{}", said());
        }
    }
}

/// Loads beyond 32 requests a rank are listed in steps of one in sixteen.
const LISTED: f64 = 1.0 / 16.0;

/// A question that no runtime answers, about one system.
fn unanswered(random: &mut fastrand::Rng) -> Option<Scenario> {
    let hardware = name(random, &["1xl40s", "2xl40s", "1xh100", "2xh100", "1xa100-sxm-80gb"])?;
    let traffic = random.u8(0..3);
    let tight = Scenario {
        runtime: Some("any".into()),
        concurrency: (traffic == 1).then(|| between(random, 50.0, 5000.0) as u64),
        rate: (traffic == 2).then(|| between(random, 10.0, 500.0)),
        ttft: Some(format!("{:.3}ms", between(random, 20.0, 500.0))),
        tpot: Some(format!("{:.3}ms", between(random, 2.0, 30.0))),
        ..drawn(random, &hardware)
    };
    let (_, found) = best(&tight)?;
    found.is_none().then_some(tight)
}

#[test]
fn what_is_said_of_any_runtime_holds_for_all_of_them() {
    let mut random = fastrand::Rng::with_seed(5);
    let catalog = Catalog::default();
    let (cases, mut tried) = (cases(6), 0);
    while tried < cases {
        let Some(scenario) = unanswered(&mut random) else { continue };
        tried += 1;
        let request = OptimizeRequest { scenario: scenario.clone(), ..OptimizeRequest::default() };
        let found = optimize(&catalog, &request, &UNCONTROLLED).unwrap();
        assert_eq!(found.status, Status::Infeasible);
        let said = spelled(&scenario);
        let conflict = found.conflict.as_ref().unwrap();
        for remedy in &conflict.remedies {
            let with = |flags: &str| {
                let (_, found) = best(&typed(&scenario, flags))?;
                Some(found.is_some())
            };
            assert_eq!(with(&remedy.flags), Some(true), "{} of {said}", remedy.flags);
            if remedy.claim == RemedyClaim::Least && !remedy.flags.contains("--hardware") {
                for tighter in &remedy.tighter {
                    let name = tighter.split(' ').next().unwrap();
                    let words: Vec<&str> = remedy.flags.split(' ').collect();
                    let pairs = words.chunks(2).map(|pair| match pair[0] == name {
                        true => tighter.clone(),
                        false => pair.join(" "),
                    });
                    let flags = pairs.collect::<Vec<_>>().join(" ");
                    assert_eq!(with(&flags), Some(false), "{flags} of {said}");
                }
            }
        }
        let value = serde_json::to_value(&found).unwrap();
        let checked =
            rerun(&catalog, &value).unwrap().check(&value, RandomSample { count: 50, seed: 1 }).unwrap();
        let faults = checked.checks.iter().filter(|check| !check.faults.is_empty());
        assert!(checked.holds, "{:#?} {said}", faults.collect::<Vec<_>>());
    }
}

/// The scenario with flags over its own values.
fn typed(scenario: &Scenario, flags: &str) -> Scenario {
    let words: Vec<&str> = flags.split(' ').collect();
    let mut typed = scenario.clone();
    for pair in words.chunks(2) {
        let value = pair[1].to_string();
        match pair[0] {
            "--ttft" => typed.ttft = Some(value),
            "--tpot" => typed.tpot = Some(value),
            "--e2e" => typed.e2e = Some(value),
            "--concurrency" => typed.concurrency = value.parse().ok(),
            "--rate" => typed.rate = value.parse().ok(),
            "--isl" => typed.isl = value.parse().ok(),
            "--osl" => typed.osl = value.parse().ok(),
            "--prefix" => typed.prefix = value.parse().ok(),
            "--hardware" => typed.hardware = Some(value),
            "--weight-format" => typed.weight_format = Some(value),
            other => panic!("{other}"),
        }
    }
    typed
}

#[test]
fn any_runtime_estimates_a_plan_by_the_best_one() {
    let mut random = fastrand::Rng::with_seed(8);
    let catalog = Catalog::default();
    let (cases, mut tried) = (cases(8), 0);
    while tried < cases {
        let hardware = name(&mut random, &["1xl40s", "2xl40s", "2xh100", "4xh100"]).unwrap();
        let requested = Scenario {
            ttft: Some("none".into()),
            tpot: Some("none".into()),
            ..drawn(&mut random, &hardware)
        };
        let request = OptimizeRequest { scenario: requested.clone(), ..OptimizeRequest::default() };
        let Ok(found) = optimize(&catalog, &request, &UNCONTROLLED) else { continue };
        let Some(given) = found.best.as_ref() else { continue };
        tried += 1;
        let planned = Scenario { runtime: Some("any".into()), ..at(&requested, given) };
        let any = estimate(&catalog, &EstimateRequest::of(planned.clone()), &UNCONTROLLED).unwrap();
        let aim = any.question.optimize[0];
        let value = |candidate: &mantile::report::result::ReportedDeployment| {
            let sign = if aim.direction == Direction::Minimize { 1.0 } else { -1.0 };
            candidate.figure(aim.metric).map_or(f64::INFINITY, |value| sign * value)
        };
        for scenario in of_each_runtime(&catalog, &planned).unwrap() {
            let Ok(one) = estimate(&catalog, &EstimateRequest::of(scenario), &UNCONTROLLED) else { continue };
            let broken = !one.candidate.violations.is_empty();
            assert!(broken || value(&any.candidate) <= value(&one.candidate), "{}", spelled(&planned));
        }
    }
}

/// A stopped search ends within half a second on large systems too, whatever it was doing; a build without optimization
/// takes up to so many times as long.
#[test]
fn a_time_limit_holds() {
    const SLOWER: f64 = 4.0;
    let mut random = fastrand::Rng::with_seed(9);
    let devices = ["256x8xh100-sxm", "64x8xb200-sxm", "128x8xh200-sxm", "4x8xh200-sxm"];
    for case in 0..cases(2) {
        let hardware = if case == 0 { devices[0] } else { devices[random.usize(0..devices.len())] };
        let requested = Scenario {
            model: name(&mut random, &["DeepSeek-V3", "Llama-3.3-70B", "Qwen3-235B-A22B"]),
            weight_format: Some("any".into()),
            kv_format: Some("any".into()),
            ..drawn(&mut random, hardware)
        };
        let limit = if case == 0 { 0.0 } else { between(&mut random, 0.05, 1.0) };
        let problem = ask(&requested).unwrap();
        // Other work of this machine delays it too.
        let over = (0..3).map(|_| {
            let began = std::time::Instant::now();
            let stop = || began.elapsed().as_secs_f64() >= limit;
            run(&problem, &Control { stop: &stop, ..UNWATCHED });
            began.elapsed().as_secs_f64() - limit
        });
        let least = over.fold(f64::INFINITY, f64::min);
        assert!(least <= 0.5 * SLOWER, "{least} s over {limit} s: {}", spelled(&requested));
    }
}
