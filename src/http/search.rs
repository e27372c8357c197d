//! A search on its own threads: admitted within limits, ended when its client leaves.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::problem::{ProblemDocument, Refusal};
use super::state::ServerState;
use crate::report::proof::StoppedBy;
use crate::request::{ProgressSteps, RequestControl};
use crate::search::run::Control;
use crate::spec::error::Error;
use crate::store::catalog::Catalog;

/// Ends a search when the handler is dropped: its client left.
pub(super) struct ClientGuard {
    left: Arc<AtomicBool>,
    state: ServerState,
    finished: bool,
}

impl ClientGuard {
    pub(super) fn new(state: &ServerState) -> ClientGuard {
        ClientGuard { left: Arc::default(), state: state.clone(), finished: false }
    }

    /// The answer is there: nothing is left to end.
    pub(super) fn finish(mut self) {
        self.finished = true;
    }
}

impl Drop for ClientGuard {
    fn drop(&mut self) {
        if !self.finished {
            self.left.store(true, Relaxed);
            self.state.counters.abandoned.fetch_add(1, Relaxed);
        }
    }
}

/// Progress of a search: done and all.
pub(super) type ProgressSender = mpsc::Sender<(usize, usize)>;

/// A place among the requests that wait, then among those that are answered.
pub(super) struct Admission(
    #[expect(dead_code, reason = "held until it is dropped")] [OwnedSemaphorePermit; 2],
);

/// Waits for a place; refuses where too many wait.
pub(super) async fn admitted(state: &ServerState) -> Result<Admission, Refusal> {
    let waiting = state.admitted.clone().try_acquire_owned().map_err(|_| {
        state.counters.refused.fetch_add(1, Relaxed);
        ProblemDocument {
            fix: Some("try again later".to_owned()),
            ..ProblemDocument::new(StatusCode::TOO_MANY_REQUESTS, "too many requests wait")
        }
    })?;
    let running = state.running.clone().acquire_owned().await;
    let stops = |_| ProblemDocument::new(StatusCode::SERVICE_UNAVAILABLE, "the server stops");
    Ok(Admission([waiting, running.map_err(stops)?]))
}

/// The result of a search, and whether the time limit left it whole.
pub(super) type Finished<T> = Result<(T, bool), Error>;
/// The result of a search that has begun.
pub(super) type Pending<T> = oneshot::Receiver<Finished<T>>;

/// Starts a search on the threads for searches.
pub(super) fn started<T: Send + 'static>(
    state: &ServerState,
    work: impl FnOnce(&Catalog, &RequestControl) -> Result<T, Error> + Send + 'static,
    guard: &ClientGuard,
    progress: Option<ProgressSender>,
    admission: Admission,
) -> Pending<T> {
    let (sender, receiver) = oneshot::channel();
    let (state, left) = (state.clone(), guard.left.clone());
    tokio::task::spawn_blocking(move || {
        let begun = Instant::now();
        let late = AtomicBool::new(false);
        let stop = || {
            let over = state.limits.time.is_some_and(|limit| begun.elapsed() >= limit);
            late.fetch_or(over, Relaxed);
            over || left.load(Relaxed)
        };
        let steps = ProgressSteps::default();
        let shown = |done: usize, all: usize| {
            // A client that reads slowly misses some.
            if steps.reaches(done, all)
                && let Some(progress) = &progress
            {
                let _ = progress.try_send((done, all));
            }
        };
        let control = RequestControl {
            search: Control { progress: &shown, stop: &stop },
            stopped_by: &|| late.load(Relaxed).then_some(StoppedBy::TimeLimit),
        };
        let answer = state.searches.install(|| work(&state.catalog, &control));
        let counters = &state.counters;
        counters.answered.fetch_add(1, Relaxed);
        counters.busy_us.fetch_add(begun.elapsed().as_micros() as u64, Relaxed);
        drop(admission);
        // A client that left reads no answer.
        let _ = sender.send(answer.map(|answer| (answer, !late.load(Relaxed))));
    });
    receiver
}

/// The result of a search, once it is there.
pub(super) fn received<T>(
    result: Result<Finished<T>, oneshot::error::RecvError>,
) -> Result<(T, bool), Refusal> {
    let bug = |_| ProblemDocument::new(StatusCode::INTERNAL_SERVER_ERROR, "a bug; please report the request");
    Ok(result.map_err(bug)??)
}

/// The result of `work`, and whether the time limit left it whole.
pub(super) async fn searched<T: Send + 'static>(
    state: &ServerState,
    work: impl FnOnce(&Catalog, &RequestControl) -> Result<T, Error> + Send + 'static,
) -> Result<(T, bool), Refusal> {
    // A client that leaves while it waits has no search to end.
    let admission = admitted(state).await?;
    let guard = ClientGuard::new(state);
    let found = received(started(state, work, &guard, None, admission).await);
    guard.finish();
    found
}
