//! Serving runtimes: supported features, reserved memory, measured efficiencies.

use crate::spec::offload::OffloadPart;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::constant::CalibrationFactor;
use super::correction::CellCorrection;
use super::device::Device;
use super::figure::{Bytes, Figure, Ratio, Seconds};
use super::host_part::HostCompute;
use super::nearness::{Interval, LeftOut, MeasuredAt};
use super::rule::{CutBlocks, RankUnit, Rule};
use super::scenario::Scenario;
use crate::quantity::datum::{Grade, Source};

/// A serving runtime.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Runtime {
    /// File name without `.json`.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Other names.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Vendors, or single generations, of supported devices.
    pub vendors: Vec<String>,
    /// Supported weight formats.
    pub weight_formats: Vec<String>,
    /// Supported KV formats.
    pub kv_formats: Vec<String>,
    /// Supported parallel degrees, by their keys in plans, `sp`, and `disagg`.
    pub parallelism: Vec<String>,
    /// Parts of the model that it can keep in host memory and read over the host link at every step.
    #[serde(default)]
    pub streams: Vec<OffloadPart>,
    /// Vendors or generations for whose devices it is the default.
    #[serde(default)]
    pub default_for: Vec<String>,
    /// Vendors for whose home and edge devices it is the default.
    #[serde(default)]
    pub default_at_home: Vec<String>,
    /// Default weight formats on home and edge devices, for checkpoints that are not quantized; the first that runs.
    #[serde(default)]
    pub weights_at_home: Vec<String>,
    /// Formats into which it converts 16-bit weights when it starts.
    #[serde(default)]
    pub weights_at_start: Vec<String>,
    /// Formats that are not supported on some devices.
    #[serde(default)]
    pub excludes: Vec<Exclusion>,
    /// Rules that no degree or format alone expresses.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// Matrices whose shards may cut blocks of weights that share a scale.
    #[serde(default)]
    pub cut_blocks: Vec<CutBlocks>,
    /// Ranks that it counts on one device, where that is not 1.
    #[serde(default)]
    pub units: Vec<RankUnit>,
    /// Tokens per page of the KV cache.
    pub block_tokens: Figure<Ratio>,
    /// Maximum number of tokens per step (chunk size).
    pub max_batched_tokens: Figure<Ratio>,
    /// Fixed number of sequences that it prepares for; absent where it follows the traffic.
    pub max_sequences: Option<Figure<Ratio>>,
    /// Other defaults of both on certain devices: the first match applies.
    #[serde(default)]
    pub defaults_on: Vec<DefaultsOn>,
    /// Queueing of requests.
    pub scheduler: Scheduler,
    /// Reserved memory.
    pub memory: Reserve,
    /// Measured efficiencies, per device.
    pub constants: Vec<Constants>,
    /// Calibration of the constants to measured servers; absent where none was fitted.
    pub serving_fit: Option<ServingFit>,
    /// Factors of one's own measurements, on top of that.
    #[serde(default)]
    pub corrections: Vec<CellCorrection>,
    /// Its work on the host's processor; absent where it computes on devices only.
    pub host: Option<HostCompute>,
    /// Remarks.
    pub notes: Option<String>,
}

/// Defaults of a runtime on devices with less memory, or on certain devices.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DefaultsOn {
    /// Devices with less memory than this.
    pub below: Option<Figure<Bytes>>,
    /// Devices with any memory.
    #[serde(default)]
    pub devices: Vec<String>,
    /// Maximum number of tokens per step.
    pub max_batched_tokens: Figure<Ratio>,
    /// Number of sequences that it prepares for; absent where it is as on other devices.
    pub max_sequences: Option<Figure<Ratio>>,
    /// Fraction of the memory that it uses; absent where it is as on other devices.
    pub utilization: Option<Figure<Ratio>>,
}

