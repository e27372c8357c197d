//! A log for operators: one line of JSON per response. No body, no address of a client and no name of a host is in it.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use serde::Serialize;

use super::state::AccessGuards;
use crate::request::entry;
use crate::spec::text::in_utc;

#[derive(Serialize)]
struct LogLine<'a> {
    /// When the response was ready, UTC.
    time: String,
    method: &'a str,
    /// The route as the server defines it; the last part of a `/v2` route is its request. Other paths are not repeated.
    route: &'a str,
    status: u16,
    /// Time until the response was ready, ms.
    ms: f64,
}

/// Writes a line for every response, where the server has a log.
pub(super) async fn log(State(guards): State<Arc<AccessGuards>>, request: Request, next: Next) -> Response {
    let Some(write) = guards.access.log else { return next.run(request).await };
    let begun = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let named = request.uri().path().strip_prefix("/v2/").filter(|name| entry(name).is_ok());
    let route = named.map(|name| format!("/v2/{name}")).or(route).unwrap_or_else(|| "none".to_owned());
    let response = next.run(request).await;
    let line = LogLine {
        time: in_utc(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
        method: method.as_str(),
        route: &route,
        status: response.status().as_u16(),
        ms: (begun.elapsed().as_secs_f64() * 1e6).round() / 1e3,
    };
    if let Ok(line) = serde_json::to_string(&line) {
        write(&line);
    }
    response
}
