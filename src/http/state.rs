//! The state that all requests share: the catalogue, the pool of searches, the limits and the counters.

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::sync::Semaphore;

use super::ServerOptions;
use super::answer_cache::{AnswerCache, answer_cache};
use super::body::LARGE_BODIES;
use super::connections::ConnectionLimits;
use super::estimator::MeasuredRuns;
use super::problem::ProblemDocument;
use super::sites::Sites;
use crate::site::PageFile;
use crate::store::catalog::Catalog;

/// Limits of requests.
#[derive(Clone, Debug)]
pub struct ServerLimits {
    /// Largest body, in bytes.
    pub body_bytes: usize,
    /// Requests that are answered at the same time.
    pub running: usize,
    /// Requests that wait for one of those; further ones are refused with 429.
    pub waiting: usize,
    /// Longest search; its best answer so far is returned then. None for no limit.
    pub time: Option<Duration>,
}

/// Counters of the server.
#[derive(Debug, Default)]
pub(super) struct ServerCounters {
    /// Responses by the hundreds of their status: 1xx to 5xx.
    pub(super) responses: [AtomicU64; 5],
    /// Requests refused because too many wait.
    pub(super) refused: AtomicU64,
    /// Searches ended because their client left.
    pub(super) abandoned: AtomicU64,
    /// Microseconds in which answers were computed.
    pub(super) busy_us: AtomicU64,
    /// Answers computed.
    pub(super) answered: AtomicU64,
    /// Answers that were computed before.
    pub(super) cached: AtomicU64,
}

/// The state that all requests share.
#[derive(Clone)]
pub(super) struct ServerState(Arc<Shared>);

pub(super) struct Shared {
    pub(super) catalog: Catalog,
    pub(super) token: Option<String>,
    pub(super) sites: Sites,
    pub(super) limits: ServerLimits,
    pub(super) connections: ConnectionLimits,
    pub(super) log: Option<fn(&str)>,
    /// Requests that are answered or wait.
    pub(super) admitted: Arc<Semaphore>,
    /// Long bodies in memory.
    pub(super) bodies: Semaphore,
    /// Requests that are answered.
    pub(super) running: Arc<Semaphore>,
    /// Threads of the searches.
    pub(super) searches: ThreadPool,
    pub(super) counters: ServerCounters,
    pub(super) answers: AnswerCache,
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
        let limits = options.limits.clone();
        let searches = ThreadPoolBuilder::new().build().map_err(io::Error::other)?;
        Ok(ServerState(Arc::new(Shared {
            catalog,
            token: options.token.clone(),
            sites: options.sites.clone(),
            connections: options.connections.clone(),
            bodies: Semaphore::new(LARGE_BODIES),
            admitted: Arc::new(Semaphore::new(limits.running + limits.waiting)),
            running: Arc::new(Semaphore::new(limits.running)),
            searches,
            counters: ServerCounters::default(),
            answers: answer_cache(),
            page: OnceLock::new(),
            measured: Mutex::default(),
            log: options.log,
            limits,
        })))
    }

    /// The measured runs since the server began.
    pub(super) fn runs(&self) -> MutexGuard<'_, MeasuredRuns> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
