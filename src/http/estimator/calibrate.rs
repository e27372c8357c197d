//! `/v1/calibrate`: measured runs in, their errors out. With a store, runs are on the disk before they are answered, and an
//! alarm makes a new version of the calibration there; other routes keep the profiles with which the server began.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use super::drift::{BenchmarkRun, MeasuredRuns};
use crate::admission::flights::unwatched;
use crate::http::answer::{in_json, read};
use crate::http::problem::{ProblemDocument, Refusal};
use crate::http::search::searched;
use crate::http::state::ServerState;
use crate::http::stored::{DatedErrors, StoredDrift, StoredRuns};
use crate::report::result::Feasibility;
use crate::request::RequestControl;
use crate::request::drift::{DriftFigure, DriftReport, RunErrors};
use crate::spec::calibration_version::VersionMedian;
use crate::spec::error::Error;
use crate::spec::limits::MEASURED;
use crate::spec::run::RunRecord;
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;
use axum::body::Bytes;

/// The answer to a measured run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunAnswer {
    /// Id of the run.
    pub run_id: String,
    /// Whether the run counts: its prediction exists.
    pub accepted: bool,
    /// Feasibility of its prediction; null without one.
    pub feasibility: Option<Feasibility>,
    /// Whether the store had the same run before; null without a store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<bool>,
    /// Relative errors of its prediction.
    pub errors: RunErrors,
    /// The queue, with this run.
    pub status: CalibrationStatus,
}

/// The median error of a metric, and its limit.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DriftLine {
    /// `decode`, `ttft` or `memory`.
    pub metric: &'static str,
    /// Median absolute error; null without a run that measured it. With a store: the largest of any group.
    pub median_error: Option<f64>,
    /// The error above which a refit is due.
    pub limit: f64,
    /// Whether it is above.
    pub alarm: bool,
}

/// The queue of measured runs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CalibrationStatus {
    /// Runs since the server began; with a store, all runs in it.
    pub accepted: u64,
    /// Runs that the medians rest on.
    pub kept: usize,
    /// Whether an alarm is on.
    pub refit_due: bool,
    /// Each metric.
    pub drift: Vec<DriftLine>,
    /// Drift and versions of the store; null without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredStatus>,
}

/// Drift and versions of a store.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StoredStatus {
    /// Errors by runtime, hardware and class of model, with false positives and negatives of feasibility.
    pub report: DriftReport,
    /// The newest runs that have errors, oldest first: the accuracy over time.
    pub dated: Vec<DatedErrors>,
    /// Versions of calibrations, oldest first.
    pub versions: Vec<VersionLine>,
    /// Whether a retraining runs.
    pub retraining: bool,
    /// Why the last retraining failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retraining_fault: Option<String>,
}

/// A version of the calibration of a runtime.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VersionLine {
    /// Its number.
    pub number: u64,
    /// When it was made: RFC 3339, UTC.
    pub created_utc: String,
    /// Runtime.
    pub runtime: String,
    /// Versions of the runtime, drivers and versions of CUDA in its runs.
    pub tags: [Vec<String>; 3],
    /// Number of its runs.
    pub runs: u64,
    /// The version whose profile it has again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restores: Option<u64>,
    /// Median errors before and after.
    pub medians: Vec<VersionMedian>,
}

impl CalibrationStatus {
    fn of(runs: &MeasuredRuns) -> CalibrationStatus {
        let line = |figure: DriftFigure| {
            let (median_error, limit) = (runs.median(figure), figure.limit());
            let alarm = median_error.is_some_and(|error| error > limit);
            DriftLine { metric: figure.name(), median_error, limit, alarm }
        };
        let drift = DriftFigure::EACH.map(line).to_vec();
        let refit_due = drift.iter().any(|line| line.alarm);
        CalibrationStatus { accepted: runs.accepted, kept: runs.kept(), refit_due, drift, stored: None }
    }

