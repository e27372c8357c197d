//! Lower bound of the bottleneck, with order and most links relaxed.

use super::MinMaxStage;

impl MinMaxStage<'_> {
    /// Lower bound of the bottleneck of `stages` stages, in ticks: below it any members hold too few layers, even if
    /// each sends over its fastest link.
    pub fn floor(&self, stages: usize) -> u64 {
        let (mut low, mut high) = (0, self.longest().saturating_add(1));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.covers(middle, stages) { high = middle } else { low = middle + 1 }
        }
        low
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
