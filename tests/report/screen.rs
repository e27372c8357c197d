//! The default answer fits one screen.

use clap::Parser;
use mantile::cli::Cli;
use mantile::cli::subcommand::Command;
use mantile::report::recommend::report::RecommendReport;
use mantile::report::text::screen;
use mantile::request::UNCONTROLLED;
use mantile::request::estimate::{EstimateRequest, estimate};
use mantile::request::fleet::{FleetRequest, fleet};
use mantile::request::place::{PlaceRequest, place};
use mantile::request::recommend::{RecommendRequest, recommend};
use mantile::spec::deployment::Deployment;
use mantile::spec::offload::OffloadPolicy;
use mantile::spec::placing::PlacementScenario;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;

use super::{optimize, plain, real};

/// Lines of a screen.
const MOST: usize = 24;

fn is_command(line: &str) -> bool {
    line.starts_with("  mantile-opt ")
}

/// Commands are not wrapped; other lines fit. A terminal of 80 columns or more needs no second screen.
fn fits(text: &str, width: usize) {
    assert!(width < 80 || text.lines().count() <= MOST, "{} lines:\n{text}", text.lines().count());
    // A screen ends with the command that launches the answer.
    let last = text.lines().last().filter(|_| text.contains("\nLaunch:")).unwrap_or_default();
    let long = text.lines().find(|line| !is_command(line) && *line != last && line.chars().count() > width);
    assert!(long.is_none(), "{long:?} is longer than {width}:\n{text}");
}

/// Terminals.
const WIDTHS: [usize; 5] = [60, 80, 100, 120, 200];

#[test]
fn a_placement_fits_one_screen() {
    let of = |model: &str, hardware: &str, offload| {
        let scenario = PlacementScenario {
            model: Some(model.into()),
            hardware: Some(hardware.into()),
            offload,
            ..PlacementScenario::default()
        };
        place(&Catalog::default(), &PlaceRequest { scenario }, &UNCONTROLLED).unwrap()
    };
    let infeasible = of("DeepSeek-V3", "rtx-4090-3090", Some(OffloadPolicy::Never));
    assert!(infeasible.placement.is_none());
    let placed = of("Llama-3.1-8B", "rtx-4090-3090", None);
    assert!(placed.placement.is_some());
    for (answer, width) in [&infeasible, &placed].into_iter().flat_map(|one| WIDTHS.map(|width| (one, width)))
    {
        let text = plain(&screen::place(answer, "place", width));
        fits(&text, width);
        let command = answer.launch.as_ref().map(|launch| format!("  {}\n", launch.workers[0].command));
        assert!(command.is_none_or(|command| text.ends_with(&command)), "{text}");
    }
}

#[test]
fn a_recommendation_fits_one_screen() {
    let request =
        RecommendRequest { users: 3, only: vec!["nvidia-l40s".into()], ..RecommendRequest::default() };
    let scenario = Scenario { model: Some("gpt-oss-20b".into()), ..Scenario::default() };
    let system = Scenario { hardware: Some("rtx-4090-x2".into()), ..Scenario::default() };
    for request in [
        RecommendRequest { scenario: scenario.clone(), ..request.clone() },
        RecommendRequest { scenario, budget_hour: Some("0.01usd".into()), ..request.clone() },
        RecommendRequest { scenario: system, only: vec![], target_tok_s: Some(30.0), ..request },
    ] {
        let answer = recommend(&Catalog::default(), &request, &UNCONTROLLED).unwrap();
        for width in WIDTHS {
            let text = match &answer {
                RecommendReport::Hardware(found) => screen::recommend(found, "recommend", width),
                RecommendReport::Models(found) => screen::models(found, "recommend", width),
            };
            fits(&plain(&text), width);
        }
    }
}

#[test]
fn a_fleet_fits_one_screen() {
    for max_devices in [None, Some(1)] {
        let request = FleetRequest {
            model: Some("Llama-3.1-8B".into()),
            offers: vec!["1xl40s".into(), "h100-sxm-x1".into()],
            max_devices,
            ..FleetRequest::default()
        };
        let answer = fleet(&Catalog::default(), &request, &UNCONTROLLED).unwrap();
        assert_eq!(answer.systems.is_empty(), max_devices.is_some());
        for width in WIDTHS {
            fits(&plain(&screen::fleet(&answer, "fleet", width)), width);
        }
    }
}

#[test]
fn an_answer_fits_one_screen_and_its_commands_can_be_typed() {
    for requested in real::feasible() {
        let answer = optimize(&requested);
        for width in WIDTHS {
            fits(&plain(&screen::optimize(&answer, width)), width);
        }
        let text = plain(&screen::optimize(&answer, 100));
        let commands: Vec<&str> = text.lines().filter(|line| is_command(line)).collect();
        assert_eq!(commands.len(), 2, "{text}");
        for command in commands {
            typed(command);
        }
    }
}

/// The words of a command as a shell splits them: single quotes only.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    // A quoted quote ends a text, adds the quote, and begins the text again.
    for (at, part) in command.trim().replace("'\\''", "\u{1}").split('\'').enumerate() {
        if at % 2 == 1 {
            words.last_mut().unwrap().push_str(&part.replace('\u{1}', "'"));
            continue;
        }
        for (at, word) in part.split(' ').enumerate() {
            if at > 0 {
                words.push(String::new());
            }
            words.last_mut().unwrap().push_str(word);
        }
    }
    words.into_iter().filter(|word| !word.is_empty()).collect()
}

fn typed(command: &str) -> Cli {
    Cli::try_parse_from(words(command)).unwrap_or_else(|fault| panic!("{command}: {fault}"))
}

#[test]
fn flags_of_a_scenario_pose_it_again() {
    let scenario = Scenario {
        objective: Some("latency".into()),
        ttft: Some("1.5 s".into()),
        rate: Some(0.25),
        isl: Some(3000),
        pareto: Some(vec!["ttft".into(), "tpot".into()]),
        weight_format: Some("any".into()),
        utilization: Some(0.5),
        ..Scenario::of("a model's folder/config.json", "8xh100")
    };
    let Cli { command, optimize, .. } = typed(&format!("mantile-opt {}", scenario.flags()));
    assert!(command.is_none());
    assert_eq!(optimize.problem.scenario, scenario);
    assert_eq!(Scenario::default().flags(), "");
}

#[test]
fn an_estimate_fits_one_screen_whether_it_runs_or_not() {
    for plan in ["1 x tp2 @4", "2 x tp1 @1", "1 x tp2 @9000", "prefill 1 x tp1 @1, decode 1 x tp1 @8"] {
        let deployment = Some(Deployment { plan: Some(plan.into()), ..Deployment::default() });
        let scenario = Scenario { deployment, ..Scenario::of("Llama-3.1-8B", "2xh100") };
        let request = EstimateRequest::of(scenario);
        let report = estimate(&Catalog::default(), &request, &UNCONTROLLED).unwrap();
        let text = plain(&screen::estimate(&report, 80));
        fits(&text, 80);
        let command = text.lines().find(|line| is_command(line)).unwrap();
        assert!(matches!(typed(command).command, Some(Command::Estimate(_))), "{command}");
    }
}
