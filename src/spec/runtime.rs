//! Serving runtimes: what they support, what they reserve, and how near to the roofline they come.

use schemars::JsonSchema;
use serde::Deserialize;

use super::device::Device;
use super::figure::{Bytes, Figure, Ratio, Seconds};
use super::nearness::{Interval, LeftOut, MeasuredAt};

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
    /// Makers, or single generations, of devices that it runs on.
    pub vendors: Vec<String>,
    /// Weight formats that it runs.
    pub weight_formats: Vec<String>,
    /// KV formats that it runs.
    pub kv_formats: Vec<String>,
    /// Degrees that it can be asked for: `tp`, `pp`, `dp`, `ep`, `moe_tp`, `cp`, `sp`, `disagg`.
    pub parallelism: Vec<String>,
    /// Makers or generations for whose devices it is chosen when none is named.
    #[serde(default)]
    pub default_for: Vec<String>,
    /// Formats that it does not run on some of them.
    #[serde(default)]
    pub excludes: Vec<Exclusion>,
    /// Tokens a page of the KV cache holds.
    pub block_tokens: Figure<Ratio>,
    /// Tokens that one step computes at most.
    pub max_batched_tokens: Figure<Ratio>,
    /// Sequences that it sets up for, whatever the traffic; absent where it follows the traffic.
    pub max_sequences: Option<Figure<Ratio>>,
    /// Other defaults of both on certain devices: the first that holds counts.
    #[serde(default)]
    pub defaults_on: Vec<DefaultsOn>,
    /// How long requests wait for it.
    pub scheduler: Scheduler,
    /// What it reserves.
    pub memory: Reserve,
    /// How near to the roofline it comes, per device.
    pub constants: Vec<Constants>,
    /// How measured servers differ from the constants; absent where none was fitted.
    pub serving_fit: Option<ServingFit>,
    /// Remarks.
    pub notes: Option<String>,
}

/// Defaults of a runtime on devices of less memory, or on certain devices.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DefaultsOn {
    /// Devices with less memory than this.
    pub below: Option<Figure<Bytes>>,
    /// Devices of any memory.
    #[serde(default)]
    pub devices: Vec<String>,
    /// Tokens that one step computes at most.
    pub max_batched_tokens: Figure<Ratio>,
    /// Sequences that it sets up for; absent where it is as on other devices.
    pub max_sequences: Option<Figure<Ratio>>,
    /// Fraction of the capacity that it uses; absent where it is as on other devices.
    pub utilization: Option<Figure<Ratio>>,
}

/// What a runtime takes on a device where nobody states otherwise.
#[derive(Clone, Copy, Debug)]
pub struct EffectiveDefaults<'a> {
    /// Tokens that one step computes at most.
    pub max_batched_tokens: &'a Figure<Ratio>,
    /// Sequences that it sets up for, where it fixes them.
    pub max_sequences: Option<&'a Figure<Ratio>>,
    /// Fraction of the capacity that it uses.
    pub utilization: &'a Figure<Ratio>,
}

impl DefaultsOn {
    fn holds(&self, device: &Device) -> bool {
        let less =
            |most: &Figure<Bytes>| device.memory.capacity.as_ref().is_some_and(|has| has.value < most.value);
        self.devices.contains(&device.id) || self.below.as_ref().is_some_and(less)
    }
}

/// What a fit on published serving measurements adds to the constants.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServingFit {
    /// The data, their number and what error is left.
    pub source: String,
    /// What each kernel of a layer waits for.
    pub kernel_launch: Figure<Seconds>,
    /// What each product of quantised weights waits for besides: activations are quantised first.
    pub quantised_launch: Figure<Seconds>,
    /// What routing to experts waits for, per layer.
    pub experts_launch: Figure<Seconds>,
    /// What the host needs for each sequence of a step.
    pub host_per_sequence: Figure<Seconds>,
    /// What each request in flight adds to the wait for a first token.
    pub request_work: Figure<Seconds>,
    /// Prompts ahead of a new one, per request of a rank.
    pub prompt_burst: Figure<Ratio>,
    /// Devices of the data of this runtime.
    pub measured_on: Vec<String>,
    /// Devices of the data of any runtime.
    pub measured_anywhere: Vec<String>,
    /// Models of the data of any runtime.
    #[serde(default)]
    pub models: Vec<String>,
    /// What of the data is this runtime's.
    #[serde(default)]
    pub measured: Vec<MeasuredAt>,
    /// How far what is measured lies from what is predicted, nearest first.
    pub intervals: Vec<Interval>,
    /// What the fit predicted of rows while their like was left out.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// Factors on the time that a constant stands for; all that hold are multiplied.
    pub factors: Vec<CalibrationFactor>,
}

