//! How many instances of which shapes use the devices best: an exact knapsack, domain by domain.

/// A shape that may be placed: its devices and what it yields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Item {
    /// Devices of an instance.
    pub devices: u64,
    /// Yield of an instance.
    pub value: f64,
}

/// Picks how many of each item to place on `domains` domains of `domain` devices, for the most value
/// in all; fewer devices decide between equals. Small instances lie inside one domain, larger ones
/// take whole domains.
pub fn pack(items: &[Item], domain: u64, domains: u64) -> Vec<u64> {
    let inside: Vec<usize> = (0..items.len()).filter(|&i| items[i].devices <= domain).collect();
    let whole: Vec<usize> = (0..items.len()).filter(|&i| items[i].devices > domain).collect();
    let one = knapsack(items, &inside, domain, |item| item.devices);
    let mut with_domain = items.to_vec();
    with_domain.push(Item { devices: domain, value: one.value });
    let mut across = whole;
    across.push(items.len());
    let all = knapsack(&with_domain, &across, domains, |item| item.devices.div_ceil(domain));
    let mut counts = vec![0; items.len()];
    for (i, count) in all.counts.into_iter().enumerate() {
        match counts.get_mut(i) {
            Some(slot) => *slot += count,
            None => one.counts.iter().zip(&mut counts).for_each(|(inside, slot)| *slot += inside * count),
        }
    }
    counts
}

struct Filled {
    value: f64,
    counts: Vec<u64>,
}

/// Unbounded knapsack by dynamic programming over the capacity.
fn knapsack(items: &[Item], usable: &[usize], capacity: u64, size: impl Fn(&Item) -> u64) -> Filled {
    let capacity = capacity as usize;
    let mut best = vec![(0.0, None::<usize>); capacity + 1];
    for room in 1..=capacity {
        // Idle devices cost nothing: keep the smaller filling unless a larger one yields more.
        best[room] = (best[room - 1].0, None);
        for &i in usable {
            let taken = size(&items[i]) as usize;
            if taken <= room {
                let value = best[room - taken].0 + items[i].value;
                if value > best[room].0 {
                    best[room] = (value, Some(i));
                }
            }
        }
    }
    let mut counts = vec![0; items.len()];
    let mut room = capacity;
    while room > 0 {
        match best[room].1 {
            Some(i) => {
                counts[i] += 1;
                room -= size(&items[i]) as usize;
            }
            None => room -= 1,
        }
    }
    Filled { value: best[capacity].0, counts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use good_lp::{Expression, Solution, SolverModel, constraint, microlp, variable, variables};
    use proptest::prelude::*;

    fn value(items: &[Item], counts: &[u64]) -> f64 {
        items.iter().zip(counts).map(|(item, &n)| item.value * n as f64).sum()
    }

    /// The same question as an integer programme, solved by branch and bound.
    fn programme(items: &[Item], capacity: u64) -> f64 {
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
        assert_eq!(pack(&items, 8, 1), [2, 1]);
        assert_eq!(pack(&items, 8, 2), [4, 2]);
        assert_eq!(pack(&[Item { devices: 16, value: 1.0 }], 8, 5), [2]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_knapsack_equals_the_integer_programme(
            raw in prop::collection::vec((1u64..9, 1u32..50), 1..5), capacity in 1u64..17,
        ) {
            let items: Vec<_> = raw.iter().map(|&(devices, value)| Item { devices, value: value.into() }).collect();
            let counts = pack(&items, capacity, 1);
            let used: u64 = items.iter().zip(&counts).map(|(item, n)| item.devices * n).sum();
            prop_assert!(used <= capacity);
            prop_assert_eq!(value(&items, &counts), programme(&items, capacity));
        }
    }
}
