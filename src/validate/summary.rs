//! Validation summary of a measurement table: statistics over all rows and by group.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::decision::{Decision, DecisionOption, decision};
use super::figures::{Figures, RunFigure, column_of};
use super::measured::MeasuredRow;
use super::measured_traffic::MeasuredArrivals;
use super::peers::PeerScore;
use super::run_kind::RunKind;
use super::score::{PointScore, PredictionPair, Score, mean_of_cells, point_score, score};
use crate::spec::nearness::Nearness;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prediction {
    /// TTFT in milliseconds.
    pub ttft_ms: f64,
    /// TPOT in milliseconds.
    pub tpot_ms: f64,
    /// End-to-end time in milliseconds, under a rate.
    pub e2e_ms: Option<f64>,
    /// 99th percentile of TTFT in milliseconds, under a rate.
    pub ttft_p99_ms: Option<f64>,
    /// Share of the prompt tokens that are in the cache of the devices, of a simulation.
    pub hit_rate: Option<f64>,
    /// Requests per second that the servers answer at most, where the rate of the row is above it.
    pub capacity_per_s: Option<f64>,
    /// Further figures.
    pub more: Figures,
    /// Nearness of the row to the calibration data, where an interval is known.
    pub near: Option<Nearness>,
    /// p10–p90 interval of TTFT.
    pub ttft_interval: Option<(f64, f64)>,
    /// p10–p90 interval of TPOT.
    pub tpot_interval: Option<(f64, f64)>,
    /// Memory per device in bytes, where measured, and its interval.
    pub memory: Option<(f64, Option<(f64, f64)>)>,
    /// Whether the deployment is predicted to fit in memory.
    pub fits: bool,
    pub devices: u64,
}

/// A row with its prediction, or the reason why there is none.
pub struct ScoredRow {
    pub measured: MeasuredRow,
    pub predicted: Result<Prediction, String>,
}

/// Grouping key of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum GroupBy {
    /// The model
    Model,
    /// The device
    Hardware,
    /// The serving runtime
    Runtime,
    /// Aggregated, disaggregated, or the mode of a single stream
    Mode,
    /// Nearness of the row to the calibration data
    Near,
    /// The class of a machine at home
    Class,
}

impl GroupBy {
    fn of(self, held: &ScoredRow) -> String {
        let row = &held.measured;
        match self {
            GroupBy::Model => row.model.clone(),
            GroupBy::Hardware => row.hardware.clone(),
            GroupBy::Runtime => row.runtime.clone(),
            GroupBy::Mode => row.mode.clone(),
            GroupBy::Class if row.class.is_empty() => "no class".to_owned(),
            GroupBy::Class => row.class.clone(),
            GroupBy::Near => match held.predicted.as_ref().ok().and_then(|made| made.near) {
                Some(near) => near.name().to_owned(),
                None => "not predicted".to_owned(),
            },
        }
    }
}

/// Statistics of a group of rows.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RowGroup {
    /// Name of the group; empty for all rows.
    pub name: String,
    /// Rows with a prediction.
    pub n: usize,
    /// Rows without a prediction.
    pub unsupported: usize,
    /// Measured rows that are predicted not to fit in memory.
    pub too_small: usize,
    /// TPOT errors.
    pub tpot: Option<Score>,
    /// TTFT errors.
    pub ttft: Option<Score>,
    /// Errors of end-to-end times, of runs under a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub e2e: Option<Score>,
    /// Errors of the 99th percentile of TTFT, of runs under a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_p99: Option<Score>,
    /// Errors of cache hit rates, of runs that are simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit_rate: Option<PointScore>,
    /// Mean over cells of model, hardware, runtime and weight format of the TPOT MdAPE of each, as a fraction.
    pub tpot_mean_of_cells: Option<f64>,
    /// The same of TTFT.
    pub ttft_mean_of_cells: Option<f64>,
    /// Errors of memory per device.
    pub memory: Option<Score>,
    /// Errors of further figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<FigureScore>,
    /// Decision quality.
    pub decision: Option<Decision>,
    /// Decision quality where the SLO applies to p90 of the prediction interval, as with `--risk p90`.
    pub decision_p90: Option<Decision>,
}

