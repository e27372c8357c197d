//! What recurrent layers keep of a sequence: as the collection states it, and that it never grows or divides wrongly.

use mantile::graph::arch::ARCHITECTURES;
use mantile::graph::cache::Cache;
use mantile::graph::model::Block;

use super::facts::{collection, rows};
use super::*;

/// `conv 8192 x 4 + ssm 524288` → elements of the convolution's state and of the other.
fn stated(text: &str) -> (u64, u64) {
    let product = |part: &str| -> u64 {
        let words = part.split(" (").next().unwrap().split_whitespace();
        words.filter_map(|word| word.parse::<u64>().ok()).product()
    };
    let mut sums = (0, 0);
    for part in text.split(" + ") {
        let sum = if part.starts_with("conv") { &mut sums.0 } else { &mut sums.1 };
        *sum += product(part);
    }
    sums
}

/// The same of a block.
fn kept(block: &Block) -> (u64, u64) {
    let mut sums = (0, 0);
    for cache in &block.caches {
        if let Cache::State { name, elements, .. } = cache {
            let sum = if *name == "conv" { &mut sums.0 } else { &mut sums.1 };
            *sum += elements.value;
        }
    }
    sums
}

#[test]
fn recurrent_layers_keep_what_the_collection_states() {
    let Some(folder) = collection() else { return };
    let mut compared = 0;
    for row in rows(&folder.join("facts.csv")) {
        let text = &row["linear_state_elems_per_seq_per_layer"];
        let known = ARCHITECTURES.iter().any(|known| known.model_type == row["model_type"]);
        if text.is_empty() || !known {
            continue;
        }
        let name = &row["hf_id"];
        let config = fs::read_to_string(folder.join(&row["config_file"])).unwrap();
        let Ok(graph) = ModelConfig::parse(&config).and_then(|config| ModelGraph::build(&config)) else {
            continue;
        };
        let recurrent: Vec<&Block> = graph.blocks.iter().filter(|block| kept(block) != (0, 0)).collect();
        let layers: usize = recurrent.iter().map(|block| block.layers.len()).sum();
        assert_eq!(Some(layers), row["linear_or_ssm_layers"].parse().ok(), "{name}");
        for block in recurrent {
            assert_eq!(kept(block), stated(text), "{name}");
        }
        compared += 1;
    }
    assert!(compared >= 20, "only {compared} compared");
}

/// One small model of each kind of recurrent layer.
const SMALL: &[(&str, &str)] = &[
    (
        "jamba",
        r#""num_attention_heads": 4, "num_key_value_heads": 2, "num_experts": 1, "intermediate_size": 16"#,
    ),
    (
        "bamba",
        r#""num_attention_heads": 4, "num_key_value_heads": 2, "mamba_n_heads": 4, "mamba_n_groups": 2,
        "intermediate_size": 16, "attn_layer_indices": [1]"#,
    ),
    (
        "falcon_h1",
        r#""num_attention_heads": 4, "num_key_value_heads": 2, "mamba_n_heads": 4, "mamba_d_ssm": 32,
        "intermediate_size": 16"#,
    ),
    (
        "qwen3_5_text",
        r#""num_attention_heads": 4, "num_key_value_heads": 2, "linear_num_key_heads": 2,
        "linear_num_value_heads": 4, "intermediate_size": 16"#,
    ),
    (
        "minimax",
        r#""num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 2, "intermediate_size": 16"#,
    ),
    ("recurrent_gemma", r#""num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 16"#),
    (
        "lfm2",
        r#""num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 16, "full_attn_idxs": [1]"#,
    ),
];

#[test]
fn the_parts_of_a_state_on_two_devices_make_up_the_whole() {
    for (model_type, keys) in SMALL {
        let text = format!(
            r#"{{"model_type": "{model_type}", "hidden_size": 16, "num_hidden_layers": 6, "vocab_size": 32, {keys}}}"#
        );
        let graph = ModelGraph::build(&ModelConfig::parse(&text).unwrap());
        let graph = graph.unwrap_or_else(|error| panic!("{model_type}: {error}"));
        let states: Vec<&Cache> = graph
            .blocks
            .iter()
            .flat_map(|block| &block.caches)
            .filter(|cache| cache.state_bytes() > 0)
            .collect();
        assert!(!states.is_empty(), "{model_type}");
        for state in states {
            let Cache::State { parts, .. } = state else { unreachable!("only states have state bytes") };
            assert_eq!(state.elements_per_token(), 0, "{model_type}");
            let parts = parts.value.min(2);
            assert_eq!(state.local(2).state_bytes() * parts, state.state_bytes(), "{model_type}");
        }
    }
}
