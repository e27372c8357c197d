//! Which kinds of deployments were measured.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::degree::Degree;
use super::nearness::PredictionIntervals;
use super::role::Role;

/// Which plans may be the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum EvidenceRule {
    /// Those of a kind that was measured, unless none of them is inside the interval of the best of all.
    #[default]
    Measured,
    /// All.
    Any,
}

/// The degrees by which kinds of workers differ.
pub const KIND_DEGREES: [Degree; 5] = [Degree::Tp, Degree::Pp, Degree::Dp, Degree::Cp, Degree::Ep];

/// Measured workers that use the same degrees, with the largest of each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasuredKind {
    /// Runtime.
    pub runtime: String,
    /// Vendor of the devices.
    pub vendor: String,
    /// Class of the devices.
    pub class: String,
    /// Whether the models have experts.
    pub experts: bool,
    /// Whether they decode with drafts.
    pub drafts: bool,
    /// Role of the workers.
    pub role: Role,
    /// Largest degrees; 1 where a degree is not used.
    pub tp: u64,
    pub pp: u64,
    pub dp: u64,
    pub cp: u64,
    pub ep: u64,
    /// Number of measured runs.
    pub rows: u64,
}

impl MeasuredKind {
    /// The largest degrees, in the order of [`KIND_DEGREES`].
    pub fn largest(&self) -> [u64; 5] {
        [self.tp, self.pp, self.dp, self.cp, self.ep]
    }

    /// Whether a worker uses the same degrees, and none is larger.
    fn has(&self, role: Role, degrees: [u64; 5]) -> bool {
        let used = |(own, most): (u64, u64)| (own > 1) == (most > 1) && own <= most;
        self.role == role && degrees.into_iter().zip(self.largest()).all(used)
    }
}

/// Where the kinds were measured, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceScope {
    /// With this runtime on devices of this vendor and class.
    Here,
    /// With this runtime on other devices.
    Runtime,
    /// With other runtimes.
    Elsewhere,
}

/// The question whose kinds are looked up.
#[derive(Clone, Copy, Debug)]
pub struct KindQuery<'a> {
    pub runtime: &'a str,
    pub vendor: &'a str,
    pub class: &'a str,
    pub experts: bool,
    pub drafts: bool,
}

/// The measured kinds nearest to a question.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredKinds {
    pub scope: EvidenceScope,
    kinds: Arc<Vec<MeasuredKind>>,
}

impl MeasuredKinds {
    /// Of all measured kinds, those of the nearest scope that has any; `None` where models of this class were never
    /// measured.
    pub fn nearest(all: &[MeasuredKind], query: &KindQuery) -> Option<MeasuredKinds> {
        let like = |one: &&MeasuredKind| one.experts == query.experts && one.drafts == query.drafts;
        let scope = |one: &MeasuredKind| match (one.runtime == query.runtime, one.vendor == query.vendor) {
            (true, true) if one.class == query.class => EvidenceScope::Here,
            (true, _) => EvidenceScope::Runtime,
            (false, _) => EvidenceScope::Elsewhere,
        };
        let nearest = all.iter().filter(like).map(scope).min()?;
        let kinds = all.iter().filter(like).filter(|one| scope(one) == nearest).cloned().collect();
        Some(MeasuredKinds { scope: nearest, kinds: Arc::new(kinds) })
    }

    /// The number of measured runs with such workers.
    pub fn rows(&self, role: Role, degrees: [u64; 5]) -> u64 {
        self.kinds.iter().filter(|one| one.has(role, degrees)).map(|one| one.rows).sum()
    }
}

/// The measurements near a member of a rig.
#[derive(Clone, Debug)]
pub struct MemberRecord {
    pub name: String,
    /// Id of its device.
    pub device: String,
    pub intervals: PredictionIntervals,
    /// Kinds of deployments that were measured; `None` where models of this class never were.
    pub kinds: Option<MeasuredKinds>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(runtime: &str, vendor: &str, role: Role, [tp, pp, dp, cp, ep]: [u64; 5]) -> MeasuredKind {
        let (runtime, vendor, class) = (runtime.to_owned(), vendor.to_owned(), "datacenter".to_owned());
        let (experts, drafts) = (false, false);
        MeasuredKind { runtime, vendor, class, experts, drafts, role, tp, pp, dp, cp, ep, rows: 2 }
    }

    #[test]
    fn workers_are_of_a_kind_by_the_degrees_that_they_use() {
        let all = [
            kind("vllm", "nvidia", Role::Aggregated, [8, 1, 1, 1, 1]),
            kind("vllm", "nvidia", Role::Aggregated, [4, 2, 1, 1, 1]),
            kind("vllm", "nvidia", Role::Decode, [4, 1, 1, 1, 1]),
            kind("sglang", "amd", Role::Aggregated, [1, 1, 8, 1, 8]),
        ];
        let query = |runtime, vendor| KindQuery {
            runtime,
            vendor,
            class: "datacenter",
            experts: false,
            drafts: false,
        };
        let known = MeasuredKinds::nearest(&all, &query("vllm", "nvidia")).unwrap();
        let rows = |role, degrees| known.rows(role, degrees);
        assert_eq!(rows(Role::Aggregated, [2, 1, 1, 1, 1]), 2, "a smaller degree");
        assert_eq!(rows(Role::Aggregated, [16, 1, 1, 1, 1]), 0, "a larger one");
        assert_eq!(rows(Role::Aggregated, [2, 2, 1, 1, 1]), 2, "two degrees together");
        assert_eq!(rows(Role::Aggregated, [1, 2, 1, 1, 1]), 0, "one of them alone");
        assert_eq!(rows(Role::Prefill, [2, 1, 1, 1, 1]), 0, "another role");
        let scope = |runtime, vendor| MeasuredKinds::nearest(&all, &query(runtime, vendor)).unwrap().scope;
        assert_eq!(scope("vllm", "nvidia"), EvidenceScope::Here);
        assert_eq!(scope("vllm", "amd"), EvidenceScope::Runtime);
        assert_eq!(scope("trtllm", "nvidia"), EvidenceScope::Elsewhere);
        let moe = KindQuery { experts: true, ..query("vllm", "nvidia") };
        assert_eq!(MeasuredKinds::nearest(&all, &moe), None);
    }
}
