//! Errors of the predicted memory except the KV cache: measured / predicted peaks, by runtime.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::validate::predict::PreparedRow;
use crate::validate::measured::MeasuredRow;

/// Minimum number of runs for an interval.
pub(super) const LEAST: usize = 5;

/// Columns of [`MemoryRatios::cells`].
pub const HEADER: [&str; 5] = ["runtime", "runs", "p10", "p50", "p90"];

/// Measured / predicted ratios of one runtime, and the publishers of the data.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct MemoryRatios {
    ratios: Vec<f64>,
    sources: Vec<String>,
}

/// Measured / predicted of a row that states a peak.
pub(super) fn ratio(row: &MeasuredRow, ready: &PreparedRow) -> Option<f64> {
    let held = ready.footprint();
    let cache = held.kv.value();
    Some((row.outcome.memory_bytes? - cache) / (held.total.value() - cache))
}

/// Ratios by runtime, for runtimes with enough runs.
pub(super) fn memory_ratios<'a>(
    rows: impl Iterator<Item = (&'a MeasuredRow, &'a PreparedRow)>,
) -> BTreeMap<String, MemoryRatios> {
    let mut found = BTreeMap::<String, MemoryRatios>::new();
    for (row, ready) in rows {
        let Some(ratio) = ratio(row, ready) else { continue };
        let one = found.entry(ready.runtime.clone()).or_default();
        one.ratios.push(ratio);
        if !one.sources.contains(&row.source) {
            one.sources.push(row.source.clone());
        }
    }
    found.retain(|_, one| one.ratios.len() >= LEAST);
    found
}

impl MemoryRatios {
    /// p10, p50 and p90 for a future run; with few runs, p10 and p90 are the observed minimum and maximum (split
    /// conformal prediction: Lei et al., JASA 113, 2018).
    fn quantiles(&self) -> [f64; 3] {
        let mut ratios = self.ratios.clone();
        ratios.sort_by(f64::total_cmp);
        let ranks = (ratios.len() + 1) as f64;
        let at = |rank: f64| {
            let place = (rank as usize).clamp(1, ratios.len()) - 1;
            ratios.get(place).map_or(f64::NAN, |ratio| (ratio * 1e3).round() / 1e3)
        };
        [at((0.1 * ranks).floor()), at((0.5 * ranks).round()), at((0.9 * ranks).ceil())]
    }

    /// A row of [`HEADER`].
    pub fn cells(&self, runtime: &str) -> Vec<String> {
        let quantiles = self.quantiles().map(|ratio| ratio.to_string());
        [runtime.to_owned(), self.ratios.len().to_string()].into_iter().chain(quantiles).collect()
    }

    /// Replaces the quantiles in `profile`.
    pub(super) fn state(&self, profile: &mut Value) {
        let source = format!(
            "quantiles of measured / predicted peak memory except the KV cache (mantile-opt calibrate) on {} \
             published runs: {}",
            self.ratios.len(),
            self.sources.join("; ")
        );
        profile["memory"]["measured"] = json!({"quantiles": self.quantiles(), "source": source});
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_runs_span_all_of_them_and_many_four_in_five() {
        let of = |n: usize| {
            MemoryRatios { ratios: (1..=n).map(|k| k as f64).collect(), sources: vec![] }.quantiles()
        };
        assert_eq!(of(7), [1.0, 4.0, 7.0]);
        assert_eq!(of(99), [10.0, 50.0, 90.0]);
    }
}
