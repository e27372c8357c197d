//! Typed access to the keys of a `config.json`; records which keys were read.
//!
//! Independent of architectures: the caller decides which keys are required and the meaning of absent ones.

mod sections;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::{Map, Value};

use super::neutral::{could_change_model, is_neutral};
use super::value::{COPY, base_of_angles, fraction, says_nothing, scaled, shown, whole};
use crate::quantity::count::Count;
use crate::spec::error::Error;

/// Inserted, left out, changed or swapped letters of a misspelt key: one slip of the finger, or two.
const TYPING_ERROR: usize = 2;

/// An object of the file, and the keys read from it.
#[derive(Debug)]
struct Section<'c> {
    map: &'c Map<String, Value>,
    read: BTreeSet<&'static str>,
}

impl Section<'_> {
    /// The absent key that was read and that `key` differs from by a typing error: the nearest.
    fn meant_by(&self, key: &str) -> Option<&'static str> {
        let absent = self.read.iter().filter(|read| !self.map.contains_key(**read));
        let far = absent.map(|read| (strsim::osa_distance(key, read), *read));
        far.min().filter(|(distance, _)| *distance <= TYPING_ERROR).map(|(_, read)| read)
    }
}

/// The keys of one object and the keys read from it; likewise for opened objects inside.
#[derive(Clone, Debug)]
pub struct Keys<'c> {
    map: &'c Map<String, Value>,
    /// Place of the object in the file: empty, or dotted with a dot at the end.
    path: String,
    /// Defaults of the model class for absent keys.
    defaults: &'static [(&'static str, u64)],
    sections: Rc<RefCell<BTreeMap<String, Section<'c>>>>,
}

