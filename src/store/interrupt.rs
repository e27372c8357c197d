//! Signals: Ctrl-C stops a search, which reports the best found so far; other signals remove the unfinished file.
//!
//! Signals that were ignored when the program began (`nohup`, jobs in the background) stay ignored.

#[cfg(feature = "cli")]
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, Once, PoisonError};

use tempfile::{Builder, NamedTempFile};

/// Number of running searches that stop on request.
static WATCHED: AtomicUsize = AtomicUsize::new(0);
/// Whether Ctrl-C was pressed during a search.
static PRESSED: AtomicBool = AtomicBool::new(false);
/// The unfinished file. Locked while it is created and renamed, so that none remains.
static MAKING: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Whether Ctrl-C was pressed since a search began.
pub fn pressed() -> bool {
    PRESSED.load(SeqCst)
}

/// Runs `work`, which polls [`pressed`] and stops early: the first Ctrl-C ends only the search.
pub fn with_interrupt<T>(work: impl FnOnce() -> T) -> T {
    struct Running;
    impl Drop for Running {
        fn drop(&mut self) {
            WATCHED.fetch_sub(1, SeqCst);
        }
    }
    listen();
    WATCHED.fetch_add(1, SeqCst);
    let _running = Running;
    work()
}

/// An unfinished file with a random name, removed when the program ends.
pub fn making(builder: &Builder<'_, '_>, folder: &Path) -> io::Result<NamedTempFile> {
    listen();
    let mut making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let file = builder.tempfile_in(folder)?;
    *making = Some(file.path().to_owned());
    Ok(file)
}

/// Completes a file: `finish` renames or removes it.
pub fn made<T>(finish: impl FnOnce() -> T) -> T {
    let mut making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let finished = finish();
    *making = None;
    finished
}

/// Handles an interrupt: `true` if the program continues.
#[cfg(feature = "cli")]
fn interrupt() -> bool {
    WATCHED.load(SeqCst) > 0 && !PRESSED.swap(true, SeqCst)
}

/// Removes the unfinished file; its writer blocks from here on.
#[cfg(feature = "cli")]
fn remove() -> std::sync::MutexGuard<'static, Option<PathBuf>> {
    let making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(path) = making.as_ref() {
        // The program ends: an error cannot be handled any more.
        let _ = fs::remove_file(path);
    }
    making
}

/// Handles signals from the first call on. If that fails, signals end the program as by default.
fn listen() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(start);
}

#[cfg(all(feature = "cli", unix))]
fn start() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    let ignored = ignored();
    let wanted: Vec<i32> =
        [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0).collect();
    let (ready, begun) = std::sync::mpsc::channel();
    let listen = move || {
        // The thread must run before any signal loses its default.
        let mut signals = Signals::new(wanted);
        let _ = ready.send(());
        for signal in signals.iter_mut().flat_map(Signals::forever) {
            if signal == SIGINT && interrupt() {
                continue;
            }
            let _waits = remove();
            let _ = emulate_default_handler(signal);
        }
    };
    if std::thread::Builder::new().name("signals".into()).spawn(listen).is_ok() {
        // Files begun later are removed; a dead thread responds too.
        let _ = begun.recv();
    }
}

/// The signals that were ignored at program start, one bit each, where the system reports them.
#[cfg(all(feature = "cli", unix))]
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or_default()
}

#[cfg(all(feature = "cli", not(unix)))]
fn start() {
    /// Exit code of an interrupted program without a result.
    const INTERRUPTED: i32 = 130;
    let _ = ctrlc::set_handler(|| {
        if !interrupt() {
            let _waits = remove();
            std::process::exit(INTERRUPTED);
        }
    });
}

/// Signals are left to the program that uses the library.
#[cfg(not(feature = "cli"))]
fn start() {}
