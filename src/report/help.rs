//! What the words mean here.

use serde::Serialize;

use super::table::table;
use crate::spec::objective::METRICS;

/// A word and its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct GlossaryTerm {
    /// The word.
    pub term: &'static str,
    /// What it means here.
    pub meaning: &'static str,
}

const fn term(term: &'static str, meaning: &'static str) -> GlossaryTerm {
    GlossaryTerm { term, meaning }
}

/// Words that are no metrics.
static WORDS: &[GlossaryTerm] = &[
    term("ISL, OSL", "input and output sequence length: tokens of the prompt and of the answer"),
    term("TTFT", "the metric ttft: the prompt's prefill, and what it waits for before it"),
    term("TPOT", "the metric tpot: a mean over one request, so slow steps weigh in"),
    term(
        "ITL",
        "time between two tokens of one request; its mean is TPOT, single ones are longer while a prompt is prefilled beside it",
    ),
    term(
        "images",
        "pictures in a prompt: an encoder computes each once, before the prefill, and what it yields takes its place in the prompt as tokens",
    ),
    term("E2E", "the metric e2e: from sending a request to its last token"),
    term("concurrency", "requests in flight over the whole deployment, waiting ones included"),
    term("prefill, decode", "computing a prompt, all tokens at once; computing an answer, a token a step"),
    term(
        "aggregated, disaggregated",
        "the same instances prefill and decode; or pools of their own, the KV cache moving between them",
    ),
    term(
        "instance, replica",
        "one copy of the model with the devices that it takes; one of several equal ones",
    ),
    term(
        "tp, pp, dp, cp, ep, moe_tp, sp",
        "ways to split an instance: tensor, pipeline, attention data, context, expert, tensor inside experts, sequence",
    ),
    term(
        "KV cache",
        "keys and values (or latents) of all tokens so far; grows with each, except inside sliding windows",
    ),
    term(
        "weight format, KV format",
        "how weights and cache are stored; arithmetic may be wider where the device computes no narrower",
    ),
    term(
        "unique, active, buffers, mtp",
        "parameters: all, a tied head once; those that one token passes; stored but not trained; for multi-token prediction",
    ),
    term(
        "speed of light",
        "the time under which no software gets: FLOPs at the dense peak, bytes at the full rate",
    ),
    term(
        "p50, p90, p95, p99",
        "of latencies under a rate: that part of requests fares no worse; of intervals: that part of measurements lies below",
    ),
    term(
        "speculative decoding",
        "a draft guesses tokens ahead, the model checks them in one step; its acceptance is stated, not predicted",
    ),
    term("Pareto front", "the candidates that no other equals or beats on every axis"),
    term("capacity", "memory as software sees it, not as it is marketed"),
    term("grade", "how far a figure may be trusted: stated, read, datasheet, measured, fitted, assumed"),
];

/// Every word, metrics first.
pub fn glossary() -> Vec<GlossaryTerm> {
    METRICS.iter().map(|entry| term(entry.column, entry.meaning)).chain(WORDS.iter().copied()).collect()
}

/// The glossary as text.
pub fn glossary_text() -> String {
    let rows: Vec<_> =
        glossary().iter().map(|term| vec![term.term.to_owned(), term.meaning.to_owned()]).collect();
    table(&["word", "meaning"], &rows)
}
