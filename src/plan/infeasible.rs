//! Why a candidate cannot be, with the numbers. An answer, not an error.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::quantity::unit::{BYTE, humanize};
use crate::spec::objective::Metric;

/// One reason against a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Infeasible {
    /// A width is not a multiple of the degree that divides it.
    NotDivisible {
        /// What is divided, e.g. `num_attention_heads`.
        what: &'static str,
        /// How much there is.
        whole: u64,
        /// By which degree.
        degree: &'static str,
        /// How many ways.
        parts: u64,
    },
    /// Key/value heads neither divide evenly nor replicate evenly.
    KvHeads {
        /// Key/value heads.
        kv_heads: u64,
        /// Tensor-parallel degree.
        tp: u64,
    },
    /// A shard would cut through a block of quantisation scales.
    BlockCut {
        /// What is divided.
        what: &'static str,
        /// Width of a shard.
        shard: u64,
        /// Block of the scales.
        block: u64,
    },
    /// Expert layers must use the same devices as attention.
    ExpertRanks {
        /// `tp × cp × dp`
        attention: u64,
        /// `moe_tp × ep`
        experts: u64,
    },
    /// Expert parallelism without experts.
    NoExperts {
        /// The degree asked for.
        ep: u64,
    },
    /// More pipeline stages than layers.
    TooManyStages {
        /// Layers.
        layers: u64,
        /// Pipeline stages.
        pp: u64,
    },
    /// Context parallelism divides a cache by tokens; the state of a recurrent layer has none.
    StateNotDivided {
        /// The degree asked for.
        cp: u64,
    },
    /// Layers that read another layer's cache would sit on another pipeline stage.
    SharedCacheCut {
        /// Pipeline stages.
        pp: u64,
    },
    /// More devices than there are.
    TooManyDevices {
        /// Wanted.
        devices: u64,
        /// There.
        available: u64,
    },
    /// An instance that is larger than a domain must take whole ones.
    NotWholeDomains {
        /// Devices of the instance.
        devices: u64,
        /// Devices of the innermost tier.
        domain: u64,
    },
    /// The runtime has no such parallelism.
    NotSupported {
        /// The runtime.
        runtime: String,
        /// The degree.
        degree: &'static str,
    },
    /// A device does not hold what it must.
    OutOfMemory {
        /// Bytes needed on the fullest device at the least concurrency.
        needed: f64,
        /// Bytes that it has to give.
        available: f64,
        /// The largest part.
        largest: &'static str,
    },
    /// More tokens than the model was made for.
    ContextTooLong {
        /// Prompt and answer.
        tokens: u64,
        /// What the model states.
        limit: u64,
    },
    /// A latency limit is missed even at the least concurrency.
    LimitMissed {
        /// Which.
        metric: Metric,
        /// What came out, in seconds.
        value: f64,
        /// What was asked, in seconds.
        limit: f64,
    },
    /// The stated traffic is more than it carries.
    TooMuchTraffic {
        /// Carried, requests per second.
        carried: f64,
        /// Asked, requests per second.
        asked: f64,
    },
}

impl Infeasible {
    /// Its kind, for counting.
    pub fn kind(&self) -> &'static str {
        match self {
            Infeasible::NotDivisible { what, .. } => what,
            Infeasible::KvHeads { .. } => "num_key_value_heads",
            Infeasible::BlockCut { .. } => "quantisation_block",
            Infeasible::ExpertRanks { .. } => "expert_ranks",
            Infeasible::NoExperts { .. } => "no_experts",
            Infeasible::TooManyStages { .. } => "too_many_stages",
            Infeasible::StateNotDivided { .. } => "state_not_divided",
            Infeasible::SharedCacheCut { .. } => "shared_cache_cut",
            Infeasible::TooManyDevices { .. } => "too_many_devices",
            Infeasible::NotWholeDomains { .. } => "not_whole_domains",
            Infeasible::NotSupported { .. } => "not_supported",
            Infeasible::OutOfMemory { .. } => "out_of_memory",
            Infeasible::ContextTooLong { .. } => "context_too_long",
            Infeasible::LimitMissed { metric, .. } => metric.entry().name,
            Infeasible::TooMuchTraffic { .. } => "too_much_traffic",
        }
    }
}

impl fmt::Display for Infeasible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = |n: f64| humanize(n, BYTE);
        match self {
            Infeasible::NotDivisible { what, whole, degree, parts } => {
                write!(f, "{what} {whole} mod {degree} {parts} = {}, must be 0", whole % parts.max(&1))
            }
            Infeasible::KvHeads { kv_heads, tp } => write!(
                f,
                "{kv_heads} key/value heads neither divide by tp {tp} nor replicate evenly ({kv_heads} mod {tp} = {}, {tp} mod {kv_heads} = {})",
                kv_heads % tp,
                tp % kv_heads
            ),
            Infeasible::BlockCut { what, shard, block } => write!(
                f,
                "a shard of {what} is {shard} wide, which cuts a quantisation block of {block} ({shard} mod {block} = {})",
                shard % block
            ),
            Infeasible::ExpertRanks { attention, experts } => {
                write!(
                    f,
                    "tp x cp x dp = {attention}, but moe_tp x ep = {experts}: expert layers use the same devices"
                )
            }
            Infeasible::NoExperts { ep } => write!(f, "ep {ep}, but the model has no experts"),
            Infeasible::TooManyStages { layers, pp } => {
                write!(f, "pp {pp}, but the model has {layers} layers")
            }
            Infeasible::StateNotDivided { cp } => {
                write!(f, "cp {cp}, but recurrent layers keep a state that has no tokens to divide")
            }
            Infeasible::SharedCacheCut { pp } => {
                write!(
                    f,
                    "pp {pp}, but layers read the cache of an earlier layer, which must be on their stage"
                )
            }
            Infeasible::TooManyDevices { devices, available } => {
                write!(f, "{devices} devices wanted, {available} there")
            }
            Infeasible::NotWholeDomains { devices, domain } => write!(
                f,
                "an instance of {devices} devices neither fits in one domain of {domain} nor fills whole ones ({devices} mod {domain} = {})",
                devices % domain
            ),
            Infeasible::NotSupported { runtime, degree } => write!(f, "{runtime} has no {degree}"),
            Infeasible::OutOfMemory { needed, available, largest } => write!(
                f,
                "{} needed on the fullest device, {} usable: {} short (mostly {largest})",
                bytes(*needed),
                bytes(*available),
                bytes(needed - available)
            ),
            Infeasible::ContextTooLong { tokens, limit } => {
                write!(f, "{tokens} tokens of prompt and answer, but the model states {limit} at most")
            }
            Infeasible::LimitMissed { metric, value, limit } => write!(
                f,
                "{} is {:.1} ms at best, the limit is {:.1} ms",
                metric.entry().name,
                value * 1e3,
                limit * 1e3
            ),
            Infeasible::TooMuchTraffic { carried, asked } => {
                write!(f, "carries {carried:.2} requests/s at most, {asked:.2} asked")
            }
        }
    }
}
