//! Robustness: how often the best plan stays the best, and meets the SLOs, inside the prediction intervals.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::plan;
use super::number::{digits, percent, word};
use crate::quantity::num::Qty;
use crate::search::candidate::Candidate;
use crate::search::error_margin::ErrorMargin;
use crate::search::error_ratios::{ErrorCurves, ErrorRatios};
use crate::search::outcome::EvaluatedCandidate;
use crate::search::point::{Point, before, compare, cost, cost_of};
use crate::search::prediction_error::PlanErrors;
use crate::search::problem::{Problem, slowest_latencies};
use crate::serving::evaluate::Evaluation;
use crate::spec::nearness::Interval;
use crate::spec::objective::{Metric, ObjectiveTerm};
use crate::spec::odds::{ErrorCurve, LatencyErrors};
use crate::spec::percentile::{Confidence, OddsLevel};

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

/// The odds that measured latencies meet the SLOs, from the prediction intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SloOdds {
    /// Of the TTFT SLO; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft: Option<f64>,
    /// Of the TPOT SLO.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tpot: Option<f64>,
    /// Of the SLO on the whole time of a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub e2e: Option<f64>,
    /// Of all SLOs at once.
    pub all: f64,
}

impl SloOdds {
    /// The odds of a deployment with this evaluation; `None` without SLOs or intervals.
    pub fn of(
        problem: &Problem,
        candidate: &Candidate,
        evaluation: &Evaluation<Qty<f64>>,
    ) -> Option<SloOdds> {
        let limits = &problem.limits;
        let interval = candidate.interval(problem)?;
        if limits.is_empty() {
            return None;
        }
        let odds = LatencyErrors::of(interval).odds(slowest_latencies(evaluation), limits);
        Some(SloOdds {
            ttft: limits.ttft.map(|_| odds.ttft),
            tpot: limits.tpot.map(|_| odds.tpot),
            e2e: limits.e2e.map(|_| odds.e2e),
            all: odds.all,
        })
    }

    /// Of the SLO on a metric.
    pub fn of_metric(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::Ttft => self.ttft,
            Metric::Tpot => self.tpot,
            Metric::E2e => self.e2e,
            _ => None,
        }
    }

    /// Number of SLOs.
    pub fn slos(&self) -> usize {
        [self.ttft, self.tpot, self.e2e].iter().flatten().count()
    }

    /// The odds of each SLO, and of all together: `TTFT 97 %, TPOT 93 %, both 92 %`.
    pub fn words(&self) -> String {
        let each = [Metric::Ttft, Metric::Tpot, Metric::E2e].into_iter();
        let each =
            each.filter_map(|metric| Some(format!("{} {}", word(metric), percent(self.of_metric(metric)?))));
        let together = match self.slos() {
            0 | 1 => None,
            2 => Some("both"),
            _ => Some("all"),
        };
        let together = together.map(|name| format!("{name} {}", percent(self.all)));
        each.chain(together).collect::<Vec<_>>().join(", ")
    }

    /// The risk of a deployment whose SLOs hold by the prediction itself; `None` where the odds are good enough.
    pub fn warning(&self, confidence: Confidence) -> Option<String> {
        let bad = confidence == Confidence::Median && self.all < OddsLevel::DEFAULT.probability();
        bad.then(|| format!("SLO AT RISK: met with odds of {}", percent(self.all)))
    }
}

/// The capacity of a deployment whose slots are all full, against a request rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityOdds {
    /// Requests per second that it carries, as predicted.
    pub requests_per_s: f64,
    /// The ends of its 80 % interval.
    pub p10_requests_per_s: f64,
    pub p90_requests_per_s: f64,
    /// The probability that it carries the rate.
    pub carries_rate: f64,
}

/// A rate that is carried with a smaller probability is refused for certain: it is above the 80 % interval.
const NEARLY_CERTAIN: f64 = 0.1;

impl CapacityOdds {
    /// The odds of a candidate that carries `carried` requests per second, as predicted; `None` without an interval.
    pub fn of(
        problem: &Problem,
        candidate: &Candidate,
        [carried, required]: [f64; 2],
    ) -> Option<CapacityOdds> {
        let interval = candidate.interval(problem)?;
        let [low, _, high] = interval.throughput;
        Some(CapacityOdds {
            requests_per_s: carried,
            p10_requests_per_s: carried * low,
            p90_requests_per_s: carried * high,
            carries_rate: ErrorCurve::new(interval.throughput).above(required / carried),
        })
    }

