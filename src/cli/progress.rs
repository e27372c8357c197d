//! Progress on standard error, if it is a terminal and the work is not instant.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget};

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
