//! Keys of a format as the options of a server: `maxModelLen: 8192` is `--max-model-len 8192`.

use serde_json::{Map, Value};

use super::plain;

/// A key of a format, and the option that it is.
pub(super) struct KeyOption {
    pub(super) key: &'static str,
    pub(super) flag: &'static str,
}

pub(super) const fn key(key: &'static str, flag: &'static str) -> KeyOption {
    KeyOption { key, flag }
}

/// The words of the keys that a table lists, in its order.
pub(super) fn words_of(value: &Value, table: &[KeyOption]) -> Vec<String> {
    table.iter().flat_map(|one| option(one.flag, value.get(one.key))).collect()
}

/// The words of an option: none for no value, a switch for true and false.
pub(super) fn option(flag: &str, value: Option<&Value>) -> Vec<String> {
    let words = match value {
        None | Some(Value::Null) => return vec![],
        Some(Value::Bool(true)) => vec![],
        Some(Value::Bool(false)) => {
            return vec![flag.strip_prefix("--").map_or(flag.to_owned(), |name| format!("--no-{name}"))];
        }
        Some(Value::Array(items)) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
            items.iter().map(plain).collect()
        }
        Some(other) => vec![plain(other)],
    };
    [flag.to_owned()].into_iter().chain(words).collect()
}

/// The words of every key but those of `without`, each of which is an option with its name.
pub(super) fn every_option(keys: &Map<String, Value>, without: &[&str]) -> Vec<String> {
    let own = keys.iter().filter(|(key, _)| !without.contains(&key.as_str()));
    own.flat_map(|(key, value)| option(&format!("--{}", key.replace('_', "-")), Some(value))).collect()
}

/// A model's name from the address of a hub: `hf://OWNER/NAME[:HASH]`. Others stay as they are.
pub(super) fn hub_name(uri: &str) -> String {
    match uri.strip_prefix("hf://") {
        Some(name) => name.split_once(':').map_or(name, |(name, _)| name).to_owned(),
        None => uri.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_options() {
        let keys = json!({"tp_size": 4, "on": true, "off": false, "list": [1, 2], "map": {"a": 1}, "none": null, "m": "x"});
        let words = every_option(keys.as_object().unwrap(), &["m"]).join(" ");
        assert_eq!(words, "--tp-size 4 --on --no-off --list 1 2 --map {\"a\":1}");
        assert_eq!(hub_name("hf://a/b:hash"), "a/b");
        assert_eq!(hub_name("pvc://a/b"), "pvc://a/b");
    }
}
