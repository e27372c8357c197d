//! The report of a static batch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::breakdown::{Breakdown, ByClass, Class, Module, OperatorLine};
use super::result::MemoryReport;
use super::sheet::{CsvColumn, table};
use crate::plan::legal_degrees::LegalDegrees;
use crate::plan::parallel::{LayerType, ParallelPlan, Phase};
use crate::plan::shard::{ShardedBlock, Task};
use crate::serving::instance::Instance;
use crate::spec::scenario::Scenario;

/// A static batch: its two phases, and the latency of a request.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StaticReport {
    /// The flags of the request.
    pub scenario: Scenario,
    /// Model.
    pub model: String,
    /// Hardware.
    pub hardware: String,
    /// Runtime whose measured efficiencies apply.
    pub runtime: String,
    /// Reasons why the runtime does not run this plan; empty where it does.
    pub theoretical: Vec<String>,
    /// Prompt tokens.
    pub isl: u64,
    /// Output tokens.
    pub osl: u64,
    /// The prefill of the batch, then one decode step at the mean context.
    pub phases: Vec<StaticPhase>,
    /// Degrees that the model allows on these devices, whatever the runtime's rules.
    pub legal_degrees: LegalDegrees,
    /// Time to first token: the prefill of the whole batch, ms.
    pub ttft_ms: f64,
    /// Time per output token: one decode step, ms.
    pub tpot_ms: f64,
    /// Time of the whole batch, ms.
    pub e2e_ms: f64,
}

/// A phase of a static batch.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StaticPhase {
    /// The phase.
    pub phase: Phase,
    /// The parallel degrees, e.g. `tp4 dp2 ffn_tp8`.
    pub label: String,
    /// Devices of the instance.
    pub devices: u64,
    /// The layer type that needs most devices, and what the others do there.
    pub devices_why: String,
    /// Requests of the batch.
    pub batch: u64,
    /// Weight format.
    pub weight_format: String,
    /// KV cache format.
    pub kv_format: String,
    /// Time of the step, ms.
    pub time_ms: f64,
    /// Tokens per second of the batch: of its prompts in prefill, of its output in decode.
    pub tok_s: f64,
    /// Largest part of the time.
    pub bound_by: Class,
    /// FLOPs of one device of each pipeline stage.
    pub flops: f64,
    /// Bytes to and from the memory of one device of each pipeline stage.
    pub bytes: f64,
    /// Bytes that one device of each pipeline stage sends in the step.
    pub wire_bytes: f64,
    /// Model FLOPs utilisation.
    pub mfu: f64,
    /// Model bandwidth utilisation.
    pub mbu: f64,
    /// Memory of the fullest device at the end of the phase.
    pub memory: MemoryReport,
    /// Whether it fits.
    pub fits: bool,
    /// The fewest devices whose memory holds this batch.
    pub fewest_devices: FewestDevices,
    /// The same by layer type.
    pub layer_types: Vec<StaticLayerType>,
}

/// The fewest devices whose memory holds a batch, by any legal plan.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FewestDevices {
    /// Their number; null where the system has too few.
    pub devices: Option<u64>,
    /// The plan.
    pub label: Option<String>,
    /// Bytes on each of them.
    pub bytes_per_device: Option<f64>,
    /// Why fewer do not hold it.
    pub why: String,
}

/// A layer type in one phase, over all its layers, on one device of each pipeline stage.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StaticLayerType {
    /// The type. Collectives belong to the layers that need them.
    pub layer_type: Module,
    /// Number of layers; 0 for the host and launches, which belong to all.
    pub layers: u64,
    /// The fewest devices that its degrees run on.
    pub least_devices: u64,
    /// Time, ms.
    pub time_ms: f64,
    /// Largest part of the time.
    pub bound_by: Class,
    /// FLOPs.
    pub flops: f64,
    /// Bytes to and from device memory.
    pub bytes: f64,
    /// Bytes sent.
    pub wire_bytes: f64,
    /// Bytes of weights.
    pub weight_bytes: f64,
    /// Operators in execution order.
    pub operators: Vec<OperatorLine>,
}

/// One row for each layer type and phase, with units in the column names.
pub fn csv(report: &StaticReport) -> String {
    let columns: [CsvColumn<(&StaticPhase, &StaticLayerType)>; 15] = [
        ("phase", |(phase, _)| phase.phase.name().to_owned()),
        ("plan", |(phase, _)| phase.label.clone()),
        ("devices", |(phase, _)| phase.devices.to_string()),
        ("batch", |(phase, _)| phase.batch.to_string()),
        ("weight_format", |(phase, _)| phase.weight_format.clone()),
        ("kv_format", |(phase, _)| phase.kv_format.clone()),
        ("layer_type", |(_, layers)| layers.layer_type.name().to_owned()),
        ("layers", |(_, layers)| layers.layers.to_string()),
        ("least_devices", |(_, layers)| layers.least_devices.to_string()),
        ("time_ms", |(_, layers)| layers.time_ms.to_string()),
        ("bound_by", |(_, layers)| layers.bound_by.name().to_owned()),
        ("flops", |(_, layers)| layers.flops.to_string()),
        ("bytes", |(_, layers)| layers.bytes.to_string()),
        ("wire_bytes", |(_, layers)| layers.wire_bytes.to_string()),
        ("weight_bytes", |(_, layers)| layers.weight_bytes.to_string()),
    ];
    let rows = report.phases.iter().flat_map(|one| one.layer_types.iter().map(move |layers| (one, layers)));
    table(&columns, rows)
}

