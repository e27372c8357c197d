//! Counters in the text format of Prometheus.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::state::{AccessGuards, ServerState};

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
    in_text(text)
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