/// Errors of one figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureScore {
    pub figure: RunFigure,
    pub score: Score,
}

/// A row that is left out because a cell of it is faulty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DroppedRow {
    /// The table, as errors name it.
    pub table: String,
    /// Line of the row; the header is line 1.
    pub row: u64,
    /// The column; empty for a row of another number of cells.
    pub column: String,
    pub found: String,
    pub expected: String,
}

/// Rows without a prediction, for one reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unsupported {
    /// The reason.
    pub reason: String,
    /// Number of rows.
    pub rows: usize,
}

/// Figures of a table that are not scored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unscored {
    /// The column, or the metric.
    pub column: String,
    /// Number of rows with the figure.
    pub rows: usize,
}

/// An input that rows do not state, and that is assumed for them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AssumedInput {
    /// The input and its source.
    pub input: String,
    /// Number of rows.
    pub rows: usize,
}

/// A figure of a row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedFigure {
    pub measured: f64,
    pub predicted: f64,
}

/// A further figure of a row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureOfRow {
    pub figure: RunFigure,
    pub measured: f64,
    pub predicted: f64,
}

/// A row with its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayedRow {
    pub id: String,
    /// The setting of a published point.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub setting: String,
    /// Cache hit rates.
    pub hit_rate: Option<ComparedFigure>,
    /// TTFT in milliseconds.
    pub ttft_ms: Option<ComparedFigure>,
    /// TPOT in milliseconds.
    pub tpot_ms: Option<ComparedFigure>,
    /// Further figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<FigureOfRow>,
}

/// Statistics of a table.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Validation {
    /// All rows that are not flagged doubtful.
    pub overall: RowGroup,
    /// The same rows by group.
    pub groups: Vec<RowGroup>,
    /// Rows of sessions: away from the cliff of the cache, where the hit rate is high or low; at it, between the two; and
    /// those without a measured hit rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<RowGroup>,
    /// Rows one by one, where they are few; else those of sessions and published points, where these are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<ReplayedRow>,
    /// Rows flagged doubtful.
    pub doubtful: Option<RowGroup>,
    /// Rows whose rate is above the predicted capacity, where waiting grows as long as the run lasts. No other group has
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above_capacity: Option<RowGroup>,
    /// Rows with a faulty cell, which are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<DroppedRow>,
    /// Errors of other simulators, as published.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<PeerScore>,
    /// Reasons for missing predictions.
    pub unsupported: Vec<Unsupported>,
    /// Figures that are not scored.
    pub unscored: Vec<Unscored>,
    /// Inputs that rows do not state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<AssumedInput>,
}

/// Rows that are shown one by one, at most.
const FEW: usize = 20;
/// Hit rates at and above the first, and at and below the second, are away from the cliff.
const AWAY: [f64; 2] = [0.9, 0.2];

/// Aggregates `rows`, grouped by the combination of all `keys`.
pub fn validation(rows: &[ScoredRow], keys: &[GroupBy]) -> Validation {
    let (within, above): (Vec<&ScoredRow>, Vec<_>) = rows.iter().partition(|row| !is_above_capacity(row));
    let (sound, doubtful): (Vec<_>, Vec<_>) =
        within.into_iter().partition(|row| row.measured.warning.is_empty());
    let at_home = |row: &ScoredRow| matches!(row.measured.kind, RunKind::Home(_));
    let usual = if rows.iter().all(at_home) { vec![GroupBy::Class] } else { vec![] };
    let keys = if keys.is_empty() { &usual } else { keys };
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
        sessions: by_cliff(&sound),
        rows: one_by_one(&sound),
        doubtful: (!doubtful.is_empty()).then(|| group("doubtful".into(), &doubtful)),
        above_capacity: (!above.is_empty()).then(|| group("above the predicted capacity".into(), &above)),
        dropped: vec![],
        peers: vec![],
        unsupported,
        unscored: unscored(rows),
        assumed: assumed(&sound),
    }
}

