//! Memory that a server sets aside when it starts, and what it checks before it serves, by version.

use schemars::JsonSchema;
use serde::Deserialize;

use super::figure::{Bytes, Figure, Ratio};
use super::rule::VersionRange;

/// The start of a runtime.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StartRules {
    /// Memory of a device that its own tool counts and the driver keeps.
    pub driver: Option<DriverReserve>,
    /// Options without which decoding is captured in graphs.
    pub eager: Vec<String>,
    /// Options with which encoders are not loaded.
    pub text_only: Vec<String>,
    /// The option that limits the images of a request: 0 loads encoders and does not run them.
    pub image_limit: Option<String>,
    /// Bytes per sequence and logit of the sampler in its profile, where they are not those of the runtime's file.
    pub sampler: Vec<StartFigure>,
    /// Memory of the device outside weights, activations and cache, where it is not that of the runtime's file.
    pub context: Option<ContextMemory>,
    /// Bytes of a logit, where the runtime reserves those of every token of a step.
    pub logits: Option<StepLogits>,
    /// Share of the device memory of a command that states none, where it is not that of the runtime's file.
    pub utilization: Vec<StartShare>,
    /// Matrices of experts that are padded.
    pub padding: Vec<ExpertPadding>,
    /// Matrices of experts that are in memory twice.
    pub kept: Vec<KeptWeights>,
    /// Slots of recurrent states that are allocated before the cache.
    pub states: Option<StateSlots>,
    /// The checkpoint's own draft module, where no setting carries it.
    pub draft_module: Option<DraftModule>,
    /// Memory of the graphs that are counted before the cache.
    pub graphs: Vec<GraphReserve>,
    /// The largest item that encoders are profiled with, by `model_type`.
    pub encoders: Vec<EncoderProfile>,
    /// Pages that layers of several kinds share.
    pub pages: Option<SharedPool>,
    /// Dtypes that are refused on some devices.
    pub dtypes: Vec<DtypeRule>,
    /// Formats of cached values that need flash attention.
    pub value_cache: Option<ValueCacheRule>,
    /// Memory of attention that is allocated after the cache.
    pub attention_parts: Option<AttentionParts>,
    /// Tables of rotary encodings that layers have each for itself.
    pub rotary: Option<RotaryTables>,
    /// Copies on the device while weights are loaded.
    pub load: Option<LoadCopies>,
    /// Groups of quantised weights that no kernel takes.
    pub groups: Option<GroupRule>,
}

/// Cosines and sines of every position, which each layer that keeps all tokens has for itself.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RotaryTables {
    /// `model_type` of the configuration: one of these.
    pub model_types: Vec<String>,
    /// Bytes of an element; a position has as many as a head is wide.
    pub element_bytes: u64,
    /// Source.
    pub source: String,
}

/// A matrix is copied to the device and then into its place there, when all matrices are allocated.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadCopies {
    /// Vendors of the devices.
    pub vendors: Vec<String>,
    /// Device generations that share the memory of the host, where nothing is copied.
    #[serde(default)]
    pub except_families: Vec<String>,
    /// Source.
    pub source: String,
}

/// Weights in groups along their inputs. Kernels take whole groups only, and the last group of a matrix whose inputs are no
/// multiple of it is shorter.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupRule {
    /// Weight formats.
    pub formats: Vec<String>,
    /// Words of a checkpoint's name that state its group where its configuration is not known, and this group.
    pub names: Vec<String>,
    pub named_group: u64,
    /// Vendors of the devices.
    pub vendors: Vec<String>,
    /// Device generations with a kernel that takes dense matrices whose inputs and outputs are multiples of these.
    pub tiled_families: Vec<String>,
    pub tiles: [u64; 2],
    /// Source.
    pub source: String,
}

/// Partial results of attention, for every request that the cache may have and every part of the longest context.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttentionParts {
    /// Vendors of the devices.
    pub vendors: Vec<String>,
    /// Options of the back end of attention, and its word for this one; it is the default too.
    pub options: Vec<String>,
    pub word: String,
    /// Tokens of a part.
    pub part_tokens: u64,
    /// Bytes of an element.
    pub element_bytes: u64,
    /// Requests of a command that states none: these for each context that the cache holds, within
    /// these limits.
    pub requests_per_context: u64,
    pub requests: [u64; 2],
    /// Source.
    pub source: String,
}

/// Dtypes that are refused on some devices.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DtypeRule {
    /// Versions; all if absent.
    pub versions: Option<VersionRange>,
    /// Device generations.
    pub families: Vec<String>,
    /// The dtypes, by the words of the setting and of configurations.
    pub dtypes: Vec<String>,
    /// Whether only a command that states one is refused: else the server takes another one.
    #[serde(default)]
    pub stated: bool,
    /// The rule in words.
    pub words: String,
    /// Source.
    pub source: String,
}

