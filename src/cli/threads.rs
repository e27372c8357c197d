//! The threads that a command works on: as many as there are cores, fewer where no more can be started.

use std::io::Write;
use std::thread;

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Bytes of a worker's stack: what the main thread of a process has on Linux.
const STACK: usize = 8 << 20;

/// Numbers of workers that are tried where not every core can have one.
const FEWER: [usize; 5] = [16, 8, 4, 2, 1];

/// Does `work` on workers of its own. Where the system starts no thread more (limits on processes or memory), the
/// thread at hand does it alone, and standard error says so.
pub fn on_workers<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if let Some(pool) = workers(0) {
        return pool.install(work);
    }
    let fewer = FEWER.into_iter().find_map(workers);
    let count = fewer.as_ref().map_or(1, ThreadPool::current_num_threads);
    // Whoever closed standard error reads no note.
    let _ = writeln!(anstream::stderr(), "note: no more threads can be started here; {count} at work");
    match fewer.or_else(alone) {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// So many workers; 0 is one a core, or what `RAYON_NUM_THREADS` says.
fn workers(count: usize) -> Option<ThreadPool> {
    ThreadPoolBuilder::new().num_threads(count).stack_size(STACK).build().ok()
}

/// The thread at hand as the only worker.
fn alone() -> Option<ThreadPool> {
    ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().ok()
}

/// Whether a thread more can be started now.
pub fn can_start() -> bool {
    thread::Builder::new().spawn(|| {}).is_ok_and(|started| started.join().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    #[test]
    fn the_thread_at_hand_does_what_workers_would() {
        let sum = || (0..1000_u64).into_par_iter().map(|x| x * x).sum::<u64>();
        let by_workers = on_workers(sum);
        // A thread of its own: whoever is a worker once stays one.
        let by_itself = thread::spawn(move || alone().map(|pool| pool.install(sum))).join().unwrap();
        assert_eq!(by_itself, Some(by_workers));
    }
}
