//! Values of an object by their path, checked: a fault names the key, what is there and what is expected.

use serde_json::Value;

use crate::spec::error::Error;
use crate::spec::limits::{Limit, MEASURED, MILLISECONDS, SENT};
use crate::spec::run::{BenchMetrics, RunLatency, RunStatistic};

/// An object of a file.
#[derive(Clone, Debug)]
pub(super) struct FileFields<'a> {
    pub(super) value: &'a Value,
    /// Its place, for faults.
    place: String,
}

/// A number in few words.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) => format!("`{text}`"),
        other => other.to_string(),
    }
}

impl<'a> FileFields<'a> {
    pub(super) fn of(value: &'a Value) -> FileFields<'a> {
        FileFields { value, place: String::new() }
    }

    /// One of several objects.
    pub(super) fn numbered(value: &'a Value, number: usize) -> FileFields<'a> {
        FileFields { value, place: format!("[{number}]") }
    }

    fn key(&self, path: &str) -> String {
        let dot = if self.place.is_empty() || path.is_empty() { "" } else { "." };
        format!("{}{dot}{path}", self.place)
    }

    /// The value of a path, whose parts are keys, or places in a list. A whole path that is a key counts as one. Null is
    /// nothing. An empty path is a value itself, if it is no object: an object has no key of that name.
    pub(super) fn find(&self, path: &str) -> Option<&'a Value> {
        if path.is_empty() {
            return Some(self.value).filter(|value| !value.is_null() && !value.is_object());
        }
        let found = self.value.get(path).or_else(|| {
            path.split('.').try_fold(self.value, |value, part| match value {
                Value::Array(items) => items.get(part.parse::<usize>().ok()?),
                _ => value.get(part),
            })
        });
        found.filter(|value| !value.is_null())
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.find(path).is_some()
    }

    /// The object or list of a path.
    pub(super) fn inside(&self, path: &str) -> Option<FileFields<'a>> {
        self.find(path).map(|value| FileFields { value, place: self.key(path) })
    }

    /// The items of a list.
    pub(super) fn items(&self, path: &str) -> Result<Vec<FileFields<'a>>, Error> {
        let Some(value) = self.find(path) else { return Ok(vec![]) };
        let Value::Array(items) = value else {
            return Err(self.fault(path, value, "a list"));
        };
        let item = |(number, value)| FileFields { value, place: format!("{}[{number}]", self.key(path)) };
        Ok(items.iter().enumerate().map(item).collect())
    }

    pub(super) fn fault(&self, path: &str, found: &Value, expected: &str) -> Error {
        Error::new(self.key(path), shown(found), expected, "give the file as the tool saved it")
    }

    /// A number within `limit`. A text with a number counts as one, as in tables.
    pub(super) fn number(&self, path: &str, limit: &Limit) -> Result<Option<f64>, Error> {
        let Some(value) = self.find(path) else { return Ok(None) };
        let number = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) if text.trim().is_empty() => return Ok(None),
            Value::String(text) => text.trim().parse::<f64>().ok(),
            _ => None,
        };
        let found =
            number.filter(|number| (*number == 0.0 && number.is_sign_positive()) || limit.holds(*number));
        let zero = if limit.or_zero { "" } else { "0, or " };
        found.map(Some).ok_or_else(|| self.fault(path, value, &format!("a number: {zero}{}", limit.range())))
    }

    /// A measured number above 0. Tools write 0 where nothing was measured.
    pub(super) fn measured(&self, path: &str) -> Result<Option<f64>, Error> {
        Ok(self.number(path, &MEASURED)?.filter(|number| *number > 0.0))
    }

    /// A count, 0 included.
    pub(super) fn count(&self, path: &str) -> Result<Option<u64>, Error> {
        let found = self.number(path, &MEASURED)?;
        let count = found.filter(|number| number.fract() == 0.0 && *number <= SENT.most);
        match (found, count) {
            (Some(_), None) => {
                Err(self.fault(path, self.find(path).unwrap_or(&Value::Null), "a whole number"))
            }
            (_, count) => Ok(count.map(|number| number as u64)),
        }
    }

    /// A whole number above 0.
    pub(super) fn some(&self, path: &str) -> Result<Option<u64>, Error> {
        Ok(self.count(path)?.filter(|number| *number > 0))
    }

    /// A text that is not empty.
    pub(super) fn text(&self, path: &str) -> Result<Option<&'a str>, Error> {
        match self.find(path) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
            Some(other) => Err(self.fault(path, other, "a text")),
        }
    }

    /// The first of several paths with a text.
    pub(super) fn text_of(&self, paths: &[&str]) -> Result<Option<&'a str>, Error> {
        for path in paths {
            if let Some(text) = self.text(path)? {
                return Ok(Some(text));
            }
        }
        Ok(None)
    }

    /// Whether a value is true, written as a switch or as a text.
    pub(super) fn is_true(&self, path: &str) -> bool {
        match self.find(path) {
            Some(Value::Bool(switch)) => *switch,
            Some(Value::String(text)) => text.eq_ignore_ascii_case("true"),
            _ => false,
        }
    }
}

