//! Rules of a runtime as data, each with a condition, a requirement, words for people and a source.

use crate::spec::degree::Degree;
use crate::spec::role::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One rule of a runtime. It applies where every condition holds.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its id, unique in the file.
    pub id: String,
    /// Versions of the runtime; all if absent.
    pub versions: Option<VersionRange>,
    /// Condition on the worker.
    #[serde(default)]
    pub when: RuleCondition,
    /// The requirement.
    pub needs: Requirement,
    /// The rule in words.
    pub words: String,
    /// Source.
    pub source: String,
}

/// Name of a rank of a runtime on certain devices.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RankUnit {
    /// Device generations.
    pub families: Vec<String>,
    /// Ranks on one device.
    pub ranks: u64,
    /// Its name, e.g. `logical NeuronCore`.
    pub name: String,
    /// Source.
    pub source: String,
}

/// Versions of a runtime. A run without a version is of the newest, unless a change is too new to count on.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VersionRange {
    /// The first version.
    pub from: Option<String>,
    /// The first version after the range.
    pub below: Option<String>,
    /// Whether a run without a version counts as one of the range; if absent, it counts as the newest.
    pub unstated: Option<bool>,
}

/// Condition of a rule; what is empty or absent holds for all.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RuleCondition {
    /// Roles of the worker: one of these.
    pub roles: Vec<Role>,
    /// Classes of the model: all of these.
    pub models: Vec<ModelClass>,
    /// Classes of the model: none of these.
    pub except_models: Vec<ModelClass>,
    /// `model_type` of the configuration: one of these.
    pub model_types: Vec<String>,
    /// `model_type` of the configuration: none of these.
    pub except_model_types: Vec<String>,
    /// Device generations: one of these.
    pub devices: Vec<String>,
    /// Degrees above 1: all of these.
    pub above_one: Vec<Degree>,
    /// The worker spans several hosts.
    pub several_hosts: bool,
}

/// Matrices whose shards may end inside a block of weights that share a scale: the runtime pads the shards, divides the
/// blocks, or has a scale for each shard.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CutBlocks {
    /// Weight formats.
    pub formats: Vec<String>,
    pub matrices: Vec<DividedMatrix>,
    /// The smallest divisor that shard and block must have in common; any if absent.
    pub least: Option<u64>,
    /// Versions of the runtime; all if absent.
    pub versions: Option<VersionRange>,
    /// Source.
    pub source: String,
}

/// A matrix that tensor parallelism divides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DividedMatrix {
    /// Those of routed experts.
    Experts,
    /// Divided by inputs: the second matrix of attention or of a feed-forward network.
    Inputs,
    /// Divided by outputs.
    Outputs,
    /// Divided by outputs and stored with others as one: queries, keys and values; gate and up.
    JoinedOutputs,
}

impl CutBlocks {
    /// Whether shards may cut a block with which they have the divisor `common`.
    pub fn allows(&self, format: &str, matrix: DividedMatrix, common: u64) -> bool {
        self.formats.iter().any(|known| known == format)
            && self.matrices.contains(&matrix)
            && self.least.is_none_or(|least| common >= least)
    }
}

/// Deployments and devices that are considered only where they are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Allowance {
    /// Heterogeneous workers share the requests, which needs a router with weights.
    CustomRouter,
    /// Devices of vendors without any measurement compete for the recommended builds.
    Unmeasured,
}

/// Class of a model that rules distinguish. A model may be of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelClass {
    /// Without routed experts.
    Dense,
    /// With routed experts.
    Moe,
    /// Multi-head latent attention.
    Mla,
    /// Multi-head latent attention over selected tokens.
    SparseMla,
    /// Grouped-query or multi-head attention.
    Gqa,
    /// Recurrent layers with a state (Mamba, linear attention).
    State,
    /// Sliding-window or chunked attention in some layers.
    Sliding,
    /// With a vision or audio encoder.
    Multimodal,
    /// With a draft for speculative decoding.
    Draft,
}

