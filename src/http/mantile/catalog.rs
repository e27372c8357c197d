//! `/hardware` and `/models`: the catalogue under its published names.

use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::{Value, json};

use crate::admission::flights::RequestKey;
use crate::http::answer_cache::json_of;
use crate::http::problem::Refusal;
use crate::http::state::ServerState;
use crate::report::catalog::CatalogLine;
use crate::request::catalog::{CatalogReport, CatalogRequest, catalog};
use crate::request::{UNCONTROLLED, value};
use crate::spec::error::Error;
use crate::store::catalog::Catalog;
use crate::store::kind::CatalogKind;

/// The published name of an entry, which has underscores; else its id.
pub(super) fn published_id(line: &CatalogLine) -> &str {
    line.aliases.iter().find(|alias| alias.contains('_')).unwrap_or(&line.id)
}

pub(in crate::http) fn lines(known: &Catalog, kind: CatalogKind) -> Result<Vec<CatalogLine>, Error> {
    match catalog(known, &CatalogRequest { kind, name: None }, &UNCONTROLLED)? {
        CatalogReport::Entries(lines) => Ok(lines),
        CatalogReport::Entry(_) => Ok(vec![]),
    }
}

pub(in crate::http) fn with_facts(mut row: Value, line: &CatalogLine) -> Value {
    if let (Some(row), Value::Object(facts)) = (row.as_object_mut(), value(&line.facts)) {
        row.extend(facts);
    }
    row
}

fn entry(known: &Catalog, kind: CatalogKind, name: &str) -> Result<Value, Error> {
    catalog(known, &CatalogRequest { kind, name: Some(name.to_owned()) }, &UNCONTROLLED)
        .map(|one| value(&one))
}

/// `GET /hardware`: the ids of systems and devices.
pub(super) async fn hardware(State(state): State<ServerState>) -> Result<Response, Refusal> {
    json_of(&state, RequestKey::of("hardware", "", ""), |known, _| {
        let (mut configs, mut rows) = (vec![], vec![]);
        for kind in [CatalogKind::Systems, CatalogKind::Devices] {
            for line in lines(known, kind)? {
                let id = published_id(&line).to_owned();
                rows.push(json!({
                    "hardware_id": id, "name": line.name, "kind": kind.singular(), "aliases": line.aliases,
                    "summary": line.summary,
                }));
                configs.push(id);
            }
        }
        Ok(json!({"configs": configs, "hardware": rows}))
    })
    .await
}

/// `GET /hardware/{id}`: a system or a device, every figure with its source.
pub(super) async fn one_hardware(
    State(state): State<ServerState>,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    json_of(&state, RequestKey::of("hardware/", "", &id), move |known, _| {
        entry(known, CatalogKind::Systems, &id).or_else(|_| entry(known, CatalogKind::Devices, &id))
    })
    .await
}

/// `GET /models`: the ids of models.
pub(super) async fn models(State(state): State<ServerState>) -> Result<Response, Refusal> {
    json_of(&state, RequestKey::of("models", "", ""), |known, _| {
        let rows = lines(known, CatalogKind::Models)?.into_iter().map(|line| {
            let row = json!({
                "model_id": published_id(&line), "name": line.name, "aliases": line.aliases,
                "summary": line.summary,
            });
            with_facts(row, &line)
        });
        Ok(json!({"models": rows.collect::<Vec<Value>>()}))
    })
    .await
}

/// `GET /models/{id}`: the configuration of a model and its source.
pub(super) async fn one_model(
    State(state): State<ServerState>,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    json_of(&state, RequestKey::of("models/", "", &id), move |known, _| {
        entry(known, CatalogKind::Models, &id)
    })
    .await
}
