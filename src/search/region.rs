//! A box of disaggregated deployments: ranges of pool sizes and loads, with bounds over its members and its halves.
//!
//! Works on counts and rates only.

use super::decode_loads::LoadGap;
use super::decode_options::DecodeOption;
use super::pair_capacity::PairCapacity;
use super::problem::Problem;

#[derive(Clone, Copy, Debug)]
pub enum Loads {
    /// Index range in the list.
    Listed(usize, usize),
    /// Loads that are not listed.
    Between(LoadGap),
}

/// Ranges, both ends included.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    pub prefill_instances: (u64, u64),
    pub decode_instances: (u64, u64),
    pub loads: Loads,
}

/// Bounds over a set of loads: the best value of each metric, and the lowest rate.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// At least as good as each load in every metric.
    pub best: DecodeOption,
    /// Minimum requests per second of any load.
    pub least_rate: f64,
    /// Maximum TPOT of any load, in seconds.
    pub most_tpot: f64,
}

impl Span {
    /// Bounds of a list sorted by increasing TPOT. With `rate_only`, later options sustain more requests and no other
    /// metric counts.
    pub fn listed(options: &[DecodeOption], rate_only: bool) -> Span {
        let (first, last) = (options[0], options[options.len() - 1]);
        if rate_only {
            let best = DecodeOption { rate: last.rate, ..first };
            return Span { best, least_rate: first.rate, most_tpot: last.tpot };
        }
        let spans = options.iter().map(|option| Span {
            best: *option,
            least_rate: option.rate,
            most_tpot: option.tpot,
        });
        spans.reduce(Span::union).expect("a list of options has one")
    }

    /// Bounds of loads that are not listed.
    pub fn between(gap: &LoadGap, problem: &Problem) -> Span {
        let best = gap.ideal(problem.idle(gap.bound.devices).watts);
        Span { best, least_rate: 0.0, most_tpot: gap.most_tpot }
    }

    pub fn union(self, other: Span) -> Span {
        let (a, b) = (self.best, other.best);
        Span {
            best: DecodeOption {
                tpot: a.tpot.min(b.tpot),
                rate: a.rate.max(b.rate),
                watts: a.watts.min(b.watts),
                joules: a.joules.min(b.joules),
                context: a.context.max(b.context),
                ..a
            },
            least_rate: self.least_rate.min(other.least_rate),
            most_tpot: self.most_tpot.max(other.most_tpot),
        }
    }
}

impl Region {
    /// Shrinks the ranges to the room for both workers; `None` if the region is empty.
    pub fn within(mut self, capacity: &PairCapacity) -> Option<Region> {
        self.prefill_instances.1 =
            self.prefill_instances.1.min(capacity.next_to_second(self.decode_instances.0)?);
        self.decode_instances.1 =
            self.decode_instances.1.min(capacity.next_to_first(self.prefill_instances.0)?);
        (self.prefill_instances.0 <= self.prefill_instances.1
            && self.decode_instances.0 <= self.decode_instances.1)
            .then_some(self)
    }

    /// Number of deployments in it that fit.
    pub fn count(&self, capacity: &PairCapacity) -> u64 {
        let loads = match self.loads {
            Loads::Listed(from, to) => (to - from) as u64 + 1,
            Loads::Between(gap) => gap.count(),
        };
        loads * self.pools(capacity)
    }

    /// Number of pairs of pool sizes in it that fit.
    pub fn pools(&self, capacity: &PairCapacity) -> u64 {
        capacity.pairs(self.prefill_instances, self.decode_instances)
    }

    /// Whether it holds exactly one deployment.
    pub fn is_single(&self) -> bool {
        self.has_one_load()
            && self.prefill_instances.0 == self.prefill_instances.1
            && self.decode_instances.0 == self.decode_instances.1
    }

    fn has_one_load(&self) -> bool {
        match self.loads {
            Loads::Listed(from, to) => from == to,
            Loads::Between(gap) => gap.loads.0 == gap.loads.1,
        }
    }

