//! Error statistics of predictions.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A prediction and its measurement, in the same unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictionPair {
    pub predicted: f64,
    pub measured: f64,
    /// 80 % prediction interval (p10–p90), where given.
    pub interval: Option<(f64, f64)>,
}

/// Error statistics of a set of predictions, relative to the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Score {
    /// Number of predictions.
    pub n: usize,
    /// Median absolute percentage error (MdAPE), as a fraction.
    pub mdape: f64,
    /// Mean absolute percentage error (MAPE), as a fraction.
    pub mape: f64,
    /// 90th percentile of the absolute error.
    pub p90: f64,
    /// Median signed error: above 0 predictions are too slow.
    pub bias: f64,
    /// Share with an error of at most 10 %.
    pub within_10: f64,
    /// Share with an error of at most 25 %.
    pub within_25: f64,
    /// Share inside its p10–p90 interval; null where no intervals were given.
    pub coverage_80: Option<f64>,
}

/// Error statistics of predicted shares: differences from the measured ones, as fractions of 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PointScore {
    /// Number of predictions.
    pub n: usize,
    /// Median of the absolute differences.
    pub median: f64,
    /// 90th percentile of these.
    pub p90: f64,
    /// Median difference: above 0 predictions are too high.
    pub bias: f64,
}

/// The error statistics of these differences; `None` where there are none.
pub fn point_score(differences: &[f64]) -> Option<PointScore> {
    let mut signed = differences.to_vec();
    let mut off: Vec<f64> = signed.iter().map(|difference| difference.abs()).collect();
    let (n, bias) = (signed.len(), quantile(&mut signed, 0.5));
    (n > 0).then(|| PointScore { n, median: quantile(&mut off, 0.5), p90: quantile(&mut off, 0.9), bias })
}

/// The `p` quantile of `values`.
pub fn quantile(values: &mut [f64], p: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get(((last as f64) * p).round() as usize).copied().unwrap_or(f64::NAN)
}

/// Mean over cells of the median absolute percentage error of each cell, as a fraction: cells with many rows weigh no
/// more than others. `None` where there are no rows.
pub fn mean_of_cells<K: Ord>(pairs: impl Iterator<Item = (K, PredictionPair)>) -> Option<f64> {
    let mut cells = BTreeMap::<K, Vec<f64>>::new();
    for (cell, pair) in pairs {
        cells.entry(cell).or_default().push((pair.predicted / pair.measured - 1.0).abs());
    }
    let medians = cells.values_mut().map(|errors| quantile(errors, 0.5));
    let (number, sum) = medians.fold((0, 0.0), |(number, sum), median| (number + 1, sum + median));
    (number > 0).then(|| sum / f64::from(number))
}

/// The error statistics of `pairs`; `None` where there are none.
pub fn score(pairs: &[PredictionPair]) -> Option<Score> {
    if pairs.is_empty() {
        return None;
    }
    let n = pairs.len();
    let share = |hits: usize, of: usize| hits as f64 / of as f64;
    let mut signed: Vec<f64> = pairs.iter().map(|pair| pair.predicted / pair.measured - 1.0).collect();
    let mut off: Vec<f64> = signed.iter().map(|error| error.abs()).collect();
    let within = |most: f64| share(off.iter().filter(|error| **error <= most).count(), n);
    let (within_10, within_25) = (within(0.10), within(0.25));
    let given: Vec<_> = pairs.iter().filter_map(|pair| Some((pair.measured, pair.interval?))).collect();
    let inside = given.iter().filter(|(measured, (low, high))| low <= measured && measured <= high).count();
    Some(Score {
        n,
        mdape: quantile(&mut off, 0.5),
        mape: off.iter().sum::<f64>() / n as f64,
        p90: quantile(&mut off, 0.9),
        bias: quantile(&mut signed, 0.5),
        within_10,
        within_25,
        coverage_80: (!given.is_empty()).then(|| share(inside, given.len())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(predicted: f64, interval: Option<(f64, f64)>) -> PredictionPair {
        PredictionPair { predicted, measured: 100.0, interval }
    }

    #[test]
    fn errors_are_shares_of_what_was_measured() {
        let pairs =
            [pair(90.0, None), pair(105.0, None), pair(120.0, None), pair(95.0, None), pair(180.0, None)];
        let score = score(&pairs).unwrap();
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        near(score.mdape, 0.10);
        near(score.mape, (0.1 + 0.05 + 0.2 + 0.05 + 0.8) / 5.0);
        near(score.bias, 0.05);
        near(score.p90, 0.8);
        near(score.within_10, 0.6);
        near(score.within_25, 0.8);
        assert_eq!((score.n, score.coverage_80), (5, None));
    }

    #[test]
    fn coverage_counts_only_what_has_an_interval() {
        let pairs = [pair(1.0, Some((90.0, 110.0))), pair(1.0, Some((101.0, 110.0))), pair(1.0, None)];
        assert_eq!(score(&pairs).unwrap().coverage_80, Some(0.5));
        assert_eq!(score(&[]), None);
    }

    #[test]
    fn shares_differ_by_points() {
        let found = point_score(&[0.02, -0.05, 0.04, -0.3, 0.01]).unwrap();
        assert_eq!((found.n, found.median, found.bias, found.p90), (5, 0.04, 0.01, 0.3));
        assert_eq!(point_score(&[]), None);
    }

    #[test]
    fn each_cell_has_the_same_weight() {
        let of = |cell, predicted| (cell, pair(predicted, None));
        let pairs = [of("a", 110.0), of("a", 110.0), of("a", 110.0), of("b", 150.0)];
        let mean = mean_of_cells(pairs.into_iter()).unwrap();
        assert!((mean - 0.3).abs() < 1e-12, "{mean}");
        assert_eq!(mean_of_cells::<&str>(std::iter::empty()), None);
    }
}
