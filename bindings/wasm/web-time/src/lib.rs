//! The part of the crate `web-time` that the library's dependencies use, with the clock that `mantile.mjs` passes in:
//! the original needs JavaScript that a tool generates.

use std::ops::Add;
use std::time::Duration;

#[link(wasm_import_module = "mantile")]
unsafe extern "C" {
    /// Milliseconds since some moment.
    safe fn now() -> f64;
}

/// A moment of the host's clock.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Instant {
    milliseconds: f64,
}

impl Instant {
    /// This moment.
    pub fn now() -> Instant {
        Instant { milliseconds: now() }
    }

    /// The time since then.
    pub fn elapsed(&self) -> Duration {
        Instant::now().duration_since(*self)
    }

    /// The time since an earlier moment; none where it is later.
    pub fn duration_since(&self, earlier: Instant) -> Duration {
        Duration::from_secs_f64(((self.milliseconds - earlier.milliseconds) / 1e3).max(0.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, time: Duration) -> Instant {
        Instant { milliseconds: self.milliseconds + time.as_secs_f64() * 1e3 }
    }
}
