//! Spoilt configurations: an error or a graph, never a panic.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use serde_json::{Map, json};

use super::facts::collection;
use super::*;

/// Cases of each property; `PROPTEST_CASES` sets another number.
const CASES: u32 = 1_000;

/// What building and laying open one configuration may take. Builds for tests are several times slower, on a
/// busy machine more; the bound is there to find what grows beyond all measure, not to time the machine.
const BOUND: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1_000 } else { 50 });

/// How often a slow case is timed again before it counts: a busy machine is slow once, a slow case always.
const AGAIN: usize = 5;

/// No machine is so busy that it takes so many times the bound.
const BEYOND: u32 = 20;

/// Simpler cases tried after a failure: slow ones would take hours otherwise.
const SIMPLER: u32 = 100;

/// What a spoiler puts in place of a value.
#[derive(Clone, Debug)]
enum Spoilt {
    /// Nothing: the key is gone.
    Dropped,
    /// What a model class may take for another form of the architecture: another number, `null`, a flag.
    Other(Value),
    /// What no number can be: text, a negative, a fraction, a list, an object.
    Wrong(Value),
    /// The value itself, one level too deep.
    Nested,
}

fn spoilt() -> impl Strategy<Value = Spoilt> {
    let other = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(0)),
        any::<u64>().prop_map(|number| json!(number)),
        (0u64..300).prop_map(|number| json!(number)),
        Just(json!(10_000)),
        Just(json!(1_000_000)),
        Just(json!(100_000_000)),
    ];
    let wrong = prop_oneof![
        Just(json!("8")),
        Just(json!("")),
        Just(json!([])),
        Just(json!({})),
        Just(json!(["full_attention", "sliding_attention", 3])),
        Just(json!({"quant_method": 8, "config_groups": {"a": {"weights": {"type": "int"}}}})),
        (i64::MIN..-1).prop_map(|number| json!(number)),
        Just(json!(1e300)),
        Just(json!(0.5)),
    ];
    prop_oneof![
        2 => Just(Spoilt::Dropped),
        4 => other.prop_map(Spoilt::Other),
        4 => wrong.prop_map(Spoilt::Wrong),
        1 => Just(Spoilt::Nested),
    ]
}