/// Where a file has its latencies: a path with `{l}` for the latency and `{s}` for the statistic.
pub(super) struct LatencyKeys {
    pub(super) path: &'static str,
    pub(super) latencies: &'static [(RunLatency, &'static str)],
    pub(super) statistics: &'static [(RunStatistic, &'static str)],
    pub(super) unit: LatencyUnit,
}

/// The unit of latencies in a file.
pub(super) enum LatencyUnit {
    /// This many milliseconds.
    Of(f64),
    /// As the file states it, in the text at this path with `{l}` for the latency.
    Stated(&'static str),
}

/// Units by their names in files, in milliseconds.
const UNITS: [(&str, f64); 10] = [
    ("ms", 1.0),
    ("ms/token", 1.0),
    ("s", 1e3),
    ("s/token", 1e3),
    ("sec", 1e3),
    ("seconds", 1e3),
    ("milliseconds", 1.0),
    ("us", 1e-3),
    ("ns", 1e-6),
    ("nanoseconds", 1e-6),
];

/// The factor from a unit to milliseconds.
pub(super) fn to_ms(fields: &FileFields<'_>, path: &str) -> Result<Option<f64>, Error> {
    let Some(stated) = fields.text(path)? else { return Ok(None) };
    let known = UNITS.iter().find(|(name, _)| *name == stated);
    let names: Vec<&str> = UNITS.iter().map(|(name, _)| *name).collect();
    let fault =
        || fields.fault(path, &Value::String(stated.to_owned()), &format!("one of {}", names.join(", ")));
    known.map(|(_, factor)| Some(*factor)).ok_or_else(fault)
}

impl LatencyKeys {
    /// Reads those that the file has.
    pub(super) fn read(&self, fields: &FileFields<'_>, metrics: &mut BenchMetrics) -> Result<(), Error> {
        for (latency, name) in self.latencies {
            let factor = match self.unit {
                LatencyUnit::Of(factor) => Some(factor),
                LatencyUnit::Stated(path) => to_ms(fields, &path.replace("{l}", name))?,
            };
            // Without a unit a number is no time.
            let Some(factor) = factor else { continue };
            for (statistic, word) in self.statistics {
                let path = self.path.replace("{l}", name).replace("{s}", word);
                let Some(value) = fields.measured(&path)? else { continue };
                set_latency(metrics, *latency, *statistic, value * factor, &fields.key(&path))?;
            }
        }
        Ok(())
    }
}

/// Sets a latency that is not set.
pub(super) fn set_latency(
    metrics: &mut BenchMetrics,
    latency: RunLatency,
    statistic: RunStatistic,
    ms: f64,
    key: &str,
) -> Result<(), Error> {
    MILLISECONDS.check(key, ms)?;
    if let Some(place) = metrics.latency_mut(latency, statistic) {
        place.get_or_insert(ms);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_fault_names_the_key_and_what_is_there() {
        let value = json!({"a": {"b": [1, "2.5", "x", {}, -1, 1e300]}, "50.00 x": 7, "none": null});
        let fields = FileFields::of(&value);
        assert_eq!(fields.number("a.b.0", &MEASURED).unwrap(), Some(1.0));
        assert_eq!(fields.number("a.b.1", &MEASURED).unwrap(), Some(2.5));
        assert_eq!(fields.number("50.00 x", &MEASURED).unwrap(), Some(7.0));
        assert_eq!((fields.number("none", &MEASURED).unwrap(), fields.find("a.c")), (None, None));
        for (path, found) in [("a.b.2", "`x`"), ("a.b.3", "an object"), ("a.b.4", "-1"), ("a.b.5", "1e+300")]
        {
            let fault = FileFields::of(&value).number(path, &MEASURED).unwrap_err();
            assert_eq!((fault.key.as_str(), fault.found.as_str()), (path, found));
        }
        assert_eq!(fields.count("a.b.1").unwrap_err().expected, "a whole number");
    }
}
