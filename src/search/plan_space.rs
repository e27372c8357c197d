//! The plans that may be the answer.

use super::candidate::{Candidate, PoolPlan};
use crate::plan::infeasible::Infeasible;
use crate::plan::parallel::ParallelPlan;
use crate::plan::rules::RoleSet;
use crate::spec::evidence::{EvidenceRule, MeasuredKinds};
use crate::spec::offload::Offload;
use crate::spec::plan_space::{ServingMode, UnusedDegrees};
use crate::spec::role::Role;

/// Limits on plans beyond those of the model, the devices and the runtime.
#[derive(Clone, Debug, Default)]
pub struct PlanSpace {
    pub mode: Option<ServingMode>,
    pub without: UnusedDegrees,
    /// Kinds that were measured, nearest to the problem; `None` where models of its class never were.
    pub kinds: Option<MeasuredKinds>,
    /// Whether the answer should be of such a kind.
    pub rule: EvidenceRule,
    /// Whether only plans of such kinds are searched.
    pub measured_only: bool,
    /// The most degrees above 1 that a worker may use.
    pub most_degrees: Option<u32>,
}

impl PlanSpace {
    /// Measured runs with such workers.
    fn rows(&self, role: Role, plan: &ParallelPlan, offload: Offload) -> u64 {
        let degrees = plan.kind_degrees().filter(|_| offload == Offload::Nothing);
        self.kinds.as_ref().zip(degrees).map_or(0, |(kinds, degrees)| kinds.rows(role, degrees))
    }

    fn admits_worker(&self, role: Role, plan: &ParallelPlan, offload: Offload) -> bool {
        let mode = match self.mode {
            Some(ServingMode::Aggregated) => role == Role::Aggregated,
            Some(ServingMode::Disaggregated) => role != Role::Aggregated,
            None => true,
        };
        let [tp, pp, dp, cp, ep] = [plan.tp, plan.pp, plan.dp, plan.cp * plan.dcp, plan.ep];
        mode && self.without.admits([tp, pp, dp, cp, ep])
            && self.most_degrees.is_none_or(|most| plan.used_degrees() <= most)
            && (!self.measured_only || self.rows(role, plan, offload) > 0)
    }

    /// The roles of `possible` that workers with this plan may have.
    ///
    /// # Errors
    /// None of them is left.
    pub fn roles(
        &self,
        possible: RoleSet,
        plan: &ParallelPlan,
        offload: Offload,
    ) -> Result<RoleSet, Infeasible> {
        let admits = |role| self.admits_worker(role, plan, offload);
        let left = RoleSet {
            aggregated: possible.aggregated && admits(Role::Aggregated),
            prefill: possible.prefill && admits(Role::Prefill),
            decode: possible.decode && admits(Role::Decode),
        };
        if possible.any() && !left.any() {
            Err(Infeasible::NotSearched { plan: plan.label() })
        } else {
            Ok(left)
        }
    }

    /// Whether each pool of a deployment is admitted.
    pub fn has(&self, candidate: &Candidate) -> bool {
        let admitted = |pool: &PoolPlan| self.admits_worker(pool.role, &pool.plan, candidate.offload);
        candidate.pools.iter().all(admitted)
    }

    /// Measured runs with the workers of a deployment: of the pool with the fewest.
    pub fn rows_of(&self, candidate: &Candidate) -> u64 {
        let rows = |pool: &PoolPlan| self.rows(pool.role, &pool.plan, candidate.offload);
        candidate.pools.iter().map(rows).min().unwrap_or(0)
    }
}
