//! Percentiles of requests, and of predictions.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A percentile of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Percentile {
    /// The median request.
    #[default]
    P50,
    /// 90 % of requests have at most this latency.
    P90,
    /// 95 % of requests.
    P95,
    /// 99 % of requests.
    P99,
}

impl Percentile {
    pub const ALL: [Percentile; 4] = [Percentile::P50, Percentile::P90, Percentile::P95, Percentile::P99];

    /// Its name in files and flags, the fraction of requests at or below it, and its standard normal quantile
    /// (NIST/SEMATECH, e-Handbook of Statistical Methods, 1.3.6.7.1).
    const fn figures(self) -> (&'static str, f64, f64) {
        match self {
            Percentile::P50 => ("p50", 0.5, 0.0),
            Percentile::P90 => ("p90", 0.9, 1.2816),
            Percentile::P95 => ("p95", 0.95, 1.6449),
            Percentile::P99 => ("p99", 0.99, 2.3263),
        }
    }

    pub fn name(self) -> &'static str {
        self.figures().0
    }

    /// The fraction of requests at or below it.
    pub fn part(self) -> f64 {
        self.figures().1
    }

    /// The standard normal quantile.
    pub fn deviations(self) -> f64 {
        self.figures().2
    }
}

/// The certainty with which the SLOs must be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Confidence {
    /// Each of them by the prediction itself, whatever the odds.
    Median,
    /// All of them at once, with these odds.
    Odds(OddsLevel),
}

/// A probability in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OddsLevel(u16);

impl OddsLevel {
    /// The default: `docs/accuracy.md` has the share of choices that met their SLO, and the throughput that they gave up,
    /// over all levels.
    pub const DEFAULT: OddsLevel = OddsLevel(750);
    pub const P90: OddsLevel = OddsLevel(900);

    /// Certainties that intervals with a p10 and a p90 separate.
    const RANGE: std::ops::RangeInclusive<f64> = 0.5..=0.99;

    pub fn of(probability: f64) -> Option<OddsLevel> {
        let inside = OddsLevel::RANGE.contains(&probability);
        inside.then(|| OddsLevel((probability * 1e3).round() as u16))
    }

    pub fn probability(self) -> f64 {
        f64::from(self.0) / 1e3
    }
}

impl Default for Confidence {
    fn default() -> Confidence {
        Confidence::Odds(OddsLevel::DEFAULT)
    }
}

const MEDIAN: &str = "median";

impl FromStr for Confidence {
    type Err = String;

    /// `median`, a percentile such as `p90`, or a probability such as `0.8`.
    fn from_str(text: &str) -> Result<Confidence, String> {
        let text = text.trim();
        if text.eq_ignore_ascii_case(MEDIAN) {
            return Ok(Confidence::Median);
        }
        let percent = text.strip_prefix(['p', 'P']).or(text.strip_suffix('%'));
        let number = percent.unwrap_or(text).trim().parse::<f64>().ok();
        let level = number.map(|number| if percent.is_some() { number / 100.0 } else { number });
        level.and_then(OddsLevel::of).map(Confidence::Odds).ok_or_else(|| {
            format!("`{text}`: expected `median`, a percentile from p50 to p99, or odds from 0.5 to 0.99")
        })
    }
}

impl TryFrom<String> for Confidence {
    type Error = String;

    fn try_from(text: String) -> Result<Confidence, String> {
        text.parse()
    }
}

impl From<Confidence> for String {
    fn from(one: Confidence) -> String {
        one.to_string()
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Confidence::Median => f.write_str(MEDIAN),
            Confidence::Odds(OddsLevel(level)) if level % 10 == 0 => write!(f, "p{}", level / 10),
            Confidence::Odds(level) => write!(f, "{}", level.probability()),
        }
    }
}

impl Confidence {
    /// The end of a sentence about a latency at this confidence.
    pub fn words(self) -> String {
        match self {
            Confidence::Median => String::new(),
            Confidence::Odds(_) => format!(" at prediction {self}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certainties_are_written_as_they_are_read() {
        for text in ["median", "p50", "p90", "0.925", "p75"] {
            assert_eq!(text.parse::<Confidence>().unwrap().to_string(), text);
        }
        for (text, as_written) in [("0.8", "p80"), ("80 %", "p80"), ("MEDIAN", "median"), ("P90", "p90")] {
            assert_eq!(text.parse::<Confidence>().unwrap().to_string(), as_written);
        }
        for text in ["", "p", "p40", "p100", "1.5", "sure", "NaN", "inf"] {
            assert!(text.parse::<Confidence>().is_err(), "{text}");
        }
    }
}
