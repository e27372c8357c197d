//! Things that are due at a time, in order of their times.

use std::cmp::Ordering;

/// Something that is due at a time. Of two, the greater is due first, as a heap gives the greatest first.
pub(super) struct Due<T> {
    /// Seconds from the start of the run.
    pub time_s: f64,
    /// Of two at the same time, the lower comes first.
    pub order: (u64, usize),
    pub what: T,
}

impl<T> PartialEq for Due<T> {
    fn eq(&self, other: &Due<T>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Due<T> {}

impl<T> PartialOrd for Due<T> {
    fn partial_cmp(&self, other: &Due<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Due<T> {
    fn cmp(&self, other: &Due<T>) -> Ordering {
        other.time_s.total_cmp(&self.time_s).then(other.order.cmp(&self.order))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BinaryHeap;

    use super::*;

    #[test]
    fn the_earliest_comes_first_and_of_those_the_lowest() {
        let all = [(2.0, (0, 0), 'd'), (1.0, (1, 1), 'c'), (1.0, (1, 0), 'b'), (0.5, (9, 9), 'a')];
        let mut heap: BinaryHeap<Due<char>> =
            all.into_iter().map(|(time_s, order, what)| Due { time_s, order, what }).collect();
        let order: String = std::iter::from_fn(|| heap.pop()).map(|due| due.what).collect();
        assert_eq!(order, "abcd");
    }
}
