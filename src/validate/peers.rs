//! Predictions of other simulators, as published next to their measurements.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::measured::Record;
use super::score::{PredictionPair, Score, score};
use crate::spec::error::Error;
use crate::spec::limits::MILLISECONDS;

/// A prediction of another simulator.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerPrediction {
    pub simulator: String,
    pub metric: String,
    pub predicted: f64,
    pub measured: f64,
}

/// Errors of another simulator for one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeerScore {
    pub simulator: String,
    pub metric: String,
    pub score: Score,
}

impl Record<'_> {
    /// Whether the table has predictions of other simulators.
    pub(super) fn is_of_peers(&self) -> bool {
        ["simulator", "predicted_ms", "measured_ms"].iter().all(|key| self.0.contains_key(key))
    }

    /// The prediction of a row of other simulators; `None` in other tables.
    pub fn peer(&self) -> Result<Option<PeerPrediction>, Error> {
        if !self.is_of_peers() {
            return Ok(None);
        }
        let figure = |key: &str| {
            self.positive(key, &MILLISECONDS)?.ok_or_else(|| {
                Error::new(
                    key,
                    self.text(key),
                    "a time in milliseconds",
                    "correct the cell, or remove the row",
                )
            })
        };
        Ok(Some(PeerPrediction {
            simulator: self.text("simulator").to_owned(),
            metric: self.text("metric").to_owned(),
            predicted: figure("predicted_ms")?,
            measured: figure("measured_ms")?,
        }))
    }
}

/// The errors of each simulator by metric.
pub fn peer_scores(rows: &[PeerPrediction]) -> Vec<PeerScore> {
    let mut pairs = BTreeMap::<(&str, &str), Vec<PredictionPair>>::new();
    for PeerPrediction { simulator, metric, predicted, measured } in rows {
        let pair = PredictionPair { predicted: *predicted, measured: *measured, interval: None };
        pairs.entry((simulator, metric)).or_default().push(pair);
    }
    let scored = pairs.into_iter().filter_map(|((simulator, metric), pairs)| {
        let (simulator, metric) = (simulator.to_owned(), metric.to_owned());
        Some(PeerScore { simulator, metric, score: score(&pairs)? })
    });
    scored.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_a_simulator_are_by_metric() {
        let row = |predicted: &str| {
            let cells = [
                ("simulator", "other"),
                ("metric", "ttft_mean"),
                ("predicted_ms", predicted),
                ("measured_ms", "100"),
            ];
            Record(cells.into_iter().collect()).peer()
        };
        let found = peer_scores(&[row("150").unwrap().unwrap(), row("150").unwrap().unwrap()]);
        assert_eq!((found.len(), found[0].score.n, found[0].score.mdape), (1, 2, 0.5));
        assert_eq!(row("").unwrap_err().key, "predicted_ms");
        assert_eq!(Record([("model", "a/b")].into_iter().collect()).peer().unwrap(), None);
    }
}
