//! Instances of two sizes in one system: how many of one fit next to each count of the other.

use std::sync::Arc;

/// How many of the second size fit next to each count of the first: never more next to more.
#[derive(Debug)]
pub struct CapacityTable {
    seconds: Vec<u64>,
    /// Sum of these next to fewer than each count.
    below: Vec<u64>,
}

impl CapacityTable {
    /// The table of `seconds` by count of the first.
    pub fn new(seconds: Vec<u64>) -> CapacityTable {
        let sums = seconds.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        CapacityTable { below: [0].into_iter().chain(sums).collect(), seconds }
    }

    fn next_to(&self, count: u64) -> Option<u64> {
        self.seconds.get(count as usize).copied()
    }

    /// Pairs of counts of both ranges that fit.
    fn pairs(&self, firsts: (u64, u64), (fewest, most): (u64, u64)) -> u64 {
        let end = (firsts.1 + 1).min(self.seconds.len() as u64) as usize;
        let start = (firsts.0 as usize).min(end);
        let counts = &self.seconds[start..end];
        // Next to these the most fit, and next to those the fewest.
        let all = counts.partition_point(|most_fit| *most_fit >= most);
        let any = counts.partition_point(|most_fit| *most_fit >= fewest);
        if any < all || most < fewest {
            return 0;
        }
        let between = self.below[start + any] - self.below[start + all] + (any - all) as u64;
        all as u64 * (most + 1 - fewest) + between - (any - all) as u64 * fewest
    }
}

/// How many instances of two sizes fit together.
#[derive(Clone, Debug)]
pub enum PairCapacity {
    /// A number of units, and the units of one instance of each size.
    Line(u64, (u64, u64)),
    /// Of the second size next to the first, and of the first next to the second.
    Tables(Arc<CapacityTable>, Arc<CapacityTable>),
}

impl PairCapacity {
    /// Maximum number of the second size next to `count` of the first; `None` if these do not fit.
    pub fn next_to_first(&self, count: u64) -> Option<u64> {
        match self {
            PairCapacity::Line(units, each) => on(*units, *each, count),
            PairCapacity::Tables(seconds, _) => seconds.next_to(count),
        }
    }

    /// The same of the first size next to the second.
    pub fn next_to_second(&self, count: u64) -> Option<u64> {
        match self {
            PairCapacity::Line(units, (first, second)) => on(*units, (*second, *first), count),
            PairCapacity::Tables(_, firsts) => firsts.next_to(count),
        }
    }

    /// Number of pairs of counts of both ranges, ends included, that fit. The first count is at least one.
    pub fn pairs(&self, firsts: (u64, u64), seconds: (u64, u64)) -> u64 {
        match self {
            PairCapacity::Line(units, each) => on_line(*units, *each, firsts, seconds),
            PairCapacity::Tables(table, _) => table.pairs(firsts, seconds),
        }
    }
}

/// Instances of the second size next to `count` of the first in a straight line of units.
fn on(units: u64, (first, second): (u64, u64), count: u64) -> Option<u64> {
    Some(units.checked_sub(count.checked_mul(first)?)? / second)
}

/// Pairs of counts of both ranges that fit in a straight line of units.
fn on_line(all: u64, (first, second): (u64, u64), firsts: (u64, u64), seconds: (u64, u64)) -> u64 {
    let Some(left) = all.checked_sub(firsts.0 * first) else { return 0 };
    let last = seconds.1.min(left / second);
    if last < seconds.0 {
        return 0;
    }
    // With at most this many of the first, every count of the second fits.
    let ample = (all.saturating_sub(firsts.1 * first) / second).min(last);
    let full = (ample + 1).saturating_sub(seconds.0) * (firsts.1 - firsts.0 + 1);
    let from = seconds.0.max(ample + 1);
    let rest = (last + 1).saturating_sub(from);
    let rest_of_all = all - last * second;
    let scarce = if rest > 0 { floors(rest, first, second, rest_of_all) - rest * (firsts.0 - 1) } else { 0 };
    full + scarce
}

/// Sum of `⌊(step·i + start) / by⌋` over `i` below `n`, by the Euclidean algorithm.
fn floors(mut n: u64, mut by: u64, mut step: u64, mut start: u64) -> u64 {
    let mut sum = 0;
    loop {
        sum += n * (n - 1) / 2 * (step / by) + n * (start / by);
        (step, start) = (step % by, start % by);
        let top = step * n + start;
        if top < by {
            return sum;
        }
        // The rest are lattice points under a line: count them by rows instead of columns.
        (n, start) = (top / by, top % by);
        (by, step) = (step, by);
    }
}

#[cfg(test)]
mod tests {
    use crate::search::capacity::DeviceCapacity;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pairs_are_counted_as_one_by_one(
            (unit, units, rest, blocks) in (1u64..9, 1u64..3, 0u64..8, 1u64..20), one in 1u64..12, two in 1u64..12,
            (first, more) in (1u64..9, 0u64..30), (second, others) in (1u64..9, 0u64..30),
        ) {
            let capacity = DeviceCapacity::new(unit, units, rest % unit, blocks);
            let (one, two) = (one.min(capacity.devices()), two.min(capacity.devices()));
            let pair = capacity.pair(one, two);
            let (firsts, seconds) = ((first, first + more), (second, second + others));
            let fits = |count: u64| capacity.next_to(one, count, two);
            for count in 0..=firsts.1 {
                prop_assert_eq!(pair.next_to_first(count), fits(count));
                prop_assert_eq!(pair.next_to_second(count), capacity.next_to(two, count, one));
            }
            let counted = (firsts.0..=firsts.1)
                .map(|count| fits(count).map_or(0, |most| (most.min(seconds.1) + 1).saturating_sub(seconds.0)))
                .sum::<u64>();
            prop_assert_eq!(pair.pairs(firsts, seconds), counted);
        }
    }
}
