//! A figure in a file: a number with its unit as text, and its source. A figure without a source does not load.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::json_fault::plain;
use super::limits::{
    BYTE_RATE, BYTES, DOLLAR_RATE, DOLLARS, DOLLARS_PER_ENERGY, FLOP_RATE, Limit, RATIO, SECONDS, WATTS,
};
use crate::quantity::datum::{Datum, Grade, Source};
use crate::quantity::unit::{
    BYTE, COUNT, FLOP, JOULE, SECOND, USD, Unit, WATT, number_and_unit, parse, respelled,
};

pub trait Dimension {
    const UNIT: Unit;
    const EXAMPLE: &'static str;
    const LIMIT: &'static Limit;
}

macro_rules! dimensions {
    ($($(#[$doc:meta])* $Name:ident = $unit:expr, $example:literal, $Limit:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $Name;
        impl Dimension for $Name {
            const UNIT: Unit = $unit;
            const EXAMPLE: &'static str = $example;
            const LIMIT: &'static Limit = &$Limit;
        }
    )*};
}

dimensions! {
    /// A memory size.
    Bytes = BYTE, "80 GiB", BYTES;
    /// A bandwidth.
    ByteRate = BYTE.per(SECOND), "3.35 TB/s", BYTE_RATE;
    /// A compute rate.
    FlopRate = FLOP.per(SECOND), "989.4 TFLOP/s", FLOP_RATE;
    /// A time.
    Seconds = SECOND, "1.9 us", SECONDS;
    /// A power.
    Watts = WATT, "700 W", WATTS;
    /// A price.
    Dollars = USD, "30000 USD", DOLLARS;
    /// A price per time.
    DollarRate = USD.per(SECOND), "2.95 USD/h", DOLLAR_RATE;
    /// A price of energy.
    DollarsPerEnergy = USD.per(JOULE), "0.09 USD/kWh", DOLLARS_PER_ENERGY;
    /// A ratio or a count.
    Ratio = COUNT, "0.85", RATIO;
}

/// A number with its source, in base units.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure<D> {
    /// Value in base units.
    pub value: f64,
    pub source: Source,
    /// Validity date, for prices.
    pub date: Option<String>,
    dimension: PhantomData<D>,
}

impl<D: Dimension> Figure<D> {
    /// A computed or given figure, not loaded from a file.
    pub fn new(value: f64, source: Source) -> Figure<D> {
        Figure { value, source, date: None, dimension: PhantomData }
    }