#[derive(Clone, Copy, Debug)]
pub struct EffectiveDefaults<'a> {
    pub max_batched_tokens: &'a Figure<Ratio>,
    /// Number of sequences that it prepares for, where fixed.
    pub max_sequences: Option<&'a Figure<Ratio>>,
    /// Fraction of the memory that it uses.
    pub utilization: &'a Figure<Ratio>,
}

impl DefaultsOn {
    fn holds(&self, device: &Device) -> bool {
        let less =
            |most: &Figure<Bytes>| device.memory.capacity.as_ref().is_some_and(|has| has.value < most.value);
        self.devices.iter().any(|id| id == device.measured_as()) || self.below.as_ref().is_some_and(less)
    }
}

/// Calibration of the constants to published serving measurements.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServingFit {
    /// The data, their number and the remaining error.
    pub source: String,
    /// Launch delay of each kernel of a layer.
    pub kernel_launch: Figure<Seconds>,
    /// Additional launch delay of each matrix product with quantized weights: activations are quantized first.
    pub quantised_launch: Figure<Seconds>,
    /// Delay of expert routing, per layer.
    pub experts_launch: Figure<Seconds>,
    /// Host time for each sequence of a step.
    pub host_per_sequence: Figure<Seconds>,
    /// Additional delay of the first token per concurrent request.
    pub request_work: Figure<Seconds>,
    /// Queued prefills before a new one, per request of a rank.
    pub prompt_burst: Figure<Ratio>,
    /// Devices of the data of this runtime.
    pub measured_on: Vec<String>,
    /// Devices of the data of any runtime.
    pub measured_anywhere: Vec<String>,
    /// Models of the data of any runtime.
    #[serde(default)]
    pub models: Vec<String>,
    /// The measured ranges of this runtime's data.
    #[serde(default)]
    pub measured: Vec<MeasuredAt>,
    /// Prediction intervals, nearest first.
    pub intervals: Vec<Interval>,
    /// Held-out prediction errors of the fit.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// Multipliers on constants; all matching ones apply.
    pub factors: Vec<CalibrationFactor>,
}

/// Formats that a runtime does not support on some generations.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exclusion {
    /// The generations.
    pub families: Vec<String>,
    /// The formats.
    pub formats: Vec<String>,
    /// Source.
    pub source: String,
}

impl Runtime {
    /// Whether it supports `device`. The constants of accelerators say nothing about a processor, which needs those of a
    /// runtime that computes on hosts; one of a generation that is not listed has them too.
    pub fn runs_on(&self, device: &Device) -> bool {
        let listed = self.vendors.iter().any(|name| *name == device.vendor.name() || *name == device.family);
        if device.is_processor() { self.host.is_some() && (listed || device.new_family) } else { listed }
    }

    /// The factors of one's own measurements of a cell; `model` is an architecture and a number of parameters.
    pub fn correction(
        &self,
        model: impl FnOnce() -> String,
        device: &Device,
        weight_format: &str,
    ) -> Option<&CellCorrection> {
        if self.corrections.is_empty() {
            return None;
        }
        let model = model();
        self.corrections.iter().find(|one| one.is_of(&model, device.measured_as(), weight_format))
    }

    /// Whether constants were fitted to measurements of this version.
    pub fn is_fitted_to(&self, version: &str) -> bool {
        let mut factors = self.serving_fit.iter().flat_map(|fit| &fit.factors);
        factors.any(|factor| factor.version.as_deref() == Some(version))
    }

