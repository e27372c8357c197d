//! How a runtime is started: its program, its container image, and the option that carries each setting. The same rows
//! write launch commands and read them back.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The launch of a runtime, in the version of its option table.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Id of the launch; the file name without `.json`.
    pub id: String,
    /// Ids of the runtimes that are started so: a runtime and its vendor builds.
    pub runtimes: Vec<String>,
    /// Id of its option table.
    pub table: String,
    /// Container images, the first whose vendor matches.
    #[serde(default)]
    pub images: Vec<ContainerImage>,
    /// Words that start the same program as those of the option table.
    #[serde(default)]
    pub other_programs: Vec<Vec<String>>,
    /// The file in which it takes a model, where this is none of a hub's checkpoints.
    pub model_file: Option<ModelPath>,
    /// Port that it listens on by default.
    pub port: u16,
    /// Path that answers when the server is ready.
    pub health: String,
    /// First port of transfers of KV caches.
    #[serde(default)]
    pub transfer_port: Option<u16>,
    /// Router in front of like replicas.
    pub router: Option<Router>,
    /// Router in front of prefill and decode workers.
    pub disaggregated_router: Option<Router>,
    /// Module with which Dynamo starts the runtime, and the flags that it takes itself.
    pub dynamo: Option<DynamoWorker>,
    /// Image of llm-d's sidecar, where llm-d serves the runtime.
    pub llm_d_sidecar: Option<String>,
    /// Benchmark commands that pose the problem to the running server, as templates.
    #[serde(default)]
    pub benchmarks: Vec<Benchmark>,
    /// The options of each setting, in the order of a command.
    pub settings: Vec<LaunchOption>,
}

/// A model as a file or folder that the user provides.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelPath {
    /// Its description, with `{model}` and `{format}` in their places.
    pub hint: String,
    /// Whether it is one file, not a folder.
    pub one_file: bool,
}

/// A router. Its templates see `host`, `port`, and the URLs `servers`, or `prefill` and `decode`, as shell words.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Router {
    /// Its package with version.
    pub package: String,
    /// Container image; the runtime's own if absent.
    pub image: Option<String>,
    /// Command that installs it in the image, if needed.
    pub install: Option<String>,
    /// Template of its command.
    pub command: String,
    /// Templates of its files.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Source.
    pub source: String,
}

/// A worker of Dynamo.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DynamoWorker {
    /// Its framework's name in a graph.
    pub framework: String,
    /// Container image.
    pub image: String,
    /// Words of its command.
    pub program: Vec<String>,
    /// Flags that take the place of the runtime's, by the runtime's flag; an empty one drops it.
    #[serde(default)]
    pub flags: BTreeMap<String, String>,
    /// Source.
    pub source: String,
}

/// A benchmark command.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Benchmark {
    /// Its program.
    pub name: String,
    /// Template of the command.
    pub command: String,
    /// Source.
    pub source: String,
}

/// A container image with the runtime.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContainerImage {
    /// Vendors of the devices.
    pub vendors: Vec<String>,
    /// Its name and tag.
    pub image: String,
    /// Kubernetes resource of one device.
    pub resource: String,
    /// Environment variable with the devices that a process sees.
    pub visible_devices: Option<String>,
    /// Source.
    pub source: String,
}

/// The option of one setting.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaunchOption {
    /// The setting.
    pub setting: Setting,
    /// Its place in the launch.
    pub place: OptionPlace,
    /// The runtime's words for ids of formats and other names. A value that is not listed here has no option.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
    /// Text around the value, with `{}` in its place.
    pub template: Option<String>,
    /// The reason that the option is there, for people.
    pub why: String,
}

impl LaunchOption {
    /// The text before and after its value.
    pub fn around(&self) -> (&str, &str) {
        self.template.as_deref().and_then(|around| around.split_once("{}")).unwrap_or_default()
    }
}

