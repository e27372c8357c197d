//! Verification of a saved result against its own problem: every row re-evaluated, the objective, the front,
//! a sample of pruned plans, and the search itself. Reads no files.

pub mod fleet;
mod laws;
pub mod optimize;
pub mod place;
pub mod recommend;
mod row;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The checks of a saved result.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Verified {
    /// Whether every check passed.
    pub holds: bool,
    /// The checks.
    pub checks: Vec<CheckResult>,
    /// Seed of the sample.
    pub seed: u64,
}

/// A check.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CheckResult {
    /// Description of the check.
    pub what: String,
    /// Number of items checked.
    pub of: u64,
    /// Faults; empty if the check passes.
    pub faults: Vec<String>,
}

/// Maximum number of faults listed per check.
const TOLD: usize = 5;
/// Relative tolerance of equal numbers: files hold all digits, so that only rounding differs.
const CLOSE: f64 = 1e-9;

impl Verified {
    fn of(checks: Vec<CheckResult>, seed: u64) -> Verified {
        Verified { holds: checks.iter().all(|check| check.faults.is_empty()), checks, seed }
    }
}

impl CheckResult {
    fn new(what: impl Into<String>, of: usize, mut faults: Vec<String>) -> CheckResult {
        let more = faults.len().saturating_sub(TOLD);
        faults.truncate(TOLD);
        if more > 0 {
            faults.push(format!("and {more} more"));
        }
        CheckResult { what: what.into(), of: of as u64, faults }
    }
}

/// A value, shortened.
fn brief(value: &Value) -> String {
    const MOST: usize = 80;
    let text = value.to_string();
    if text.chars().count() <= MOST { text } else { text.chars().take(MOST).chain("…".chars()).collect() }
}

/// Differences between two values, as `path: saved a, recomputed b`; a missing field differs from null.
fn differences(path: &str, saved: &Value, again: &Value, found: &mut Vec<String>) {
    let key = |key: &str| if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
    match (saved, again) {
        (Value::Object(a), Value::Object(b)) => {
            for name in a.keys().chain(b.keys().filter(|name| !a.contains_key(*name))) {
                match (a.get(name), b.get(name)) {
                    (Some(a), Some(b)) => differences(&key(name), a, b, found),
                    (Some(a), None) => {
                        found.push(format!("{}: saved {}, no such field exists", key(name), brief(a)))
                    }
                    (_, b) => {
                        let b = b.map_or_else(String::new, brief);
                        found.push(format!("{}: not saved, recomputed {b}", key(name)));
                    }
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&key(&at.to_string()), a, b, found);
            }
        }
        (Value::Number(a), Value::Number(b)) => {
            let (x, y) = (a.as_f64().unwrap_or(f64::NAN), b.as_f64().unwrap_or(f64::NAN));
            if (x - y).abs() > CLOSE * x.abs().max(y.abs()) || x.is_nan() != y.is_nan() {
                found.push(format!("{path}: saved {a}, recomputed {b}"));
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push(format!("{path}: saved {}, recomputed {}", brief(a), brief(b))),
    }
}

/// Differences between two results, except some fields; fields that only one has count as differences.
fn whole(saved: &Value, again: &Value, but: &[&str]) -> Vec<String> {
    let left = |value: &Value| {
        let mut value = value.clone();
        if let Value::Object(fields) = &mut value {
            but.iter().for_each(|key| {
                fields.remove(*key);
            });
        }
        value
    };
    let mut found = Vec::new();
    differences("", &left(saved), &left(again), &mut found);
    found
}

/// Differences in the values of `keys`.
fn unlike(keys: &[&str], saved: &Value, again: &Value) -> Vec<String> {
    let mut found = Vec::new();
    keys.iter().for_each(|key| differences(key, &saved[key], &again[key], &mut found));
    found
}

/// The difference of a saved number to its recomputed value, if larger than `close` of it.
fn off(what: &str, saved: f64, again: f64, close: f64) -> Option<String> {
    let same = (saved - again).abs() <= close * saved.abs().max(again.abs());
    (!same).then(|| format!("{what}: saved {saved}, recomputed {again}"))
}

/// The number at `key`; NaN if absent.
fn figure(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or(f64::NAN)
}

fn value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or(Value::Null)
}

fn rows<'a>(saved: &'a Value, key: &str) -> Vec<&'a Value> {
    saved.get(key).and_then(Value::as_array).map_or_else(Vec::new, |rows| rows.iter().collect())
}
