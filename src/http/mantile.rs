//! The published interface of Mantile: stateless routes for hardware, models, layers and their metrics.
//!
//! Every answer is a reading of the requests `catalog`, `inspect` and `static`.

mod catalog;
mod degrees;
mod layers;
mod metrics;
pub(super) mod openapi;

pub(super) use catalog::with_facts;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::answer_cache::{CachedAnswer, cached};
use super::problem::{ProblemDocument, Refusal};
use super::search::searched;
use super::state::ServerState;
use crate::admission::flights::RequestKey;
use crate::report::pretty::pretty;
use crate::request::RequestControl;
use crate::spec::error::Error;
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;

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
    ProblemDocument {
        fix: Some("use POST /config/system-metrics, or POST /v2/estimate".to_owned()),
        ..ProblemDocument::new(
            StatusCode::GONE,
            "this route was removed: every request has its whole context",
        )
    }
}

/// The answer of `work` in JSON; `key` is that of the request.
async fn json_of<T: Serialize + Send + 'static>(
    state: &ServerState,
    key: RequestKey,
    work: impl FnOnce(&Catalog, &RequestControl) -> Result<T, Error> + Send + 'static,
) -> Result<Response, Refusal> {
    let of = state.clone();
    let answer = cached(state, key, move |progress| async move {
        let work = move |known: &Catalog, control: &RequestControl| Ok(pretty(&work(known, control)?));
        let (text, whole) = searched(&of, progress, work).await?;
        Ok((CachedAnswer { kind: "application/json", body: text.into() }, whole))
    });
    Ok(answer.await?.into_response())
}

/// A body as its type; the fault names the field.
fn typed<T: DeserializeOwned>(body: &Value) -> Result<T, Refusal> {
    Ok(from_json(&body.to_string(), "a request")?)
}
