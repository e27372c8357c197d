//! Typed access to the keys of a `config.json` that remembers which ones were read.
//!
//! Knows nothing of any architecture: what is required, and what absence means, the caller says.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::neutral::is_neutral;
use crate::quantity::count::Count;
use crate::spec::error::Error;

/// The largest believable value of a key; beyond it a file is wrong, and products would leave 64 bits.
const LIMITS: &[(&str, u64)] = &[
    ("num_hidden_layers", 10_000),
    ("num_nextn_predict_layers", 100),
    ("num_attention_heads", 100_000),
    ("num_key_value_heads", 100_000),
    ("num_experts", 100_000),
    ("num_local_experts", 100_000),
    ("n_routed_experts", 100_000),
    ("n_shared_experts", 1_000),
    ("vocab_size", 100_000_000),
    ("max_position_embeddings", 1_000_000_000),
    ("sliding_window", 1_000_000_000),
];

/// The limit of every key without a line in `LIMITS`: widths and ranks.
const WIDTH_LIMIT: u64 = 1_000_000;

const COPY: &str = "copy the value from the model's config.json on its repository page";

/// The keys of one object, and which of them have been read.
#[derive(Debug)]
pub struct Keys<'c> {
    map: &'c Map<String, Value>,
    read: RefCell<BTreeSet<&'static str>>,
}

