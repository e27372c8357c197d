//! Strategy families. Every deployment belongs to one; a problem may be restricted to one.

use super::candidate::Candidate;
use crate::plan::parallel::ParallelPlan;
use crate::spec::offload::Offload;
use crate::spec::role::Role;

/// Parallelism strategy of a deployment.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum StrategyFamily {
    /// No restriction.
    #[default]
    Any,
    /// Replicas of one device.
    Single,
    /// Tensor parallelism only.
    Tensor,
    /// Pipeline parallelism only.
    Pipeline,
    /// Context parallelism only.
    Context,
    /// Data-parallel attention only.
    Data,
    /// Expert parallelism over the ranks of one other degree.
    Expert,
    /// Several degrees combined.
    Hybrid,
    /// Disaggregated prefill and decode workers.
    Split,
    /// Part of the model offloaded to host memory.
    Offload,
    /// Replicas of several families in one deployment.
    Mixed,
}

impl StrategyFamily {
    /// Families that a problem can be restricted to.
    pub const EACH: [StrategyFamily; 9] = [
        StrategyFamily::Single,
        StrategyFamily::Tensor,
        StrategyFamily::Pipeline,
        StrategyFamily::Context,
        StrategyFamily::Data,
        StrategyFamily::Expert,
        StrategyFamily::Hybrid,
        StrategyFamily::Split,
        StrategyFamily::Offload,
    ];

    pub fn name(self) -> &'static str {
        match self {
            StrategyFamily::Any => "any",
            StrategyFamily::Single => "single device",
            StrategyFamily::Tensor => "TP",
            StrategyFamily::Pipeline => "PP",
            StrategyFamily::Context => "CP",
            StrategyFamily::Data => "DP",
            StrategyFamily::Expert => "EP",
            StrategyFamily::Hybrid => "hybrid",
            StrategyFamily::Split => "disaggregated",
            StrategyFamily::Offload => "offload",
            StrategyFamily::Mixed => "mixed",
        }
    }

    /// The family of an aggregated replica.
    fn of_plan(plan: &ParallelPlan) -> StrategyFamily {
        let degrees = [
            (plan.tp, StrategyFamily::Tensor),
            (plan.pp, StrategyFamily::Pipeline),
            (plan.cp, StrategyFamily::Context),
            (plan.dp, StrategyFamily::Data),
        ];
        let mut used = degrees.into_iter().filter(|(degree, _)| *degree > 1).map(|(_, family)| family);
        match (used.next(), used.next()) {
            (None, _) => StrategyFamily::Single,
            (Some(_), Some(_)) => StrategyFamily::Hybrid,
            (Some(_), None) if plan.ep > 1 => StrategyFamily::Expert,
            (Some(one), None) => one,
        }
    }

    pub fn of(candidate: &Candidate) -> StrategyFamily {
        let both = candidate.pools.iter().filter(|pool| pool.role == Role::Aggregated).count();
        if both < candidate.pools.len() {
            return if both == 0 { StrategyFamily::Split } else { StrategyFamily::Mixed };
        }
        if candidate.offload != Offload::Nothing {
            return StrategyFamily::Offload;
        }
        let mut families = candidate.pools.iter().map(|pool| StrategyFamily::of_plan(&pool.plan));
        let first = families.next().unwrap_or_default();
        if families.all(|family| family == first) { first } else { StrategyFamily::Mixed }
    }

    /// Whether the family admits instances with this plan.
    pub fn admits(self, plan: &ParallelPlan) -> bool {
        match self {
            StrategyFamily::Any | StrategyFamily::Split | StrategyFamily::Offload | StrategyFamily::Mixed => {
                true
            }
            one => StrategyFamily::of_plan(plan) == one,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_is_of_one_family() {
        let one = ParallelPlan::SINGLE;
        for (plan, family) in [
            (one, StrategyFamily::Single),
            (ParallelPlan { tp: 4, ..one }.with_experts(1), StrategyFamily::Tensor),
            (ParallelPlan { tp: 4, ep: 4, ..one }, StrategyFamily::Expert),
            (ParallelPlan { dp: 2, ..one }.with_experts(1), StrategyFamily::Data),
            (ParallelPlan { pp: 3, ..one }, StrategyFamily::Pipeline),
            (ParallelPlan { cp: 2, ..one }.with_experts(1), StrategyFamily::Context),
            (ParallelPlan { tp: 2, dp: 4, ep: 8, ..one }, StrategyFamily::Hybrid),
        ] {
            let admitting: Vec<StrategyFamily> =
                StrategyFamily::EACH[..7].iter().copied().filter(|family| family.admits(&plan)).collect();
            assert_eq!(admitting, [family], "{plan:?}");
        }
    }
}
