//! Capacity of a system for each request length within the SLOs, in every plan that is best for some length.
//!
//! The plans are those that `optimize` finds: for each length the one with the highest rate, disaggregated, mixed or
//! offloaded plans included; and, as one plan may serve several lengths, all aggregated plans of identical replicas
//! that no other plan dominates over all lengths. A plan lies within one system.

use crate::spec::offload::Offload;
use crate::spec::role::Role;
use std::sync::Arc;

use rayon::prelude::*;

use super::carried::{Carried, at_rate, most, raised};
use crate::search::aggregated::measure;
use crate::search::candidate::{Candidate, PoolPlan};
use crate::search::layouts::each;
use crate::search::outcome::Census;
use crate::search::point::{Point, place};
use crate::search::problem::{Problem, Traffic};
use crate::search::shape::{PreparedShape, filled_up};
use crate::serving::instance::Instance;
use crate::serving::terms::Lengths;
use crate::spec::objective::Metric;

/// A system with one plan.
#[derive(Clone, Debug)]
pub struct ShapeRates {
    /// The plan; its loads differ by length.
    pub candidate: Candidate,
    /// Capacity for each length; `None` where it meets no SLO or does not fit.
    pub carried: Vec<Option<Carried>>,
}

impl Carried {
    /// Its metrics with requests of `lengths`, by the common evaluation function, and the requests per second that
    /// its loads sustain.
    pub fn again(&self, problem: &Problem, lengths: Lengths) -> (Point, f64) {
        let problem = problem.with_lengths(lengths);
        let point = measure(&at_rate(&problem, self.requests_per_s), &self.candidate);
        let free = measure(&problem.with_traffic(Traffic::Free), &self.candidate);
        (point, free[place(Metric::OutputTokS)] / lengths.osl as f64)
    }
}

/// The nondominated plans of the system, with their capacity for each length.
pub fn rates(problem: &Problem, lengths: &[Lengths]) -> Vec<ShapeRates> {
    let problems: Vec<Problem> = lengths.iter().map(|lengths| problem.with_lengths(*lengths)).collect();
    let searched = searched(lengths);
    let best = problems
        .par_iter()
        .enumerate()
        .map(|(at, problem)| searched.contains(&at).then(|| most(problem)).flatten());
    let best: Vec<Option<Carried>> = best.collect();
    let mut plans: Vec<Candidate> = best.iter().flatten().map(|best| best.candidate.clone()).collect();
    if lengths.len() > 1 {
        plans.extend(alike(problem, &problems));
    }
    let rated = plans.into_par_iter().map(|plan| {
        let carries = |(problem, best): (&Problem, &Option<Carried>)| {
            let own = best.as_ref().filter(|best| best.candidate == plan).cloned();
            own.or_else(|| raised(problem, &plan))
        };
        let carried = problems.iter().zip(&best).map(carries).collect();
        ShapeRates { candidate: plan, carried }
    });
    let rate = |carried: &Option<Carried>| carried.as_ref().map_or(0.0, |carried| carried.requests_per_s);
    let rated: Vec<ShapeRates> = rated.collect();
    let serving = rated.into_iter().filter(|shape| shape.carried.iter().any(Option::is_some));
    nondominated(serving, |a, b| a.carried.iter().zip(&b.carried).all(|(a, b)| rate(a) >= rate(b)))
}

/// Maximum number of lengths that have their own plans; other lengths are served with these.
pub const SEARCHED: usize = 16;

/// The lengths whose best plan is searched: the shortest, the longest, and some between.
fn searched(lengths: &[Lengths]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|at| (lengths[*at].isl, lengths[*at].osl, *at));
    let last = lengths.len().saturating_sub(1);
    let parts = SEARCHED.min(lengths.len()).saturating_sub(1).max(1);
    let mut chosen: Vec<usize> = (0..=parts).map(|part| part * last / parts).collect();
    chosen.dedup();
    chosen.into_iter().filter_map(|at| order.get(at).copied()).collect()
}

/// Those that no other beats; of equals the first.
fn nondominated<T>(all: impl Iterator<Item = T>, beats: impl Fn(&T, &T) -> bool) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    for one in all {
        if !kept.iter().any(|known| beats(known, &one)) {
            kept.retain(|known| !beats(&one, known));
            kept.push(one);
        }
    }
    kept
}

/// Identical replicas that fill the system, in every configuration that is nondominated over all lengths with
/// closed-loop traffic.
fn alike(problem: &Problem, problems: &[Problem]) -> Vec<Candidate> {
    let found = each(problem, &mut Census::default(), |formats, instance| {
        let carried: Vec<Option<f64>> =
            problems.iter().map(|problem| carries(problem, formats, &instance)).collect();
        carried.iter().any(Option::is_some).then(|| {
            let (plan, stages) = (instance.plan, instance.stages.clone());
            let replicas = problem.capacity().most(plan.devices());
            let pool = PoolPlan { role: Role::Aggregated, plan, stages, replicas, concurrency: plan.dp };
            (Candidate { formats, pools: vec![pool], offload: Offload::Nothing }, carried)
        })
    });
    let beats = |(_, a): &(Candidate, Vec<Option<f64>>), (_, b): &(Candidate, Vec<Option<f64>>)| {
        a.iter().zip(b).all(|(a, b)| a.unwrap_or(0.0) >= b.unwrap_or(0.0))
    };
    nondominated(found.into_iter().flatten(), beats).into_iter().map(|(plan, _)| plan).collect()
}

/// Closed-loop requests per second of the system with one configuration: at the largest load within memory and SLOs,
/// or the next lower one with equal micro-batches.
fn carries(problem: &Problem, formats: usize, instance: &Arc<Instance>) -> Option<f64> {
    problem.context_fits().ok()?;
    let prepared = PreparedShape::fitting(problem, formats, instance).ok()?;
    let shape = &prepared.shape;
    let replicas = problem.capacity().most(shape.plan.devices());
    let at = |requests: u64| prepared.at(replicas, prepared.concurrency(requests));
    let filled = |requests| {
        problem.filled(
            &at(requests),
            problem.margin(formats, problem.error_class(&shape.plan, shape.offload), requests),
        )
    };
    let most = filled_up(shape.fits, filled);
    let even = most - most % shape.plan.pp;
    let osl = problem.workload.lengths.osl as f64;
    let loads = [most, even].into_iter().filter(|requests| *requests > 0);
    loads.map(|requests| at(requests)[place(Metric::OutputTokS)] / osl).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_lengths_the_ends_and_some_between_are_searched_for() {
        let of = |count: u64| -> Vec<Lengths> {
            (0..count).map(|at| Lengths { isl: 100 + at * 7 % count, osl: 10, prefix: 0 }).collect()
        };
        for count in [0, 1, 2, SEARCHED as u64, 1000] {
            let (lengths, found) = (of(count), searched(&of(count)));
            assert_eq!(found.len(), SEARCHED.min(count as usize), "{count}");
            let isl = |at: &usize| lengths[*at].isl;
            let ends = (lengths.iter().map(|l| l.isl).min(), lengths.iter().map(|l| l.isl).max());
            assert_eq!((found.iter().map(isl).min(), found.iter().map(isl).max()), ends);
        }
    }
}
