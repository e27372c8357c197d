//! Spoilt configurations: an error or a graph, never a panic.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// What a spoiler may put in place of a value.
fn spoilt() -> impl Strategy<Value = Option<Value>> {
    let numbers = prop_oneof![
        any::<i64>().prop_map(|number| json!(number)),
        any::<u64>().prop_map(|number| json!(number)),
        any::<f64>().prop_map(|number| json!(number)),
        (0u64..300).prop_map(|number| json!(number)),
        Just(json!(1_000_000)),
        Just(json!(100_000_000)),
    ];
    prop_oneof![
        Just(None),
        Just(Some(json!(null))),
        Just(Some(json!(true))),
        Just(Some(json!("8"))),
        Just(Some(json!([]))),
        Just(Some(json!(["full_attention", "sliding_attention", 3]))),
        Just(Some(json!({"quant_method": 8, "config_groups": {"a": {"weights": {"type": "int"}}}}))),
        numbers.prop_map(Some),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_spoilt_configuration_never_panics(
        model in any::<prop::sample::Index>(),
        spoilers in prop::collection::vec((any::<prop::sample::Index>(), spoilt()), 1..4),
    ) {
        let mut models = SHIPPED.with(Clone::clone);
        let mut map = models.swap_remove(model.index(models.len()));
        for (key, value) in spoilers {
            let keys: Vec<String> = map.keys().cloned().collect();
            let key = key.get(&keys);
            match value {
                Some(value) => map.insert(key.clone(), value),
                None => map.remove(key),
            };
        }
        if let Ok(graph) = ModelConfig::from_map(map, None).and_then(|config| ModelGraph::build(&config)) {
            let parameters = graph.parameters();
            prop_assert!(parameters.active <= parameters.unique);
            prop_assert_eq!(graph.layer_block.len() as u64, graph.layers.value);
        }
    }

    #[test]
    fn a_spoilt_quantization_never_panics(
        model in any::<prop::sample::Index>(),
        key in any::<prop::sample::Index>(),
        value in spoilt(),
    ) {
        let mut models = SHIPPED.with(Clone::clone);
        models.retain(|map| map.contains_key("quantization_config"));
        let mut map = models.swap_remove(model.index(models.len()));
        let quantization = map["quantization_config"].as_object_mut().unwrap();
        let key = key.get(&quantization.keys().cloned().collect::<Vec<_>>()).clone();
        match value {
            Some(value) => quantization.insert(key, value),
            None => quantization.remove(&key),
        };
        let _ = ModelConfig::from_map(map, None);
    }

    #[test]
    fn no_text_panics(text in r#"[\[\]{}":,0-9a-z\\ -]{0,60}"#) {
        let _ = ModelConfig::parse(&text).and_then(|config| ModelGraph::build(&config));
    }
}

thread_local! {
    static SHIPPED: Vec<serde_json::Map<String, Value>> = shipped().into_iter().map(|(_, model)| model.config).collect();
}

/// Keys whose absence the class gives a meaning of its own, by `model_type`: another count is no fault then.
const CLASS_DEFAULTS: &[(&str, &[&str])] = &[
    ("cohere", &["num_key_value_heads", "use_qk_norm"]),
    ("cohere2", &["num_key_value_heads"]),
    ("falcon", &["new_decoder_architecture", "num_kv_heads"]),
    ("falcon_h1", &["head_dim", "mamba_d_ssm", "mamba_rms_norm"]),
    ("falcon_mamba", &["tie_word_embeddings"]),
    ("gemma2", &["head_dim"]),
    (
        "gemma3_text",
        &["hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "vocab_size"],
    ),
    ("gemma4", &["audio_config", "vision_config"]),
    ("glm4_moe", &["attention_bias", "head_dim"]),
    ("granite", &["num_key_value_heads", "tie_word_embeddings"]),
    (
        "granitemoehybrid",
        &[
            "layer_types",
            "mamba_d_state",
            "num_key_value_heads",
            "num_local_experts",
            "shared_intermediate_size",
            "tie_word_embeddings",
        ],
    ),
    ("hunyuan_v1_moe", &["num_key_value_heads", "tie_word_embeddings"]),
    ("lfm2", &["block_ff_dim", "full_attn_idxs"]),
    ("lfm2_moe", &["layer_types"]),
    // Llama files of the MHA era leave the key out, so its absence does mean MHA.
    ("llama", &["num_key_value_heads", "tie_word_embeddings"]),
    ("minicpm", &["mup_denominator", "tie_word_embeddings"]),
    ("minimax", &["head_dim", "layer_types"]),
    ("mistral", &["head_dim"]),
    ("nemotron_h", &["layers_block_type", "moe_latent_size"]),
    ("olmo2", &["num_key_value_heads"]),
    ("phi3", &["num_key_value_heads", "tie_word_embeddings"]),
    ("phimoe", &["attention_bias", "lm_head_bias"]),
    ("qwen2", &["tie_word_embeddings"]),
    ("qwen3", &["tie_word_embeddings"]),
    ("stablelm", &["use_qkv_bias"]),
    ("starcoder2", &["tie_word_embeddings"]),
];

#[test]
fn a_missing_key_yields_another_count_only_where_the_class_has_a_default() {
    let mut faults = vec![];
    let mut unused: BTreeSet<(&str, &str)> =
        CLASS_DEFAULTS.iter().flat_map(|(class, keys)| keys.iter().map(move |key| (*class, *key))).collect();
    for (stem, model) in shipped() {
        for key in model.config.keys() {
            let mut map = model.config.clone();
            map.remove(key);
            let graph = ModelConfig::from_map(map, None).and_then(|config| ModelGraph::build(&config));
            let fault = match graph {
                Ok(graph) if graph.parameters().unique != model.parameters => {
                    format!("{}, not {}", graph.parameters().unique, model.parameters)
                }
                Err(error) if error.key != *key || error.fix.is_empty() => error.to_string(),
                _ => continue,
            };
            let class = model.config["model_type"].as_str().unwrap();
            let default =
                CLASS_DEFAULTS.iter().any(|(known, keys)| *known == class && keys.contains(&key.as_str()));
            if default {
                unused.retain(|known| *known != (class, key.as_str()));
            } else {
                faults.push(format!("{stem} without {key}: {fault}"));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(unused.is_empty(), "no shipped model tells these apart: {unused:?}");
}
