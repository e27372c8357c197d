//! Progress on standard error, if it is a terminal and the work is not instant.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget};
use rayon::prelude::*;

/// Longest work without a progress display.
const SILENCE: Duration = Duration::from_millis(500);

/// Runs `work`, which reports its progress as done and total.
pub fn shown<T>(work: impl FnOnce(&(dyn Fn(usize, usize) + Sync)) -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return work(&|_, _| {});
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
    let begun = Instant::now();
    let done = work(&|done, total| {
        if begun.elapsed() > SILENCE {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        }
    });
    bar.finish_and_clear();
    done
}

/// The result of `work` for every item, in parallel on all cores.
pub fn counted<T: Sync, U: Send>(items: &[T], work: impl Fn(&T) -> U + Sync) -> Vec<U> {
    let done = AtomicUsize::new(0);
    shown(|progress| {
        let one = |item: &T| {
            let made = work(item);
            progress(done.fetch_add(1, Relaxed) + 1, items.len());
            made
        };
        items.par_iter().with_max_len(1).map(one).collect()
    })
}
