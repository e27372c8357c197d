//! Reasons why a candidate is infeasible, with the numbers. These are results, not errors.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::quantity::unit::{BYTE, humanize};
use crate::spec::objective::Metric;
use crate::spec::percentile::Confidence;

/// One reason for infeasibility.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Infeasible {
    /// A width is not a multiple of its parallel degree.
    NotDivisible {
        /// The divided dimension, e.g. `num_attention_heads`.
        what: &'static str,
        /// Its size.
        whole: u64,
        /// The parallel degree.
        degree: &'static str,
        /// Number of parts.
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
        /// The divided dimension.
        what: &'static str,
        /// Width of a shard.
        shard: u64,
        /// Block size of the scales.
        block: u64,
        /// The runtime.
        runtime: String,
        /// Id of the weight format.
        format: String,
        /// Version of the runtime from which on it runs such shards, if any.
        since: Option<String>,
    },
    /// Expert layers must use the same devices as attention.
    ExpertRanks {
        /// `tp × cp × dp`
        attention: u64,
        /// `moe_tp × ep`
        experts: u64,
    },
    /// A layer type with a degree of its own under context parallelism.
    LayerDegreeUnderCp {
        /// The degree.
        degree: &'static str,
        /// Context parallelism.
        cp: u64,
    },
    /// Sequence parallelism where groups of devices repeat attention.
    RepeatedUnderSp {
        /// Groups that compute attention for the same tokens.
        copies: u64,
    },
    /// Expert parallelism without experts.
    NoExperts {
        /// The requested degree.
        ep: u64,
    },
    /// More pipeline stages than layers.
    TooManyStages {
        /// Layers.
        layers: u64,
        /// Pipeline stages.
        pp: u64,
    },
    /// Decode context parallelism divides what tp ranks have in common of the KV cache.
    CacheNotShared {
        /// Tensor-parallel ranks with the same part of the KV cache.
        ranks: u64,
        /// The requested degree.
        dcp: u64,
    },
    /// Two degrees divide the KV cache by tokens.
    CacheDividedTwice {
        /// The one.
        cp: u64,
        /// The other.
        dcp: u64,
    },
    /// Context parallelism divides a KV cache by tokens. The state of a recurrent layer has no tokens.
    StateNotDivided {
        /// The requested degree.
        cp: u64,
    },
    /// Layers that read the KV cache of another layer would be on another pipeline stage.
    SharedCacheCut {
        /// Pipeline stages.
        pp: u64,
    },
    /// More devices than available.
    TooManyDevices {
        /// Devices needed.
        devices: u64,
        /// Devices available.
        available: u64,
    },
    /// An instance larger than a domain must fill whole domains.
    NotWholeDomains {
        /// Devices of the instance.
        devices: u64,
        /// Devices of the innermost tier.
        domain: u64,
    },
    /// A replica that prefills and decodes has one copy of the weights.
    TwoFormats {
        /// Weight format of prefill.
        prefill: String,
        /// Weight format of decode.
        decode: String,
    },
    /// The runtime does not support this parallelism.
    NotSupported {
        /// The runtime.
        runtime: String,
        /// The degree.
        degree: &'static str,
    },
    /// A rule of the runtime forbids the plan.
    RuntimeRule {
        /// The runtime.
        runtime: String,
        /// Id of the rule.
        rule: String,
        /// The rule in words.
        words: String,
        /// Source of the rule.
        source: String,
    },
    /// The plan cannot have a part in host memory that the host's processor computes.
    NotHosted {
        /// Why.
        why: &'static str,
    },
    /// Out of memory.
    OutOfMemory {
        /// Bytes needed on the fullest device at the lowest concurrency.
        needed: f64,
        /// Usable bytes.
        available: f64,
        /// The largest component.
        largest: &'static str,
    },
    /// The context is longer than the model supports.
    ContextTooLong {
        /// Prompt plus output tokens.
        tokens: u64,
        /// The model's maximum.
        limit: u64,
    },
    /// The context is longer than the server takes.
    BeyondMaxModelLen {
        /// Prompt plus output tokens.
        tokens: u64,
        /// The longest request that the server takes.
        limit: u64,
    },
    /// The KV cache does not hold the longest request that the server takes.
    LongestRequest {
        /// Tokens of that request.
        tokens: u64,
        /// The longest that the cache holds.
        fits: u64,
        /// Slots that are each that long.
        slots: u64,
    },
    /// A latency SLO is missed even at the lowest concurrency.
    LimitMissed {
        /// The metric.
        metric: Metric,
        /// The predicted value, in seconds.
        value: f64,
        /// The SLO, in seconds.
        limit: f64,
        /// The confidence of the value.
        confidence: Confidence,
    },
    /// Each latency SLO is met, but all at once with too small odds.
    OddsMissed {
        /// The odds of all SLOs.
        odds: f64,
        /// The least that are required.
        required: f64,
        /// The factor of all SLOs at which they would be met with these.
        filled: f64,
    },
    /// The question leaves out plans of this kind.
    NotSearched {
        /// The plan.
        plan: String,
    },
    /// The request rate exceeds the capacity.
    TooMuchTraffic {
        /// Capacity, in requests per second.
        carried: f64,
        /// Requested rate, in requests per second.
        required: f64,
    },
}