fn is_above_capacity(row: &ScoredRow) -> bool {
    row.predicted.as_ref().is_ok_and(|made| made.capacity_per_s.is_some())
}

/// Rows of sessions by their side of the cliff.
fn by_cliff(rows: &[&ScoredRow]) -> Vec<RowGroup> {
    let mut sides = BTreeMap::<usize, Vec<&ScoredRow>>::new();
    for row in rows.iter().filter(|row| has_sessions(&row.measured)) {
        let side = match row.measured.outcome.hit_rate {
            Some(rate) if rate >= AWAY[0] || rate <= AWAY[1] => 0,
            Some(_) => 1,
            None => 2,
        };
        sides.entry(side).or_default().push(row);
    }
    let [high, low] = AWAY;
    let name = |side| match side {
        0 => format!("sessions, hit rate >= {high} or <= {low}"),
        1 => format!("sessions, hit rate {low} to {high}"),
        _ => "sessions, hit rate not measured".to_owned(),
    };
    sides.into_iter().map(|(side, rows)| group(name(side), &rows)).collect()
}

fn has_sessions(row: &MeasuredRow) -> bool {
    row.traffic.as_ref().is_some_and(|traffic| matches!(traffic.arrivals, MeasuredArrivals::Sessions(_)))
}

fn one_by_one(rows: &[&ScoredRow]) -> Vec<ReplayedRow> {
    let one = |row: &&ScoredRow| {
        let (ScoredRow { measured, predicted }, both) =
            (row, |measured: Option<f64>, predicted| Some(ComparedFigure { measured: measured?, predicted }));
        let (made, outcome) = (predicted.as_ref().ok()?, &measured.outcome);
        Some(ReplayedRow {
            id: measured.id.clone(),
            setting: measured.arm.clone().unwrap_or_default(),
            hit_rate: made.hit_rate.and_then(|made| both(outcome.hit_rate, made)),
            ttft_ms: both(outcome.ttft_ms, made.ttft_ms),
            tpot_ms: both(outcome.tpot_ms, made.tpot_ms),
            figures: further(row).collect(),
        })
    };
    let few = |found: Vec<ReplayedRow>| if found.len() > FEW { vec![] } else { found };
    let found: Vec<ReplayedRow> = rows.iter().filter_map(one).collect();
    if found.len() <= FEW {
        return found;
    }
    few(rows.iter().filter(|row| row.measured.is_replayed()).filter_map(one).collect())
}

/// The further figures of a row that are predicted: end-to-end times and memory of its columns, and all others.
fn further(row: &ScoredRow) -> impl Iterator<Item = FigureOfRow> + '_ {
    let made = row.predicted.as_ref().ok();
    let measured = row.measured.outcome.more.iter();
    measured.filter_map(move |(figure, measured)| {
        Some(FigureOfRow { figure, measured, predicted: made?.more.get(figure)? })
    })
}

fn assumed<'a>(rows: &[&'a ScoredRow]) -> Vec<AssumedInput> {
    let mut inputs = BTreeMap::<&String, usize>::new();
    let predicted = rows.iter().copied().filter(|row| row.predicted.is_ok());
    let of_row = |row: &&'a ScoredRow| {
        let traffic = row.measured.traffic.iter().flat_map(|traffic| &traffic.assumed);
        traffic.chain(&row.measured.assumed).collect::<Vec<_>>()
    };
    for input in predicted.flat_map(|row| of_row(&row)) {
        *inputs.entry(input).or_default() += 1;
    }
    inputs.into_iter().map(|(input, rows)| AssumedInput { input: input.clone(), rows }).collect()
}

