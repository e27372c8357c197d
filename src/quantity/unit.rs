//! Units as exponents of base units. Every number inside the program is in base units. Prefixes exist only in [`parse`]
//! and [`humanize`].

use std::fmt;
use std::ops::{Div, Mul};

/// `FLOP^a · B^b · s^c · token^d · USD^e · J^f`
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Unit([i8; 6]);

const SYMBOLS: [&str; 6] = ["FLOP", "B", "s", "token", "USD", "J"];

/// Bytes of a GiB (IEC 80000-13).
pub(crate) const GIB: f64 = 1_073_741_824.0;

/// Dimensionless: heads, layers, a ratio.
pub const COUNT: Unit = Unit([0; 6]);
/// A floating-point (or integer) operation; a multiply-add is two.
pub const FLOP: Unit = Unit([1, 0, 0, 0, 0, 0]);
pub const BYTE: Unit = Unit([0, 1, 0, 0, 0, 0]);
pub const SECOND: Unit = Unit([0, 0, 1, 0, 0, 0]);
/// A token of text.
pub const TOKEN: Unit = Unit([0, 0, 0, 1, 0, 0]);
/// A US dollar.
pub const USD: Unit = Unit([0, 0, 0, 0, 1, 0]);
pub const JOULE: Unit = Unit([0, 0, 0, 0, 0, 1]);
pub const WATT: Unit = JOULE.per(SECOND);

impl Unit {
    /// The unit of a product.
    pub const fn times(self, other: Unit) -> Unit {
        self.combine(other, 1)
    }

    /// The unit of a quotient.
    pub const fn per(self, other: Unit) -> Unit {
        self.combine(other, -1)
    }

    const fn combine(self, other: Unit, sign: i8) -> Unit {
        let mut exponents = self.0;
        let mut i = 0;
        while i < exponents.len() {
            exponents[i] = exponents[i].saturating_add(sign * other.0[i]);
            i += 1;
        }
        Unit(exponents)
    }
}

/// A constant with its unit, as in `4.0 * FLOP * batch`.
#[derive(Clone, Copy)]
pub struct Literal(pub f64, pub Unit);

impl Mul<Unit> for f64 {
    type Output = Literal;
    #[inline]
    fn mul(self, unit: Unit) -> Literal {
        Literal(self, unit)
    }
}

impl Mul for Unit {
    type Output = Unit;
    fn mul(self, other: Unit) -> Unit {
        self.times(other)
    }
}

impl Div for Unit {
    type Output = Unit;
    fn div(self, other: Unit) -> Unit {
        self.per(other)
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == WATT {
            return write!(f, "W");
        }
        let powers = |sign: i8| {
            let mut parts = Vec::new();
            for (symbol, &exponent) in SYMBOLS.iter().zip(&self.0) {
                match exponent * sign {
                    ..=0 => {}
                    1 => parts.push(symbol.to_string()),
                    n => parts.push(format!("{symbol}^{n}")),
                }
            }
            parts.join("·")
        };
        match (powers(1).as_str(), powers(-1).as_str()) {
            ("", "") => write!(f, "1"),
            (top, "") => write!(f, "{top}"),
            ("", bottom) => write!(f, "1/{bottom}"),
            (top, bottom) => write!(f, "{top}/{bottom}"),
        }
    }
}

/// Unit names in text, with their size in base units, before prefixes.
const WORDS: &[(&str, f64, Unit)] = &[
    ("FLOP", 1.0, FLOP),
    ("B", 1.0, BYTE),
    ("bit", 0.125, BYTE),
    ("s", 1.0, SECOND),
    ("min", 60.0, SECOND),
    ("h", 3600.0, SECOND),
    ("day", 86_400.0, SECOND),
    // A twelfth of the mean Gregorian year, 365.2425 days.
    ("month", 2_629_746.0, SECOND),
    ("months", 2_629_746.0, SECOND),
    ("year", 31_556_952.0, SECOND),
    ("token", 1.0, TOKEN),
    ("tok", 1.0, TOKEN),
    ("USD", 1.0, USD),
    ("J", 1.0, JOULE),
    ("W", 1.0, WATT),
    ("Wh", 3600.0, JOULE),
    ("%", 0.01, COUNT),
    ("1", 1.0, COUNT),
];

