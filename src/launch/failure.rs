//! Failures of servers at their start, found in their logs by the words of their runtimes.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex_lite::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The reason of a failed start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureReason {
    /// The weights do not fit.
    OomLoad,
    /// Activations or graphs do not fit.
    OomProfile,
    /// The KV cache does not hold one request.
    KvTooSmall,
    /// The KV cache has too few blocks for the sequences.
    TooFewBlocks,
    /// The context is longer than the model's.
    ContextBeyondModel,
    /// Blocks of scales do not divide over the ranks.
    BlockDivisibility,
    /// Heads do not divide over the ranks.
    HeadsDivisibility,
    /// Experts do not divide over the ranks.
    ExpertsDivisibility,
    /// The weight format does not run on the device.
    UnsupportedFormat,
    /// The attention does not run on the device.
    UnsupportedAttention,
    /// The dtype does not run on the device.
    UnsupportedDtype,
    /// The format of the KV cache does not run on the device.
    UnsupportedKvFormat,
    /// A LoRA adapter is larger than the server was started for.
    LoraTooLarge,
    /// The runtime does not know an option.
    BadOption,
    /// The runtime refuses a value.
    BadValue,
    /// The process sees fewer devices than its ranks.
    NotEnoughDevices,
    /// The process sees no device.
    NoDevice,
    /// The host's memory does not suffice.
    OutOfHostMemory,
    /// The port is taken.
    PortInUse,
    /// Collectives do not start.
    Nccl,
    /// The model is not found.
    NoModel,
    /// The repository needs a permission.
    Gated,
    /// Another reason.
    Other,
}

impl FailureReason {
    /// The reason, for people.
    pub fn words(self) -> &'static str {
        match self {
            FailureReason::OomLoad => "out of memory when the weights are loaded",
            FailureReason::OomProfile => "out of memory for activations or CUDA graphs",
            FailureReason::KvTooSmall => "the KV cache does not hold one request of the stated context",
            FailureReason::TooFewBlocks => "the KV cache has too few blocks for the number of sequences",
            FailureReason::ContextBeyondModel => "the stated context is longer than the model's",
            FailureReason::BlockDivisibility => "blocks of quantization scales do not divide over the ranks",
            FailureReason::HeadsDivisibility => "attention heads do not divide over the ranks",
            FailureReason::ExpertsDivisibility => "experts do not divide over the ranks",
            FailureReason::UnsupportedFormat => "the weight format does not run on this device",
            FailureReason::UnsupportedAttention => "no attention kernel for this model on this device",
            FailureReason::UnsupportedDtype => "the dtype does not run on this device",
            FailureReason::UnsupportedKvFormat => "the format of the KV cache does not run on this device",
            FailureReason::LoraTooLarge => "a LoRA adapter has a larger rank than the server takes",
            FailureReason::BadOption => "the runtime does not know an option",
            FailureReason::BadValue => "the runtime refuses a value",
            FailureReason::NotEnoughDevices => "the process sees fewer devices than it has ranks",
            FailureReason::NoDevice => "the process sees no device",
            FailureReason::OutOfHostMemory => "the memory of the host does not suffice",
            FailureReason::PortInUse => "the port is in use",
            FailureReason::Nccl => "the collectives between devices do not start",
            FailureReason::NoModel => "the model is not found",
            FailureReason::Gated => "the repository needs a permission",
            FailureReason::Other => "another failure",
        }
    }
}

/// A failure in a log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FoundFailure {
    /// Id of the runtime whose words they are.
    pub runtime: String,
    /// The reason.
    pub reason: FailureReason,
    /// When it failed: `load`, `profile`, `kv`, `graph`, `check` or `parse`.
    pub stage: String,
    /// The line of the log.
    pub line: String,
    /// Numbers in it, by name, e.g. `needed_gib`, `largest`.
    pub numbers: BTreeMap<String, f64>,
    /// Where the runtime has these words.
    pub source: String,
}