/// The place of an option in a launch.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OptionPlace {
    /// The first word after the program.
    Positional,
    /// A flag with a value.
    Flag(String),
    /// A flag without a value, for a setting that is on.
    Switch(String),
    /// A flag without a value, for a setting that is off.
    OffSwitch(String),
    /// An environment variable.
    Environment(String),
    /// A key in the runtime's own YAML file, as a dotted path.
    Yaml(String),
    /// A key of the JSON object that a flag takes.
    Json {
        /// The flag.
        flag: String,
        /// The key.
        key: String,
    },
}

/// A setting of a launch that the price rests on, or that the process needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// The model: an id of a hub, or a path.
    Model,
    /// Tensor-parallel ranks.
    Tp,
    /// Pipeline stages.
    Pp,
    /// Layers of each pipeline stage.
    StageLayers,
    /// Attention data-parallel ranks.
    Dp,
    /// Whether attention is data parallel.
    AttentionDp,
    /// Expert-parallel ranks.
    Ep,
    /// Whether experts are parallel over all ranks.
    ExpertParallel,
    /// Prefill context-parallel ranks.
    Cp,
    /// Decode context-parallel ranks.
    Dcp,
    /// Ranks of a server in all, where the runtime counts attention data parallelism inside them.
    Ranks,
    /// Format of the weights, where it is not the checkpoint's own.
    WeightFormat,
    /// Format of the KV cache.
    KvFormat,
    /// Maximum number of sequences per scheduler.
    MaxSequences,
    /// Maximum number of tokens per step and scheduler.
    TokenBudget,
    /// Share of the device memory that the runtime uses.
    MemoryShare,
    /// Longest prompt plus output, in tokens.
    Context,
    /// The same for all slots of a server.
    TotalContext,
    /// Prefix cache.
    PrefixCache,
    /// Prompts longer than a step's tokens run in chunks.
    ChunkedPrefill,
    /// Method of speculative decoding: `mtp`, the model's own module.
    DraftMethod,
    /// Draft model of speculative decoding.
    DraftModel,
    /// Draft tokens per step.
    DraftTokens,
    /// Alternatives per draft token.
    DraftBranches,
    /// Tokens that the model checks per step: the draft's and its own.
    CheckedTokens,
    /// Layers on the device: a number, or `all`.
    GpuLayers,
    /// Sequence parallelism.
    Sp,
    /// Tensor-parallel ranks inside experts.
    MoeTp,
    /// Layers of each device, as shares.
    TensorSplit,
    /// Way in which several devices share the layers.
    SplitMode,
    /// First layers whose experts are in host memory.
    HostExperts,
    /// Layers whose experts are in host memory, as alternatives of a regular expression.
    HostExpertLayers,
    /// Weights in host memory, in GiB per device.
    OffloadedGib,
    /// Part of the model in host memory: `experts` or `kv`; whole layers without it.
    OffloadedPart,
    /// Role of a disaggregated worker.
    Role,
    /// Transfer of KV caches.
    KvTransfer,
    /// Address of this host for transfers of KV caches.
    TransferAddress,
    /// Port for transfers of KV caches.
    TransferPort,
    /// Tokens of a transfer buffer.
    TransferTokens,
    /// Whether the scheduler waits for each step: prefill workers of some runtimes must.
    OverlapOff,
    /// Number of hosts.
    Hosts,
    /// Rank of this host.
    HostRank,
    /// Address of the first host.
    FirstHost,
    /// Whether the process serves no requests itself: it is on a further host.
    Follower,
    /// Attention data-parallel ranks of one host.
    LocalDp,
    /// The first attention data-parallel rank of a host.
    FirstDpRank,
    /// Address of the first host, for attention data parallelism.
    DpAddress,
    /// The runtime's own YAML file.
    YamlFile,
    /// Address to listen on.
    Address,
    /// Port to listen on.
    Port,
}

/// Type of a setting's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    /// A number of ranks, sequences, tokens or hosts.
    Count,
    /// A fraction or an amount.
    Real,
    /// A name, id or address.
    Word,
    /// On or off.
    Switch,
    /// One number for each stage or device.
    Counts,
}

