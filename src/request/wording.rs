//! Words of answers and faults in JSON: keys of a request in place of flags, requests in place of commands.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use schemars::{JsonSchema, Schema, schema_for};
use serde_json::{Value, json};

use super::REQUESTS;
use crate::report::rendered::Answer;
use crate::spec::error::Error;

/// Every key of the requests, at any depth.
static KEYS: LazyLock<BTreeSet<String>> =
    LazyLock::new(|| REQUESTS.iter().flat_map(|entry| keys_of(&Value::from((entry.request)()))).collect());

/// Every key of a schema, at any depth.
pub fn keys_of(schema: &Value) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    collect(schema, &mut keys);
    keys
}

fn collect(schema: &Value, keys: &mut BTreeSet<String>) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        keys.extend(properties.keys().cloned());
    }
    match schema {
        Value::Object(parts) => parts.values().for_each(|part| collect(part, keys)),
        Value::Array(parts) => parts.iter().for_each(|part| collect(part, keys)),
        _ => {}
    }
}

/// The key of a request that a flag without its dashes sets.
pub fn key_of_flag(flag: &str) -> Option<String> {
    let key = flag.replace('-', "_");
    if KEYS.contains(&key) {
        return Some(key);
    }
    // The degrees of one pool are an object of their own.
    let (pool, degree) = key.split_once('_')?;
    (["prefill", "decode"].contains(&pool) && KEYS.contains(degree)).then(|| format!("{pool}.{degree}"))
}

/// The fault in words of a request in JSON.
pub fn fault_in_keys(fault: Error) -> Error {
    let Error { file, key, found, expected, fix } = fault;
    let [file, key, expected, fix] = [file, key, expected, fix].map(|text| in_keys(&text).into_owned());
    // The found value is a quotation.
    Error { file, key, found, expected, fix }
}

/// Parts of an answer that quote others: the request, commands and files of a launch, options of a runtime, sources.
const QUOTED: [&str; 18] = [
    "scenario",
    "command",
    "commands",
    "router",
    "files",
    "options",
    "unsupported",
    "yaml",
    "environment",
    "changes",
    "content",
    "unread",
    "processes",
    "rule",
    "words",
    "source",
    "sources",
    "cite",
];

/// An answer in words of a request in JSON: each of its texts, except those that quote others.
pub fn answer_in_keys(answer: Value) -> Value {
    match answer {
        Value::String(text) => match in_keys(&text) {
            Cow::Borrowed(_) => Value::String(text),
            Cow::Owned(shown) => Value::String(shown),
        },
        Value::Array(parts) => parts.into_iter().map(answer_in_keys).collect(),
        Value::Object(parts) => {
            let quoted = |key: &str, part: &Value| {
                // The report of a command that was read back has texts of its own.
                QUOTED.contains(&key) && !(key == "command" && part.is_object())
            };
            let part = |(key, part): (String, Value)| match quoted(&key, &part) {
                true => (key, part),
                false => (key, answer_in_keys(part)),
            };
            parts.into_iter().map(part).collect()
        }
        other => other,
    }
}

/// An answer as JSON in words of a request, the same from the command line as from elsewhere.
pub fn worded<T: Answer>(answer: &T) -> Value {
    match super::value(answer) {
        answer if T::VERBATIM => answer,
        Value::Object(parts) => {
            let name = (ANSWER.to_owned(), T::QUESTION.into());
            let Value::Object(parts) = answer_in_keys(Value::Object(parts)) else { return Value::Null };
            Value::Object(std::iter::once(name).chain(parts).collect())
        }
        answer => answer_in_keys(answer),
    }
}

/// The key of an answer that names its question.
pub const ANSWER: &str = "answer";

/// The JSON Schema of an answer with the key that names its question.
pub fn named_schema<T: Answer + JsonSchema>() -> Schema {
    let mut schema = schema_for!(T);
    if T::VERBATIM || schema.get("type").is_some_and(|kind| kind == "array") {
        return schema;
    }
    let object = schema.ensure_object();
    let named = json!({"const": T::QUESTION, "description": "The question that this answers."});
    let properties = object.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        properties.shift_insert(0, ANSWER.to_owned(), named);
    }
    schema
}

/// A text with keys of a request in place of flags, and requests in place of commands.
pub fn in_keys(text: &str) -> Cow<'_, str> {
    if !text.contains("--") && !text.contains(COMMAND) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for (at, part) in text.split('`').enumerate() {
        let quoted = at % 2 == 1;
        match quoted.then(|| part.strip_prefix(COMMAND)).flatten() {
            Some(command) => shown.push_str(&request_of(command.trim())),
            None if quoted => shown.extend(["`", &without_flags(part), "`"]),
            None => shown.push_str(&without_flags(part)),
        }
    }
    Cow::Owned(shown)
}

const COMMAND: &str = "mantile-opt";

/// A command as a request: only a command line writes what follows its first flag.
fn request_of(command: &str) -> String {
    let named = command.split("--").next().unwrap_or_default().trim_end_matches(['.', '…', ' ']);
    if named.is_empty() { "a request".to_owned() } else { format!("request `{named}`") }
}

fn without_flags(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("--") {
        let (before, after) = rest.split_at(at);
        let length = after[2..].find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
        let flag = &after[2..2 + length.unwrap_or(after.len() - 2)];
        let begins = before.chars().next_back().or_else(|| shown.chars().next_back());
        let begins = begins.is_none_or(|c| !c.is_alphanumeric() && c != '-');
        let flag = flag.trim_end_matches('-');
        shown.push_str(before);
        // Flags of other programs remain.
        match begins.then(|| key_of_flag(flag)).flatten() {
            Some(key) => shown.push_str(&key),
            None => shown.extend(["--", flag]),
        }
        rest = &after[2 + flag.len()..];
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_keys_and_commands_become_requests() {
        for (text, shown) in [
            ("set --host-memory, or lower --osl", "set host_memory, or lower osl"),
            ("add --hardware, e.g. --hardware 8xh100", "add hardware, e.g. hardware 8xh100"),
            ("set --prefill-tp; `--vary tp=1`", "set prefill.tp; `vary tp=1`"),
            (
                "`mantile-opt schema scenario` lists the valid values",
                "request `schema scenario` lists the valid values",
            ),
            ("save one with `mantile-opt ... --format json --out a.json`", "save one with a request"),
            ("a--b and -- and --tensor-split", "a--b and -- and --tensor-split"),
            ("`catalog devices`", "`catalog devices`"),
        ] {
            assert_eq!(in_keys(text), shown);
        }
        assert_eq!(key_of_flag("no-such-flag"), None);
    }
}
