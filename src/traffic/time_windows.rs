//! Latencies over the time of a run, in memory that does not grow with it.

use std::collections::BTreeMap;

use super::outcome::{Distribution, RequestRecord};

/// Windows, at most.
pub const MOST_WINDOWS: u64 = 60;
/// Requests of a window, on average, below which its percentiles say nothing.
const FEWEST_REQUESTS: u64 = 10;
/// Width of the first windows, in seconds: a power of two, so that doubled widths and their edges are exact.
const LEAST_WIDTH_S: f64 = 1.0 / 1024.0;

/// Latencies of the requests that arrived in a window, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowLatencies {
    /// Time to first token.
    pub ttft: Distribution,
    /// Time per output token, of requests with more than one.
    pub tpot: Distribution,
}

impl WindowLatencies {
    fn add_all(&mut self, other: &WindowLatencies) {
        self.ttft.add_all(&other.ttft);
        self.tpot.add_all(&other.tpot);
    }
}

/// Equal windows of the time, from the first arrival to the last: where there are too many, each two become one.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeWindows {
    width_s: f64,
    /// By their number from the start of the run.
    windows: BTreeMap<u64, WindowLatencies>,
}

impl Default for TimeWindows {
    fn default() -> TimeWindows {
        TimeWindows { width_s: LEAST_WIDTH_S, windows: BTreeMap::new() }
    }
}

impl TimeWindows {
    /// Counts a request.
    pub fn count(&mut self, one: &RequestRecord) {
        let window = self.windows.entry((one.arrived_s / self.width_s) as u64).or_default();
        window.ttft.add(one.ttft_s(), 1);
        if let Some(tpot) = one.tpot_s() {
            window.tpot.add(tpot, 1);
        }
        self.widen_to(MOST_WINDOWS);
    }

    /// Number of the first window, and the one after the last.
    fn ends(&self) -> [u64; 2] {
        let number = |end: Option<(&u64, _)>| end.map(|(number, _)| *number);
        let first = number(self.windows.first_key_value());
        [first.unwrap_or(0), number(self.windows.last_key_value()).map_or(0, |last| last + 1)]
    }

    fn widen_to(&mut self, most: u64) {
        while self.ends()[1] - self.ends()[0] > most {
            self.width_s *= 2.0;
            for (number, window) in std::mem::take(&mut self.windows) {
                self.windows.entry(number / 2).or_default().add_all(&window);
            }
        }
    }

    /// The windows in order, each from and to these seconds from the start of the run; those without a request too.
    pub fn all(mut self) -> Vec<([f64; 2], WindowLatencies)> {
        let requests: u64 = self.windows.values().map(|window| window.ttft.count()).sum();
        self.widen_to((requests / FEWEST_REQUESTS).clamp(1, MOST_WINDOWS));
        let ([first, end], width_s) = (self.ends(), self.width_s);
        let window = |number: u64| {
            let edges = [number, number + 1].map(|edge| edge as f64 * width_s);
            (edges, self.windows.remove(&number).unwrap_or_default())
        };
        (first..end).map(window).collect()
    }
}
