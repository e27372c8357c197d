//! A candidate as a plan that can be typed: everything that determines what it yields, and nothing that follows
//! from the rest.

use crate::plan::parallel::ParallelPlan;
use crate::search::candidate::{Candidate, PoolPlan};
use crate::search::problem::Problem;
use crate::search::shape::usual_cut;
use crate::spec::degree::{Degree, Degrees};
use crate::spec::notation::{PlanText, PoolText};
use crate::spec::offload::Offload;

/// The plan of `candidate`, with the formats by name.
pub fn notation(problem: &Problem, candidate: &Candidate) -> PlanText {
    notation_by(problem, candidate, |plan| usual_cut(&problem.graph, plan.pp))
}

/// The same where `first_cut` has the pipeline cut of a plan where none is given.
pub fn notation_by(
    problem: &Problem,
    candidate: &Candidate,
    first_cut: impl Fn(&ParallelPlan) -> Vec<u32>,
) -> PlanText {
    let formats = &problem.formats[candidate.formats];
    PlanText {
        pools: candidate.pools.iter().map(|one| pool(one, &first_cut)).collect(),
        weights: Some(formats.weights.clone()),
        prefill_weights: formats.prefill_weights.clone(),
        kv: Some(formats.kv.clone()),
        offload: candidate.offload.streamed(),
        host: match candidate.offload {
            Offload::Host(part) => Some(part),
            Offload::Nothing | Offload::Streamed(_) => None,
        },
    }
}

fn pool(pool: &PoolPlan, first_cut: impl Fn(&ParallelPlan) -> Vec<u32>) -> PoolText {
    let plan = &pool.plan;
    let cut = plan.pp > 1 && !pool.stages.is_empty() && first_cut(plan) != pool.stages;
    let mut degrees = Degrees {
        sp: plan.sp.then_some(true),
        stages: cut.then(|| pool.stages.clone()),
        replicas: Some(pool.replicas),
        ..Degrees::default()
    };
    // The degree inside experts follows from the others.
    for degree in Degree::stated().filter(|degree| *degree != Degree::MoeTp) {
        degrees.get_mut(degree).into_iter().for_each(|slot| *slot = plan.used(degree));
    }
    PoolText { role: pool.role, degrees, concurrency: Some(pool.concurrency) }
}
