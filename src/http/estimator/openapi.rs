//! The routes of the interface, for the OpenAPI document.

use super::PREFIXES;
use super::answer::EstimatorAnswer;
use super::calibrate::{CalibrationStatus, RunAnswer};
use super::drift::BenchmarkRun;
use super::question::EstimatorRequest;
use crate::http::openapi::PublishedRoute;
use crate::spec::run::RunRecord;

/// Problems of a store of runs.
const STORE_PROBLEMS: [(&str, &str); 3] = [
    ("500", "the store of runs cannot be read or written"),
    ("503", "another program writes to the store of runs"),
    ("507", "the disk of the store of runs is full"),
];

/// The routes, under both prefixes.
pub(in crate::http) fn estimator_routes() -> Vec<PublishedRoute> {
    let mut routes = Vec::new();
    for (at, prefix) in PREFIXES.iter().enumerate() {
        let route = |method, path: &str, id: &str, about| {
            let id = if at == 0 { format!("estimator.{id}") } else { format!("estimator.long.{id}") };
            PublishedRoute::new(method, &format!("{prefix}{path}"), &id, about)
        };
        routes.extend([
            route("post", "/estimate", "estimate", "the best deployment and its metrics")
                .takes::<EstimatorRequest>()
                .gives::<EstimatorAnswer>(),
            route("get", "/calibrate", "calibration", "errors of the measured runs")
                .gives::<CalibrationStatus>(),
            PublishedRoute {
                problems: &STORE_PROBLEMS,
                ..route(
                    "post",
                    "/calibrate",
                    "calibrate",
                    "adds a measured run; with a store, one of `bench` too",
                )
                .takes_either::<BenchmarkRun, RunRecord>()
                .gives::<RunAnswer>()
            },
            route("get", "/catalog/models", "models", "models"),
            route("get", "/catalog/runtimes", "runtimes", "runtimes with their formats"),
            route("get", "/catalog/quantizations", "quantizations", "weight formats"),
            route("get", "/catalog/hardware-profiles", "hardware_profiles", "systems as profiles"),
        ]);
    }
    routes
}
