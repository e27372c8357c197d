//! The traffic of a measured run: when its requests came, and the settings of its servers.

use super::measured::Record;
use super::replayed::AgentSessions;
use crate::spec::error::Error;
use crate::spec::limits::{
    ARRIVAL_VARIATION, DISTINCT_PROMPTS, ISL, MEMORY_SHARE, RATE, SECONDS, SENT, SEQUENCES, STEP_TOKENS,
};

/// `arrival` of clients that send equal requests, each after its last answer.
pub(super) const CLIENTS: &str = "clients";

/// When the requests of a run came.
#[derive(Clone, Debug, PartialEq)]
pub enum MeasuredArrivals {
    /// At a rate, whether or not earlier ones are answered: requests per second over the whole deployment, and the
    /// coefficient of variation of the gaps between them, 0 for even gaps, 1 for Poisson arrivals.
    Rate { per_s: f64, variation: f64 },
    /// As many clients as the concurrency of the row, each after its last answer.
    Clients,
    /// The same clients with sessions.
    Sessions(AgentSessions),
    /// At the times of a trace that this names.
    Trace(String),
}

/// The traffic of a run that is simulated, and the settings of its servers.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredTraffic {
    pub arrivals: MeasuredArrivals,
    /// Requests that were sent, where known.
    pub requests: Option<u64>,
    /// Tokens at the start of all prompts that are the same.
    pub prefix: Option<u64>,
    /// Different ones of these, where there are several.
    pub prefix_groups: Option<u64>,
    /// Different prompts, where the same ones came again and again.
    pub distinct_prompts: Option<u64>,
    /// Whether the run went on from an earlier stage, so that its first requests met filled caches.
    pub goes_on: bool,
    /// New tokens in one step, at most, where set.
    pub max_num_batched_tokens: Option<u64>,
    /// Requests that a scheduler runs at a time, where set.
    pub max_num_seqs: Option<u64>,
    /// Fraction of the memory of a device that the runtime uses, where set.
    pub gpu_memory_utilization: Option<f64>,
    /// Of vLLM's steps with decoding requests, only every such one computes prompts, where set.
    pub prefill_interval: Option<u64>,
    /// Tokens of a prompt above which a step of vLLM computes no more of it than this, where set.
    pub long_prompt_threshold: Option<u64>,
    /// Whether no prompt is computed in parts.
    pub whole_prompts: bool,
    /// Passes after which ranks of SGLang with prompts wait no more for ranks without, where set.
    pub delayed_passes: Option<u64>,
    /// Steps of SGLang without prompts after one with them, where set.
    pub decodes_after_prefill: Option<u64>,
    /// Tokens that the KV cache of an attention rank holds, where the server said so.
    pub cache_tokens: Option<u64>,
    /// Inputs that the row does not state, with the values that are taken for them and their sources.
    pub assumed: Vec<String>,
}

impl MeasuredTraffic {
    /// Whether requests came at a rate, whether or not earlier ones were answered.
    pub fn is_under_a_rate(&self) -> bool {
        matches!(self.arrivals, MeasuredArrivals::Rate { .. })
    }
}

impl Record<'_> {
    /// When the requests of a run came, and how many in the time that is stated, where the row says so: at a rate, or of
    /// several clients of a benchmark of one's own.
    fn arrivals(&self, concurrency: Option<u64>) -> Result<Option<(MeasuredArrivals, Option<u64>)>, Error> {
        let arrival = self.text("arrival").to_lowercase();
        match concurrency {
            Some(clients) if clients > 1 && arrival == CLIENTS => {
                return Ok(Some((MeasuredArrivals::Clients, None)));
            }
            Some(_) => return Ok(None),
            None => (),
        }
        let Some(per_s) = self.positive("rate", &RATE)? else { return Ok(None) };
        let lasted = self.positive("duration_s", &SECONDS)?;
        let in_that_time = lasted.map(|seconds| (seconds * per_s).round().clamp(1.0, SENT.most) as u64);
        let stated = self.number("arrival_variation", &ARRIVAL_VARIATION)?;
        // Arrivals of many users who do not know of each other, where the table does not say.
        let variation = stated.unwrap_or(if arrival.starts_with("constant") { 0.0 } else { 1.0 });
        Ok(Some((MeasuredArrivals::Rate { per_s, variation }, in_that_time)))
    }

    /// The traffic of a run that is simulated.
    pub(super) fn traffic(&self, concurrency: Option<u64>) -> Result<Option<MeasuredTraffic>, Error> {
        let Some((arrivals, in_that_time)) = self.arrivals(concurrency)? else { return Ok(None) };
        let prefix = self.shared_prefix(self.count("isl", &ISL)?)?;
        Ok(Some(MeasuredTraffic {
            arrivals,
            requests: self.count("num_prompts", &SENT)?.or(in_that_time),
            prefix: prefix.tokens,
            prefix_groups: prefix.groups,
            distinct_prompts: self.count("distinct_prompts", &DISTINCT_PROMPTS)?,
            goes_on: self.text("stage").parse::<u64>().is_ok_and(|stage| stage > 0),
            max_num_batched_tokens: self.count("max_num_batched_tokens", &STEP_TOKENS)?,
            max_num_seqs: self.count("max_num_seqs", &SEQUENCES)?,
            gpu_memory_utilization: self.positive("gpu_memory_utilization", &MEMORY_SHARE)?,
            prefill_interval: None,
            long_prompt_threshold: None,
            whole_prompts: false,
            delayed_passes: None,
            decodes_after_prefill: None,
            cache_tokens: None,
            assumed: vec![],
        }))
    }
}
