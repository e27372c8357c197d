//! The settings of a launch that a price rests on, or that a process needs.

use crate::spec::degree::Degree;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A setting of a launch that the price rests on, or that the process needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// The model: an id of a hub, or a path.
    Model,
    /// The name under which clients call the model, where workers load several checkpoints.
    ServedName,
    /// Tensor-parallel ranks.
    Tp,
    /// Pipeline stages.
    Pp,
    /// Whether layers are in stages, where the number of hosts alone does not say it.
    Pipeline,
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
    /// Tensor-parallel ranks of dense feed-forward layers, where they are not those of attention.
    FfnTp,
    /// Tensor-parallel ranks of the embedding and the LM head, where they are not those of attention.
    VocabTp,
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
    /// Devices of the process in the order of the stages.
    Devices,
    /// Servers on further hosts whose devices the process uses.
    RemoteDevices,
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
    /// Keys of the model's configuration with other values, as a JSON object.
    ModelOverrides,
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
    pub fn of(degree: Degree) -> Setting {
        match degree {
            Degree::Tp => Setting::Tp,
            Degree::Pp => Setting::Pp,
            Degree::Dp => Setting::Dp,
            Degree::Cp => Setting::Cp,
            Degree::Dcp => Setting::Dcp,
            Degree::Ep => Setting::Ep,
            Degree::MoeTp => Setting::MoeTp,
            Degree::FfnTp => Setting::FfnTp,
            Degree::VocabTp => Setting::VocabTp,
            Degree::Sp => Setting::Sp,
            Degree::Devices => Setting::Ranks,
        }
    }

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
            | Setting::FfnTp
            | Setting::VocabTp
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
            | Setting::ModelOverrides
            | Setting::Hosts => true,
            Setting::Model
            | Setting::ServedName
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
            | Setting::Pipeline
            | Setting::Devices
            | Setting::RemoteDevices
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
            | Setting::FfnTp
            | Setting::VocabTp
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
            | Setting::Pipeline
            | Setting::ChunkedPrefill => SettingKind::Switch,
            Setting::StageLayers | Setting::TensorSplit => SettingKind::Counts,
            Setting::Model
            | Setting::ServedName
            | Setting::WeightFormat
            | Setting::KvFormat
            | Setting::GpuLayers
            | Setting::SplitMode
            | Setting::Devices
            | Setting::RemoteDevices
            | Setting::OffloadedPart
            | Setting::Role
            | Setting::HostExpertLayers
            | Setting::DraftMethod
            | Setting::DraftModel
            | Setting::ModelOverrides
            | Setting::YamlFile
            | Setting::DpAddress
            | Setting::KvTransfer
            | Setting::TransferAddress
            | Setting::FirstHost
            | Setting::Address => SettingKind::Word,
        }
    }
}
