//! Writes fit results to runtime profiles.
//!
//! Operates on JSON values, not on files.

use serde_json::{Map, Value, json};

use super::fit::FitSolution;
use super::settings::{WrittenUnit, initial_guesses, settings};
use crate::spec::constant::{CONSTANTS, CalibratedConstant, CalibrationFactor, ConstantSection};
use crate::spec::nearness::{Interval, LeftOut, MeasuredAt};

/// The source text of a required constant that the data do not identify; its value is 0.
const NOT_IDENTIFIED: &str =
    "nothing: the fitted rows do not identify it, and other constants of the profile hold it";

/// Changes smaller than this are not written: they change no prediction by a tenth of the noise.
const SMALLEST: f64 = 0.004;

/// Sum of the changes to `of` of `runtime` under each set of other conditions, widest first.
fn changes(found: &FitSolution, runtime: &str, of: CalibratedConstant) -> Vec<(CalibrationFactor, f64)> {
    let mut sums: Vec<(CalibrationFactor, f64)> = Vec::new();
    for (unknown, x) in found.unknowns.iter().zip(found.x.iter()) {
        let here = unknown.runtime.as_ref().is_none_or(|name| name == runtime);
        if !here || unknown.factor.of != of {
            continue;
        }
        match sums.iter_mut().find(|(factor, _)| *factor == unknown.factor) {
            Some((_, sum)) => *sum += x,
            None => sums.push((unknown.factor.clone(), *x)),
        }
    }
    sums
}

pub fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

fn figure(value: f64, unit: WrittenUnit, source: &str) -> Value {
    let value = value * unit.per_base;
    // Four digits: more than the data support.
    let digits = (3 - libm::log10(value.abs()).floor() as i32).max(0) as usize;
    let text = format!("{value:.digits$} {}", unit.name);
    json!({"value": text.trim_end(), "source": source, "grade": "fitted"})
}

/// A fit of all profiles.
pub struct JointFit<'a> {
    pub found: &'a FitSolution,
    /// The constants that the rows identify; others are left unchanged.
    pub determined: Vec<CalibratedConstant>,
    /// Devices of all rows.
    pub measured_anywhere: Vec<String>,
    /// Models of all rows.
    pub models: Vec<String>,
    /// Prediction intervals, nearest first.
    pub intervals: Vec<Interval>,
    pub left_out: Vec<LeftOut>,
}

impl JointFit<'_> {
    /// Replaces the earlier fit in `profile`.
    pub fn replace(&self, profile: &mut Value, measured: &[MeasuredAt], source: &str) {
        let runtime = profile["id"].as_str().unwrap_or_default().to_owned();
        let mut fit = Map::new();
        fit.insert("source".into(), json!(source));
        for (entry, known) in initial_guesses() {
            let alone = |factor: &CalibrationFactor| *factor == CalibrationFactor::of(entry.of);
            let all = changes(self.found, &runtime, entry.of);
            let change: f64 = all.iter().filter(|(factor, _)| alone(factor)).map(|(_, x)| x).sum();
            let determined = self.determined.contains(&entry.of);
            let value = match determined {
                true => figure(known.value * libm::exp(change), known.unit, source),
                false => {
                    json!({"value": format!("0 {}", known.unit.name).trim_end(), "source": NOT_IDENTIFIED, "grade": "assumed"})
                }
            };
            match entry.section {
                ConstantSection::ServingFit => drop(fit.insert(entry.key.into(), value)),
                ConstantSection::Scheduler if determined => profile["scheduler"][entry.key] = value,
                // The profile keeps the figure of its scheduler, and of its kernels.
                ConstantSection::Scheduler | ConstantSection::Constants => {}
            }
        }
        let mut measured_on: Vec<&String> = measured.iter().map(|one| &one.hardware).collect();
        measured_on.sort();
        measured_on.dedup();
        fit.insert("measured_on".into(), json!(measured_on));
        fit.insert("measured_anywhere".into(), json!(self.measured_anywhere));
        fit.insert("models".into(), json!(self.models));
        fit.insert("measured".into(), json!(measured));
        fit.insert("intervals".into(), json!(self.intervals));
        fit.insert("left_out".into(), json!(self.left_out));
        let mut factors: Vec<Value> = Vec::new();
        for of in CONSTANTS.iter().map(|entry| entry.of) {
            for (factor, x) in changes(self.found, &runtime, of) {
                let in_value = settings(of).initial.is_some() && factor == CalibrationFactor::of(of);
                if !in_value && x.abs() >= SMALLEST {
                    factors.push(json!(CalibrationFactor { times: rounded(libm::exp(x)), ..factor }));
                }
            }
        }
        fit.insert("factors".into(), Value::Array(factors));
        profile["serving_fit"] = Value::Object(fit);
    }
}

