//! `place`: assigns layers to heterogeneous devices, provably optimal.

mod launch;
mod relax;
mod search;
pub mod solve;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RequestControl;
use crate::report::place::{PlacementResult, PlacementStatus};
use crate::report::proof::StoppedBy;
use crate::search::placement::solve::PlacementObjective;
use crate::spec::error::Error;
use crate::spec::objective::{Metric, Objective};
use crate::spec::placing::{PlacementScenario, PlacingGoal};
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;

/// A request of `place`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PlaceRequest {
    /// The problem.
    pub scenario: PlacementScenario,
}

/// Finds the best placement.
///
/// # Errors
/// The problem is faulty.
pub fn place(
    catalog: &Catalog,
    request: &PlaceRequest,
    control: &RequestControl,
) -> Result<PlacementResult, Error> {
    let mut report = solve::answer_placement(catalog, &request.scenario, &control.search)?.result;
    if report.status == PlacementStatus::Feasible {
        report.status = match (control.stopped_by)() {
            Some(StoppedBy::TimeLimit) => PlacementStatus::TimeLimit,
            Some(StoppedBy::Interrupt) => PlacementStatus::Interrupted,
            Some(StoppedBy::Memory) | None => PlacementStatus::Feasible,
        };
    }
    Ok(report)
}

/// The objective of the placement search.
pub fn aim(objective: PlacingGoal) -> PlacementObjective {
    match objective {
        PlacingGoal::Throughput => PlacementObjective::Throughput,
        PlacingGoal::Request => PlacementObjective::Request,
        PlacingGoal::Latency | PlacingGoal::MaxContext | PlacingGoal::LargestModel => {
            PlacementObjective::Latency
        }
    }
}

/// The placement problem of `optimize` on a rig, by the first term of its objective.
///
/// # Errors
/// The objective is unknown.
pub fn of_scenario(catalog: &Catalog, scenario: Scenario) -> Result<PlacementScenario, Error> {
    let named: Option<Objective> =
        scenario.objective.as_deref().map(|name| catalog.load_or_read(name)).transpose()?;
    let first = named.and_then(|objective| objective.optimize.first().map(|aim| aim.metric));
    let objective = match first {
        Some(Metric::Ttft | Metric::E2e) => PlacingGoal::Request,
        Some(Metric::Tpot | Metric::OutputTokSPerUser) => PlacingGoal::Latency,
        Some(Metric::MaxContext) => PlacingGoal::MaxContext,
        _ => PlacingGoal::Throughput,
    };
    Ok(PlacementScenario::of(scenario, objective))
}