    /// Whether the rate may be carried all the same.
    pub fn is_open(&self) -> bool {
        self.carries_rate >= NEARLY_CERTAIN
    }

    /// The interval and the odds in words.
    pub fn words(&self) -> String {
        format!(
            "p10–p90 {} to {} requests/s, the rate is carried with a probability of {}",
            digits(self.p10_requests_per_s),
            digits(self.p90_requests_per_s),
            percent(self.carries_rate)
        )
    }
}

struct RatedPlan<'a> {
    found: &'a EvaluatedCandidate,
    /// Index of its interval among the distinct ones.
    interval: usize,
}

/// The errors that some metrics depend on.
#[derive(Clone, Copy)]
struct RatioUses {
    ttft: bool,
    tpot: bool,
    output: bool,
}

impl RatioUses {
    const ALL: RatioUses = RatioUses { ttft: true, tpot: true, output: true };

    /// Those that an order of `plans` by `terms` depends on: a changed error changes a metric of some plan.
    fn of(plans: &[RatedPlan], terms: &[ObjectiveTerm]) -> RatioUses {
        let none = ErrorRatios::NONE;
        let changes = |ratios: ErrorRatios| {
            plans.iter().any(|plan| compare(&plan.at(ratios), &plan.at(none), terms).is_ne())
        };
        RatioUses {
            ttft: changes(ErrorRatios { ttft: 2.0, ..none }),
            tpot: changes(ErrorRatios { tpot: 2.0, ..none }),
            output: changes(ErrorRatios { output: 2.0, ..none }),
        }
    }
}

/// The ratios at drawn errors.
fn at(curves: &ErrorCurves, errors: PlanErrors) -> ErrorRatios {
    used(curves, errors, RatioUses::ALL)
}

/// The same, of those that are in use; 1 for the others.
fn used(curves: &ErrorCurves, errors: PlanErrors, uses: RatioUses) -> ErrorRatios {
    ErrorRatios {
        ttft: if uses.ttft { curves.ttft(errors.ttft()) } else { 1.0 },
        tpot: if uses.tpot { curves.tpot(errors.decode()) } else { 1.0 },
        output: if uses.output { curves.output(errors.decode()) } else { 1.0 },
    }
}

impl RatedPlan<'_> {
    fn at(&self, ratios: ErrorRatios) -> Point {
        ratios.at(&self.found.point)
    }

    /// Whether it is better than a point. Most plans are not in the first term already.
    fn is_before(&self, ratios: ErrorRatios, other: &Point, terms: &[ObjectiveTerm]) -> bool {
        let behind = terms.first().is_some_and(|term| {
            let own = cost_of(ratios.metric(&self.found.point, term.metric), term.direction);
            own > cost(other, term.metric, term.direction)
        });
        !behind && before(&self.at(ratios), other, terms)
    }
}

/// The index of the best plan that meets the SLOs. Each comes with its errors as far as the objective depends on them, and
/// with all of them.
fn winner<'p, W: FnOnce() -> ErrorRatios>(
    problem: &Problem,
    plans: impl Iterator<Item = (&'p RatedPlan<'p>, ErrorRatios, W)>,
) -> Option<usize> {
    let mut best: Option<(usize, Point)> = None;
    for (at, (plan, ratios, all)) in plans.enumerate() {
        let better = best.as_ref().is_none_or(|(_, best)| plan.is_before(ratios, best, first_term(problem)));
        if better && problem.missed(&plan.at(all()), ErrorMargin::NONE).is_none() {
            best = Some((at, plan.at(ratios)));
        }
    }
    best.map(|(at, _)| at)
}

/// The first term of the objective: its ties are decided by the errors that are drawn here.
fn first_term(problem: &Problem) -> &[ObjectiveTerm] {
    problem.objective.get(..1).unwrap_or_default()
}

