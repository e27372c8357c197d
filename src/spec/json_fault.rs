//! Faults of JSON in plain words: found and expected, without the terms of its reader.

use serde::de::{Deserialize, DeserializeOwned};
use serde_json::Value;

use super::error::Error;
use super::near::suggest;
use super::value_reader::{ValueFault, from_value};

/// The meaning of a message of the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainFault {
    pub found: String,
    /// The expected one, where the message says so.
    pub expected: Option<String>,
    /// An unknown key or value, and the known ones.
    unknown: Option<(String, Vec<String>)>,
}

/// The fault that a message of the reader means; `what` names the expected type with an article.
pub fn plain(message: &str, what: &str) -> PlainFault {
    let message = without_place(message);
    let (head, expected) = match message.rsplit_once(", expected ") {
        Some((head, expected)) => (head, Some(expected)),
        None => (message.as_str(), None),
    };
    let names = |text: &str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let quoted = |text: &str| text.trim_start_matches('`').trim_end_matches('`').to_owned();
    let fault = |found: String, expected: Option<String>| PlainFault { found, expected, unknown: None };
    let of_unknown = |kind: &str, name: &str| {
        let name = quoted(name);
        PlainFault {
            found: format!("the unknown {kind} `{name}`"),
            expected: expected.map(|text| plainly(text, what)),
            unknown: Some((name, names(expected.unwrap_or_default()))),
        }
    };
    if let Some(found) = head.strip_prefix("invalid type: ").or(head.strip_prefix("invalid value: ")) {
        return fault(value_in_words(found), expected.map(|text| plainly(text, what)));
    }
    if let Some(entries) = head.strip_prefix("invalid length ") {
        return fault(format!("{entries} entries"), expected.map(|text| plainly(text, what)));
    }
    if let Some(name) = head.strip_prefix("unknown field ") {
        return of_unknown("key", name.trim_end_matches(", there are no fields"));
    }
    if let Some(name) = head.strip_prefix("unknown variant ") {
        return of_unknown("value", name.trim_end_matches(", there are no variants"));
    }
    if let Some(name) = head.strip_prefix("missing field ") {
        return fault(format!("no key {name}"), Some(format!("{what} with the key {name}")));
    }
    if let Some(name) = head.strip_prefix("duplicate field ") {
        return fault(format!("the key {name} twice"), Some("each key once in an object".to_owned()));
    }
    match message.strip_prefix(ANOTHER_FORM) {
        Some(expected) => fault("another value".to_owned(), Some(expected.to_owned())),
        None if message.starts_with("data did not match any variant") => {
            fault("another value".to_owned(), Some(what.to_owned()))
        }
        None => match message.split_once(", expected ") {
            Some((found, expected)) => fault(found.to_owned(), Some(plainly(expected, what))),
            None => fault(message, None),
        },
    }
}

/// Start of the message of a type with several forms, which follow.
pub const ANOTHER_FORM: &str = "another value than ";

/// The expected type of a value within another.
const PART: &str = "an object";

/// Parses a text without duplicate keys.
pub fn read<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, Error> {
    let value = parsed(text, what)?;
    from_value(&value).map_err(|fault| of_data(fault, what, text))
}

/// Parses a value.
pub fn read_value<T: DeserializeOwned>(value: &Value, what: &str) -> Result<T, Error> {
    from_value(value).map_err(|fault| of_data(fault, what, &value.to_string()))
}

/// The one value of a text.
fn parsed(text: &str, what: &str) -> Result<Value, Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Value::deserialize(&mut reader).map_err(|fault| syntax(&fault, text, what))?;
    reader.end().map_err(|fault| {
        let fix = "keep one JSON object per file";
        Error::new("", format!("text after the end: {fault}"), what.to_string(), fix)
    })?;
    Ok(value)
}

/// The fault of a text that is not JSON.
fn syntax(fault: &serde_json::Error, text: &str, what: &str) -> Error {
    let fault =
        if text.trim().is_empty() { "no text at line 1 column 0".to_owned() } else { fault.to_string() };
    match fault.strip_prefix("recursion limit exceeded") {
        Some(place) => {
            let found = format!("JSON that nests too deep{place}");
            Error::new("", found, format!("{what} that nests at most 127 levels deep"), "nest it less")
        }
        None => Error::new(
            "",
            format!("text that is not JSON: {fault}"),
            format!("{what} as a JSON object"),
            "correct the syntax at that line and column",
        ),
    }
}

/// The fault of a value at a path.
fn of_data(ValueFault { path: key, message }: ValueFault, what: &str, text: &str) -> Error {
    // Within the value a struct is one of its parts.
    let part = if key.is_empty() { what } else { PART };
    let plain = plain(&message, part);
    let noun = what.split_once(' ').map_or(what, |(_, noun)| noun);
    let list = format!("mantile-opt schema {noun}");
    let fix = match &plain.unknown {
        Some((wrong, known)) => suggest(wrong, known.iter().map(String::as_str), &list),
        None => format!("correct it; `{list}` lists the valid values"),
    };
    let found = match key.is_empty() && plain.unknown.is_none() && plain.expected.is_some() {
        // The text may be that of any file: only values at known keys are quoted.
        true if !plain.found.starts_with("no key") => kind_of(text).to_owned(),
        _ => plain.found,
    };
    Error::new(key, found, plain.expected.unwrap_or_else(|| what.to_owned()), fix)
}