/// Tries `property` on draws that are always the same ones.
fn each<S: Strategy>(strategy: S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { Config::default().cases } else { CASES };
    let config = Config { cases, failure_persistence: None, max_shrink_iters: SIMPLER, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    match runner.run(&strategy, property) {
        Ok(()) => {}
        Err(TestError::Fail(why, _)) => panic!("{why}"),
        Err(TestError::Abort(why)) => panic!("{why}"),
    }
}

/// Shipped configurations and, where they lie beside the repository, those of the collection: all families.
fn real() -> Vec<(String, Map<String, Value>)> {
    let mut real: Vec<_> = shipped().into_iter().map(|(stem, model)| (stem, model.config)).collect();
    if let Some(folder) = collection() {
        for file in json_files(&folder.join("configs")) {
            let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
            let text =
                fs::read_to_string(&file).unwrap().replace("-Infinity", "null").replace("Infinity", "null");
            real.push((stem, serde_json::from_str(&text).unwrap()));
        }
    }
    real
}

/// Where a value lies: keys, and places in lists.
type Place = Vec<String>;

/// Every key of an object and of those inside; of lists of objects the first, as the others are like it.
fn places(map: &Map<String, Value>, above: &Place, found: &mut Vec<Place>) {
    for (key, value) in map {
        let place = [above.as_slice(), std::slice::from_ref(key)].concat();
        found.push(place.clone());
        match value {
            Value::Object(inside) if inside.len() < 100 => places(inside, &place, found),
            Value::Array(list) => {
                if let Some(Value::Object(inside)) = list.first() {
                    places(inside, &[place, vec!["0".to_owned()]].concat(), found);
                }
            }
            _ => {}
        }
    }
}

/// Spoils the value at `place`; whether it was a whole number and can be none any more. What was a fraction may be
/// another one.
fn spoil(map: &mut Map<String, Value>, place: &Place, spoilt: Spoilt) -> bool {
    let (last, above) = place.split_last().unwrap();
    let mut inside = Some(map);
    let mut above = above.iter();
    while let Some(key) = above.next() {
        inside = inside.and_then(|map| match map.get_mut(key) {
            Some(Value::Object(map)) => Some(map),
            Some(Value::Array(list)) => above.next().and(list.first_mut()).and_then(Value::as_object_mut),
            _ => None,
        });
    }
    // An earlier spoiler may have taken what is around it.
    let Some(map) = inside.filter(|map| map.contains_key(last)) else { return false };
    let number = map[last].is_u64();
    let new = match spoilt {
        Spoilt::Dropped => {
            map.remove(last);
            return false;
        }
        Spoilt::Other(value) => {
            map.insert(last.clone(), value);
            return false;
        }
        Spoilt::Wrong(value) => value,
        Spoilt::Nested => json!({ last.as_str(): map[last].clone() }),
    };
    map.insert(last.clone(), new);
    number
}

/// What becomes of a configuration: it is laid open or refused, within the bound.
fn outcome(map: &Map<String, Value>) -> Result<Option<Inspection>, TestCaseError> {
    let mut quickest = Duration::MAX;
    for _ in 0..AGAIN {
        let copy = map.clone();
        let start = Instant::now();
        let built = ModelConfig::from_map(copy, None).and_then(|config| {
            let graph = ModelGraph::build(&config)?;
            Ok((Inspection::of_checkpoint(&graph, &config), graph))
        });
        quickest = quickest.min(start.elapsed());
        if quickest > BEYOND * BOUND {
            break;
        }
        if quickest > BOUND {
            continue;
        }
        let (inspection, graph) = match built {
            Ok(built) => built,
            Err(error) => {
                prop_assert!(!error.found.is_empty() && !error.expected.is_empty() && !error.fix.is_empty());
                return Ok(None);
            }
        };
        let parameters = inspection.parameters;
        let elements = inspection.tensors.iter().map(|tensor| tensor.shape.iter().product::<u64>());
        prop_assert_eq!(
            elements.sum::<u64>(),
            parameters.unique + parameters.buffers,
            "tensors against counts"
        );
        prop_assert!(parameters.active <= parameters.unique);
        prop_assert_eq!(graph.layer_block.len() as u64, graph.layers.value);
        return Ok(Some(inspection));
    }
    Err(TestCaseError::fail(format!("took {quickest:?} at best")))
}

#[test]
fn a_spoilt_configuration_is_refused_or_counted_exactly() {
    let real: Vec<_> = real()
        .into_iter()
        .map(|(name, map)| {
            let mut found = vec![];
            places(&map, &vec![], &mut found);
            let exact = outcome(&map).unwrap_or_else(|why| panic!("{name}: {why}"));
            (name, map, found, exact.map(|inspection| inspection.parameters))
        })
        .collect();
    let spoilers = prop::collection::vec((any::<prop::sample::Index>(), spoilt()), 1..4);
    let (refused, counted) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    each((any::<prop::sample::Index>(), spoilers), |(at, spoilers)| {
        let (name, map, places, exact) = at.get(&real);
        let mut map = map.clone();
        let shown = format!(
            "{name}: {:?}",
            spoilers.iter().map(|(at, how)| (at.get(places), how)).collect::<Vec<_>>()
        );
        // Evaluated for all: each spoiler must do its work.
        let wrong =
            spoilers.into_iter().fold(true, |wrong, (at, how)| spoil(&mut map, at.get(places), how) && wrong);
        let outcome = outcome(&map).map_err(|why| TestCaseError::fail(format!("{shown}: {why}")))?;
        let tally = if outcome.is_some() { &counted } else { &refused };
        tally.set(tally.get() + 1);
        if let (true, Some(exact), Some(inspection)) = (wrong, exact, outcome) {
            // What is no number changed nothing that counts, or it would have been refused.
            prop_assert_eq!(inspection.parameters, *exact, "{}", shown);
        }
        Ok(())
    });
    println!("{} refused, {} counted", refused.get(), counted.get());
    assert!(refused.get() > 0 && counted.get() > 0);
}

#[test]
fn a_spoilt_quantization_never_panics() {
    let mut real = real();
    real.retain(|(_, map)| map.get("quantization_config").is_some_and(Value::is_object));
    each((any::<prop::sample::Index>(), any::<prop::sample::Index>(), spoilt()), |(at, key, how)| {
        let (name, map) = at.get(&real);
        let mut map = map.clone();
        let keys: Vec<String> = map["quantization_config"].as_object().unwrap().keys().cloned().collect();
        let place = vec!["quantization_config".to_owned(), key.get(&keys).clone()];
        let shown = format!("{name}: {place:?} {how:?}");
        spoil(&mut map, &place, how);
        outcome(&map).map(drop).map_err(|why| TestCaseError::fail(format!("{shown}: {why}")))
    });
}

#[test]
fn no_text_panics() {
    each(r#"[\[\]{}":,0-9a-z\\ -]{0,60}"#, |text| {
        let _ = ModelConfig::parse(&text).and_then(|config| ModelGraph::build(&config));
        Ok(())
    });
}

