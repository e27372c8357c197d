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

/// A door other than the command line, whose words a fault is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Requests in JSON: HTTP, MCP and WebAssembly.
    Json,
    /// Functions of Python, whose arguments are the keys of a request.
    Python,
}

/// Objects of a request whose keys are arguments in Python.
const FLAT: [&str; 4] = ["scenario.", "fleet.", "deployment.", "both."];

/// Pools of a deployment with degrees of their own.
const POOLS: [&str; 2] = ["prefill", "decode"];

impl Door {
    /// The fault in words of this door.
    pub fn fault(self, fault: Error) -> Error {
        let Error { file, key, found, expected, fix } = fault;
        let [file, key, expected, fix] = [file, key, expected, fix].map(|text| self.text(&text).into_owned());
        // The found value is a quotation.
        Error { file, key: self.key(key), found, expected, fix }
    }

    /// The path of a key as it is set here.
    fn key(self, path: String) -> String {
        if self == Door::Json {
            return path;
        }
        let flat = FLAT.iter().fold(path.as_str(), |rest, object| rest.strip_prefix(object).unwrap_or(rest));
        match flat.split_once('.') {
            Some((pool, degree)) if POOLS.contains(&pool) => self.degree(pool, degree),
            _ => flat.to_owned(),
        }
    }

    /// A degree of one pool, which is an object of its own in a request.
    fn degree(self, pool: &str, degree: &str) -> String {
        let between = if self == Door::Json { '.' } else { '_' };
        format!("{pool}{between}{degree}")
    }

    /// The key of a request that a flag without its dashes sets.
    fn key_of_flag(self, flag: &str) -> Option<String> {
        let key = flag.replace('-', "_");
        if KEYS.contains(&key) {
            return Some(key);
        }
        let (pool, degree) = key.split_once('_')?;
        (POOLS.contains(&pool) && KEYS.contains(degree)).then(|| self.degree(pool, degree))
    }

    /// A text with keys in place of flags, and requests in place of commands.
    fn text(self, text: &str) -> Cow<'_, str> {
        if !text.contains("--") && !text.contains(COMMAND) {
            return Cow::Borrowed(text);
        }
        let mut shown = String::with_capacity(text.len());
        for (at, part) in text.split('`').enumerate() {
            let quoted = at % 2 == 1;
            match quoted.then(|| part.strip_prefix(COMMAND)).flatten() {
                Some(command) => shown.push_str(&self.request(command.trim())),
                None if quoted => shown.extend(["`", &self.without_flags(part), "`"]),
                None => shown.push_str(&self.without_flags(part)),
            }
        }
        Cow::Owned(shown)
    }

    /// A command as a request: only a command line writes what follows its first flag.
    fn request(self, command: &str) -> String {
        let named = command.split("--").next().unwrap_or_default().trim_end_matches(['.', '…', ' ']);
        let mut words = named.split(' ');
        match (self, words.next().filter(|name| !name.is_empty())) {
            (_, None) => "a request".to_owned(),
            (Door::Json, _) => format!("request `{named}`"),
            (Door::Python, Some(name)) => {
                let given: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
                format!("`mantile.{name}({})`", given.join(", "))
            }
        }
    }

    fn without_flags(self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("--") {
            let (before, after) = rest.split_at(at);
            let length =
                after[2..].find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
            let flag = &after[2..2 + length.unwrap_or(after.len() - 2)];
            let begins = before.chars().next_back().or_else(|| shown.chars().next_back());
            let begins = begins.is_none_or(|c| !c.is_alphanumeric() && c != '-');
            let flag = flag.trim_end_matches('-');
            shown.push_str(before);
            // Flags of other programs remain.
            match begins.then(|| self.key_of_flag(flag)).flatten() {
                Some(key) => shown.push_str(&key),
                None => shown.extend(["--", flag]),
            }
            rest = &after[2 + flag.len()..];
        }
        shown.push_str(rest);
        shown
    }
}

/// The fault of JSON that is no request, or no answer, of a question: the schema that lists the valid values is that
/// question's.
pub fn of_schema(fault: Error, question: &str, noun: &str) -> Error {
    let fix = fault
        .fix
        .replace(&format!("{COMMAND} schema {noun}"), &format!("{COMMAND} schema {question}-{noun}"));
    Error { fix, ..fault }
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
        Value::String(text) => match Door::Json.text(&text) {
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

const COMMAND: &str = "mantile-opt";

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
            assert_eq!(Door::Json.text(text), shown);
        }
        assert_eq!(Door::Json.key_of_flag("no-such-flag"), None);
    }

    #[test]
    fn python_has_arguments_and_functions() {
        let fault = Error::new(
            "scenario.deployment.prefill.tp",
            "--tp",
            "--decode-tp or --tp",
            "`mantile-opt catalog devices l40s --json` shows it, `mantile-opt verify` too, or save one with \
             `mantile-opt ... --json`",
        );
        let fault = Door::Python.fault(fault);
        assert_eq!([fault.key, fault.found, fault.expected], ["prefill_tp", "--tp", "decode_tp or tp"]);
        let fix = "`mantile.catalog(\"devices\", \"l40s\")` shows it, `mantile.verify()` too, or save one with a request";
        assert_eq!(fault.fix, fix);
        for (path, argument) in [
            ("scenario.set[0]", "set[0]"),
            ("fleet.offers", "offers"),
            ("scenario.deployment.both.tp", "tp"),
            ("vary", "vary"),
        ] {
            assert_eq!(Door::Python.key(path.to_owned()), argument);
        }
    }
}