/// Formats of cached values that need flash attention.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ValueCacheRule {
    /// Options of the format of keys.
    pub keys: Vec<String>,
    /// Options of the format of values.
    pub values: Vec<String>,
    /// Options of flash attention.
    pub attention: Vec<String>,
    /// Its words without flash attention.
    pub off: Vec<String>,
    /// The formats.
    pub quantised: Vec<String>,
    /// Those with a kernel where keys have the same format.
    pub with_same_keys: Vec<String>,
    /// Vendors for whose devices the standard build has no other kernels.
    pub vendors: Vec<String>,
    /// Source.
    pub source: String,
}

/// Memory that the driver keeps.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DriverReserve {
    /// Vendors of the devices.
    pub vendors: Vec<String>,
    /// Device generations whose capacity is already without it.
    #[serde(default)]
    pub except_families: Vec<String>,
    /// Its size.
    pub bytes: Figure<Bytes>,
}

/// Logits of every token of a step.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepLogits {
    /// Bytes of one.
    pub bytes: Figure<Bytes>,
    /// Tokens of a step of a command that states none.
    pub usual: u64,
}

/// Memory of contexts and communicators.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextMemory {
    /// With one tensor-parallel rank.
    pub one: Figure<Bytes>,
    /// With several.
    pub several: Figure<Bytes>,
}

/// A figure of some versions.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartFigure {
    /// Versions; all if absent.
    pub versions: Option<VersionRange>,
    pub bytes: Figure<Bytes>,
}

/// A share of some versions.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartShare {
    /// Versions; all if absent.
    pub versions: Option<VersionRange>,
    pub share: Figure<Ratio>,
}

/// Matrices of routed experts that are kept as they were read, next to those that kernels use.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeptWeights {
    /// Versions.
    pub versions: VersionRange,
    /// `model_type` of the models.
    pub model_types: Vec<String>,
    /// Weight formats.
    pub formats: Vec<String>,
    /// Source.
    pub source: String,
}

/// Matrices of routed experts whose sides are rounded up.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpertPadding {
    /// Weight formats.
    pub formats: Vec<String>,
    /// Vendors of the devices.
    pub vendors: Vec<String>,
    /// Step of the width of the stream.
    pub hidden: u64,
    /// Step of the width of an expert on a device.
    pub intermediate: u64,
    /// Source.
    pub source: String,
}

/// The checkpoint's own draft module, which has a cache of its own.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DraftModule {
    /// Options of the kind of drafts.
    pub options: Vec<String>,
    /// Their words for the module.
    pub words: Vec<String>,
    /// Bytes of an element of its cache.
    pub element_bytes: u64,
    /// Source.
    pub source: String,
}

/// Slots of recurrent states.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateSlots {
    /// Options of their number.
    pub slots: Vec<String>,
    /// Slots of a sequence with a prefix cache, and without.
    pub each: [u64; 2],
    /// Options without a prefix cache.
    pub uncached: Vec<String>,
    /// Options of the dtype of states that are kept in single precision otherwise, and its words for 16 bits.
    pub dtype: Vec<String>,
    pub half: Vec<String>,
    /// Source.
    pub source: String,
}

/// Memory of graphs that is counted before the cache.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GraphReserve {
    /// Versions; all if absent.
    pub versions: Option<VersionRange>,
    /// Bytes of a graph.
    pub each: Figure<Bytes>,
    /// Maximum number of tokens of a graph.
    pub most_tokens: u64,
}

/// The largest item that encoders are profiled with.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EncoderProfile {
    /// `model_type` of the configuration: one of these.
    pub model_types: Vec<String>,
    /// Tokens that the language model gets for it.
    pub tokens: u64,
    /// Source.
    pub source: String,
}

/// A pool of equal pages for layers of several kinds: those that keep all tokens, those with a window, and states.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedPool {
    /// Versions; all if absent.
    pub versions: Option<VersionRange>,
    /// Tokens of a block without states, and the step of larger blocks.
    pub block_tokens: u64,
    /// Blocks of a request's state, without drafts: with a prefix cache, and without.
    pub state_blocks: [u64; 2],
    /// Groups take as many layers as the most frequent kind, not the rarest, where that has fewer than this many times
    /// more.
    pub padded_below: f64,
    /// Versions with at least one block for each sequence of their graphs.
    pub sequences_in_blocks: Option<VersionRange>,
    /// Versions that profile their graphs with one block for each sequence, while the model's weights are loaded.
    pub profiled_in_blocks: Option<VersionRange>,
    /// Source.
    pub source: String,
}