/// Keys whose absence the class gives a meaning of its own, by `model_type`: another count is no fault then.
const CLASS_DEFAULTS: &[(&str, &[&str])] = &[
    ("afmoe", &["head_dim", "num_key_value_heads"]),
    ("apertus", &["num_key_value_heads"]),
    ("arcee", &["num_key_value_heads"]),
    ("axk1", &["mlp_layer_types"]),
    ("axk2", &["mlp_layer_types"]),
    ("aya_vision", &["alignment_intermediate_size"]),
    ("bailing_hybrid", &["linear_head_dim"]),
    ("bailing_moe", &["use_qk_norm"]),
    ("bitnet", &["num_key_value_heads", "tie_word_embeddings"]),
    ("cohere", &["num_key_value_heads", "use_qk_norm"]),
    ("cohere2", &["num_key_value_heads"]),
    ("cohere2_moe", &["mlp_layer_types", "num_key_value_heads", "prefix_dense_intermediate_size"]),
    ("deepseek_ocr2", &["vision_config"]),
    ("ernie4_5_moe", &["moe_layer_start_index", "num_key_value_heads", "tie_word_embeddings"]),
    ("exaone", &["num_key_value_heads", "tie_word_embeddings"]),
    ("exaone4", &["num_key_value_heads", "tie_word_embeddings"]),
    ("exaone_moe", &["head_dim"]),
    (
        "falcon",
        &[
            "bias",
            "multi_query",
            "new_decoder_architecture",
            "num_kv_heads",
            "num_ln_in_parallel_attn",
            "parallel_attn",
            "tie_word_embeddings",
        ],
    ),
    (
        "falcon_h1",
        &[
            "head_dim",
            "mamba_d_ssm",
            "mamba_d_state",
            "mamba_n_groups",
            "mamba_rms_norm",
            "num_key_value_heads",
        ],
    ),
    ("falcon_mamba", &["tie_word_embeddings"]),
    ("gemma2", &["head_dim", "num_key_value_heads"]),
    (
        "gemma3_text",
        &[
            "head_dim",
            "hidden_size",
            "intermediate_size",
            "num_attention_heads",
            "num_hidden_layers",
            "num_key_value_heads",
            "vocab_size",
        ],
    ),
    ("gemma4", &["audio_config", "vision_config"]),
    ("gemma4_unified", &["audio_config", "vision_config"]),
    ("glm4", &["attention_bias", "num_key_value_heads"]),
    ("glm4_moe", &["attention_bias", "head_dim", "use_qk_norm"]),
    ("glm4v", &["text_config"]),
    ("glm5_next", &["text_config"]),
    ("granite", &["num_key_value_heads", "tie_word_embeddings"]),
    ("granitemoe", &["num_key_value_heads", "tie_word_embeddings"]),
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
    ("hunyuan_v1_dense", &["head_dim", "num_key_value_heads", "tie_word_embeddings"]),
    ("hunyuan_v1_moe", &["num_key_value_heads", "tie_word_embeddings"]),
    ("hy_v3", &["mlp_layer_types"]),
    ("hy_v4", &["mlp_layer_types"]),
    ("hyperclovax", &["num_key_value_heads"]),
    ("idefics3", &["scale_factor"]),
    ("internvl_chat", &["dynamic_image_size"]),
    ("iquestcoder", &["num_key_value_heads"]),
    ("jamba", &["attn_layer_period", "num_experts", "tie_word_embeddings"]),
    ("kimi_linear", &["layer_types", "mlp_layer_types", "num_shared_experts"]),
    ("laguna", &["gating", "mlp_layer_types", "num_attention_heads_per_layer"]),
    ("lfm2", &["block_auto_adjust_ff_dim", "block_ff_dim", "full_attn_idxs", "layer_types"]),
    ("lfm2_moe", &["layer_types", "moe_intermediate_size", "num_experts"]),
    ("lfm2_vl", &["projector_hidden_size", "projector_use_layernorm"]),
    // Llama files of the MHA era leave the key out, so its absence does mean MHA.
    ("llama", &["attention_bias", "head_dim", "mlp_bias", "num_key_value_heads", "tie_word_embeddings"]),
    ("longcat_flash", &["zero_expert_num"]),
    ("mellum", &["num_local_experts"]),
    ("minicpm", &["mup_denominator", "tie_word_embeddings"]),
    ("minicpmv", &["head_dim", "num_key_value_heads"]),
    ("minimax", &["head_dim", "layer_types"]),
    ("mistral", &["head_dim"]),
    ("nemotron", &["head_dim", "num_key_value_heads"]),
    ("nemotron_h", &["layers_block_type", "moe_latent_size"]),
    ("olmo", &["tie_word_embeddings"]),
    ("olmo2", &["num_key_value_heads"]),
    ("olmo3", &["num_key_value_heads"]),
    ("opt", &["do_layer_norm_before", "word_embed_proj_dim"]),
    ("phi3", &["num_key_value_heads", "tie_word_embeddings"]),
    ("phimoe", &["attention_bias", "lm_head_bias"]),
    ("qwen2", &["num_key_value_heads", "tie_word_embeddings"]),
    ("qwen2_5_vl", &["tie_word_embeddings"]),
    ("qwen2_vl", &["tie_word_embeddings"]),
    ("qwen3", &["num_key_value_heads", "tie_word_embeddings"]),
    (
        "qwen3_5_moe_text",
        &[
            "linear_num_value_heads",
            "moe_intermediate_size",
            "num_experts",
            "shared_expert_intermediate_size",
        ],
    ),
    ("qwen3_moe", &["head_dim", "num_key_value_heads"]),
    ("qwen3_omni_moe", &["enable_audio_output"]),
    ("smolvlm", &["scale_factor"]),
    ("stablelm", &["num_key_value_heads", "qk_layernorm", "use_parallel_residual", "use_qkv_bias"]),
    ("starcoder2", &["num_key_value_heads", "tie_word_embeddings"]),
    ("step3p5", &["layer_types", "num_sliding_attention_heads"]),
    (
        "zamba2",
        &[
            "layers_block_type",
            "mamba_d_state",
            "n_mamba_heads",
            "num_mem_blocks",
            "use_shared_attention_adapter",
        ],
    ),
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