    /// Its defaults on `device`.
    pub fn taken(&self, device: &Device) -> EffectiveDefaults<'_> {
        let on = self.defaults_on.iter().find(|one| one.holds(device));
        let sequences = on.and_then(|on| on.max_sequences.as_ref());
        EffectiveDefaults {
            max_batched_tokens: on.map_or(&self.max_batched_tokens, |on| &on.max_batched_tokens),
            max_sequences: sequences.or(self.max_sequences.as_ref()),
            utilization: on.and_then(|on| on.utilization.as_ref()).unwrap_or(&self.memory.utilization),
        }
    }

    /// The runtime as started with the settings of a scenario, in place of its defaults on `device`.
    pub fn started(self: Arc<Self>, device: &Device, scenario: &Scenario) -> Arc<Runtime> {
        let Scenario { max_num_batched_tokens, max_num_seqs, gpu_memory_utilization, .. } = scenario;
        if max_num_batched_tokens.is_none() && max_num_seqs.is_none() && gpu_memory_utilization.is_none() {
            return self;
        }
        let given = |value: f64, flag: &str| {
            Figure::new(value, Source { grade: Grade::Stated, text: format!("--{flag}").into() })
        };
        let usual = self.taken(device);
        let tokens = max_num_batched_tokens.map(|tokens| given(tokens as f64, "max-num-batched-tokens"));
        let sequences = max_num_seqs.map(|count| given(count as f64, "max-num-seqs"));
        let share = gpu_memory_utilization.map(|share| given(share, "gpu-memory-utilization"));
        let (max_batched_tokens, max_sequences, utilization) = (
            tokens.unwrap_or_else(|| usual.max_batched_tokens.clone()),
            sequences.or_else(|| usual.max_sequences.cloned()),
            share.unwrap_or_else(|| usual.utilization.clone()),
        );
        let runtime = Arc::unwrap_or_clone(self);
        // A stated share is that of every shape.
        let by_shape = runtime.memory.by_shape.filter(|_| gpu_memory_utilization.is_none());
        let memory = Reserve { utilization, by_shape, ..runtime.memory };
        Arc::new(Runtime { max_batched_tokens, max_sequences, memory, defaults_on: vec![], ..runtime })
    }

    /// Whether it does not support `format` on the device.
    pub fn excludes(&self, device: &Device, format: &str) -> bool {
        let hit =
            |e: &&Exclusion| e.families.contains(&device.family) && e.formats.iter().any(|f| f == format);
        self.excludes.iter().any(|e| hit(&e))
    }
}

/// Queueing of a request before its prompt is computed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scheduler {
    /// How it makes up its steps; absent where that is not simulated.
    pub policy: Option<StatedPolicy>,
    /// Fixed delay of a request before prefill.
    pub request_overhead: Figure<Seconds>,
    /// Queued prefills before a new one, per square root of the requests of a rank.
    pub prompt_queue: Figure<Ratio>,
    /// Decode steps before a new request is scheduled.
    pub step_wait: Figure<Ratio>,
    /// How long it holds new prompts back, where launch flags say so.
    #[serde(skip)]
    pub held: Option<StatedHold>,
}

/// Launch flags by which prompts wait for others, next to requests that decode: `--scheduler-recv-interval` of SGLang,
/// `batch_wait_timeout_iters` and `batch_wait_max_tokens_ratio` of TensorRT-LLM.
#[derive(Clone, Debug)]
pub struct StatedHold {
    /// Steps, at most.
    pub steps: Figure<Ratio>,
    /// Part of a step's tokens at which they wait no longer.
    pub tokens_ratio: Figure<Ratio>,
}

/// How a runtime makes up its steps.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatedPolicy {
    /// The scheduler whose rules it follows.
    pub like: SchedulerPolicy,
    /// Whether it makes up a step while the one before it runs.
    pub asynchronous: bool,
    /// Where that is written.
    pub source: String,
}

/// The rules of a scheduler, without their source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepPolicy {
    /// The scheduler whose rules it follows.
    pub like: SchedulerPolicy,
    /// Whether it makes up a step while the one before it runs.
    pub asynchronous: bool,
}

impl StatedPolicy {
    /// The rules alone.
    pub fn rules(&self) -> StepPolicy {
        StepPolicy { like: self.like, asynchronous: self.asynchronous }
    }
}

impl StepPolicy {
    /// The rules that the closed form follows. Its waits of llama.cpp are borrowed ones, from before its scheduler was
    /// simulated, and no run of its server under load is published that shows them to differ from others.
    pub fn in_formulas(self) -> Option<StepPolicy> {
        Some(self).filter(|policy| policy.like != SchedulerPolicy::Llamacpp)
    }
}

