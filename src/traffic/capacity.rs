//! The highest load, or the fewest replicas, at which a run still meets what is required of it: bracketed, then bisected.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The part by which a load that meets, and the next one that misses, differ at most. The mean rate of 2,000 Poisson
/// arrivals is itself within 2 % (1/sqrt(2000)) of the stated one: more digits would be those of the seed.
pub const WIDTH: f64 = 0.01;
/// Runs of a search, at most: 7 halve a factor of 2 down to [`WIDTH`], and 33 doublings are a factor of almost 10¹⁰.
pub const MOST_TRIALS: usize = 40;

/// The values that a search goes over. Where one of them meets, all easier ones are taken to meet too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CapacityRange {
    /// Loads: the highest.
    Loads { least: f64, most: f64 },
    /// Loads in whole numbers: the highest.
    WholeLoads { least: u64, most: u64 },
    /// Sizes of a deployment in whole numbers: the least.
    Sizes { least: u64, most: u64 },
}

/// The reason why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityEnd {
    /// The value that meets and the one that misses are next to each other.
    Bracketed,
    /// Even the highest load of the range, or the fewest replicas, meets.
    AllMeet,
    /// Even the lowest load of the range, or the most replicas, misses.
    NoneMeets,
    /// The number of runs has a limit.
    RunsSpent,
    /// The search was stopped.
    Stopped,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapacityBracket {
    /// The hardest value that meets.
    pub met: Option<f64>,
    /// The easiest value that misses.
    pub missed: Option<f64>,
    pub end: CapacityEnd,
}

impl CapacityRange {
    /// The easiest and the hardest value.
    fn ends(&self) -> [f64; 2] {
        match *self {
            CapacityRange::Loads { least, most } => [least, most],
            CapacityRange::WholeLoads { least, most } => [least as f64, most as f64],
            CapacityRange::Sizes { least, most } => [most as f64, least as f64],
        }
    }

    /// `value`, in the range.
    fn within(&self, value: f64) -> f64 {
        let [one, other] = self.ends();
        let whole = match self {
            CapacityRange::Loads { .. } => value,
            CapacityRange::WholeLoads { .. } | CapacityRange::Sizes { .. } => value.floor(),
        };
        whole.max(one.min(other)).min(one.max(other))
    }

    /// Twice or half of `value`, on the way to `end`.
    fn toward(&self, value: f64, end: f64) -> f64 {
        self.within(if end > value { value * 2.0 } else { value / 2.0 })
    }

    /// A value between two that are not next to each other.
    fn between(&self, met: f64, missed: f64) -> Option<f64> {
        let (low, high) = (met.min(missed), met.max(missed));
        match self {
            CapacityRange::Loads { .. } => {
                (high > low * (1.0 + WIDTH)).then(|| libm::sqrt(low) * libm::sqrt(high))
            }
            CapacityRange::WholeLoads { .. } | CapacityRange::Sizes { .. } => {
                (high - low > (low * WIDTH).max(1.0)).then(|| ((low + high) / 2.0).floor())
            }
        }
    }

    /// The value to try next, or the end of the search.
    fn next(&self, met: Option<f64>, missed: Option<f64>) -> Result<f64, CapacityEnd> {
        let [easiest, hardest] = self.ends();
        match (met, missed) {
            (Some(met), Some(missed)) => self.between(met, missed).ok_or(CapacityEnd::Bracketed),
            (Some(met), None) if met == hardest => Err(CapacityEnd::AllMeet),
            (Some(met), None) => Ok(self.toward(met, hardest)),
            (None, Some(missed)) if missed == easiest => Err(CapacityEnd::NoneMeets),
            (None, Some(missed)) => Ok(self.toward(missed, easiest)),
            (None, None) => Err(CapacityEnd::Stopped),
        }
    }

    /// Searches from `start` on. `trial` says whether a value meets; `None` stops the search.
    pub fn search(&self, start: f64, mut trial: impl FnMut(f64) -> Option<bool>) -> CapacityBracket {
        let (mut met, mut missed) = (None, None);
        let mut value = self.within(start);
        for _ in 0..MOST_TRIALS {
            match trial(value) {
                Some(true) => met = Some(value),
                Some(false) => missed = Some(value),
                None => return CapacityBracket { met, missed, end: CapacityEnd::Stopped },
            }
            match self.next(met, missed) {
                Ok(next) => value = next,
                Err(end) => return CapacityBracket { met, missed, end },
            }
        }
        CapacityBracket { met, missed, end: CapacityEnd::RunsSpent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: CapacityRange = CapacityRange::WholeLoads { least: 1, most: 60 };
    const SIZES: CapacityRange = CapacityRange::Sizes { least: 1, most: 60 };

    #[test]
    fn whole_numbers_are_found_exactly() {
        for start in [1.0, 7.0, 60.0, 1e9] {
            for edge in 1..60_u32 {
                let edge = f64::from(edge);
                let found = WHOLE.search(start, |value| Some(value <= edge));
                let next = CapacityEnd::Bracketed;
                assert_eq!((found.met, found.missed, found.end), (Some(edge), Some(edge + 1.0), next));
                let found = SIZES.search(start, |value| Some(value > edge));
                assert_eq!((found.met, found.missed, found.end), (Some(edge + 1.0), Some(edge), next));
            }
        }
    }

    #[test]
    fn loads_are_found_within_the_width() {
        let range = CapacityRange::Loads { least: 1e-4, most: 1e9 };
        for edge in [2e-4, 0.31, 1.0, 77.7, 9.9e8] {
            for start in [1.0, 3e5] {
                let mut trials = 0;
                let found = range.search(start, |value| {
                    trials += 1;
                    Some(value <= edge)
                });
                let (met, missed) = (found.met.unwrap(), found.missed.unwrap());
                assert!(met <= edge && edge < missed && missed <= met * (1.0 + WIDTH), "{met} {missed}");
                // The first, doublings or halves until both sides are known, and 7 halves of a factor of 2.
                let bracketing = libm::ceil(libm::log2(edge / start).abs()) as usize + 1;
                assert!(trials <= 1 + bracketing + 7, "{trials} from {start} to {edge}");
            }
        }
    }

    #[test]
    fn the_ends_of_a_range_are_answers() {
        let of = |range: CapacityRange, meets: bool| range.search(8.0, |_| Some(meets));
        let [met, missed] = [true, false].map(|meets| of(WHOLE, meets));
        assert_eq!((met.met, met.missed, met.end), (Some(60.0), None, CapacityEnd::AllMeet));
        assert_eq!((missed.met, missed.missed, missed.end), (None, Some(1.0), CapacityEnd::NoneMeets));
        let [met, missed] = [true, false].map(|meets| of(SIZES, meets));
        assert_eq!((met.met, met.end), (Some(1.0), CapacityEnd::AllMeet));
        assert_eq!((missed.missed, missed.end), (Some(60.0), CapacityEnd::NoneMeets));
    }

    #[test]
    fn a_search_is_stopped_and_bounded() {
        let mut left = 3;
        let stopped = WHOLE.search(1.0, |_| {
            left -= 1;
            (left > 0).then_some(true)
        });
        assert_eq!((stopped.met, stopped.end), (Some(2.0), CapacityEnd::Stopped));
        let mut trials = 0;
        let long = CapacityRange::Loads { least: 1e-300, most: 1e300 }.search(1.0, |_| {
            trials += 1;
            Some(true)
        });
        assert_eq!((trials, long.end), (MOST_TRIALS, CapacityEnd::RunsSpent));
    }
}
