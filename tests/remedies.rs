//! What is proposed where nothing serves: typed on the command line just as it is printed, it gives an answer, and one
//! printed unit tighter it does not, on random questions.

use mantile::spec::offload::OffloadPolicy;
use std::collections::BTreeMap;

use clap::Parser;
use mantile::cli::Cli;
use mantile::report::relax::{ConflictReport, Remedy, RemedyClaim};
use mantile::request::remedy::InfeasibleProblem;
use mantile::search::problem::Problem;
use mantile::search::run::{UNWATCHED, run};
use mantile::spec::deployment::Deployment;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::resolved_scenario::ResolvedScenario;

use super::draw::{between, cases, name};

/// Questions without an answer that are tried; `PROPTEST_CASES` sets another number.
const CASES: u64 = 16;

const MODELS: [&str; 5] =
    ["TinyLlama-1.1B-Chat-v1.0", "TinyLlama-1.1B-Chat-v1.0", "Llama-3.1-8B", "gpt-oss-20b", "Qwen3-30B-A3B"];
const HARDWARE: [&str; 8] =
    ["1xl40s", "2xl40s", "3xl40s", "1xrtx-4090", "2xrtx-4090", "1xh100", "2xh100", "1xa100-sxm-80gb"];
const OBJECTIVES: [&str; 5] = ["throughput", "latency", "interactive", "perf-per-dollar", "min-chips"];

fn drawn(random: &mut fastrand::Rng) -> Scenario {
    let limit = |random: &mut fastrand::Rng, low: f64, high: f64| {
        let tight = random.u8(0..3) == 0;
        tight.then(|| format!("{:.3}ms", between(random, low, high)))
    };
    let long = random.u8(0..6) == 0;
    let traffic = random.u8(0..3);
    Scenario {
        model: name(random, &MODELS),
        hardware: name(random, &HARDWARE),
        objective: name(random, &OBJECTIVES),
        isl: Some(between(random, 16.0, if long { 500_000.0 } else { 8000.0 }) as u64),
        osl: Some(between(random, 2.0, 1000.0) as u64),
        ttft: limit(random, 0.5, 2000.0),
        tpot: limit(random, 0.2, 30.0),
        e2e: limit(random, 5.0, 20_000.0),
        concurrency: (traffic == 1).then(|| between(random, 1.0, 5000.0) as u64),
        rate: (traffic == 2).then(|| between(random, 0.1, 500.0)),
        ..Scenario::default()
    }
}

/// Whether the command line, asked the saved problem with `flags` typed behind it, has an answer; none where it
/// refuses them.
fn typed(scenario: &Scenario, flags: &str) -> Option<bool> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("question.json");
    std::fs::write(&file, serde_json::to_string(scenario).unwrap()).unwrap();
    let words = ["mantile-opt", "--scenario", file.to_str().unwrap()].into_iter().chain(flags.split(' '));
    let cli = Cli::try_parse_from(words).ok()?;
    let scenario = cli.optimize.problem.scenario(&Deployment::default()).ok()?;
    answered(&posed(&scenario)?.1).into()
}

fn posed(scenario: &Scenario) -> Option<(ResolvedScenario, Problem)> {
    let resolved = ResolvedScenario::resolve(&Catalog::default(), scenario).ok()?;
    let mut problem = resolved.problem().ok()?;
    problem.axes.clear();
    Some((resolved, problem))
}

fn answered(problem: &Problem) -> bool {
    run(problem, &UNWATCHED).best.is_some()
}

/// What is said of a problem, where it has no answer.
fn conflict(scenario: &Scenario) -> Option<ConflictReport> {
    let (resolved, problem) = posed(scenario)?;
    if answered(&problem) {
        return None;
    }
    let catalog = Catalog::default();
    let (resolved, problems) = (&resolved, &[problem][..]);
    Some(
        InfeasibleProblem { catalog: &catalog, scenario, resolved, problems, control: &UNWATCHED }.conflict(),
    )
}

/// The flags with one of them tighter, as they would be typed.
fn tighter(remedy: &Remedy, tighter: &str) -> String {
    let name = tighter.split(' ').next().unwrap();
    let words: Vec<&str> = remedy.flags.split(' ').collect();
    let pairs =
        words.chunks(2).map(|pair| if pair[0] == name { tighter.to_string() } else { pair.join(" ") });
    pairs.collect::<Vec<_>>().join(" ")
}

