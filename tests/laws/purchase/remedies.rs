//! A remedy gives what it says, the best one comes first, and host memory is named where it helps.

use clap::Parser;
use fastrand::Rng;
use mantile::cli::Cli;
use mantile::report::relax::{Remedy, RemedyGain};
use mantile::report::result::OptimizeResult;
use mantile::request::UNCONTROLLED;
use mantile::request::optimize::{OptimizeRequest, optimize};
use mantile::spec::deployment::Deployment;
use mantile::spec::objective::Direction;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;

use super::near;
use crate::draw::{between, cases, name};

fn answer(scenario: Scenario) -> Option<OptimizeResult> {
    let request =
        OptimizeRequest { scenario, max_front_points: Some(0.into()), ..OptimizeRequest::default() };
    optimize(&Catalog::default(), &request, &UNCONTROLLED).ok()
}

/// The scenario with flags typed behind it.
fn typed(scenario: &Scenario, flags: &str) -> Scenario {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("question.json");
    std::fs::write(&file, serde_json::to_string(scenario).unwrap()).unwrap();
    let words = ["mantile-opt", "--scenario", file.to_str().unwrap()].into_iter().chain(flags.split(' '));
    let cli = Cli::try_parse_from(words).unwrap_or_else(|fault| panic!("{flags}: {fault}"));
    cli.optimize.problem.scenario(&Deployment::default()).unwrap_or_else(|fault| panic!("{flags}: {fault}"))
}

fn gains(remedies: &[Remedy]) -> Vec<RemedyGain> {
    remedies.iter().map(|remedy| remedy.gives.clone().expect("the search was not stopped")).collect()
}

#[test]
fn each_remedy_gives_what_it_says_and_the_best_comes_first() {
    let mut random = Rng::with_seed(36);
    let models = ["Llama-3.3-70B", "gpt-oss-120b", "Qwen3-30B-A3B", "Llama-3.1-8B"];
    let systems = ["1xrtx-4090", "1xrtx-3060-12gb", "1xl40s", "1xl4", "1xh100"];
    let (mut tried, mut several, mut hosts) = (0, 0, 0);
    while tried < cases(6) {
        let scenario = Scenario {
            model: name(&mut random, &models),
            hardware: name(&mut random, &systems),
            host_memory: Some("16GB".into()),
            objective: name(&mut random, &["throughput", "latency", "single-user"]),
            isl: Some(between(&mut random, 64.0, 4000.0) as u64),
            osl: Some(between(&mut random, 16.0, 400.0) as u64),
            ttft: Some("none".into()),
            tpot: Some("none".into()),
            ..Scenario::default()
        };
        let Some(conflict) = answer(scenario.clone()).and_then(|found| found.conflict) else { continue };
        tried += 1;
        let shown = format!("{scenario:?}: {:?}", conflict.remedies);
        let gains = gains(&conflict.remedies);
        for (remedy, gain) in conflict.remedies.iter().zip(&gains) {
            let found = answer(typed(&scenario, &remedy.flags)).and_then(|found| found.best);
            let found = found.unwrap_or_else(|| panic!("{shown}: {} gives nothing", remedy.flags));
            let value = found.figure(gain.objective.metric).unwrap();
            assert!(near(value, gain.value), "{shown}: {} gives {value}", remedy.flags);
            assert_eq!(found.metrics.unwrap().usd_per_hour.is_some(), gain.usd_per_hour.is_some(), "{shown}");
        }
        for pair in gains.windows(2) {
            let ahead = match pair[0].objective.direction {
                Direction::Maximize => pair[0].value >= pair[1].value,
                Direction::Minimize => pair[0].value <= pair[1].value,
            };
            assert!(ahead, "{shown}");
        }
        let large = answer(Scenario { host_memory: Some("2TB".into()), ..scenario.clone() });
        let helps = large.is_some_and(|found| found.best.is_some());
        let named = conflict.remedies.iter().any(|remedy| remedy.flags.starts_with("--host-memory"));
        assert_eq!(helps, named, "{shown}");
        several += usize::from(gains.len() > 1);
        hosts += usize::from(named);
    }
    assert!(several > 0 && hosts > 0, "{several} with several remedies, {hosts} with host memory");
}