impl Infeasible {
    /// Its kind, for counts.
    pub fn kind(&self) -> &str {
        match self {
            Infeasible::NotDivisible { what, .. } => what,
            Infeasible::KvHeads { .. } => "num_key_value_heads",
            Infeasible::BlockCut { .. } => "quantisation_block",
            Infeasible::ExpertRanks { .. } => "expert_ranks",
            Infeasible::LayerDegreeUnderCp { .. } => "layer_degree_under_cp",
            Infeasible::RepeatedUnderSp { .. } => "repeated_under_sp",
            Infeasible::NoExperts { .. } => "no_experts",
            Infeasible::TooManyStages { .. } => "too_many_stages",
            Infeasible::CacheNotShared { .. } => "cache_not_shared",
            Infeasible::CacheDividedTwice { .. } => "cache_divided_twice",
            Infeasible::StateNotDivided { .. } => "state_not_divided",
            Infeasible::SharedCacheCut { .. } => "shared_cache_cut",
            Infeasible::TooManyDevices { .. } => "too_many_devices",
            Infeasible::NotWholeDomains { .. } => "not_whole_domains",
            Infeasible::TwoFormats { .. } => "two_formats",
            Infeasible::NotSupported { .. } => "not_supported",
            Infeasible::RuntimeRule { rule, .. } => rule,
            Infeasible::NotHosted { .. } => "not_hosted",
            Infeasible::OutOfMemory { .. } => "out_of_memory",
            Infeasible::ContextTooLong { .. } => "context_too_long",
            Infeasible::BeyondMaxModelLen { .. } => "beyond_max_model_len",
            Infeasible::LongestRequest { .. } => "max_model_len",
            Infeasible::LimitMissed { metric, .. } => metric.entry().name,
            Infeasible::OddsMissed { .. } => "slo_odds",
            Infeasible::NotSearched { .. } => "not_searched",
            Infeasible::TooMuchTraffic { .. } => "too_much_traffic",
        }
    }

    /// The factor of the latency SLOs at which they would be met, where they are missed.
    pub fn filled(&self) -> Option<f64> {
        match *self {
            Infeasible::LimitMissed { value, limit, .. } => Some(value / limit),
            Infeasible::OddsMissed { filled, .. } => Some(filled),
            _ => None,
        }
    }
}

impl fmt::Display for Infeasible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence())
    }
}

