//! The routes of the requests: a body in JSON, the answer of the table, progress as events.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;

use super::negotiate::AnswerFormat;
use super::problem::{ProblemDocument, Refusal};
use super::state::ServerState;
use crate::report::pretty::pretty;
use crate::report::proof::StoppedBy;
use crate::request::{REQUESTS, RequestControl, RequestEntry, entry};
use crate::search::run::Control;
use crate::spec::error::Error;
use crate::spec::text::from_json;

/// A request that inspects the machine that answers it: not one for strangers.
const OF_THIS_MACHINE: &str = "detect";

/// Every request that is answered here.
pub(super) fn served() -> impl Iterator<Item = &'static RequestEntry> {
    REQUESTS.iter().filter(|entry| entry.name != OF_THIS_MACHINE)
}

fn found(name: &str) -> Result<&'static RequestEntry, Refusal> {
    let known = entry(name).ok().filter(|entry| entry.name != OF_THIS_MACHINE);
    let found = known.ok_or_else(|| ProblemDocument {
        fix: Some("GET /v2 lists the requests".to_owned()),
        ..ProblemDocument::new(StatusCode::NOT_FOUND, "no such request")
    });
    Ok(found?)
}

/// `GET /v2`: the requests.
pub(super) async fn list() -> Response {
    let rows = served().map(|entry| json!({"name": entry.name, "about": entry.about}));
    in_json(&rows.collect::<Vec<Value>>())
}

/// `GET /v2/{request}`: the schemas of a request.
pub(super) async fn describe(Path(name): Path<String>) -> Result<Response, Refusal> {
    let entry = found(&name)?;
    let schemas = json!({
        "name": entry.name,
        "about": entry.about,
        "request": (entry.request)(),
        "report": (entry.report)(),
    });
    Ok(in_json(&schemas))
}

fn in_json(value: &impl serde::Serialize) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], pretty(value)).into_response()
}

/// Ends a search when the handler is dropped: its client left.
struct ClientGuard {
    left: Arc<AtomicBool>,
    state: ServerState,
    finished: bool,
}

impl ClientGuard {
    /// The answer is there: nothing is left to end.
    fn finish(mut self) {
        self.finished = true;
    }
}

impl Drop for ClientGuard {
    fn drop(&mut self) {
        if !self.finished {
            self.left.store(true, Relaxed);
            self.state.counters.abandoned.fetch_add(1, Relaxed);
        }
    }
}

/// Progress of a search: done and all.
type ProgressSender = mpsc::Sender<(usize, usize)>;

/// `POST /v2/{request}`: the answer; as events with `Accept: text/event-stream`.
pub(super) async fn answer(
    State(state): State<ServerState>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    let entry = found(&name)?;
    let body = body.map_err(|fault| ProblemDocument::new(fault.status(), fault.body_text()))?;
    let format = AnswerFormat::of(&headers)?;
    let request = read(&body)?;
    let admitted = state.admitted.clone().try_acquire_owned().map_err(|_| {
        state.counters.refused.fetch_add(1, Relaxed);
        ProblemDocument {
            fix: Some("try again later".to_owned()),
            ..ProblemDocument::new(StatusCode::TOO_MANY_REQUESTS, "too many requests wait")
        }
    })?;
    let running = state.running.clone().acquire_owned().await;
    let permits = (
        admitted,
        running.map_err(|_| ProblemDocument::new(StatusCode::SERVICE_UNAVAILABLE, "the server stops"))?,
    );
    let left = Arc::new(AtomicBool::new(false));
    let guard = ClientGuard { left: left.clone(), state: state.clone(), finished: false };
    if format == AnswerFormat::Events {
        let (sender, progress) = mpsc::channel(16);
        let answer = started(&state, entry, request, (left, Some(sender)), permits);
        return Ok(events(progress, answer, guard));
    }
    let answer = received(started(&state, entry, request, (left, None), permits).await);
    guard.finish();
    format.response(entry, &answer?)
}

