//! Limits of the requests that a server answers, the same for every protocol: how many at the same time, how many wait,
//! how long a search takes, how long a message is. Equal requests at the same time are computed once (`flights`).

pub(crate) mod flights;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::report::proof::StoppedBy;
use crate::request::{ProgressSteps, RequestControl};
use crate::search::run::Control;
use crate::spec::error::Error;
use crate::store::catalog::Catalog;
use flights::ProgressSender;

#[derive(Clone, Debug)]
pub struct RequestLimits {
    /// Largest message, in bytes.
    pub message_bytes: usize,
    pub running: usize,
    /// Requests that wait for one of those; further ones are refused.
    pub waiting: usize,
    /// Longest search; its best answer so far is returned then. None for no limit.
    pub time: Option<Duration>,
}

/// Largest message, in bytes: a saved answer that is to be verified.
pub const MESSAGE_BYTES: usize = 16 << 20;
/// Longest message that waits for no place, in bytes: all clients may send one. Saved answers are longer.
pub(crate) const SHORT_MESSAGE: usize = 64 << 10;
/// Longer messages in memory at the same time: with the largest, 256 MiB.
const LONG_MESSAGES: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct RequestCounters {
    /// Requests refused because too many wait.
    pub(crate) refused: AtomicU64,
    /// Searches ended because their last client left.
    pub(crate) abandoned: AtomicU64,
    /// Microseconds in which answers were computed.
    pub(crate) busy_us: AtomicU64,
    pub(crate) answered: AtomicU64,
}

/// Reason of a request that has no answer.
#[derive(Clone, Debug)]
pub(crate) enum RefusedRequest {
    Busy(Error),
    Stopping,
    Fault(Error),
    /// The program is.
    Bug,
}

impl RefusedRequest {
    /// The same as a fault, for protocols without kinds of refusals.
    pub(crate) fn fault(self) -> Error {
        match self {
            RefusedRequest::Busy(fault) | RefusedRequest::Fault(fault) => fault,
            RefusedRequest::Stopping => {
                Error::new("", "a server that stops", "a server that runs", "try again later")
            }
            RefusedRequest::Bug => Error::new("", "a bug", "an answer", "please report the request"),
        }
    }
}

