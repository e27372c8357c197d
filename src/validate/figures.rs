//! Figures of measured runs, and the columns and metrics of tables that have them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::measured::Record;
use crate::quantity::unit::GIB;
use crate::spec::error::Error;
use crate::spec::limits::MEASURED;

/// A figure that is scored next to TTFT, TPOT and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunFigure {
    /// Mean time between the tokens of an answer.
    Itl,
    /// End-to-end time in a closed loop.
    E2e,
    TtftP90,
    TtftP95,
    TpotP90,
    TpotP99,
    E2eP90,
    E2eP99,
    /// Prompt tokens per second.
    Prefill,
    /// Output tokens per second of all devices.
    Output,
    /// Bytes of the weights of a device.
    Weights,
    /// Bytes of a device that are free for the KV cache.
    KvMemory,
    /// Tokens that the KV cache of an attention rank holds.
    KvTokens,
}

impl RunFigure {
    /// Every figure, in the order of reports.
    pub const EACH: [RunFigure; 13] = [
        RunFigure::Prefill,
        RunFigure::Output,
        RunFigure::Itl,
        RunFigure::E2e,
        RunFigure::TtftP90,
        RunFigure::TtftP95,
        RunFigure::TpotP90,
        RunFigure::TpotP99,
        RunFigure::E2eP90,
        RunFigure::E2eP99,
        RunFigure::Weights,
        RunFigure::KvMemory,
        RunFigure::KvTokens,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            RunFigure::Itl => "ITL",
            RunFigure::E2e => "E2E",
            RunFigure::TtftP90 => "TTFT p90",
            RunFigure::TtftP95 => "TTFT p95",
            RunFigure::TpotP90 => "TPOT p90",
            RunFigure::TpotP99 => "TPOT p99",
            RunFigure::E2eP90 => "E2E p90",
            RunFigure::E2eP99 => "E2E p99",
            RunFigure::Prefill => "prefill tok/s",
            RunFigure::Output => "output tok/s",
            RunFigure::Weights => "weights per device",
            RunFigure::KvMemory => "KV memory per device",
            RunFigure::KvTokens => "tokens of the KV cache",
        }
    }

    fn place(self) -> usize {
        RunFigure::EACH.iter().position(|one| *one == self).unwrap_or(0)
    }
}

/// The figures of a run, measured or predicted. Times are in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures([Option<f64>; RunFigure::EACH.len()]);

impl Figures {
    pub fn get(&self, figure: RunFigure) -> Option<f64> {
        self.0[figure.place()]
    }

    pub fn set(&mut self, figure: RunFigure, value: Option<f64>) {
        self.0[figure.place()] = value;
    }

    /// The figures of a list.
    pub fn of<const N: usize>(list: [(RunFigure, f64); N]) -> Figures {
        let mut figures = Figures::default();
        list.into_iter().for_each(|(figure, value)| figures.set(figure, Some(value)));
        figures
    }

    /// Those that it has.
    pub fn iter(&self) -> impl Iterator<Item = (RunFigure, f64)> + '_ {
        RunFigure::EACH.into_iter().filter_map(|figure| Some((figure, self.get(figure)?)))
    }

    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

/// A latency of which tables have medians or means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Latency {
    Ttft,
    Tpot,
    E2e,
}

/// A summary of a latency over the requests of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statistic {
    Median,
    Mean,
}

/// The figure of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ColumnContent {
    Latency(Latency, Statistic),
    Figure(RunFigure),
}

/// The unit of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ColumnUnit {
    /// This many of the figure's unit.
    Of(f64),
    /// A rate, of which the figure is the time of one in milliseconds.
    PerSecond,
    /// A rate of one device of those that compute prompts.
    PerPromptDevice,
    /// A rate of one device of those that compute answers: so InferenceX states it of separate pools.
    PerDevice,
    /// Tokens of prompts and outputs.
    AllTokens,
    /// Requests.
    Requests,
}

/// Lengths and devices of a run, as its row states them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RunSize {
    pub isl: f64,
    pub osl: f64,
    /// Devices that compute prompts, and those that compute answers.
    pub prompts: f64,
    pub answers: f64,
}

impl ColumnUnit {
    /// A value in the unit of its figure.
    fn convert(self, value: f64, size: RunSize) -> f64 {
        match self {
            ColumnUnit::Of(factor) => value * factor,
            ColumnUnit::PerSecond => 1e3 / value,
            ColumnUnit::PerPromptDevice => value * size.prompts,
            ColumnUnit::PerDevice => value * size.answers,
            ColumnUnit::AllTokens => value * size.osl / (size.isl + size.osl),
            ColumnUnit::Requests => value * size.osl,
        }
    }
}

