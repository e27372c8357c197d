//! Factors of one's own measurements on predicted times and memory, shrunk to 1: few rows say little.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::nearness::Interval;

/// Variance of rows of a cell around its factor, as a multiple of the variance of these factors between cells that no fit
/// has seen. Cautious: rows of known cells err 0.4 times as much as those of unseen models, with 0.16 of their variance
/// (docs/accuracy.md).
const ROW_VARIANCE: f64 = 0.5;

/// The share of `rows` in the factor of their cell; the prior, a factor of 1, has the rest.
pub fn weight(rows: usize) -> f64 {
    let rows = rows as f64;
    rows / (rows + ROW_VARIANCE)
}

/// The share of the variance of a further row that is left when `rows` of its cell are measured.
fn left(rows: usize) -> f64 {
    (1.0 - weight(rows) + ROW_VARIANCE) / (1.0 + ROW_VARIANCE)
}

/// Quantiles of measured / predicted of a further row after one more was measured, from those after `rows`.
pub fn narrowed_by_one(ends: [f64; 3], rows: usize) -> [f64; 3] {
    let power = (left(rows + 1) / left(rows)).sqrt();
    ends.map(|end| libm::pow(end, power))
}

/// A factor with its p10 and p90.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShrunkFactor {
    /// The factor.
    pub times: f64,
    /// Its p10.
    pub low: f64,
    /// Its p90.
    pub high: f64,
    /// Number of rows.
    pub rows: usize,
}

/// Factors on the predictions of a cell: one model on one device in one weight format.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CellCorrection {
    /// The model's architecture and parameter count.
    pub model: String,
    /// The device.
    pub hardware: String,
    /// The weight format.
    pub weight_format: String,
    /// On the time of steps and requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<ShrunkFactor>,
    /// On the time of computation in place of that factor, where rows of single requests determine both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<ShrunkFactor>,
    /// On the memory of a device except the KV cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<ShrunkFactor>,
    /// The data and their number.
    pub source: String,
}

impl ShrunkFactor {
    /// The factor of rows whose logarithms of measured / predicted are `logs`, where `prior` are p10 and p90 of measured
    /// / predicted of such rows before any was measured; `None` without rows.
    pub fn of(logs: &[f64], prior: [f64; 2]) -> Option<ShrunkFactor> {
        let rows = logs.len();
        let mean = logs.iter().sum::<f64>() / rows as f64;
        let share = weight(rows);
        let times = libm::exp(share * mean);
        // The prior has the variance of the cells and that of rows; the cell's part shrinks as rows come.
        let narrowed = ((1.0 - share) / (1.0 + ROW_VARIANCE)).sqrt();
        let [low, high] = prior.map(|end| times * libm::pow(end, narrowed));
        (rows > 0).then_some(ShrunkFactor { times, low, high, rows })
    }

    /// Quantiles of measured / predicted of a further row, where `ends` are those before any row of the cell was measured.
    pub fn narrow(&self, ends: [f64; 3]) -> [f64; 3] {
        ends.map(|end| libm::pow(end, left(self.rows).sqrt()))
    }

    /// Quantiles of measured / predicted of a further row, from the interval of the factor.
    pub fn quantiles(&self) -> [f64; 3] {
        let left = 1.0 - weight(self.rows);
        let wider = ((left + ROW_VARIANCE) / left).sqrt();
        [libm::pow(self.low / self.times, wider), 1.0, libm::pow(self.high / self.times, wider)]
    }
}

impl CellCorrection {
    /// Whether it is that of a cell.
    pub fn is_of(&self, model: &str, hardware: &str, weight_format: &str) -> bool {
        (self.model.as_str(), self.hardware.as_str(), self.weight_format.as_str())
            == (model, hardware, weight_format)
    }

    /// The interval of the cell with these rows, from the one without.
    pub fn narrow(&self, interval: Interval) -> Interval {
        let Some(time) = &self.time else { return interval };
        Interval {
            ttft: self.compute.as_ref().unwrap_or(time).narrow(interval.ttft),
            tpot: time.narrow(interval.tpot),
            throughput: time.narrow(interval.throughput),
            source: format!("{}; narrowed by {}", interval.source, self.source),
            ..interval
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_row_counts_two_thirds_and_two_four_fifths() {
        assert!((weight(1) - 2.0 / 3.0).abs() < 1e-15 && (weight(2) - 0.8).abs() < 1e-15);
        let one = ShrunkFactor::of(&[libm::log(1.3)], [0.8, 1.25]).unwrap();
        assert!((one.times - libm::pow(1.3, 2.0 / 3.0)).abs() < 1e-12, "{one:?}");
        assert_eq!(ShrunkFactor::of(&[], [0.8, 1.25]), None);
    }

    proptest! {
        /// Without rows nothing is narrowed, with more of them less remains, and rows themselves still scatter.
        #[test]
        fn more_rows_leave_less_to_doubt(rows in 1_usize..50, low in 0.1..0.99, high in 1.01..9.0) {
            let of = |rows: usize| ShrunkFactor::of(&vec![0.2; rows], [low, high]).unwrap();
            let (fewer, more) = (of(rows), of(rows + 1));
            prop_assert!(more.times > fewer.times && more.times < libm::exp(0.2));
            prop_assert!(more.high / more.times < fewer.high / fewer.times);
            let [a, _, b] = fewer.narrow([low, 1.0, high]);
            prop_assert!(a > low && b < high);
            prop_assert!(b > fewer.high / fewer.times && a < fewer.low / fewer.times);
            let by_one = narrowed_by_one(fewer.narrow([low, 1.0, high]), rows);
            prop_assert!((by_one[2] / more.narrow([low, 1.0, high])[2] - 1.0).abs() < 1e-12);
            let again = fewer.quantiles();
            prop_assert!((again[0] / a - 1.0).abs() < 1e-9 && (again[2] / b - 1.0).abs() < 1e-9);
            let none = ShrunkFactor { times: 1.0, low, high, rows: 0 };
            prop_assert!((none.narrow([low, 1.0, high])[2] / high - 1.0).abs() < 1e-12);
        }
    }
}
