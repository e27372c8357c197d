//! `/v1/calibrate`: measured runs in, their errors out. Profiles are refitted by `mantile-opt calibrate`, never by a
//! request: profiles are fixed while a server runs.

use axum::extract::State;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use super::drift::{BenchmarkRun, DRIFT_LIMITS, MeasuredRuns, RunErrors};
use crate::admission::flights::unwatched;
use crate::http::answer::{in_json, read};
use crate::http::problem::{ProblemDocument, Refusal};
use crate::http::search::searched;
use crate::http::state::ServerState;
use crate::report::result::Feasibility;
use crate::request::RequestControl;
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
    /// Feasibility of its prediction.
    pub feasibility: Feasibility,
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
    /// Median absolute error; null without a run that measured it.
    pub median_error: Option<f64>,
    /// The error above which a refit is due.
    pub limit: f64,
    /// Whether it is above.
    pub alarm: bool,
}

/// The queue of measured runs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CalibrationStatus {
    /// Runs since the server began.
    pub accepted: u64,
    /// Runs that the medians rest on.
    pub kept: usize,
    /// Whether an alarm is on.
    pub refit_due: bool,
    /// Each metric.
    pub drift: Vec<DriftLine>,
}

impl CalibrationStatus {
    fn of(runs: &MeasuredRuns) -> CalibrationStatus {
        let drift: Vec<DriftLine> = DRIFT_LIMITS
            .iter()
            .map(|(metric, of, limit)| {
                let median_error = runs.median(*of);
                DriftLine {
                    metric,
                    median_error,
                    limit: *limit,
                    alarm: median_error.is_some_and(|error| error > *limit),
                }
            })
            .collect();
        CalibrationStatus {
            accepted: runs.accepted,
            kept: runs.kept(),
            refit_due: drift.iter().any(|line| line.alarm),
            drift,
        }
    }
}

/// `GET /v1/calibrate`: the queue.
pub(super) async fn status(State(state): State<ServerState>) -> Response {
    in_json(&CalibrationStatus::of(&state.runs()))
}

/// `POST /v1/calibrate`: adds a run.
pub(super) async fn ingest(State(state): State<ServerState>, body: Bytes) -> Result<Response, Refusal> {
    let run: BenchmarkRun = from_json(&read(&body)?.to_string(), "a run").map_err(ProblemDocument::from)?;
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
    Ok(in_json(&RunAnswer { run_id, accepted, feasibility, errors, status: CalibrationStatus::of(&runs) }))
}
