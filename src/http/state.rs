//! The state that all requests share: admission with the catalogue, the answers and the counters.

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::ServerOptions;
use super::answer_cache::{AnswerCache, CachedAnswer, answer_cache};
use super::connections::ConnectionLimits;
use super::estimator::MeasuredRuns;
use super::problem::{ProblemDocument, Refusal};
use super::sites::Sites;
use crate::admission::Admission;
use crate::admission::flights::Flights;
use crate::site::PageFile;
use crate::store::catalog::Catalog;

#[derive(Debug, Default)]
pub(super) struct ServerCounters {
    /// Responses by the hundreds of their status: 1xx to 5xx.
    pub(super) responses: [AtomicU64; 5],
    /// Answers that were computed before.
    pub(super) cached: AtomicU64,
}

#[derive(Clone)]
pub(super) struct ServerState(Arc<Shared>);

pub(super) struct Shared {
    pub(super) admission: Arc<Admission>,
    pub(super) token: Option<String>,
    pub(super) sites: Sites,
    pub(super) connections: ConnectionLimits,
    pub(super) log: Option<fn(&str)>,
    pub(super) counters: ServerCounters,
    pub(super) cached_answers: AnswerCache,
    pub(super) flights: Flights<Result<CachedAnswer, Refusal>>,
    /// The page, made at its first request.
    pub(super) page: OnceLock<Result<Vec<PageFile>, Box<ProblemDocument>>>,
    measured: Mutex<MeasuredRuns>,
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
            token: options.token.clone(),
            sites: options.sites.clone(),
            connections: options.connections.clone(),
            counters: ServerCounters::default(),
            cached_answers: answer_cache(),
            flights: Flights::new(),
            page: OnceLock::new(),
            measured: Mutex::default(),
            log: options.log,
        })))
    }

    pub(super) fn runs(&self) -> MutexGuard<'_, MeasuredRuns> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
