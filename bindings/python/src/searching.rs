//! Searches on threads of their own: the caller's thread waits for them, so that it takes signals and shows progress.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mantile::{Control, Error, ProgressSteps, RequestControl, StoppedBy, worker_pool};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::ThreadPool;

/// How often the caller's thread looks for signals.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// How long the caller waits for a search that it ended. A search that takes longer goes on without it until it sees
/// the end, and keeps its threads: the next search has others.
const MOST_AFTER_END: Duration = Duration::from_millis(250);

/// The threads of this process. A forked process inherits none of them and starts its own. It is locked only by a thread
/// that holds the interpreter, as one that forks does, so no process inherits it locked.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

fn pool(_interpreter: Python<'_>) -> PyResult<Arc<ThreadPool>> {
    let process = std::process::id();
    let mut held = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    match held.take_if(|(of, _)| *of != process) {
        // To end threads that are not in this process would wait for them.
        Some((_, elsewhere)) => std::mem::forget(elsewhere),
        None => {
            if let Some((_, pool)) = &*held {
                return Ok(pool.clone());
            }
        }
    }
    let made = worker_pool().map(Arc::new);
    let made = made.ok_or_else(|| PyRuntimeError::new_err("the system starts no further thread"))?;
    *held = Some((process, made.clone()));
    Ok(made)
}

/// Leaves a pool to the search that still runs on it.
fn leave(_interpreter: Python<'_>, pool: &Arc<ThreadPool>) {
    let mut held = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    held.take_if(|(_, current)| Arc::ptr_eq(current, pool));
}

enum Message<T> {
    Progress(usize, usize),
    /// The result, or what a panic carries.
    Done(Result<Result<T, Error>, Box<dyn Any + Send>>),
}

/// The result of `work` on other threads. Meanwhile this thread calls `progress` and the handlers of signals; an
/// exception of theirs ends the search and is raised.
pub fn searched<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&RequestControl) -> Result<T, Error> + Send + 'static,
) -> PyResult<Result<T, Error>> {
    let pool = pool(py)?;
    let ended = Arc::new(AtomicBool::new(false));
    let (sender, mut messages) = channel();
    let (ended_inside, shows) = (ended.clone(), progress.is_some());
    pool.spawn(move || {
        let done =
            catch_unwind(AssertUnwindSafe(|| controlled(&ended_inside, shows.then_some(&sender), work)));
        // The caller may have left.
        let _ = sender.send(Message::Done(done));
    });
    let fault = loop {
        let message = received(py, &mut messages, SIGNALS_EVERY);
        if let Err(fault) = py.check_signals() {
            break fault;
        }
        match (message, &progress) {
            (Ok(Message::Done(done)), _) => return Ok(done.unwrap_or_else(|panic| resume_unwind(panic))),
            (Ok(Message::Progress(done, all)), Some(progress)) => {
                if let Err(fault) = progress.call1(py, (done, all)) {
                    break fault;
                }
            }
            (Err(RecvTimeoutError::Disconnected), _) => {
                break PyRuntimeError::new_err("a search that ended without a result");
            }
            _ => {}
        }
    };
    ended.store(true, Relaxed);
    let last = Instant::now() + MOST_AFTER_END;
    loop {
        match received(py, &mut messages, last.saturating_duration_since(Instant::now())) {
            Ok(Message::Progress(..)) => {}
            Err(RecvTimeoutError::Timeout) => {
                leave(py, &pool);
                return Err(fault);
            }
            Ok(Message::Done(_)) | Err(RecvTimeoutError::Disconnected) => return Err(fault),
        }
    }
}

/// The next message; other threads have the interpreter meanwhile.
fn received<T: Send>(
    py: Python<'_>,
    messages: &mut Receiver<Message<T>>,
    wait: Duration,
) -> Result<Message<T>, RecvTimeoutError> {
    py.detach(move || messages.recv_timeout(wait))
}

/// Does `work` until it is `ended`, with progress to `shown`.
fn controlled<T>(
    ended: &AtomicBool,
    shown: Option<&Sender<Message<T>>>,
    work: impl FnOnce(&RequestControl) -> Result<T, Error>,
) -> Result<T, Error>
where
    T: Send,
{
    let steps = ProgressSteps::default();
    let progress = |done: usize, all: usize| {
        if let Some(shown) = shown
            && steps.reaches(done, all)
        {
            // The caller may have left.
            let _ = shown.send(Message::Progress(done, all));
        }
    };
    let stop = || ended.load(Relaxed);
    work(&RequestControl {
        search: Control { progress: &progress, stop: &stop },
        stopped_by: &|| stop().then_some(StoppedBy::Interrupt),
    })
}
