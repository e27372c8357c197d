//! The state that all requests share: admission with the catalogue, the answers and the counters.

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::answer_cache::{AnswerCache, CachedAnswer, answer_cache};
use super::estimator::MeasuredRuns;
use super::problem::{ProblemDocument, Refusal};
use super::stored::StoredRuns;
use super::{ServerAccess, ServerOptions};
use crate::admission::Admission;
use crate::admission::flights::Flights;
use crate::site::PageFile;
use crate::store::catalog::Catalog;

/// The checks of every server on a request, and the responses that it counts.
#[derive(Debug)]
pub(super) struct AccessGuards {
    pub(super) access: ServerAccess,
    /// Responses by the hundreds of their status: 1xx to 5xx.
    pub(super) responses: [AtomicU64; 5],
}

impl AccessGuards {
    pub(super) fn of(access: &ServerAccess) -> Arc<AccessGuards> {
        Arc::new(AccessGuards { access: access.clone(), responses: <[AtomicU64; 5]>::default() })
    }
}

#[derive(Clone)]
pub(super) struct ServerState(Arc<Shared>);

pub(super) struct Shared {
    pub(super) admission: Arc<Admission>,
    pub(super) guards: Arc<AccessGuards>,
    /// Answers that were computed before.
    pub(super) cached: AtomicU64,
    pub(super) cached_answers: AnswerCache,
    pub(super) flights: Flights<Result<CachedAnswer, Refusal>>,
    /// The page, made at its first request.
    pub(super) page: OnceLock<Result<Vec<PageFile>, Box<ProblemDocument>>>,
    measured: Mutex<MeasuredRuns>,
    pub(super) store: Option<Arc<StoredRuns>>,
}

impl std::ops::Deref for ServerState {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl ServerState {
    pub(super) fn new(catalog: Catalog, options: &ServerOptions) -> io::Result<ServerState> {
        Ok(ServerState(Arc::new(Shared {
            admission: Arc::new(Admission::new(catalog, options.limits.clone())?),
            guards: AccessGuards::of(&options.access),
            cached: AtomicU64::new(0),
            cached_answers: answer_cache(),
            flights: Flights::new(),
            page: OnceLock::new(),
            measured: Mutex::default(),
            store: options.store.clone(),
        })))
    }

    pub(super) fn runs(&self) -> MutexGuard<'_, MeasuredRuns> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
