//! The settings of a launch that a price rests on, or that a process needs.

use crate::spec::degree::Degree;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares the settings: of each the type of its value, and whether another plan runs without it, only another price
/// follows without it, or just the process needs it.
macro_rules! settings {
    (@plan plan) => { true };
    (@plan priced) => { false };
    (@plan run) => { false };
    (@priced plan) => { true };
    (@priced priced) => { true };
    (@priced run) => { false };
    ($($(#[$attribute:meta])* $Setting:ident: $kind:ident $plan:ident;)*) => {
        /// A setting of a launch that the price rests on, or that the process needs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Setting {$(
            $(#[$attribute])*
            $Setting,
        )*}

        impl Setting {
            /// Whether another plan runs without it.
            pub fn is_plan(self) -> bool {
                match self {
                    $(Setting::$Setting => settings!(@plan $plan),)*
                }
            }

            /// Whether the price is another without it.
            pub fn is_priced(self) -> bool {
                match self {
                    $(Setting::$Setting => settings!(@priced $plan),)*
                }
            }

            /// The type of its value.
            pub fn kind(self) -> SettingKind {
                match self {
                    $(Setting::$Setting => SettingKind::$kind,)*
                }
            }
        }
    };
}

settings! {
    /// The model: an id of a hub, or a path.
    Model: Word priced;
    /// The name under which clients call the model, where workers load several checkpoints.
    ServedName: Word run;
    /// Tensor-parallel ranks.
    Tp: Count plan;
    /// Pipeline stages.
    Pp: Count plan;
    /// Whether layers are in stages, where the number of hosts alone does not say it.
    Pipeline: Switch run;
    /// Layers of each pipeline stage.
    StageLayers: Counts plan;
    /// Attention data-parallel ranks.
    Dp: Count plan;
    /// Whether attention is data parallel.
    AttentionDp: Switch plan;
    /// Copies of the server behind one port, or attention data-parallel ranks where attention is data parallel.
    Copies: Count plan;
    /// Expert-parallel ranks.
    Ep: Count plan;
    /// Whether experts are parallel over all ranks.
    ExpertParallel: Switch plan;
    /// Prefill context-parallel ranks.
    Cp: Count plan;
    /// Decode context-parallel ranks.
    Dcp: Count plan;
    /// Ranks of a server in all, where the runtime counts attention data parallelism inside them.
    Ranks: Count plan;
    /// Ranks of a stage in all, where the runtime counts context parallelism inside them, too.
    StageRanks: Count plan;
    /// Whether prompts are divided over context-parallel ranks, where their number alone does not say it.
    PrefillCp: Switch run;
    /// Way in which prompts are divided, by the attention: `heads`, `latent`, or `sparse` with an indexer.
    PrefillCpWay: Word run;
    /// Format of the weights, where it is not the checkpoint's own.
    WeightFormat: Word plan;
    /// Dtype of the weights of a checkpoint that is not quantized, where it is not the checkpoint's own.
    Dtype: Word plan;
    /// Format of the KV cache.
    KvFormat: Word plan;
    /// Maximum number of sequences per scheduler.
    MaxSequences: Count priced;
    /// Sequences of one of the batches that fill a pipeline.
    MicroBatch: Count run;
    /// Maximum number of tokens per step and scheduler.
    TokenBudget: Count priced;
    /// Share of the device memory that the runtime uses.
    MemoryShare: Real priced;
    /// Longest prompt plus output, in tokens.
    Context: Count priced;
    /// The same for all slots of a server.
    TotalContext: Count priced;
    /// Blocks of the KV cache, whatever the memory holds.
    KvBlocks: Count priced;
    /// Tokens of the KV cache, whatever the memory holds.
    KvTokens: Count priced;
    /// Whether the server takes LoRA adapters.
    Lora: Switch priced;
    /// LoRA adapters that a step may use at a time.
    LoraSlots: Count priced;
    /// The largest rank of a LoRA adapter.
    LoraRank: Count priced;
    /// Prefix cache.
    PrefixCache: Switch priced;
    /// Prompts longer than a step's tokens run in chunks.
    ChunkedPrefill: Switch run;
    /// Method of speculative decoding: `mtp`, the model's own module.
    DraftMethod: Word plan;
    /// Draft model of speculative decoding.
    DraftModel: Word plan;
    /// Draft tokens per step.
    DraftTokens: Count plan;
    /// Alternatives per draft token.
    DraftBranches: Count run;
    /// Tokens that the model checks per step: the draft's and its own.
    CheckedTokens: Count run;
    /// Layers on the device: a number, or `all`.
    GpuLayers: Word priced;
    /// Sequence parallelism.
    Sp: Switch plan;
    /// Tensor-parallel ranks inside experts.
    MoeTp: Count plan;
    /// Tensor-parallel ranks of dense feed-forward layers, where they are not those of attention.
    FfnTp: Count plan;
    /// Tensor-parallel ranks of the embedding and the LM head, where they are not those of attention.
    VocabTp: Count plan;
    /// Layers of each device, as shares.
    TensorSplit: Shares priced;
    /// Way in which several devices share the layers.
    SplitMode: Word priced;
    /// First layers whose experts are in host memory.
    HostExperts: Count plan;
    /// Layers whose experts are in host memory, as alternatives of a regular expression.
    HostExpertLayers: Word plan;
    /// Weights in host memory, in GiB per device.
    OffloadedGib: Real plan;
    /// Part of the model in host memory: `experts` or `kv`; whole layers without it.
    OffloadedPart: Word plan;
    /// Devices of the process in the order of the stages.
    Devices: Word run;
    /// Servers on further hosts whose devices the process uses.
    RemoteDevices: Word run;
    /// Role of a disaggregated worker.
    Role: Word plan;
    /// Transfer of KV caches.
    KvTransfer: Word run;
    /// Address of this host for transfers of KV caches.
    TransferAddress: Word run;
    /// Port for transfers of KV caches.
    TransferPort: Count run;
    /// Tokens of a transfer buffer.
    TransferTokens: Count run;
    /// Whether the scheduler waits for each step: prefill workers of some runtimes must.
    OverlapOff: Switch run;
    /// Number of hosts.
    Hosts: Count plan;
    /// Devices of all hosts, where a process is started on each.
    HostedRanks: Count run;
    /// Rank of this host.
    HostRank: Count run;
    /// Address of the first host.
    FirstHost: Word run;
    /// Whether the process serves no requests itself: it is on a further host.
    Follower: Switch run;
    /// Attention data-parallel ranks of one host.
    LocalDp: Count run;
    /// The first attention data-parallel rank of a host.
    FirstDpRank: Count run;
    /// Address of the first host, for attention data parallelism.
    DpAddress: Word run;
    /// Whether the runtime runs code of the checkpoint's repository.
    RemoteCode: Switch run;
    /// Keys of the model's configuration with other values, as a JSON object.
    ModelOverrides: Word plan;
    /// The runtime's own YAML file.
    YamlFile: Word priced;
    /// Address to listen on.
    Address: Word run;
    /// Port to listen on.
    Port: Count run;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    /// A number of ranks, sequences, tokens or hosts.
    Count,
    /// A fraction or an amount.
    Real,
    /// A name, id or address.
    Word,
    Switch,
    /// One number for each stage.
    Counts,
    /// The share of each device, in any unit.
    Shares,
}

impl SettingKind {
    pub fn words(self) -> &'static str {
        match self {
            SettingKind::Count => "a whole number",
            SettingKind::Real => "a number",
            SettingKind::Word => "a known name",
            SettingKind::Switch => "true or false",
            SettingKind::Counts => "whole numbers with commas",
            SettingKind::Shares => "numbers with commas",
        }
    }
}

impl Setting {
    /// The setting of a degree; none of the number of devices, which follows from the others.
    pub fn of(degree: Degree) -> Option<Setting> {
        Some(match degree {
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
            Degree::Devices => return None,
        })
    }

    /// Whether it is one of speculative decoding, without which a plan is priced too.
    pub fn is_draft(self) -> bool {
        use Setting::{CheckedTokens, DraftBranches, DraftMethod, DraftModel, DraftTokens};
        [DraftMethod, DraftModel, DraftTokens, DraftBranches, CheckedTokens].contains(&self)
    }

    /// Its name in launch files of the catalogue, with spaces.
    pub fn words(self) -> String {
        let name = serde_json::to_value(self).ok();
        name.and_then(|name| Some(name.as_str()?.replace('_', " "))).unwrap_or_default()
    }
}
