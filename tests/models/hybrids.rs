//! Hybrid families by hand: what the collection has no row for, and what is refused.

use mantile::graph::count::KvElements;
use mantile::graph::operator::Operator;

use super::*;

fn graph(text: &str) -> ModelGraph {
    ModelGraph::build(&ModelConfig::parse(text).unwrap()).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    ModelGraph::build(&ModelConfig::parse(text).unwrap()).unwrap_err().key
}

/// Kimi-Linear-48B-A3B: 20 layers with a state, 7 with a latent, experts in all but the first.
const KIMI: &str = r#"{"model_type": "kimi_linear", "vocab_size": 163840, "hidden_size": 2304, "head_dim": 72,
    "intermediate_size": 9216, "num_hidden_layers": 27, "num_attention_heads": 32, "num_key_value_heads": 32,
    "kv_lora_rank": 512, "q_lora_rank": null, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "moe_intermediate_size": 1024, "num_experts": 256, "num_experts_per_token": 8, "num_shared_experts": 1,
    "first_k_dense_replace": 1, "model_max_length": 1048576, "linear_attn_config": {"head_dim": 128, "num_heads": 32,
    "short_conv_kernel_size": 4, "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
    "kda_layers": [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25, 26]}}"#;

#[test]
fn kimi_linear_by_hand() {
    let graph = graph(KIMI);
    let (h, wide) = (2304, 32 * 128);
    let kda = 4 * wide * h + 3 * wide * 4 + 2 * (128 * h + wide * 128) + wide + 32 + 32 * h + 128;
    let latent = 32 * 192 * h + 576 * h + 512 + 32 * 256 * 512 + wide * h;
    let moe = 256 * h + 257 * 3 * 1024 * h;
    let norms = (2 * 27 + 1) * h;
    let unique = 2 * 163_840 * h + 20 * kda + 7 * latent + 26 * moe + 3 * 9216 * h + norms;
    assert_eq!(graph.parameters().unique, unique);
    assert_eq!(graph.parameters().buffers, 26 * 256);
    assert_eq!(graph.kv_elements_per_token(), KvElements { growing: 7 * 576, windowed: 0 });
    let state = 4 * 32 * 128 * 128 + 2 * 3 * wide * 4;
    assert_eq!(graph.state_bytes_per_sequence(), 20 * state);
    assert_eq!(graph.max_context, Some(1_048_576));
    assert_eq!(refused(&KIMI.replace("[4, 8,", "[8,")), "linear_attn_config.kda_layers");
}

#[test]
fn openelm_grows_layer_by_layer() {
    // Widths: 0.5 and 2.5 times 640 are 320 and 1600; to multiples of 256 that is 256, a tenth too little, and 1536.
    let text = r#"{"model_type": "openelm", "model_dim": 640, "num_transformer_layers": 2, "head_dim": 64,
        "vocab_size": 100, "num_query_heads": [4, 8], "num_kv_heads": [1, 2], "ffn_multipliers": [0.5, 2.5]}"#;
    let graph = graph(text);
    let first = (4 + 2) * 64 * 640 + 4 * 64 * 640 + 3 * 512 * 640;
    let second = (8 + 4) * 64 * 640 + 8 * 64 * 640 + 3 * 1536 * 640;
    let norms = 2 * (2 * 640 + 2 * 64) + 640;
    assert_eq!(graph.parameters().unique, 100 * 640 + first + second + norms);
    assert_eq!(graph.kv_elements_per_token().growing, (1 + 2) * 2 * 64);
}

#[test]
fn a_layer_that_shares_a_cache_keeps_none_and_writes_none() {
    let text = r#"{"model_type": "gemma4_text", "hidden_size": 32, "num_hidden_layers": 4, "vocab_size": 64,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "global_head_dim": 16,
        "intermediate_size": 48, "hidden_size_per_layer_input": 0, "num_kv_shared_layers": 2,
        "use_double_wide_mlp": true,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]}"#;
    let graph = graph(text);
    assert_eq!(graph.kv_elements_per_token(), KvElements { growing: 2 * 2 * 16, windowed: 2 * 2 * 8 });
    for block in &graph.blocks {
        let shares = block.layers[0] >= 2;
        assert_eq!(block.caches.is_empty(), shares);
        let mut attention = block.graph.node_weights().filter_map(|node| match node.operator {
            Operator::Attention(dims) => Some(dims.shared),
            _ => None,
        });
        assert_eq!(attention.next(), Some(shares));
        let down = block.weights().into_iter().find(|weight| weight.name == "mlp.down_proj.weight").unwrap();
        assert_eq!(down.shape, [32, if shares { 2 * 48 } else { 48 }]);
    }
    assert_eq!(refused(&text.replace(r#"layers": 2,"#, r#"layers": 4,"#)), "num_kv_shared_layers");
}

#[test]
fn a_pattern_rules_over_keys_of_layers_that_it_lacks() {
    // Nemotron-H's class has experts by default; without an E in the pattern there are none.
    let text = r#"{"model_type": "nemotron_h", "hidden_size": 16, "vocab_size": 32, "num_hidden_layers": 3,
        "hybrid_override_pattern": "M-*", "intermediate_size": 24, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 4, "mamba_num_heads": 4, "mamba_head_dim": 8, "n_groups": 2,
        "ssm_state_size": 8, "n_routed_experts": 8, "num_experts_per_tok": 2}"#;
    let names = |graph: &ModelGraph| graph.blocks.iter().map(|block| block.name).collect::<Vec<_>>();
    assert_eq!(names(&graph(text)), ["recurrent_layer", "dense_layer", "full_layer"]);
    assert_eq!(refused(&text.replace("M-*", "M-X")), "hybrid_override_pattern[2]");
    assert_eq!(refused(&text.replace("M-*", "M-*M")), "num_hidden_layers");
}

#[test]
fn forms_that_are_not_understood_are_refused_by_their_keys() {
    let jamba = r#"{"model_type": "jamba", "hidden_size": 16, "num_hidden_layers": 4, "vocab_size": 32,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 24, KEY}"#;
    for (key, place) in [
        (r#""sliding_window": 8"#, "sliding_window"),
        (r#""mamba_inner_layernorms": false"#, "mamba_inner_layernorms"),
        (r#""attn_layer_period": 4, "attn_layer_offset": 4"#, "attn_layer_offset"),
        (r#""hyper": 3"#, "hyper"),
    ] {
        assert_eq!(refused(&jamba.replace("KEY", key)), place);
    }
    let granite = r#"{"model_type": "granitemoehybrid", "hidden_size": 16, "num_hidden_layers": 2, "vocab_size": 32,
        "num_attention_heads": 4, "intermediate_size": 24, "mamba_n_heads": 8, KEY}"#;
    for (key, place) in [
        (r#""mamba_d_head": 8"#, "mamba_n_heads"),
        (r#""layer_types": ["mamba"]"#, "layer_types"),
        (r#""layer_types": ["mamba", "conv"]"#, "layer_types[1]"),
    ] {
        assert_eq!(refused(&granite.replace("KEY", key)), place);
    }
}