/// Requirement of a rule.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Requirement {
    /// No such worker.
    Never {},
    /// Each of these degrees is 1.
    One {
        /// The degrees.
        degrees: Vec<Degree>,
    },
    /// At most one of these degrees is above 1.
    OneAtATime {
        /// The degrees.
        degrees: Vec<Degree>,
    },
    /// The degree is 1, or all devices of a pipeline stage.
    OneOrAll {
        /// The degree.
        degree: Degree,
    },
    /// The degree is a power of two.
    PowerOfTwo {
        /// The degree.
        degree: Degree,
    },
    /// The degree is at most `most`.
    AtMost {
        /// The degree.
        degree: Degree,
        /// The maximum.
        most: u64,
    },
    /// The devices of the degree are in one host: it divides the devices of a host where the worker spans several.
    InOneHost {
        /// The degree.
        degree: Degree,
    },
    /// `tp` times the ranks of a device divides the attention heads, and divides or repeats the KV heads.
    RanksDivideHeads {
        /// Ranks that the runtime counts on one device.
        ranks: u64,
    },
    /// The KV cache is in one of these formats.
    KvFormats {
        /// Ids of the formats.
        formats: Vec<String>,
    },
    /// Disaggregated: prefill and decode workers have the same degree.
    SameOnBothSides {
        /// The degree.
        degree: Degree,
    },
    /// Disaggregated: the degree of the decode workers is that of the prefill workers, or 1.
    DecodeSameOrOne {
        /// The degree.
        degree: Degree,
    },
    /// Disaggregated: the degree of one side is a multiple of the other's.
    MultipleOfOtherSide {
        /// The degree.
        degree: Degree,
    },
}

impl Requirement {
    /// The degree that both sides of a disaggregated deployment must agree on, if it is about both sides.
    pub fn of_both_sides(&self) -> Option<Degree> {
        match self {
            Requirement::SameOnBothSides { degree }
            | Requirement::DecodeSameOrOne { degree }
            | Requirement::MultipleOfOtherSide { degree } => Some(*degree),
            _ => None,
        }
    }
}

impl VersionRange {
    /// Whether `version` is in the range; none is the newest.
    pub fn holds(&self, version: Option<&str>) -> bool {
        let Some(version) = version else { return self.unstated.unwrap_or(self.below.is_none()) };
        let version = numbers(version);
        self.from.as_ref().is_none_or(|from| version >= numbers(from))
            && self.below.as_ref().is_none_or(|below| version < numbers(below))
    }
}

/// The numbers of a version, without zeros at its end.
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.trim_start_matches('v').split('.').map(|part| {
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    });
    let mut numbers: Vec<u64> = parts.collect();
    while numbers.last() == Some(&0) {
        numbers.pop();
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_in_a_range_by_its_numbers_and_none_is_the_newest() {
        let range = |from: Option<&str>, below: Option<&str>| VersionRange {
            from: from.map(str::to_owned),
            below: below.map(str::to_owned),
            unstated: None,
        };
        let holds = |from, below, version| range(from, below).holds(version);
        assert!(holds(Some("0.9"), None, Some("0.10.1")), "10 is after 9");
        assert!(!holds(Some("0.33"), None, Some("0.32.9")));
        assert!(holds(Some("0.33"), None, Some("v0.33.0rc1")));
        assert!(!holds(None, Some("0.33"), Some("0.33.0")));
        assert!(holds(None, Some("0.33"), Some("0.32")));
        assert!(holds(Some("0.33"), None, None));
        assert!(!holds(None, Some("0.33"), None), "none is the newest");
        let old = VersionRange { unstated: Some(true), ..range(None, Some("0.33")) };
        assert!(old.holds(None) && old.holds(Some("0.32")) && !old.holds(Some("0.33")));
    }
}
