//! Equal requests at the same time are computed once: the first one computes, the others join it.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// A request in short: what equal requests share, and no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RequestKey([u8; 32]);

impl RequestKey {
    /// The key of a request by its name, the format of its answer and its body.
    pub(crate) fn of(name: &str, format: &str, body: &str) -> RequestKey {
        // Names and formats have no line ends.
        RequestKey(Sha256::digest(format!("{name}\n{format}\n{body}")).into())
    }
}

/// Progress of a computation, done and all; none while it waits for its turn.
pub(crate) type ProgressSender = watch::Sender<Option<(usize, usize)>>;

/// Progress without a reader.
pub(crate) fn unwatched() -> ProgressSender {
    watch::channel(None).0
}

pub(crate) struct Flights<T>(Arc<Entries<T>>);

type Entries<T> = Mutex<HashMap<RequestKey, Weak<Flight<T>>>>;

/// A computation that several requests may wait for. It ends when the last of them leaves.
pub(crate) struct Flight<T> {
    answer: watch::Receiver<Option<T>>,
    progress: watch::Receiver<Option<(usize, usize)>>,
    task: Option<(AbortHandle, RequestKey, Arc<Entries<T>>)>,
}

impl<T: Clone + Send + Sync + 'static> Flights<T> {
    pub(crate) fn new() -> Flights<T> {
        Flights(Arc::default())
    }

    /// The computation of `key`: the one that is running, or `make`.
    pub(crate) fn joined<F>(&self, key: RequestKey, make: impl FnOnce(ProgressSender) -> F) -> Arc<Flight<T>>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut entries = locked(&self.0);
        if let Some(flight) = entries.get(&key).and_then(Weak::upgrade) {
            return flight;
        }
        let (sender, progress) = watch::channel(None);
        let computed = make(sender);
        let (sender, answer) = watch::channel(None);
        let task = tokio::spawn(async move {
            let answer = computed.await;
            sender.send_replace(Some(answer));
        });
        let task = Some((task.abort_handle(), key, self.0.clone()));
        let flight = Arc::new(Flight { answer, progress, task });
        entries.insert(key, Arc::downgrade(&flight));
        flight
    }
}

fn locked<T>(entries: &Entries<T>) -> MutexGuard<'_, HashMap<RequestKey, Weak<Flight<T>>>> {
    entries.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Drop for Flight<T> {
    fn drop(&mut self) {
        let Some((task, key, entries)) = self.task.take() else { return };
        task.abort();
        let mut entries = locked(&entries);
        // An equal request may have begun anew.
        if entries.get(&key).is_some_and(|flight| flight.strong_count() == 0) {
            entries.remove(&key);
        }
    }
}

impl<T: Clone> Flight<T> {
    /// A computation that has ended.
    pub(crate) fn ended(answer: T) -> Arc<Flight<T>> {
        let progress = watch::channel(None).1;
        Arc::new(Flight { answer: watch::channel(Some(answer)).1, progress, task: None })
    }

    /// The answer; none where the computation panicked.
    pub(crate) async fn answer(&self) -> Option<T> {
        let mut answer = self.answer.clone();
        let found = answer.wait_for(Option::is_some).await.ok()?;
        found.clone()
    }

    /// The progress so far and from now on.
    pub(crate) fn progress(&self) -> watch::Receiver<Option<(usize, usize)>> {
        self.progress.clone()
    }

    /// Waits until the computation has its turn, or has ended without one.
    pub(crate) async fn begun(&self) -> bool {
        let mut progress = self.progress.clone();
        progress.wait_for(Option::is_some).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::time::Duration;

    use super::*;

    fn key(body: &str) -> RequestKey {
        RequestKey::of("a", "b", body)
    }

    /// A computation that counts its beginnings, and its end where nobody left.
    fn counted(counts: &Arc<[AtomicUsize; 2]>) -> impl Future<Output = u32> + Send + 'static {
        let counts = counts.clone();
        async move {
            counts[0].fetch_add(1, SeqCst);
            tokio::time::sleep(Duration::from_millis(50)).await;
            counts[1].fetch_add(1, SeqCst);
            7
        }
    }

    #[tokio::test]
    async fn equal_requests_are_computed_once_and_end_with_the_last_that_waits() {
        let flights = Flights::<u32>::new();
        let counts = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let one = flights.joined(key("x"), |_| counted(&counts));
        let other = flights.joined(key("x"), |_| counted(&counts));
        let third = flights.joined(key("y"), |_| counted(&counts));
        // The first one leaves; the second one still waits.
        drop(one);
        assert_eq!((other.answer().await, third.answer().await), (Some(7), Some(7)));
        assert_eq!(counts[0].load(SeqCst), 2);
        drop((other, third));
        assert!(locked(&flights.0).is_empty());
        let left = flights.joined(key("x"), |_| counted(&counts));
        tokio::task::yield_now().await;
        drop(left);
        tokio::time::sleep(Duration::from_millis(120)).await;
        assert_eq!(counts[1].load(SeqCst), 2, "nobody waits, so nothing is computed");
        assert_eq!(Flight::ended(3).answer().await, Some(3));
    }
}
