//! Families of strategies: every deployment is of one. A question may be held to one of them.

use super::candidate::{Candidate, Duty};
use crate::plan::parallel::ParallelPlan;
use crate::serving::terms::Offload;

/// What a deployment rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Whatever there is.
    #[default]
    Any,
    /// Instances of one device.
    Single,
    /// Tensor parallel alone.
    Tensor,
    /// Pipeline parallel alone.
    Pipeline,
    /// Context parallel alone.
    Context,
    /// Data parallel attention alone.
    Data,
    /// Experts spread over the ranks of one other degree.
    Expert,
    /// Several degrees at once.
    Hybrid,
    /// Prompts and answers on instances of their own.
    Split,
    /// Part of the model in host memory.
    Offload,
    /// Unlike instances side by side, of several families.
    Mixed,
}

impl Family {
    /// Those that a question can be held to.
    pub const EACH: [Family; 9] = [
        Family::Single,
        Family::Tensor,
        Family::Pipeline,
        Family::Context,
        Family::Data,
        Family::Expert,
        Family::Hybrid,
        Family::Split,
        Family::Offload,
    ];

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Family::Any => "any",
            Family::Single => "one device each",
            Family::Tensor => "TP",
            Family::Pipeline => "PP",
            Family::Context => "CP",
            Family::Data => "DP",
            Family::Expert => "EP",
            Family::Hybrid => "hybrid",
            Family::Split => "split",
            Family::Offload => "offload",
            Family::Mixed => "mixed",
        }
    }

    /// The family of an instance that takes prompts and answers.
    fn of_plan(plan: &ParallelPlan) -> Family {
        let degrees = [
            (plan.tp, Family::Tensor),
            (plan.pp, Family::Pipeline),
            (plan.cp, Family::Context),
            (plan.dp, Family::Data),
        ];
        let mut used = degrees.into_iter().filter(|(degree, _)| *degree > 1).map(|(_, family)| family);
        match (used.next(), used.next()) {
            (None, _) => Family::Single,
            (Some(_), Some(_)) => Family::Hybrid,
            (Some(_), None) if plan.ep > 1 => Family::Expert,
            (Some(one), None) => one,
        }
    }

    /// The family of a deployment.
    pub fn of(candidate: &Candidate) -> Family {
        let both = candidate.pools.iter().filter(|pool| pool.duty == Duty::Both).count();
        if both < candidate.pools.len() {
            return if both == 0 { Family::Split } else { Family::Mixed };
        }
        if candidate.offload != Offload::Nothing {
            return Family::Offload;
        }
        let mut families = candidate.pools.iter().map(|pool| Family::of_plan(&pool.plan));
        let first = families.next().unwrap_or_default();
        if families.all(|family| family == first) { first } else { Family::Mixed }
    }

    /// Whether instances so split may be part of it.
    pub fn admits(self, plan: &ParallelPlan) -> bool {
        match self {
            Family::Any | Family::Split | Family::Offload | Family::Mixed => true,
            one => Family::of_plan(plan) == one,
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
            (one, Family::Single),
            (ParallelPlan { tp: 4, moe_tp: 4, ..one }, Family::Tensor),
            (ParallelPlan { tp: 4, ep: 4, ..one }, Family::Expert),
            (ParallelPlan { dp: 2, moe_tp: 2, ..one }, Family::Data),
            (ParallelPlan { pp: 3, ..one }, Family::Pipeline),
            (ParallelPlan { cp: 2, moe_tp: 2, ..one }, Family::Context),
            (ParallelPlan { tp: 2, dp: 4, ep: 8, ..one }, Family::Hybrid),
        ] {
            let admitting: Vec<Family> =
                Family::EACH[..7].iter().copied().filter(|family| family.admits(&plan)).collect();
            assert_eq!(admitting, [family], "{plan:?}");
        }
    }
}