const MS: ColumnUnit = ColumnUnit::Of(1.0);
const ONE: ColumnUnit = ColumnUnit::Of(1.0);

const fn latency(latency: Latency, statistic: Statistic) -> ColumnContent {
    ColumnContent::Latency(latency, statistic)
}

/// Columns, or metrics of the long layout: what each has, and its unit. Of several with one figure, the first counts.
const COLUMNS: &[(&str, ColumnContent, ColumnUnit)] = &[
    ("ttft_ms", latency(Latency::Ttft, Statistic::Median), MS),
    ("ttft_p50_ms", latency(Latency::Ttft, Statistic::Median), MS),
    ("ttft_ms_p50", latency(Latency::Ttft, Statistic::Median), MS),
    ("ttft_mean_ms", latency(Latency::Ttft, Statistic::Mean), MS),
    ("ttft_ms_mean", latency(Latency::Ttft, Statistic::Mean), MS),
    ("ttft_p90_ms", ColumnContent::Figure(RunFigure::TtftP90), MS),
    ("ttft_p95_ms", ColumnContent::Figure(RunFigure::TtftP95), MS),
    ("tpot_ms", latency(Latency::Tpot, Statistic::Median), MS),
    ("tpot_p50_ms", latency(Latency::Tpot, Statistic::Median), MS),
    ("tpot_mean_ms", latency(Latency::Tpot, Statistic::Mean), MS),
    ("decode_tok_s_per_user", latency(Latency::Tpot, Statistic::Mean), ColumnUnit::PerSecond),
    ("tok_s_user", latency(Latency::Tpot, Statistic::Mean), ColumnUnit::PerSecond),
    ("tg_tok_s", latency(Latency::Tpot, Statistic::Mean), ColumnUnit::PerSecond),
    ("tpot_p90_ms", ColumnContent::Figure(RunFigure::TpotP90), MS),
    ("tpot_p99_ms", ColumnContent::Figure(RunFigure::TpotP99), MS),
    ("itl_mean_ms", ColumnContent::Figure(RunFigure::Itl), MS),
    ("itl_ms", ColumnContent::Figure(RunFigure::Itl), MS),
    ("e2e_ms", latency(Latency::E2e, Statistic::Median), MS),
    ("e2e_p50_ms", latency(Latency::E2e, Statistic::Median), MS),
    ("e2e_mean_ms", latency(Latency::E2e, Statistic::Mean), MS),
    ("e2e_latency_ms", latency(Latency::E2e, Statistic::Mean), MS),
    ("e2e_latency_s", latency(Latency::E2e, Statistic::Mean), ColumnUnit::Of(1e3)),
    ("e2e_p90_ms", ColumnContent::Figure(RunFigure::E2eP90), MS),
    ("e2e_p99_ms", ColumnContent::Figure(RunFigure::E2eP99), MS),
    ("prefill_tok_s", ColumnContent::Figure(RunFigure::Prefill), ONE),
    ("pp_tok_s", ColumnContent::Figure(RunFigure::Prefill), ONE),
    ("prefill_tok_s_per_device", ColumnContent::Figure(RunFigure::Prefill), ColumnUnit::PerPromptDevice),
    ("output_tok_s", ColumnContent::Figure(RunFigure::Output), ONE),
    ("output_tok_s_total", ColumnContent::Figure(RunFigure::Output), ONE),
    ("output_tok_s_per_device", ColumnContent::Figure(RunFigure::Output), ColumnUnit::PerDevice),
    ("output_tok_s_per_gpu", ColumnContent::Figure(RunFigure::Output), ColumnUnit::PerDevice),
    ("decode_tok_s_per_device", ColumnContent::Figure(RunFigure::Output), ColumnUnit::PerDevice),
    ("total_tok_s", ColumnContent::Figure(RunFigure::Output), ColumnUnit::AllTokens),
    ("req_s", ColumnContent::Figure(RunFigure::Output), ColumnUnit::Requests),
    ("weights_gib_per_device", ColumnContent::Figure(RunFigure::Weights), ColumnUnit::Of(GIB)),
    ("kv_gib_per_device", ColumnContent::Figure(RunFigure::KvMemory), ColumnUnit::Of(GIB)),
    ("kv_tokens", ColumnContent::Figure(RunFigure::KvTokens), ONE),
];

/// The column of a figure by which a report names it where it is not scored.
pub fn column_of(figure: RunFigure) -> &'static str {
    let has = |content: &ColumnContent| match content {
        ColumnContent::Figure(one) => *one == figure,
        ColumnContent::Latency(latency, _) => *latency == Latency::E2e && figure == RunFigure::E2e,
    };
    COLUMNS.iter().find(|(_, content, _)| has(content)).map_or(figure.name(), |(name, ..)| name)
}