    /// The figure under its name in formulas.
    pub fn datum(&self, symbol: impl Into<Cow<'static, str>>) -> Datum {
        let mut source = self.source.clone();
        if let Some(date) = &self.date {
            source.text = format!("{} ({date})", source.text).into();
        }
        Datum { symbol: symbol.into(), value: self.value, unit: D::UNIT, source }
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "another value than a number or a text")]
enum Spelled {
    Number(f64),
    Text(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    value: Spelled,
    source: String,
    #[serde(default)]
    grade: Grade,
    date: Option<String>,
}

/// `text` in a form that [`read`] takes: its number, in the unit that its words mean or else in that of the example;
/// the example where it has no such number.
pub fn corrected<D: Dimension>(text: &str) -> String {
    let of_example = number_and_unit(D::EXAMPLE).1;
    let guess = || in_unit::<D>(number_and_unit(text).0, of_example);
    correction::<D>(text).or_else(guess).unwrap_or_else(|| D::EXAMPLE.to_owned())
}

/// The number of `text` in the unit that its words mean, where [`read`] takes that.
pub fn correction<D: Dimension>(text: &str) -> Option<String> {
    let (number, unit) = number_and_unit(text);
    let meant = respelled(unit).filter(|_| !unit.is_empty())?;
    in_unit::<D>(number, &meant)
}

fn in_unit<D: Dimension>(number: &str, unit: &str) -> Option<String> {
    let text = format!("{number} {unit}").trim_end().to_owned();
    let (value, unit) = parse(&text).ok()?;
    (unit == D::UNIT && value != 0.0 && D::LIMIT.holds(value)).then_some(text)
}

/// Reads `text` as a number of dimension `D`.
///
/// # Errors
/// The number or its unit is wrong; the text says how to write it.
pub fn read<D: Dimension>(text: &str) -> Result<f64, String> {
    let (value, unit) =
        parse(text).map_err(|why| format!("{why}; write it as `{}`", corrected::<D>(text)))?;
    if unit == COUNT && D::UNIT != COUNT {
        return Err(format!("`{text}` has no unit; write it as `{}`", corrected::<D>(text)));
    }
    if unit != D::UNIT {
        return Err(format!("`{text}` is in {unit}, expected {}, as in `{}`", D::UNIT, corrected::<D>(text)));
    }
    if !D::LIMIT.holds(value) {
        return Err(format!("`{text}` is out of range: {}", D::LIMIT.range()));
    }
    Ok(value)
}

impl<'de, D: Dimension> Deserialize<'de> for Figure<D> {
    fn deserialize<T: Deserializer<'de>>(deserializer: T) -> Result<Self, T::Error> {
        use serde::de::Error;
        let written = Written::deserialize(deserializer).map_err(|e| {
            let found = plain(&e.to_string(), "a figure").found;
            let example = D::EXAMPLE;
            Error::custom(format!(
                "{found}, expected a figure such as {{ \"value\": \"{example}\", \"source\": \"…\" }}"
            ))
        })?;
        if written.source.trim().is_empty() {
            return Err(Error::custom("the source is empty: name the origin of the figure"));
        }
        let text = match written.value {
            Spelled::Number(number) => number.to_string(),
            Spelled::Text(text) => text,
        };
        let source = Source { grade: written.grade, text: written.source.into() };
        Ok(Figure { date: written.date, ..Figure::new(read::<D>(&text).map_err(Error::custom)?, source) })
    }
}

const WRITTEN_PREFIXES: [(f64, &str); 12] = [
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "u"),
    (1e-9, "n"),
    (1_099_511_627_776.0, "Ti"),
    (1_073_741_824.0, "Gi"),
    (1_048_576.0, "Mi"),
    (1024.0, "Ki"),
];

/// The shortest text that [`read`] turns into exactly `value`.
pub fn write<D: Dimension>(value: f64) -> String {
    if D::UNIT == COUNT {
        return value.to_string();
    }
    let prefixed =
        WRITTEN_PREFIXES.iter().map(|(scale, prefix)| format!("{} {prefix}{}", value / scale, D::UNIT));
    let hourly = (D::UNIT == USD.per(SECOND)).then(|| format!("{} USD/h", value * 3600.0));
    let texts = prefixed.chain(hourly);
    let exact = texts.filter(|text| read::<D>(text) == Ok(value));
    exact.min_by_key(String::len).unwrap_or_else(|| format!("{value} {}", D::UNIT))
}

impl<D: Dimension> Serialize for Figure<D> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Figure", 4)?;
        fields.serialize_field("value", &write::<D>(self.value))?;
        fields.serialize_field("source", &self.source.text)?;
        fields.serialize_field("grade", &self.source.grade)?;
        match &self.date {
            Some(date) => fields.serialize_field("date", date)?,
            None => fields.skip_field("date")?,
        }
        fields.end()
    }
}

impl<D: Dimension> JsonSchema for Figure<D> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Figure of {}", D::UNIT).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let grade = generator.subschema_for::<Grade>();
        json_schema!({
            "type": "object",
            "required": ["value", "source"],
            "additionalProperties": false,
            "properties": {
                "value": { "type": ["string", "number"], "description": format!("a number and its unit, as in \"{}\"", D::EXAMPLE) },
                "source": { "type": "string", "minLength": 1, "description": "origin of the figure" },
                "grade": grade,
                "date": { "type": "string", "description": "validity date, YYYY-MM" }
            }
        })
    }
}

impl<D: Dimension> fmt::Display for Figure<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::quantity::unit::humanize(self.value, D::UNIT))
    }
}
