//! Equal workers or replicas of a deployment, as reported.

use crate::spec::role::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Equal workers or replicas.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PoolReport {
    /// Role.
    #[serde(alias = "duty")]
    pub role: Role,
    /// The degrees above 1, e.g. `tp4 pp2`.
    pub label: String,
    /// Tensor parallel.
    pub tp: u64,
    /// Pipeline parallel.
    pub pp: u64,
    /// Attention data parallel.
    pub dp: u64,
    /// Context parallel.
    pub cp: u64,
    /// Decode context parallel, inside the tensor-parallel ranks.
    pub dcp: u64,
    /// Expert parallel.
    pub ep: u64,
    /// Tensor parallel inside experts.
    pub moe_tp: u64,
    /// Tensor parallel of dense feed-forward layers and shared experts, where it is not `tp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ffn_tp: Option<u64>,
    /// Tensor parallel of the embedding and the LM head, where it is not `tp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocab_tp: Option<u64>,
    /// Sequence parallel.
    pub sp: bool,
    /// Layers of each pipeline stage.
    pub stages: Vec<u32>,
    /// Number of replicas.
    pub replicas: u64,
    /// Devices of all of them.
    pub devices: u64,
    /// Concurrency of each replica.
    pub concurrency_per_replica: u64,
}
