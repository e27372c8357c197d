//! Everything that a table of measurements says of our predictions, over all rows and by group.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::decision::{Decision, DecisionOption, decision};
use super::measured::MeasuredRow;
use super::score::{PredictionPair, Score, score};
use crate::spec::nearness::Nearness;

/// What was predicted for a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prediction {
    /// Time to first token, in milliseconds, and its interval from p10 to p90.
    pub ttft_ms: f64,
    /// Time per output token, in milliseconds.
    pub tpot_ms: f64,
    /// How near the row is to what was measured, where an interval is known.
    pub near: Option<Nearness>,
    /// The first one's interval from p10 to p90.
    pub ttft_interval: Option<(f64, f64)>,
    /// The second one's.
    pub tpot_interval: Option<(f64, f64)>,
    /// Bytes on a device, where they were measured, and their interval.
    pub memory: Option<(f64, Option<(f64, f64)>)>,
    /// Whether its memory is predicted to hold it.
    pub fits: bool,
    /// Devices that the deployment takes.
    pub devices: u64,
}

/// A row, and what was predicted or why nothing was.
pub struct ScoredRow {
    /// The row.
    pub measured: MeasuredRow,
    /// What was predicted.
    pub predicted: Result<Prediction, String>,
}

/// What rows are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// The model.
    Model,
    /// The device.
    Hardware,
    /// The runtime.
    Runtime,
    /// Aggregated or not.
    Mode,
    /// How near it is to what was measured.
    Near,
}

impl GroupBy {
    fn of(self, held: &ScoredRow) -> String {
        let row = &held.measured;
        match self {
            GroupBy::Model => row.model.clone(),
            GroupBy::Hardware => row.hardware.clone(),
            GroupBy::Runtime => row.runtime.clone(),
            GroupBy::Mode => row.mode.clone(),
            GroupBy::Near => match held.predicted.as_ref().ok().and_then(|made| made.near) {
                Some(near) => near.name().to_owned(),
                None => "not predicted".to_owned(),
            },
        }
    }
}

/// What some rows say.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RowGroup {
    /// What the rows have in common; empty for all.
    pub name: String,
    /// Rows that were predicted.
    pub n: usize,
    /// Rows that were not.
    pub unsupported: usize,
    /// Rows that ran, though memory is predicted to be too small for them.
    pub too_small: usize,
    /// Time per output token.
    pub tpot: Option<Score>,
    /// Time to first token.
    pub ttft: Option<Score>,
    /// Memory held on a device.
    pub memory: Option<Score>,
    /// The choices that predictions lead to.
    pub decision: Option<Decision>,
    /// The choices where a limit is held at the p90 of its interval, as `--risk p90` has the search do.
    pub decision_p90: Option<Decision>,
}

/// Rows that could not be predicted, for one reason.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Unsupported {
    /// The reason.
    pub reason: String,
    /// How many.
    pub rows: usize,
}

/// Figures of a table that were held against nothing.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Unscored {
    /// The column, or the metric.
    pub column: String,
    /// Rows that state it.
    pub rows: usize,
}

/// What a table says.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Validation {
    /// All rows that nothing is known against.
    pub overall: RowGroup,
    /// The same rows by group.
    pub groups: Vec<RowGroup>,
    /// Rows that carry a doubt, beside.
    pub doubtful: Option<RowGroup>,
    /// Why rows were not predicted.
    pub unsupported: Vec<Unsupported>,
    /// What the rows state that was held against nothing.
    pub unscored: Vec<Unscored>,
}

/// Sums up `rows`, grouped by all of `keys` together.
pub fn validation(rows: &[ScoredRow], keys: &[GroupBy]) -> Validation {
    let (sound, doubtful): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.measured.doubt.is_empty());
    let mut groups = BTreeMap::<String, Vec<&ScoredRow>>::new();
    if !keys.is_empty() {
        for &row in &sound {
            let name: Vec<_> = keys.iter().map(|key| key.of(row)).collect();
            groups.entry(name.join(" ")).or_default().push(row);
        }
    }
    let mut reasons = BTreeMap::<&str, usize>::new();
    for reason in sound.iter().filter_map(|row| row.predicted.as_ref().err()) {
        *reasons.entry(reason).or_default() += 1;
    }
    let mut unsupported: Vec<_> =
        reasons.into_iter().map(|(reason, rows)| Unsupported { reason: reason.into(), rows }).collect();
    unsupported.sort_by_key(|one| std::cmp::Reverse(one.rows));
    Validation {
        overall: group(String::new(), &sound),
        groups: groups.into_iter().map(|(name, rows)| group(name, &rows)).collect(),
        doubtful: (!doubtful.is_empty()).then(|| group("doubtful".into(), &doubtful)),
        unsupported,
        unscored: unscored(rows),
    }
}

fn unscored(rows: &[ScoredRow]) -> Vec<Unscored> {
    let mut columns = BTreeMap::<&String, usize>::new();
    for column in rows.iter().flat_map(|row| &row.measured.unscored) {
        *columns.entry(column).or_default() += 1;
    }
    columns.into_iter().map(|(column, rows)| Unscored { column: column.clone(), rows }).collect()
}

fn group(name: String, rows: &[&ScoredRow]) -> RowGroup {
    let found: Vec<_> =
        rows.iter().filter_map(|row| Some((&row.measured, row.predicted.as_ref().ok()?))).collect();
    let tpot: Vec<PredictionPair> = found
        .iter()
        .filter_map(|(row, made)| {
            let measured = row.outcome.tpot_ms?;
            Some(PredictionPair { predicted: made.tpot_ms, measured, interval: made.tpot_interval })
        })
        .collect();
    let ttft: Vec<PredictionPair> = found
        .iter()
        .filter_map(|(row, made)| {
            let measured = row.outcome.ttft_ms?;
            Some(PredictionPair { predicted: made.ttft_ms, measured, interval: made.ttft_interval })
        })
        .collect();
    let memory: Vec<PredictionPair> = found
        .iter()
        .filter_map(|(row, made)| {
            let (predicted, interval) = made.memory?;
            Some(PredictionPair { predicted, measured: row.outcome.memory_bytes?, interval })
        })
        .collect();
    let judged = |limited: &dyn Fn(&Prediction) -> Option<f64>| {
        let mut comparable = BTreeMap::<_, Vec<DecisionOption>>::new();
        for (row, made) in &found {
            let key = (&row.model, &row.hardware, &row.weight_format, row.isl, row.osl);
            if let Some(choice) = limited(made).and_then(|limited| choice(row, made, limited)) {
                comparable.entry(key).or_default().push(choice);
            }
        }
        decision(&comparable.into_values().collect::<Vec<_>>())
    };
    RowGroup {
        name,
        n: found.len(),
        unsupported: rows.len() - found.len(),
        too_small: found.iter().filter(|(_, made)| !made.fits).count(),
        tpot: score(&tpot),
        ttft: score(&ttft),
        memory: score(&memory),
        decision: judged(&|made| Some(made.tpot_ms)),
        decision_p90: judged(&|made| Some(made.tpot_interval?.1)),
    }
}

/// The row as a configuration that could be chosen where `limited` keeps a limit.
fn choice(row: &MeasuredRow, made: &Prediction, limited: f64) -> Option<DecisionOption> {
    let measured = (row.outcome.ttft_ms?, row.outcome.tpot_ms?);
    let load = (row.concurrency?, row.osl, made.devices);
    Some(DecisionOption::new(load, limited, (made.ttft_ms, made.tpot_ms), measured))
}
