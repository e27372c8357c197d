//! Allowed values in a `config.json`, and their form in errors.
//!
//! Independent of the meaning of keys; checks only sizes.

use serde_json::Value;

use crate::spec::error::Error;

/// The largest plausible values, each of several keys; larger ones are errors, and products would exceed 64 bits.
const LIMITS: [(u64, &str); 6] = [
    (
        2_000,
        "num_hidden_layers num_layers_per_stack num_layers n_layer n_layers num_transformer_layers num_global_layers \
          vt_num_hidden_layers depth layers decoder_layers",
    ),
    (
        100,
        "mtp_num_hidden_layers num_nextn_predict_layers n_recurrent_loops loop_num_passes H_cycles L_cycles",
    ),
    (100_000, "num_attention_heads num_key_value_heads num_experts num_local_experts n_routed_experts"),
    (1_000, "n_shared_experts"),
    (100_000_000, "vocab_size padded_vocab_size"),
    (
        1_000_000_000,
        "max_position_embeddings max_seq_len seq_length sliding_window model_max_length max_context_length",
    ),
];

/// The limit of every key that is not in `LIMITS`: widths and ranks.
pub(crate) const WIDTH_LIMIT: u64 = 1_000_000;

/// The fix for an invalid value.
pub(super) const COPY: &str = "copy the value from the model's config.json on its repository page";

/// `value` as a whole number from `least` up to the limit of its key.
pub(crate) fn whole(key: &str, value: &Value, least: u64) -> Result<u64, Error> {
    let limit = LIMITS.iter().find(|(_, keys)| keys.split(' ').any(|known| known == key));
    let most = limit.map_or(WIDTH_LIMIT, |(most, _)| *most);
    match value.as_u64() {
        Some(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(Error::new(key, shown(value), format!("a whole number from {least} to {most}"), COPY)),
    }
}

/// `value` as a fraction of whole numbers: 2.625 is 2625 / 1000.
pub(crate) fn fraction(key: &str, value: &Value) -> Result<[u64; 2], Error> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        other => return Err(Error::new(key, shown(other), "a decimal number", COPY)),
    };
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let digits = format!("{whole}{part}");
    let fits = digits.len() <= 12 && digits.chars().all(|digit| digit.is_ascii_digit());
    match digits.parse::<u64>() {
        Ok(number) if fits && number > 0 => Ok([number, 10u64.pow(part.len() as u32)]),
        _ => Err(Error::new(key, text, "a decimal number above 0 of at most 12 digits", COPY)),
    }
}

/// `width` × the decimal number `value`, rounded down as Python does in double precision.
pub(crate) fn scaled(key: &str, value: &Value, width: u64) -> Result<u64, Error> {
    match value.as_f64().filter(|ratio| *ratio > 0.0 && *ratio <= MOST_RATIO) {
        Some(ratio) => Ok((width as f64 * ratio) as u64),
        None => Err(Error::new(key, shown(value), format!("a number above 0, at most {MOST_RATIO}"), COPY)),
    }
}

/// No layer is wider by more.
const MOST_RATIO: f64 = 1024.0;

/// `value` as the base of rotary angles, to the nearest whole number: files state it as a decimal number too.
pub(crate) fn base_of_angles(key: &str, value: &Value) -> Result<u64, Error> {
    match value.as_f64().filter(|base| (1.0..=MOST_BASE).contains(base)) {
        Some(base) => Ok(base.round() as u64),
        None => Err(Error::new(key, shown(value), format!("a number from 1 to {MOST_BASE:e}"), COPY)),
    }
}

/// The largest base of rotary angles: a thousand times the largest published one (Falcon-H1, 1e11).
const MOST_BASE: f64 = 1e14;

/// Whether a value enables nothing.
pub(crate) fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// Maximum number of characters of a text in an error.
const SHOWN: usize = 60;

/// A text in an error: its start if it is long, without control sequences.
pub(crate) fn elided(text: &str) -> String {
    let plain = |letter: char| if letter.is_control() { '\u{fffd}' } else { letter };
    let mut start: String = text.chars().take(SHOWN).map(plain).collect();
    if text.chars().nth(SHOWN).is_some() {
        start.push('…');
    }
    start
}

/// A value in an error: kind and, if short, content.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("the text \"{}\"", elided(text)),
        Value::Array(values) => format!("a list of {}", values.len()),
        Value::Object(map) => format!("an object of {} keys", map.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_fractions_of_whole_numbers() {
        let of = |text: &str| fraction("ffn_mult", &serde_json::from_str(text).unwrap()).ok();
        assert_eq!(of("2.625"), Some([2625, 1000]));
        assert_eq!(of("5"), Some([5, 1]));
        for text in ["1e300", "-1.5", "0", "\"2\"", "null"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