const PREFIXES: &[(&str, f64)] = &[
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("n", 1e-9),
    ("u", 1e-6),
    ("µ", 1e-6),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
];

fn word(text: &str) -> Option<(f64, Unit)> {
    let find = |text: &str| WORDS.iter().find(|(w, ..)| *w == text).map(|&(_, size, unit)| (size, unit));
    find(text).or_else(|| {
        PREFIXES.iter().find_map(|(prefix, scale)| {
            let (size, unit) = find(text.strip_prefix(prefix)?)?;
            (unit != COUNT).then_some((scale * size, unit))
        })
    })
}

/// Words for units that are not read, in lower case, and the word that is.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("sec", "s"),
    ("second", "s"),
    ("msec", "ms"),
    ("milli", "ms"),
    ("millisecond", "ms"),
    ("usec", "us"),
    ("micro", "us"),
    ("microsecond", "us"),
    ("nanosecond", "ns"),
    ("minute", "min"),
    ("hr", "h"),
    ("hour", "h"),
    ("byte", "B"),
    ("gig", "GB"),
    ("gigabyte", "GB"),
    ("gibibyte", "GiB"),
    ("megabyte", "MB"),
    ("terabyte", "TB"),
    ("kb", "kB"),
    ("mb", "MB"),
    ("g", "GB"),
    ("t", "TB"),
    ("watt", "W"),
    ("kilowatt", "kW"),
    ("dollar", "USD"),
    ("$", "USD"),
    ("percent", "%"),
];

/// The unit that the words of `unit` mean, as it is read; `None` where one of them means none.
pub fn respelled(unit: &str) -> Option<String> {
    let one = |factor: &str| {
        if word(factor).is_some() {
            return Some(factor.to_owned());
        }
        let lower = factor.to_lowercase();
        let singular = lower.strip_suffix('s').unwrap_or(&lower);
        let other = |text: &str| OTHER_WORDS.iter().find(|(known, _)| *known == text).map(|(_, word)| *word);
        if let Some(known) = other(&lower).or_else(|| other(singular)) {
            return Some(known.to_owned());
        }
        // The same word in another case; the plain unit comes before one with a prefix.
        let prefixes = PREFIXES.iter().map(|(prefix, _)| *prefix);
        let mut spellings = [""]
            .into_iter()
            .chain(prefixes)
            .flat_map(|prefix| WORDS.iter().map(move |(name, ..)| format!("{prefix}{name}")));
        spellings.find(|name| word(name).is_some() && [&lower, singular].contains(&&*name.to_lowercase()))
    };
    let per_second = |text: &str| Some(format!("{}/s", one(text.strip_suffix("ps")?)?));
    let factors = unit.split('/').map(|factor| one(factor.trim()).or_else(|| per_second(factor.trim())));
    factors.collect::<Option<Vec<String>>>().map(|factors| factors.join("/"))
}

/// The number at the start of `text`, and its unit.
pub fn number_and_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|&(i, c)| {
            let exponent = i > 0
                && matches!(c, 'e' | 'E')
                && text[i + 1..].starts_with(|d: char| d.is_ascii_digit() || d == '-' || d == '+');
            !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_') || exponent)
        })
        .map_or(text.len(), |(i, _)| i);
    let (number, unit) = text.split_at(end);
    (number, unit.trim())
}

