//! Robustness: how often the best plan stays the best, and meets the SLOs, inside the prediction intervals.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::plan;
use crate::search::outcome::EvaluatedCandidate;
use crate::search::point::{Point, compare, place};
use crate::search::problem::{Problem, Traffic};
use crate::spec::nearness::Interval;
use crate::spec::objective::Metric;
use crate::spec::percentile::{Confidence, Percentile};

/// Number of draws: a share is known to two percentage points.
const DRAWS: u32 = 2000;
/// Seed of the draws, so that the same answer has the same shares.
const SEED: u64 = 1;

/// How often the best plan stays the best when predictions err as the intervals say.
///
/// Two cases bound the truth: the errors of the plans are independent, or all plans have the same error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Robustness {
    /// Plans compared: the best and the Pareto front.
    pub plans: u64,
    /// Number of draws.
    pub draws: u32,
    /// Share of draws in which it is the best plan that meets the SLOs, with independent errors.
    pub stays_best_independent: f64,
    /// The same where all plans have the same error.
    pub stays_best_common: f64,
    /// Share of draws in which it meets the SLOs; 1 without SLOs.
    pub meets_slos: f64,
    /// The plan that wins most often instead, with independent errors.
    pub rival: Option<Rival>,
}

/// The plan that replaces the best most often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rival {
    /// The plan.
    pub plan: String,
    /// Share of draws in which it wins.
    pub wins: f64,
}

/// Standard normal errors of TTFT and of the decode speed.
#[derive(Clone, Copy)]
struct PlanErrors {
    ttft: f64,
    decode: f64,
}

impl PlanErrors {
    /// Independent errors, by the method of Box and Muller (1958).
    fn drawn(random: &mut fastrand::Rng) -> PlanErrors {
        let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
        let angle = std::f64::consts::TAU * random.f64();
        PlanErrors { ttft: radius * angle.cos(), decode: radius * angle.sin() }
    }
}

/// A plan with its interval.
struct RatedPlan<'a> {
    found: &'a EvaluatedCandidate,
    interval: &'a Interval,
}

/// Measured over predicted at `error` standard deviations: log-normal on both sides of the median, with the p10 and the
/// p90 of the interval.
fn ratio([low, middle, high]: [f64; 3], error: f64) -> f64 {
    let end = if error > 0.0 { high / middle } else { middle / low };
    middle * (end.ln() * error / Percentile::P90.deviations()).exp()
}

impl<'a> RatedPlan<'a> {
    /// The plan with the interval of its load; `None` without one.
    fn of(problem: &'a Problem, found: &'a EvaluatedCandidate) -> Option<RatedPlan<'a>> {
        let candidate = &found.candidate;
        let formats = &problem.formats[candidate.formats];
        let interval = formats.interval(candidate.is_disaggregated(), candidate.requests_per_rank())?;
        Some(RatedPlan { found, interval })
    }

    /// The metrics with these errors. A slower decode is a lower output rate, and a higher cost per token.
    fn at(&self, errors: PlanErrors, problem: &Problem) -> Point {
        let mut point = self.found.point;
        // At p90 confidence, predictions are the unfavourable ends of their intervals already.
        let included = |ends: [f64; 3], worse: usize| match problem.confidence {
            Confidence::P50 => 1.0,
            Confidence::P90 => ends[worse],
        };
        let interval = self.interval;
        let slower = ratio(interval.tpot, errors.decode) / included(interval.tpot, 2);
        let first = ratio(interval.ttft, errors.ttft) / included(interval.ttft, 2);
        let output = match problem.traffic {
            Traffic::Rate(_) => 1.0,
            Traffic::Free | Traffic::InFlight(_) => {
                ratio(interval.throughput, -errors.decode) / included(interval.throughput, 0)
            }
        };
        let (ttft, e2e) = (point[place(Metric::Ttft)], point[place(Metric::E2e)]);
        point[place(Metric::E2e)] = ttft * first + (e2e - ttft) * slower;
        point[place(Metric::Ttft)] *= first;
        point[place(Metric::Tpot)] *= slower;
        point[place(Metric::OutputTokSPerUser)] /= slower;
        for metric in [Metric::OutputTokS, Metric::OutputTokSPerDevice, Metric::TokPerJoule] {
            point[place(metric)] *= output;
        }
        point[place(Metric::UsdPerMtok)] /= output;
        point
    }
}

/// The index of the best point that meets the SLOs.
fn winner(points: &[Point], problem: &Problem) -> Option<usize> {
    let meets = (0..points.len()).filter(|at| problem.missed(&points[*at]).is_none());
    meets.reduce(|a, b| if compare(&points[b], &points[a], &problem.aims).is_lt() { b } else { a })
}

/// The robustness of `best` against the plans of `front`; `None` without intervals.
pub fn robustness(
    problem: &Problem,
    best: &EvaluatedCandidate,
    front: &[EvaluatedCandidate],
) -> Option<Robustness> {
    let others = front.iter().filter(|one| one.candidate != best.candidate);
    let all = [best].into_iter().chain(others);
    let plans: Vec<RatedPlan> = all.map(|found| RatedPlan::of(problem, found)).collect::<Option<_>>()?;
    let mut random = fastrand::Rng::with_seed(SEED);
    let (mut common, mut met) = (0u32, 0u32);
    let mut wins = vec![0u32; plans.len()];
    for _ in 0..DRAWS {
        let own: Vec<Point> =
            plans.iter().map(|plan| plan.at(PlanErrors::drawn(&mut random), problem)).collect();
        met += u32::from(problem.missed(&own[0]).is_none());
        if let Some(at) = winner(&own, problem) {
            wins[at] += 1;
        }
        let errors = PlanErrors::drawn(&mut random);
        let shared: Vec<Point> = plans.iter().map(|plan| plan.at(errors, problem)).collect();
        common += u32::from(winner(&shared, problem) == Some(0));
    }
    let share = |number: u32| f64::from(number) / f64::from(DRAWS);
    let rival = (1..plans.len()).max_by_key(|at| (wins[*at], std::cmp::Reverse(*at)));
    let rival = rival.filter(|at| wins[*at] > 0);
    Some(Robustness {
        plans: plans.len() as u64,
        draws: DRAWS,
        stays_best_independent: share(wins[0]),
        stays_best_common: share(common),
        meets_slos: share(met),
        rival: rival.map(|at| Rival { plan: plan(&plans[at].found.candidate).label, wins: share(wins[at]) }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_quantiles_of_the_interval() {
        let ends = [0.7, 0.95, 1.6];
        let z = Percentile::P90.deviations();
        for (error, expected) in [(-z, 0.7), (0.0, 0.95), (z, 1.6)] {
            assert!((ratio(ends, error) - expected).abs() < 1e-12);
        }
        let mut random = fastrand::Rng::with_seed(7);
        let drawn: Vec<PlanErrors> = (0..40_000).map(|_| PlanErrors::drawn(&mut random)).collect();
        let share = |below: f64| drawn.iter().filter(|one| one.decode < below).count() as f64 / 40_000.0;
        assert!(
            (share(-z) - 0.1).abs() < 0.01
                && (share(0.0) - 0.5).abs() < 0.01
                && (share(z) - 0.9).abs() < 0.01
        );
    }
}