/// A factor on the time that one constant stands for, where its conditions hold.
#[derive(Clone, Debug, PartialEq, Deserialize, serde::Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CalibrationFactor {
    /// The constant.
    pub of: CalibratedConstant,
    /// The class of device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    /// The weight format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_format: Option<String>,
    /// The kind of attention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention: Option<AttentionKind>,
    /// Whether all requests have the same lengths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equal_lengths: Option<bool>,
    /// The runtime's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How many times as long it takes.
    pub times: f64,
}

/// Constants that a fit may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum CalibratedConstant {
    GemmCompute,
    GemmMemory,
    AttentionCompute,
    AttentionMemory,
    MoeCompute,
    MoeMemory,
    CollectiveLatency,
    CollectiveBandwidth,
    LaunchPerLayer,
    KernelLaunch,
    QuantisedLaunch,
    ExpertsLaunch,
    HostPerStep,
    HostPerSequence,
    PrefillInterference,
    RequestOverhead,
    PromptQueue,
    PromptBurst,
    StepWait,
    RequestWork,
}

/// Kinds of attention that runtimes have kernels of their own for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttentionKind {
    /// Over all that came before.
    Full,
    /// Some layers only over a window.
    Sliding,
    /// Over a compressed latent.
    Latent,
}

/// What of a model and its traffic the factors depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalibrationKey {
    /// Its attention.
    pub attention: AttentionKind,
    /// Whether it routes to experts.
    pub experts: bool,
    /// Whether all requests have the same lengths.
    pub equal_lengths: bool,
    /// The runtime's version, where stated.
    pub version: Option<String>,
}

impl CalibratedConstant {
    /// Whether it is a fraction of what the device could do: it falls as its time grows, and cannot pass 1.
    pub fn is_efficiency(self) -> bool {
        matches!(
            self,
            CalibratedConstant::GemmCompute
                | CalibratedConstant::GemmMemory
                | CalibratedConstant::AttentionCompute
                | CalibratedConstant::AttentionMemory
                | CalibratedConstant::MoeCompute
                | CalibratedConstant::MoeMemory
                | CalibratedConstant::CollectiveBandwidth
        )
    }
}

impl CalibrationFactor {
    /// None, whatever the conditions.
    pub fn of(of: CalibratedConstant) -> CalibrationFactor {
        CalibrationFactor {
            of,
            class: None,
            family: None,
            weight_format: None,
            attention: None,
            equal_lengths: None,
            version: None,
            times: 1.0,
        }
    }

    /// Whether its conditions hold.
    pub fn holds(&self, (class, family): (&str, &str), weight_format: &str, traits: &CalibrationKey) -> bool {
        let is = |stated: &Option<String>, name: &str| stated.as_deref().is_none_or(|s| s == name);
        is(&self.class, class)
            && is(&self.family, family)
            && is(&self.weight_format, weight_format)
            && self.attention.is_none_or(|kind| kind == traits.attention)
            && self.equal_lengths.is_none_or(|equal| equal == traits.equal_lengths)
            && (self.version.is_none() || self.version == traits.version)
    }
}