impl<'c> Keys<'c> {
    /// The keys of `map`, none read yet.
    pub fn new(map: &'c Map<String, Value>) -> Keys<'c> {
        let sections = BTreeMap::from([(String::new(), Section { map, read: BTreeSet::new() })]);
        Keys { map, path: String::new(), defaults: &[], sections: Rc::new(RefCell::new(sections)) }
    }

    /// The same keys with the model class's defaults for absent numbers.
    pub fn with_defaults(self, defaults: &'static [(&'static str, u64)]) -> Keys<'c> {
        Keys { defaults, ..self }
    }

    /// The class's default for an absent key.
    fn default_of(&self, key: &'static str) -> Option<Count> {
        let (key, value) = self.defaults.iter().find(|(name, _)| *name == key)?;
        Some(Count::class_default(key, *value))
    }

    /// A decimal number as a fraction in integers: 2.625 is 2625 / 1000.
    pub fn decimal(&self, key: &'static str) -> Result<[u64; 2], Error> {
        match self.get(key) {
            Some(value) => self.fraction(key, value),
            None => Err(self.missing(key, "a decimal number")),
        }
    }

    /// `width` × a decimal number, rounded down; none where the key is missing.
    pub fn scaled(&self, key: &'static str, width: u64) -> Result<Option<u64>, Error> {
        let scaled = self.get(key).map(|value| scaled(key, value, width)).transpose();
        scaled.map_err(|error| Error { key: self.place(key).into_owned(), ..error })
    }

    /// The base of rotary angles under one of `names`; the class's `default` if none is there.
    pub fn base_of_angles(&self, names: &[&'static str], default: u64) -> Result<Count, Error> {
        let stated = names.iter().find_map(|name| Some((*name, self.get(name).filter(|v| !v.is_null())?)));
        let Some((name, value)) = stated else { return Ok(Count::class_default("rope_theta", default)) };
        let base = base_of_angles(name, value);
        let base = base.map_err(|error| Error { key: self.place(name).into_owned(), ..error })?;
        Ok(Count::config(name, base))
    }

    /// A required list of such numbers.
    pub fn decimals(&self, key: &'static str) -> Result<Vec<[u64; 2]>, Error> {
        let Some(Value::Array(values)) = self.get(key) else {
            return Err(self.error(key, "not a list", "a list of decimal numbers"));
        };
        let one = |(at, value)| self.fraction(&format!("{key}[{at}]"), value);
        values.iter().enumerate().map(one).collect()
    }

    fn fraction(&self, key: &str, value: &Value) -> Result<[u64; 2], Error> {
        fraction(key, value).map_err(|error| Error { key: self.place(key).into_owned(), ..error })
    }

    /// The synonym of a key that the file uses; the first if it uses none.
    pub fn spelling(&self, names: &[&'static str]) -> Result<&'static str, Error> {
        let mut used = names.iter().filter(|name| self.has(name));
        let first = used.next().unwrap_or(&names[0]);
        match used.find(|name| self.map.get(**name) != self.map.get(*first)) {
            Some(other) => Err(self.error(other, "another value", format!("the same as {first}"))),
            None => Ok(first),
        }
    }

    /// The raw value, for keys of a special form.
    pub fn value(&self, key: &'static str) -> Option<&'c Value> {
        self.get(key)
    }

    /// Whether the key is present, also as `null`.
    pub fn has(&self, key: &'static str) -> bool {
        self.get(key).is_some()
    }

    /// Rejects a file without the key; `null` is allowed, but absence would mean another default.
    pub fn stated(&self, key: &'static str) -> Result<&Keys<'c>, Error> {
        if self.has(key) || self.default_of(key).is_some() {
            return Ok(self);
        }
        Err(self.missing(key, "a whole number, or null for none"))
    }

    /// A required number of at least 1.
    pub fn count(&self, key: &'static str) -> Result<Count, Error> {
        match self.get(key) {
            Some(value) => Ok(Count::config(key, self.whole(key, value, 1)?)),
            None => self.default_of(key).ok_or_else(|| self.missing(key, "a whole number")),
        }
    }

    /// An optional number of at least 1; `default` if absent.
    pub fn count_or(&self, key: &'static str, default: u64) -> Result<Count, Error> {
        match self.get(key) {
            Some(value) => Ok(Count::config(key, self.whole(key, value, 1)?)),
            None => Ok(Count::class_default(key, default)),
        }
    }

    /// An optional number of at least 1; absent or `null` means none.
    pub fn count_or_none(&self, key: &'static str) -> Result<Option<Count>, Error> {
        match self.get(key) {
            None => Ok(self.default_of(key)),
            Some(Value::Null) => Ok(None),
            Some(value) => Ok(Some(Count::config(key, self.whole(key, value, 1)?))),
        }
    }

    /// An optional number; `null` and 0 mean none, and so does absence where the class has no default.
    pub fn count_unless_zero(&self, key: &'static str) -> Result<Option<Count>, Error> {
        let value = match self.get(key) {
            None => return Ok(self.default_of(key)),
            Some(Value::Null) => return Ok(None),
            Some(value) => self.whole(key, value, 0)?,
        };
        Ok((value > 0).then(|| Count::config(key, value)))
    }

    /// `true` or `false`; `default` of the model class if absent.
    pub fn flag(&self, key: &'static str, default: bool) -> Result<bool, Error> {
        match self.get(key) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.error(key, shown(other), "true or false")),
        }
    }

    /// Whether the key is `true`; absent and `null` are not.
    pub fn flag_or_none(&self, key: &'static str) -> Result<bool, Error> {
        match self.get(key) {
            Some(Value::Null) => Ok(false),
            _ => self.flag(key, false),
        }
    }

    /// Whether the key was already read or set aside.
    pub fn is_aside(&self, key: &str) -> bool {
        self.sections.borrow().get(&self.path).is_some_and(|section| section.read.contains(key))
    }

    /// An optional text; absent or `null` means none.
    pub fn text(&self, key: &'static str) -> Result<Option<String>, Error> {
        match self.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.error(key, shown(other), "a text")),
        }
    }

    /// Whether the key equals `text`, or is absent, which the model class treats as equal.
    pub fn says(&self, key: &'static str, text: &str) -> bool {
        self.get(key).is_none_or(|value| value.as_str() == Some(text))
    }

    /// Length of an optional list of any content.
    pub fn length(&self, key: &'static str) -> Result<Option<u64>, Error> {
        Ok(self.list(key, |_, _| Ok(()))?.map(|list| list.len() as u64))
    }

    pub fn texts(&self, key: &'static str) -> Result<Option<Vec<String>>, Error> {
        self.list(key, |path, value| match value {
            Value::String(text) => Ok(text.clone()),
            other => Err(Error::new(path, shown(other), "a text", COPY)),
        })
    }

    pub fn numbers(&self, key: &'static str) -> Result<Option<Vec<u64>>, Error> {
        self.list(key, |path, value| whole(path, value, 0))
    }

    /// Rejects any value except `only` or none: the builder supports no other form of the architecture.
    pub fn only(&self, key: &'static str, only: &Value) -> Result<(), Error> {
        match self.get(key) {
            Some(value) if value != only => Err(Error::new(
                self.place(key),
                shown(value),
                format!("{}, the only supported form", shown(only)),
                "report the model: this form of the architecture needs its own builder",
            )),
            _ => Ok(()),
        }
    }

    /// Sets aside keys that change no shape in this architecture, whatever their value.
    pub fn set_aside(&self, keys: &[&'static str]) {
        if let Some(section) = self.sections.borrow_mut().get_mut(&self.path) {
            section.read.extend(keys);
        }
    }

    /// Rejects unread keys, here and in the opened objects, that could change the model; returns the others.
    ///
    /// Keys without content (`null`, `false`, 0, an empty list) enable nothing and are accepted.
    pub fn all_read(&self) -> Result<Vec<String>, Error> {
        let sections = self.sections.borrow();
        let (mut strange, mut ignored): (Vec<String>, Vec<String>) = (vec![], vec![]);
        let mut renamed = String::new();
        for (path, section) in sections.iter() {
            let matters = |(key, value): &(&String, &Value)| {
                !says_nothing(value) && !is_neutral(key) && !section.read.contains(key.as_str())
            };
            for (key, value) in section.map.iter().filter(matters) {
                let place = format!("{path}{key}");
                if !could_change_model(key, value) {
                    ignored.push(place);
                    continue;
                }
                if let Some(meant) = section.meant_by(key) {
                    renamed += &format!("rename `{place}` to `{meant}` if it is meant; else ");
                }
                strange.push(place);
            }
        }
        if strange.is_empty() {
            return Ok(ignored);
        }
        Err(Error::new(
            strange.join(", "),
            "unknown for this model_type",
            "only keys with a known effect on the model",
            format!(
                "{renamed}remove the keys that do not change the architecture; otherwise the model needs its own \
                 builder"
            ),
        ))
    }

    fn get(&self, key: &'static str) -> Option<&'c Value> {
        self.set_aside(&[key]);
        self.map.get(key)
    }

    /// The key with its place in the file.
    fn place<'k>(&self, key: &'k str) -> Cow<'k, str> {
        if self.path.is_empty() { Cow::Borrowed(key) } else { Cow::Owned(format!("{}{key}", self.path)) }
    }

    fn error(&self, key: &str, found: impl Into<String>, expected: impl Into<String>) -> Error {
        Error::new(self.place(key), found, expected, COPY)
    }

    /// A required key is absent; an unread key of the file that differs from it by a typing error may be it.
    fn missing(&self, key: &str, expected: &str) -> Error {
        let fault = self.error(key, "missing key", expected);
        let sections = self.sections.borrow();
        let read = sections.get(&self.path).map(|section| &section.read);
        let unread = |name: &&String| read.is_none_or(|read| !read.contains(name.as_str()));
        let typed =
            self.map.keys().filter(unread).find(|name| strsim::osa_distance(name, key) <= TYPING_ERROR);
        match typed {
            Some(typed) => Error { fix: format!("rename `{typed}` if it is meant; else {COPY}"), ..fault },
            None => fault,
        }
    }

    fn whole(&self, key: &str, value: &Value, least: u64) -> Result<u64, Error> {
        whole(key, value, least).map_err(|error| Error { key: self.place(key).into_owned(), ..error })
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
                    .map(|(at, value)| read(&self.place(&format!("{key}[{at}]")), value))
                    .collect::<Result<_, _>>()
                    .map(Some)
            }
            Some(other) => Err(self.error(key, shown(other), "a list")),
        }
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
        for value in r#"null -1 0 1.5 4096.0 "4096" [1] {} true 1e300 99999999999999999999"#.split(' ') {
            let map = map(&format!(r#"{{"hidden_size": {value}}}"#));
            let error = Keys::new(&map).count("hidden_size").unwrap_err();
            assert_eq!(error.key, "hidden_size");
            assert!(!error.found.is_empty() && error.expected.contains("1000000"), "{error}");
        }
        assert_eq!(Keys::new(&map(r#"{"hidden_size": 4096}"#)).count("hidden_size").unwrap().value, 4096);
    }

    #[test]
    fn an_unknown_key_names_the_one_that_it_misspells() {
        let file = map(r#"{"text_config": {"hidden_sise": 8, "rope_thing": 3}}"#);
        let keys = Keys::new(&file);
        let text = keys.section("text_config").unwrap();
        assert!(text.count("hidden_size").is_err());
        let fault = keys.all_read().unwrap_err();
        assert!(
            fault
                .fix
                .starts_with("rename `text_config.hidden_sise` to `hidden_size` if it is meant; else remove"),
            "{fault}"
        );
    }

    #[test]
    fn a_missing_key_names_its_misspelling() {
        let fault =
            |key: &str| Keys::new(&map(&format!(r#"{{"{key}": 8}}"#))).count("hidden_size").unwrap_err();
        let [near, far] = ["hiden_sizee", "head_dim"].map(fault);
        assert!(
            near.key == "hidden_size" && near.fix.starts_with("rename `hiden_sizee` if it is meant"),
            "{near}"
        );
        assert_eq!((far.key.as_str(), far.fix.as_str()), ("hidden_size", COPY));
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
        assert_eq!(keys.all_read(), Ok(vec![]));
    }

    #[test]
    fn unread_keys_that_cannot_change_the_model_are_returned() {
        let text = r#"{"video_token_id": 7, "text_config": {"router_z_loss_coef": 0.1}}"#;
        let map = map(text);
        let keys = Keys::new(&map);
        keys.section("text_config").unwrap();
        let ignored = ["video_token_id", "text_config.router_z_loss_coef"].map(str::to_owned);
        assert_eq!(keys.all_read(), Ok(ignored.to_vec()));
    }

    #[test]
    fn an_object_inside_is_named_by_its_path_and_its_strangers_are_reported() {
        let map = map(r#"{"text_config": {"hidden_size": 0, "hyper": 4}, "vision_config": {"depth": 3}}"#);
        let keys = Keys::new(&map);
        let text = keys.section("text_config").unwrap();
        assert_eq!(text.count("hidden_size").unwrap_err().key, "text_config.hidden_size");
        assert_eq!(text.count("vocab_size").unwrap_err().key, "text_config.vocab_size");
        assert_eq!(keys.all_read().unwrap_err().key, "vision_config, text_config.hyper");
        keys.set_aside(&["vision_config"]);
        keys.section("text_config").unwrap().set_aside(&["hyper"]);
        assert_eq!(keys.all_read(), Ok(vec![]));
        assert_eq!(keys.section("audio_config").unwrap_err().key, "audio_config");
    }

    #[test]
    fn a_class_may_know_a_key_by_several_names() {
        let (old, both) = (map(r#"{"n_layer": 3}"#), map(r#"{"n_layer": 3, "num_hidden_layers": 4}"#));
        let names = &["num_hidden_layers", "n_layer"];
        assert_eq!(Keys::new(&old).spelling(names), Ok("n_layer"));
        assert_eq!(Keys::new(&map("{}")).spelling(names), Ok("num_hidden_layers"));
        assert_eq!(Keys::new(&both).spelling(names).unwrap_err().key, "n_layer");
    }

    #[test]
    fn zero_null_and_absence_all_mean_none_where_said() {
        for text in ["{}", r#"{"n_shared_experts": 0}"#, r#"{"n_shared_experts": null}"#] {
            assert_eq!(Keys::new(&map(text)).count_unless_zero("n_shared_experts").unwrap(), None);
        }
    }
}