/// Parses text such as `3.35 TB/s` into a number in base units and its unit.
///
/// # Errors
/// The part of the text that is not valid: the number, or the unit.
pub fn parse(text: &str) -> Result<(f64, Unit), String> {
    let text = text.trim();
    let (number, unit) = number_and_unit(text);
    let value: f64 =
        number.replace('_', "").parse().map_err(|_| format!("`{text}` does not begin with a number"))?;
    let mut scale = 1.0;
    let mut exponents = COUNT;
    for (i, part) in unit.split('/').enumerate() {
        for factor in part.split(['·', '*']).map(str::trim).filter(|f| !f.is_empty()) {
            let (size, one) = word(factor).ok_or_else(|| format!("`{factor}` is not a known unit"))?;
            (scale, exponents) =
                if i == 0 { (scale * size, exponents * one) } else { (scale / size, exponents / one) };
        }
    }
    let value = value * scale;
    if !value.is_finite() {
        return Err(format!("`{text}` is not a finite number"));
    }
    Ok((value, exponents))
}

/// `1.34e9, FLOP` → `1.34 GFLOP`.
pub fn humanize(value: f64, unit: Unit) -> String {
    if unit == COUNT {
        let digits = if value.abs() >= 1e5 || value == value.round() {
            0
        } else if value.abs() >= 1.0 {
            3
        } else {
            6
        };
        return trim(format!("{value:.digits$}"));
    }
    if value == 0.0 {
        return format!("0 {unit}");
    }
    const SCALES: [(f64, &str); 9] = [
        (1e15, "P"),
        (1e12, "T"),
        (1e9, "G"),
        (1e6, "M"),
        (1e3, "k"),
        (1.0, ""),
        (1e-3, "m"),
        (1e-6, "µ"),
        (1e-9, "n"),
    ];
    let prefixed = unit != USD && unit != TOKEN.per(SECOND);
    let (scale, prefix) = match SCALES.into_iter().find(|(scale, _)| value.abs() >= *scale) {
        Some(found) if prefixed => found,
        _ if value.abs() < 1e-4 => return format!("{value:.3e} {unit}"),
        _ => (1.0, ""),
    };
    format!("{} {prefix}{unit}", trim(format!("{:.4}", value / scale)))
}

fn trim(text: String) -> String {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, value: f64, unit: Unit) {
        let (v, u) = parse(text).unwrap();
        assert!((v - value).abs() <= value.abs() * 1e-15, "{text}: {v} is not {value}");
        assert_eq!(u, unit, "{text}");
    }

    #[test]
    fn text_becomes_base_units() {
        check("3.35 TB/s", 3.35e12, BYTE / SECOND);
        check("81559 MiB", 81559.0 * 1_048_576.0, BYTE);
        check("80 GB", 80e9, BYTE);
        check("4.25 bit", 0.53125, BYTE);
        check("989.4 TFLOP/s", 989.4e12, FLOP / SECOND);
        check("700 W", 700.0, WATT);
        check("0.09 USD/kWh", 0.09 / 3.6e6, USD / JOULE);
        check("2.95 USD/h", 2.95 / 3600.0, USD / SECOND);
        check("6.93 us", 6.93e-6, SECOND);
        check("1.9µs", 1.9e-6, SECOND);
        check("0.9", 0.9, COUNT);
        check("90 %", 0.9, COUNT);
        check("1e3 ms", 1.0, SECOND);
    }

    #[test]
    fn what_is_not_a_unit_is_named() {
        assert!(parse("3 parsec").unwrap_err().contains("parsec"));
        assert!(parse("fast").unwrap_err().contains("number"));
        assert!(parse("1e999 B").unwrap_err().contains("finite"));
        assert!(parse("NaN s").is_err());
    }

    #[test]
    fn numbers_have_prefixes() {
        assert_eq!(humanize(1.0737e9, FLOP), "1.0737 GFLOP");
        assert_eq!(humanize(2e-6, SECOND), "2 µs");
        assert_eq!(humanize(700.0, WATT), "700 W");
        assert_eq!(humanize(64.0, COUNT), "64");
        assert_eq!(humanize(100.0, COUNT), "100");
    }
}
