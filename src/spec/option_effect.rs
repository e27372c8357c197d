//! The effect of options that no setting carries: a launch lists them, so that a command is never read past.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Options of a runtime that no setting carries, by their first spelling; environment variables and keys of its YAML file
/// by their name. An option that is in neither list counts as not modelled.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OptionEffects {
    /// Source.
    pub source: String,
    /// Options that change nothing in memory, schedule or speed, each with the reason.
    pub none: BTreeMap<String, String>,
    /// Options that matter and are not priced.
    pub not_modelled: BTreeMap<String, NotModelled>,
    /// Options of other versions, by their old spelling.
    pub renamed: BTreeMap<String, Renamed>,
    /// Options that the runtime no longer has, each with the version that removed it.
    pub removed: BTreeMap<String, String>,
}

/// An option that matters and is not priced.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotModelled {
    /// The parts that it changes.
    pub changes: Vec<Changes>,
    /// How, in one sentence.
    pub why: String,
    /// Its size where one is known, with the source.
    pub size: Option<String>,
}

/// The part of a prediction that an option changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Changes {
    /// Memory.
    Memory,
    /// The schedule of requests.
    Schedule,
    /// The time of a step.
    Speed,
    /// Lengths of prompts or answers.
    Length,
    /// Whether the server starts.
    Start,
}

/// A new spelling.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Renamed {
    /// The new spelling.
    pub to: String,
    /// The version that renamed it.
    pub since: String,
}

/// The way in which a word of a command was read that sets nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WordEffect {
    /// It changes nothing in memory, schedule or speed.
    WithoutEffect,
    /// It matters, and the prediction does not know it.
    NotModelled,
    /// The runtime may take it; it was not understood.
    NotUnderstood,
    /// The runtime refuses it: the server does not start.
    Refused,
}

impl OptionEffects {
    /// Whether the option changes nothing of a server that runs, with the reason, or what it changes; `None` where neither
    /// list has it.
    pub fn of(&self, option: &str) -> Option<Result<&str, &NotModelled>> {
        let none = self.none.get(option).map(|why| Ok(why.as_str()));
        none.or_else(|| {
            let matters = self.not_modelled.get(option)?;
            let at_start = matters.changes.iter().all(|change| *change == Changes::Start);
            Some(if at_start { Ok(matters.why.as_str()) } else { Err(matters) })
        })
    }
}

impl NotModelled {
    /// Why it matters, with its size.
    pub fn words(&self) -> String {
        match &self.size {
            Some(size) => format!("{} ({size})", self.why),
            None => self.why.clone(),
        }
    }
}
