//! Drift: errors of the predictions of measured runs, by runtime, hardware and size of model, with an alarm where the
//! median of the newest is above its limit.

use std::collections::BTreeMap;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calibrate::gates::SizeClass;
use super::runs::in_known_names;
use super::validate::predict::{PreparedRow, ProfileFit, prediction, ready, reason};
use crate::report::number::count;
use crate::report::table::table;
use crate::spec::run::{RunOrigin, RunOutcome, RunRecord};
use crate::store::catalog::Catalog;
use crate::validate::figures::RunFigure;
use crate::validate::measured::MeasuredRow;
use crate::validate::run_cells::RunCells;

/// Newest runs of a group that its medians rest on. The standard error of a median of 30 is 0.23 standard deviations,
/// √(π / 2n): Kenney and Keeping, Mathematics of Statistics, part 2, 1951, section 7.11.
pub const WINDOW: usize = 30;
/// Bytes of a GB.
const GB: f64 = 1e9;
/// Runs from which on a median raises an alarm.
pub const LEAST_RUNS: usize = 10;

/// A figure whose error is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriftFigure {
    /// TPOT; output tokens per second of runs without it.
    Decode,
    /// TTFT.
    Ttft,
    /// Device memory in use.
    Memory,
}

impl DriftFigure {
    pub const EACH: [DriftFigure; 3] = [DriftFigure::Decode, DriftFigure::Ttft, DriftFigure::Memory];

    /// The median error above which an alarm is on, as the published interface defines it.
    pub const fn limit(self) -> f64 {
        match self {
            DriftFigure::Decode => 0.12,
            DriftFigure::Ttft => 0.18,
            DriftFigure::Memory => 0.07,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            DriftFigure::Decode => "decode",
            DriftFigure::Ttft => "ttft",
            DriftFigure::Memory => "memory",
        }
    }
}

/// Relative errors of a prediction: predicted over measured, less 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunErrors {
    /// Of the time per output token; of the output tokens per second where only these were measured.
    pub decode: Option<f64>,
    /// Of the time to first token.
    pub ttft: Option<f64>,
    /// Of the device memory.
    pub memory: Option<f64>,
}

impl RunErrors {
    pub fn get(&self, figure: DriftFigure) -> Option<f64> {
        match figure {
            DriftFigure::Decode => self.decode,
            DriftFigure::Ttft => self.ttft,
            DriftFigure::Memory => self.memory,
        }
    }
}

/// The median of absolute errors; `None` without any.
pub fn median_error(errors: impl Iterator<Item = f64>) -> Option<f64> {
    let mut errors: Vec<f64> = errors.map(f64::abs).collect();
    errors.sort_by(f64::total_cmp);
    let middle = errors.len() / 2;
    let upper = errors.get(middle).copied()?;
    let even = errors.len().is_multiple_of(2);
    Some(if even { (errors[middle - 1] + upper) / 2.0 } else { upper })
}

/// Runs whose errors are compared with each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DriftKey {
    pub runtime: String,
    /// Device.
    pub hardware: String,
    pub size: SizeClass,
}

/// A run whose start was predicted wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misjudged {
    /// It was predicted to fit and did not.
    FalsePositive,
    /// It ran and was predicted not to fit.
    FalseNegative,
}

/// A run with its prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedRun {
    pub key: DriftKey,
    /// None of a run that is in doubt or did not start.
    pub errors: RunErrors,
    /// Whether its memory suffices.
    pub fits: bool,
    pub misjudged: Option<Misjudged>,
}

/// The prediction of each run, as `validate` makes it, or the reason why there is none.
pub fn predicted_runs(catalog: &Catalog, runs: &[RunRecord]) -> Vec<Result<PredictedRun, String>> {
    let known = in_known_names(catalog, runs);
    let rows: Vec<Result<MeasuredRow, String>> = known.iter().map(row).collect();
    let sound: Vec<MeasuredRow> = rows.iter().flatten().cloned().collect();
    let mut ready = ready(catalog, &sound, ProfileFit::Shipped).into_iter();
    let prepared = rows.into_iter().map(|row| {
        let row = row?;
        let ready = ready.next().ok_or_else(|| "run: not prepared".to_owned())?;
        Ok((row, ready?))
    });
    let prepared: Vec<Result<(MeasuredRow, PreparedRow), String>> = prepared.collect();
    let of = |(run, pair): (&RunRecord, Result<_, String>)| {
        pair.and_then(|(row, ready)| predicted(run, &row, &ready))
    };
    known.par_iter().zip(prepared).map(of).collect()
}

