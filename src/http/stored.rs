//! The stored runs of a server: appended before they are answered, with their drift, and retraining in the background.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;

use crate::request::drift::{DriftReport, LEAST_RUNS, PredictedRun, RunErrors, predicted_runs};
use crate::request::retrain::{published, retrain};
use crate::spec::calibration_version::CalibrationVersion;
use crate::spec::error::Error;
use crate::spec::run::RunRecord;
use crate::store::catalog::Catalog;
use crate::store::runs::{AppendedRuns, RunStore};

/// A store that a server appends to.
#[derive(Debug)]
pub struct StoredRuns {
    store: Mutex<RunStore>,
    /// The profiles that a fit starts from.
    shipped: Catalog,
    predictions: Mutex<KnownPredictions>,
    retraining: Mutex<RetrainingState>,
}

/// Longest time between a new run and a retraining that takes it, without an alarm.
const DAILY: Duration = Duration::from_secs(24 * 60 * 60);

/// Retraining in the background.
#[derive(Debug)]
struct RetrainingState {
    runs_now: bool,
    /// When the last one began, or the server.
    begun: Instant,
    /// Runs that it had.
    runs: usize,
    /// Why it failed.
    fault: Option<String>,
}

impl RetrainingState {
    /// Whether an alarm is on and enough runs are new since the last one, or a day is over and any is.
    fn is_due(&self, report: &DriftReport, now: Instant) -> bool {
        let new = report.runs.saturating_sub(self.runs);
        let by_alarm = report.alarm && (self.runs == 0 || new >= LEAST_RUNS);
        let by_day = now.saturating_duration_since(self.begun) >= DAILY && new > 0;
        !self.runs_now && (by_alarm || by_day)
    }
}

/// Predictions by the versions that are in force, by id of the run.
#[derive(Debug, Default)]
struct KnownPredictions {
    versions: usize,
    of: HashMap<String, Result<PredictedRun, String>>,
}

/// A stored run with the errors of its prediction.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DatedErrors {
    /// When the run began: RFC 3339, UTC.
    pub timestamp_utc: String,
    /// Model.
    pub model: String,
    /// Runtime.
    pub runtime: String,
    /// Device.
    pub hardware: String,
    /// Relative errors of its prediction by the calibration in force.
    pub errors: RunErrors,
}

/// Newest runs that are listed one by one, at most.
const MOST_DATED: usize = 500;

impl DatedErrors {
    /// Of a run with a measured figure and a prediction.
    fn of(run: &RunRecord, predicted: &PredictedRun) -> Option<DatedErrors> {
        (predicted.errors != RunErrors::default()).then(|| DatedErrors {
            timestamp_utc: run.timestamp_utc.clone(),
            model: run.model_id.clone(),
            runtime: predicted.key.runtime.clone(),
            hardware: predicted.key.hardware.clone(),
            errors: predicted.errors,
        })
    }
}

/// Drift and versions of a store.
#[derive(Debug)]
pub(super) struct StoredDrift {
    pub report: DriftReport,
    /// The newest runs that have errors, oldest first.
    pub dated: Vec<DatedErrors>,
    pub versions: Vec<CalibrationVersion>,
    pub retraining: bool,
    /// Why the last retraining failed.
    pub fault: Option<String>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StoredRuns {
    /// A store, and the catalogue that its fits start from.
    pub fn new(store: RunStore, shipped: Catalog) -> Arc<StoredRuns> {
        Arc::new(StoredRuns {
            store: Mutex::new(store),
            shipped,
            predictions: Mutex::default(),
            retraining: Mutex::new(RetrainingState {
                runs_now: false,
                begun: Instant::now(),
                runs: 0,
                fault: None,
            }),
        })
    }

    /// Appends a run, which is on the disk when this returns.
    pub(super) fn add(&self, run: &RunRecord) -> Result<AppendedRuns, Error> {
        locked(&self.store).append(std::slice::from_ref(run))
    }

    /// The prediction of a run that is in the store.
    pub(super) fn prediction(&self, id: &str) -> Option<Result<PredictedRun, String>> {
        locked(&self.predictions).of.get(id).cloned()
    }

    /// The drift of all runs; each is predicted once for every set of versions.
    pub(super) fn drift(&self) -> Result<StoredDrift, Error> {
        let (runs, versions, catalog) = {
            let store = locked(&self.store);
            (store.runs()?, store.versions()?, store.in_force(&self.shipped)?)
        };
        let new: Vec<RunRecord> = {
            let mut known = locked(&self.predictions);
            if known.versions != versions.len() {
                *known = KnownPredictions { versions: versions.len(), of: HashMap::new() };
            }
            runs.iter().filter(|run| !known.of.contains_key(&run.run_id)).cloned().collect()
        };
        // No lock is held: a thread that waits for others here may take up another request.
        let made = predicted_runs(&catalog, &new);
        let mut known = locked(&self.predictions);
        if known.versions == versions.len() {
            known.of.extend(new.into_iter().map(|run| run.run_id).zip(made));
        }
        let report = DriftReport::of(runs.iter().filter_map(|run| known.of.get(&run.run_id)));
        let newest = runs.iter().rev().filter_map(|run| {
            let predicted = known.of.get(&run.run_id)?.as_ref().ok()?;
            DatedErrors::of(run, predicted)
        });
        let mut dated: Vec<DatedErrors> = newest.take(MOST_DATED).collect();
        dated.reverse();
        drop(known);
        let state = locked(&self.retraining);
        Ok(StoredDrift { report, dated, versions, retraining: state.runs_now, fault: state.fault.clone() })
    }

    /// Starts a retraining in the background where one is due and none runs.
    pub(super) fn retrain_if_due(self: &Arc<StoredRuns>, report: &DriftReport) {
        let mut state = locked(&self.retraining);
        let now = Instant::now();
        if !state.is_due(report, now) {
            return;
        }
        *state = RetrainingState { runs_now: true, begun: now, runs: report.runs, fault: None };
        let own = self.clone();
        std::thread::spawn(move || {
            // The versions stay as they are where it fails.
            let fault = own.retrain().err().map(|fault| fault.to_string());
            let mut state = locked(&own.retraining);
            (state.runs_now, state.fault) = (false, fault);
        });
    }

    fn retrain(&self) -> Result<(), Error> {
        let (runs, current) = {
            let store = locked(&self.store);
            (store.runs()?, store.in_force(&self.shipped)?)
        };
        // The store takes further runs while this computes.
        let outcomes = retrain(&self.shipped, &current, &runs);
        published(&mut locked(&self.store), outcomes).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_with_a_new_run_or_an_alarm_with_enough_is_due() {
        let begun = Instant::now();
        let state = |runs, runs_now| RetrainingState { runs_now, begun, runs, fault: None };
        let report = |runs, alarm| DriftReport { runs, alarm, ..DriftReport::of(std::iter::empty()) };
        let later = begun + DAILY;
        assert!(!state(5, false).is_due(&report(6, false), begun));
        assert!(state(5, false).is_due(&report(6, false), later));
        assert!(!state(6, false).is_due(&report(6, false), later), "nothing is new");
        assert!(state(0, false).is_due(&report(1, true), begun));
        assert!(!state(5, false).is_due(&report(5 + LEAST_RUNS - 1, true), begun));
        assert!(state(5, false).is_due(&report(5 + LEAST_RUNS, true), begun));
        assert!(!state(5, true).is_due(&report(500, true), later), "one runs");
    }
}
