//! Equal workers or replicas of a deployment, as reported.

use crate::plan::parallel::ParallelPlan;
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
    /// The degrees.
    #[serde(flatten)]
    pub plan: ParallelPlan,
    /// Layers of each pipeline stage.
    pub stages: Vec<u32>,
    /// Number of replicas.
    pub replicas: u64,
    /// Devices of all of them.
    pub devices: u64,
    /// Concurrency of each replica.
    pub concurrency_per_replica: u64,
}

/// The role between `before` and `after`, where prefill and decode are divided; empty for aggregated replicas.
pub fn divided_role(role: Role, before: &str, after: &str) -> String {
    match role {
        Role::Aggregated => String::new(),
        Role::Prefill | Role::Decode => format!("{before}{}{after}", role.name()),
    }
}
