//! Signals: Ctrl-C ends a search and its best so far is still given; any other end removes the file in the making.
//!
//! Signals that were ignored when the program began (`nohup`, jobs in the background) stay ignored.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, Once, PoisonError};
use std::{fs, io};

use tempfile::{Builder, NamedTempFile};

/// Searches that run and end early when asked.
static WATCHED: AtomicUsize = AtomicUsize::new(0);
/// Whether somebody pressed Ctrl-C while a search ran.
static PRESSED: AtomicBool = AtomicBool::new(false);
/// The file in the making. Locked while it comes to be and while it gets its name, so that none is left behind.
static MAKING: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Whether somebody pressed Ctrl-C since a search began.
pub fn pressed() -> bool {
    PRESSED.load(SeqCst)
}

/// Does `work`, which looks at [`pressed`] and ends early: the first Ctrl-C ends no more than that.
pub fn watched<T>(work: impl FnOnce() -> T) -> T {
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

/// A file in the making, of a random name, which is removed when the program is ended.
///
/// # Errors
/// The folder takes no file.
pub fn making(builder: &Builder<'_, '_>, folder: &Path) -> io::Result<NamedTempFile> {
    listen();
    let mut making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let file = builder.tempfile_in(folder)?;
    *making = Some(file.path().to_owned());
    Ok(file)
}

/// Ends the making of a file: `finish` gives it its name or removes it.
pub fn made<T>(finish: impl FnOnce() -> T) -> T {
    let mut making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let finished = finish();
    *making = None;
    finished
}

/// What a signal that interrupts does: `true` where the program goes on.
fn interrupt() -> bool {
    WATCHED.load(SeqCst) > 0 && !PRESSED.swap(true, SeqCst)
}

/// Removes the file in the making; whoever makes it waits from here on.
fn remove() -> std::sync::MutexGuard<'static, Option<PathBuf>> {
    let making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(path) = making.as_ref() {
        // The program ends; nobody is left who could do more about it.
        let _ = fs::remove_file(path);
    }
    making
}

/// Listens from the first call on. Where that cannot be had, signals end the program as ever.
fn listen() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(start);
}

#[cfg(unix)]
fn start() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    let ignored = ignored();
    let wanted: Vec<i32> =
        [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0).collect();
    let (ready, begun) = std::sync::mpsc::channel();
    let listen = move || {
        // The thread is there before any signal is taken from its default.
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
        // What is begun after this is removed; a thread that died answers too.
        let _ = begun.recv();
    }
}

/// The signals that were ignored when the program began, a bit each, where the system tells.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or_default()
}

#[cfg(not(unix))]
fn start() {
    /// Exit code of whoever is interrupted and has nothing to tell.
    const INTERRUPTED: i32 = 130;
    let _ = ctrlc::set_handler(|| {
        if !interrupt() {
            let _waits = remove();
            std::process::exit(INTERRUPTED);
        }
    });
}
