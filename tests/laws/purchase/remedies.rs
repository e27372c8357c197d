//! A remedy gives what it says, the best one comes first, and host memory is named where it helps.

use clap::Parser;
use fastrand::Rng;
use mantile::cli::Cli;
use mantile::report::relax::{Remedy, RemedyGain};
use mantile::report::result::OptimizeResult;
use mantile::request::UNCONTROLLED;
use mantile::request::optimize::{OptimizeRequest, optimize};
use mantile::spec::deployment::Deployment;
use mantile::spec::objective::{Direction, Metric};
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

/// A limit on TPOT that some plans keep, or none.
fn limit(random: &mut Rng) -> String {
    if random.bool() { "none".into() } else { format!("{}ms", random.u64(20..2000)) }
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
    while tried < cases(2) {
        let scenario = Scenario {
            model: name(&mut random, &models),
            hardware: name(&mut random, &systems),
            host_memory: Some("16GB".into()),
            objective: name(&mut random, &["throughput", "latency", "single-user", "min-chips"]),
            isl: Some(between(&mut random, 64.0, 4000.0) as u64),
            osl: Some(between(&mut random, 16.0, 400.0) as u64),
            ttft: Some("none".into()),
            tpot: Some(limit(&mut random)),
            concurrency: random.bool().then(|| random.u64(1..64)),
            ..Scenario::default()
        };
        let Some(conflict) = answer(scenario.clone()).and_then(|found| found.conflict) else { continue };
        tried += 1;
        let shown = format!("{scenario:?}: {:?}", conflict.remedies);
        let gains = gains(&conflict.remedies);
        for (remedy, gain) in conflict.remedies.iter().zip(&gains) {
            let found = answer(typed(&scenario, &remedy.flags)).and_then(|found| found.optimum().cloned());
            let found = found.unwrap_or_else(|| panic!("{shown}: {} gives nothing", remedy.flags));
            let value = found.figure(gain.objective.metric).unwrap();
            assert!(near(value, gain.value), "{shown}: {} gives {value}", remedy.flags);
            let speeds = [
                (Metric::OutputTokS, gain.output_tok_s),
                (Metric::OutputTokSPerUser, gain.output_tok_s_per_user),
            ];
            for (metric, printed) in speeds {
                assert!(
                    near(found.figure(metric).unwrap(), printed),
                    "{shown}: {} gives {printed}",
                    remedy.flags
                );
            }
            assert_eq!(found.metrics.unwrap().usd_per_hour.is_some(), gain.usd_per_hour.is_some(), "{shown}");
        }
        for pair in gains.windows(2) {
            let better = match pair[0].objective.direction {
                Direction::Maximize => pair[0].value > pair[1].value,
                Direction::Minimize => pair[0].value < pair[1].value,
            };
            let equal = pair[0].value == pair[1].value && pair[0].output_tok_s >= pair[1].output_tok_s;
            assert!(better || equal, "{shown}");
        }
        let with = |gigabytes: f64| {
            let found = answer(Scenario { host_memory: Some(format!("{gigabytes}GB")), ..scenario.clone() });
            found.is_some_and(|found| found.best.is_some())
        };
        let sizes = conflict.remedies.iter().filter_map(|remedy| remedy.flags.strip_prefix("--host-memory "));
        let named: Vec<f64> = sizes.filter_map(|size| size.strip_suffix("GB")?.parse().ok()).collect();
        assert_eq!(with(2048.0), !named.is_empty(), "{shown}");
        for size in &named {
            assert!(with(*size), "{shown}: {size} GB");
            assert!(!with(size - 1.0), "{shown}: {size} GB");
            assert!(*size < 10.0 || !with(0.9 * size), "{shown}: {size} GB");
        }
        let named = !named.is_empty();
        several += usize::from(gains.len() > 1);
        hosts += usize::from(named);
    }
    assert!(several > 0 && hosts > 0, "{several} with several remedies, {hosts} with host memory");
}
