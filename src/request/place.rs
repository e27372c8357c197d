//! `place`: assigns layers to heterogeneous devices, provably optimal.

mod launch;
mod relax;
mod search;
pub mod solve;

use crate::search::outcome::Status;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RequestControl;
use crate::report::place::PlacementResult;
use crate::search::placement::solve::PlacementTime;
use crate::spec::error::Error;
use crate::spec::objective::{Metric, Objective};
use crate::spec::placing::{PlacementObjective, PlacementScenario};
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;

/// A request of `place`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PlaceRequest {
    /// The problem.
    pub scenario: PlacementScenario,
}

pub fn place(
    catalog: &Catalog,
    request: &PlaceRequest,
    control: &RequestControl,
) -> Result<PlacementResult, Error> {
    let mut report = solve::answer_placement(catalog, &request.scenario, &control.search)?.result;
    if matches!(report.status, Status::Feasible | Status::Unknown) {
        report.stopped_by = (control.stopped_by)();
    }
    Ok(report)
}

pub fn aim(objective: PlacementObjective) -> PlacementTime {
    match objective {
        PlacementObjective::Throughput => PlacementTime::Cycle,
        PlacementObjective::Request => PlacementTime::Request,
        PlacementObjective::Latency | PlacementObjective::MaxContext | PlacementObjective::LargestModel => {
            PlacementTime::Step
        }
    }
}

/// The placement problem of `optimize` on a rig, by the first term of its objective.
pub fn of_scenario(catalog: &Catalog, scenario: Scenario) -> Result<PlacementScenario, Error> {
    let named: Option<Objective> =
        scenario.objective.as_deref().map(|name| catalog.load_or_read(name)).transpose()?;
    let first = named.and_then(|objective| objective.optimize.first().map(|aim| aim.metric));
    let objective = match first {
        Some(Metric::Ttft | Metric::E2e) => PlacementObjective::Request,
        Some(Metric::Tpot | Metric::OutputTokSPerUser) => PlacementObjective::Latency,
        Some(Metric::MaxContext) => PlacementObjective::MaxContext,
        _ => PlacementObjective::Throughput,
    };
    Ok(PlacementScenario::of(scenario, objective))
}