/// A run as the row of a table.
fn row(run: &RunRecord) -> Result<MeasuredRow, String> {
    let rows = RunCells::of(run).record().runs().map_err(|fault| reason(&fault))?;
    rows.into_iter().next().ok_or_else(|| "run: without a figure".to_owned())
}

fn predicted(run: &RunRecord, row: &MeasuredRow, ready: &PreparedRow) -> Result<PredictedRun, String> {
    let made = prediction(row, ready)?;
    let problem = &ready.problem;
    let key = DriftKey {
        runtime: ready.runtime.clone(),
        hardware: problem.cluster.device.id.clone(),
        size: SizeClass::of(problem.graph.unique_parameters()),
    };
    let misjudged = match (run.outcome, made.fits) {
        (RunOutcome::Oom, true) => Some(Misjudged::FalsePositive),
        (RunOutcome::Measured, false) => Some(Misjudged::FalseNegative),
        _ => None,
    };
    let of = |predicted: f64, measured: Option<f64>| measured.map(|measured| predicted / measured - 1.0);
    let outcome = &row.outcome;
    let rate = || of(made.more.get(RunFigure::Output)?, outcome.more.get(RunFigure::Output));
    // The peak is that of all devices, which have equal parts in one pool.
    let held = || ready.footprint().total.value() / GB * made.devices as f64;
    let peak = run.metrics.vram_peak_gb.filter(|peak| *peak > 0.0 && row.pools.len() == 1);
    let errors = RunErrors {
        decode: of(made.tpot_ms, outcome.tpot_ms).or_else(rate),
        ttft: of(made.ttft_ms, outcome.ttft_ms),
        memory: peak.and_then(|peak| of(held(), Some(peak))),
    };
    // A queue above the capacity grows as long as its run lasts.
    let counts =
        row.warning.is_empty() && run.origin != RunOrigin::Simulated && made.capacity_per_s.is_none();
    let errors = if counts { errors } else { RunErrors::default() };
    Ok(PredictedRun { key, errors, fits: made.fits, misjudged })
}

/// The median error of a figure in a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriftMedian {
    /// The figure.
    pub figure: DriftFigure,
    /// Runs that measured it, the newest ones.
    pub n: usize,
    /// Median absolute error.
    pub median_error: f64,
    /// The error above which an alarm is on.
    pub limit: f64,
    /// Whether it is above, of enough runs.
    pub alarm: bool,
}

/// Runs of a runtime on a device, with models of a size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriftGroup {
    /// Runtime.
    pub runtime: String,
    /// Device.
    pub hardware: String,
    /// Range of total parameters of the models.
    pub model_class: String,
    /// Its runs.
    pub runs: usize,
    /// The figures that they measured.
    pub figures: Vec<DriftMedian>,
    /// Runs that were predicted to fit and did not.
    pub false_positives: usize,
    /// Runs that were predicted not to fit and ran.
    pub false_negatives: usize,
}

/// Runs without a prediction, for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnpredictedRuns {
    /// The reason.
    pub reason: String,
    /// Their number.
    pub runs: usize,
}

/// Errors of the predictions of runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriftReport {
    /// All runs.
    pub runs: usize,
    /// Newest runs of a group that a median rests on, at most.
    pub window: usize,
    /// Runs from which on a median raises an alarm.
    pub least_runs: usize,
    /// Whether an alarm is on.
    pub alarm: bool,
    /// The groups.
    pub groups: Vec<DriftGroup>,
    /// Runs that were predicted to fit and did not.
    pub false_positives: usize,
    /// Runs that were predicted not to fit and ran.
    pub false_negatives: usize,
    /// Runs without a prediction.
    pub unpredicted: Vec<UnpredictedRuns>,
}

/// The errors of runs, oldest first.
pub fn drift(catalog: &Catalog, runs: &[RunRecord]) -> DriftReport {
    DriftReport::of(&predicted_runs(catalog, runs))
}

/// The newest of these that measured a figure, oldest first.
pub(super) fn newest(errors: &[f64]) -> &[f64] {
    &errors[errors.len().saturating_sub(WINDOW)..]
}

