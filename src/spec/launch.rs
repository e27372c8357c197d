//! How a runtime is started: its program, its container image, and the option that carries each setting. The same rows
//! write launch commands and read them back.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The launch of a runtime, in the version of its option table.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Id of the runtime; the file name without `.json`.
    pub id: String,
    /// Id of its option table.
    pub table: String,
    /// Container images, the first whose vendor matches.
    #[serde(default)]
    pub images: Vec<ContainerImage>,
    /// Words that start the same program as those of the option table.
    #[serde(default)]
    pub other_programs: Vec<Vec<String>>,
    /// Port that it listens on by default.
    pub port: u16,
    /// Path that answers when the server is ready.
    pub health: String,
    /// The options of each setting, in the order of a command.
    pub settings: Vec<LaunchOption>,
}

/// A container image with the runtime.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContainerImage {
    /// Vendors of the devices.
    pub vendors: Vec<String>,
    /// Its name and tag.
    pub image: String,
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
    /// The reason that the option is there, for people.
    pub why: String,
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
    /// Draft tokens of speculative decoding by the model's own module.
    DraftTokens,
    /// Layers on the GPU.
    GpuLayers,
    /// Layers of each device, as shares.
    TensorSplit,
    /// Way in which several devices share the layers.
    SplitMode,
    /// First layers whose experts are in host memory.
    HostExperts,
    /// Weights in host memory, in GiB per device.
    OffloadedGib,
    /// Role of a disaggregated worker.
    Role,
    /// Transfer of KV caches.
    KvTransfer,
    /// Number of hosts.
    Hosts,
    /// Rank of this host.
    HostRank,
    /// Address of the first host.
    FirstHost,
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
            | Setting::HostExperts
            | Setting::Hosts
            | Setting::HostRank
            | Setting::Port => SettingKind::Count,
            Setting::MemoryShare | Setting::OffloadedGib => SettingKind::Real,
            Setting::AttentionDp
            | Setting::ExpertParallel
            | Setting::PrefixCache
            | Setting::ChunkedPrefill => SettingKind::Switch,
            Setting::StageLayers | Setting::TensorSplit => SettingKind::Counts,
            Setting::Model
            | Setting::WeightFormat
            | Setting::KvFormat
            | Setting::GpuLayers
            | Setting::SplitMode
            | Setting::Role
            | Setting::KvTransfer
            | Setting::FirstHost
            | Setting::Address => SettingKind::Word,
        }
    }
}
