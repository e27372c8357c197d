//! A box of split deployments: ranges of how many instances of each pool, and of loads; what its
//! members could be at best; and its halves.
//!
//! Knows numbers and rates, not what they stand for.

use super::capacity::DeviceCapacity;
use super::decode_options::{DecodeOption, LoadGap};
use super::question::Problem;

/// Loads of answering instances.
#[derive(Clone, Copy, Debug)]
pub enum Loads {
    /// Places in the list, from and to.
    Listed(usize, usize),
    /// Loads that are not listed.
    Between(LoadGap),
}

/// Ranges, both ends included.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// Prompt instances.
    pub fronts: (u64, u64),
    /// Answering instances.
    pub backs: (u64, u64),
    /// Their loads.
    pub loads: Loads,
}

/// What any of some loads is at best, and the least rate among them.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// In every respect at least as good as each of them.
    pub best: DecodeOption,
    /// No load makes way for fewer requests per second.
    pub least_rate: f64,
}

impl Span {
    /// Of a list from quick to slow; `by_pace`: the later the more requests, and nothing else counts.
    pub fn listed(answers: &[DecodeOption], by_pace: bool) -> Span {
        let (first, last) = (answers[0], answers[answers.len() - 1]);
        if by_pace {
            return Span { best: DecodeOption { rate: last.rate, ..first }, least_rate: first.rate };
        }
        let spans = answers.iter().map(|answer| Span { best: *answer, least_rate: answer.rate });
        spans.reduce(Span::together).expect("a list of answers has one")
    }

    /// Of loads that are not listed.
    pub fn between(gap: &LoadGap, question: &Problem) -> Span {
        Span { best: gap.ideal(question.idle(gap.floor.devices).watts), least_rate: 0.0 }
    }

    /// Of the loads of both.
    pub fn together(self, other: Span) -> Span {
        let (a, b) = (self.best, other.best);
        Span {
            best: DecodeOption {
                tpot: a.tpot.min(b.tpot),
                rate: a.rate.max(b.rate),
                watts: a.watts.min(b.watts),
                context: a.context.max(b.context),
                ..a
            },
            least_rate: self.least_rate.min(other.least_rate),
        }
    }
}

impl Region {
    /// Without the ends that there is no room for, instances of the pools taking `front` and `back` devices; `None`
    /// where nothing is left.
    pub fn within(mut self, room: &DeviceCapacity, (front, back): (u64, u64)) -> Option<Region> {
        self.fronts.1 = self.fronts.1.min(room.beside(back, self.backs.0, front)?);
        self.backs.1 = self.backs.1.min(room.beside(front, self.fronts.0, back)?);
        (self.fronts.0 <= self.fronts.1 && self.backs.0 <= self.backs.1).then_some(self)
    }

    /// Deployments in it that have room.
    pub fn count(&self, room: &DeviceCapacity, sizes: (u64, u64)) -> u64 {
        let loads = match self.loads {
            Loads::Listed(from, to) => (to - from) as u64 + 1,
            Loads::Between(gap) => gap.count(),
        };
        loads * self.pools(room, sizes)
    }

    /// Pairs of numbers of instances in it that have room.
    pub fn pools(&self, room: &DeviceCapacity, (front, back): (u64, u64)) -> u64 {
        if room.is_plain(front, back) {
            return self.pairs(room.devices(), (front, back));
        }
        let of = |fronts: u64| room.beside(front, fronts, back).unwrap_or(0).min(self.backs.1);
        (self.fronts.0..=self.fronts.1).map(|fronts| (of(fronts) + 1).saturating_sub(self.backs.0)).sum()
    }

    /// The same where all that counts is how many devices there are.
    fn pairs(&self, all: u64, (front, back): (u64, u64)) -> u64 {
        let Some(room) = all.checked_sub(self.fronts.0 * front) else { return 0 };
        let last = self.backs.1.min(room / back);
        if last < self.backs.0 {
            return 0;
        }
        // Few enough of the one pool leave room for all of the other.
        let ample = (all.saturating_sub(self.fronts.1 * front) / back).min(last);
        let full = (ample + 1).saturating_sub(self.backs.0) * (self.fronts.1 - self.fronts.0 + 1);
        let from = self.backs.0.max(ample + 1);
        let rest = (last + 1).saturating_sub(from);
        let left = all - last * back;
        let scarce = if rest > 0 { floors(rest, front, back, left) - rest * (self.fronts.0 - 1) } else { 0 };
        full + scarce
    }

    /// Whether it holds one deployment.
    pub fn is_single(&self) -> bool {
        let one_load = match self.loads {
            Loads::Listed(from, to) => from == to,
            Loads::Between(gap) => gap.loads.0 == gap.loads.1,
        };
        one_load && self.fronts.0 == self.fronts.1 && self.backs.0 == self.backs.1
    }