/// A place among the requests that wait, then among those that are answered.
pub(crate) struct Place(#[expect(dead_code, reason = "held until it is dropped")] [OwnedSemaphorePermit; 2]);

/// Answers requests from a catalogue, within limits, on threads of its own.
pub(crate) struct Admission {
    pub(crate) catalog: Catalog,
    pub(crate) limits: RequestLimits,
    pub(crate) counters: RequestCounters,
    admitted: Arc<Semaphore>,
    running: Arc<Semaphore>,
    /// Long messages in memory.
    long: Arc<Semaphore>,
    searches: ThreadPool,
}

impl Admission {
    /// Admission with nothing admitted.
    pub(crate) fn new(catalog: Catalog, limits: RequestLimits) -> io::Result<Admission> {
        Ok(Admission {
            catalog,
            admitted: Arc::new(Semaphore::new(limits.running + limits.waiting)),
            running: Arc::new(Semaphore::new(limits.running)),
            long: Arc::new(Semaphore::new(LONG_MESSAGES)),
            searches: ThreadPoolBuilder::new().build().map_err(io::Error::other)?,
            counters: RequestCounters::default(),
            limits,
        })
    }

    pub(crate) fn running_and_waiting(&self) -> (usize, usize) {
        let running = self.limits.running - self.running.available_permits();
        let admitted = self.limits.running + self.limits.waiting - self.admitted.available_permits();
        (running, admitted.saturating_sub(running))
    }

    /// A place for a long message, once there is one.
    pub(crate) async fn long_message(&self) -> Option<OwnedSemaphorePermit> {
        self.long.clone().acquire_owned().await.ok()
    }

    /// A place for a message of `bytes` that is already in memory; none where a short one needs none.
    pub(crate) fn long_message_now(
        &self,
        bytes: usize,
    ) -> Result<Option<OwnedSemaphorePermit>, RefusedRequest> {
        if bytes <= SHORT_MESSAGE {
            return Ok(None);
        }
        self.long.clone().try_acquire_owned().map(Some).map_err(|_| {
            self.counters.refused.fetch_add(1, Relaxed);
            RefusedRequest::Busy(Error::new(
                "requests",
                format!("more than {LONG_MESSAGES} requests above {SHORT_MESSAGE} bytes at the same time"),
                format!("at most {LONG_MESSAGES} such requests"),
                "try again once one of them is answered",
            ))
        })
    }

    /// Waits for a place; refuses where too many wait.
    async fn place(&self) -> Result<Place, RefusedRequest> {
        let waiting = self.admitted.clone().try_acquire_owned().map_err(|_| {
            self.counters.refused.fetch_add(1, Relaxed);
            let RequestLimits { running, waiting, .. } = self.limits;
            RefusedRequest::Busy(Error::new(
                "requests",
                format!("more than {} requests at the same time", running + waiting),
                format!("at most {running} requests that are answered and {waiting} that wait"),
                "try again once one of them is answered",
            ))
        })?;
        let running = self.running.clone().acquire_owned().await.map_err(|_| RefusedRequest::Stopping)?;
        Ok(Place([waiting, running]))
    }

    /// The result of `work`, and whether the time limits left it whole: that of the server, and `wait`, that of the
    /// client. The search ends where this future is dropped.
    pub(crate) async fn searched<T: Send + 'static>(
        self: &Arc<Self>,
        (progress, wait): (ProgressSender, Option<Duration>),
        work: impl FnOnce(&Catalog, &RequestControl) -> Result<T, Error> + Send + 'static,
    ) -> Result<(T, bool), RefusedRequest> {
        let place = self.place().await?;
        progress.send_replace(Some((0, 0)));
        // A client that leaves while it waits has no search to end.
        let guard = ClientGuard { left: Arc::default(), of: self.clone(), finished: false };
        let (left, of) = (guard.left.clone(), self.clone());
        let limit = [self.limits.time, wait].into_iter().flatten().min();
        let search = move || of.search((place, limit), &left, &progress, work);
        let found = tokio::task::spawn_blocking(search).await;
        guard.finish();
        found.map_err(|_| RefusedRequest::Bug)?.map_err(RefusedRequest::Fault)
    }

    /// Runs a search to its end, its time limit, or until its client has left.
    fn search<T: Send>(
        &self,
        (place, limit): (Place, Option<Duration>),
        left: &AtomicBool,
        progress: &ProgressSender,
        work: impl FnOnce(&Catalog, &RequestControl) -> Result<T, Error> + Send,
    ) -> Result<(T, bool), Error> {
        let begun = Instant::now();
        let late = AtomicBool::new(false);
        let stop = || {
            let over = limit.is_some_and(|limit| begun.elapsed() >= limit);
            late.fetch_or(over, Relaxed);
            over || left.load(Relaxed)
        };
        let steps = ProgressSteps::default();
        let shown = |done: usize, all: usize| {
            if steps.reaches(done, all) {
                progress.send_replace(Some((done, all)));
            }
        };
        let control = RequestControl {
            search: Control { progress: &shown, stop: &stop },
            stopped_by: &|| late.load(Relaxed).then_some(StoppedBy::TimeLimit),
        };
        let answer = self.searches.install(|| work(&self.catalog, &control));
        self.counters.answered.fetch_add(1, Relaxed);
        self.counters.busy_us.fetch_add(begun.elapsed().as_micros() as u64, Relaxed);
        drop(place);
        answer.map(|answer| (answer, !late.load(Relaxed)))
    }
}

/// Ends a search when its last client leaves.
struct ClientGuard {
    left: Arc<AtomicBool>,
    of: Arc<Admission>,
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
            self.of.counters.abandoned.fetch_add(1, Relaxed);
        }
    }
}
