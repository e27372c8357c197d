//! The space that an answer is best in: what the search covers, and what lies outside.

use schemars::JsonSchema;
use serde::Serialize;

use crate::search::family::StrategyFamily;
use crate::search::outcome::Outcome;
use crate::search::question::{OffloadPolicy, Problem, Traffic};
use crate::search::shape::MOST_REQUESTS_PER_RANK;

/// Among which plans an answer is best, and by what.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Space {
    /// Plans that were evaluated, or that a bound shows to be no better.
    pub plans: u64,
    /// What judges them: the figures are predictions of a model of serving, not measurements.
    pub under: String,
    /// Parallelism that the runtime has: every integer degree that the model's shape and the devices allow.
    pub degrees: Vec<String>,
    /// Formats of weights and cache, each pair over the whole deployment.
    pub formats: Vec<String>,
    /// Prefill and decode may be on instances of their own.
    pub split: bool,
    /// Instances of several shapes may stand side by side.
    pub mixes: bool,
    /// When weights, experts or cache may lie in host memory.
    pub offload: String,
    /// The family of strategies that the question is held to, where it is.
    pub family: Option<StrategyFamily>,
    /// Requests in flight of an attention rank: 1 to that.
    pub most_requests_per_rank: u64,
    /// How the loads of instances are chosen.
    pub loads: String,
    /// What is not searched; `docs/optimality.md` says what it is worth.
    pub outside: Vec<String>,
}

/// What no plan of the search has, and what it is instead.
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

/// The space of `outcome`.
pub fn space(question: &Problem, outcome: &Outcome) -> Space {
    let offload = match question.offload {
        OffloadPolicy::Auto => "only if nothing fits without it",
        OffloadPolicy::Never => "not used",
        OffloadPolicy::Always => "always used",
    };
    let loads = match question.traffic {
        Traffic::Free => "every concurrency that fits",
        Traffic::InFlight(_) => "the given concurrency, spread evenly over equal replicas",
        Traffic::Rate(_) => "the lowest concurrency that sustains the rate",
    };
    let several = question.cluster.devices() > 1;
    let pair = |one: &crate::search::question::Formats| format!("{} weights, {} KV", one.weights, one.kv);
    Space {
        plans: outcome.census.candidates,
        under: "rooflines and mean continuous batching, calibrated on measurements".into(),
        degrees: question.runtime.1.iter().filter(|degree| *degree != "disagg").cloned().collect(),
        formats: question.formats.iter().map(pair).collect(),
        split: question.split,
        mixes: several && matches!(question.family, StrategyFamily::Any | StrategyFamily::Mixed),
        offload: offload.into(),
        family: (question.family != StrategyFamily::Any).then_some(question.family),
        most_requests_per_rank: MOST_REQUESTS_PER_RANK,
        loads: loads.into(),
        outside: OUTSIDE.iter().map(|(what, _)| (*what).to_string()).collect(),
    }
}

/// What lies outside, for help and `docs/optimality.md`.
pub fn outside() -> String {
    let line = |(what, instead): &(&str, &str)| format!("  {what}: {instead}\n");
    OUTSIDE.iter().map(line).collect()
}
