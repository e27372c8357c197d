//! The published interface of Mantile: stateless routes for hardware, models, layers and their metrics.
//!
//! Every answer is a reading of the requests `catalog`, `inspect` and `static`.

mod catalog;
mod degrees;
mod layers;
mod metrics;
pub(super) mod openapi;

pub(super) use catalog::{lines, with_facts};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{any, get, post};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::problem::{ProblemDocument, Refusal};
use super::state::ServerState;
use crate::spec::error::Error;
use crate::spec::text::from_json;

pub(super) fn routes() -> Router<ServerState> {
    Router::new()
        .route("/hardware", get(catalog::hardware))
        .route("/hardware/{id}", get(catalog::one_hardware))
        .route("/models", get(catalog::models))
        .route("/models/{*id}", get(catalog::one_model))
        .route("/api/layers", get(layers::layers))
        .route("/config/layer-metrics", post(metrics::layer_metrics))
        .route("/config/system-metrics", post(metrics::system_metrics))
        .route("/config/load", any(removed))
        .route("/estimate", any(removed))
}

async fn removed() -> ProblemDocument {
    ProblemDocument::new(StatusCode::GONE, "this route was removed: every request has its whole context")
        .fix("use POST /config/system-metrics, or POST /v2/estimate")
}

/// A body as its type; the fault names the field.
pub(super) fn typed<T: DeserializeOwned>(body: &Value) -> Result<T, Refusal> {
    let lists = |fault: Error| {
        let fix = fault.fix.replace("`mantile-opt schema request`", "GET /openapi.json");
        Error { fix, ..fault }
    };
    Ok(from_json(&body.to_string(), "a request").map_err(lists)?)
}
