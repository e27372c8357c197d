//! Configurations that a current version of transformers has read and written again: the same model under other keys.

use super::*;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resaved {
    source: String,
    config: serde_json::Map<String, Value>,
}

/// What a model is, whichever keys say it: counts, caches, tensors.
fn essence(stem: &str, config: &ModelConfig) -> (String, Shapes) {
    let inspection = Inspection::of(&built(stem, config));
    let Inspection { parameters, kv_bytes_per_token, kv_bytes_per_token_windowed, .. } = inspection;
    let states = inspection.state_bytes_per_sequence;
    let windows: Vec<_> = inspection.blocks.iter().map(|block| (&block.layers, block.window)).collect();
    let figures =
        format!("{parameters:?} {kv_bytes_per_token} {kv_bytes_per_token_windowed} {states} {windows:?}");
    (figures, shapes(&inspection))
}

#[test]
fn a_configuration_written_again_is_the_same_model() {
    let shipped = shipped();
    let files = json_files(&root().join("tests/models/resaved"));
    assert!(files.len() >= 8, "only {}", files.len());
    for file in files {
        let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
        let again: Resaved = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert!(again.source.contains("transformers"), "{stem}");
        let model = &shipped.iter().find(|(name, _)| *name == stem).unwrap().1;
        assert_ne!(again.config, model.config, "{stem}: nothing was written otherwise");
        let original = essence(&stem, &model.model_config().unwrap());
        let again = essence(&stem, &ModelConfig::from_map(again.config, None).unwrap());
        assert!(original == again, "{stem}: {} is not {}", again.0, original.0);
    }
}

/// Keys of current checkpoints that say nothing of the model.
const INERT: &str = r#"{"image_seq_length": 576, "video_seq_length": 288, "output_gate_type": "swish"}"#;

#[test]
fn keys_that_say_nothing_of_the_model_change_nothing() {
    let inert: serde_json::Map<String, Value> = serde_json::from_str(INERT).unwrap();
    for (stem, model) in shipped() {
        let mut config = model.config.clone();
        config.extend(inert.clone());
        let with = essence(&stem, &ModelConfig::from_map(config, None).unwrap());
        assert!(with == essence(&stem, &model.model_config().unwrap()), "{stem}");
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Varied {
    option: String,
    parameters: u64,
    config: serde_json::Map<String, Value>,
}

/// Small models with one option of their class away from its default; parameters as transformers 5.23.0 builds them.
#[test]
fn options_of_classes_have_the_parameters_that_the_class_builds() {
    let text = fs::read_to_string(root().join("tests/models/varied.json")).unwrap();
    let rows: Vec<Varied> = serde_json::from_str(&text).unwrap();
    assert!(rows.len() >= 30, "only {}", rows.len());
    let mut faults = vec![];
    for row in rows {
        let class = row.config["model_type"].as_str().unwrap_or_default().to_owned();
        let config = ModelConfig::from_map(row.config, None).unwrap();
        match ModelGraph::build(&config) {
            Ok(graph) => {
                let ours = graph.parameters().unique;
                faults.extend(differs(&class, &row.option, &ours, &row.parameters));
            }
            Err(error) => faults.push(format!("{class}, {}: {error}", row.option)),
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn what_a_layer_states_itself_is_named_where_it_is_not_understood() {
    let file = root().join("tests/models/resaved/google--gemma-4-E2B-it.json");
    let again: Resaved = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    for (layer, own, key) in [
        ("04", serde_json::json!({"head_dim": 512, "hyper": 3}), "per_layer_config.04.hyper"),
        ("99", serde_json::json!({"head_dim": 512}), "per_layer_config"),
        ("04", serde_json::json!(7), "per_layer_config.04"),
    ] {
        let mut config = again.config.clone();
        config["text_config"]["per_layer_config"][layer] = own;
        let config = ModelConfig::from_map(config, None).unwrap();
        let error = ModelGraph::build(&config).unwrap_err();
        assert!(error.key.ends_with(key), "{error}");
    }
}