impl ServingFit {
    /// How many times as long `of` takes than its constant says.
    pub fn times(
        &self,
        of: CalibratedConstant,
        device: &Device,
        weight_format: &str,
        traits: &CalibrationKey,
    ) -> f64 {
        let device = (device.class.as_str(), device.family.as_str());
        let holds = |f: &&CalibrationFactor| f.of == of && f.holds(device, weight_format, traits);
        self.factors.iter().filter(holds).map(|factor| factor.times).product()
    }
}

/// Formats that a runtime does not run on some generations.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exclusion {
    /// The generations.
    pub families: Vec<String>,
    /// The formats.
    pub formats: Vec<String>,
    /// Who says so.
    pub source: String,
}

impl Runtime {
    /// Whether it runs on `device`.
    pub fn runs_on(&self, device: &Device) -> bool {
        self.vendors.iter().any(|name| *name == device.vendor || *name == device.family)
    }

    /// What it takes on `device`.
    pub fn taken(&self, device: &Device) -> EffectiveDefaults<'_> {
        let on = self.defaults_on.iter().find(|one| one.holds(device));
        let sequences = on.and_then(|on| on.max_sequences.as_ref());
        EffectiveDefaults {
            max_batched_tokens: on.map_or(&self.max_batched_tokens, |on| &on.max_batched_tokens),
            max_sequences: sequences.or(self.max_sequences.as_ref()),
            utilization: on.and_then(|on| on.utilization.as_ref()).unwrap_or(&self.memory.utilization),
        }
    }

    /// Whether it leaves `format` out on `device`.
    pub fn excludes(&self, device: &Device, format: &str) -> bool {
        let hit =
            |e: &&Exclusion| e.families.contains(&device.family) && e.formats.iter().any(|f| f == format);
        self.excludes.iter().any(|e| hit(&e))
    }
}

/// How long a request waits before its prompt is through.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scheduler {
    /// What a request takes before its prompt is computed.
    pub request_overhead: Figure<Seconds>,
    /// Prompts ahead of a new one, per square root of the requests of a rank.
    pub prompt_queue: Figure<Ratio>,
    /// Decode steps that a new request waits for.
    pub step_wait: Figure<Ratio>,
}

/// Memory that is not for weights and cache.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reserve {
    /// Fraction of the capacity that it uses.
    pub utilization: Figure<Ratio>,
    /// Bytes reserved per sequence and logit for sampling; absent means the fp32 logits alone.
    pub sampler: Option<Figure<Bytes>>,
    /// Buffers of the runtime, per device.
    pub buffers: Figure<Bytes>,
    /// Captured graphs, per device.
    pub graphs: Option<Figure<Bytes>>,
    /// Fraction of the cache lost to fragmentation.
    pub fragmentation: Option<Figure<Ratio>>,
    /// Fraction of the rest of an answer that is reserved when a request is admitted: 1 where no request is ever
    /// preempted, 0 where blocks are handed out as tokens come; absent where nothing is known, which counts as 1.
    pub answer_reserved: Option<Figure<Ratio>>,
    /// How far what was measured lies from what is predicted; absent where nothing was measured.
    pub measured: Option<MemoryQuantiles>,
}

/// Quantiles of measured over predicted of what a device holds beside the cache: p10, p50, p90.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryQuantiles {
    /// The quantiles.
    pub quantiles: [f64; 3],
    /// The data and their number.
    pub source: String,
}

/// Measured distance from the roofline.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Constants {
    /// Devices it was measured on.
    #[serde(default)]
    pub devices: Vec<String>,
    /// Generations it is the nearest for.
    #[serde(default)]
    pub families: Vec<String>,
    /// Weight formats it holds for; `*` for any.
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
    /// What a layer's kernels wait between them.
    pub launch_per_layer: Figure<Seconds>,
    /// What the host needs between steps.
    pub host_per_step: Figure<Seconds>,
    /// What a collective takes however small it is.
    pub collective_latency: Figure<Seconds>,
    /// Fraction of the link rate that collectives reach.
    pub collective_bandwidth: Figure<Ratio>,
    /// How many times its own time a prefill delays the decodes it shares steps with.
    pub prefill_interference: Figure<Ratio>,
    /// What the fit was.
    pub source_note: Option<String>,
}
