//! Conditions as command-line flags: values are rounded outward to the printed digits, so that the value read
//! back is never tighter than the value found.

use crate::spec::offload::OffloadPolicy;
use std::fmt;

use crate::search::relax::Condition;
use crate::spec::objective::Metric;
use crate::spec::writer::shell_word;

/// A decimal number that prints exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digits {
    units: u64,
    power: i32,
}

/// Significant digits of a number below 1,000; larger numbers keep all digits before the decimal point.
const COUNTED: i32 = 3;

impl Digits {
    /// The largest short decimal that is at most `value`; none if it is not above 0.
    pub fn down(value: f64) -> Option<Digits> {
        if !value.is_finite() || value <= 0.0 || value >= 1e15 {
            return None;
        }
        let power = ((libm::log10(value).floor() as i32) - (COUNTED - 1)).min(0);
        let near = (value * 10f64.powi(-power)).floor() as u64;
        // Logarithm and product have rounding errors: the printed value decides.
        let tried = (near.saturating_sub(1)..=near + 1).map(|units| Digits { units, power });
        tried.rev().find(|digits| digits.units > 0 && digits.value() <= value)
    }

    /// The smallest short decimal that is at least `value`; none if it is not above 0.
    pub fn up(value: f64) -> Option<Digits> {
        let below = Digits::down(value)?;
        if below.value() >= value { Some(below) } else { Some(below.more()) }
    }

    /// One printed unit more.
    pub fn more(self) -> Digits {
        Digits { units: self.units + 1, ..self }
    }

    /// One printed unit less; none if the result is not above 0.
    pub fn less(self) -> Option<Digits> {
        (self.units > 1).then(|| Digits { units: self.units - 1, ..self })
    }

    /// The value of the printed text.
    pub fn value(self) -> f64 {
        self.to_string().parse().unwrap_or(f64::NAN)
    }
}

impl fmt::Display for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = self.power.unsigned_abs() as usize;
        let digits = format!("{:0>width$}", self.units, width = decimals + 1);
        match digits.split_at(digits.len() - decimals) {
            (whole, "") => f.write_str(whole),
            (whole, part) => write!(f, "{whole}.{part}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flag {
    /// A latency limit in milliseconds, or seconds.
    Limit(Metric, Digits, TimeUnit),
    Concurrency(u64),
    /// Requests per second.
    Rate(Digits),
    Isl(u64),
    Osl(u64),
    /// Cached prompt tokens.
    Prefix(u64),
    /// Tokens of the longest request that the server takes.
    MaxModelLen(u64),
    /// Requests that the server takes at a time.
    MaxNumSeqs(u64),
    /// Whether a part of the model may be in host memory.
    Offload(OffloadPolicy),
    /// A system, and the next smaller one tried.
    Hardware(String, Option<String>),
    /// Host memory of a node in GB.
    HostMemory(u64),
    WeightFormat(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    Milliseconds,
    Seconds,
}

impl Flag {
    /// The smallest printed limit that is at least `seconds`.
    pub fn limit(metric: Metric, seconds: f64) -> Option<Flag> {
        let (unit, value) = if seconds < 1.0 {
            (TimeUnit::Milliseconds, seconds * 1e3)
        } else {
            (TimeUnit::Seconds, seconds)
        };
        Some(Flag::Limit(metric, Digits::up(value)?, unit))
    }

    /// The limit in seconds.
    pub fn seconds(&self) -> Option<f64> {
        match self {
            Flag::Limit(_, digits, TimeUnit::Milliseconds) => Some(digits.value() / 1e3),
            Flag::Limit(_, digits, TimeUnit::Seconds) => Some(digits.value()),
            _ => None,
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            Flag::Limit(metric, ..) => limit_flag(*metric),
            Flag::Concurrency(_) => "--concurrency",
            Flag::Rate(_) => "--rate",
            Flag::Isl(_) => "--isl",
            Flag::Osl(_) => "--osl",
            Flag::Prefix(_) => "--prefix",
            Flag::MaxModelLen(_) => "--max-model-len",
            Flag::MaxNumSeqs(_) => "--max-num-seqs",
            Flag::Offload(_) => "--offload",
            Flag::Hardware(..) => "--hardware",
            Flag::HostMemory(..) => "--host-memory",
            Flag::WeightFormat(_) => "--weight-format",
        }
    }

    /// The value alone, as typed.
    pub fn value(&self) -> String {
        match self {
            Flag::Limit(_, digits, TimeUnit::Milliseconds) => format!("{digits}ms"),
            Flag::Limit(_, digits, TimeUnit::Seconds) => format!("{digits}s"),
            Flag::Concurrency(number)
            | Flag::Isl(number)
            | Flag::Osl(number)
            | Flag::Prefix(number)
            | Flag::MaxModelLen(number)
            | Flag::MaxNumSeqs(number) => number.to_string(),
            Flag::Offload(mode) => mode.name().to_owned(),
            Flag::Rate(digits) => digits.to_string(),
            Flag::HostMemory(gigabytes) => format!("{gigabytes}GB"),
            Flag::Hardware(name, _) | Flag::WeightFormat(name) => name.clone(),
        }
    }

    /// The flag one printed unit tighter; none if no such value exists.
    pub fn tighter(&self) -> Option<Flag> {
        Some(match self {
            Flag::Limit(metric, digits, unit) => Flag::Limit(*metric, digits.less()?, *unit),
            Flag::Concurrency(requests) => Flag::Concurrency(requests + 1),
            Flag::Rate(digits) => Flag::Rate(digits.more()),
            Flag::Isl(tokens) => Flag::Isl(tokens + 1),
            Flag::Osl(tokens) => Flag::Osl(tokens + 1),
            Flag::Hardware(_, smaller) => Flag::Hardware(smaller.clone()?, None),
            Flag::HostMemory(gigabytes) => {
                Flag::HostMemory(gigabytes.checked_sub(1).filter(|less| *less > 0)?)
            }
            Flag::MaxNumSeqs(requests) => Flag::MaxNumSeqs(requests.checked_sub(1)?),
            Flag::Prefix(_) | Flag::MaxModelLen(_) | Flag::Offload(_) | Flag::WeightFormat(_) => return None,
        })
    }

    /// The flag one printed unit looser, against rounding errors.
    pub fn looser(&self) -> Option<Flag> {
        Some(match self {
            Flag::Limit(metric, digits, unit) => Flag::Limit(*metric, digits.more(), *unit),
            Flag::Rate(digits) => Flag::Rate(digits.less()?),
            _ => return None,
        })
    }
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name(), shell_word(&self.value()))
    }
}