/// The runtime of symptoms in people's words.
const ANY: &str = "any";

/// Words with which a runtime fails.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownFailure {
    runtime: String,
    pattern: String,
    reason: FailureReason,
    stage: String,
    source: String,
    /// A line that it matches, which a test reads.
    #[serde(rename = "example")]
    _example: String,
    /// Whether a more specific failure in the same log counts before it.
    #[serde(default)]
    generic: bool,
}

static KNOWN: LazyLock<Vec<(KnownFailure, Regex)>> = LazyLock::new(|| {
    // A test reads the file strictly, and compiles every pattern.
    let known: Vec<KnownFailure> = serde_json::from_str(include_str!("failures.json")).unwrap_or_default();
    known
        .into_iter()
        .filter_map(|one| {
            // `$` is the end of a line of the log.
            let pattern = RegexBuilder::new(&one.pattern).multi_line(true).build().ok()?;
            Some((one, pattern))
        })
        .collect()
});

/// The failure that a log, or a symptom in words, states: the first of the specific ones, else the first of the others, else
/// that of the words. `runtime` is that of the server, where it is known.
pub fn failure_in(log: &str, runtime: Option<&str>) -> Option<FoundFailure> {
    let of_runtime = |one: &&(KnownFailure, Regex)| {
        one.0.runtime == ANY || runtime.is_none_or(|runtime| one.0.runtime == runtime)
    };
    let found = KNOWN.iter().filter(of_runtime).enumerate().filter_map(|(at, (one, pattern))| {
        let found = pattern.captures(log)?;
        let start = found.get(0)?.start();
        let line = log[..start].rfind('\n').map_or(0, |begin| begin + 1);
        Some(((one.generic, one.runtime == ANY, line, at), start, one, pattern, found))
    });
    // Of the words of one line, those that the list has first are the more specific.
    let ((_, _, begin, _), start, one, pattern, found) = found.min_by_key(|(order, ..)| *order)?;
    let number = |name: &str| Some((name.to_owned(), found.name(name)?.as_str().parse().ok()?));
    let end = log[start..].find('\n').map_or(log.len(), |end| start + end);
    Some(FoundFailure {
        runtime: runtime.filter(|_| one.runtime == ANY).unwrap_or(&one.runtime).to_owned(),
        reason: one.reason,
        stage: one.stage.clone(),
        line: log[begin..end].trim().to_owned(),
        numbers: pattern.capture_names().flatten().filter_map(number).collect(),
        source: one.source.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_finds_its_example() {
        let all: Vec<KnownFailure> = serde_json::from_str(include_str!("failures.json")).unwrap();
        assert_eq!(all.len(), KNOWN.len(), "a pattern does not compile");
        assert!(all.len() > 150);
        for one in &all {
            assert!(!one.source.is_empty());
            let log = format!("INFO loading\n{}\nbye", one._example);
            let found = failure_in(&log, Some(&one.runtime)).unwrap_or_else(|| panic!("{}", one.pattern));
            assert_eq!(found.reason, one.reason, "{}: {}", one.pattern, one._example);
            assert_ne!(found.runtime, "", "{}", one.pattern);
        }
        let said = failure_in("my server runs out of VRAM", Some("sglang")).unwrap();
        assert_eq!((said.reason, said.runtime.as_str()), (FailureReason::OomProfile, "sglang"));
        assert_eq!(failure_in("INFO started\n", None), None);
    }

    #[test]
    fn numbers_of_a_failure_are_read() {
        let log = "ValueError: To serve at least one request with the models's max seq len (65536), (9.50 GiB KV cache is \
                   needed, which is larger than the available KV cache memory (4.25 GiB). Based on the available memory, \
                   the estimated maximum model length is 29312.";
        let found = failure_in(log, None).unwrap();
        assert_eq!(found.reason, FailureReason::KvTooSmall);
        assert_eq!(found.numbers["largest"], 29_312.0);
    }
}
