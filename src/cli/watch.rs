//! Long searches: progress on a terminal, a limit of time, and Ctrl-C, after which the best so far is told.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::memory::Room;
use super::progress::shown;
use super::threads::can_start;
use crate::report::proof::StoppedBy;
use crate::search::run::Control;

/// Milliseconds between two looks at memory.
const LOOK_EVERY: u64 = 100;

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
/// until Ctrl-C, and while there is memory. Tells why it was asked to stop, if it was.
///
/// The limit is in seconds; beyond what a clock counts there is none.
pub fn watched<T>(limit: Option<f64>, search: impl FnOnce(&Control) -> T) -> (T, Option<StoppedBy>) {
    let limit = limit.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let begun = Instant::now();
    let pressed = interrupted();
    let late = AtomicBool::new(false);
    let room = Room::here();
    let (looked, full) = (AtomicU64::new(0), OnceLock::new());
    let stop = || {
        let now = begun.elapsed();
        let over = limit.is_some_and(|limit| now >= limit);
        late.fetch_or(over, Relaxed);
        let moment = now.as_millis() as u64 / LOOK_EVERY;
        if looked.fetch_max(moment, Relaxed) < moment
            && let Some(scarce) = room.scarce()
        {
            let _ = full.set(scarce);
        }
        over || pressed.load(Relaxed) || full.get().is_some()
    };
    let found = shown(|progress| search(&Control { progress, stop: &stop }));
    let why = if pressed.load(Relaxed) {
        Some(StoppedBy::Interrupt)
    } else if let Some((used, most)) = full.get() {
        let megabytes = |bytes: &u64| bytes / 1_000_000;
        // Whoever closed standard error reads no note.
        let _ = writeln!(
            anstream::stderr(),
            "note: the search stopped with {} MB of memory in use, of {} MB that it may have",
            megabytes(used),
            megabytes(most)
        );
        Some(StoppedBy::Memory)
    } else {
        late.load(Relaxed).then_some(StoppedBy::TimeLimit)
    };
    (found, why)
}
