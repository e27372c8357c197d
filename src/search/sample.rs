//! Random deployments from the full space that a runtime supports, and from the neighbourhood of the optimum: none
//! may be better than the optimum.
//!
//! Independent of the enumeration, bounds, families, grids and sizes of the search: degrees of any size, mixed
//! replicas, pools of any sizes, stages cut anywhere, idle devices, any loads. A sample counts only after its plans,
//! devices and memory are checked here. A fixed seed makes the sample reproducible.

mod draw;
mod fit;

use super::candidate::{Candidate, PoolPlan};
use super::outcome::EvaluatedCandidate;
use super::point::{Point, place, point};
use super::problem::{Problem, Traffic};
use super::shape::cuts;
use crate::quantity::read::Plain;
use crate::quantity::tolerance::SUMMED;
use crate::spec::objective::{Direction, ObjectiveTerm};
use crate::spec::role::Role;
use draw::Draw;

#[derive(Clone, Debug, Default)]
pub struct SampleResult {
    /// Deployments that were drawn, are valid, and were evaluated.
    pub drawn: u64,
    /// Of these, the number within the SLOs.
    pub kept: u64,
    /// Of these, the ones better than the claimed optimum.
    pub better: Vec<EvaluatedCandidate>,
    /// The same with a pipeline cut that is not searched.
    pub other_cuts: Vec<EvaluatedCandidate>,
}

/// Draws `count` deployments by `seed`, half of them near `best`, and compares them with it; without comparison where
/// `best` is `None`.
pub fn sample(problem: &Problem, best: Option<&EvaluatedCandidate>, count: u64, seed: u64) -> SampleResult {
    let mut sample = SampleResult::default();
    // A request beyond the maximum context length is never feasible.
    if problem.context_fits().is_err() {
        return sample;
    }
    let mut draw = Draw::new(problem, seed);
    // Bounded retries: there may be nothing to draw.
    for _ in 0..count.saturating_mul(4) {
        if sample.drawn == count {
            break;
        }
        let Some(candidate) = draw.candidate(best.map(|best| &best.candidate)) else { continue };
        if !fit::runs(problem, &candidate) {
            continue;
        }
        let evaluation = candidate.evaluate(&Plain, problem, &mut ());
        sample.drawn += 1;
        let late = problem.missed_in_pools(&evaluation, candidate.margin(problem)).next().is_some();
        if late || !carries(problem, &candidate) {
            continue;
        }
        let found = EvaluatedCandidate { point: point(&evaluation.metrics), candidate };
        sample.kept += 1;
        // Ties of the first term are decided by the likelihood of the SLOs before the other terms.
        let alike =
            |best: &EvaluatedCandidate| problem.margins_met(&found.point) == problem.margins_met(&best.point);
        let decided = |best: &&EvaluatedCandidate| {
            let first = problem.objective.get(..1).unwrap_or_default();
            if alike(best) { &problem.objective[..] } else { first }
        };
        if best.is_none_or(|best| is_better(&found.point, &best.point, decided(&best))) {
            let searched = found.candidate.pools.iter().all(|pool| {
                cuts(&problem.graph, &problem.formats[found.candidate.formats], pool.plan.pp)
                    .contains(&pool.stages)
            });
            if searched { sample.better.push(found) } else { sample.other_cuts.push(found) }
        }
    }
    sample
}

/// Whether `a` is better than `b` in the first objective term that differs by more than rounding.
fn is_better(a: &Point, b: &Point, objective: &[ObjectiveTerm]) -> bool {
    for term in objective {
        let (x, y) = (a[place(term.metric)], b[place(term.metric)]);
        let differs = (x - y).abs() > SUMMED * x.abs().max(y.abs());
        match (x.is_nan(), y.is_nan()) {
            (true, true) => continue,
            (true, false) => return false,
            (false, true) => return true,
            _ if !differs => continue,
            _ => return (x < y) == (term.direction == Direction::Minimize),
        }
    }
    false
}

/// Whether it carries the traffic of the problem: with closed-loop traffic it reaches the rate or holds the
/// concurrency. A decode-only pool needs no slot for requests that wait for prefill.
fn carries(problem: &Problem, candidate: &Candidate) -> bool {
    let enough = |there: f64, least: f64| there >= least * (1.0 - SUMMED);
    let filled = |candidate: &Candidate| {
        candidate.evaluate(&Plain, &problem.with_traffic(Traffic::Free), &mut ()).metrics
    };
    match problem.traffic {
        Traffic::Free => true,
        Traffic::Rate(rate) => {
            let carried = |candidate: &Candidate| {
                enough(filled(candidate).output_tok_s.value() / problem.workload.lengths.osl as f64, rate)
            };
            // Slots that the rate does not fill are no load: batches would be larger than they get.
            carried(candidate) && !emptier(candidate).any(|fewer| carried(&fewer))
        }
        Traffic::InFlight(_) => {
            let both = candidate.pools.iter().any(|pool| pool.role == Role::Aggregated);
            let held = || filled(candidate).in_flight.value();
            !both || problem.traffic.in_flight().is_none_or(|requests| enough(held(), requests))
        }
    }
}

/// The candidate with lower loads per attention rank in a pool that decodes, for every such pool: one request less, the
/// most below it that fill the micro-batches of a pipeline equally, and the loads at which no request meets another.
/// Where none of these carries a rate, no lower load does: throughput falls where requests begin to meet others, where
/// micro-batches are filled unequally, and beyond its maximum.
fn emptier(candidate: &Candidate) -> impl Iterator<Item = Candidate> {
    let decoding = candidate.pools.iter().enumerate().filter(|(_, pool)| pool.role != Role::Prefill);
    decoding.flat_map(move |(at, pool)| {
        let PoolPlan { plan, concurrency, .. } = *pool;
        let below = concurrency.div_ceil(plan.dp).saturating_sub(1);
        let lower = [below, below / plan.pp * plan.pp, plan.pp, 1].into_iter();
        let lower = lower.filter(move |requests| (1..=below).contains(requests));
        lower.map(move |requests| {
            let mut fewer = candidate.clone();
            fewer.pools[at].concurrency = requests * plan.dp;
            fewer
        })
    })
}
