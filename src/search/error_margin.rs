//! The prediction error that a deployment's SLOs must allow for at the chosen confidence. Metrics never include it.

use super::candidate::{PoolPlan, are_disaggregated};
use super::problem::Problem;
use crate::plan::parallel::ParallelPlan;
use crate::spec::nearness::{ByErrorClass, ErrorClass, Interval, PredictionIntervals};
use crate::spec::objective::{LatencyLimits, Metric};
use crate::spec::odds::{LatencyErrors, PointLatencies, deviations};
use crate::spec::offload::Offload;
use crate::spec::percentile::{Confidence, OddsLevel};

/// Upper ends of measured / predicted TTFT and TPOT; 1 where the SLOs apply to the prediction itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorMargin {
    pub ttft: f64,
    /// Of the time after the first token.
    pub tpot: f64,
    /// The same of TTFT and of the time after it where both are in E2E: errors of one outweigh those of the other.
    in_e2e: [f64; 2],
    /// The odds that all SLOs must have together, where they must; each alone holds at the upper ends then.
    joint: Option<JointOdds>,
}

/// The least odds of all SLOs together.
#[derive(Clone, Copy, Debug, PartialEq)]
struct JointOdds {
    errors: LatencyErrors,
    least: f64,
}

impl ErrorMargin {
    /// The SLOs apply to the prediction itself.
    pub const NONE: ErrorMargin = ErrorMargin::each([1.0; 2]);

    /// Each SLO on its own.
    const fn each([ttft, tpot]: [f64; 2]) -> ErrorMargin {
        ErrorMargin { ttft, tpot, in_e2e: [ttft, tpot], joint: None }
    }

    /// One measurement in ten of each latency is above.
    pub fn p90(interval: &Interval) -> ErrorMargin {
        ErrorMargin::each([interval.ttft[2], interval.tpot[2]])
    }

    /// Both margins.
    pub fn wider(self, other: ErrorMargin) -> ErrorMargin {
        ErrorMargin::each([self.ttft.max(other.ttft), self.tpot.max(other.tpot)])
    }

    /// All SLOs are met with these odds.
    fn at_odds(interval: &Interval, level: OddsLevel) -> ErrorMargin {
        let (errors, least) = (LatencyErrors::of(interval), level.probability());
        let ends = |probability: f64| {
            let end = deviations(probability);
            [errors.ttft.at(end), errors.tpot.at(end)]
        };
        let [ttft, tpot] = ends(least);
        // Both errors are above these ends, and E2E with them, as often as all SLOs may be missed.
        let in_e2e = ends(1.0 - libm::sqrt(1.0 - least));
        ErrorMargin { ttft, tpot, in_e2e, joint: Some(JointOdds { errors, least }) }
    }

    /// Latencies with this error.
    #[inline(always)]
    pub fn latencies(self, PointLatencies { ttft, tpot, e2e }: PointLatencies) -> [(Metric, f64); 3] {
        let [first, rest] = self.in_e2e;
        // Without errors, not even those of rounding.
        let whole = if self.in_e2e == [1.0; 2] { e2e } else { ttft * first + (e2e - ttft) * rest };
        [(Metric::Ttft, ttft * self.ttft), (Metric::Tpot, tpot * self.tpot), (Metric::E2e, whole)]
    }

    /// The odds of all SLOs, where these are too small.
    pub fn odds_missed(&self, predicted: PointLatencies, limits: &LatencyLimits) -> Option<(f64, f64)> {
        let JointOdds { errors, least } = self.joint.as_ref()?;
        let odds = errors.all(predicted, limits);
        (odds < *least).then_some((odds, *least))
    }

    /// The largest ratio of a latency at the upper ends to its SLO.
    fn each_filled(self, predicted: PointLatencies, limits: &LatencyLimits) -> f64 {
        let shares = self.latencies(predicted).into_iter();
        shares.filter_map(|(metric, value)| Some(value / limits.of(metric)?)).fold(0.0, f64::max)
    }

