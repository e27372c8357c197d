//! Keys of `config.json` that change neither tensors nor caches, in any architecture.
//!
//! Keys that matter in some architectures are not here: the builders of the others set them aside.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

/// The lists of `neutral.json`.
#[derive(Deserialize)]
struct KeyLists {
    /// Keys without effect on shapes, by subject.
    neutral: BTreeMap<String, BTreeSet<String>>,
    /// Words of keys about tensors, caches and operators: the features of known architectures.
    shaping: BTreeSet<String>,
    /// Words of keys that weigh a loss, whatever feature it is about: a loss has no part in inference.
    weights_of_losses: BTreeSet<String>,
}

static LISTS: LazyLock<KeyLists> =
    LazyLock::new(|| serde_json::from_str(include_str!("neutral.json")).expect("the lists are JSON"));

/// Whether `key` changes neither tensors nor caches. A leading `_` marks a note of the file's author.
pub fn is_neutral(key: &str) -> bool {
    key.starts_with('_') || LISTS.neutral.values().any(|keys| keys.contains(key))
}

/// Whether an unknown key could change tensors, caches or operators: it, or a key of an object in it, has a word of a
/// known feature of architectures. `my_company_tag` has none, and `router_z_loss_coef` weighs a loss of training.
pub fn could_change_model(key: &str, value: &Value) -> bool {
    let inside = match value {
        Value::Object(keys) => keys.iter().any(|(key, value)| could_change_model(key, value)),
        Value::Array(values) => values.iter().any(|value| could_change_model("", value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    let words = words(key);
    let any = |list: &BTreeSet<String>| words.iter().any(|word| list.contains(word));
    let of_loss = words.iter().any(|word| word == "loss") && any(&LISTS.weights_of_losses);
    inside || any(&LISTS.shaping) && !of_loss
}

/// Words of a key in lower case: `numExperts_2` has `num` and `experts`.
fn words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut lower = false;
    for c in key.chars() {
        if !c.is_alphabetic() || (lower && c.is_uppercase()) {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c.is_alphabetic(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
        lower = c.is_lowercase();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shapes_the_model_is_not_neutral() {
        let shaping =
            "hidden_size head_dim sliding_window q_lora_rank use_sliding_window tie_word_embeddings";
        for key in shaping.split(' ') {
            assert!(!is_neutral(key), "{key}");
        }
        assert!(is_neutral("rope_theta") && is_neutral("_provenance"));
    }

    #[test]
    fn a_key_with_a_word_of_a_feature_could_change_the_model() {
        let one = Value::from(1);
        for key in ["video_token_id", "training_seed", "router2", "model_version", "my_company_tag", "foo"] {
            assert_eq!(could_change_model(key, &one), key == "router2", "{key}");
        }
        for key in
            ["hyper", "num_experts_2", "expert_dropout", "path_layers", "numExperts", "use_loss", "conv1d"]
        {
            assert!(could_change_model(key, &one), "{key}");
        }
        assert!(could_change_model("training", &serde_json::json!({"depth": 3})));
        assert!(could_change_model("training", &serde_json::json!([{"depth": 3}])));
        assert!(!could_change_model("training", &serde_json::json!([{"note": {"seed": 3}}])));
    }
}
