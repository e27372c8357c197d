//! Who may ask, and what a browser may do with an answer.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use super::problem::ProblemDocument;
use super::state::AccessGuards;

/// Refuses requests without the bearer token, where the server has one.
pub(super) async fn token(State(guards): State<Arc<AccessGuards>>, request: Request, next: Next) -> Response {
    let Some(expected) = &guards.access.token else { return next.run(request).await };
    let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.and_then(|text| text.strip_prefix("Bearer "));
    // Digests are compared, so that the time of the comparison says nothing about the token.
    if given.is_some_and(|given| Sha256::digest(given) == Sha256::digest(expected)) {
        return next.run(request).await;
    }
    let problem = ProblemDocument::new(StatusCode::UNAUTHORIZED, "the bearer token is missing or wrong")
        .fix("send `Authorization: Bearer TOKEN`");
    let mut response = problem.into_response();
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// Headers of every response: nothing is sniffed, framed, cached or sent elsewhere.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    ),
];

pub(super) async fn headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}