    /// The factor of the SLOs at which latencies would just meet them: above 1 they are missed.
    pub fn filled(self, predicted: PointLatencies, limits: &LatencyLimits) -> f64 {
        let Some(JointOdds { errors, least }) = &self.joint else {
            return self.each_filled(predicted, limits);
        };
        // Where both errors are below their ends with the root of the odds, all SLOs hold with these odds.
        let end = deviations(libm::sqrt(*least));
        let wide = ErrorMargin::each([errors.ttft.at(end), errors.tpot.at(end)]);
        let most = wide.each_filled(predicted, limits);
        if most == 0.0 || !most.is_finite() {
            return most;
        }
        let (mut low, mut high) = (most / WIDEST, most);
        if (low..=high).contains(&1.0) {
            // Exactly 1 separates what is met from what is missed.
            if self.odds_missed(predicted, limits).is_some() { low = 1.0 } else { high = 1.0 }
        }
        for _ in 0..HALVINGS {
            let middle = libm::sqrt(low * high);
            let stretched = [limits.ttft, limits.tpot, limits.e2e].map(|limit| limit.map(|one| one * middle));
            let [ttft, tpot, e2e] = stretched;
            let missed = errors.all(predicted, &LatencyLimits { ttft, tpot, e2e }) < *least;
            if missed { low = middle } else { high = middle }
        }
        high
    }

    /// The highest TPOT with which a deployment of this TTFT meets its SLOs, with `later` tokens after the first; negative
    /// without one.
    pub fn tpot_within(self, ttft: f64, later: f64, limits: &LatencyLimits) -> f64 {
        let each = limits.tpot.map_or(f64::INFINITY, |limit| limit / self.tpot);
        let left = limits.e2e.map_or(f64::INFINITY, |limit| (limit - ttft * self.ttft) / self.tpot / later);
        let Some(JointOdds { errors, least }) = &self.joint else { return each.min(left) };
        let mut high = match limits.e2e {
            Some(limit) => each.min(limit / later / errors.tpot.at(-ENDS)),
            None => each,
        };
        if !high.is_finite() {
            return if errors.ttft.within(limits.ttft.unwrap_or(f64::INFINITY) / ttft) < *least {
                -1.0
            } else {
                high
            };
        }
        let met =
            |tpot: f64| errors.all(PointLatencies { ttft, tpot, e2e: ttft + later * tpot }, limits) >= *least;
        if met(high) {
            return high;
        }
        let mut low = 0.0;
        for _ in 0..2 * HALVINGS {
            let middle = (low + high) / 2.0;
            if met(middle) { low = middle } else { high = middle }
        }
        if low > 0.0 { low } else { -1.0 }
    }
}

/// The SLO of all latencies at once is between that of each and this part of it.
const WIDEST: f64 = 64.0;
/// Bisections of a factor: beyond printed precision.
const HALVINGS: u32 = 24;
/// Standard deviations that no measurement is off.
const ENDS: f64 = 5.0;

/// The margins of a format pair.
pub type FormatMargins = ByErrorClass<ErrorMargin>;

impl FormatMargins {
    pub const NONE: FormatMargins = FormatMargins {
        aggregated: ErrorMargin::NONE,
        beyond: None,
        on_processor: [ErrorMargin::NONE; 2],
        over_hosts: ErrorMargin::NONE,
        disaggregated: ErrorMargin::NONE,
    };

    pub fn of(intervals: Option<&PredictionIntervals>, confidence: Confidence) -> FormatMargins {
        let (Some(intervals), Confidence::Odds(level)) = (intervals, confidence) else {
            return FormatMargins::NONE;
        };
        intervals.clone().map(|interval| ErrorMargin::at_odds(&interval, level))
    }
}

impl Problem {
    /// The margin of deployments in a format pair and a class, with a number of requests per attention rank. Never less with
    /// more requests.
    #[inline(always)]
    pub fn margin(&self, formats: usize, class: ErrorClass, requests: u64) -> ErrorMargin {
        let margins = &self.formats[formats].margins;
        match class {
            // Replicas of several shapes have one margin, whatever their loads and hosts.
            ErrorClass::Aggregated | ErrorClass::OnProcessor | ErrorClass::OverHosts
                if self.custom_router =>
            {
                *margins.at(ErrorClass::Aggregated, u64::MAX)
            }
            class => *margins.at(class, requests),
        }
    }

