//! Feasible segments of one kind of members under a bound on their time, as sets of layers, and a lower bound of the
//! bottleneck, with order and most links relaxed.

use super::MinMaxStage;
use crate::search::shape::smallest;

/// Set of layers at which a partial placement can begin, one bit each.
pub(super) type Begins = u128;

/// Segments of a kind within one time bound, by end.
#[derive(Clone)]
pub(super) struct Fits {
    /// Ends of segments that begin with the first layer.
    pub(super) front: Begins,
    /// Ends of segments that begin later.
    pub(super) inner: Begins,
    /// The first layer at which those can begin; they can begin at every layer after it too.
    pub(super) begin: Vec<u8>,
}

impl Fits {
    pub(super) fn nothing(layers: usize) -> Fits {
        Fits { front: 0, inner: 0, begin: vec![0; layers + 1] }
    }

    /// The segments with `times[to][from]` of at most `most`.
    pub(super) fn new(times: &[Vec<u64>], most: u64) -> Fits {
        let mut fits = Fits::nothing(times.len() - 1);
        for (to, column) in times.iter().enumerate().skip(1) {
            fits.front |= Begins::from(column[0] <= most) << to;
            let inner = &column[1..];
            let skip = inner.partition_point(|time| *time > most);
            if skip < inner.len() {
                fits.inner |= 1 << to;
                fits.begin[to] = skip as u8 + 1;
            }
        }
        fits
    }

    /// Whether a segment from one layer to another is among them.
    pub(super) fn holds(&self, from: usize, to: usize) -> bool {
        let inner = self.inner >> to & 1 == 1 && usize::from(self.begin[to]) <= from;
        if from == 0 { self.front >> to & 1 == 1 } else { inner }
    }

    /// Layers at which segments that end at any of `ends` can begin, except the first layer.
    #[inline(always)]
    pub(super) fn before(&self, ends: Begins) -> Begins {
        let mut ends = ends & self.inner;
        let mut begins = 0;
        // Adjacent ends have adjacent ranges of begins.
        while ends != 0 {
            let low = ends.trailing_zeros();
            let run = (ends >> low).trailing_ones();
            begins |= span(u32::from(self.begin[low as usize]), low + run - 1);
            ends &= !span(low, low + run);
        }
        begins
    }
}

/// Bits from `low` up to but not including `high`.
#[inline(always)]
pub(super) fn span(low: u32, high: u32) -> Begins {
    let below = |bit: u32| if bit >= Begins::BITS { Begins::MAX } else { (1 << bit) - 1 };
    below(high) & !below(low)
}

impl MinMaxStage<'_> {
    /// Lower bound of the bottleneck of `stages` stages, in ticks: below it any members hold too few layers, even if
    /// each sends over its fastest link.
    pub fn floor(&self, stages: usize) -> u64 {
        smallest(0, self.longest().saturating_add(1), |bound| self.covers(bound, stages))
    }

    /// Whether `stages` members hold all layers under `bound`, with order and the other links relaxed.
    fn covers(&self, bound: u64, stages: usize) -> bool {
        let (front, last) = (self.max_layers_onward(bound), self.max_layers(|_| Some(bound)));
        let mut sorted: Vec<usize> = self.groups.kinds().collect();
        sorted.sort_unstable_by_key(|&kind| std::cmp::Reverse(front[kind]));
        self.groups.kinds().any(|end| {
            let mut slots = sorted.iter().flat_map(|&kind| {
                let count = self.groups.members[kind].len() - usize::from(kind == end);
                std::iter::repeat_n(front[kind], count)
            });
            let others: usize = slots.by_ref().take(stages - 1).sum();
            others + last[end] >= self.chain.layers
        })
    }

    /// Maximum layers of each kind under `bound`, including a transfer to the next stage.
    pub(super) fn max_layers_onward(&self, bound: u64) -> Vec<usize> {
        self.max_layers(|kind| {
            let onward = self.links[kind]
                .iter()
                .enumerate()
                .filter(|(next, _)| *next != kind || self.groups.members[kind].len() > 1);
            bound.checked_sub(onward.filter_map(|(_, link)| *link).min()?)
        })
    }

    /// Maximum layers of each kind under its own bound.
    fn max_layers(&self, bound: impl Fn(usize) -> Option<u64>) -> Vec<usize> {
        let most = |kind: usize| {
            let Some(most) = bound(kind) else { return 0 };
            let longest = |(to, column): (usize, &Vec<u64>)| {
                let whole = column.first().is_some_and(|time| *time <= most);
                let from = column.iter().skip(1).position(|time| *time <= most);
                if whole { to } else { from.map_or(0, |from| to - from - 1) }
            };
            self.times[kind].iter().enumerate().map(longest).max().unwrap_or_default()
        };
        self.groups.kinds().map(most).collect()
    }
}