fn unscored(rows: &[ScoredRow]) -> Vec<Unscored> {
    let mut columns = BTreeMap::<String, usize>::new();
    for row in rows {
        let more = row.measured.outcome.more.iter().map(|(figure, _)| figure);
        let open =
            more.filter(|figure| row.predicted.as_ref().is_ok_and(|made| made.more.get(*figure).is_none()));
        let open = open.map(|figure| column_of(figure).to_owned());
        for column in row.measured.unscored.iter().cloned().chain(open) {
            *columns.entry(column).or_default() += 1;
        }
    }
    columns.into_iter().map(|(column, rows)| Unscored { column, rows }).collect()
}

fn group(name: String, rows: &[&ScoredRow]) -> RowGroup {
    let found: Vec<_> =
        rows.iter().filter_map(|row| Some((&row.measured, row.predicted.as_ref().ok()?))).collect();
    let pairs = |pair: &dyn Fn(&MeasuredRow, &Prediction) -> Option<PredictionPair>| {
        let pairs: Vec<_> =
            found.iter().filter_map(|(row, made)| Some((row.cell(), pair(row, made)?))).collect();
        let mean = mean_of_cells(pairs.iter().copied());
        (score(&pairs.into_iter().map(|(_, pair)| pair).collect::<Vec<_>>()), mean)
    };
    let (tpot, tpot_mean_of_cells) = pairs(&|row, made| {
        let measured = row.outcome.tpot_ms?;
        Some(PredictionPair { predicted: made.tpot_ms, measured, interval: made.tpot_interval })
    });
    let (ttft, ttft_mean_of_cells) = pairs(&|row, made| {
        let measured = row.outcome.ttft_ms?;
        Some(PredictionPair { predicted: made.ttft_ms, measured, interval: made.ttft_interval })
    });
    let (e2e, _) = pairs(&|row, made| {
        Some(PredictionPair { predicted: made.e2e_ms?, measured: row.outcome.e2e_ms?, interval: None })
    });
    let (ttft_p99, _) = pairs(&|row, made| {
        Some(PredictionPair {
            predicted: made.ttft_p99_ms?,
            measured: row.outcome.ttft_p99_ms?,
            interval: None,
        })
    });
    let hits = found.iter().filter_map(|(row, made)| Some(made.hit_rate? - row.outcome.hit_rate?));
    let hits: Vec<f64> = hits.collect();
    let memory: Vec<PredictionPair> = found
        .iter()
        .filter_map(|(row, made)| {
            let (predicted, interval) = made.memory?;
            Some(PredictionPair { predicted, measured: row.outcome.memory_bytes?, interval })
        })
        .collect();
    let figures = RunFigure::EACH.into_iter().filter_map(|figure| {
        let pairs = found.iter().filter_map(|(row, made)| {
            let (predicted, measured) = (made.more.get(figure)?, row.outcome.more.get(figure)?);
            Some(PredictionPair { predicted, measured, interval: None })
        });
        Some(FigureScore { figure, score: score(&pairs.collect::<Vec<_>>())? })
    });
    let figures = figures.collect();
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
        tpot,
        ttft,
        e2e,
        ttft_p99,
        hit_rate: point_score(&hits),
        tpot_mean_of_cells,
        ttft_mean_of_cells,
        memory: score(&memory),
        figures,
        decision: judged(&|made| Some(made.tpot_ms)),
        decision_p90: judged(&|made| Some(made.tpot_interval?.1)),
    }
}

/// The row as a configuration to choose from; the SLO applies to `limited`.
fn choice(row: &MeasuredRow, made: &Prediction, limited: f64) -> Option<DecisionOption> {
    let measured = (row.outcome.ttft_ms?, row.outcome.tpot_ms?);
    let load = (row.concurrency?, row.osl, made.devices);
    Some(DecisionOption::new(load, limited, (made.ttft_ms, made.tpot_ms), measured))
}
