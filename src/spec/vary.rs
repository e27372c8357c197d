//! Varied keys of a sweep: `KEY=VALUES`, where VALUES are a list, a geometric or an arithmetic range.
//!
//! Keys and their types come from the schemas of scenario and deployment: a new key can be varied at once.

use crate::quantity::tolerance::SUMMED;
use crate::spec::degree::Degrees;
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::deployment::Deployment;
use super::error::Error;
use super::limits::{POINTS, number, of_flag, suffix_factor, whole};
use super::near::suggest;
use super::scalar::ScalarKind;
use super::scenario::Scenario;
use super::text::from_json;

/// A key of a scenario or of its deployment, and its values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariedKey {
    /// The key: that of a scenario file, or a degree of the deployment: `tp`, `prefill_tp`, `decode_pp`.
    pub key: String,
    /// Its values, in order.
    pub values: Vec<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueType {
    Scalar(ScalarKind),
    Boolean,
    List,
}

const DEPLOYMENT: &str = "deployment";

fn properties(schema: &schemars::Schema) -> Map<String, Value> {
    let known = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let plain = |schema: &Value| schema.get("$ref").is_none();
    known.into_iter().filter(|(key, schema)| plain(schema) && key != DEPLOYMENT).collect()
}

/// Path and schema of every key that can be varied.
fn places() -> Vec<(String, Vec<String>, Value)> {
    let at = |path: &[&str]| -> Vec<String> { path.iter().map(|part| (*part).to_owned()).collect() };
    let mut all = Vec::new();
    for (key, schema) in properties(&schema_for!(Scenario)) {
        all.push((key.clone(), at(&[&key]), schema));
    }
    for (key, schema) in properties(&schema_for!(Deployment)) {
        all.push((key.clone(), at(&[DEPLOYMENT, &key]), schema));
    }
    for (pool, prefix) in [("both", ""), ("prefill", "prefill_"), ("decode", "decode_")] {
        for (key, schema) in properties(&schema_for!(Degrees)) {
            all.push((format!("{prefix}{key}"), at(&[DEPLOYMENT, pool, &key]), schema));
        }
    }
    all
}

#[cfg(feature = "internals")]
pub fn keys() -> Vec<String> {
    places().into_iter().map(|(key, ..)| key).collect()
}

fn fault(key: &str, found: impl Into<String>, expected: impl Into<String>, fix: impl Into<String>) -> Error {
    Error::new(format!("vary {key}"), found, expected, fix)
}

/// Where the key is in a scenario.
pub fn path(key: &str) -> Result<Vec<String>, Error> {
    Ok(place(key)?.0)
}

fn place(key: &str) -> Result<(Vec<String>, Value), Error> {
    let places = places();
    let found = places.iter().find(|(known, ..)| known == key).map(|(_, path, schema)| (path, schema));
    found.map(|(path, schema)| (path.clone(), schema.clone())).ok_or_else(|| {
        let known = places.iter().map(|(known, ..)| known.as_str());
        let fix = suggest(key, known, "mantile-opt schema scenario");
        Error::new("vary", format!("`{key}`"), "a key of a scenario or of its deployment", fix)
    })
}

impl ValueType {
    fn of(schema: &Value) -> ValueType {
        let named = |name: &str| match schema.get("type") {
            Some(Value::String(one)) => one == name,
            Some(Value::Array(several)) => several.iter().any(|one| one == name),
            _ => false,
        };
        let types = [
            ("integer", ValueType::Scalar(ScalarKind::Whole)),
            ("number", ValueType::Scalar(ScalarKind::Number)),
            ("boolean", ValueType::Boolean),
            ("array", ValueType::List),
        ];
        types
            .into_iter()
            .find(|(name, _)| named(name))
            .map_or(ValueType::Scalar(ScalarKind::Text), |(_, found)| found)
    }
}

impl VariedKey {
    /// Reads `KEY=VALUES`. Values are separated by commas, or by semicolons where one contains a comma; a range is
    /// `1k..64k*2` or `0..100+10`.
    pub fn parse(text: &str) -> Result<VariedKey, Error> {
        let example = "write e.g. `--vary tp=1,2,4,8` or `--vary isl=1k..64k*2`";
        let Some((key, values)) = text.split_once('=') else {
            return Err(Error::new("vary", format!("`{text}`"), "KEY=VALUES", example));
        };
        let key = key.trim().replace('-', "_");
        let (path, schema) = place(&key)?;
        let kind = ValueType::of(&schema);
        let separator = if values.contains(';') || kind == ValueType::List { ';' } else { ',' };
        let mut texts = Vec::new();
        for item in values.split(separator).map(str::trim) {
            if item.is_empty() {
                return Err(fault(&key, format!("`{values}`"), "values between the separators", example));
            }
            match Range::parse(&key, item, kind)? {
                Some(range) => texts.extend(range.texts(&key, kind)?),
                None => texts.push(item.to_owned()),
            }
        }
        POINTS.check_whole(&format!("vary {key}"), texts.len() as u64)?;
        let values =
            texts.iter().map(|text| value(&key, &path, text, kind)).collect::<Result<Vec<_>, _>>()?;
        let mut seen = std::collections::HashSet::new();
        if let Some(twice) = values.iter().find(|value| !seen.insert(value.to_string())) {
            return Err(fault(&key, format!("{twice} twice"), "each value once", "omit one of them"));
        }
        Ok(VariedKey { key, values })
    }
}