impl Infeasible {
    fn sentence(&self) -> String {
        let bytes = |n: f64| humanize(n, BYTE);
        match self {
            Infeasible::NotDivisible { what, whole, degree, parts } => {
                format!("{what} {whole} mod {degree} {parts} = {}, must be 0", whole % parts.max(&1))
            }
            Infeasible::KvHeads { kv_heads, tp } => {
                let (over, under) = (kv_heads % tp, tp % kv_heads);
                let numbers = format!("({kv_heads} mod {tp} = {over}, {tp} mod {kv_heads} = {under})");
                format!("{kv_heads} key/value heads neither divide by tp {tp} nor replicate evenly {numbers}")
            }
            Infeasible::BlockCut { what, shard, block, runtime, format, since } => {
                let cut = format!("which cuts a quantisation block of {block}");
                let later =
                    since.as_ref().map(|version| format!("; from version {version} on it runs these"));
                format!(
                    "{runtime} in {format}: a shard of {what} is {shard} wide, {cut} ({shard} mod {block} = {}){}",
                    shard % block,
                    later.unwrap_or_default()
                )
            }
            Infeasible::ExpertRanks { attention, experts } => {
                let sizes = format!("tp x cp x dp = {attention}, but moe_tp x ep = {experts}");
                format!("{sizes}: expert layers use the same devices")
            }
            Infeasible::LayerDegreeUnderCp { degree, cp } => {
                format!("{degree} with cp {cp}, but the exchange between them is not modelled")
            }
            Infeasible::RepeatedUnderSp { copies } => {
                format!("sp where {copies} groups of devices repeat attention, but each norm has one group")
            }
            Infeasible::NoExperts { ep } => format!("ep {ep}, but the model has no experts"),
            Infeasible::TooManyStages { layers, pp } => format!("pp {pp}, but the model has {layers} layers"),
            Infeasible::CacheNotShared { ranks, dcp } => {
                format!("dcp {dcp}, but {ranks} tp ranks have the same part of the KV cache")
            }
            Infeasible::CacheDividedTwice { cp, dcp } => {
                format!("cp {cp} and dcp {dcp}, but only one of them divides the KV cache")
            }
            Infeasible::StateNotDivided { cp } => {
                format!("cp {cp}, but recurrent layers keep a state without tokens to divide")
            }
            Infeasible::SharedCacheCut { pp } => {
                let stage = "which must be on their stage";
                format!("pp {pp}, but layers read the KV cache of an earlier layer, {stage}")
            }
            Infeasible::TooManyDevices { devices, available } => {
                format!("{devices} devices needed, {available} available")
            }
            Infeasible::NotWholeDomains { devices, domain } => {
                let numbers = format!("({devices} mod {domain} = {})", devices % domain);
                let inside = format!("neither fits in one domain of {domain} nor fills whole domains");
                format!("an instance of {devices} devices {inside} {numbers}")
            }
            Infeasible::TwoFormats { prefill, decode } => format!(
                "prefill in {prefill} and decode in {decode}, but aggregated replicas have one copy of the weights"
            ),
            Infeasible::NotSupported { runtime, degree } => format!("{runtime} does not support {degree}"),
            Infeasible::OutOfMemory { needed, available, largest } => {
                let (all, usable, short) = (bytes(*needed), bytes(*available), bytes(needed - available));
                format!(
                    "{all} needed on the fullest device, {usable} usable: {short} short (mostly {largest})"
                )
            }
            Infeasible::RuntimeRule { runtime, rule, words, source } => {
                format!("{runtime}: {words} (rule {rule}; {source})")
            }
            Infeasible::NotHosted { why } => why.to_string(),
            Infeasible::ContextTooLong { tokens, limit } => {
                format!("{tokens} tokens of prompt and output, but the model supports at most {limit}")
            }
            Infeasible::BeyondMaxModelLen { tokens, limit } => {
                format!(
                    "{tokens} tokens of prompt and output, but the server takes at most {limit} (max-model-len)"
                )
            }
            Infeasible::LongestRequest { tokens, fits, slots } => {
                let each = if *slots == 1 { "one request".to_owned() } else { format!("{slots} slots") };
                format!("max-model-len is {tokens} tokens, but the KV cache holds {each} of at most {fits}")
            }
            Infeasible::LimitMissed { metric, value, limit, confidence } => {
                let (name, [best, limit]) = (metric.entry().name, differing([value * 1e3, limit * 1e3], 1));
                format!("{name} is {best} ms{} at best, the SLO is {limit} ms", confidence.words())
            }
            Infeasible::OddsMissed { odds, required, .. } => {
                let [odds, required] = differing([odds * 100.0, required * 100.0], 0);
                format!("the odds of meeting all SLOs are {odds} % at best, {required} % are required")
            }
            Infeasible::NotSearched { plan } => {
                format!("{plan}: left out by the question, or of a kind without a measured run")
            }
            Infeasible::TooMuchTraffic { carried, required } => {
                let [carried, required] = differing([*carried, *required], 2);
                format!("capacity is {carried} requests/s, {required} required")
            }
        }
    }
}

/// Most digits after the decimal point with which two numbers are written.
const MOST_DECIMALS: usize = 12;

/// Two numbers with as many digits after the decimal point as make them differ, and at least `decimals`.
fn differing(numbers: [f64; 2], decimals: usize) -> [String; 2] {
    let spelled = |decimals: usize| numbers.map(|number| format!("{number:.decimals$}"));
    let differs = |decimals: &usize| spelled(*decimals)[0] != spelled(*decimals)[1];
    spelled((decimals..MOST_DECIMALS).find(differs).unwrap_or(decimals))
}

/// Rejection counts by reason.
pub type Refused = BTreeMap<String, RejectionCount>;

/// A count of rejections with an example.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct RejectionCount {
    /// Number of rejections.
    pub count: u64,
    /// One of them; where memory is short, the one that is short of the fewest bytes.
    pub example: String,
    /// Bytes of which the example is short; none where it is not about memory.
    #[serde(skip)]
    pub short: Option<u64>,
}

impl RejectionCount {
    /// Adds rejections of the same kind. The example does not depend on the order in which they are added.
    pub fn add(&mut self, other: RejectionCount) {
        let rank = |one: &RejectionCount| (one.short.is_none(), one.short);
        let is_better = (rank(&other), &other.example) < (rank(self), &self.example);
        if self.count == 0 || is_better {
            (self.example, self.short) = (other.example, other.short);
        }
        self.count += other.count;
    }
}

/// Counts a rejection. Of each kind the first is written out, and every one that is short of less memory.
pub fn refuse(refused: &mut Refused, reason: &Infeasible) {
    let short = reason.short();
    match refused.get_mut(reason.kind()) {
        Some(known) if short.is_none() || known.short.is_some_and(|least| Some(least) <= short) => {
            known.count += 1;
        }
        _ => {
            let one = RejectionCount { count: 1, example: reason.to_string(), short };
            refused.entry(reason.kind().to_owned()).or_default().add(one);
        }
    }
}

impl Infeasible {
    /// Bytes of which it is short; none where it is not about memory.
    fn short(&self) -> Option<u64> {
        match self {
            Infeasible::OutOfMemory { needed, available, .. } => Some((needed - available) as u64),
            _ => None,
        }
    }
}