    /// The class of a deployment: the farthest of its pools.
    pub fn class_of(&self, pools: &[PoolPlan], offload: Offload) -> ErrorClass {
        if are_disaggregated(pools) {
            return ErrorClass::Disaggregated;
        }
        let classes = pools.iter().map(|pool| self.error_class(&pool.plan, offload));
        classes.max().unwrap_or(ErrorClass::Aggregated)
    }

    /// The class of aggregated replicas.
    #[inline(always)]
    pub fn error_class(&self, plan: &ParallelPlan, offload: Offload) -> ErrorClass {
        let divided = plan.devices() / plan.pp > self.cluster.block();
        match offload {
            _ if divided => ErrorClass::OverHosts,
            Offload::Host(_) => ErrorClass::OnProcessor,
            Offload::Nothing | Offload::Streamed(_) => ErrorClass::Aggregated,
        }
    }

    /// Whether a higher TTFT leaves less time for the tokens after it.
    pub fn couples_latencies(&self) -> bool {
        let LatencyLimits { ttft, tpot, e2e } = self.limits;
        e2e.is_some() || ttft.is_some() && tpot.is_some() && self.confidence() != Confidence::Median
    }

    pub fn least_margin(&self) -> ErrorMargin {
        let classes = [
            ErrorClass::Aggregated,
            ErrorClass::OnProcessor,
            ErrorClass::OverHosts,
            ErrorClass::Disaggregated,
        ];
        let all = (0..self.formats.len()).flat_map(|at| classes.map(|class| self.margin(at, class, 0)));
        let least = |a: ErrorMargin, b: ErrorMargin| ErrorMargin {
            ttft: a.ttft.min(b.ttft),
            tpot: a.tpot.min(b.tpot),
            in_e2e: [a.in_e2e[0].min(b.in_e2e[0]), a.in_e2e[1].min(b.in_e2e[1])],
            joint: None,
        };
        all.reduce(least).unwrap_or(ErrorMargin::NONE)
    }

    /// The TPOT SLO of predictions with this margin; infinite without one.
    pub fn tpot_limit(&self, margin: ErrorMargin) -> f64 {
        self.limits.tpot.map_or(f64::INFINITY, |limit| limit / margin.tpot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::nearness::Nearness;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// What bounds and mixes use of a margin says the same as the odds themselves.
        #[test]
        fn limits_factors_and_odds_agree(
            (low, high, level) in (0.3..0.95, 1.05..4.0, 0.5..0.95),
            (ttft, tpot, later) in (0.05..4.0, 0.005..0.2, 1u32..500),
            (first, rest, whole) in (any::<bool>(), any::<bool>(), any::<bool>()),
        ) {
            let ends = [low, 1.0, high];
            let (near, source) = (Nearness::Measured, String::new());
            let interval = Interval { near, ttft: ends, tpot: ends, throughput: ends, source };
            let margin = ErrorMargin::at_odds(&interval, OddsLevel::of(level).unwrap());
            let later = f64::from(later);
            let at = |ttft: f64, tpot: f64| PointLatencies { ttft, tpot, e2e: ttft + later * tpot };
            let limits = LatencyLimits {
                ttft: first.then_some(1.0),
                tpot: rest.then_some(0.05),
                e2e: whole.then_some(12.0),
            };
            let predicted = at(ttft, tpot);
            let met = margin.odds_missed(predicted, &limits).is_none();
            prop_assert_eq!(margin.filled(predicted, &limits) <= 1.0, met);
            // An end that is passed excludes the odds.
            let passed = margin.latencies(predicted).into_iter().any(|(metric, value)| {
                limits.of(metric).is_some_and(|limit| value > limit * (1.0 + 1e-3))
            });
            prop_assert!(!(passed && met));
            let most = margin.tpot_within(ttft, later, &limits);
            if most.is_finite() && most > 0.0 {
                let holds = |tpot: f64| margin.odds_missed(at(ttft, tpot), &limits).is_none();
                prop_assert!(holds(most * 0.999) && !holds(most * 1.001), "{most}");
            }
        }
    }
}
