//! Why there is no answer, as it leaves the house: conditions that conflict, and changes with which there is one.

use schemars::JsonSchema;
use serde::Serialize;

use super::flag::{Flag, line, stated};
use crate::search::relax::Condition;

/// Why there is no answer.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ConflictReport {
    /// Every set of conditions that this hardware cannot keep together; leaving out any one of a set, it can keep the
    /// others of it.
    pub conflicts: Vec<ConflictSet>,
    /// Changes that end every conflict, each searched again exactly as its flags say.
    pub remedies: Vec<Remedy>,
    /// So many GB more memory on every device of the same kind, in whole GB, and there is an answer; null where there
    /// is none with four times as much, or memory is not what is short.
    pub more_memory_gb: Option<u64>,
    /// All of this was searched to its end; false where it was stopped, and more may be missing.
    pub complete: bool,
}

/// Conditions that cannot be kept together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConflictSet {
    /// The conditions, as flags.
    pub conditions: Vec<String>,
    /// Why not, where that is more than that no plan keeps them.
    pub why: Option<String>,
}

impl ConflictSet {
    /// Of conditions that no plan keeps.
    pub fn of(conditions: &[Condition]) -> ConflictSet {
        ConflictSet { conditions: conditions.iter().map(stated).collect(), why: None }
    }
}

/// A change with which there is an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Remedy {
    /// The flags to type, in place of what was said of the same.
    pub flags: String,
    /// What they take the place of, as flags; empty where nothing was said.
    pub now: String,
    /// How near the change is to the least.
    pub claim: RemedyClaim,
    /// The flags one printed unit tighter, each by itself: none of them has an answer where the claim is `least`.
    pub tighter: Vec<String>,
}

/// How near a change is to the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RemedyClaim {
    /// One unit of the printed digits tighter, in any of its flags, and there is no answer.
    Least,
    /// Something tighter has an answer as well.
    About,
    /// There is an answer; nothing is said of others.
    Works,
}

impl Remedy {
    /// Of flags, in place of `now`, and the tighter ones that were tried.
    pub fn new(flags: &[Flag], now: String, claim: RemedyClaim, tighter: &[Flag]) -> Remedy {
        Remedy { flags: line(flags), now, claim, tighter: tighter.iter().map(Flag::to_string).collect() }
    }
}
