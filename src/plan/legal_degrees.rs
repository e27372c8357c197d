//! The degrees that a model and devices allow, kind by kind: what a form or an interface can offer.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::enumerate::Plans;
use super::legal::{LegalLimits, check};
use super::parallel::ParallelPlan;
use crate::graph::model::ModelGraph;

/// Degrees of each kind that some legal plan has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LegalDegrees {
    /// Tensor parallelism of attention.
    pub tp: BTreeSet<u64>,
    /// Tensor parallelism of dense feed-forward layers and shared experts.
    pub ffn_tp: BTreeSet<u64>,
    /// Tensor parallelism of the embedding and the LM head.
    pub vocab_tp: BTreeSet<u64>,
    /// Pipeline parallelism.
    pub pp: BTreeSet<u64>,
    /// Context parallelism.
    pub cp: BTreeSet<u64>,
    /// Attention data parallelism.
    pub dp: BTreeSet<u64>,
    /// Expert parallelism.
    pub ep: BTreeSet<u64>,
    /// Whether norms and residuals may be sharded by token.
    pub sp: bool,
}

/// The degrees of the legal plans, and those per layer type, which no enumeration has.
pub fn legal_degrees(graph: &ModelGraph, limits: &LegalLimits, plans: &Plans) -> LegalDegrees {
    let of = |degree: fn(&ParallelPlan) -> u64| plans.legal.iter().map(degree).collect();
    let tp: BTreeSet<u64> = of(|plan| plan.tp);
    let plain = |tp| ParallelPlan { tp, ..ParallelPlan::SINGLE }.without_experts();
    let legal = |plan: ParallelPlan| check(graph, &plan, limits).is_ok();
    let largest = tp.last().copied().unwrap_or(1);
    let per_type = |with: fn(ParallelPlan, u64) -> ParallelPlan| {
        let holds = |degree: &u64| tp.iter().any(|tp| legal(with(plain(*tp), *degree)));
        (1..=largest).filter(holds).collect()
    };
    LegalDegrees {
        ffn_tp: per_type(|plan, degree| ParallelPlan { ffn_tp: Some(degree), ..plan }),
        vocab_tp: per_type(|plan, degree| ParallelPlan { vocab_tp: Some(degree), ..plan }),
        pp: of(|plan| plan.pp),
        cp: of(|plan| plan.cp),
        dp: of(|plan| plan.dp),
        ep: of(|plan| plan.ep),
        sp: plans.legal.iter().any(|plan| plan.sp),
        tp,
    }
}