    /// Two halves, cut where its members differ most; `spread` is how far apart its loads are, and
    /// `reload` says what the shape of a gap is at another load.
    pub fn halves(self, spread: f64, reload: impl Fn(&DecodeOption, u64) -> DecodeOption) -> [Region; 2] {
        let ratio = |(from, to): (u64, u64)| to as f64 / from as f64;
        let (fronts, backs) = (ratio(self.fronts), ratio(self.backs));
        let one_load = match self.loads {
            Loads::Listed(from, to) => from == to,
            Loads::Between(gap) => gap.loads.0 == gap.loads.1,
        };
        // Geometric: twice as many of few is as far as twice as many of many.
        let cut = |(from, to): (u64, u64)| (((from * to) as f64).sqrt() as u64).clamp(from, to - 1);
        if !one_load && spread >= fronts.max(backs) || fronts.max(backs) == 1.0 {
            let [low, high] = match self.loads {
                Loads::Listed(from, to) => {
                    let middle = from + (to - from) / 2;
                    [Loads::Listed(from, middle), Loads::Listed(middle + 1, to)]
                }
                Loads::Between(gap) => gap.halves(reload).map(Loads::Between),
            };
            return [Region { loads: low, ..self }, Region { loads: high, ..self }];
        }
        if fronts >= backs {
            let middle = cut(self.fronts);
            let low = Region { fronts: (self.fronts.0, middle), ..self };
            return [low, Region { fronts: (middle + 1, self.fronts.1), ..self }];
        }
        let middle = cut(self.backs);
        let low = Region { backs: (self.backs.0, middle), ..self };
        [low, Region { backs: (middle + 1, self.backs.1), ..self }]
    }
}

/// `⌊(step·i + start) / by⌋` summed over `i` below `n`, as Euclid would.
fn floors(mut n: u64, mut by: u64, mut step: u64, mut start: u64) -> u64 {
    let mut sum = 0;
    loop {
        sum += n * (n - 1) / 2 * (step / by) + n * (start / by);
        (step, start) = (step % by, start % by);
        let top = step * n + start;
        if top < by {
            return sum;
        }
        // What is left are points under a line: count them by rows instead of columns.
        (n, start) = (top / by, top % by);
        (by, step) = (step, by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn deployments_are_counted_as_one_by_one(
            (f0, f1, b0, b1) in (1u64..9, 0u64..20, 1u64..9, 0u64..20), all in 1u64..60, front in 1u64..8, back in 1u64..8,
        ) {
            let region = Region { fronts: (f0, f0 + f1), backs: (b0, b0 + b1), loads: Loads::Listed(3, 3) };
            let pairs = (f0..=f0 + f1).flat_map(|f| (b0..=b0 + b1).map(move |b| (f, b)));
            let fits = pairs.filter(|(f, b)| f * front + b * back <= all).count();
            prop_assert_eq!(region.count(&DeviceCapacity::new(all, 1, 0, 1), (front, back)), fits as u64);
        }
    }

    const NONE: DecodeOption = DecodeOption {
        shape: 0,
        formats: 0,
        devices: 1,
        concurrency: 1,
        instances: 0,
        tpot: 1.0,
        rate: 1.0,
        watts: 0.0,
        context: 0.0,
    };

    /// Every deployment of a region, by halving it until nothing is left to halve.
    fn members(region: Region, all: &DeviceCapacity, sizes: (u64, u64)) -> Vec<(u64, u64, u64)> {
        let Some(region) = region.within(all, sizes) else { return vec![] };
        if region.is_single() {
            let load = match region.loads {
                Loads::Listed(place, _) => place as u64,
                Loads::Between(gap) => gap.loads.0,
            };
            return vec![(region.fronts.0, region.backs.0, load)];
        }
        let reload = |answer: &DecodeOption, concurrency| DecodeOption { concurrency, ..*answer };
        let halves = region.halves(2.0, reload);
        halves.into_iter().flat_map(|half| members(half, all, sizes)).collect()
    }

    #[test]
    fn halves_cover_a_region_once() {
        let gap = LoadGap { floor: NONE, loads: (34, 42), step: 2 };
        for (loads, expected) in
            [(Loads::Listed(2, 6), vec![2, 3, 4, 5, 6]), (Loads::Between(gap), vec![34, 36, 38, 40, 42])]
        {
            let region = Region { fronts: (1, 9), backs: (2, 7), loads };
            let room = DeviceCapacity::new(24, 1, 0, 1);
            let mut found = members(region, &room, (2, 3));
            found.sort_unstable();
            let all = (1..=9).flat_map(|f| (2..=7).map(move |b| (f, b))).filter(|(f, b)| 2 * f + 3 * b <= 24);
            let mut wanted: Vec<_> =
                all.flat_map(|(f, b)| expected.iter().map(move |load| (f, b, *load))).collect();
            wanted.sort_unstable();
            assert_eq!(found, wanted);
            assert_eq!(region.count(&room, (2, 3)), wanted.len() as u64);
        }
    }
}
