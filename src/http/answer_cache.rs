//! Answers that were computed before: a request is a pure function of its text and the catalogue.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::body::Bytes;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde::Serialize;

use super::problem::Refusal;
use super::search::searched;
use super::state::ServerState;
use crate::admission::RefusedRequest;
use crate::admission::flights::{Flight, ProgressSender, RequestKey};
use crate::report::pretty::pretty;
use crate::request::RequestControl;
use crate::spec::error::Error;
use crate::store::catalog::Catalog;

#[derive(Clone, Debug)]
pub(super) struct CachedAnswer {
    pub(super) kind: &'static str,
    pub(super) body: Bytes,
}

impl IntoResponse for CachedAnswer {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, self.kind)], self.body).into_response()
    }
}

pub(super) type AnswerCache = Cache<RequestKey, CachedAnswer, AnswerBytes>;

#[derive(Clone)]
pub(super) struct AnswerBytes;

impl Weighter<RequestKey, CachedAnswer> for AnswerBytes {
    fn weight(&self, key: &RequestKey, answer: &CachedAnswer) -> u64 {
        (size_of_val(key) + answer.body.len()) as u64
    }
}

/// Bytes of all cached answers.
const CACHE_BYTES: u64 = 64 << 20;
/// Answers of a typical length in them.
const CACHE_ANSWERS: usize = 4096;

pub(super) fn answer_cache() -> AnswerCache {
    Cache::with_weighter(CACHE_ANSWERS, CACHE_BYTES, AnswerBytes)
}

/// A new answer, and whether no time limit cut it.
pub(super) type Made = Result<(CachedAnswer, bool), Refusal>;

/// The answer of this request: from before, from an equal request that is being answered, or by `make`. `whole` is the
/// key of the answer that no time limit cuts, `key` that of this request.
pub(super) fn joined<F>(
    state: &ServerState,
    (key, whole): (RequestKey, RequestKey),
    make: impl FnOnce(ProgressSender) -> F,
) -> Arc<Flight<Result<CachedAnswer, Refusal>>>
where
    F: Future<Output = Made> + Send + 'static,
{
    if let Some(answer) = state.cached_answers.get(&whole) {
        state.cached.fetch_add(1, Relaxed);
        return Flight::ended(Ok(answer));
    }
    let of = state.clone();
    state.flights.joined(key, move |progress| {
        let made = make(progress);
        async move {
            let (answer, uncut) = made.await?;
            // A fault is not kept: its request comes back mended.
            if uncut {
                of.cached_answers.insert(whole, answer.clone());
            }
            Ok(answer)
        }
    })
}

/// The answer of `work` in JSON; `key` is that of the request.
pub(super) async fn json_of<T: Serialize + Send + 'static>(
    state: &ServerState,
    key: RequestKey,
    work: impl FnOnce(&Catalog, &RequestControl) -> Result<T, Error> + Send + 'static,
) -> Result<Response, Refusal> {
    let of = state.clone();
    let flight = joined(state, (key, key), move |progress| async move {
        let work = move |known: &Catalog, control: &RequestControl| Ok(pretty(&work(known, control)?));
        let (text, whole) = searched(&of, progress, work).await?;
        Ok((CachedAnswer { kind: "application/json", body: text.into() }, whole))
    });
    Ok(landed(&flight).await?.into_response())
}

pub(super) async fn landed(flight: &Flight<Result<CachedAnswer, Refusal>>) -> Result<CachedAnswer, Refusal> {
    flight.answer().await.unwrap_or_else(|| Err(RefusedRequest::Bug.into()))
}