impl SchedulerPolicy {
    /// Whether prompts join the steps of requests that decode; else they have steps of their own.
    pub fn joins_prompts(self) -> bool {
        match self {
            SchedulerPolicy::Vllm | SchedulerPolicy::Trtllm | SchedulerPolicy::Llamacpp => true,
            SchedulerPolicy::Sglang => false,
        }
    }
}

/// A scheduler that is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SchedulerPolicy {
    /// Prompts join the steps of requests that decode, within a budget of tokens.
    Vllm,
    /// Prompts have steps of their own, before requests that decode.
    Sglang,
    /// A request starts when there is memory for all of it, and joins the steps of those that decode.
    Trtllm,
    /// A request has a slot with memory of its own, and joins the steps of those that decode.
    Llamacpp,
}

/// Memory other than weights and KV cache.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reserve {
    /// Fraction of the device memory that it uses.
    pub utilization: Figure<Ratio>,
    /// Memory that a server leaves free beyond that, by its shape; absent where the fraction is the same for all.
    pub by_shape: Option<ShapeReserve>,
    /// Bytes per sequence and logit for sampling; absent means only the fp32 logits.
    pub sampler: Option<Figure<Bytes>>,
    /// Draft tokens of a sequence that it verifies in its start-up profile; all of a step if absent.
    pub sampler_drafts: Option<Figure<Ratio>>,
    /// Buffers of the runtime, per device.
    pub buffers: Figure<Bytes>,
    /// Fraction of the cache lost to fragmentation.
    pub fragmentation: Option<Figure<Ratio>>,
    /// Fraction of the remaining output that is reserved when a request is admitted: 1 without preemption, 0 where
    /// blocks are allocated token by token; absent counts as 1.
    pub answer_reserved: Option<Figure<Ratio>>,
    /// It stores the common prefix of requests once, by default; absent where every request has its own.
    pub shared_prefixes: Option<PrefixSharing>,
    /// Longest requests that its KV cache holds when it starts; absent where it checks nothing.
    pub at_start: Option<HeldAtStart>,
    /// Pages of models whose layers keep entries for several tokens each, where layers of all kinds share one pool.
    pub page_pool: Option<PagePool>,
    /// Weights of each device that a plan with streamed weights keeps in host memory, whatever is free on the device;
    /// absent where it keeps those that do not fit.
    pub streamed: Option<Figure<Bytes>>,
    /// Measured / predicted memory; absent without measurements.
    pub measured: Option<MemoryQuantiles>,
}

/// Memory that a server leaves free for activations and graphs, beyond that of a server on one device.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShapeReserve {
    /// For each further device of its stages.
    pub per_device: Figure<Bytes>,
    /// For each sequence of its decode graphs.
    pub per_sequence: Figure<Bytes>,
    /// The same for each attention data-parallel rank, where there are several.
    pub per_rank_sequence: Figure<Bytes>,
    /// The same on top, where the graphs have more than `many_sequences`.
    pub per_rank_sequence_of_many: Figure<Bytes>,
    /// Number of sequences of graphs above which they take more.
    pub many_sequences: Figure<Ratio>,
    /// Ranks of a stage up to which the graphs have fewer sequences.
    pub narrow_ranks: Figure<Ratio>,
    /// Maximum number of sequences of decode graphs, by the memory of a device: the first match applies.
    pub graphs: Vec<DecodeGraphs>,
    /// Graphs of prompts, on devices of these vendors and in one stage.
    pub prompt_graph_vendors: Vec<String>,
    /// Graphs of prompts with latent attention.
    pub latent_prompts: Figure<Bytes>,
    /// Graphs of prompts with other attention.
    pub prompts: Figure<Bytes>,
    /// The same for each token of a step.
    pub per_prompt_token: Figure<Bytes>,
    /// Maximum share of a device that a server uses in any shape, as bytes that it leaves.
    pub least_free: Figure<Bytes>,
    /// Devices with more memory than this leave that.
    pub least_free_above: Figure<Bytes>,
}

