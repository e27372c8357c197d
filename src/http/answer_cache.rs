//! Answers that were computed before: a request is a pure function of its text and the catalogue.

use std::future::Future;
use std::sync::atomic::Ordering::Relaxed;

use axum::body::Bytes;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::problem::Refusal;
use super::state::ServerState;

/// An answer and its media type.
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

/// Answers by the text of their requests.
pub(super) type AnswerCache = Cache<String, CachedAnswer, AnswerBytes>;

/// Bytes that an answer takes.
#[derive(Clone)]
pub(super) struct AnswerBytes;

impl Weighter<String, CachedAnswer> for AnswerBytes {
    fn weight(&self, key: &String, answer: &CachedAnswer) -> u64 {
        (key.len() + answer.body.len()) as u64
    }
}

/// Bytes of all cached answers.
const CACHE_BYTES: u64 = 64 << 20;
/// Answers of a typical length in them.
const CACHE_ANSWERS: usize = 4096;

/// An empty cache.
pub(super) fn answer_cache() -> AnswerCache {
    Cache::with_weighter(CACHE_ANSWERS, CACHE_BYTES, AnswerBytes)
}

/// The answer of this request: from before, or by `make`, which also says whether no time limit cut it.
///
/// # Errors
/// Those of `make`, which are not kept.
pub(super) async fn cached(
    state: &ServerState,
    key: String,
    make: impl Future<Output = Result<(CachedAnswer, bool), Refusal>>,
) -> Result<CachedAnswer, Refusal> {
    if let Some(answer) = state.answers.get(&key) {
        state.counters.cached.fetch_add(1, Relaxed);
        return Ok(answer);
    }
    let (answer, whole) = make.await?;
    if whole {
        state.answers.insert(key, answer.clone());
    }
    Ok(answer)
}
