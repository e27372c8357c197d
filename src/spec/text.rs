//! Parses JSON text into input types; faults name key, found, expected and fix.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::error::Error;
use super::json_fault;
use super::visible::acts;

/// Parses `text`; `what` names its type with an article, e.g. "a device".
///
/// # Errors
/// Names the key, the found and the expected value.
pub fn from_json<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, Error> {
    each_key_once(text)?;
    json_fault::read(text, what)
}

/// Parses an entry of the catalogue: its texts name things in answers, files and terminals, so each is shown as it is.
pub fn entry_from_json<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, Error> {
    let parsed = from_json(text, what)?;
    if let Ok(value) = serde_json::from_str(text) {
        each_text_shown(&value, None)?;
    }
    Ok(parsed)
}

/// Checks every text of the value at `key` of an entry; of a whole entry where it is empty.
///
/// # Errors
/// Names the first character that is not seen.
pub fn texts_shown(key: &str, value: &Value) -> Result<(), Error> {
    let place = TextPlace { of: None, part: TextPart::Key(key) };
    each_text_shown(value, Some(&place).filter(|_| !key.is_empty()))
}

/// Keys whose texts are no names: the configuration of a model, and templates of scripts.
const NOT_NAMES: [&str; 4] = ["config", "script", "command", "files"];

/// The place of a value in a file, which is spelt only for a fault.
struct TextPlace<'a> {
    of: Option<&'a TextPlace<'a>>,
    part: TextPart<'a>,
}

enum TextPart<'a> {
    Key(&'a str),
    Item(usize),
}

impl fmt::Display for TextPlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(of) = self.of {
            of.fmt(f)?;
        }
        match self.part {
            TextPart::Key(key) => write!(f, "{}{key}", if self.of.is_some() { "." } else { "" }),
            TextPart::Item(at) => write!(f, "[{at}]"),
        }
    }
}

/// Checks every text of `value`, which is at `place`; that of a whole file has none.
fn each_text_shown(value: &Value, place: Option<&TextPlace>) -> Result<(), Error> {
    let spelt = |fault: Error| Error { key: place.map(TextPlace::to_string).unwrap_or_default(), ..fault };
    let seen = |text: &str| shown_name("", text).map_err(spelt);
    match value {
        Value::String(text) => seen(text),
        Value::Array(items) => items.iter().enumerate().try_for_each(|(at, item)| {
            each_text_shown(item, Some(&TextPlace { of: place, part: TextPart::Item(at) }))
        }),
        Value::Object(items) => {
            let mut named = items.iter().filter(|(name, _)| !NOT_NAMES.contains(&name.as_str()));
            named.try_for_each(|(name, item)| {
                seen(name)?;
                each_text_shown(item, Some(&TextPlace { of: place, part: TextPart::Key(name) }))
            })
        }
        _ => Ok(()),
    }
}

/// Checks that a name has only characters that are seen and do nothing else.
///
/// # Errors
/// Names the first other character.
pub fn shown_name(key: &str, name: &str) -> Result<(), Error> {
    let Some(hidden) = name.chars().find(|c| acts(*c)) else { return Ok(()) };
    let code = u32::from(hidden);
    Err(Error::new(
        key,
        format!("`{name}`, with the character U+{code:04X}"),
        "a text without control, directional and invisible characters",
        format!("remove U+{code:04X}"),
    ))
}

/// Checks that no object of a JSON text has a duplicate key: parsers differ in the value that they take. Other faults
/// are reported by the parser of the caller.
///
/// # Errors
/// Names the key and the line of its second occurrence.
pub fn each_key_once(text: &str) -> Result<(), Error> {
    // Most texts have no fault, and a reader that keeps the path takes several times as long.
    if serde_json::from_str::<Once>(text).is_ok() {
        return Ok(());
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let Err(fault) = serde_path_to_error::deserialize::<_, Once>(&mut reader) else { return Ok(()) };
    let (path, inner) = (fault.path().to_string(), fault.into_inner());
    let message = inner.to_string();
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(before, _)| before);
    let Some(key) = inner.is_data().then(|| message.strip_prefix(TWICE)).flatten() else { return Ok(()) };
    let path = if path == "." { key.to_owned() } else { format!("{path}.{key}") };
    let found = format!("`{key}` a second time, in line {}", inner.line());
    Err(Error::new(path, found, "each key once in an object", "remove one of the two"))
}

/// Start of the message for a duplicate key.
const TWICE: &str = "the key comes twice: ";

struct Once;

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Once, D::Error> {
        reader.deserialize_any(Once)
    }
}

