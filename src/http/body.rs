//! Bodies of requests: JSON, within limits of size, time and memory.
//!
//! A page of a stranger may send forms and plain text anywhere without asking first; JSON it may not. So a body of another
//! type is refused.

use std::future::Future;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::timeout;

use super::problem::{ProblemDocument, Refusal};
use super::state::ServerState;
use crate::admission::SHORT_MESSAGE;

/// Reads the body of a request; refuses what is not JSON, too long or too slow.
pub(super) async fn read(State(state): State<ServerState>, request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let large = request.body().size_hint().upper().is_none_or(|bytes| bytes > SHORT_MESSAGE as u64);
    let place = async {
        match large {
            true => state.admission.long_message().await,
            false => None,
        }
    };
    match received(request, state.guards.access.connections.body, place).await {
        // The place is kept until the answer: the request is as long as its body.
        Ok((_place, request)) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

/// A request whose body is in memory within `patience`, once there is a `place` for it: JSON, or nothing.
pub(super) async fn received<P>(
    request: Request,
    patience: Duration,
    place: impl Future<Output = P>,
) -> Result<(P, Request), Refusal> {
    let (parts, body) = request.into_parts();
    let read = async {
        let place = place.await;
        let read = Bytes::from_request(Request::from_parts(parts.clone(), body), &()).await;
        let refused = |fault: axum::extract::rejection::BytesRejection| {
            ProblemDocument::new(fault.status(), fault.body_text())
        };
        Ok::<_, ProblemDocument>((place, read.map_err(refused)?))
    };
    let late = |_| {
        ProblemDocument::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")
            .fix("send the body at once")
    };
    let read = timeout(patience, read).await.map_err(late).flatten();
    let (place, bytes) = read?;
    if !bytes.is_empty() && !is_json(&parts.headers) {
        return Err(not_json(&parts.headers));
    }
    Ok((place, Request::from_parts(parts, Body::from(bytes))))
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let subtype = kind.strip_prefix("application/");
    subtype.is_some_and(|subtype| subtype == "json" || subtype.ends_with("+json"))
}

fn not_json(headers: &HeaderMap) -> Refusal {
    let found = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let found = Some(found.unwrap_or("no type").chars().take(LONGEST_TYPE).collect());
    let problem =
        ProblemDocument::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body is not declared as JSON")
            .field("Content-Type")
            .expected("application/json")
            .fix("send `Content-Type: application/json`");
    ProblemDocument { found, ..problem }.into()
}

/// Longest media type that is shown, in characters (RFC 6838, 4.2: a type and a subtype of 127 each).
const LONGEST_TYPE: usize = 255;
