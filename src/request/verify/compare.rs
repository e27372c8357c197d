//! Saved values compared with recomputed ones, field by field.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::value;
use super::super::wording::{ANSWER, answer_in_keys};
use crate::quantity::tolerance::SUMMED;
use crate::spec::error::Error;
use crate::spec::text::from_json;

/// A field whose saved value is not the recomputed one.
pub(super) struct FieldDifference {
    /// Path of the field, e.g. `best.metrics.ttft_ms`.
    pub(super) path: String,
    /// The saved value; none if the field is missing.
    saved: Option<String>,
    /// The recomputed value; none if there is no such field.
    again: Option<String>,
}

impl fmt::Display for FieldDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.saved, &self.again) {
            (Some(saved), Some(again)) => write!(f, "{}: saved {saved}, recomputed {again}", self.path),
            (Some(saved), None) => write!(f, "{}: saved {saved}, no such field exists", self.path),
            (None, again) => {
                write!(f, "{}: not saved, recomputed {}", self.path, again.as_deref().unwrap_or_default())
            }
        }
    }
}

/// The fields of `saved` that differ from `again`, with paths below `path`; a missing field differs from null.
pub(super) fn differences(
    path: &str,
    saved: &impl Serialize,
    again: &impl Serialize,
) -> Vec<FieldDifference> {
    let mut found = Vec::new();
    let [saved, again] = [value(saved), value(again)].map(answer_in_keys);
    compare(path, Some(&saved), Some(&again), &mut found);
    found
}

/// Differences in words.
pub(super) fn faults(differences: Vec<FieldDifference>) -> Vec<String> {
    differences.iter().map(FieldDifference::to_string).collect()
}

/// Whether two numbers are equal except for rounding.
fn same(x: f64, y: f64, close: f64) -> bool {
    (x - y).abs() <= close * x.abs().max(y.abs())
}

fn compare(path: &str, saved: Option<&Value>, again: Option<&Value>, found: &mut Vec<FieldDifference>) {
    let below = |key: &str| if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
    match (saved, again) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
            names.for_each(|name| compare(&below(name), a.get(name), b.get(name), found));
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).enumerate();
            pairs.for_each(|(at, (a, b))| compare(&below(&at.to_string()), Some(a), Some(b), found));
        }
        (Some(Value::Number(a)), Some(Value::Number(b)))
            if a.as_f64().zip(b.as_f64()).is_some_and(|(x, y)| same(x, y, SUMMED)) => {}
        (a, b) if a == b => {}
        (a, b) => {
            let (saved, again) = (a.map(brief), b.map(brief));
            found.push(FieldDifference { path: path.to_string(), saved, again });
        }
    }
}

fn brief(value: &Value) -> String {
    const MOST: usize = 80;
    let text = value.to_string();
    if text.chars().count() <= MOST { text } else { text.chars().take(MOST).chain("…".chars()).collect() }
}

/// The difference of a saved number to its recomputed value, if larger than `close` of it.
pub(super) fn off(what: &str, saved: f64, again: f64, close: f64) -> Option<String> {
    (!same(saved, again, close)).then(|| format!("{what}: saved {saved}, recomputed {again}"))
}

/// Keys of the previous version, and the present ones.
const RENAMED: [(&str, &str); 3] = [("apart", "disaggregated"), ("asked", "question"), ("duty", "role")];

/// A result with the keys of this version.
fn with_present_keys(saved: &Value) -> Value {
    match saved {
        Value::Object(fields) => {
            let present = |key: &String| {
                let renamed =
                    RENAMED.iter().find(|(before, now)| before == key && !fields.contains_key(*now));
                renamed.map_or_else(|| key.clone(), |(_, now)| (*now).to_owned())
            };
            fields.iter().map(|(key, value)| (present(key), with_present_keys(value))).collect()
        }
        Value::Array(values) => values.iter().map(with_present_keys).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => saved.clone(),
    }
}

/// A saved result as its report.
pub(super) fn read<T: Serialize + DeserializeOwned>(saved: &Value) -> Result<T, Error> {
    let mut saved = with_present_keys(saved);
    if let Value::Object(fields) = &mut saved {
        // The name of the question decided the type.
        fields.shift_remove(ANSWER);
    }
    let saved = &saved;
    let report: T = from_json(&saved.to_string(), "a result")?;
    let Some(first) = differences("", saved, &report).into_iter().next() else { return Ok(report) };
    let found = match &first.saved {
        Some(saved) => format!("{saved}, in a field that a result does not have"),
        None => "nothing".to_string(),
    };
    let expected = first.again.unwrap_or_else(|| "no such field".to_string());
    let fix = "save the result again with `mantile-opt ... --format json --out answer.json`";
    Err(Error::new(first.path, found, expected, fix))
}