macro_rules! any {
    ($($method:ident: $type:ty;)*) => {
        $(fn $method<E>(self, _: $type) -> Result<Once, E> {
            Ok(Once)
        })*
    };
}

impl<'de> Visitor<'de> for Once {
    type Value = Once;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Once, A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if seen.contains(&key) {
                return Err(A::Error::custom(format_args!("{TWICE}{key}")));
            }
            seen.insert(key);
            map.next_value::<Once>()?;
        }
        Ok(Once)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Once, A::Error> {
        while items.next_element::<Once>()?.is_some() {}
        Ok(Once)
    }

    any! { visit_bool: bool; visit_i64: i64; visit_u64: u64; visit_f64: f64; visit_str: &str; }

    fn visit_unit<E>(self) -> Result<Once, E> {
        Ok(Once)
    }
}

/// A fault of YAML without the lines that it quotes: the text may be that of any file.
pub fn yaml_place(fault: &serde_saphyr::Error) -> String {
    let place = fault.location().map(|at| format!(", in line {} at column {}", at.line(), at.column()));
    format!("text that is not YAML{}", place.unwrap_or_default())
}

/// The text of the file `name` as JSON: that of a YAML file is converted, any other is as it is.
pub fn json_text(name: &str, text: String) -> Result<String, Error> {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_lowercase());
    if !ending.is_some_and(|ending| ["yaml", "yml"].contains(&ending.as_str())) {
        return Ok(text);
    }
    let value: Value = serde_saphyr::from_str(&text).map_err(|fault| {
        Error::new("", yaml_place(&fault), "a file in YAML", "correct it at that place").in_file(name)
    })?;
    Ok(value.to_string())
}

/// A name without case and separators: `Llama_3.3-70b` and `llama-3.3-70B` are one name. A sign before it remains:
/// `-8xh100` is no name.
pub fn folded(name: &str) -> String {
    folded_letters(name).collect()
}

/// Whether two names are one, whatever their case and separators.
pub fn is_same_name(one: &str, other: &str) -> bool {
    folded_letters(one).eq(folded_letters(other))
}

fn folded_letters(name: &str) -> impl Iterator<Item = char> {
    let kept = |(place, c): &(usize, char)| *place == 0 || c.is_alphanumeric();
    name.char_indices().filter(kept).flat_map(|(_, c)| c.to_lowercase())
}

/// A time in UTC, to the millisecond: `2026-02-07T21:00:00.000Z` (RFC 3339), from the time since 1970 began.
pub fn in_utc(since: Duration) -> String {
    let time = DateTime::from_timestamp(since.as_secs() as i64, since.subsec_nanos());
    time.map(|time| time.to_rfc3339_opts(SecondsFormat::Millis, true)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::scenario::Scenario;

    fn fault(text: &str) -> Error {
        from_json::<Scenario>(text, "a scenario").unwrap_err()
    }

    #[test]
    fn faults_are_written_without_the_names_of_types() {
        let unknown = fault(r#"{"modle": "x"}"#);
        assert_eq!(unknown.key, "modle");
        assert_eq!(unknown.fix, "did you mean `mode` or `model`?");
        let negative = fault(r#"{"isl": -5}"#);
        assert_eq!(
            (negative.key.as_str(), negative.expected.as_str()),
            ("isl", "a whole number of 0 or more")
        );
        assert!(negative.found.contains("-5") && negative.fix.contains("schema scenario"), "{negative}");
        assert_eq!(fault(r#"{"model": 7}"#).expected, "a text");
        assert_eq!(fault(r#"{"deployment": {"both": 3}}"#).key, "deployment.both");
    }

    #[test]
    fn a_key_that_comes_twice_is_named_with_its_line_at_any_depth() {
        let fault_of = |text: &str| from_json::<Value>(text, "a file").unwrap_err();
        let twice = fault_of("{\n\"a\": 1,\n\"b\": [{\"c\": {\"d\": 1,\n\"d\": 2}}]}");
        assert_eq!(twice.key, "b[0].c.d");
        assert!(twice.found.contains("`d`") && twice.found.contains("line 4"), "{twice}");
        assert_eq!(fault_of("{\"a\": {}, \"\\u0061\": 2}").key, "a");
        assert!(from_json::<Value>("[{\"a\": 1}, {\"a\": {\"a\": 1}}]", "a file").is_ok());
    }

    #[test]
    fn what_is_no_json_is_said_with_its_place() {
        for text in ["", "[package]", "{\"isl\": NaN}", "{\"rate\": 1e999}", "{} {}", "{\"isl\": 1,}"] {
            let error = fault(text);
            assert!(error.key.is_empty() && error.found.contains("line"), "{text}: {error}");
        }
    }
}
