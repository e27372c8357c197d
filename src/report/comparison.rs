//! Answers side by side: one row each, with the ratio of every metric to the first.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::number::digits;
use super::result::{MetricsReport, ReportedDeployment};
use super::rows::number;
use super::sheet;
use super::sweep::PointStatus;
use super::table::table_within;
use crate::spec::objective::{METRICS, Metric};

/// An answer of a comparison.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ComparedRow {
    /// Its name: a file, or the hardware.
    pub name: String,
    /// The model.
    pub model: String,
    /// The hardware.
    pub hardware: String,
    /// The serving runtime.
    pub runtime: String,
    /// Prompt tokens.
    pub isl: u64,
    /// Output tokens.
    pub osl: u64,
    /// Outcome.
    pub status: PointStatus,
    /// The reason where it does not run or misses an SLO.
    pub reason: Option<String>,
    /// The plan in one line.
    pub notation: Option<String>,
    /// Label of the plan, e.g. `2 x tp4`.
    pub plan: Option<String>,
    /// Devices in use.
    pub devices: Option<u64>,
    /// Metrics; null if it cannot run.
    pub metrics: Option<MetricsReport>,
    /// Each metric over that of the first row, by column; where both are known.
    pub ratios: BTreeMap<String, f64>,
}

/// Answers side by side.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonReport {
    /// One row per answer, in the given order.
    pub rows: Vec<ComparedRow>,
}

#[derive(Clone, Debug, Default)]
pub struct ComparedProblem {
    /// Its name: a file, or the hardware.
    pub name: String,
    pub model: String,
    pub hardware: String,
    pub runtime: String,
    pub lengths: [u64; 2],
}

impl ComparedRow {
    /// A row without ratios.
    pub fn new(
        problem: ComparedProblem,
        status: PointStatus,
        reason: Option<String>,
        deployment: Option<ReportedDeployment>,
    ) -> ComparedRow {
        let ComparedProblem { name, model, hardware, runtime, lengths: [isl, osl] } = problem;
        ComparedRow {
            name,
            model,
            hardware,
            runtime,
            isl,
            osl,
            status,
            reason,
            notation: deployment.as_ref().map(|found| found.notation.clone()),
            plan: deployment.as_ref().map(|found| found.plan.label.clone()),
            devices: deployment.as_ref().map(|found| found.devices),
            metrics: deployment.and_then(|found| found.metrics),
            ratios: BTreeMap::new(),
        }
    }

    /// The value of `metric` in the unit of its column.
    pub fn figure(&self, metric: Metric) -> Option<f64> {
        self.metrics.as_ref()?.get(metric, self.devices).filter(|value| value.is_finite())
    }
}

impl ComparisonReport {
    /// The rows with their ratios to the first.
    pub fn of(mut rows: Vec<ComparedRow>) -> ComparisonReport {
        let first = rows.first().cloned();
        for row in &mut rows {
            let ratio = |metric: Metric| {
                let ratio = row.figure(metric)? / first.as_ref()?.figure(metric)?;
                ratio.is_finite().then_some(ratio)
            };
            let pairs =
                METRICS.iter().filter_map(|entry| Some((entry.column.to_owned(), ratio(entry.metric)?)));
            let ratios = pairs.collect();
            row.ratios = ratios;
        }
        ComparisonReport { rows }
    }

    /// The rows as CSV; a ratio follows its metric.
    pub fn csv(&self) -> String {
        let fixed = ["name", "model", "hardware", "runtime", "isl", "osl", "status", "reason", "notation"];
        let metrics =
            METRICS.iter().flat_map(|entry| [entry.column.to_owned(), format!("{}_ratio", entry.column)]);
        let header: Vec<String> = fixed.iter().map(|name| (*name).to_owned()).chain(metrics).collect();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let cells = |row: &ComparedRow| {
            let names = [&row.name, &row.model, &row.hardware, &row.runtime].map(String::clone);
            let outcome = [row.status.name().to_owned(), text(&row.reason), text(&row.notation)];
            let figures = METRICS.iter().flat_map(|entry| {
                [number(row.figure(entry.metric)), number(row.ratios.get(entry.column).copied())]
            });
            let lengths = [row.isl.to_string(), row.osl.to_string()];
            names.into_iter().chain(lengths).chain(outcome).chain(figures).collect::<Vec<_>>()
        };
        sheet::csv(header.iter().map(String::as_str), self.rows.iter().map(cells))
    }

    /// The rows as a table in lines of at most `width` characters, and the ratios below.
    pub fn table(&self, width: usize) -> String {
        let headings = || SHOWN.iter().map(|metric| metric.entry().heading);
        let header: Vec<&str> = ["name", "plan"].into_iter().chain(headings()).collect();
        let cells = |row: &ComparedRow| {
            let plan = row.metrics.as_ref().and(row.plan.clone()).or(row.reason.clone());
            let figures = SHOWN.iter().map(|metric| row.figure(*metric).map(digits).unwrap_or_default());
            [row.name.clone(), plan.unwrap_or_default()].into_iter().chain(figures).collect::<Vec<_>>()
        };
        let mut text = table_within(&header, self.rows.iter().map(cells), width);
        let Some(first) = self.rows.first().filter(|first| first.metrics.is_some()) else { return text };
        let over = format!("over {}", first.name);
        let header: Vec<&str> = [over.as_str()].into_iter().chain(headings()).collect();
        let ratios = |row: &ComparedRow| {
            let ratio = |metric: &Metric| {
                let ratio = row.ratios.get(metric.entry().column);
                ratio.map(|ratio| format!("x {}", digits(*ratio))).unwrap_or_default()
            };
            [row.name.clone()].into_iter().chain(SHOWN.iter().map(ratio)).collect::<Vec<_>>()
        };
        text.push_str(&format!("\n{}", table_within(&header, self.rows.iter().skip(1).map(ratios), width)));
        let missed = self.rows.iter().filter(|row| row.metrics.is_some());
        for (row, reason) in missed.filter_map(|row| row.reason.as_ref().map(|reason| (row, reason))) {
            text.push_str(&format!("{}: {reason}\n", row.name));
        }
        text
    }
}

/// Metrics of the table and the picture.
pub const SHOWN: [Metric; 8] = [
    Metric::Ttft,
    Metric::Tpot,
    Metric::OutputTokS,
    Metric::UsdPerHour,
    Metric::UsdPerMonth,
    Metric::UsdPerMtok,
    Metric::TokPerUsd,
    Metric::Watts,
];