/// The layer types of a phase; `weight_bytes` are those of one element of a role, quantised or not.
pub fn layer_types(
    breakdown: &Breakdown,
    phase: Phase,
    instance: &Instance,
    bytes_of: impl Fn(&ShardedBlock, &Task) -> f64,
) -> Vec<StaticLayerType> {
    let lines: Vec<&OperatorLine> = breakdown.lines(phase).collect();
    let weights = weights(instance, phase, bytes_of);
    let mut types: Vec<StaticLayerType> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let layer_type = owner(&lines, at);
        let known = types.iter().position(|one| one.layer_type == layer_type);
        let known = known.unwrap_or_else(|| {
            types.push(StaticLayerType {
                layer_type,
                layers: 0,
                least_devices: least_devices(&instance.plan, layer_type),
                time_ms: 0.0,
                bound_by: Class::Memory,
                flops: 0.0,
                bytes: 0.0,
                wire_bytes: 0.0,
                weight_bytes: weights
                    .iter()
                    .filter(|(of, _)| *of == layer_type)
                    .map(|(_, bytes)| bytes)
                    .sum(),
                operators: vec![],
            });
            types.len() - 1
        });
        let one = &mut types[known];
        one.time_ms += line.time_ms;
        one.flops += line.flops;
        one.bytes += line.bytes;
        one.wire_bytes += line.wire_bytes;
        one.operators.push((*line).clone());
    }
    types.iter_mut().for_each(sum_up);
    types.sort_by_key(|one| one.layer_type);
    types
}

/// The fewest devices of a pipeline stage that a layer type of `plan` runs on.
fn least_devices(plan: &ParallelPlan, layer_type: Module) -> u64 {
    match layer_type {
        Module::Attention => plan.least_devices(LayerType::Attention),
        Module::FeedForward => plan.least_devices(LayerType::FeedForward),
        Module::Vocabulary => plan.least_devices(LayerType::Vocabulary),
        Module::Experts => plan.expert_ranks(),
        Module::Residual if plan.sp => plan.tp,
        Module::Residual | Module::Images | Module::Communication | Module::Overhead => 1,
    }
}

/// Why a pipeline stage of `plan` has its number of devices.
pub fn devices_why(plan: &ParallelPlan) -> String {
    let mut needs: Vec<(&str, u64)> = vec![
        ("attention", plan.least_devices(LayerType::Attention)),
        ("feed-forward", plan.least_devices(LayerType::FeedForward)),
        ("vocabulary", plan.least_devices(LayerType::Vocabulary)),
    ];
    if plan.ep > 1 {
        needs.insert(2, ("experts", least_devices(plan, Module::Experts)));
    }
    let needs: Vec<String> = needs.iter().map(|(name, devices)| format!("{name} {devices}")).collect();
    let copies = match plan.attention_copies() {
        1 => String::new(),
        copies => format!("; {copies} groups of devices repeat attention for the same tokens"),
    };
    let stages = if plan.pp > 1 { format!(" of each of {} stages", plan.pp) } else { String::new() };
    format!("{}{stages}, the most of {}{copies}", plan.stage_devices(), needs.join(", "))
}

/// Counts the layers of a type and finds its largest part.
fn sum_up(one: &mut StaticLayerType) {
    let mut by = ByClass::default();
    let mut blocks: Vec<(&str, u64)> = Vec::new();
    for line in &one.operators {
        by.seconds[line.class as usize] += line.time_ms / 1e3;
        if line.part_of != Module::Overhead && !blocks.iter().any(|(block, _)| *block == line.block) {
            blocks.push((&line.block, line.layers));
        }
    }
    one.layers = blocks.iter().map(|(_, layers)| layers).sum();
    one.bound_by = by.largest();
}

/// The layer type of the operator at `at`. A collective belongs to the operator that follows it, or, before a norm or
/// a sum, to the one whose results it combines.
fn owner(lines: &[&OperatorLine], at: usize) -> Module {
    if lines[at].part_of != Module::Communication {
        return lines[at].part_of;
    }
    let inside = |line: &&&OperatorLine| line.block == lines[at].block && line.phase == lines[at].phase;
    let computes = |line: &&&OperatorLine| line.part_of != Module::Communication;
    let mixes = |line: &&&OperatorLine| line.part_of != Module::Residual && line.part_of != Module::Overhead;
    let next = lines[at + 1..].iter().take_while(inside).find(computes).filter(mixes);
    let last = || lines[..at].iter().rev().take_while(inside).filter(computes).find(mixes);
    next.or_else(last).map_or(Module::Communication, |line| line.part_of)
}

/// Bytes of the weights of each layer type on one device of each pipeline stage.
fn weights(
    instance: &Instance,
    phase: Phase,
    bytes_of: impl Fn(&ShardedBlock, &Task) -> f64,
) -> Vec<(Module, f64)> {
    let model = instance.sharded(phase);
    let ends = [&model.embedding, &model.head];
    let blocks = ends.into_iter().chain(model.blocks.iter());
    let steps = blocks.flat_map(|block| block.steps.iter().map(move |step| (block, &step.task)));
    steps
        .map(|(block, task)| (Module::of(block, task), bytes_of(block, task) * block.layers.value as f64))
        .collect()
}
