//! The odds that a deployment meets its SLOs, from the quantiles of measured over predicted latencies.

use std::f64::consts::FRAC_1_SQRT_2;

use super::nearness::Interval;
use super::objective::LatencyLimits;
use super::percentile::Percentile;

/// The standard normal distribution function.
fn normal(deviations: f64) -> f64 {
    0.5 * libm::erfc(-deviations * FRAC_1_SQRT_2)
}

/// The standard normal quantile of a probability, by bisection.
pub fn deviations(probability: f64) -> f64 {
    let (mut low, mut high) = (-FARTHEST, FARTHEST);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if normal(middle) < probability { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Standard deviations beyond which a normal distribution has no weight that a double shows.
const FARTHEST: f64 = 8.0;
/// Bisections down to the precision of a double.
const HALVINGS: u32 = 56;

/// Measured over predicted: log-normal on both sides of the median, with the p10 and the p90 of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorCurve {
    middle: f64,
    /// Logarithms per standard deviation, below and above the median.
    slopes: [f64; 2],
}

impl ErrorCurve {
    /// The curve through these quantiles.
    pub fn new([low, middle, high]: [f64; 3]) -> ErrorCurve {
        let slope = |end: f64| libm::log(end) / Percentile::P90.deviations();
        ErrorCurve { middle, slopes: [slope(middle / low), slope(high / middle)] }
    }

    /// The ratio at `error` standard deviations.
    pub fn at(&self, error: f64) -> f64 {
        self.middle * libm::exp(self.slopes[usize::from(error > 0.0)] * error)
    }

    /// The standard deviations at which a ratio lies; infinite where the curve has no width.
    fn error(&self, ratio: f64) -> f64 {
        let distance = libm::log(ratio / self.middle);
        let slope = self.slopes[usize::from(distance > 0.0)];
        match slope > 0.0 {
            true => distance / slope,
            false if distance < 0.0 => f64::NEG_INFINITY,
            false => f64::INFINITY,
        }
    }

    /// The probability of a ratio of at most `ratio`.
    pub fn within(&self, ratio: f64) -> f64 {
        if ratio > 0.0 { normal(self.error(ratio)) } else { 0.0 }
    }

    /// The probability of a ratio above `ratio`.
    pub fn above(&self, ratio: f64) -> f64 {
        1.0 - self.within(ratio)
    }
}

/// The errors of the latencies of a deployment. Those of TTFT and of the time after it are independent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyErrors {
    pub ttft: ErrorCurve,
    /// Of the time after the first token.
    pub tpot: ErrorCurve,
}

/// Predicted latencies, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PointLatencies {
    pub ttft: f64,
    pub tpot: f64,
    pub e2e: f64,
}

/// The probability that measured latencies are within their SLOs; 1 for one that is not set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyOdds {
    pub ttft: f64,
    pub tpot: f64,
    pub e2e: f64,
    /// Of all at once.
    pub all: f64,
}

/// Intervals of the integral over the error of TTFT, an even number.
const STEPS: usize = 256;
/// The integral ends this many standard deviations from the median.
const ENDS: f64 = 5.0;
/// Standard deviations of both errors between which p10 and p90 of their sum are.
const WITHIN: f64 = 2.5;
/// The probability of a quantile is this near.
const CLOSE: f64 = 1e-4;

impl LatencyErrors {
    pub fn of(interval: &Interval) -> LatencyErrors {
        LatencyErrors { ttft: ErrorCurve::new(interval.ttft), tpot: ErrorCurve::new(interval.tpot) }
    }

    /// The odds of each SLO, and of all.
    pub fn odds(&self, predicted: PointLatencies, limits: &LatencyLimits) -> LatencyOdds {
        let alone = |limits: LatencyLimits| self.all(predicted, &limits);
        let none = LatencyLimits::default();
        LatencyOdds {
            ttft: alone(LatencyLimits { ttft: limits.ttft, ..none }),
            tpot: alone(LatencyLimits { tpot: limits.tpot, ..none }),
            e2e: alone(LatencyLimits { e2e: limits.e2e, ..none }),
            all: self.all(predicted, limits),
        }
    }

