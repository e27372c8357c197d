//! Maximum throughput of instances on a number of devices: an exact knapsack.

/// An instance configuration as a knapsack item: its devices and its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Item {
    pub devices: u64,
    pub value: f64,
}

/// Maximum value for every capacity up to a limit: an unbounded knapsack by dynamic programming.
pub struct Table {
    sizes: Vec<u64>,
    best: Vec<(f64, Option<usize>)>,
}

impl Table {
    /// Fills the table for every capacity up to `capacity`.
    pub fn new(items: &[Item], capacity: u64) -> Table {
        let mut best = vec![(0.0, None::<usize>); capacity as usize + 1];
        for devices in 1..best.len() {
            // Idle devices cost nothing: keep the smaller filling unless a larger one has a higher value.
            best[devices] = (best[devices - 1].0, None);
            for (i, item) in items.iter().enumerate() {
                let taken = item.devices as usize;
                if taken <= devices {
                    let value = best[devices - taken].0 + item.value;
                    if value > best[devices].0 {
                        best[devices] = (value, Some(i));
                    }
                }
            }
        }
        Table { sizes: items.iter().map(|item| item.devices).collect(), best }
    }

    pub fn value(&self, devices: u64) -> f64 {
        self.best[devices as usize].0
    }

    /// Number of each item in the filling with this value.
    pub fn counts(&self, devices: u64) -> Vec<u64> {
        let (mut counts, mut devices) = (vec![0; self.sizes.len()], devices as usize);
        while devices > 0 {
            match self.best[devices].1 {
                Some(i) => {
                    counts[i] += 1;
                    devices -= self.sizes[i] as usize;
                }
                None => devices -= 1,
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::capacity::DeviceCapacity;
    use good_lp::{Expression, Solution, SolverModel, constraint, microlp, variable, variables};
    use proptest::prelude::*;

    fn value(items: &[Item], counts: &[u64]) -> f64 {
        items.iter().zip(counts).map(|(item, &n)| item.value * n as f64).sum()
    }

    /// The same problem as an integer program, solved by branch and bound.
    fn program(items: &[Item], capacity: u64) -> f64 {
        let mut vars = variables!();
        let counts: Vec<_> =
            items.iter().map(|_| vars.add(variable().integer().min(0).max(capacity as f64))).collect();
        let total: Expression = items.iter().zip(&counts).map(|(item, &n)| item.value * n).sum();
        let used: Expression = items.iter().zip(&counts).map(|(item, &n)| item.devices as f64 * n).sum();
        let solved =
            vars.maximise(total).using(microlp).with(constraint!(used <= capacity as f64)).solve().unwrap();
        items.iter().zip(&counts).map(|(item, &n)| item.value * solved.value(n).round()).sum()
    }

    #[test]
    fn mixed_shapes_fill_what_equal_ones_leave() {
        let items = [Item { devices: 3, value: 10.0 }, Item { devices: 2, value: 6.0 }];
        assert_eq!(DeviceCapacity::new(8, 1, 0, 1).pack(&items), [2, 1]);
        assert_eq!(DeviceCapacity::new(8, 1, 0, 2).pack(&items), [4, 2]);
        assert_eq!(DeviceCapacity::new(8, 1, 0, 5).pack(&[Item { devices: 16, value: 1.0 }]), [2]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_knapsack_equals_the_integer_programme(
            raw in prop::collection::vec((1u64..9, 1u32..50), 1..5), capacity in 1u64..17,
        ) {
            let items: Vec<_> = raw.iter().map(|&(devices, value)| Item { devices, value: value.into() }).collect();
            let counts = DeviceCapacity::new(capacity, 1, 0, 1).pack(&items);
            let used: u64 = items.iter().zip(&counts).map(|(item, n)| item.devices * n).sum();
            prop_assert!(used <= capacity);
            prop_assert_eq!(value(&items, &counts), program(&items, capacity));
        }
    }
}
