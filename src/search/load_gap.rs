//! Loads of a decode worker between two listed loads.

use super::decode_options::DecodeOption;
use crate::quantity::tolerance::ROUNDING;

/// Loads of a configuration between two listed loads. None has a lower TPOT than the floor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadGap {
    /// The option at the load just below.
    pub bound: DecodeOption,
    /// Range of the concurrency of a worker.
    pub loads: (u64, u64),
    /// Concurrency step between two loads.
    pub step: u64,
    /// Maximum mean time in which a request decodes, in seconds.
    pub slowest: f64,
    /// Maximum TPOT, in seconds.
    pub most_tpot: f64,
}

impl LoadGap {
    /// Number of loads.
    pub fn count(&self) -> u64 {
        (self.loads.1 - self.loads.0) / self.step + 1
    }

    /// Its lower and upper half; `reload` evaluates the configuration at another load. The gap must hold at least two
    /// loads.
    pub fn halves(self, reload: impl Fn(&DecodeOption, u64) -> DecodeOption) -> [LoadGap; 2] {
        let steps = (self.loads.1 - self.loads.0) / self.step;
        let middle = self.loads.0 + steps / 2 * self.step;
        let floor = reload(&self.bound, middle);
        [
            LoadGap {
                loads: (self.loads.0, middle),
                slowest: floor.decoding(),
                most_tpot: floor.tpot,
                ..self
            },
            LoadGap { bound: floor, loads: (middle + self.step, self.loads.1), ..self },
        ]
    }

    /// Upper bound over its loads in every metric. A worker draws `idle` W and the energy of its steps, which do not
    /// need less of it at a higher load.
    pub fn ideal(&self, idle: f64) -> DecodeOption {
        let low = &self.bound;
        let more = self.loads.1 as f64 / low.concurrency as f64;
        let busy = (low.watts - idle).max(0.0) * low.decoding() / self.slowest;
        let watts = if low.watts > 0.0 { (idle + busy) * (1.0 - ROUNDING) } else { 0.0 };
        DecodeOption { rate: low.rate * more, watts, joules: low.joules / more * (1.0 - ROUNDING), ..*low }
    }
}
