//! The stored runs of a server: appended before they are answered, with their drift, and retraining in the background.

use std::collections::HashMap;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::request::drift::{DriftReport, LEAST_RUNS, PredictedRun, predicted_runs};
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
    retraining: AtomicBool,
    /// Runs at the last retraining.
    retrained_at: AtomicUsize,
}

/// Predictions by the versions that are in force, by id of the run.
#[derive(Debug, Default)]
struct KnownPredictions {
    versions: usize,
    of: HashMap<String, Result<PredictedRun, String>>,
}

/// Drift and versions of a store.
#[derive(Debug)]
pub(super) struct StoredDrift {
    pub report: DriftReport,
    pub versions: Vec<CalibrationVersion>,
    pub retraining: bool,
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
            retraining: AtomicBool::new(false),
            retrained_at: AtomicUsize::new(0),
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
        drop(known);
        Ok(StoredDrift { report, versions, retraining: self.retraining.load(Acquire) })
    }

    /// Starts a retraining in the background where an alarm is on, none runs, and enough runs are new since the last one.
    pub(super) fn retrain_on_alarm(self: &Arc<StoredRuns>, report: &DriftReport) {
        let last = self.retrained_at.load(Acquire);
        let is_due = report.alarm && (last == 0 || report.runs >= last + LEAST_RUNS);
        if !is_due || self.retraining.swap(true, AcqRel) {
            return;
        }
        self.retrained_at.store(report.runs, Release);
        let own = self.clone();
        std::thread::spawn(move || {
            // A fault of the store is in the answer to the next run; the versions stay as they are.
            let _ = own.retrain();
            own.retraining.store(false, Release);
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