    /// The odds of all SLOs. Higher latencies never have better ones.
    pub fn all(&self, predicted: PointLatencies, limits: &LatencyLimits) -> f64 {
        let PointLatencies { ttft, tpot, e2e } = predicted;
        let ends = [limits.ttft.map(|limit| limit / ttft), limits.tpot.map(|limit| limit / tpot)];
        match limits.e2e {
            Some(limit) => {
                let [of_first, of_rest] = ends.map(|end| end.unwrap_or(f64::INFINITY));
                self.within_sum(ttft, e2e - ttft, [limit, of_first, of_rest])
            }
            None => {
                let of = |curve: &ErrorCurve, end: Option<f64>| end.map_or(1.0, |end| curve.within(end));
                of(&self.ttft, ends[0]) * of(&self.tpot, ends[1])
            }
        }
    }

    /// The quantile of the time of a request, in the unit of the predicted latencies: errors as the odds have them.
    pub fn e2e(&self, predicted: PointLatencies, probability: f64) -> f64 {
        let PointLatencies { ttft, e2e, .. } = predicted;
        let rest = e2e - ttft;
        if rest <= 0.0 {
            return ttft * self.ttft.at(deviations(probability));
        }
        let at = |error: f64| ttft * self.ttft.at(error) + rest * self.tpot.at(error);
        let over =
            |error: f64| self.within_sum(ttft, rest, [at(error), f64::INFINITY, f64::INFINITY]) - probability;
        // A sum below this quantile of both needs one of them there, so that the first end is below; likewise above.
        let (mut low, mut high) = (-WITHIN, WITHIN);
        if at(low) >= at(high) {
            return at(0.0);
        }
        let (mut below, mut above) = (over(low), over(high));
        let mut last = 0.0;
        for _ in 0..HALVINGS {
            // Regula falsi; an end that stays counts half (Illinois).
            let middle = low + (high - low) * below / (below - above);
            let off = over(middle);
            if off.is_nan() || off.abs() <= CLOSE {
                return at(middle);
            }
            if off < 0.0 {
                (low, below) = (middle, off);
                above /= if last < 0.0 { 2.0 } else { 1.0 };
            } else {
                (high, above) = (middle, off);
                below /= if last > 0.0 { 2.0 } else { 1.0 };
            }
            last = off;
        }
        at((low + high) / 2.0)
    }

