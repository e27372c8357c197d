//! Why there is no answer, as it leaves the house: conditions that conflict, and the least changes that help.

use schemars::JsonSchema;
use serde::Serialize;

use super::number::{count, limit as spell, plain, time, word};
use crate::search::question::Question;
use crate::search::relax::{Condition, Help, Relaxed};

/// Why there is no answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Conflict {
    /// Sets of conditions that this hardware cannot keep together; leaving out any one of a set, it can keep the others
    /// of it. Empty where it cannot hold the model and a request whatever is asked.
    pub conflicts: Vec<Vec<String>>,
    /// The least single changes with which there is an answer, each found by searching again.
    pub helps: Vec<String>,
}

/// What was found, in words.
pub fn conflict(question: &Question, relaxed: &Relaxed) -> Conflict {
    let condition = |one: &Condition| match *one {
        Condition::Limit(metric, limit) => format!("{} ≤ {}", word(metric), spell(limit * 1e3)),
        Condition::InFlight(requests) => format!("{} in flight", count(requests, "request")),
        Condition::Rate(rate) => format!("{} requests/s", plain(rate)),
    };
    let nodes = question.cluster.nodes > 1;
    let help = |one: &Help| match *one {
        Help::Limit(metric, limit) => {
            let stated = question.limit(metric).map_or_else(String::new, |stated| spell(stated * 1e3));
            format!("{} ≤ {stated} → {}", word(metric), time(limit * 1e3))
        }
        Help::InFlight(requests) => format!("at most {} in flight", count(requests, "request")),
        Help::Rate(rate) => format!("at most {} requests/s", plain(rate)),
        Help::Devices(more) => format!("{} more", count(more, if nodes { "node" } else { "device" })),
        Help::Memory(bytes) => format!("{} GB more memory on every device", plain(bytes / 1e9)),
    };
    Conflict {
        conflicts: relaxed.conflicts.iter().map(|set| set.iter().map(condition).collect()).collect(),
        helps: relaxed.helps.iter().map(help).collect(),
    }
}
