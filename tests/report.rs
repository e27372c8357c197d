//! What leaves the house: text that says what the JSON says, JSON that its schema describes.

use anstream::adapter::strip_str;
use mantile::report::answer::{estimate_result, optimize_result};
use mantile::report::result::{EstimateResult, OptimizeResult};
use mantile::request::inputs;
use mantile::search::problem::Problem;
use mantile::search::run::{UNWATCHED, run};
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::resolved_scenario::ResolvedScenario;

#[path = "report/explain.rs"]
mod explain;
#[path = "report/fixture.rs"]
mod fixture;
#[path = "report/real.rs"]
mod real;
#[path = "report/schema.rs"]
mod schema;
#[path = "report/screen.rs"]
mod screen;

/// A question about `model` on `hardware`.
fn scenario(model: &str, hardware: &str) -> Scenario {
    Scenario { model: Some(model.into()), hardware: Some(hardware.into()), ..Scenario::default() }
}

fn pose(scenario: &Scenario) -> (ResolvedScenario, Problem) {
    let resolved =
        ResolvedScenario::resolve(&Catalog::default(), scenario).unwrap_or_else(|error| panic!("{error}"));
    let problem = resolved.problem().unwrap();
    (resolved, problem)
}

/// The answer to a question, as `optimize` gives it.
fn optimize(scenario: &Scenario) -> OptimizeResult {
    let (resolved, problem) = pose(scenario);
    let outcome = run(&problem, &UNWATCHED);
    let lower = inputs::lower_format(&resolved, (&problem, &outcome), &UNWATCHED).unwrap();
    optimize_result(&problem, inputs::report_inputs(&resolved, &problem), &outcome, lower, usize::MAX.into())
}

/// A stated deployment, as `estimate` gives it.
fn estimate(scenario: &Scenario) -> EstimateResult {
    let (resolved, problem) = pose(scenario);
    let stated = resolved.deployment.clone().unwrap_or_default().text().unwrap();
    let candidate = mantile::request::build_candidate::candidate(&problem, &stated).unwrap();
    estimate_result(&problem, inputs::report_inputs(&resolved, &problem), &candidate)
}

/// Text without colours.
fn plain(text: &str) -> String {
    strip_str(text).to_string()
}

/// Fails where a line is too long for a terminal, or ends in blanks.
fn reads_well(text: &str, width: usize) {
    for line in text.lines() {
        assert!(line.chars().count() <= width, "{} columns: {line}", line.chars().count());
        assert_eq!(line, line.trim_end());
    }
}