impl<'c> Keys<'c> {
    /// The keys of `map`, none read yet.
    pub fn new(map: &'c Map<String, Value>) -> Keys<'c> {
        Keys { map, read: RefCell::default() }
    }

    /// Whether the key is there, be it `null`.
    pub fn has(&self, key: &'static str) -> bool {
        self.get(key).is_some()
    }

    /// Refuses a file without the key, which may be `null` but whose absence would mean another default.
    pub fn stated(&self, key: &'static str) -> Result<&Keys<'c>, Error> {
        match self.get(key) {
            Some(_) => Ok(self),
            None => {
                Err(Error::new(key, "nothing: the key is missing", "a whole number, or null for none", COPY))
            }
        }
    }

    /// A number of at least 1 that must be there.
    pub fn count(&self, key: &'static str) -> Result<Count, Error> {
        match self.get(key) {
            Some(value) => Ok(Count::config(key, whole(key, value, 1)?)),
            None => Err(Error::new(key, "nothing: the key is missing", "a whole number", COPY)),
        }
    }

    /// A number of at least 1 that may be left out; then the model class says `default`.
    pub fn count_or(&self, key: &'static str, default: u64) -> Result<Count, Error> {
        match self.get(key) {
            Some(value) => Ok(Count::config(key, whole(key, value, 1)?)),
            None => Ok(Count::class_default(key, default)),
        }
    }

    /// A number of at least 1 that may be left out or `null`.
    pub fn count_or_none(&self, key: &'static str) -> Result<Option<Count>, Error> {
        match self.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => Ok(Some(Count::config(key, whole(key, value, 1)?))),
        }
    }

    /// A number that may be 0, left out or `null`, all of which mean none.
    pub fn count_unless_zero(&self, key: &'static str) -> Result<Option<Count>, Error> {
        match self.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let value = whole(key, value, 0)?;
                Ok((value > 0).then(|| Count::config(key, value)))
            }
        }
    }

    /// `true` or `false`; left out, the model class says `default`.
    pub fn flag(&self, key: &'static str, default: bool) -> Result<bool, Error> {
        match self.get(key) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(Error::new(key, shown(other), "true or false", COPY)),
        }
    }

    /// A text that may be left out or `null`.
    pub fn text(&self, key: &'static str) -> Result<Option<String>, Error> {
        match self.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(Error::new(key, shown(other), "a text", COPY)),
        }
    }

    /// A list of texts that may be left out or `null`.
    pub fn texts(&self, key: &'static str) -> Result<Option<Vec<String>>, Error> {
        self.list(key, |path, value| match value {
            Value::String(text) => Ok(text.clone()),
            other => Err(Error::new(path, shown(other), "a text", COPY)),
        })
    }

    /// A list of whole numbers that may be left out or `null`.
    pub fn numbers(&self, key: &'static str) -> Result<Option<Vec<u64>>, Error> {
        self.list(key, |path, value| whole(path, value, 0))
    }

    /// Refuses any value but `only` (or none): the builder knows no other form of the architecture.
    pub fn only(&self, key: &'static str, only: &Value) -> Result<(), Error> {
        match self.get(key) {
            Some(value) if value != only => Err(Error::new(
                key,
                shown(value),
                format!("{}, the only form that is understood", shown(only)),
                "report the model: this form of the architecture needs its own builder",
            )),
            _ => Ok(()),
        }
    }

    /// Accounts for keys that change no shape in this architecture, whatever they say.
    pub fn set_aside(&self, keys: &[&'static str]) {
        self.read.borrow_mut().extend(keys);
    }

    /// Refuses what nobody has read: a key that changes the model must not be passed over.
    ///
    /// Keys that are `null` or `false` switch nothing on and are let through.
    pub fn all_read(&self) -> Result<(), Error> {
        let read = self.read.borrow();
        let strange: Vec<&str> = self
            .map
            .iter()
            .filter(|(key, value)| !matches!(value, Value::Null | Value::Bool(false)) && !is_neutral(key))
            .map(|(key, _)| key.as_str())
            .filter(|key| !read.contains(key))
            .collect();
        match strange.as_slice() {
            [] => Ok(()),
            keys => Err(Error::new(
                keys.join(", "),
                "not understood for this model_type",
                "only keys whose effect on the model is known",
                "remove what does not change the architecture; otherwise the model needs its own builder",
            )),
        }
    }

    fn get(&self, key: &'static str) -> Option<&'c Value> {
        self.read.borrow_mut().insert(key);
        self.map.get(key)
    }

    fn list<T>(
        &self,
        key: &'static str,
        read: impl Fn(&str, &Value) -> Result<T, Error>,
    ) -> Result<Option<Vec<T>>, Error> {
        match self.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(values)) => {
                let values = values.iter().enumerate();
                values
                    .map(|(at, value)| read(&format!("{key}[{at}]"), value))
                    .collect::<Result<_, _>>()
                    .map(Some)
            }
            Some(other) => Err(Error::new(key, shown(other), "a list", COPY)),
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str) -> Map<String, Value> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_count_is_a_believable_whole_number() {
        for value in [
            "null",
            "-1",
            "0",
            "1.5",
            "4096.0",
            "\"4096\"",
            "[1]",
            "{}",
            "true",
            "1e300",
            "99999999999999999999",
        ] {
            let map = map(&format!(r#"{{"hidden_size": {value}}}"#));
            let error = Keys::new(&map).count("hidden_size").unwrap_err();
            assert_eq!(error.key, "hidden_size");
            assert!(!error.found.is_empty() && error.expected.contains("1000000"), "{error}");
        }
        assert_eq!(Keys::new(&map(r#"{"hidden_size": 4096}"#)).count("hidden_size").unwrap().value, 4096);
    }

    #[test]
    fn a_fault_in_a_list_says_where() {
        let map = map(r#"{"layer_types": ["full_attention", 3]}"#);
        assert_eq!(Keys::new(&map).texts("layer_types").unwrap_err().key, "layer_types[1]");
    }

    #[test]
    fn unread_keys_are_named_unless_neutral_or_off() {
        let map =
            map(r#"{"hidden_size": 8, "bos_token_id": 1, "mla_scale": null, "use_x": false, "hyper": 4}"#);
        let keys = Keys::new(&map);
        keys.count("hidden_size").unwrap();
        assert_eq!(keys.all_read().unwrap_err().key, "hyper");
        keys.set_aside(&["hyper"]);
        assert_eq!(keys.all_read(), Ok(()));
    }

    #[test]
    fn zero_null_and_absence_all_mean_none_where_said() {
        for text in ["{}", r#"{"n_shared_experts": 0}"#, r#"{"n_shared_experts": null}"#] {
            assert_eq!(Keys::new(&map(text)).count_unless_zero("n_shared_experts").unwrap(), None);
        }
    }
}
