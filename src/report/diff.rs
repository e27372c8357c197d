//! Compares two catalogue entries value by value, with ratios, for entries of any kind.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::table::table;
use crate::quantity::unit::parse;
use crate::spec::visible::visible;

/// A key whose values differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Path of the key.
    pub key: String,
    /// Its value in the first; absent where only the second has it.
    pub a: Option<String>,
    /// Its value in the second.
    pub b: Option<String>,
    /// The second over the first, where both are numbers of one unit.
    pub ratio: Option<f64>,
}

impl Difference {
    /// Key, both values and ratio as the cells of a row.
    pub fn cells(self) -> Vec<String> {
        let ratio = self.ratio.map(|ratio| ratio.to_string()).unwrap_or_default();
        vec![self.key, self.a.unwrap_or_default(), self.b.unwrap_or_default(), ratio]
    }
}

/// Keys that hold names and notes rather than values.
const WORDS: [&str; 6] = ["id", "name", "aliases", "notes", "leaves_note", "source"];

/// Differences between two entries, in the order of the first.
pub fn difference(a: &Value, b: &Value) -> Vec<Difference> {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    flatten(String::new(), a, &mut left);
    flatten(String::new(), b, &mut right);
    let find = |side: &[(String, String)], key: &str| {
        side.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone())
    };
    let mut seen = BTreeSet::new();
    let keys = left.iter().chain(&right).map(|(key, _)| key).filter(|key| seen.insert((*key).clone()));
    keys.filter_map(|key| {
        let (a, b) = (find(&left, key), find(&right, key));
        let ratio = ratio(a.as_deref(), b.as_deref());
        let same = a == b || ratio == Some(1.0);
        (!same).then(|| Difference { key: key.clone(), a, b, ratio })
    })
    .collect()
}

fn ratio(a: Option<&str>, b: Option<&str>) -> Option<f64> {
    let ((a, unit), (b, other)) = (parse(a?).ok()?, parse(b?).ok()?);
    let ratio = b / a;
    (unit == other && ratio.is_finite()).then_some(ratio)
}

fn flatten(path: String, value: &Value, rows: &mut Vec<(String, String)>) {
    let plain = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match value {
        Value::Object(map) if map.contains_key("value") && map.contains_key("source") => {
            // Measurements are distinguished by their description.
            let what = map.get("what").map(|what| format!(": {}", plain(what))).unwrap_or_default();
            rows.push((format!("{path}{what}"), map.get("value").map(plain).unwrap_or_default()));
        }
        Value::Object(map) => {
            for (key, value) in map {
                if path.is_empty() && WORDS.contains(&key.as_str()) {
                    continue;
                }
                let within = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                flatten(within, value, rows);
            }
        }
        Value::Array(values) if values.iter().any(Value::is_object) => {
            for (at, value) in values.iter().enumerate() {
                let measured = value.get("what").is_some();
                let within = if measured { path.clone() } else { format!("{path}[{at}]") };
                flatten(within, value, rows);
            }
        }
        Value::Array(values) => rows.push((path, values.iter().map(plain).collect::<Vec<_>>().join(", "))),
        Value::Null => {}
        other => rows.push((path, plain(other))),
    }
}

pub fn text(names: [&str; 2], differences: &[Difference]) -> String {
    if differences.is_empty() {
        let [a, b] = names.map(visible);
        return format!("{a} and {b} have the same values.\n");
    }
    table_of("figure", names, differences)
}

/// The differences as a table under `names`.
pub fn table_of(what: &str, names: [&str; 2], differences: &[Difference]) -> String {
    let cell = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
    let row = |d: &Difference| {
        let ratio = d.ratio.map(|ratio| format!("x {ratio:.3}")).unwrap_or_default();
        vec![d.key.clone(), cell(&d.a), cell(&d.b), ratio]
    };
    table(&[what, names[0], names[1], "second / first"], differences.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_have_their_ratios() {
        let figure = |value: &str, source: &str| json!({"value": value, "source": source});
        let a = json!({"id": "a", "memory": {"bandwidth": figure("2 TB/s", "s"), "kind": "hbm3"}, "tdp": figure("700 W", "s")});
        let b = json!({"id": "b", "memory": {"bandwidth": figure("3000 GB/s", "t"), "kind": "hbm3"}, "domain": 8});
        let found = difference(&a, &b);
        let found_ratios: Vec<_> = found.iter().map(|d| (d.key.as_str(), d.ratio)).collect();
        assert_eq!(found_ratios, [("memory.bandwidth", Some(1.5)), ("tdp", None), ("domain", None)]);
        assert!(difference(&a, &a).is_empty());
        let same = json!({"memory": {"bandwidth": figure("2000 GB/s", "u"), "kind": "hbm3"}, "tdp": figure("0.7 kW", "s")});
        assert!(difference(&a, &same).is_empty(), "other words for the same figures");
    }
}
