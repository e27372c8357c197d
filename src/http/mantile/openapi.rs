//! The routes of the interface, for the OpenAPI document.

use super::metrics::{LayerMetricsAnswer, LayerMetricsRequest, SystemMetricsAnswer, SystemMetricsRequest};
use crate::http::openapi::PublishedRoute;

pub(in crate::http) fn mantile_routes() -> Vec<PublishedRoute> {
    let route = PublishedRoute::new;
    vec![
        route("get", "/hardware", "mantile.hardware", "ids of systems and devices"),
        PublishedRoute {
            parameters: &[("id", "path", "system or device")],
            ..route("get", "/hardware/{id}", "mantile.one_hardware", "a system or device with its sources")
        },
        route("get", "/models", "mantile.models", "ids of models"),
        PublishedRoute {
            parameters: &[("id", "path", "model")],
            ..route("get", "/models/{id}", "mantile.one_model", "a model with its source")
        },
        PublishedRoute {
            parameters: &[
                ("model_id", "query", "model"),
                ("hardware_config", "query", "system whose devices limit the degrees"),
            ],
            ..route("get", "/api/layers", "mantile.layers", "layer types of a model, with legal degrees")
        },
        route("post", "/config/layer-metrics", "mantile.layer_metrics", "a static batch, one layer type")
            .takes::<LayerMetricsRequest>()
            .gives::<LayerMetricsAnswer>(),
        route("post", "/config/system-metrics", "mantile.system_metrics", "a static batch, the whole model")
            .takes::<SystemMetricsRequest>()
            .gives::<SystemMetricsAnswer>(),
    ]
}
