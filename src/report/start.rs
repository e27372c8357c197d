//! The report of `check`: whether the server of a launch command starts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::launch::UnreadWord;
use super::result::MemoryReport;
use super::sheet;
use crate::launch::failure::FoundFailure;
use crate::spec::scenario::Scenario;

/// Whether the server of a launch command starts.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StartReport {
    /// Whether it starts.
    pub starts: bool,
    /// The runtime's reasons if it does not; empty if it starts.
    pub reasons: Vec<String>,
    /// The smallest changes with which it starts, at most three.
    pub corrections: Vec<StartCorrection>,
    /// The plan of the commands, in words.
    pub plan: String,
    /// Id of the runtime.
    pub runtime: String,
    /// Version of the runtime whose options the commands were read by.
    pub runtime_version: String,
    /// The problem with what the commands set.
    pub scenario: Scenario,
    /// The failure that the log states. Absent without a log, or where it states none that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FoundFailure>,
    /// Memory of the fullest device at the start; null where a rule of the runtime forbids the plan.
    pub memory: Option<MemoryReport>,
    /// Tokens that the KV cache of a replica holds, all attention ranks together; null where it does not start.
    pub kv_tokens: Option<u64>,
    /// The longest request that the server takes, in tokens; null where it does not start.
    pub context: Option<u64>,
    /// The longest request that the memory holds, in tokens; null where the model does not fit.
    pub largest_context: Option<u64>,
    /// Requests that the schedulers of a replica take at a time; null where the runtime has no such limit.
    pub most_requests: Option<u64>,
    /// Words that set nothing, each with the reason.
    pub unread: Vec<UnreadWord>,
    /// Remarks.
    pub notes: Vec<String>,
}

/// A change with which a server starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StartCorrection {
    /// The options that change.
    pub change: String,
    /// The commands with the change, one a line.
    pub command: String,
}

impl StartReport {
    /// The verdict as one row.
    pub fn csv(&self) -> String {
        let number = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
        let row = vec![
            self.starts.to_string(),
            self.reasons.join("; "),
            self.corrections.first().map_or_else(String::new, |one| one.command.clone()),
            number(self.kv_tokens),
            number(self.context),
            number(self.largest_context),
            number(self.most_requests),
        ];
        let columns =
            ["starts", "reasons", "corrected", "kv_tokens", "context", "largest_context", "most_requests"];
        sheet::csv(columns, [row])
    }
}
