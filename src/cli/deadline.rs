//! Long searches: progress on a terminal, a time limit, Ctrl-C and a memory limit; each end reports the best found so
//! far.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::memory::ProcessMemory;
use super::progress::shown;
use crate::report::proof::StoppedBy;
use crate::request::{RequestControl, UNCONTROLLED};
use crate::search::run::{Control, UNWATCHED};
use crate::store::interrupt::{pressed, with_interrupt as until_pressed};

/// Interval between two checks of memory, in milliseconds.
const LOOK_EVERY: u64 = 100;

/// The start of this process's work: a limit counts from it, whatever is done before a search.
static BEGUN: OnceLock<Instant> = OnceLock::new();

pub fn begin() {
    let _ = BEGUN.set(Instant::now());
}

/// Runs a search that may take long: with progress on standard error if it is a terminal, at most `limit` seconds,
/// until Ctrl-C, and while memory lasts; a second Ctrl-C ends the program.
///
/// A limit beyond the range of the clock counts as none.
pub fn with_deadline<T>(limit: Option<f64>, answer: impl FnOnce(&RequestControl) -> T) -> T {
    let limit = limit.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let begun = *BEGUN.get_or_init(Instant::now);
    let late = AtomicBool::new(false);
    let memory = ProcessMemory::here();
    let (looked, full) = (AtomicU64::new(0), OnceLock::new());
    let stop = || {
        let now = begun.elapsed();
        let over = limit.is_some_and(|limit| now >= limit);
        late.fetch_or(over, Relaxed);
        let moment = now.as_millis() as u64 / LOOK_EVERY;
        if looked.fetch_max(moment, Relaxed) < moment
            && let Some(scarce) = memory.scarce()
        {
            let _ = full.set(scarce);
        }
        over || pressed() || full.get().is_some()
    };
    let stopped_by = || {
        if pressed() {
            Some(StoppedBy::Interrupt)
        } else if full.get().is_some() {
            Some(StoppedBy::Memory)
        } else {
            late.load(Relaxed).then_some(StoppedBy::TimeLimit)
        }
    };
    let found = until_pressed(|| {
        shown(|progress| {
            answer(&RequestControl { search: Control { progress, stop: &stop }, stopped_by: &stopped_by })
        })
    });
    if let Some((used, most)) = full.get().filter(|_| !pressed()) {
        let megabytes = |bytes: &u64| bytes / 1_000_000;
        // A closed standard error needs no note.
        let _ = writeln!(
            anstream::stderr(),
            "note: the search stopped at {} MB of memory in use; the limit is {} MB",
            megabytes(used),
            megabytes(most)
        );
    }
    found
}

/// Runs a request that cannot stop early, with progress on standard error if it is a terminal.
pub fn with_progress<T>(answer: impl FnOnce(&RequestControl) -> T) -> T {
    shown(|progress| answer(&RequestControl { search: Control { progress, ..UNWATCHED }, ..UNCONTROLLED }))
}
