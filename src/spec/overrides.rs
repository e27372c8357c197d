//! Overrides of values in catalogue files: `device.memory.bandwidth=3 TB/s`, or of one named file:
//! `device[rtx-4090].memory.bandwidth=1 TB/s`.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value, json};

use super::error::Error;
use super::near::suggest;
use crate::quantity::unit::{COUNT, parse};

/// The file of a problem in which a value is overridden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OverriddenFile {
    /// The model's `config.json`.
    Model,
    /// The device of the hardware.
    Device,
    /// The system that holds the devices.
    System,
    Runtime,
}

/// The files under their names in a path.
const FILES: [(&str, OverriddenFile); 4] = [
    ("model", OverriddenFile::Model),
    ("device", OverriddenFile::Device),
    ("system", OverriddenFile::System),
    ("runtime", OverriddenFile::Runtime),
];

impl OverriddenFile {
    pub fn name(self) -> &'static str {
        FILES.iter().find(|(_, file)| *file == self).map_or("", |(name, _)| name)
    }
}

/// An override: the file, the path of the key in it, and the value.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    pub file: OverriddenFile,
    /// The name of the file; that of the problem if absent.
    pub name: Option<String>,
    /// Keys from the top of the file; a number or an id selects an element of a list.
    pub keys: Vec<String>,
    pub value: String,
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_ref().map(|name| format!("[{name}]")).unwrap_or_default();
        write!(f, "{}{name}.{}={}", self.file.name(), self.keys.join("."), self.value)
    }
}

fn fault(found: impl Into<String>, expected: impl Into<String>, fix: impl Into<String>) -> Error {
    Error::new("set", found, expected, fix)
}

impl FromStr for Override {
    type Err = Error;

    fn from_str(text: &str) -> Result<Override, Error> {
        let example = "write e.g. --set device.memory.bandwidth='3 TB/s' or --set model.num_hidden_layers=40";
        let refused = |found: String| fault(found, "FILE.KEY=VALUE or FILE[NAME].KEY=VALUE", example);
        let wrong = || refused(format!("`{text}`"));
        let (path, named) = match text.split_once('[') {
            // A bracket of the value is none of the path, and one behind a key is the number of an element.
            Some((kind, rest)) if !kind.contains(['=', '.']) => {
                let (named, keys) = rest.split_once("].").ok_or_else(wrong)?;
                (format!("{kind}.{keys}"), Some(named.trim().to_owned()))
            }
            _ => (text.to_owned(), None),
        };
        let (path, value) = path.split_once('=').ok_or_else(wrong)?;
        let numbered = path.trim().replace('[', ".").replace(']', "");
        let mut keys = numbered.split('.').map(str::to_owned);
        let name = keys.next().unwrap_or_default();
        let keys: Vec<String> = keys.collect();
        let Some((_, file)) = FILES.iter().find(|(known, _)| *known == name) else {
            return Err(fault(format!("`{name}` of `{text}`"), "model, device, system or runtime", example));
        };
        let nameless = named.as_ref().is_some_and(String::is_empty);
        if nameless || keys.is_empty() || keys.iter().any(String::is_empty) || value.trim().is_empty() {
            return Err(wrong());
        }
        Ok(Override { file: *file, name: named, keys, value: value.trim().to_owned() })
    }
}

