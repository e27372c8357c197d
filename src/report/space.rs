//! The search space of a result, and the plans outside it.

use crate::spec::offload::OffloadPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::search::family::StrategyFamily;
use crate::search::outcome::Outcome;
use crate::search::problem::{Problem, Traffic};
use crate::search::shape::MOST_REQUESTS_PER_RANK;

/// The search space and the model under which a result is optimal.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Space {
    /// Number of plans evaluated or pruned by a bound.
    pub plans: u64,
    /// The model that evaluates them: metrics are predictions, not measurements.
    pub under: String,
    /// Parallelism of the runtime: every integer degree that the model's shape and the devices allow.
    pub degrees: Vec<String>,
    /// Formats of weights and cache, each pair over the whole deployment.
    pub formats: Vec<String>,
    /// Whether disaggregated prefill and decode are searched.
    pub split: bool,
    /// Whether mixed parallel configurations are searched.
    pub mixes: bool,
    /// Use of host memory for weights, experts or KV cache.
    pub offload: String,
    /// Whether only plans of kinds that were measured are in it. Absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub measured_kinds_only: bool,
    /// The strategy family that the problem is restricted to, if any.
    pub family: Option<StrategyFamily>,
    /// Maximum concurrency per attention rank.
    pub most_requests_per_rank: u64,
    /// Choice of the concurrency per replica.
    pub loads: String,
    /// Plans that are not searched; `docs/optimality.md` quantifies the loss.
    pub outside: Vec<String>,
}

/// Features outside the search, each with the assumption in its place.
pub static OUTSIDE: [(&str, &str); 8] = [
    ("uneven load over ranks", "requests, and tokens over experts, are spread evenly"),
    ("different formats per pool", "all pools have one weight format and one KV format"),
    (
        "caps on batch and chunk",
        "a step batches all running requests; prefill chunks follow the calibrated runtime",
    ),
    (
        "other cuts of a pipeline",
        "stages are balanced by memory, reads or compute; `estimate --stages` takes any split",
    ),
    ("plans over different devices", "`place` puts layers on heterogeneous devices, `fleet` mixes systems"),
    ("other draft lengths", "the draft length is the given one"),
    ("routing by prompt", "any replica may serve any request; shared prefixes are cached on all replicas"),
    ("single requests and bursts", "latencies are means or percentiles in steady state"),
];

pub fn space(problem: &Problem, outcome: &Outcome) -> Space {
    let offload = match problem.offload {
        OffloadPolicy::Auto | OffloadPolicy::Always => {
            "wherever device memory is too small for more requests"
        }
        OffloadPolicy::Never => "not used",
    };
    let loads = match problem.traffic {
        Traffic::Free => "every concurrency that fits",
        Traffic::InFlight(_) => "the given concurrency, spread evenly over equal replicas",
        Traffic::Rate(_) => "the lowest concurrency that sustains the rate",
    };
    let several = problem.cluster.devices() > 1;
    let pair = |one: &crate::search::problem::Formats| format!("{} weights, {} KV", one.weights, one.kv);
    Space {
        plans: outcome.census.candidates,
        under: "rooflines and mean continuous batching, calibrated on measurements".into(),
        degrees: problem.runtime.supports.iter().filter(|degree| *degree != "disagg").cloned().collect(),
        formats: problem.formats.iter().map(pair).collect(),
        split: problem.split,
        mixes: problem.custom_router
            && several
            && matches!(problem.family, StrategyFamily::Any | StrategyFamily::Mixed),
        offload: offload.into(),
        measured_kinds_only: problem.space.measured_only,
        family: (problem.family != StrategyFamily::Any).then_some(problem.family),
        most_requests_per_rank: MOST_REQUESTS_PER_RANK,
        loads: loads.into(),
        outside: OUTSIDE.iter().map(|(what, _)| (*what).to_string()).collect(),
    }
}
