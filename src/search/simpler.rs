//! The simpler of two plans whose difference is within the error of their comparison.
//!
//! A simpler plan has fewer pools or fewer degrees, no more of the other, and was measured where the optimum was. It is the
//! answer where measurements would find it the better one about as often as not.

use super::candidate::Candidate;
use super::error_ratios::{ErrorCurves, ErrorRatios};
use super::layouts::Layouts;
use super::outcome::EvaluatedCandidate;
use super::point::{Point, cost_of, place};
use super::prediction_error::PlanErrors;
use super::problem::{Problem, Traffic};
use super::run::{Control, run_above};
use crate::spec::evidence::EvidenceRule;
use crate::spec::nearness::Interval;
use crate::spec::offload::{Offload, OffloadPolicy};

/// A simpler plan than the optimum, equal to it within the error of the comparison.
#[derive(Clone, Debug)]
pub struct SimplerPlan {
    pub found: EvaluatedCandidate,
    /// Share of draws in which it is the better one.
    pub wins: f64,
}

/// The least share of draws that a simpler plan wins. Of plans that are equal each wins half of them.
pub const ENOUGH_WINS: f64 = 0.4;

/// Number of draws: a share is known to one percentage point.
const DRAWS: u32 = 2000;
/// Seed of the draws, so that the same plans have the same share.
const SEED: u64 = 1;

/// The part of the variance that the errors of two plans have in common. Over pairs of plans for one model, device, runtime,
/// format and lengths in `hardware/measured/serving.csv`, errors of the output rate correlate with 0.56 (97 pairs), those
/// of TPOT, at unlike loads, with 0.21 (820 pairs).
const COMMON: f64 = 0.5;

/// The simplest plan that is equal to `best` within the error of the comparison, where that is not the simplest itself.
pub fn simpler(
    problem: &Problem,
    layouts: &Layouts,
    best: &EvaluatedCandidate,
    control: &Control,
) -> Option<SimplerPlan> {
    let floor = least_equal(problem, best)?;
    simpler_spaces(problem, &best.candidate).into_iter().find_map(|space| {
        let found = run_above(&space, (Some(&floor), layouts), control).best?;
        let wins = wins(problem, &found, best)?;
        (wins >= ENOUGH_WINS).then_some(SimplerPlan { found, wins })
    })
}

/// The optimum with the worse end of its interval as its objective: no plan beyond is its equal. `None` where errors change
/// nothing, or every plan may be the answer.
fn least_equal(problem: &Problem, best: &EvaluatedCandidate) -> Option<Point> {
    let term = problem.objective.first().filter(|_| problem.space.rule == EvidenceRule::Measured)?;
    let ends = ErrorRatios::worse_end(best.candidate.interval(problem)?);
    let given = matches!(problem.traffic, Traffic::Rate(_));
    let ends = ErrorRatios { output: if given { 1.0 } else { ends.output }, ..ends };
    let worst = ends.metric(&best.point, term.metric);
    let mut floor = best.point;
    floor[place(term.metric)] = worst;
    let [own, worst] = [best.point[place(term.metric)], worst].map(|value| cost_of(value, term.direction));
    (worst > own).then_some(floor)
}

/// The problem over simpler plans than one, the simplest first; none where there is no simpler one.
fn simpler_spaces(problem: &Problem, best: &Candidate) -> Vec<Problem> {
    let degrees = best.pools.iter().map(|pool| pool.plan.used_degrees()).max().unwrap_or(0);
    let of = |split: bool, most: u32| {
        let mut space = problem.clone();
        space.axes.clear();
        (space.split, space.custom_router) = (split, false);
        space.space.most_degrees = Some(most);
        space.space.measured_only |= problem.space.rows_of(best) > 0;
        if best.offload == Offload::Nothing {
            space.offload = OffloadPolicy::Never;
        }
        space
    };
    let fewer_pools = (best.pools.len() > 1).then(|| of(false, degrees.max(1)));
    let fewer_degrees = (degrees > 1).then(|| of(problem.split && best.is_disaggregated(), degrees - 1));
    fewer_pools.into_iter().chain(fewer_degrees).collect()
}

/// The share of draws from the intervals of two plans in which `one` is better in the first term of the objective; `None`
/// without intervals.
pub fn wins(problem: &Problem, one: &EvaluatedCandidate, other: &EvaluatedCandidate) -> Option<f64> {
    let term = problem.objective.first()?;
    let interval = |found: &EvaluatedCandidate| -> Option<ErrorCurves> {
        let interval: &Interval = found.candidate.interval(problem)?;
        Some(ErrorCurves::of(interval, problem))
    };
    let curves = [interval(one)?, interval(other)?];
    let mut random = fastrand::Rng::with_seed(SEED);
    let (common, own) = (COMMON.sqrt(), (1.0 - COMMON).sqrt());
    let won = (0..DRAWS).filter(|_| {
        let all = PlanErrors::drawn(&mut random).each();
        let [a, b] = [(&curves[0], one), (&curves[1], other)].map(|(curves, found)| {
            let each = PlanErrors::drawn(&mut random).each();
            let errors = [0, 1].map(|at| common * all[at] + own * each[at]);
            cost_of(curves.at(errors).metric(&found.point, term.metric), term.direction)
        });
        a < b
    });
    Some(won.count() as f64 / f64::from(DRAWS))
}
