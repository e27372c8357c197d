//! `/config/layer-metrics` and `/config/system-metrics`: a static batch, phase by phase and layer type by layer type.

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::degrees::{LayerDegrees, LayersDegrees, PublishedLayer};
use super::typed;
use crate::admission::flights::RequestKey;
use crate::http::answer::read;
use crate::http::answer_cache::json_of;
use crate::http::problem::Refusal;
use crate::http::state::ServerState;
use crate::plan::parallel::Phase;
use crate::report::breakdown::{Class, Module};
use crate::report::static_batch::{StaticLayerType, StaticPhase, StaticReport};
use crate::request::RequestControl;
use crate::request::static_batch::static_batch;
use crate::spec::error::Error;
use crate::store::catalog::Catalog;

/// A request for the metrics of one layer type.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct LayerMetricsRequest {
    /// Model.
    model_id: String,
    /// System, or a device that is taken as often as the degrees need.
    #[serde(alias = "hardware_id")]
    hardware_config: String,
    /// Layer type.
    layer_type: PublishedLayer,
    /// Requests of the batch; 1 if absent.
    #[serde(default)]
    batch_size: Option<u64>,
    /// Tokens of the prompt in prefill, tokens in the KV cache in decode.
    seq_length: u64,
    /// Number format of the weights.
    #[serde(default)]
    dtype: Option<String>,
    /// Tensor parallelism; 1 if absent.
    #[serde(default)]
    tensor_parallel: Option<u64>,
    /// Context parallelism; 1 if absent.
    #[serde(default)]
    context_parallel: Option<u64>,
    /// Sequence parallelism: 1, or the tensor parallelism.
    #[serde(default)]
    sequence_parallel: Option<u64>,
}

/// One phase of a request of older clients.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct PhaseMetricsRequest {
    /// Model.
    model_id: String,
    /// System or device.
    #[serde(alias = "hardware_config")]
    hardware_id: String,
    /// Requests of the batch; 1 if absent.
    #[serde(default)]
    batch_size: Option<u64>,
    /// Tokens of the prompt.
    #[serde(default)]
    seq_len: Option<u64>,
    /// Tokens in the KV cache.
    #[serde(default)]
    context_len: Option<u64>,
    /// Degrees and dtypes of the layer types.
    #[serde(default)]
    layers: LayersDegrees,
}

/// A request for the metrics of the whole model: one for both phases, or one for each.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::http) enum SystemMetricsRequest {
    /// Each phase with its own hardware, batch and degrees.
    Phases(Box<PhasesRequest>),
    /// Both phases on the same hardware.
    Both(Box<BothPhasesRequest>),
}

/// A request for each phase.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct PhasesRequest {
    /// Prefill.
    prefill_req: PhaseMetricsRequest,
    /// Decode.
    decode_req: PhaseMetricsRequest,
}

/// Both phases on the same hardware.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct BothPhasesRequest {
    /// Model.
    model_id: String,
    /// System, or a device that is taken as often as the degrees need.
    #[serde(alias = "hardware_id")]
    hardware_config: String,
    /// Requests of the batch; 1 if absent.
    #[serde(default)]
    batch_size: Option<u64>,
    /// Tokens of the prompt.
    input_seq: u64,
    /// Tokens of the output.
    output_seq: u64,
    /// Degrees and dtypes of the layer types.
    #[serde(default)]
    layers: LayersDegrees,
}

/// Metrics of a layer type in one phase, over all its layers, of one chip of each pipeline stage.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(in crate::http) struct LayerMetrics {
    /// FLOPs of a chip.
    flops: f64,
    /// Time, ms.
    latency_ms: f64,
    /// Tokens per second through these layers alone.
    throughput_tokens_s: Option<f64>,
    /// Bytes of the weights of a chip.
    weights_bytes: f64,
    /// Bytes of the KV cache of a chip.
    kv_bytes: f64,
    /// Bytes to and from the memory of a chip.
    memory_traffic_bytes: f64,
    /// Bytes that a chip sends in an iteration.
    communication_bytes: f64,
    /// Largest part of the time: compute, memory, communication …
    bound: Option<Class>,
    /// The fewest chips that their degrees run on.
    min_chips: u64,
}

