//! Long searches: progress on a terminal, a limit of time, and Ctrl-C, after which the best so far is told.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::progress::shown;
use crate::report::proof::StoppedBy;
use crate::search::run::Control;
use crate::store::interrupt::{pressed, watched as until_pressed};

/// Runs a search that may take long: with progress on standard error where somebody looks, no longer than `limit`,
/// and until Ctrl-C; a second Ctrl-C ends the program. Tells why it was asked to stop, if it was.
///
/// The limit is in seconds; beyond what a clock counts there is none.
pub fn watched<T>(limit: Option<f64>, search: impl FnOnce(&Control) -> T) -> (T, Option<StoppedBy>) {
    let limit = limit.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let begun = Instant::now();
    let late = AtomicBool::new(false);
    let stop = || {
        let over = limit.is_some_and(|limit| begun.elapsed() >= limit);
        late.fetch_or(over, Relaxed);
        over || pressed()
    };
    let found = until_pressed(|| shown(|progress| search(&Control { progress, stop: &stop })));
    let why = if pressed() {
        Some(StoppedBy::Interrupt)
    } else {
        late.load(Relaxed).then_some(StoppedBy::TimeLimit)
    };
    (found, why)
}
