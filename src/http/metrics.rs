//! Counters in the text format of Prometheus.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::search::searched;
use super::state::{AccessGuards, ServerState};
use super::stored::StoredDrift;
use crate::admission::flights::unwatched;
use crate::request::drift::DriftMedian;

pub(super) async fn count(State(guards): State<Arc<AccessGuards>>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let class = usize::from(response.status().as_u16() / 100).clamp(1, 5) - 1;
    guards.responses[class].fetch_add(1, Relaxed);
    response
}

pub(super) async fn metrics(State(state): State<ServerState>) -> Response {
    let mut text = responses(&state.guards);
    let read = |counter: &AtomicU64| counter.load(Relaxed) as f64;
    let (running, waiting) = state.admission.running_and_waiting();
    let requests = &state.admission.counters;
    let rows = [
        ("mantile_requests_waiting", "gauge", "Requests that wait.", waiting as f64),
        ("mantile_requests_running", "gauge", "Requests that are being answered.", running as f64),
        (
            "mantile_refused_total",
            "counter",
            "Requests refused because too many wait.",
            read(&requests.refused),
        ),
        (
            "mantile_abandoned_total",
            "counter",
            "Searches ended because their client left.",
            read(&requests.abandoned),
        ),
        ("mantile_answers_total", "counter", "Answers computed.", read(&requests.answered)),
        ("mantile_answers_cached_total", "counter", "Answers from the cache.", read(&state.cached)),
        (
            "mantile_busy_seconds_total",
            "counter",
            "Time in which answers were computed.",
            read(&requests.busy_us) / 1e6,
        ),
    ];
    for (name, kind, help, value) in rows {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
    }
    if let Some(store) = state.store.clone()
        && let Ok((found, _)) = searched(&state, unwatched(), move |_, _| store.drift()).await
    {
        text.push_str(&drift(&found));
    }
    in_text(text)
}

/// The runs of a store, their median errors with the alarms, and the versions of calibrations.
fn drift(found: &StoredDrift) -> String {
    let report = &found.report;
    let mut text = String::new();
    for (name, kind, help, value) in [
        ("mantile_runs_stored_total", "counter", "Runs in the store.", report.runs),
        (
            "mantile_false_positives",
            "gauge",
            "Runs that were predicted to fit and did not.",
            report.false_positives,
        ),
        (
            "mantile_false_negatives",
            "gauge",
            "Runs that were predicted not to fit and ran.",
            report.false_negatives,
        ),
        ("mantile_calibration_versions_total", "counter", "Versions of calibrations.", found.versions.len()),
    ] {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
    }
    type Value = fn(&DriftMedian) -> f64;
    let gauges: [(&str, &str, Value); 2] = [
        ("mantile_drift_median_error", "Median absolute error of the newest runs.", |one| one.median_error),
        ("mantile_drift_alarm", "Whether that is above its limit.", |one| f64::from(u8::from(one.alarm))),
    ];
    for (name, help, value) in gauges {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
        for group in &report.groups {
            let labels = [
                ("runtime", &group.runtime),
                ("hardware", &group.hardware),
                ("model_class", &group.model_class),
            ];
            let labels: String =
                labels.iter().map(|(key, text)| format!("{key}=\"{}\",", label(text))).collect();
            for one in &group.figures {
                let _ = writeln!(text, "{name}{{{labels}figure=\"{}\"}} {}", one.figure.name(), value(one));
            }
        }
    }
    text
}

/// The value of a label, as the text format quotes it.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Responses by status class.
pub(super) fn responses(guards: &AccessGuards) -> String {
    let mut text = String::from(
        "# HELP mantile_responses_total Responses by status class.\n# TYPE mantile_responses_total counter\n",
    );
    for (at, count) in guards.responses.iter().enumerate() {
        let _ = writeln!(text, "mantile_responses_total{{class=\"{}xx\"}} {}", at + 1, count.load(Relaxed));
    }
    text
}

/// A response in the text format of Prometheus.
pub(super) fn in_text(text: String) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