/// Metrics of the whole model in one phase.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(in crate::http) struct PhaseMetrics {
    /// FLOPs of a chip.
    flops: f64,
    /// Time: of the prefill, or of one decode step, ms.
    latency_ms: f64,
    /// Tokens per second of the batch.
    throughput_tokens_s: f64,
    /// Bytes of the weights of a chip.
    weights_bytes: f64,
    /// Bytes of the activations of a chip.
    activations_bytes: f64,
    /// Bytes of the KV cache of a chip.
    kv_bytes: f64,
    /// Bytes of all of a chip.
    memory_bytes: f64,
    /// Whether they fit.
    fits: bool,
    /// Bytes that a chip sends in an iteration.
    communication_bytes: f64,
    /// Largest part of the time: compute, memory, communication …
    bound: Class,
    /// Chips that the degrees take.
    chips: u64,
    /// The layer type that needs most of them.
    chips_reason: String,
    /// The fewest chips that these degrees run on and whose memory holds the batch; null where the system has too few.
    min_chips: Option<u64>,
    /// The layer type that needs most of them, or the memory that fewer lack.
    min_chips_reason: String,
    /// The fewest chips whose memory holds the batch by any degrees; null where the system has too few.
    memory_min_chips: Option<u64>,
    /// Why fewer do not hold it.
    memory_min_chips_reason: String,
    /// The same by layer type.
    layers: LayersMetrics,
}

/// Metrics of every layer type.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(in crate::http) struct LayersMetrics {
    /// Attention.
    attention: LayerMetrics,
    /// Feed-forward layers and experts.
    feedforward: LayerMetrics,
    /// Norms and the residual stream.
    norm: LayerMetrics,
    /// Embedding and LM head.
    embedding: LayerMetrics,
}

/// The metrics of one layer type.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(in crate::http) struct LayerMetricsAnswer {
    /// The prefill of the prompt.
    prefill: LayerMetrics,
    /// One decode step.
    decode: LayerMetrics,
    /// The fewest chips whose memory holds model and batch; null where the system has too few.
    min_chips: Option<u64>,
    /// Why fewer do not hold them.
    min_chips_reason: String,
    /// Reasons why the runtime does not run these degrees.
    theoretical: Vec<String>,
}

/// The metrics of the whole model.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(in crate::http) struct SystemMetricsAnswer {
    /// The prefill of the batch.
    prefill: PhaseMetrics,
    /// One decode step at the mean context.
    decode: PhaseMetrics,
    /// Time to first token, ms.
    ttft_ms: f64,
    /// Time per output token, ms.
    tpot_ms: f64,
    /// Time of the whole batch, ms; null where the phases are given one by one.
    e2e_ms: Option<f64>,
    /// Reasons why the runtime does not run these degrees.
    theoretical: Vec<String>,
}

impl PublishedLayer {
    fn modules(self) -> &'static [Module] {
        match self {
            PublishedLayer::Attention => &[Module::Attention],
            PublishedLayer::Feedforward => &[Module::FeedForward, Module::Experts],
            PublishedLayer::Norm => &[Module::Residual],
            PublishedLayer::Embedding => &[Module::Vocabulary],
        }
    }

    fn of(self, phase: &StaticPhase) -> LayerMetrics {
        let types: Vec<&StaticLayerType> =
            phase.layer_types.iter().filter(|one| self.modules().contains(&one.layer_type)).collect();
        let sum = |of: fn(&StaticLayerType) -> f64| types.iter().map(|one| of(one)).sum::<f64>();
        let longest = types.iter().max_by(|a, b| a.time_ms.total_cmp(&b.time_ms));
        let latency_ms = sum(|one| one.time_ms);
        let caches = self == PublishedLayer::Attention;
        LayerMetrics {
            flops: sum(|one| one.flops),
            latency_ms,
            throughput_tokens_s: (latency_ms > 0.0).then(|| phase.tok_s * phase.time_ms / latency_ms),
            weights_bytes: sum(|one| one.weight_bytes),
            kv_bytes: if caches { phase.memory.kv_cache_bytes } else { 0.0 },
            memory_traffic_bytes: sum(|one| one.bytes),
            communication_bytes: sum(|one| one.wire_bytes),
            bound: longest.map(|one| one.bound_by),
            min_chips: types.iter().map(|one| one.least_devices).max().unwrap_or(1),
        }
    }
}

impl From<&StaticPhase> for PhaseMetrics {
    fn from(phase: &StaticPhase) -> PhaseMetrics {
        let by_memory = phase.fewest_devices.devices;
        PhaseMetrics {
            flops: phase.flops,
            latency_ms: phase.time_ms,
            throughput_tokens_s: phase.tok_s,
            weights_bytes: phase.memory.weights_bytes,
            activations_bytes: phase.memory.activations_bytes,
            kv_bytes: phase.memory.kv_cache_bytes,
            memory_bytes: phase.memory.total_bytes,
            fits: phase.fits,
            communication_bytes: phase.wire_bytes,
            bound: phase.bound_by,
            chips: phase.devices,
            chips_reason: phase.devices_why.clone(),
            min_chips: by_memory.map(|by_memory| by_memory.max(phase.devices)),
            min_chips_reason: match by_memory.is_some_and(|by_memory| by_memory <= phase.devices) {
                true => phase.devices_why.clone(),
                false => phase.fewest_devices.why.clone(),
            },
            memory_min_chips: by_memory,
            memory_min_chips_reason: phase.fewest_devices.why.clone(),
            layers: LayersMetrics {
                attention: PublishedLayer::Attention.of(phase),
                feedforward: PublishedLayer::Feedforward.of(phase),
                norm: PublishedLayer::Norm.of(phase),
                embedding: PublishedLayer::Embedding.of(phase),
            },
        }
    }
}