    fn of_store(found: StoredDrift) -> CalibrationStatus {
        let report = found.report;
        let line = |figure: DriftFigure| {
            let own =
                || report.groups.iter().flat_map(|group| &group.figures).filter(|one| one.figure == figure);
            DriftLine {
                metric: figure.name(),
                median_error: own().map(|one| one.median_error).max_by(f64::total_cmp),
                limit: figure.limit(),
                alarm: own().any(|one| one.alarm),
            }
        };
        let versions = found.versions.into_iter().map(|version| VersionLine {
            number: version.number,
            created_utc: version.created_utc,
            runtime: version.runtime,
            tags: [version.runtime_versions, version.drivers, version.cuda],
            runs: version.runs,
            restores: version.restores,
            medians: version.medians,
        });
        CalibrationStatus {
            accepted: report.runs as u64,
            kept: report.groups.iter().map(|group| group.runs.min(report.window)).sum(),
            refit_due: report.alarm,
            drift: DriftFigure::EACH.map(line).to_vec(),
            stored: Some(StoredStatus {
                versions: versions.collect(),
                report,
                dated: found.dated,
                retraining: found.retraining,
                retraining_fault: found.fault,
            }),
        }
    }
}

/// `GET /v1/calibrate`: the queue.
pub(super) async fn status(State(state): State<ServerState>) -> Result<Response, Refusal> {
    let Some(store) = state.store.clone() else { return Ok(in_json(&CalibrationStatus::of(&state.runs()))) };
    let (found, _) = searched(&state, unwatched(), move |_, _| Ok(store.drift())).await?;
    Ok(in_json(&CalibrationStatus::of_store(found.map_err(ProblemDocument::of_store)?)))
}

/// `POST /v1/calibrate`: adds a run.
pub(super) async fn ingest(State(state): State<ServerState>, body: Bytes) -> Result<Response, Refusal> {
    let text = read(&body)?.to_string();
    if let Some(store) = state.store.clone() {
        let run: RunRecord = from_json(&text, "a run").map_err(ProblemDocument::from)?;
        let (answer, _) = searched(&state, unwatched(), move |_, _| Ok(stored(&store, &run))).await?;
        return Ok(in_json(&answer.map_err(ProblemDocument::of_store)?));
    }
    let run: BenchmarkRun = from_json(&text, "a run").map_err(ProblemDocument::from)?;
    let work = move |known: &Catalog, control: &RequestControl| {
        let predicted = run.predicted(known, control)?;
        let errors = run.errors(&predicted)?;
        Ok((run.run_id, predicted.feasibility, predicted.estimates.is_some(), errors))
    };
    let ((run_id, feasibility, accepted, errors), _) = searched(&state, unwatched(), work).await?;
    let mut runs = state.runs();
    if accepted {
        runs.add(errors);
    }
    let (feasibility, status) = (Some(feasibility), CalibrationStatus::of(&runs));
    Ok(in_json(&RunAnswer { run_id, accepted, feasibility, known: None, errors, status }))
}

/// Stores a run, then compares it with its prediction.
fn stored(store: &Arc<StoredRuns>, run: &RunRecord) -> Result<RunAnswer, Error> {
    checked(run)?;
    let appended = store.add(run)?;
    let found = store.drift()?;
    store.retrain_if_due(&found.report);
    let predicted = store.prediction(&run.run_id).and_then(Result::ok);
    let feasibility = predicted.as_ref().map(|one| match one.fits {
        true => Feasibility::InVram,
        false => Feasibility::InsufficientMemory,
    });
    Ok(RunAnswer {
        run_id: run.run_id.clone(),
        accepted: predicted.is_some(),
        feasibility,
        known: Some(appended.known > 0),
        errors: predicted.map(|one| one.errors).unwrap_or_default(),
        status: CalibrationStatus::of_store(found),
    })
}

/// Checks the figures that a store keeps forever.
fn checked(run: &RunRecord) -> Result<(), Error> {
    if run.run_id.trim().is_empty() {
        return Err(Error::new("run_id", "an empty id", "an id", "give each run an id of its own"));
    }
    let metrics = &run.metrics;
    for (key, value) in [
        ("metrics.ttft_ms_p50", metrics.ttft_ms_p50),
        ("metrics.tpot_ms_p50", metrics.tpot_ms_p50),
        ("metrics.decode_toks_sec", metrics.decode_toks_sec),
        ("metrics.vram_peak_gb", metrics.vram_peak_gb),
    ] {
        value.map_or(Ok(()), |value| MEASURED.check(key, value))?;
    }
    Ok(())
}
