//! Replicas that were simulated of more, and the standard errors of the figures that they gave.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::simulate::LatencyRow;

/// How the replicas of a sample get their requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SamplingMethod {
    /// Those that the router of all replicas sends them: each has the requests that it has in a run of all.
    Thinned,
    /// Groups of replicas, each with a router and its share of the load of its own, simulated whole. A router of all
    /// replicas has more of them to choose from; standard errors do not have that difference.
    Groups,
}

impl SamplingMethod {
    pub fn name(self) -> &'static str {
        match self {
            SamplingMethod::Thinned => "thinned",
            SamplingMethod::Groups => "groups",
        }
    }
}

/// Replicas that were simulated of more. Counts of requests, steps and preemptions are theirs; rates, and requests in
/// the system, are those of all replicas.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SampledReplicas {
    /// How they get their requests.
    pub method: SamplingMethod,
    /// Replicas of the deployment, of all roles.
    pub replicas: u64,
    /// Those that were simulated.
    pub simulated: u64,
    /// Clusters of requests that errors are between: replicas, or groups.
    pub clusters: u64,
    /// Requests of the whole deployment in the time of the run.
    pub requests: u64,
    /// Standard errors.
    pub errors: StandardErrors,
}

/// Standard errors of the figures of an answer, each in the unit of its figure. Null where it is not known: less than two
/// clusters have such values.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StandardErrors {
    /// Of latencies, in ms.
    pub latencies: Vec<LatencyRow>,
    pub output_tok_s: Option<f64>,
    pub requests_per_s: Option<f64>,
    pub concurrency: Option<f64>,
    pub goodput: Option<f64>,
    pub hit_rate: Option<f64>,
    pub unlimited_hit_rate: Option<f64>,
    pub tokens_per_step: Option<f64>,
}

impl StandardErrors {
    /// The row of a latency.
    pub fn latency(&self, metric: &str) -> Option<&LatencyRow> {
        self.latencies.iter().find(|row| row.metric == metric)
    }
}
