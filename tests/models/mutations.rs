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

#[test]
fn a_missing_key_never_yields_another_count() {
    for (stem, model) in shipped() {
        for key in model.config.keys() {
            // Llama files of the MHA era leave the key out, so its absence does mean MHA.
            if model.config["model_type"] == "llama" && key == "num_key_value_heads" {
                continue;
            }
            let mut map = model.config.clone();
            map.remove(key);
            match ModelConfig::from_map(map, None).and_then(|config| ModelGraph::build(&config)) {
                Ok(graph) => assert_eq!(graph.parameters().unique, model.parameters, "{stem} without {key}"),
                Err(error) => {
                    assert!(!error.fix.is_empty(), "{stem} without {key}: {error}");
                    assert_eq!(error.key, *key, "{stem}: {error}");
                }
            }
        }
    }
}