/// The figures that a row has, and the columns that were read for them.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadFigures {
    latencies: Vec<(Latency, Statistic, f64, &'static str)>,
    pub figures: Figures,
    pub columns: Vec<&'static str>,
}

impl ReadFigures {
    fn add(
        &mut self,
        (name, content, unit): (&'static str, ColumnContent, ColumnUnit),
        value: f64,
        size: RunSize,
    ) {
        let converted = unit.convert(value, size);
        match content {
            ColumnContent::Latency(latency, statistic) => {
                self.latencies.push((latency, statistic, converted, name));
            }
            ColumnContent::Figure(figure) => {
                self.columns.push(name);
                if self.figures.get(figure).is_none() {
                    self.figures.set(figure, Some(converted));
                }
            }
        }
    }

    /// A latency of this statistic.
    pub fn latency(&mut self, latency: Latency, statistic: Statistic) -> Option<f64> {
        let found = self.latencies.iter().find(|(one, of, ..)| (*one, *of) == (latency, statistic))?;
        self.columns.push(found.3);
        Some(found.2)
    }

    /// Whether it has a mean of any latency.
    pub fn has_means(&self) -> bool {
        self.latencies.iter().any(|(_, statistic, ..)| *statistic == Statistic::Mean)
    }
}

impl Record<'_> {
    /// The figures in the columns of a row.
    pub(super) fn figures(&self, size: RunSize) -> Result<ReadFigures, Error> {
        let mut found = ReadFigures::default();
        for column in COLUMNS {
            if let Some(value) = self.positive(column.0, &MEASURED)? {
                found.add(*column, value, size);
            }
        }
        Ok(found)
    }

    /// The figure in `metric` and `value` of the long layout.
    pub(super) fn metric(&self, size: RunSize) -> Result<ReadFigures, Error> {
        let mut found = ReadFigures::default();
        let metric = self.text("metric");
        let column = COLUMNS.iter().find(|(name, ..)| *name == metric);
        if let (Some(column), Some(value)) = (column, self.positive("value", &MEASURED)?) {
            found.add(*column, value, size);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(cells: &[(&str, &str)]) -> ReadFigures {
        let size = RunSize { isl: 300.0, osl: 100.0, prompts: 4.0, answers: 8.0 };
        Record(cells.iter().copied().collect()).figures(size).unwrap()
    }

    #[test]
    fn units_of_columns_are_those_of_their_figure() {
        for (column, value, figure, expected) in [
            ("prefill_tok_s", "40", RunFigure::Prefill, 40.0),
            ("prefill_tok_s_per_device", "40", RunFigure::Prefill, 160.0),
            ("output_tok_s_per_device", "5", RunFigure::Output, 40.0),
            ("total_tok_s", "80", RunFigure::Output, 20.0),
            ("req_s", "2", RunFigure::Output, 200.0),
            ("kv_gib_per_device", "2", RunFigure::KvMemory, 2.0 * GIB),
            ("itl_mean_ms", "7", RunFigure::Itl, 7.0),
        ] {
            let found = figures(&[(column, value)]);
            assert_eq!((found.figures.get(figure), &found.columns[..]), (Some(expected), &[column][..]));
        }
        let both = figures(&[("output_tok_s", "33"), ("total_tok_s", "80")]);
        assert_eq!(both.figures.get(RunFigure::Output), Some(33.0));
    }

    #[test]
    fn a_latency_has_its_statistic() {
        let mut found = figures(&[("ttft_mean_ms", "9"), ("tg_tok_s", "50"), ("e2e_p50_ms", "70")]);
        assert!(found.has_means());
        assert_eq!(found.latency(Latency::Ttft, Statistic::Median), None);
        assert_eq!(found.latency(Latency::Ttft, Statistic::Mean), Some(9.0));
        assert_eq!(found.latency(Latency::Tpot, Statistic::Mean), Some(20.0));
        assert_eq!(found.latency(Latency::E2e, Statistic::Median), Some(70.0));
        assert_eq!(figures(&[("ttft_ms", "0")]).latency(Latency::Ttft, Statistic::Median), None);
    }

    #[test]
    fn every_figure_has_a_place_and_a_column() {
        for figure in RunFigure::EACH {
            assert_eq!(RunFigure::EACH[figure.place()], figure);
            assert!(COLUMNS.iter().any(|(name, ..)| *name == column_of(figure)), "{figure:?}");
        }
    }
}