/// A message without `at line 1 column 2`: the key gives the place, and the text may not be the file's own.
fn without_place(message: &str) -> String {
    let Some((before, after)) = message.split_once(" at line ") else { return message.to_owned() };
    let place = |c: char| c.is_ascii_digit();
    let after = after.trim_start_matches(place);
    let after = after.strip_prefix(" column ").unwrap_or(after).trim_start_matches(place);
    format!("{before}{}", without_place(after))
}

/// The kind of the value in a JSON text.
pub fn kind_of(text: &str) -> &'static str {
    match text.trim_start().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a text",
        Some(b't' | b'f') => "true or false",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// A value as the reader names it, in words.
fn value_in_words(found: &str) -> String {
    /// Values by the reader's words; the value itself follows where the second text says so.
    const WORDS: [(&str, &str); 9] = [
        ("map", "an object"),
        ("sequence", "a list"),
        ("null", "null"),
        ("unit value", "null"),
        ("integer ", "the number "),
        ("floating point ", "the number "),
        ("boolean ", ""),
        ("string ", "the text "),
        ("character ", "the text "),
    ];
    let known = WORDS.iter().find_map(|(word, plain)| match word.strip_suffix(' ') {
        Some(_) => found.strip_prefix(word).map(|value| format!("{plain}{value}")),
        None => (found == *word).then(|| (*plain).to_owned()),
    });
    known.unwrap_or_else(|| "another value".to_owned())
}

fn plainly(expected: &str, what: &str) -> String {
    /// The reader's words for types, and ours.
    const WORDS: [(&str, &str); 10] = [
        ("u64|u32|u16|u8|usize", "a whole number of 0 or more"),
        ("i64|i32", "a whole number"),
        ("a nonzero u64", "a whole number of 1 or more"),
        ("f64|f32", "a number"),
        ("a string|string", "a text"),
        ("string or map", "a text, or an object"),
        ("a boolean", "true or false"),
        ("a sequence", "a list"),
        ("a map", "an object"),
        ("unit", "null"),
    ];
    if let Some((_, plain)) = WORDS.iter().find(|(words, _)| words.split('|').any(|word| word == expected)) {
        return (*plain).to_owned();
    }
    let of_the_reader = ["struct ", "tuple ", "enum ", "unit ", "newtype ", "internally ", "adjacently "];
    match expected.split_once(' ') {
        Some(("a", rest)) if rest.starts_with("tuple of size ") || rest.starts_with("tuple struct") => {
            "a list of as many entries as the schema lists".to_owned()
        }
        Some(("an", rest)) if rest.starts_with("array of length ") => {
            let length = rest.rsplit(' ').next().unwrap_or_default();
            format!("a list of {length} entries")
        }
        _ if of_the_reader.iter().any(|start| expected.starts_with(start)) => match what {
            PART => PART.to_owned(),
            _ => format!("{what} as an object"),
        },
        _ => expected.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_reader_are_said_in_plain_words() {
        let said = |message: &str| {
            let fault = plain(message, "a scenario");
            (fault.found, fault.expected.unwrap_or_default())
        };
        let pair = |found: &str, expected: &str| (found.to_owned(), expected.to_owned());
        for (message, found, expected) in [
            ("invalid type: map, expected a sequence at line 1 column 5", "an object", "a list"),
            (
                "invalid type: string \"a, expected b\", expected f64",
                "the text \"a, expected b\"",
                "a number",
            ),
            ("invalid value: integer `-5`, expected u64", "the number `-5`", "a whole number of 0 or more"),
            ("invalid type: null, expected struct Scenario", "null", "a scenario as an object"),
            ("missing field `a` at line 1 column 22", "no key `a`", "a scenario with the key `a`"),
            ("unknown variant `x`, expected `a` or `b`", "the unknown value `x`", "`a` or `b`"),
            ("unknown field `x`, there are no fields", "the unknown key `x`", ""),
            ("invalid length 3, expected an array of length 2", "3 entries", "a list of 2 entries"),
            ("data did not match any variant of untagged enum Spelled", "another value", "a scenario"),
            ("another value than a number or `all`", "another value", "a number or `all`"),
        ] {
            assert_eq!(said(message), pair(found, expected), "{message}");
        }
        let place = "no text at line 1 column 22: a figure at line 3 column 4";
        assert_eq!(without_place(place), "no text: a figure");
    }

    #[test]
    fn a_part_is_expected_as_an_object_and_not_as_the_whole() {
        #[derive(Debug, serde::Deserialize)]
        struct Whole {
            #[serde(rename = "part")]
            _part: Part,
        }
        #[derive(Debug, serde::Deserialize)]
        struct Part {
            #[serde(rename = "tp")]
            _tp: u64,
        }
        let fault = |text: &str| read::<Whole>(text, "a scenario").unwrap_err();
        for (text, key, expected) in [
            ("[1]", "", "a scenario as an object"),
            (r#"{"part": [1]}"#, "part", "an object"),
            (r#"{"part": {}}"#, "part", "an object with the key `tp`"),
        ] {
            let fault = fault(text);
            assert_eq!((fault.key.as_str(), fault.expected.as_str()), (key, expected), "{text}");
        }
    }
}