/// A value from its text, checked by its type and range.
fn value(key: &str, path: &[String], text: &str, kind: ValueType) -> Result<Value, Error> {
    let wrong = |expected: String| fault(key, format!("`{text}`"), expected, "correct the value");
    let limit = of_flag(&key.replace('_', "-"));
    let parsed = match (kind, limit) {
        (ValueType::Scalar(ScalarKind::Whole), Some(limit)) => whole(limit)(text).map_err(wrong)?.into(),
        (ValueType::Scalar(ScalarKind::Number), Some(limit)) => number(limit)(text).map_err(wrong)?.into(),
        (ValueType::Scalar(ScalarKind::Whole | ScalarKind::Number) | ValueType::Boolean, _) => {
            serde_json::from_str(text).map_err(|_| wrong("a number, `true` or `false`".to_owned()))?
        }
        (ValueType::List, _) => Value::Array(text.split(',').map(|part| scalar(part.trim())).collect()),
        (ValueType::Scalar(ScalarKind::Text), _) => Value::from(text),
    };
    let mut scenario = Value::Object(Map::new());
    put(&mut scenario, path, parsed.clone());
    let read = from_json::<Scenario>(&scenario.to_string(), "a scenario");
    let checked = read.and_then(|read| {
        read.check()?;
        read.limits(super::objective::LatencyLimits::default())
    });
    checked.map(|_| parsed).map_err(|inner| Error { key: format!("vary {key}"), ..inner })
}

/// A part of a list: a number where it is one.
fn scalar(text: &str) -> Value {
    text.parse::<u64>().map_or_else(|_| Value::from(text), Value::from)
}

/// Puts `value` at `path` in a scenario as JSON.
pub fn put(scenario: &mut Value, path: &[String], value: Value) {
    let Value::Object(keys) = scenario else { return };
    match path {
        [] => {}
        [last] => drop(keys.insert(last.clone(), value)),
        [first, rest @ ..] => {
            put(keys.entry(first.clone()).or_insert_with(|| Value::Object(Map::new())), rest, value)
        }
    }
}

#[derive(Clone, Copy)]
enum Step {
    Factor(f64),
    Difference(f64),
}

/// A range of numbers that share a unit.
struct Range<'a> {
    low: f64,
    high: f64,
    step: Step,
    unit: &'a str,
}

impl<'a> Range<'a> {
    /// The range that `item` is, if it is one.
    fn parse(key: &str, item: &'a str, kind: ValueType) -> Result<Option<Range<'a>>, Error> {
        let Some((low, rest)) = item.split_once("..") else { return Ok(None) };
        if !low.trim().starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(None);
        }
        let wrong = |why: &str| {
            let fix = "write e.g. `1k..64k*2`, `0..100+10` or `100ms..800ms*2`";
            Err(fault(key, format!("`{item}`, {why}"), "LOW..HIGH*FACTOR or LOW..HIGH+STEP", fix))
        };
        let Some(at) = rest.rfind(['*', '+']) else { return wrong("without a step") };
        let (low, high, step) = (split(low), split(&rest[..at]), split(&rest[at + 1..]));
        let (Some((low, first)), Some((high, unit)), Some((step, none))) = (low, high, step) else {
            return wrong("which is not of numbers");
        };
        // Suffixes of whole numbers are factors, those of other values are units.
        let whole = kind == ValueType::Scalar(ScalarKind::Whole);
        let times = |unit: &str| if whole { suffix_factor(unit) } else { Some(1.0) };
        let (Some(a), Some(b), Some(c)) = (times(first), times(unit), times(none)) else {
            return wrong("with an unknown suffix");
        };
        if !whole && ((!first.is_empty() && first != unit) || !none.is_empty()) {
            return wrong("with several units");
        }
        let (low, high, step) = (low * a, high * b, step * c);
        let step = if rest[at..].starts_with('*') { Step::Factor(step) } else { Step::Difference(step) };
        let grows = match step {
            Step::Factor(factor) => factor > 1.0 && low > 0.0,
            Step::Difference(difference) => difference > 0.0,
        };
        if !grows || high < low || !high.is_finite() {
            return wrong("which never arrives at its end");
        }
        Ok(Some(Range { low, high, step, unit: if whole { "" } else { unit } }))
    }

