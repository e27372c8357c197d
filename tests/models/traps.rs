//! What configurations say otherwise than it looks: one line per trap.

use super::*;

fn graph(text: &str) -> ModelGraph {
    let config = ModelConfig::parse(&format!("{{{text}}}")).unwrap();
    ModelGraph::build(&config).unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub const WIDTHS: &str =
    r#""vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 4"#;

/// Elements of the tensor that `text` with [`WIDTHS`] has under `name`; nothing: there is none.
fn shape(text: &str, name: &str) -> Option<Vec<u64>> {
    let tensors = graph(&format!("{text}, {WIDTHS}")).tensors();
    tensors.into_iter().find(|tensor| tensor.name == name).map(|tensor| tensor.shape)
}

#[test]
fn a_head_is_tied_or_not_by_the_class_where_the_file_is_silent() {
    for (family, tied) in [
        (r#""model_type": "gemma", "intermediate_size": 32, "num_key_value_heads": 4"#, true),
        (r#""model_type": "gemma2", "intermediate_size": 32, "num_key_value_heads": 4"#, true),
        (r#""model_type": "cohere", "intermediate_size": 32"#, true),
        (r#""model_type": "opt", "ffn_dim": 32, "max_position_embeddings": 8"#, true),
        (r#""model_type": "gpt2", "n_positions": 8"#, true),
        (r#""model_type": "gpt_bigcode", "n_positions": 8"#, true),
        (r#""model_type": "bloom""#, true),
        (r#""model_type": "falcon""#, true),
        (r#""model_type": "mpt""#, true),
        (r#""model_type": "smollm3", "intermediate_size": 32, "num_key_value_heads": 4"#, true),
        (r#""model_type": "gptj", "n_positions": 8"#, false),
        (r#""model_type": "gpt_neox", "intermediate_size": 32"#, false),
        (r#""model_type": "olmo2", "intermediate_size": 32"#, false),
        (r#""model_type": "phi", "intermediate_size": 32"#, false),
        (r#""model_type": "granite", "intermediate_size": 32"#, false),
    ] {
        assert_eq!(graph(&format!("{family}, {WIDTHS}")).tied, tied, "{family}");
    }
}

#[test]
fn a_missing_count_of_key_heads_means_what_the_class_means() {
    for (family, kv_heads) in [
        (r#""model_type": "falcon""#, 1),
        (r#""model_type": "falcon", "num_kv_heads": 4"#, 1),
        (r#""model_type": "falcon", "new_decoder_architecture": true, "num_kv_heads": 2"#, 2),
        (r#""model_type": "falcon", "multi_query": false"#, 4),
        (r#""model_type": "gpt_bigcode", "n_positions": 8"#, 1),
        (r#""model_type": "gpt_bigcode", "n_positions": 8, "multi_query": false"#, 4),
        (r#""model_type": "baichuan", "intermediate_size": 32"#, 4),
        (r#""model_type": "gpt_neox", "intermediate_size": 32"#, 4),
    ] {
        let growing = graph(&format!("{family}, {WIDTHS}")).kv_elements_per_token().growing;
        assert_eq!(growing, 4 * 2 * kv_heads * 4, "{family}");
    }
    // GLM-4's class has 2 heads of 128.
    let silent = graph(&format!(r#""model_type": "glm4", "intermediate_size": 32, {WIDTHS}"#));
    assert_eq!(silent.kv_elements_per_token().growing, 4 * 2 * 2 * 128);
    let silent =
        format!(r#"{{"model_type": "internlm2", "intermediate_size": 32, "bias": false, {WIDTHS}}}"#);
    let error = ModelGraph::build(&ModelConfig::parse(&silent).unwrap()).unwrap_err();
    assert_eq!(error.key, "num_key_value_heads");
}

#[test]
fn tensors_have_the_names_and_layouts_of_their_checkpoints() {
    let gpt2 = r#""model_type": "gpt2", "n_positions": 8"#;
    let neox = r#""model_type": "gpt_neox", "intermediate_size": 32"#;
    let plus =
        r#""model_type": "cohere", "intermediate_size": 32, "num_key_value_heads": 2, "use_qk_norm": true"#;
    let narrow = r#""model_type": "opt", "ffn_dim": 32, "max_position_embeddings": 8, "word_embed_proj_dim": 8,
        "do_layer_norm_before": false"#;
    let qwen = r#""model_type": "qwen", "kv_channels": 4, "intermediate_size": 48"#;
    let stablelm = r#""model_type": "stablelm", "intermediate_size": 32, "num_key_value_heads": 2, "qk_layernorm": true"#;
    for (family, name, expected) in [
        (gpt2, "transformer.h.0.attn.c_attn.weight", &[16, 48][..]),
        (gpt2, "transformer.h.0.attn.c_attn.bias", &[48]),
        (gpt2, "transformer.h.3.mlp.c_proj.weight", &[64, 16]),
        (gpt2, "transformer.wpe.weight", &[8, 16]),
        (neox, "gpt_neox.layers.0.attention.query_key_value.weight", &[48, 16]),
        (plus, "model.layers.0.self_attn.q_norm.weight", &[4, 4]),
        (plus, "model.layers.0.self_attn.k_norm.weight", &[2, 4]),
        (narrow, "model.decoder.embed_tokens.weight", &[64, 8]),
        (narrow, "model.decoder.embed_positions.weight", &[10, 16]),
        (narrow, "model.decoder.project_in.weight", &[16, 8]),
        (narrow, "model.decoder.layers.0.final_layer_norm.bias", &[16]),
        (qwen, "transformer.h.0.mlp.w1.weight", &[24, 16]),
        (stablelm, "model.layers.0.self_attn.k_layernorm.norms.1.weight", &[4]),
    ] {
        assert_eq!(shape(family, name).as_deref(), Some(expected), "{name}");
    }
    assert_eq!(shape(narrow, "model.decoder.final_layer_norm.weight"), None);
}

#[test]
fn windows_follow_the_pattern_of_the_class() {
    let rest = r#""intermediate_size": 32, "num_key_value_heads": 4, "head_dim": 4, "sliding_window": 7"#;
    for (family, layers, full) in [
        (r#""model_type": "gemma2""#, 4, vec![1, 3]),
        (r#""model_type": "gemma3_text""#, 8, vec![5]),
        (r#""model_type": "gemma3_text", "sliding_window_pattern": 3"#, 8, vec![2, 5]),
        (r#""model_type": "cohere2""#, 8, vec![3, 7]),
        (r#""model_type": "olmo3""#, 8, vec![3, 7]),
        (r#""model_type": "exaone4", "sliding_window_pattern": "LLLG""#, 8, vec![3, 7]),
        (r#""model_type": "exaone4", "sliding_window_pattern": 2"#, 4, vec![1, 3]),
    ] {
        let text = format!("{family}, {rest}, {WIDTHS}")
            .replace("\"num_hidden_layers\": 4", &format!("\"num_hidden_layers\": {layers}"));
        let graph = graph(&text);
        let block = graph.blocks.iter().find(|block| block.name == "full_layer").unwrap();
        assert_eq!(block.layers, full, "{family}");
    }
    let turns = r#""model_type": "gpt_neo", "num_layers": 4, "num_heads": 4, "vocab_size": 64, "hidden_size": 16,
        "max_position_embeddings": 8, "attention_types": [[["global", "local"], 2]]"#;
    assert_eq!(graph(turns).layer_block, [0, 1, 0, 1]);
}

#[test]
fn what_contradicts_itself_or_is_not_known_is_refused_by_name() {
    for (text, key) in [
        (r#""model_type": "gpt2", "n_positions": 8, "n_embd": 24"#, "hidden_size"),
        (
            r#""model_type": "mpt", "attn_config": {"attn_type": "multiquery_attention"}"#,
            "attn_config.attn_type",
        ),
        (r#""model_type": "mpt", "attn_config": {"kv_n_heads": 2}"#, "attn_config.kv_n_heads"),
        (
            r#""model_type": "falcon", "new_decoder_architecture": true, "parallel_attn": false"#,
            "num_ln_in_parallel_attn",
        ),
        (r#""model_type": "hunyuan_v1_moe", "intermediate_size": 32, "moe_topk": [2, 1]"#, "moe_topk"),
        (r#""model_type": "chatglm", "rmsnorm": false"#, "rmsnorm"),
        (r#""model_type": "exaone", "num_layers": 4"#, "tie_word_embeddings"),
    ] {
        let text = format!("{{{text}, {WIDTHS}}}");
        let error = ModelGraph::build(&ModelConfig::parse(&text).unwrap()).unwrap_err();
        assert_eq!(error.key, key, "{text}: {error}");
    }
}
