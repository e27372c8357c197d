//! Stated errors that the predictions of one's own rows must keep to, by size of model and class of device.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::validate::score::quantile;

/// A figure with a stated largest median error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// TPOT.
    Decode,
    /// TTFT of runs that time prompts alone.
    Prefill,
    /// TTFT of servers.
    Ttft,
    /// Memory of a device except the KV cache.
    Memory,
}

impl Gate {
    pub const EACH: [Gate; 4] = [Gate::Decode, Gate::Prefill, Gate::Ttft, Gate::Memory];

    /// The gate of a TTFT.
    pub fn of_first(timed_separately: bool) -> Gate {
        if timed_separately { Gate::Prefill } else { Gate::Ttft }
    }

    /// Its largest median error, as a fraction.
    pub const fn limit(self) -> f64 {
        match self {
            Gate::Decode => 0.10,
            Gate::Prefill => 0.12,
            Gate::Ttft => 0.15,
            Gate::Memory => 0.05,
        }
    }

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Gate::Decode => "decode",
            Gate::Prefill => "prefill",
            Gate::Ttft => "TTFT",
            Gate::Memory => "memory",
        }
    }
}

/// Total parameters of a model, in four ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SizeClass {
    /// Up to 10 billion.
    Small,
    /// Up to 40 billion.
    Medium,
    /// Up to 150 billion.
    Large,
    /// More.
    Giant,
}

impl SizeClass {
    pub fn of(parameters: u64) -> SizeClass {
        let ranges = [(10, SizeClass::Small), (40, SizeClass::Medium), (150, SizeClass::Large)];
        let range = ranges.into_iter().find(|(most, _)| parameters <= most * 1_000_000_000);
        range.map_or(SizeClass::Giant, |(_, size)| size)
    }

    /// Its range in words.
    pub const fn words(self) -> &'static str {
        match self {
            SizeClass::Small => "up to 10 B",
            SizeClass::Medium => "10 to 40 B",
            SizeClass::Large => "40 to 150 B",
            SizeClass::Giant => "above 150 B",
        }
    }
}

/// A gated figure of a row.
pub(super) struct GatePair {
    pub gate: Gate,
    pub size: SizeClass,
    /// Class of the device.
    pub class: String,
    /// Measured / predicted.
    pub ratio: f64,
}

/// A gate for the models of a size on devices of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateResult {
    /// The gate.
    pub gate: Gate,
    /// The size of the models.
    pub size: SizeClass,
    /// The class of the devices.
    pub hardware_class: String,
    /// Number of rows.
    pub rows: usize,
    /// Largest median error that is stated, as a fraction of the measurement.
    pub limit: f64,
    /// Median error of the rows. Each is predicted without it, where the others are enough for a fit.
    pub median_error: f64,
    /// Whether it is within the limit.
    pub met: bool,
}

/// The gates of these rows: those of a figure, size and class that no row has are absent.
pub(super) fn gate_results(pairs: &[GatePair]) -> Vec<GateResult> {
    let mut groups: Vec<(Gate, SizeClass, &String)> =
        pairs.iter().map(|pair| (pair.gate, pair.size, &pair.class)).collect();
    groups.sort();
    groups.dedup();
    let of = |group: (Gate, SizeClass, &String)| {
        let own = pairs.iter().filter(|pair| (pair.gate, pair.size, &pair.class) == group);
        let mut errors: Vec<f64> = own.map(|pair| (1.0 / pair.ratio - 1.0).abs()).collect();
        let (gate, size, class) = group;
        let median_error = quantile(&mut errors, 0.5);
        let (rows, limit) = (errors.len(), gate.limit());
        let hardware_class = class.clone();
        GateResult { gate, size, hardware_class, rows, limit, median_error, met: median_error <= limit }
    };
    groups.into_iter().map(of).collect()
}

/// Columns of [`GateResult::cells`].
pub const HEADER: [&str; 7] = ["gate", "model", "hardware", "rows", "limit in %", "median error in %", "met"];

impl GateResult {
    /// A row of [`HEADER`].
    pub fn cells(&self) -> Vec<String> {
        let percent = |value: f64| format!("{:.1}", 100.0 * value);
        vec![
            self.gate.name().to_owned(),
            self.size.words().to_owned(),
            self.hardware_class.clone(),
            self.rows.to_string(),
            percent(self.limit),
            percent(self.median_error),
            if self.met { "yes" } else { "no" }.to_owned(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_met_by_the_median_of_its_rows_alone() {
        let pair = |gate, class: &str, ratio| GatePair {
            gate,
            size: SizeClass::of(8_000_000_000),
            class: class.to_owned(),
            ratio,
        };
        let pairs = [
            pair(Gate::Decode, "datacenter", 1.0 / 1.09),
            pair(Gate::Decode, "datacenter", 1.0 / 0.95),
            pair(Gate::Decode, "datacenter", 3.0),
            pair(Gate::Decode, "consumer", 1.0 / 1.11),
            pair(Gate::Memory, "consumer", 1.0 / 1.04),
        ];
        let found = gate_results(&pairs);
        let met: Vec<_> =
            found.iter().map(|one| (one.gate, one.hardware_class.as_str(), one.rows, one.met)).collect();
        let expected = [
            (Gate::Decode, "consumer", 1, false),
            (Gate::Decode, "datacenter", 3, true),
            (Gate::Memory, "consumer", 1, true),
        ];
        assert_eq!(met, expected);
        assert!((found[1].median_error - 0.09).abs() < 1e-12);
    }

    #[test]
    fn stated_limits_are_those_of_the_documentation() {
        let text = include_str!("../../../docs/calibration.md");
        for gate in Gate::EACH {
            let line = format!("| {} | {:.0} % |", gate.name(), 100.0 * gate.limit());
            assert!(text.contains(&line), "{line}");
        }
    }
}
