//! Writes fit results to runtime profiles.
//!
//! Operates on JSON values, not on files.

use serde_json::{Map, Value, json};

use super::fit::FitSolution;
use super::sample::ORDER;
use crate::spec::nearness::{Interval, LeftOut, MeasuredAt};
use crate::spec::runtime::{CalibratedConstant, CalibrationFactor};

/// Initial values for fits of whole profiles: the constants that kernel microbenchmarks do not identify.
pub const BEGINNINGS: [InitialGuess; 9] = [
    beginning(CalibratedConstant::KernelLaunch, "serving_fit", "kernel_launch", 1e-6, ("us", 1e6)),
    beginning(CalibratedConstant::QuantisedLaunch, "serving_fit", "quantised_launch", 1e-6, ("us", 1e6)),
    beginning(CalibratedConstant::ExpertsLaunch, "serving_fit", "experts_launch", 5e-6, ("us", 1e6)),
    beginning(CalibratedConstant::HostPerSequence, "serving_fit", "host_per_sequence", 1e-5, ("us", 1e6)),
    beginning(CalibratedConstant::RequestWork, "serving_fit", "request_work", 1e-4, ("us", 1e6)),
    beginning(CalibratedConstant::PromptBurst, "serving_fit", "prompt_burst", 0.05, ("", 1.0)),
    beginning(CalibratedConstant::RequestOverhead, "scheduler", "request_overhead", 1e-2, ("ms", 1e3)),
    beginning(CalibratedConstant::PromptQueue, "scheduler", "prompt_queue", 0.3, ("", 1.0)),
    beginning(CalibratedConstant::StepWait, "scheduler", "step_wait", 1.0, ("", 1.0)),
];

/// A constant that a profile sets directly.
#[derive(Clone, Copy, Debug)]
pub struct InitialGuess {
    /// The constant.
    pub constant: CalibratedConstant,
    /// The object of the profile that holds it.
    pub section: &'static str,
    /// Its key there.
    pub key: &'static str,
    /// Initial value of a fit, in seconds or as a number: the order of magnitude of servers.
    pub value: f64,
    /// The unit that it is written in, and the number of units per second.
    pub unit: (&'static str, f64),
}

const fn beginning(
    of: CalibratedConstant,
    inside: &'static str,
    key: &'static str,
    value: f64,
    unit: (&'static str, f64),
) -> InitialGuess {
    InitialGuess { constant: of, section: inside, key, value, unit }
}

/// The source text of a required constant that the data do not identify; its value is 0.
const UNTOLD: &str = "nothing: the fitted rows do not tell it, and other constants of the profile hold it";

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

/// Rounds to the written precision.
pub fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

fn figure(value: f64, (unit, per_second): (&str, f64), source: &str) -> Value {
    let value = value * per_second;
    // Four digits: more than the data support.
    let digits = (3 - value.abs().log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.digits$} {unit}");
    json!({"value": text.trim_end(), "source": source, "grade": "fitted"})
}

/// A fit of all profiles.
pub struct JointFit<'a> {
    /// The fit.
    pub found: &'a FitSolution,
    /// The constants that the rows identify; others are left unchanged.
    pub determined: Vec<CalibratedConstant>,
    /// Devices of all rows.
    pub measured_anywhere: Vec<String>,
    /// Models of all rows.
    pub models: Vec<String>,
    /// Prediction intervals, nearest first.
    pub intervals: Vec<Interval>,
    /// Held-out predictions of the rows.
    pub left_out: Vec<LeftOut>,
}

impl JointFit<'_> {
    /// Replaces the earlier fit in `profile`.
    pub fn replace(&self, profile: &mut Value, measured: &[MeasuredAt], source: &str) {
        let runtime = profile["id"].as_str().unwrap_or_default().to_owned();
        let mut fit = Map::new();
        fit.insert("source".into(), json!(source));
        for known in BEGINNINGS {
            let alone = |factor: &CalibrationFactor| *factor == CalibrationFactor::of(known.constant);
            let all = changes(self.found, &runtime, known.constant);
            let change: f64 = all.iter().filter(|(factor, _)| alone(factor)).map(|(_, x)| x).sum();
            let value = match self.determined.contains(&known.constant) {
                true => figure(known.value * change.exp(), known.unit, source),
                false => {
                    json!({"value": format!("0 {}", known.unit.0).trim_end(), "source": UNTOLD, "grade": "assumed"})
                }
            };
            match known.section {
                "serving_fit" => drop(fit.insert(known.key.into(), value)),
                inside if self.determined.contains(&known.constant) => profile[inside][known.key] = value,
                _ => {}
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
        let stated = |of: CalibratedConstant| BEGINNINGS.iter().any(|known| known.constant == of);
        let mut factors: Vec<Value> = Vec::new();
        for of in ORDER {
            for (factor, x) in changes(self.found, &runtime, of) {
                let in_value = stated(of) && factor == CalibrationFactor::of(of);
                if !in_value && x.abs() >= SMALLEST {
                    factors.push(json!(CalibrationFactor { times: rounded(x.exp()), ..factor }));
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
    for of in ORDER {
        for (change, x) in changes(found, &runtime, of).into_iter().filter(|(_, x)| x.abs() >= SMALLEST) {
            let like = |known: &&mut CalibrationFactor| {
                CalibrationFactor { times: 1.0, ..(**known).clone() } == change
            };
            match factors.iter_mut().find(like) {
                Some(known) => known.times = rounded(known.times * x.exp()),
                None => factors.push(CalibrationFactor { times: rounded(x.exp()), ..change }),
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
    match value {
        Value::Object(map) if !(short || figure && indent > 0) => {
            let pairs: Vec<String> = map
                .iter()
                .map(|(key, one)| {
                    let mut inside = format!("{pad}{}: ", json!(key));
                    write(one, indent + 1, &mut inside);
                    inside
                })
                .collect();
            text.push_str(&format!("{{\n{}\n{}}}", pairs.join(",\n"), "  ".repeat(indent)));
        }
        Value::Array(list) if !short && !list.iter().all(leaf) => {
            let items: Vec<String> = list
                .iter()
                .map(|one| {
                    let mut inside = pad.clone();
                    write(one, indent + 1, &mut inside);
                    inside
                })
                .collect();
            text.push_str(&format!("[\n{}\n{}]", items.join(",\n"), "  ".repeat(indent)));
        }
        _ => text.push_str(&flat),
    }
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
        assert_eq!(value(2.5619e-6, ("us", 1e6)), "2.562 us");
        assert_eq!(value(2.297_1e-4, ("us", 1e6)), "229.7 us");
        assert_eq!(value(0.540_21, ("", 1.0)), "0.5402");
    }
}
