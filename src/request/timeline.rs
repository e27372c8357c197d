//! The timeline of a deployment: that of `estimate`, or a row of an answer.

use super::build_candidate::candidate;
use super::given_plan::planned_problem;
use crate::report::timeline::{Timeline, timeline};
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::resolved_scenario::ResolvedScenario;

pub fn given_timeline(catalog: &Catalog, scenario: &Scenario) -> Result<Timeline, Error> {
    let (_, problem, candidate) = planned_problem(catalog, scenario)?;
    Ok(timeline(&problem, &candidate))
}

/// The timeline of the deployment with this `notation` in the answer to a scenario.
pub fn answer_timeline(catalog: &Catalog, scenario: &Scenario, notation: &str) -> Result<Timeline, Error> {
    let problem = ResolvedScenario::resolve(catalog, scenario)?.problem()?;
    Ok(timeline(&problem, &candidate(&problem, &notation.parse()?)?))
}