/// The body as JSON; an empty one is an empty request.
fn read(body: &Bytes) -> Result<Value, Refusal> {
    let text = std::str::from_utf8(body)
        .map_err(|_| ProblemDocument::new(StatusCode::BAD_REQUEST, "the body is not UTF-8"))?;
    if text.trim().is_empty() {
        return Ok(json!({}));
    }
    let read = from_json(text, "a request in JSON").map_err(|fault: Error| ProblemDocument {
        status: StatusCode::BAD_REQUEST.as_u16(),
        title: "Bad Request".to_owned(),
        ..ProblemDocument::from(fault)
    });
    Ok(read?)
}

/// The answer of a search that has begun.
type Pending = oneshot::Receiver<Result<Value, Error>>;

/// Starts the search on its pool.
fn started(
    state: &ServerState,
    entry: &'static RequestEntry,
    request: Value,
    (left, progress): (Arc<AtomicBool>, Option<ProgressSender>),
    permits: (OwnedSemaphorePermit, OwnedSemaphorePermit),
) -> Pending {
    let (sender, receiver) = oneshot::channel();
    let state = state.clone();
    tokio::task::spawn_blocking(move || {
        let begun = Instant::now();
        let late = AtomicBool::new(false);
        let stop = || {
            let over = state.limits.time.is_some_and(|limit| begun.elapsed() >= limit);
            late.fetch_or(over, Relaxed);
            over || left.load(Relaxed)
        };
        let steps = AtomicU64::new(0);
        let shown = |done: usize, all: usize| {
            // A hundred events say enough; a client that reads slowly misses some.
            let step = (100 * done as u64) / all.max(1) as u64;
            if steps.fetch_max(step, Relaxed) < step
                && let Some(progress) = &progress
            {
                let _ = progress.try_send((done, all));
            }
        };
        let control = RequestControl {
            search: Control { progress: &shown, stop: &stop },
            stopped_by: &|| late.load(Relaxed).then_some(StoppedBy::TimeLimit),
        };
        let answer = state.searches.install(|| (entry.answer)(&state.catalog, &request, &control));
        let counters = &state.counters;
        counters.answered.fetch_add(1, Relaxed);
        counters.busy_us.fetch_add(begun.elapsed().as_micros() as u64, Relaxed);
        drop(permits);
        // A client that left reads no answer.
        let _ = sender.send(answer);
    });
    receiver
}

fn received(answer: Result<Result<Value, Error>, oneshot::error::RecvError>) -> Result<Value, Refusal> {
    let bug = |_| ProblemDocument::new(StatusCode::INTERNAL_SERVER_ERROR, "a bug; please report the request");
    Ok(answer.map_err(bug)??)
}

/// Progress, then the answer or the problem, as events. Where the client leaves, the search ends.
fn events(mut progress: mpsc::Receiver<(usize, usize)>, mut answer: Pending, guard: ClientGuard) -> Response {
    let (sender, receiver) = mpsc::channel::<Result<Event, Infallible>>(16);
    tokio::spawn(async move {
        let event = loop {
            tokio::select! {
                Some((done, all)) = progress.recv() => {
                    let data = json!({"done": done, "all": all}).to_string();
                    if sender.send(Ok(Event::default().event("progress").data(data))).await.is_err() {
                        return;
                    }
                }
                answer = &mut answer => break match received(answer) {
                    Ok(answer) => Event::default().event("answer").data(answer.to_string()),
                    Err(problem) => Event::default().event("problem").data(json!(problem.document()).to_string()),
                },
                () = sender.closed() => return,
            }
        };
        guard.finish();
        // A client that leaves now misses nothing that costs.
        let _ = sender.send(Ok(event)).await;
    });
    Sse::new(ReceiverStream::new(receiver)).keep_alive(KeepAlive::default()).into_response()
}