    /// The probability that `first` and `rest` with their errors are `limit` together at most, with ratios of at most
    /// these: Simpson's rule over the error of `first`.
    fn within_sum(&self, first: f64, rest: f64, [limit, of_first, of_rest]: [f64; 3]) -> f64 {
        let end = if of_first.is_finite() { self.ttft.error(of_first).min(ENDS) } else { ENDS };
        if end <= -ENDS {
            return 0.0;
        }
        let width = (end + ENDS) / STEPS as f64;
        let density = |error: f64| libm::exp(-error * error / 2.0) / libm::sqrt(std::f64::consts::TAU);
        let at = |step: usize| {
            let error = -ENDS + width * step as f64;
            let left = limit - first * self.ttft.at(error);
            let ratio = if rest > 0.0 { (left / rest).min(of_rest) } else { of_rest };
            let within = match (left < 0.0, ratio.is_finite()) {
                (true, _) => 0.0,
                (false, true) => self.tpot.within(ratio),
                (false, false) => 1.0,
            };
            let weight = match step {
                0 | STEPS => 1.0,
                odd if odd % 2 == 1 => 4.0,
                _ => 2.0,
            };
            weight * within * density(error)
        };
        ((0..=STEPS).map(at).sum::<f64>() * width / 3.0).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn errors_have_the_quantiles_of_the_interval() {
        let curve = ErrorCurve::new([0.7, 0.95, 1.6]);
        let z = Percentile::P90.deviations();
        for (error, expected) in [(-z, 0.7), (0.0, 0.95), (z, 1.6)] {
            assert!((curve.at(error) - expected).abs() < 1e-12);
        }
        // The normal quantile has five digits.
        for (ratio, expected) in [(0.7, 0.9), (0.95, 0.5), (1.6, 0.1)] {
            assert!((curve.above(ratio) - expected).abs() < 2e-5);
        }
        let point = ErrorCurve::new([1.0; 3]);
        assert_eq!([point.above(0.9), point.above(1.1)], [1.0, 0.0]);
    }

    #[test]
    fn quantiles_are_the_inverse_of_the_distribution() {
        for (probability, expected) in
            [(0.5, 0.0), (0.9, 1.281_551_6), (0.8, 0.841_621_2), (0.99, 2.326_347_9)]
        {
            assert!((deviations(probability) - expected).abs() < 1e-6);
        }
    }

    fn seconds(limit: f64) -> Option<f64> {
        Some(limit)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Against draws: TTFT, TPOT and E2E of the same errors.
        #[test]
        fn odds_are_the_share_of_draws(
            (low, high, tight) in (0.4..0.9, 1.1..2.5, 0.7..1.6),
            (ttft, tpot, tokens) in (0.1..2.0, 0.01..0.1, 2u32..400),
        ) {
            let (curve, later) = (ErrorCurve::new([low, 1.0, high]), ErrorCurve::new([low, 1.1, high]));
            let errors = LatencyErrors { ttft: curve, tpot: later };
            let e2e = ttft + tpot * f64::from(tokens);
            let limits = LatencyLimits {
                ttft: seconds(ttft * 1.2),
                tpot: seconds(tpot * tight),
                e2e: seconds(e2e * 1.05),
            };
            let odds = errors.odds(PointLatencies { ttft, tpot, e2e }, &limits);
            let mut random = fastrand::Rng::with_seed(3);
            let mut met = [0u32; 4];
            const DRAWS: u32 = 4_000;
            for _ in 0..DRAWS {
                let [a, b] = [curve, later].map(|curve| curve.at(deviations(random.f64())));
                let (first, rest) = (ttft * a, tpot * f64::from(tokens) * b);
                let holds = [a <= 1.2, b <= tight, first + rest <= e2e * 1.05];
                for (count, holds) in met.iter_mut().zip([holds[0], holds[1], holds[2], holds.iter().all(|one| *one)]) {
                    *count += u32::from(holds);
                }
            }
            for (share, odds) in met.into_iter().zip([odds.ttft, odds.tpot, odds.e2e, odds.all]) {
                prop_assert!((f64::from(share) / f64::from(DRAWS) - odds).abs() < 0.04);
            }
        }

        /// A quantile of E2E is inside those of both parts at once, and has the odds that the law states for it.
        #[test]
        fn a_quantile_of_e2e_has_its_odds(
            (low, high, other) in (0.3..1.0, 1.0..4.0, 1.0..2.0), (ttft, rest) in (0.01..5.0, 0.01..50.0),
        ) {
            let errors = LatencyErrors {
                ttft: ErrorCurve::new([low, 1.0, high]),
                tpot: ErrorCurve::new([1.0 / (1.01 * other), 1.0, 1.01 * other]),
            };
            let predicted = PointLatencies { ttft, tpot: 0.01, e2e: ttft + rest };
            let z = Percentile::P90.deviations();
            for (probability, error) in [(0.1, -z), (0.5, 0.0), (0.9, z)] {
                let quantile = errors.e2e(predicted, probability);
                let limits = LatencyLimits { e2e: Some(quantile), ..LatencyLimits::default() };
                prop_assert!((errors.all(predicted, &limits) - probability).abs() < 2e-3);
                // Hardly farther out than both parts are at once; only a heavy tail of one alone is.
                let both = ttft * errors.ttft.at(error) + rest * errors.tpot.at(error);
                prop_assert!((quantile - both) * error <= both * 0.02);
            }
            let point = ErrorCurve::new([1.0; 3]);
            let exact = LatencyErrors { ttft: point, tpot: point };
            prop_assert_eq!(exact.e2e(predicted, 0.9), ttft + rest);
            let [near, far] = [0.1, 0.9].map(|probability| errors.e2e(predicted, probability));
            prop_assert!(near < far);
            // OSL 1: the time of a request is its TTFT.
            let alone = errors.e2e(PointLatencies { ttft, tpot: 0.01, e2e: ttft }, 0.9);
            prop_assert!((alone / (ttft * high) - 1.0).abs() < 1e-4);
        }

        #[test]
        fn higher_latencies_have_no_better_odds(
            (low, high) in (0.4..0.9, 1.1..2.5),
            (ttft, tpot, more) in (0.1..2.0, 0.01..0.1, 1.0..1.5),
        ) {
            let curve = ErrorCurve::new([low, 1.0, high]);
            let errors = LatencyErrors { ttft: curve, tpot: curve };
            let limits = LatencyLimits { ttft: seconds(1.0), tpot: seconds(0.05), e2e: seconds(6.0) };
            let of = |ttft: f64, tpot: f64| {
                errors.all(PointLatencies { ttft, tpot, e2e: ttft + 100.0 * tpot }, &limits)
            };
            let known = of(ttft, tpot);
            prop_assert!(of(ttft * more, tpot) <= known + 1e-3 && of(ttft, tpot * more) <= known + 1e-3);
        }
    }
}
