//! `/v1/catalog/…`: models, runtimes, weight formats and hardware profiles.

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use crate::admission::flights::unwatched;
use crate::http::answer::in_json;
use crate::http::mantile::{lines, with_facts};
use crate::http::problem::Refusal;
use crate::http::search::searched;
use crate::http::state::ServerState;
use crate::report::catalog::CatalogLine;
use crate::request::RequestControl;
use crate::spec::cluster::Cluster;
use crate::spec::device::Arithmetic;
use crate::spec::error::Error;
use crate::spec::runtime::Runtime;
use crate::store::catalog::Catalog;
use crate::store::kind::CatalogKind;

/// The rows of a kind under `key`.
async fn listed(
    state: &ServerState,
    key: &'static str,
    kind: CatalogKind,
    row: impl Fn(&Catalog, CatalogLine) -> Result<Value, Error> + Send + 'static,
) -> Result<Response, Refusal> {
    let work = move |known: &Catalog, _: &RequestControl| {
        let rows = lines(known, kind)?.into_iter().map(|line| row(known, line));
        rows.collect::<Result<Vec<Value>, Error>>()
    };
    let (rows, _) = searched(state, unwatched(), work).await?;
    Ok(in_json(&json!({key: rows})))
}

fn plain(id: &str, line: &CatalogLine) -> Value {
    with_facts(
        json!({id: line.id, "name": line.name, "aliases": line.aliases, "summary": line.summary}),
        line,
    )
}

/// `GET /v1/catalog/models`.
pub(super) async fn models(State(state): State<ServerState>) -> Result<Response, Refusal> {
    listed(&state, "models", CatalogKind::Models, |_, line| Ok(plain("model_id", &line))).await
}

/// `GET /v1/catalog/runtimes`.
pub(super) async fn runtimes(State(state): State<ServerState>) -> Result<Response, Refusal> {
    listed(&state, "runtimes", CatalogKind::Runtimes, |known, line| {
        let runtime: Runtime = known.load(&line.id)?;
        let mut row = plain("runtime_id", &line);
        row["backend"] = json!(runtime.id);
        row["supported_quant"] = json!(runtime.weight_formats);
        row["supported_kv_quant"] = json!(runtime.kv_formats);
        row["parallelism"] = json!(runtime.parallelism);
        Ok(row)
    })
    .await
}

/// `GET /v1/catalog/quantizations`.
pub(super) async fn quantizations(State(state): State<ServerState>) -> Result<Response, Refusal> {
    listed(&state, "quantizations", CatalogKind::Formats, |_, line| Ok(plain("quant", &line))).await
}

/// `GET /v1/catalog/hardware-profiles`: every system in the fields of a profile.
pub(super) async fn hardware_profiles(State(state): State<ServerState>) -> Result<Response, Refusal> {
    listed(&state, "hardware_profiles", CatalogKind::Systems, |known, line| {
        let cluster: Cluster = known.hardware(&line.id)?;
        let mut row = plain("hardware_id", &line);
        row["profile"] = profile(&cluster);
        Ok(row)
    })
    .await
}

/// The figures of a system in the fields of a profile; those that are unknown are absent.
fn profile(cluster: &Cluster) -> Value {
    let device = &cluster.device;
    let scaled = |value: Option<f64>, scale: f64| value.map_or(Value::Null, |value| json!(value / scale));
    let memory = &device.memory;
    let tier = cluster.tiers.first();
    let host = cluster.host.as_ref();
    let peak = device.peak.get(&Arithmetic::Fp16).or_else(|| device.peak.get(&Arithmetic::Bf16));
    let mut row = json!({
        "gpus": [{
            "sku": device.name,
            "count": cluster.devices(),
            "vram_gb": scaled(memory.capacity.as_ref().map(|figure| figure.value), (1u64 << 30) as f64),
            "mem_bw_gbps": scaled(memory.bandwidth.as_ref().map(|figure| figure.value), 1e9),
            "fp16_tflops": scaled(peak.map(|figure| figure.value), 1e12),
        }],
        "interconnect": tier.map(|tier| json!({
            "type": tier.link,
            "bw_gbps": scaled(Some(tier.bandwidth.value), 1e9),
            "latency_us": scaled(Some(tier.latency.value), 1e-6),
        })),
        "cpu": host.map(|host| json!({
            "sku": host.cpu,
            "mem_bw_gbps": scaled(host.memory_bandwidth.as_ref().map(|figure| figure.value), 1e9),
        })),
        "ram_gb": scaled(host.and_then(|host| host.memory.as_ref()).map(|figure| figure.value), 1e9),
        "storage": host.and_then(|host| host.storage_read.as_ref()).map(|read| json!({
            "read_gbps": scaled(Some(read.value), 1e9),
        })),
    });
    if let Some(fields) = row.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    row
}