/// Multiplies the factors of `profile` by the changes of its runtime; new conditions are added at the end.
pub fn adjust(profile: &mut Value, found: &FitSolution, source: &str) {
    let runtime = profile["id"].as_str().unwrap_or_default().to_owned();
    let fit = &mut profile["serving_fit"];
    let mut factors: Vec<CalibrationFactor> =
        serde_json::from_value(fit["factors"].clone()).unwrap_or_default();
    for of in CONSTANTS.iter().map(|entry| entry.of) {
        for (change, x) in changes(found, &runtime, of).into_iter().filter(|(_, x)| x.abs() >= SMALLEST) {
            let like = |known: &&mut CalibrationFactor| {
                CalibrationFactor { times: 1.0, ..(**known).clone() } == change
            };
            match factors.iter_mut().find(like) {
                Some(known) => known.times = rounded(known.times * libm::exp(x)),
                None => factors.push(CalibrationFactor { times: rounded(libm::exp(x)), ..change }),
            }
        }
    }
    fit["factors"] = json!(factors);
    fit["source"] = json!(source);
}

/// Line width of a profile.
const COLUMNS: usize = 140;

/// JSON with values that fit a line on one line.
pub fn written(value: &Value) -> String {
    let mut text = String::new();
    write(value, 0, &mut text);
    text.push('\n');
    text
}

fn line(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let pairs: Vec<String> =
                map.iter().map(|(key, one)| format!("{}: {}", json!(key), line(one))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(line).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

fn write(value: &Value, indent: usize, text: &mut String) {
    let flat = line(value);
    let leaf = |value: &Value| !value.is_object() && !value.is_array();
    // A figure is written on one line regardless of the length of its source.
    let figure = value.as_object().is_some_and(|map| map.values().all(leaf));
    let short = indent > 0 && flat.chars().count() + 2 * indent <= COLUMNS;
    let pad = "  ".repeat(indent + 1);
    let parts: Vec<(String, &Value)> = match value {
        Value::Object(map) if !(short || figure && indent > 0) => {
            map.iter().map(|(key, one)| (format!("{}: ", json!(key)), one)).collect()
        }
        Value::Array(list) if !short && !list.iter().all(leaf) => {
            list.iter().map(|one| (String::new(), one)).collect()
        }
        _ => return text.push_str(&flat),
    };
    let lines = parts.into_iter().map(|(head, one)| {
        let mut inside = format!("{pad}{head}");
        write(one, indent + 1, &mut inside);
        inside
    });
    let (open, close) = if value.is_object() { ('{', '}') } else { ('[', ']') };
    let lines = lines.collect::<Vec<_>>().join(",\n");
    text.push_str(&format!("{open}\n{lines}\n{}{close}", "  ".repeat(indent)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let value = json!({
            "id": "x", "short": [1, 2, {"a": null}],
            "long": [{"text": "y".repeat(150)}, {"deep": {"figure": {"value": "1 us", "source": "z".repeat(150)}}}],
        });
        let text = written(&value);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert!(text.contains("\n  \"short\": [1, 2, {\"a\": null}],\n"), "{text}");
    }

    #[test]
    fn figures_have_four_digits() {
        let value = |x: f64, unit| figure(x, unit, "s")["value"].as_str().unwrap().to_owned();
        let us = WrittenUnit { name: "us", per_base: 1e6 };
        assert_eq!(value(2.5619e-6, us), "2.562 us");
        assert_eq!(value(2.297_1e-4, us), "229.7 us");
        assert_eq!(value(0.540_21, WrittenUnit { name: "", per_base: 1.0 }), "0.5402");
    }
}
