//! `/api/layers`: the layer types of a model, with the degrees that it allows.

use std::collections::BTreeSet;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::degrees::{LayersDegrees, PublishedLayer};
use crate::admission::flights::RequestKey;
use crate::graph::inspect::{InspectedBlock, InspectedOperator};
use crate::graph::tensor::TensorRole;
use crate::http::answer_cache::json_of;
use crate::http::problem::{ProblemDocument, Refusal};
use crate::http::state::ServerState;
use crate::request::RequestControl;
use crate::request::inspect::{InspectReport, InspectRequest, inspect};
use crate::request::static_batch::static_batch;
use crate::spec::error::Error;
use crate::spec::json_fault::{PlainFault, plain};
use crate::store::catalog::Catalog;

/// The system whose devices limit the degrees, where the query names none.
const USUAL_SYSTEM: &str = "gb200-nvl72";

/// The query.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LayersQuery {
    model_id: String,
    #[serde(default)]
    hardware_config: Option<String>,
}

/// `GET /api/layers?model_id=…`.
pub(super) async fn layers(
    State(state): State<ServerState>,
    query: Result<Query<LayersQuery>, QueryRejection>,
) -> Result<Response, Refusal> {
    let Query(query) = query.map_err(|fault| {
        ProblemDocument::new(StatusCode::UNPROCESSABLE_ENTITY, in_words(&fault.body_text())).field("model_id")
    })?;
    let hardware = query.hardware_config.as_deref().unwrap_or_default();
    let key = RequestKey::of("layers", "", &serde_json::json!([query.model_id, hardware]).to_string());
    json_of(&state, key, move |known, control| of_model(known, &query, control)).await
}

/// The fault of a query, without the terms of its reader.
fn in_words(fault: &str) -> String {
    let message = fault.rsplit_once(": ").map_or(fault, |(_, message)| message);
    let PlainFault { found, expected, .. } = plain(message, "a query");
    expected.map_or(found.clone(), |expected| format!("found {found}, expected {expected}"))
}

/// Whether an operator is one of the layer type, by the roles of its weights.
fn belongs(layer: PublishedLayer, operator: &InspectedOperator) -> bool {
    operator.weights.iter().any(|weight| match weight.role {
        TensorRole::Attention | TensorRole::Indexer | TensorRole::Sink | TensorRole::Recurrence => {
            layer == PublishedLayer::Attention
        }
        TensorRole::Mlp | TensorRole::Expert | TensorRole::SharedExpert | TensorRole::Router => {
            layer == PublishedLayer::Feedforward
        }
        TensorRole::Norm => layer == PublishedLayer::Norm,
        TensorRole::Embedding | TensorRole::LmHead => layer == PublishedLayer::Embedding,
        TensorRole::Bias | TensorRole::Tower => false,
    })
}

fn of_model(known: &Catalog, query: &LayersQuery, control: &RequestControl) -> Result<Value, Error> {
    let model = &query.model_id;
    let hardware = query.hardware_config.as_deref().unwrap_or(USUAL_SYSTEM);
    let request = InspectRequest { model: model.clone(), ..InspectRequest::default() };
    let InspectReport::Model(inspected) = inspect(known, &request, control)? else { return Ok(Value::Null) };
    let batch = LayersDegrees::default().request(known, (model, hardware), (1, 1, 1))?;
    let legal = static_batch(known, &batch, control)?.legal_degrees;
    let sequence = |tp: &BTreeSet<u64>| if legal.sp { tp.clone() } else { BTreeSet::from([1]) };
    let row = |name: &str, layer, parallelism: Value| {
        let of = |block: &InspectedBlock| {
            let operators: Vec<Value> = block
                .operators
                .iter()
                .filter(|one| belongs(layer, one))
                .map(|one| json!({"name": one.name, "kind": one.kind, "dims": one.dims, "parameters": one.parameters}))
                .collect();
            (!operators.is_empty())
                .then(|| json!({"block": block.name, "layers": block.layers, "operators": operators}))
        };
        let specs: Vec<Value> = inspected.inspection.blocks.iter().filter_map(of).collect();
        let layers = |spec: &Value| spec["layers"].as_array().map_or(1, |layers| layers.len().max(1));
        let count: usize = specs.iter().map(layers).sum();
        json!({"type": name, "count": count, "specs": specs, "available_parallelism": parallelism})
    };
    let rows = [
        row(
            "attention",
            PublishedLayer::Attention,
            json!({
                "tensor_parallel": legal.tp, "context_parallel": legal.cp, "sequence_parallel": sequence(&legal.tp),
                "data_parallel": legal.dp,
            }),
        ),
        row(
            "feedforward",
            PublishedLayer::Feedforward,
            json!({
                "tensor_parallel": legal.ffn_tp, "sequence_parallel": sequence(&legal.ffn_tp),
                "expert_parallel": legal.ep,
            }),
        ),
        row(
            "norm",
            PublishedLayer::Norm,
            json!({"tensor_parallel": [1], "sequence_parallel": sequence(&legal.tp)}),
        ),
        row("embedding", PublishedLayer::Embedding, json!({"tensor_parallel": legal.vocab_tp})),
    ];
    Ok(json!({"model_id": model, "hardware_config": hardware, "layers": rows}))
}
