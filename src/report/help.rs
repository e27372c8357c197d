//! The glossary.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::table::table;
use crate::spec::objective::METRICS;

/// A term and its meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GlossaryTerm {
    /// The term.
    pub term: Cow<'static, str>,
    /// Its meaning.
    pub meaning: Cow<'static, str>,
}

const fn term(term: &'static str, meaning: &'static str) -> GlossaryTerm {
    GlossaryTerm { term: Cow::Borrowed(term), meaning: Cow::Borrowed(meaning) }
}

/// Terms other than metrics.
static WORDS: &[GlossaryTerm] = &[
    term("ISL, OSL", "input and output sequence length, in tokens"),
    term("TTFT", "time to first token (metric ttft): queueing and prefill"),
    term("TPOT", "time per output token (metric tpot): mean inter-token latency of one request"),
    term(
        "ITL",
        "inter-token latency: time between two tokens of a request; its mean is TPOT; concurrent prefills lengthen single intervals",
    ),
    term(
        "images",
        "images in a prompt: an encoder computes each once before the prefill; its output enters the prompt as tokens",
    ),
    term("E2E", "end-to-end latency (metric e2e): from sending a request to its last token"),
    term("concurrency", "requests in the whole deployment at one time, waiting ones included"),
    term(
        "prefill, decode",
        "processing all prompt tokens in parallel; generating output tokens one per step",
    ),
    term(
        "aggregated, disaggregated",
        "replicas that run prefill and decode; separate prefill and decode workers with KV-cache transfer",
    ),
    term(
        "replica, worker",
        "a copy of the model with its devices: a replica if aggregated, a prefill or decode worker if disaggregated",
    ),
    term(
        "tp, pp, dp, cp, dcp, ep, moe_tp, ffn_tp, vocab_tp, sp",
        "parallelism inside a replica: tensor, pipeline, attention data, context, decode context, expert, tensor inside experts, of feed-forward layers, of embedding and LM head, sequence",
    ),
    term(
        "rule",
        "what a runtime requires of a plan beyond its degrees and formats; --theoretical lifts all rules",
    ),
    term(
        "custom router",
        "a router with weights, which heterogeneous workers in one pool need; the search uses it with --allow custom-router",
    ),
    term(
        "host part",
        "experts or layers in host memory that the host's processor computes; long prompts may copy their weights to the device",
    ),
    term(
        "KV cache",
        "keys and values (or latents) of all previous tokens; grows with each token, except in sliding-window layers",
    ),
    term(
        "weight format, KV format",
        "storage formats of weights and KV cache; arithmetic may use a wider format if the device lacks the narrow one",
    ),
    term(
        "unique, active, buffers, mtp",
        "parameters: all, with a tied head counted once; those used per token; stored but not trained; of multi-token prediction",
    ),
    term("speed of light", "SOL, the lower bound of time: FLOPs at the dense peak, bytes at full bandwidth"),
    term(
        "p50, p90, p95, p99",
        "latency percentiles under a rate: that share of requests is no slower; of intervals: that share of measurements is below",
    ),
    term(
        "speculative decoding",
        "a draft proposes tokens that the model verifies in one step; the acceptance rate is an input, not a prediction",
    ),
    term("Pareto front", "the candidates that no other candidate dominates on every axis"),
    term("capacity", "device memory visible to software, less than the marketed size"),
    term(
        "stream test",
        "all cores read large arrays and compute the triad a = b + s c for about a second: memory bandwidth as measured",
    ),
    term("grade", "reliability of an input: stated, read, datasheet, measured, fitted, assumed"),
];

/// Every term, metrics first.
pub fn glossary() -> Vec<GlossaryTerm> {
    METRICS.iter().map(|entry| term(entry.column, entry.meaning)).chain(WORDS.iter().cloned()).collect()
}

pub fn glossary_text(terms: &[GlossaryTerm]) -> String {
    let rows: Vec<_> =
        terms.iter().map(|term| vec![term.term.to_string(), term.meaning.to_string()]).collect();
    table(&["word", "meaning"], &rows)
}