impl SettingKind {
    /// Its values, in words.
    pub fn words(self) -> &'static str {
        match self {
            SettingKind::Count => "a whole number",
            SettingKind::Real => "a number",
            SettingKind::Word => "a known name",
            SettingKind::Switch => "true or false",
            SettingKind::Counts => "whole numbers with commas",
        }
    }
}

impl Setting {
    /// Its name in launch files of the catalogue, with spaces.
    pub fn words(self) -> String {
        let name = serde_json::to_value(self).ok();
        name.and_then(|name| Some(name.as_str()?.replace('_', " "))).unwrap_or_default()
    }

    /// Whether another plan runs without it.
    pub fn is_plan(self) -> bool {
        match self {
            Setting::Tp
            | Setting::Pp
            | Setting::StageLayers
            | Setting::Dp
            | Setting::AttentionDp
            | Setting::Ep
            | Setting::ExpertParallel
            | Setting::MoeTp
            | Setting::Sp
            | Setting::Cp
            | Setting::Dcp
            | Setting::Ranks
            | Setting::WeightFormat
            | Setting::KvFormat
            | Setting::DraftMethod
            | Setting::DraftModel
            | Setting::DraftTokens
            | Setting::HostExperts
            | Setting::HostExpertLayers
            | Setting::OffloadedGib
            | Setting::OffloadedPart
            | Setting::Role
            | Setting::Hosts => true,
            Setting::Model
            | Setting::MaxSequences
            | Setting::TokenBudget
            | Setting::MemoryShare
            | Setting::Context
            | Setting::TotalContext
            | Setting::PrefixCache
            | Setting::ChunkedPrefill
            | Setting::DraftBranches
            | Setting::CheckedTokens
            | Setting::GpuLayers
            | Setting::TensorSplit
            | Setting::SplitMode
            | Setting::KvTransfer
            | Setting::TransferAddress
            | Setting::TransferPort
            | Setting::TransferTokens
            | Setting::OverlapOff
            | Setting::HostRank
            | Setting::FirstHost
            | Setting::Follower
            | Setting::LocalDp
            | Setting::FirstDpRank
            | Setting::DpAddress
            | Setting::YamlFile
            | Setting::Address
            | Setting::Port => false,
        }
    }

    /// The type of its value.
    pub fn kind(self) -> SettingKind {
        match self {
            Setting::Tp
            | Setting::Pp
            | Setting::Dp
            | Setting::Ep
            | Setting::Cp
            | Setting::Dcp
            | Setting::Ranks
            | Setting::MaxSequences
            | Setting::TokenBudget
            | Setting::Context
            | Setting::TotalContext
            | Setting::DraftTokens
            | Setting::DraftBranches
            | Setting::CheckedTokens
            | Setting::HostExperts
            | Setting::MoeTp
            | Setting::LocalDp
            | Setting::TransferPort
            | Setting::TransferTokens
            | Setting::FirstDpRank
            | Setting::Hosts
            | Setting::HostRank
            | Setting::Port => SettingKind::Count,
            Setting::MemoryShare | Setting::OffloadedGib => SettingKind::Real,
            Setting::AttentionDp
            | Setting::Sp
            | Setting::Follower
            | Setting::OverlapOff
            | Setting::ExpertParallel
            | Setting::PrefixCache
            | Setting::ChunkedPrefill => SettingKind::Switch,
            Setting::StageLayers | Setting::TensorSplit => SettingKind::Counts,
            Setting::Model
            | Setting::WeightFormat
            | Setting::KvFormat
            | Setting::GpuLayers
            | Setting::SplitMode
            | Setting::OffloadedPart
            | Setting::Role
            | Setting::HostExpertLayers
            | Setting::DraftMethod
            | Setting::DraftModel
            | Setting::YamlFile
            | Setting::DpAddress
            | Setting::KvTransfer
            | Setting::TransferAddress
            | Setting::FirstHost
            | Setting::Address => SettingKind::Word,
        }
    }
}
