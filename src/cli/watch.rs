//! Long searches: progress on a terminal, a limit of time, and Ctrl-C, after which the best so far is told.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::progress::shown;
use super::threads::can_start;
use crate::report::proof::StoppedBy;
use crate::search::run::Control;

/// Exit code of whoever is interrupted and has nothing to tell.
const INTERRUPTED: i32 = 130;

/// Whether somebody pressed Ctrl-C: once, and the search ends; twice, and the process does.
fn interrupted() -> &'static AtomicBool {
    static PRESSED: OnceLock<&'static AtomicBool> = OnceLock::new();
    PRESSED.get_or_init(|| {
        static FLAG: AtomicBool = AtomicBool::new(false);
        let pressed = || {
            if FLAG.swap(true, Relaxed) {
                std::process::exit(INTERRUPTED);
            }
        };
        // Where no handler can be had, or no thread to run it, Ctrl-C ends the process as ever.
        if can_start() {
            let _ = ctrlc::set_handler(pressed);
        }
        &FLAG
    })
}

/// Runs a search that may take long: with progress on standard error where somebody looks, no longer than `limit`,
/// and until Ctrl-C. Tells why it was asked to stop, if it was.
///
/// The limit is in seconds; beyond what a clock counts there is none.
pub fn watched<T>(limit: Option<f64>, search: impl FnOnce(&Control) -> T) -> (T, Option<StoppedBy>) {
    let limit = limit.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let begun = Instant::now();
    let pressed = interrupted();
    let late = AtomicBool::new(false);
    let stop = || {
        let over = limit.is_some_and(|limit| begun.elapsed() >= limit);
        late.fetch_or(over, Relaxed);
        over || pressed.load(Relaxed)
    };
    let found = shown(|progress| search(&Control { progress, stop: &stop }));
    let why = if pressed.load(Relaxed) {
        Some(StoppedBy::Interrupt)
    } else {
        late.load(Relaxed).then_some(StoppedBy::TimeLimit)
    };
    (found, why)
}