fn phase(report: &StaticReport, phase: Phase) -> &StaticPhase {
    &report.phases[phase as usize]
}

/// `POST /config/layer-metrics`.
pub(super) async fn layer_metrics(
    State(state): State<ServerState>,
    body: Bytes,
) -> Result<Response, Refusal> {
    let body = read(&body)?;
    let request: LayerMetricsRequest = typed(&body)?;
    let key = RequestKey::of("layer-metrics", "", &body.to_string());
    json_of(&state, key, move |known, control| one_layer(known, &request, control)).await
}

fn one_layer(
    known: &Catalog,
    request: &LayerMetricsRequest,
    control: &RequestControl,
) -> Result<LayerMetricsAnswer, Error> {
    let degrees = LayersDegrees::all(&LayerDegrees {
        tensor_parallel: request.tensor_parallel,
        context_parallel: request.context_parallel,
        sequence_parallel: request.sequence_parallel,
        dtype: request.dtype.clone(),
    });
    // Norms are sharded by token, never by tensor.
    let degrees =
        LayersDegrees { norm: LayerDegrees { tensor_parallel: None, ..degrees.norm.clone() }, ..degrees };
    let load = (request.batch_size.unwrap_or(1), request.seq_length, 1);
    let batch = degrees.request(known, (&request.model_id, &request.hardware_config), load)?;
    let report = static_batch(known, &batch, control)?;
    let decode = phase(&report, Phase::Decode);
    Ok(LayerMetricsAnswer {
        prefill: request.layer_type.of(phase(&report, Phase::Prefill)),
        decode: request.layer_type.of(decode),
        min_chips: decode.fewest_devices.devices,
        min_chips_reason: decode.fewest_devices.why.clone(),
        theoretical: report.theoretical,
    })
}

/// `POST /config/system-metrics`.
pub(super) async fn system_metrics(
    State(state): State<ServerState>,
    body: Bytes,
) -> Result<Response, Refusal> {
    let body = read(&body)?;
    let request = match body.get("prefill_req").or(body.get("decode_req")) {
        Some(_) => SystemMetricsRequest::Phases(typed(&body)?),
        None => SystemMetricsRequest::Both(typed(&body)?),
    };
    let key = RequestKey::of("system-metrics", "", &body.to_string());
    json_of(&state, key, move |known, control| whole(known, &request, control)).await
}

fn whole(
    known: &Catalog,
    request: &SystemMetricsRequest,
    control: &RequestControl,
) -> Result<SystemMetricsAnswer, Error> {
    let answer = |reports: [&StaticReport; 2], e2e_ms| {
        let [prefill, decode] = [phase(reports[0], Phase::Prefill), phase(reports[1], Phase::Decode)];
        let mut theoretical = reports[0].theoretical.clone();
        theoretical.extend(
            reports[1].theoretical.iter().filter(|one| !reports[0].theoretical.contains(one)).cloned(),
        );
        SystemMetricsAnswer {
            prefill: prefill.into(),
            decode: decode.into(),
            ttft_ms: reports[0].ttft_ms,
            tpot_ms: reports[1].tpot_ms,
            e2e_ms,
            theoretical,
        }
    };
    match request {
        SystemMetricsRequest::Both(one) => {
            let names = (one.model_id.as_str(), one.hardware_config.as_str());
            let load = (one.batch_size.unwrap_or(1), one.input_seq, one.output_seq);
            let report = static_batch(known, &one.layers.request(known, names, load)?, control)?;
            Ok(answer([&report, &report], Some(report.e2e_ms)))
        }
        SystemMetricsRequest::Phases(two) => {
            let of = |one: &PhaseMetricsRequest, key: &str, tokens: Option<u64>| {
                let missing = || Error::new(key, "nothing", "a number of tokens", "add it");
                let tokens = tokens.ok_or_else(missing)?;
                let load = (one.batch_size.unwrap_or(1), tokens, 1);
                let names = (one.model_id.as_str(), one.hardware_id.as_str());
                static_batch(known, &one.layers.request(known, names, load)?, control)
            };
            let PhasesRequest { prefill_req, decode_req } = &**two;
            let prefill = of(prefill_req, "prefill_req.seq_len", prefill_req.seq_len)?;
            let context = decode_req.context_len.or(decode_req.seq_len);
            let decode = of(decode_req, "decode_req.context_len", context)?;
            Ok(answer([&prefill, &decode], None))
        }
    }
}
