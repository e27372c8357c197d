//! The published interface of the AI Compute Estimator: an estimate, the queue of measured runs, the catalogue.
//!
//! Every number is one of `optimize` or `estimate`. Both prefixes have the same routes.

mod answer;
mod bottlenecks;
mod calibrate;
mod catalog;
mod drift;
mod hardware;
pub(super) mod openapi;
mod question;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};

use super::answer::read;
use super::answer_cache::json_of;
use super::mantile::typed;
use super::problem::Refusal;
use super::state::ServerState;
use crate::admission::flights::RequestKey;
use crate::request::value;
use crate::request::wording::answer_in_keys;
pub(super) use drift::MeasuredRuns;
use question::EstimatorRequest;

pub(super) const PREFIXES: [&str; 2] = ["/v1", "/api/estimator/v1"];

pub(super) fn routes() -> Router<ServerState> {
    PREFIXES.into_iter().fold(Router::new(), |routes, prefix| {
        let under = Router::new()
            .route("/estimate", post(estimate))
            .route("/calibrate", get(calibrate::status).post(calibrate::ingest))
            .route("/catalog/models", get(catalog::models))
            .route("/catalog/runtimes", get(catalog::runtimes))
            .route("/catalog/quantizations", get(catalog::quantizations))
            .route("/catalog/hardware-profiles", get(catalog::hardware_profiles));
        routes.nest(prefix, under)
    })
}

/// `POST /v1/estimate`.
async fn estimate(State(state): State<ServerState>, body: Bytes) -> Result<Response, Refusal> {
    let body = read(&body)?;
    let request: EstimatorRequest = typed(&body)?;
    let key = RequestKey::of("estimator", "", &body.to_string());
    json_of(&state, key, move |known, control| {
        Ok(answer_in_keys(value(&answer::answered(known, &request, control)?)))
    })
    .await
}
