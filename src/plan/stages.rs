//! Pipeline partition: contiguous stages that minimise the largest stage.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use crate::graph::model::{Block, ModelGraph};

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

/// Of `layers`, those of each block whose shared weights another of them has as well: a stage holds these once. Empty
/// where no layers share weights.
pub fn sharing_layers(graph: &ModelGraph, layers: Range<usize>) -> Vec<u64> {
    if graph.stores.is_empty() {
        return vec![];
    }
    let shared: Vec<u64> = graph.blocks.iter().map(Block::shared_elements).collect();
    // The run that reads the most weights of a module reads all that the others read.
    let mut most: HashMap<&str, usize> = HashMap::new();
    let mut counts = vec![0; graph.blocks.len()];
    for layer in layers {
        let block = graph.layer_block[layer];
        match most.entry(graph.stores[layer].as_str()) {
            Entry::Vacant(new) => {
                new.insert(block);
            }
            Entry::Occupied(mut known) if shared[block] > shared[*known.get()] => {
                counts[known.insert(block)] += 1;
            }
            Entry::Occupied(_) => counts[block] += 1,
        }
    }
    counts
}

/// The same for each stage; empty where no layers share weights.
pub fn sharing_per_stage(graph: &ModelGraph, stages: &[u32]) -> Vec<Vec<u64>> {
    if graph.stores.is_empty() {
        return vec![];
    }
    let mut from = 0;
    let one = |&stage: &u32| {
        let to = (from + stage as usize).min(graph.layer_block.len());
        let counts = sharing_layers(graph, from..to);
        from = to;
        counts
    };
    stages.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::model::ModelConfig;
    use proptest::prelude::*;

    #[test]
    fn a_heavy_head_takes_layers_off_the_last_stage() {
        assert_eq!(balance(&[1; 8], 0, 0, 2), [4, 4]);
        assert_eq!(balance(&[1; 8], 0, 2, 2), [5, 3]);
        assert_eq!(balance(&[1; 3], 0, 9, 3), [1, 1, 1]);
    }

    #[test]
    fn a_stage_holds_a_layer_once_however_often_it_runs_there() {
        let text = r#"{"model_type": "dory", "hidden_size": 6, "num_hidden_layers": 4, "vocab_size": 11,
            "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 5, "intermediate_size": 10,
            "n_input_layers": 1, "n_output_layers": 1, "n_recurrent_loops": 3}"#;
        let graph = ModelGraph::build(&ModelConfig::parse(text).unwrap()).unwrap();
        let sum = |layers| sharing_layers(&graph, layers).iter().sum::<u64>();
        // Runs: layer 0, then 1 2 1 2 1 2, then 3.
        assert_eq!([sum(0..8), sum(0..3), sum(2..4), sum(3..8)], [4, 0, 0, 2]);
        assert_eq!(sharing_per_stage(&graph, &[3, 5])[1].iter().sum::<u64>(), 2);
        let whole = blocks_per_stage(&graph.layer_block, graph.blocks.len(), &[8]);
        assert_eq!(whole[0].iter().sum::<u64>() - sum(0..8), 4);
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
