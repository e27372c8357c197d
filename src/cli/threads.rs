//! The threads of a command: one per core, fewer where the system allows no more.

use std::io::Write;

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Stack size of a worker in bytes: that of the main thread on Linux.
const STACK: usize = 8 << 20;

/// Address space of a worker in bytes: its stack, and ample room for the pages that guard it, a stack for signals and its
/// own variables, which take less than 100 kB.
const RESERVED: usize = STACK + (1 << 20);

/// Numbers of workers to try, if one per core is not possible.
const FEWER: [usize; 5] = [16, 8, 4, 2, 1];

/// Runs `work` on a pool of workers. If the system starts no further thread (limits on processes or memory), the
/// current thread runs it, with a note on standard error.
pub fn on_workers<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match worker_pool().or_else(alone) {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// A pool of one worker per core, or of fewer with a note on standard error; none where the system starts no thread.
pub fn worker_pool() -> Option<ThreadPool> {
    if let Some(pool) = workers(own_number()) {
        return Some(pool);
    }
    let fewer = FEWER.into_iter().find_map(workers);
    let count = fewer.as_ref().map_or(1, ThreadPool::current_num_threads);
    // A closed standard error needs no note.
    let _ = writeln!(anstream::stderr(), "note: no further thread can be started; {count} at work");
    fewer
}

/// A pool with this number of workers.
fn workers(count: usize) -> Option<ThreadPool> {
    let pool = || ThreadPoolBuilder::new().num_threads(count).stack_size(STACK).build().ok();
    has_headroom(count).then(pool).flatten()
}

/// The default number of workers: one per core, or `RAYON_NUM_THREADS`.
fn own_number() -> usize {
    let set = std::env::var("RAYON_NUM_THREADS").ok().and_then(|number| number.parse().ok());
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    set.filter(|number| *number > 0).unwrap_or_else(cores)
}

/// Whether the address space holds the workers. A thread that starts and then finds no room for its signals ends the
/// process.
fn has_headroom(workers: usize) -> bool {
    workers.checked_mul(RESERVED).is_some_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok())
}

/// The current thread as the only worker.
fn alone() -> Option<ThreadPool> {
    ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().ok()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use rayon::prelude::*;

    #[test]
    fn the_thread_at_hand_does_what_workers_would() {
        let sum = || (0..1000_u64).into_par_iter().map(|x| x * x).sum::<u64>();
        let by_workers = on_workers(sum);
        // A new thread: a thread that was registered as a worker remains one.
        let by_itself = thread::spawn(move || alone().map(|pool| pool.install(sum))).join().unwrap();
        assert_eq!(by_itself, Some(by_workers));
    }
}