    /// Two halves, cut along the widest range. `spread` is the width of its loads; `reload` evaluates a configuration
    /// of a gap at another load.
    pub fn halves(self, spread: f64, reload: impl Fn(&DecodeOption, u64) -> DecodeOption) -> [Region; 2] {
        let ratio = |(from, to): (u64, u64)| to as f64 / from as f64;
        let (prefill_spread, decode_spread) = (ratio(self.prefill_instances), ratio(self.decode_instances));
        // Geometric mean: ranges are compared by ratio.
        let cut = |(from, to): (u64, u64)| (((from * to) as f64).sqrt() as u64).clamp(from, to - 1);
        if !self.has_one_load() && spread >= prefill_spread.max(decode_spread)
            || prefill_spread.max(decode_spread) == 1.0
        {
            let [low, high] = match self.loads {
                Loads::Listed(from, to) => {
                    let middle = from + (to - from) / 2;
                    [Loads::Listed(from, middle), Loads::Listed(middle + 1, to)]
                }
                Loads::Between(gap) => gap.halves(reload).map(Loads::Between),
            };
            return [Region { loads: low, ..self }, Region { loads: high, ..self }];
        }
        if prefill_spread >= decode_spread {
            let middle = cut(self.prefill_instances);
            let low = Region { prefill_instances: (self.prefill_instances.0, middle), ..self };
            return [low, Region { prefill_instances: (middle + 1, self.prefill_instances.1), ..self }];
        }
        let middle = cut(self.decode_instances);
        let low = Region { decode_instances: (self.decode_instances.0, middle), ..self };
        [low, Region { decode_instances: (middle + 1, self.decode_instances.1), ..self }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::capacity::DeviceCapacity;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn deployments_are_counted_as_one_by_one(
            (f0, f1, b0, b1) in (1u64..9, 0u64..20, 1u64..9, 0u64..20), all in 1u64..60, prefill_size in 1u64..8, decode_size in 1u64..8,
        ) {
            let region = Region { prefill_instances: (f0, f0 + f1), decode_instances: (b0, b0 + b1), loads: Loads::Listed(3, 3) };
            let pairs = (f0..=f0 + f1).flat_map(|f| (b0..=b0 + b1).map(move |b| (f, b)));
            let fits = pairs.filter(|(f, b)| f * prefill_size + b * decode_size <= all).count();
            let capacity = DeviceCapacity::new(all, 1, 0, 1).pair(prefill_size, decode_size);
            prop_assert_eq!(region.count(&capacity), fits as u64);
        }
    }

    /// Every deployment of a region, by halving it until every part is single.
    fn members(region: Region, all: &PairCapacity) -> Vec<(u64, u64, u64)> {
        let Some(region) = region.within(all) else { return vec![] };
        if region.is_single() {
            let load = match region.loads {
                Loads::Listed(place, _) => place as u64,
                Loads::Between(gap) => gap.loads.0,
            };
            return vec![(region.prefill_instances.0, region.decode_instances.0, load)];
        }
        let reload = |option: &DecodeOption, concurrency| DecodeOption { concurrency, ..*option };
        let halves = region.halves(2.0, reload);
        halves.into_iter().flat_map(|half| members(half, all)).collect()
    }

    #[test]
    fn halves_cover_a_region_once() {
        let bound =
            DecodeOption { devices: 1, concurrency: 1, tpot: 1.0, rate: 1.0, ..DecodeOption::default() };
        let gap = LoadGap { bound, loads: (34, 42), step: 2, slowest: 1.0, most_tpot: 1.0 };
        for (loads, expected) in
            [(Loads::Listed(2, 6), vec![2, 3, 4, 5, 6]), (Loads::Between(gap), vec![34, 36, 38, 40, 42])]
        {
            let region = Region { prefill_instances: (1, 9), decode_instances: (2, 7), loads };
            let capacity = DeviceCapacity::new(24, 1, 0, 1).pair(2, 3);
            let mut found = members(region, &capacity);
            found.sort_unstable();
            let all = (1..=9).flat_map(|f| (2..=7).map(move |b| (f, b))).filter(|(f, b)| 2 * f + 3 * b <= 24);
            let mut wanted: Vec<_> =
                all.flat_map(|(f, b)| expected.iter().map(move |load| (f, b, *load))).collect();
            wanted.sort_unstable();
            assert_eq!(found, wanted);
            assert_eq!(region.count(&capacity), wanted.len() as u64);
        }
    }
}