/// Maximum number of sequences of decode graphs.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecodeGraphs {
    /// Devices with less memory than this; absent for all.
    pub below: Option<Figure<Bytes>>,
    /// With few ranks of a stage.
    pub narrow: Figure<Ratio>,
    /// With more of them.
    pub wide: Figure<Ratio>,
}

/// A pool of equal pages for caches of all kinds: a page has a block of every layer that keeps compressed entries. The
/// windows and the compressors' states of a sequence take whole pages of it too, block by block.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PagePool {
    /// Tokens of a block of compressed entries.
    pub block_tokens: u64,
    /// Tokens of a block of a window.
    pub window_block_tokens: u64,
    /// Tokens of a block of a compressor's state, by the tokens of an entry.
    pub states: Vec<StateBlock>,
    /// Steps whose tokens are in flight at once.
    pub steps_in_flight: u64,
    /// Bytes of an entry in formats with parts in others.
    #[serde(default)]
    pub entries: Vec<EntryBytes>,
    /// Where that is stated.
    pub source: String,
}

/// Block of a compressor's state.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateBlock {
    /// Tokens of an entry.
    pub every: u64,
    /// Tokens of a block.
    pub block_tokens: u64,
}

/// Bytes of an entry in a KV format.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EntryBytes {
    /// Id of the KV format.
    pub kv_format: String,
    /// Elements of an entry.
    pub width: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// The longest requests that the KV cache of a server must hold when it starts.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeldAtStart {
    /// Their number.
    pub requests: RequestsAtStart,
    /// Where that is stated.
    pub source: String,
}

/// The number of the longest requests that the KV cache of a server must hold when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestsAtStart {
    /// One; without a length in its command, one of the model's.
    One,
    /// One for each slot: the cache of every slot is allocated.
    EverySlot,
}

/// A runtime that stores the common prefix of requests once by default.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrefixSharing {
    /// Where that is stated.
    pub source: String,
}

/// Quantiles of measured / predicted memory of a device except the KV cache: p10, p50, p90.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryQuantiles {
    /// The quantiles.
    pub quantiles: [f64; 3],
    /// The data and their number.
    pub source: String,
}

/// Measured efficiencies relative to the roofline.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Constants {
    /// Measured devices.
    #[serde(default)]
    pub devices: Vec<String>,
    /// Generations for which it is the nearest.
    #[serde(default)]
    pub families: Vec<String>,
    /// Weight formats that it applies to; `*` for any.
    pub weight_formats: Vec<String>,
    /// Fraction of the dense peak that large matrix products reach.
    pub gemm_compute: Figure<Ratio>,
    /// Fraction of the bandwidth that matrix products reach.
    pub gemm_memory: Figure<Ratio>,
    /// Fraction of the dense peak that prefill attention reaches.
    pub attention_compute: Figure<Ratio>,
    /// Fraction of the bandwidth that decode attention reaches.
    pub attention_memory: Figure<Ratio>,
    /// Fraction of the dense peak that grouped expert products reach.
    pub moe_compute: Figure<Ratio>,
    /// Fraction of the bandwidth that grouped expert products reach.
    pub moe_memory: Figure<Ratio>,
    /// Delay between the kernels of a layer.
    pub launch_per_layer: Figure<Seconds>,
    /// Host time between steps.
    pub host_per_step: Figure<Seconds>,
    /// Base latency of a collective, independent of its size.
    pub collective_latency: Figure<Seconds>,
    /// Fraction of the link bandwidth that collectives reach.
    pub collective_bandwidth: Figure<Ratio>,
    /// Delay of decodes that share steps with a prefill, as a multiple of the prefill time.
    pub prefill_interference: Figure<Ratio>,
}
