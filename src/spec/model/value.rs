//! What a value of a `config.json` may be, and how an error shows it.
//!
//! Knows no key's meaning, only how large it may be.

use serde_json::Value;

use crate::spec::error::Error;

/// The largest believable value of a key; beyond it a file is wrong, and products would leave 64 bits.
const LIMITS: &[(&str, u64)] = &[
    ("num_hidden_layers", 10_000),
    ("num_layers", 10_000),
    ("n_layer", 10_000),
    ("n_layers", 10_000),
    ("num_nextn_predict_layers", 100),
    ("num_attention_heads", 100_000),
    ("num_key_value_heads", 100_000),
    ("num_experts", 100_000),
    ("num_local_experts", 100_000),
    ("n_routed_experts", 100_000),
    ("n_shared_experts", 1_000),
    ("vocab_size", 100_000_000),
    ("padded_vocab_size", 100_000_000),
    ("max_position_embeddings", 1_000_000_000),
    ("max_seq_len", 1_000_000_000),
    ("seq_length", 1_000_000_000),
    ("sliding_window", 1_000_000_000),
    ("model_max_length", 1_000_000_000),
    ("max_context_length", 1_000_000_000),
];

/// The limit of every key without a line in `LIMITS`: widths and ranks.
pub(crate) const WIDTH_LIMIT: u64 = 1_000_000;

/// What to do about a value that cannot be.
pub(super) const COPY: &str = "copy the value from the model's config.json on its repository page";

/// `value` as a whole number from `least` up to the limit of its key.
pub(crate) fn whole(key: &str, value: &Value, least: u64) -> Result<u64, Error> {
    let most = LIMITS.iter().find(|(name, _)| *name == key).map_or(WIDTH_LIMIT, |(_, most)| *most);
    match value.as_u64() {
        Some(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(Error::new(key, shown(value), format!("a whole number from {least} to {most}"), COPY)),
    }
}

/// A value as an error shows it: kind and, where short, content.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("the text \"{}\"", text.chars().take(60).collect::<String>()),
        Value::Array(values) => format!("a list of {}", values.len()),
        Value::Object(map) => format!("an object of {} keys", map.len()),
    }
}