impl Override {
    /// The value as JSON; a text that is no JSON is a string.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.value).unwrap_or_else(|_| Value::String(self.value.clone()))
    }

    /// Sets the value in the text of a file. A figure keeps its form and has the override as its source.
    pub fn apply(&self, file: &mut Value) -> Result<(), Error> {
        let (last, outer) = self.keys.split_last().ok_or_else(|| fault("no key", "a key", "name one"))?;
        let mut inside = file;
        for key in outer {
            let known = keys_of(inside);
            inside = element(inside, key).ok_or_else(|| self.unknown(key, &known))?;
        }
        let known = keys_of(inside);
        if let Some(old) = element(inside, last) {
            *old = self.replaced(old);
            return Ok(());
        }
        // A key that the file leaves out: a figure, if its value is one.
        match inside {
            Value::Object(object) => {
                let figure = parse(&self.value).is_ok_and(|(_, unit)| unit != COUNT);
                let value = if figure { self.figure() } else { self.json() };
                object.insert(last.clone(), value);
                Ok(())
            }
            _ => Err(self.unknown(last, &known)),
        }
    }

    /// The value in the form of the old one.
    fn replaced(&self, old: &Value) -> Value {
        match old {
            Value::Object(object) if object.contains_key("value") => {
                let kept: Map<String, Value> = object
                    .iter()
                    .filter(|(key, _)| !["value", "source", "grade", "date"].contains(&key.as_str()))
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect();
                let Value::Object(mut figure) = self.figure() else { return self.json() };
                figure.extend(kept);
                Value::Object(figure)
            }
            Value::String(_) => Value::String(self.value.clone()),
            _ => self.json(),
        }
    }

    /// The value as a figure with its source.
    fn figure(&self) -> Value {
        let number: Option<f64> = self.value.parse().ok().filter(|number: &f64| number.is_finite());
        let value = number.map_or_else(|| json!(self.value), |number| json!(number));
        json!({"value": value, "source": format!("--set {self}"), "grade": "stated"})
    }

    fn unknown(&self, key: &str, known: &[String]) -> Error {
        let schema = format!("mantile-opt schema {}", self.file.name());
        let fix = suggest(key, known.iter().map(String::as_str), &schema);
        fault(format!("`{key}` of `{self}`"), format!("one of {}", known.join(", ")), fix)
    }
}

fn element<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    match value {
        Value::Object(object) => object.get_mut(key),
        Value::Array(items) => {
            let named =
                |item: &Value| ["id", "name", "link"].iter().any(|name| item.get(name) == Some(&json!(key)));
            let at = key.parse().ok().or_else(|| items.iter().position(named))?;
            items.get_mut(at)
        }
        _ => None,
    }
}

/// The keys of an object, or the indices of a list.
fn keys_of(value: &Value) -> Vec<String> {
    match value {
        Value::Object(object) => object.keys().cloned().collect(),
        Value::Array(items) => (0..items.len()).map(|index| index.to_string()).collect(),
        _ => vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_printed_override_reads_back(
            file in 0usize..4,
            name in prop::option::of("[a-z0-9.-]{1,8}"),
            keys in prop::collection::vec("[a-z_0-9]{1,8}", 1..4),
            value in "[!-~]{1,12}",
        ) {
            let one = Override { file: FILES[file].1, name, keys, value };
            prop_assert_eq!(one.to_string().parse::<Override>().unwrap(), one);
        }

        #[test]
        fn no_text_is_a_panic(text in "\\PC{0,40}") {
            if let Ok(one) = text.parse::<Override>() {
                let _ = one.apply(&mut json!({"a": [{"id": "b", "value": 1}]}));
            }
        }
    }

    #[test]
    fn figures_keep_their_form_and_name_the_override() {
        let mut file = json!({"memory": {"bandwidth": {"value": "3 TB/s", "source": "a"}}, "tiers": [{"name": "node", "devices": 8}]});
        let set = |text: &str, file: &mut Value| text.parse::<Override>().unwrap().apply(file);
        set("device.memory.bandwidth=4 TB/s", &mut file).unwrap();
        set("system.tiers.node.devices=4", &mut file).unwrap();
        assert_eq!(file["memory"]["bandwidth"]["value"], "4 TB/s");
        assert_eq!(file["memory"]["bandwidth"]["grade"], "stated");
        assert_eq!(file["tiers"][0]["devices"], 4);
        // As paths are listed.
        set("system.tiers[0].devices=2", &mut file).unwrap();
        assert_eq!(file["tiers"][0]["devices"], 2);
        let error = set("device.memroy.bandwidth=4 TB/s", &mut file).unwrap_err();
        assert!(error.fix.contains("memory"), "{error}");
        for wrong in [
            "",
            "a",
            "device",
            "device=3",
            "device.=3",
            "device.a=",
            "devise.a=3",
            "device[].a=3",
            "device[x.a=3",
            "device[x]a=3",
        ] {
            assert_eq!(wrong.parse::<Override>().unwrap_err().key, "set", "{wrong}");
        }
    }
}