impl DriftReport {
    /// The report of runs with their predictions, oldest first.
    pub fn of<'a>(predicted: impl IntoIterator<Item = &'a Result<PredictedRun, String>>) -> DriftReport {
        let mut groups = BTreeMap::<&DriftKey, Vec<&PredictedRun>>::new();
        let mut reasons = BTreeMap::<&String, usize>::new();
        let mut runs = 0;
        for one in predicted {
            runs += 1;
            match one {
                Ok(run) => groups.entry(&run.key).or_default().push(run),
                Err(reason) => *reasons.entry(reason).or_default() += 1,
            }
        }
        let groups: Vec<DriftGroup> =
            groups.into_iter().map(|(key, runs)| DriftGroup::of(key, &runs)).collect();
        let sum = |of: fn(&DriftGroup) -> usize| groups.iter().map(of).sum();
        DriftReport {
            runs,
            window: WINDOW,
            least_runs: LEAST_RUNS,
            alarm: groups.iter().flat_map(|group| &group.figures).any(|median| median.alarm),
            false_positives: sum(|group| group.false_positives),
            false_negatives: sum(|group| group.false_negatives),
            groups,
            unpredicted: reasons
                .into_iter()
                .map(|(reason, runs)| UnpredictedRuns { reason: reason.clone(), runs })
                .collect(),
        }
    }

    /// The report as a text for people.
    pub fn text(&self) -> String {
        let rows: Vec<Vec<String>> = self.groups.iter().flat_map(DriftGroup::rows).collect();
        let medians = if rows.is_empty() { String::new() } else { table(&HEADER, rows) + "\n" };
        let (positives, negatives) = (self.false_positives, self.false_negatives);
        let unpredicted: String = self
            .unpredicted
            .iter()
            .map(|one| format!("  {}: {}\n", count(one.runs as u64, "run"), one.reason))
            .collect();
        let unpredicted = if unpredicted.is_empty() {
            unpredicted
        } else {
            format!("Without a prediction:\n{unpredicted}")
        };
        format!(
            "{medians}{}; medians of the newest {} of a group; alarms from {} runs on\nPredicted to fit and did not: \
             {positives}. Predicted not to fit and ran: {negatives}.\n{unpredicted}",
            count(self.runs as u64, "run"),
            self.window,
            self.least_runs,
        )
    }
}

/// Columns of [`DriftGroup::rows`].
const HEADER: [&str; 8] =
    ["runtime", "hardware", "model", "figure", "runs", "median error", "limit", "alarm"];

impl DriftGroup {
    fn of(key: &DriftKey, runs: &[&PredictedRun]) -> DriftGroup {
        let figure = |figure: DriftFigure| {
            let errors: Vec<f64> = runs.iter().filter_map(|run| run.errors.get(figure)).collect();
            let errors = newest(&errors);
            let (n, limit) = (errors.len(), figure.limit());
            let median_error = median_error(errors.iter().copied())?;
            Some(DriftMedian {
                figure,
                n,
                median_error,
                limit,
                alarm: n >= LEAST_RUNS && median_error > limit,
            })
        };
        let misjudged = |kind| runs.iter().filter(|run| run.misjudged == Some(kind)).count();
        DriftGroup {
            runtime: key.runtime.clone(),
            hardware: key.hardware.clone(),
            model_class: key.size.words().to_owned(),
            runs: runs.len(),
            figures: DriftFigure::EACH.into_iter().filter_map(figure).collect(),
            false_positives: misjudged(Misjudged::FalsePositive),
            false_negatives: misjudged(Misjudged::FalseNegative),
        }
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let of = |median: &DriftMedian| {
            let names = [&self.runtime, &self.hardware, &self.model_class].map(String::clone);
            let figures = [
                median.figure.name().to_owned(),
                median.n.to_string(),
                in_percent(median.median_error),
                in_percent(median.limit),
                if median.alarm { "ALARM".to_owned() } else { String::new() },
            ];
            [&names[..], &figures].concat()
        };
        self.figures.iter().map(of).collect()
    }
}

/// An error in percent, with a digit behind the point: limits are as near.
pub(super) fn in_percent(error: f64) -> String {
    format!("{:.1} %", 100.0 * error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(decode: f64) -> Result<PredictedRun, String> {
        let key = DriftKey { runtime: "r".into(), hardware: "h".into(), size: SizeClass::Small };
        let errors = RunErrors { decode: Some(decode), ..RunErrors::default() };
        Ok(PredictedRun { key, errors, fits: true, misjudged: None })
    }

    fn alarm(errors: impl IntoIterator<Item = f64>) -> bool {
        DriftReport::of(&errors.into_iter().map(run).collect::<Vec<_>>()).alarm
    }

    #[test]
    fn an_alarm_is_above_the_limit_from_ten_runs_on_and_of_the_newest() {
        assert!(alarm([-0.13; 10]) && !alarm([0.11; 10]) && !alarm([0.13; 9]));
        let moved = |new: usize| [0.0; 30].into_iter().chain(std::iter::repeat_n(0.2, new));
        assert!(alarm(moved(16)) && !alarm(moved(14)));
    }

    #[test]
    fn the_median_of_two_errors_is_their_mean() {
        assert_eq!(median_error([0.1, -0.3].into_iter()), Some(0.2));
        assert_eq!(median_error(std::iter::empty()), None);
    }
}
