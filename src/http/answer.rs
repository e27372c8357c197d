//! The routes of the requests: a body in JSON, the answer of the table, progress as events.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::answer_cache::{CachedAnswer, joined, landed};
use super::negotiate::Accepted;
use super::problem::{ProblemDocument, Refusal};
use super::search::{PREFERENCE_APPLIED, PreferredWait, searched_within};
use super::state::ServerState;
use crate::admission::flights::{Flight, RequestKey};
use crate::report::pretty::pretty;
use crate::request::{REQUESTS, RequestControl, RequestEntry, entry};
use crate::spec::error::Error;
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;

/// A request that inspects the machine that answers it: not one for strangers.
const OF_THIS_MACHINE: &str = "detect";

/// Every request that is answered here.
pub(super) fn served() -> impl Iterator<Item = &'static RequestEntry> {
    REQUESTS.iter().filter(|entry| entry.name != OF_THIS_MACHINE)
}

fn found(name: &str) -> Result<&'static RequestEntry, Refusal> {
    let known = entry(name).ok().filter(|entry| entry.name != OF_THIS_MACHINE);
    let unknown = || ProblemDocument::new(StatusCode::NOT_FOUND, "no such request");
    Ok(known.ok_or_else(|| unknown().fix("GET /v2 lists the requests"))?)
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

pub(super) fn in_json(value: &impl serde::Serialize) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], pretty(value)).into_response()
}

/// `POST /v2/{request}`: the answer; as events with `Accept: text/event-stream`; the best so far after the time that the
/// client waits.
pub(super) async fn answer(
    State(state): State<ServerState>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    let entry = found(&name)?;
    let request = read(&body)?;
    let format = Accepted::of(&headers)?;
    let wait = PreferredWait::of(&headers);
    let applied = wait.map(PreferredWait::text);
    let key = |form: &str| RequestKey::of(entry.name, form, &request.to_string());
    let whole = key(format.media_type());
    // A name of a format has no commas.
    let own = applied.as_ref().map_or(whole, |wait| key(&format!("{},{wait}", format.media_type())));
    let of = state.clone();
    let flight = joined(&state, (own, whole), move |progress| async move {
        let work = move |catalog: &Catalog, control: &RequestControl| {
            let answer = (entry.answer)(catalog, &request, control)?;
            format.rendered(catalog, entry, &answer)
        };
        let (body, whole) = searched_within(&of, (progress, wait), work).await?;
        let body = body.ok_or_else(|| format.missing(entry))?;
        Ok((CachedAnswer { kind: format.media_type(), body: body.into() }, whole))
    });
    // A request that is refused before it begins has its own status.
    let mut response = if format == Accepted::Events && flight.begun().await {
        events(flight)
    } else {
        let answer = landed(&flight).await?;
        if format == Accepted::Events { events(flight) } else { answer.into_response() }
    };
    let applied = applied.and_then(|applied| applied.parse().ok());
    response.headers_mut().extend(applied.map(|applied| (PREFERENCE_APPLIED, applied)));
    Ok(response)
}

/// The body as JSON; an empty one is an empty request.
pub(super) fn read(body: &[u8]) -> Result<Value, Refusal> {
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

/// Progress, then the answer or the problem, as events. Where the last client leaves, the search ends.
fn events(flight: Arc<Flight<Result<CachedAnswer, Refusal>>>) -> Response {
    let (sender, receiver) = mpsc::channel::<Result<Event, Infallible>>(16);
    tokio::spawn(async move {
        let mut progress = flight.progress();
        let event = loop {
            tokio::select! {
                biased;
                answer = landed(&flight) => break match answer {
                    Ok(answer) => Event::default().event("answer").data(String::from_utf8_lossy(&answer.body)),
                    Err(problem) => Event::default().event("problem").data(json!(problem.document()).to_string()),
                },
                Ok(()) = progress.changed() => {
                    let Some((done, all)) = *progress.borrow_and_update() else { continue };
                    let data = json!({"done": done, "all": all}).to_string();
                    if sender.send(Ok(Event::default().event("progress").data(data))).await.is_err() {
                        return;
                    }
                }
                () = sender.closed() => return,
            }
        };
        // A client that leaves now misses nothing that costs.
        let _ = sender.send(Ok(event)).await;
    });
    Sse::new(ReceiverStream::new(receiver)).keep_alive(KeepAlive::default()).into_response()
}