#[test]
fn every_remedy_works_as_typed_and_one_unit_tighter_it_does_not() {
    let cases = cases(CASES);
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let mut random = fastrand::Rng::with_seed(12);
    let mut tried = 0;
    while tried < cases {
        let scenario = drawn(&mut random);
        let Some(found) = conflict(&scenario) else { continue };
        tried += 1;
        if cases > CASES {
            eprintln!("{tried}");
        }
        assert!(found.complete);
        let shown = serde_json::to_string(&scenario).unwrap();
        if found.remedies.is_empty() {
            *kinds.entry("none".into()).or_default() += 1;
        }
        for remedy in &found.remedies {
            assert_eq!(typed(&scenario, &remedy.flags), Some(true), "{shown}: {remedy:?}");
            for flag in &remedy.tighter {
                assert_ne!(
                    typed(&scenario, &tighter(remedy, flag)),
                    Some(true),
                    "{shown}: {flag} of {remedy:?}"
                );
            }
            assert!(remedy.claim != RemedyClaim::Least || !remedy.tighter.is_empty(), "{remedy:?}");
            let names: Vec<&str> = remedy.flags.split(' ').step_by(2).collect();
            *kinds.entry(format!("{} {:?}", names.join(" "), remedy.claim)).or_default() += 1;
        }
        // Conditions that conflict have a remedy: what they say can be loosened.
        let of_conditions = found.conflicts.iter().all(|clash| clash.why.is_none());
        assert!(!of_conditions || !found.remedies.is_empty(), "{shown}");
    }
    eprintln!("{kinds:#?}");
    assert!(kinds.len() > 3, "{kinds:?}");
}

#[test]
fn every_set_of_conditions_that_conflicts_is_named_and_the_remedies_end_all_of_them() {
    let scenario = Scenario {
        model: Some("Llama-3.1-8B".into()),
        hardware: Some("1xl40s".into()),
        ttft: Some("1 ms".into()),
        tpot: Some("1 ms".into()),
        ..Scenario::default()
    };
    let found = conflict(&scenario).unwrap();
    let sets: Vec<_> = found.conflicts.iter().map(|clash| clash.conditions.clone()).collect();
    assert_eq!(sets, [["--ttft 1ms"], ["--tpot 1ms"]]);
    let both = found
        .remedies
        .iter()
        .find(|remedy| remedy.flags.contains("--ttft") && remedy.flags.contains("--tpot"));
    assert_eq!(both.unwrap().now, "--ttft 1ms --tpot 1ms");
}

#[test]
fn a_context_that_is_too_long_is_named_with_the_length_that_works() {
    let of = |hardware: &str, isl: u64| {
        let scenario = Scenario {
            model: Some("Llama-3.1-8B".into()),
            hardware: Some(hardware.into()),
            objective: Some("throughput".into()),
            workload: Some("batch".into()),
            runtime: Some("vllm".into()),
            offload: Some(OffloadPolicy::Never),
            isl: Some(isl),
            osl: Some(512),
            ..Scenario::default()
        };
        conflict(&scenario).unwrap()
    };
    // Longer than the model states.
    let found = of("1xh100", 200_000);
    assert_eq!(found.conflicts[0].conditions, ["--isl 200000", "--osl 512"]);
    assert!(found.conflicts[0].why.as_ref().unwrap().contains("131,072"), "{found:?}");
    assert!(found.remedies.iter().any(|remedy| remedy.flags == "--isl 130560"), "{found:?}");
    // Longer than the memory holds.
    let found = of("1xrtx-4090", 130_000);
    assert!(found.conflicts[0].why.as_ref().unwrap().contains("memory"), "{found:?}");
    assert!(found.remedies.iter().any(|remedy| remedy.flags.starts_with("--isl ")), "{found:?}");
    assert!(found.remedies.iter().any(|remedy| remedy.flags.starts_with("--hardware ")), "{found:?}");
}

#[test]
fn more_nodes_serve_what_fewer_serve() {
    const NODES: [u64; 4] = [2, 3, 5, 8];
    let cases = 4 * cases(CASES);
    let mut random = fastrand::Rng::with_seed(4);
    let mut bounds = 0;
    for _ in 0..cases {
        let drawn = drawn(&mut random);
        let node = random.choice(["1xl40s", "2xl40s", "2xh100", "4xh100"]).unwrap();
        let on = |nodes: u64| Scenario { hardware: Some(format!("{nodes}x{node}")), ..drawn.clone() };
        let served: Vec<bool> =
            NODES.into_iter().filter_map(|nodes| Some(answered(&posed(&on(nodes))?.1))).collect();
        assert!(
            served.is_sorted(),
            "{served:?} of {NODES:?} nodes: {}",
            serde_json::to_string(&on(2)).unwrap()
        );
        bounds += u64::from(served.first() != served.last());
    }
    assert!(bounds > 0, "in none of {cases} questions do the nodes decide");
}
