//! Pipeline partition: contiguous stages that minimise the largest stage.

/// Layers of each stage, first to last, with the smallest possible largest stage.
///
/// `layers` holds the cost of each layer; `first` and `last` are added to the outer stages for the embedding and the
/// head. Exact: the smallest bound for which filling stages from the front succeeds.
pub fn balance(layers: &[u64], first: u64, last: u64, stages: usize) -> Vec<u32> {
    assert!((1..=layers.len()).contains(&stages), "at least a layer a stage");
    let total: u64 = layers.iter().sum::<u64>() + first + last;
    let (mut low, mut high) = (0, total);
    while low < high {
        let bound = low + (high - low) / 2;
        if fill(layers, first, last, stages, bound).is_some() { high = bound } else { low = bound + 1 }
    }
    fill(layers, first, last, stages, low).expect("everything fits under the total")
}

fn fill(layers: &[u64], first: u64, last: u64, stages: usize, bound: u64) -> Option<Vec<u32>> {
    let mut cut = Vec::with_capacity(stages);
    let mut next = 0;
    for stage in 0..stages {
        let later = stages - stage - 1;
        let mut load = if stage == 0 { first } else { 0 } + if later == 0 { last } else { 0 };
        let start = next;
        while next < layers.len() - later && (next == start || load + layers[next] <= bound) {
            load += layers[next];
            next += 1;
        }
        if load > bound {
            return None;
        }
        cut.push((next - start) as u32);
    }
    (next == layers.len()).then_some(cut)
}

/// Number of layers of each block in each stage: `[stage][block]`.
pub fn blocks_per_stage(layer_block: &[usize], blocks: usize, stages: &[u32]) -> Vec<Vec<u64>> {
    let mut rest = layer_block;
    let count = |&stage: &u32| {
        let (mine, others) = rest.split_at((stage as usize).min(rest.len()));
        rest = others;
        let mut counts = vec![0; blocks];
        mine.iter().for_each(|&block| counts[block] += 1);
        counts
    };
    stages.iter().map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_heavy_head_takes_layers_off_the_last_stage() {
        assert_eq!(balance(&[1; 8], 0, 0, 2), [4, 4]);
        assert_eq!(balance(&[1; 8], 0, 2, 2), [5, 3]);
        assert_eq!(balance(&[1; 3], 0, 9, 3), [1, 1, 1]);
    }

    fn largest(layers: &[u64], first: u64, last: u64, cut: &[u32]) -> u64 {
        let mut rest = layers;
        let sums = cut.iter().enumerate().map(|(i, &n)| {
            let (mine, others) = rest.split_at(n as usize);
            rest = others;
            let ends = if i == 0 { first } else { 0 } + if i + 1 == cut.len() { last } else { 0 };
            mine.iter().sum::<u64>() + ends
        });
        sums.max().unwrap()
    }

    fn every_cut(layers: usize, stages: usize) -> Vec<Vec<u32>> {
        if stages == 1 {
            return vec![vec![layers as u32]];
        }
        let tails = |n| {
            every_cut(layers - n, stages - 1).into_iter().map(move |tail| [vec![n as u32], tail].concat())
        };
        (1..=layers + 1 - stages).flat_map(tails).collect()
    }

    proptest! {
        #[test]
        fn no_other_cut_is_better(layers in prop::collection::vec(0u64..9, 1..9), first in 0u64..9, last in 0u64..9, stages in 1usize..5) {
            let stages = stages.min(layers.len());
            let cut = balance(&layers, first, last, stages);
            prop_assert_eq!(cut.iter().sum::<u32>() as usize, layers.len());
            prop_assert!(cut.iter().all(|&n| n > 0));
            let best = every_cut(layers.len(), stages).iter().map(|cut| largest(&layers, first, last, cut)).min().unwrap();
            prop_assert_eq!(largest(&layers, first, last, &cut), best);
        }
    }
}