/// Flags on one line, as typed.
pub fn line(flags: &[Flag]) -> String {
    flags.iter().map(Flag::to_string).collect::<Vec<_>>().join(" ")
}

pub fn limit_flag(metric: Metric) -> &'static str {
    match metric {
        Metric::Ttft => "--ttft",
        Metric::Tpot => "--tpot",
        _ => "--e2e",
    }
}

/// A condition as its flag, in all its digits.
pub fn condition_flags(condition: &Condition) -> String {
    match *condition {
        Condition::Limit(metric, seconds) => format!("{} {}", limit_flag(metric), exact(seconds)),
        Condition::InFlight(requests) => format!("--concurrency {requests}"),
        Condition::Rate(rate) => format!("--rate {rate}"),
    }
}

/// A time in all its digits, except rounding errors of the unit conversion.
fn exact(seconds: f64) -> String {
    let plain = |value: f64| format!("{value:.12e}").parse::<f64>().unwrap_or(value);
    if seconds < 1.0 { format!("{}ms", plain(seconds * 1e3)) } else { format!("{}s", plain(seconds)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::figure::{Seconds, read};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_rounded_outward_reads_back_outside_and_one_unit_less_inside(power in -9.0..9.0) {
            let value = libm::pow(10.0, power);
            let (up, down) = (Digits::up(value).unwrap(), Digits::down(value).unwrap());
            prop_assert!(up.value() >= value && down.value() <= value);
            prop_assert!(up.less().is_none_or(|less| less.value() < value) && down.more().value() > value);
            prop_assert!((up.value() / down.value() - 1.0) < 0.011);
            let limit = Flag::limit(Metric::Ttft, value).unwrap();
            let typed = read::<Seconds>(&limit.value()).unwrap();
            prop_assert!(typed >= value * (1.0 - 1e-15), "{limit} of {value}");
            prop_assert!((limit.seconds().unwrap() / typed - 1.0).abs() < 1e-15);
        }
    }

    #[test]
    fn flags_read_as_they_are_typed() {
        let limit = |seconds: f64| Flag::limit(Metric::Ttft, seconds).unwrap().to_string();
        assert_eq!(limit(0.3502), "--ttft 351ms");
        assert_eq!(limit(0.0456), "--ttft 45.6ms");
        assert_eq!(limit(1.2345), "--ttft 1.24s");
        assert_eq!(limit(12345.6), "--ttft 12346s");
        assert_eq!(limit(0.9996), "--ttft 1000ms");
        assert_eq!(Flag::Rate(Digits::down(3.2049).unwrap()).to_string(), "--rate 3.20");
        assert_eq!(Flag::Rate(Digits::down(0.001_239).unwrap()).to_string(), "--rate 0.00123");
        assert_eq!(condition_flags(&Condition::Limit(Metric::Tpot, 0.35)), "--tpot 350ms");
        assert_eq!(condition_flags(&Condition::Limit(Metric::E2e, 2.5)), "--e2e 2.5s");
        assert!(Digits::up(0.0).is_none() && Digits::down(f64::NAN).is_none());
    }
}
