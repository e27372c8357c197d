//! Why a problem is infeasible: conflicting conditions, and changes that make it feasible.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::flag::{Flag, condition_flags, line};
use crate::search::relax::Condition;
use crate::spec::objective::{Direction, ObjectiveTerm};
use crate::spec::writer::shell_word;

/// Why a problem is infeasible.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ConflictReport {
    /// Every set of conditions that this hardware cannot keep together; leaving out any one of a set, it can keep the
    /// others of it.
    pub conflicts: Vec<ConflictSet>,
    /// Changes that resolve every conflict, each re-optimized with exactly these flags; the one that gives the most by
    /// the objective first, then by throughput, then the cheaper one.
    pub remedies: Vec<Remedy>,
    /// GB of additional memory on every device of the same kind, in whole GB, and there is an answer; null where there
    /// is none with four times as much, or memory is not what is short.
    pub more_memory_gb: Option<u64>,
    /// Whether the analysis is complete; false if it was stopped.
    pub complete: bool,
}

/// Conflicting conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConflictSet {
    /// The conditions, as flags.
    pub conditions: Vec<String>,
    /// Reason, if more specific than that no plan meets them.
    pub why: Option<String>,
}

impl ConflictSet {
    /// From conditions that no plan meets.
    pub fn of(conditions: &[Condition]) -> ConflictSet {
        ConflictSet { conditions: conditions.iter().map(condition_flags).collect(), why: None }
    }
}

/// A change that makes the problem feasible.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Remedy {
    /// The flags to use in place of the current ones; in JSON, the keys.
    pub flags: String,
    /// The keys of a request with the values of these flags.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    /// The flags they replace; empty if none were given.
    pub now: String,
    /// How close the change is to the smallest one.
    pub claim: RemedyClaim,
    /// Each flag one printed unit tighter, one at a time: infeasible if the claim is `least`.
    pub tighter: Vec<String>,
    /// The optimum with these flags; null where the analysis was stopped before.
    #[serde(default)]
    pub gives: Option<RemedyGain>,
}

/// The optimum of a problem with a remedy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RemedyGain {
    /// The metric of the objective, with its better direction.
    pub objective: ObjectiveTerm,
    /// Its value, in the unit of its column.
    pub value: f64,
    /// Output tokens per second.
    #[serde(default)]
    pub output_tok_s: f64,
    /// Output tokens per second that a user sees.
    #[serde(default)]
    pub output_tok_s_per_user: f64,
    /// Cost per hour in US dollars; null where it is unknown.
    pub usd_per_hour: Option<f64>,
}

impl RemedyGain {
    /// The better one first: by the objective, then by throughput, then by cost.
    pub fn order(&self, other: &RemedyGain) -> Ordering {
        let objective = match self.objective.direction {
            Direction::Maximize => other.value.total_cmp(&self.value),
            Direction::Minimize => self.value.total_cmp(&other.value),
        };
        let cost = |one: &RemedyGain| one.usd_per_hour.unwrap_or(f64::INFINITY);
        let output = other.output_tok_s.total_cmp(&self.output_tok_s);
        objective.then(output).then(cost(self).total_cmp(&cost(other)))
    }
}

/// How close a change is to the smallest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RemedyClaim {
    /// One printed unit tighter in any of its flags is infeasible.
    Least,
    /// A tighter change is feasible as well.
    About,
    /// Feasible; tighter changes were not tested.
    Works,
}

/// A number as a number, another text as it is.
fn in_json(text: String) -> Value {
    serde_json::from_str(&text).ok().filter(Value::is_number).unwrap_or(Value::String(text))
}

impl Remedy {
    /// From flags that replace `now`, and the tighter ones tried.
    pub fn new(flags: &[Flag], now: String, claim: RemedyClaim, tighter: &[Flag]) -> Remedy {
        let tighter = tighter.iter().map(Flag::to_string).collect();
        let set =
            flags.iter().map(|flag| (flag.name()[2..].replace('-', "_"), in_json(flag.value()))).collect();
        Remedy { flags: line(flags), set, now, claim, tighter, gives: None }
    }

    /// Its values as flags, whatever the words of the answer.
    pub fn typed(&self) -> String {
        let flag = |(key, value): (&String, &Value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), shell_word);
            format!("--{} {text}", key.replace('_', "-"))
        };
        self.set.iter().map(flag).collect::<Vec<_>>().join(" ")
    }

    /// The one that gives more first; those of which nothing is known last.
    pub fn order(&self, other: &Remedy) -> Ordering {
        match (&self.gives, &other.gives) {
            (Some(one), Some(two)) => one.order(two),
            (one, two) => two.is_some().cmp(&one.is_some()),
        }
    }
}