    fn texts(&self, key: &str, kind: ValueType) -> Result<Vec<String>, Error> {
        let steps = match self.step {
            Step::Factor(factor) => libm::log(self.high / self.low) / libm::log(factor),
            Step::Difference(difference) => (self.high - self.low) / difference,
        };
        let last = (steps * (1.0 + SUMMED) + SUMMED).floor();
        POINTS.check(&format!("vary {key}"), last + 1.0)?;
        let mut texts: Vec<String> = Vec::new();
        for at in 0..=last as u64 {
            let value = match self.step {
                Step::Factor(factor) => self.low * libm::pow(factor, at as f64),
                Step::Difference(difference) => self.low + difference * at as f64,
            };
            let text = match kind {
                ValueType::Scalar(ScalarKind::Whole) => format!("{}", value.round()),
                _ => format!("{}{}", rounded(value), self.unit),
            };
            if texts.last() != Some(&text) {
                texts.push(text);
            }
        }
        Ok(texts)
    }
}

/// A number without the rounding errors of its steps.
fn rounded(value: f64) -> f64 {
    format!("{value:.12e}").parse().unwrap_or(value)
}

/// A number and what follows it.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '_'))).unwrap_or(text.len());
    let number = text[..end].replace('_', "").parse::<f64>().ok().filter(|number| number.is_finite())?;
    Some((number, text[end..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn values(text: &str) -> Vec<Value> {
        VariedKey::parse(text).unwrap_or_else(|fault| panic!("{text}: {fault}")).values
    }

    #[test]
    fn lists_and_ranges_have_the_type_of_their_key() {
        let numbers = |text: &str| Value::Array(values(text));
        assert_eq!(numbers("tp=1,2,4,8"), json!([1, 2, 4, 8]));
        assert_eq!(numbers("decode-tp=2"), json!([2]));
        assert_eq!(numbers("isl=1k..8k*2,9000"), json!([1000, 2000, 4000, 8000, 9000]));
        assert_eq!(numbers("rate=0.1..0.4+0.1"), json!([0.1, 0.2, 0.3, 0.4]));
        assert_eq!(numbers("ttft=100ms..400ms*2,none"), json!(["100ms", "200ms", "400ms", "none"]));
        assert_eq!(numbers("hardware=1xh100..8xh100*2"), json!(["1xh100", "2xh100", "4xh100", "8xh100"]));
        assert_eq!(numbers("sp=true,false"), json!([true, false]));
        assert_eq!(numbers("stages=20,12;16,16"), json!([[20, 12], [16, 16]]));
        assert_eq!(numbers("plan=1 x tp8; 2 x tp4, kv fp8"), json!(["1 x tp8", "2 x tp4, kv fp8"]));
        assert_eq!(numbers("model=../a/config.json"), json!(["../a/config.json"]));
    }

    #[test]
    fn a_fault_names_the_key_and_a_fix() {
        for (text, key, part) in [
            ("tp", "vary", "--vary tp=1,2,4,8"),
            ("tpp=1", "vary", "did you mean `tp`"),
            ("tp=1,x", "vary tp", "correct"),
            ("tp=0", "vary tp", "correct"),
            ("tp=1,,2", "vary tp", "--vary"),
            ("tp=1,2,1", "vary tp", "omit"),
            ("isl=1k..64k", "vary isl", "1k..64k*2"),
            ("isl=64k..1k*2", "vary isl", "1k..64k*2"),
            ("isl=1..8*1", "vary isl", "1k..64k*2"),
            ("ttft=1ms..2s*2", "vary ttft", "100ms..800ms*2"),
            ("ttft=5", "vary ttft", "5ms"),
            ("percentile=p42", "vary percentile", "p90"),
            ("deployment=1", "vary", "a key of a scenario"),
            ("qqqqqqqq=1", "vary", "schema scenario"),
        ] {
            let fault = VariedKey::parse(text).unwrap_err();
            assert_eq!(fault.key, key, "{text}: {fault}");
            assert!(fault.to_string().contains(part), "{text}: {fault}");
        }
    }

    #[test]
    fn every_key_of_a_scenario_and_of_its_deployment_has_one_place() {
        let mut keys = keys();
        for known in ["model", "isl", "weight_format", "pareto", "plan", "tp", "prefill_tp", "decode_pp"] {
            assert!(keys.iter().any(|key| key == known), "{known}");
        }
        keys.sort();
        let all = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), all);
    }

    proptest! {
        #[test]
        fn a_range_begins_and_ends_where_it_says(low in 1u64..1000, steps in 1u64..20, step in 1u64..50) {
            let high = low + steps * step;
            let found = values(&format!("isl={low}..{high}+{step}"));
            prop_assert_eq!(found.len() as u64, steps + 1);
            prop_assert_eq!((&found[0], &found[steps as usize]), (&json!(low), &json!(high)));
            let found = values(&format!("concurrency={low}..{}*2", low << steps.min(12)));
            prop_assert_eq!(found.len() as u64, steps.min(12) + 1);
        }

        #[test]
        fn no_text_is_a_panic(key in "(isl|tp|ttft|rate|plan|stages|pareto)", text in ".{0,24}") {
            let _ = VariedKey::parse(&format!("{key}={text}"));
        }
    }
}
