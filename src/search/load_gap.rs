//! Loads of a decode worker between two listed loads.

use super::decode_options::DecodeOption;

/// Loads of a configuration between two listed loads. None has a lower TPOT than the floor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadGap {
    /// The option at the load just below.
    pub bound: DecodeOption,
    /// Range of the concurrency of a worker.
    pub loads: (u64, u64),
    /// Concurrency step between two loads.
    pub step: u64,
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
            LoadGap { loads: (self.loads.0, middle), ..self },
            LoadGap { bound: floor, loads: (middle + self.step, self.loads.1), ..self },
        ]
    }

    /// Upper bound over its loads in every metric. Power is at least `idle` W.
    pub fn ideal(&self, idle: f64) -> DecodeOption {
        let more = self.loads.1 as f64 / self.bound.concurrency as f64;
        let watts = if self.bound.watts > 0.0 { idle } else { 0.0 };
        DecodeOption { rate: self.bound.rate * more, watts, ..self.bound }
    }
}