/// The robustness of `best` against the plans of `front`; `None` without intervals.
pub fn robustness<'q>(
    problem: &'q Problem,
    best: &'q EvaluatedCandidate,
    front: &'q [EvaluatedCandidate],
) -> Option<Robustness> {
    let others = front.iter().filter(|one| one.candidate != best.candidate);
    let all = [best].into_iter().chain(others);
    let mut intervals: Vec<&Interval> = Vec::new();
    let mut rate = |found: &'q EvaluatedCandidate| {
        let candidate = &found.candidate;
        let interval = candidate.interval(problem)?;
        let known = intervals.iter().position(|known| std::ptr::eq(*known, interval));
        let interval = known.unwrap_or_else(|| {
            intervals.push(interval);
            intervals.len() - 1
        });
        Some(RatedPlan { found, interval })
    };
    let plans: Vec<RatedPlan> = all.map(&mut rate).collect::<Option<_>>()?;
    let curves: Vec<ErrorCurves> =
        intervals.into_iter().map(|interval| ErrorCurves::of(interval, problem)).collect();
    let uses = RatioUses::of(&plans, first_term(problem));
    let mut random = fastrand::Rng::with_seed(SEED);
    let (mut common, mut met) = (0u32, 0u32);
    let mut wins = vec![0u32; plans.len()];
    for _ in 0..DRAWS {
        let mut first = None;
        let own = plans.iter().map(|plan| {
            let (curves, errors) = (&curves[plan.interval], PlanErrors::drawn(&mut random));
            first.get_or_insert((curves, errors));
            (plan, used(curves, errors, uses), move || at(curves, errors))
        });
        if let Some(at) = winner(problem, own) {
            wins[at] += 1;
        }
        let met_by = |(curves, errors): (&ErrorCurves, _)| {
            problem.missed(&plans[0].at(at(curves, errors)), ErrorMargin::NONE)
        };
        met += u32::from(first.is_some_and(|first| met_by(first).is_none()));
        let errors = PlanErrors::drawn(&mut random);
        let ratios: Vec<ErrorRatios> = curves.iter().map(|curves| at(curves, errors)).collect();
        let shared = plans.iter().map(|plan| {
            let ratios = ratios[plan.interval];
            (plan, ratios, move || ratios)
        });
        common += u32::from(winner(problem, shared) == Some(0));
    }
    let share = |number: u32| f64::from(number) / f64::from(DRAWS);
    let labels: Vec<String> = plans.iter().map(|one| rival_label(problem, one.found, best)).collect();
    // One deployment at several loads is one rival.
    let total = |label: &String| {
        labels.iter().zip(&wins).filter(|(one, _)| *one == label).map(|(_, wins)| wins).sum()
    };
    let rivals = (1..plans.len()).filter(|at| labels[*at] != labels[0]).map(|at| (at, total(&labels[at])));
    let rival = rivals.max_by_key(|(at, wins): &(usize, u32)| (*wins, std::cmp::Reverse(*at)));
    let rival = rival.filter(|(_, wins)| *wins > 0);
    Some(Robustness {
        plans: plans.len() as u64,
        draws: DRAWS,
        stays_best_independent: share(wins[0]),
        stays_best_common: share(common),
        meets_slos: share(met),
        rival: rival.map(|(at, wins)| Rival { plan: labels[at].clone(), wins: share(wins) }),
    })
}

/// A plan, with its formats where they are not those of `best`: without them it would look like the best itself.
fn rival_label(problem: &Problem, found: &EvaluatedCandidate, best: &EvaluatedCandidate) -> String {
    let formats = |one: &EvaluatedCandidate| &problem.formats[one.candidate.formats];
    let (own, known) = (formats(found), formats(best));
    let label = plan(&found.candidate).label;
    match (own.weights == known.weights, own.kv == known.kv) {
        (true, true) => label,
        (false, true) => format!("{label}, {} weights", own.weights),
        (true, false) => format!("{label}, {} KV cache", own.kv),
        (false, false) => format!("{label}, {} weights, {} KV cache", own.weights, own.kv),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odds_are_named_by_their_slo_and_together_where_there_are_several() {
        let odds = SloOdds { ttft: Some(0.97), tpot: Some(0.931), e2e: None, all: 0.92 };
        assert_eq!(odds.words(), "TTFT 97 %, TPOT 93 %, both 92 %");
        assert_eq!(SloOdds { ttft: None, all: 0.931, ..odds }.words(), "TPOT 93 %");
        assert_eq!(SloOdds { e2e: Some(0.9), ..odds }.words(), "TTFT 97 %, TPOT 93 %, E2E 90 %, all 92 %");
    }
}
