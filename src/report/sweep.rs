//! The points of a sweep as rows: JSON, JSON lines, CSV, and a table of the first ones.

use crate::spec::scalar::ScalarKind;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::number::digits;
use super::result::{Intervals, MetricsReport, ReportedDeployment};
use super::rows::{metric_cells, metric_names, number};
use super::sheet;
use super::simulated_point::{
    SIMULATED_FIGURES, SIMULATED_REASON, SIMULATED_REPLICAS, SimulatedFigure, SimulatedPoint,
};
use super::table::{grouped, table as lines};
use crate::spec::error::Error;
use crate::spec::limits::SHARDS;
use crate::spec::objective::Metric;
use crate::spec::scenario::Scenario;
use crate::spec::vary::VariedKey;
use crate::spec::visible::visible_json;

/// Outcome of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PointStatus {
    /// The best deployment, proved.
    Optimal,
    /// It runs within its SLOs.
    Feasible,
    /// It runs and misses an SLO.
    SloMissed,
    /// It does not run: memory, a rule, too much traffic.
    Infeasible,
    /// Its inputs contradict each other, the model or the hardware.
    Invalid,
}

impl PointStatus {
    pub fn name(self) -> &'static str {
        match self {
            PointStatus::Optimal => "optimal",
            PointStatus::Feasible => "feasible",
            PointStatus::SloMissed => "slo_missed",
            PointStatus::Infeasible => "infeasible",
            PointStatus::Invalid => "invalid",
        }
    }
}

/// A part of the points of a sweep: every `of`th, from number `number` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShardNumber {
    /// Its number, from 1.
    pub number: u64,
    /// Number of shards.
    pub of: u64,
}

impl ShardNumber {
    /// Checks that it is one of the shards.
    ///
    /// # Errors
    /// There are too many shards, or there is none of this number.
    pub fn check(self) -> Result<(), Error> {
        let ShardNumber { number, of } = self;
        SHARDS.check_whole("shard", of)?;
        if number == 0 || number > of {
            let expected = "a number from 1 to the number of shards";
            return Err(Error::new("shard", format!("{number}/{of}"), expected, "write 1/4"));
        }
        Ok(())
    }

    /// Whether it has the point at a place, which count from 0.
    pub fn has(self, place: u64) -> bool {
        place % self.of == self.number - 1
    }
}

/// A point of a sweep with its metrics.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SweepRow {
    /// Fingerprint of the sweep: the problem with every file read, the varied keys and the version of the program.
    pub sweep: String,
    /// Number of the point, from 0.
    pub point: u64,
    /// Number of points of the sweep.
    pub points: u64,
    /// Values of the varied keys.
    pub vary: Map<String, Value>,
    /// Outcome.
    pub status: PointStatus,
    /// The reason where it does not run or misses an SLO.
    pub reason: Option<String>,
    /// The plan in one line.
    pub notation: Option<String>,
    /// Devices in use.
    pub devices: Option<u64>,
    /// Mean concurrency of the whole deployment.
    pub mean_concurrency: Option<f64>,
    /// Largest contribution to the time per output token.
    pub bottleneck: Option<String>,
    /// Metrics; null if it cannot run.
    pub metrics: Option<MetricsReport>,
    /// Prediction intervals of the metrics; null without measurements to derive them from.
    pub intervals: Option<Intervals>,
    /// The point under the traffic of the sweep; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<SimulatedPoint>,
}

/// The result of a sweep.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SweepReport {
    /// Fingerprint of the sweep.
    pub sweep: String,
    /// The scenario of every point, without the varied keys.
    pub scenario: Scenario,
    /// Varied keys, the last of which changes fastest.
    pub vary: Vec<VariedKey>,
    /// Number of points.
    pub points: u64,
    /// The part of the points that the rows are; absent if all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardNumber>,
    /// The traffic under which every point is simulated, as in the request; absent where none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Value>,
    /// One row per point.
    pub rows: Vec<SweepRow>,
}

/// The outcome of a point, before it is a row.
#[derive(Clone, Debug)]
pub struct PointOutcome {
    pub status: PointStatus,
    /// The reason where it does not run or misses an SLO.
    pub reason: Option<String>,
    /// The deployment, where there is one.
    pub deployment: Option<ReportedDeployment>,
}

impl SweepRow {
    /// The value of a figure of its simulation.
    pub fn simulated_figure(&self, figure: &SimulatedFigure) -> Option<f64> {
        self.simulated.as_ref().and_then(|point| figure.of(point))
    }

    /// The value of `metric` in the unit of its column.
    pub fn figure(&self, metric: Metric) -> Option<f64> {
        if metric == Metric::Devices {
            return self.devices.map(|devices| devices as f64);
        }
        self.metrics.as_ref()?.get(metric, None).filter(|value| value.is_finite())
    }

    /// The ends of the 80 % interval of `metric`.
    pub fn ends(&self, metric: Metric) -> Option<(f64, f64)> {
        self.intervals.as_ref()?.get(metric).map(|ends| (ends.p10, ends.p90))
    }
}

const IDENTITY: [(&str, ScalarKind); 3] =
    [("sweep", ScalarKind::Text), ("point", ScalarKind::Whole), ("points", ScalarKind::Whole)];
/// Columns between the varied keys and the metrics.
const OUTCOME: [(&str, ScalarKind); 6] = [
    ("status", ScalarKind::Text),
    ("reason", ScalarKind::Text),
    ("notation", ScalarKind::Text),
    ("devices", ScalarKind::Whole),
    ("mean_concurrency", ScalarKind::Number),
    ("bottleneck", ScalarKind::Text),
];

/// Columns of points that are simulated, after all others.
fn simulated_columns() -> impl Iterator<Item = (&'static str, ScalarKind)> {
    let ends = [(SIMULATED_REPLICAS, ScalarKind::Whole), (SIMULATED_REASON, ScalarKind::Text)];
    SIMULATED_FIGURES.iter().map(|figure| (figure.column, ScalarKind::Number)).chain(ends)
}

/// The columns of a table of rows, of points that are simulated too or are not. A varied key is a number where all its
/// values are.
pub fn columns(vary: &[VariedKey], simulated: bool) -> Vec<(String, ScalarKind)> {
    let fixed = |columns: &[(&str, ScalarKind)]| {
        columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect::<Vec<_>>()
    };
    let keys = vary.iter().map(|axis| {
        let kind = match &axis.values[..] {
            values if values.iter().all(|value| value.is_u64() || value.is_i64()) => ScalarKind::Whole,
            values if values.iter().all(Value::is_number) => ScalarKind::Number,
            _ => ScalarKind::Text,
        };
        (axis.key.clone(), kind)
    });
    let metrics = metric_names().into_iter().map(|name| (name, ScalarKind::Number));
    let more: Vec<_> = simulated_columns().filter(|_| simulated).collect();
    [fixed(&IDENTITY), keys.collect(), fixed(&OUTCOME), metrics.collect(), fixed(&more)].concat()
}

pub fn spell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(spell).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// The header of a CSV file as its line.
pub fn csv_header(vary: &[VariedKey], simulated: bool) -> String {
    sheet::lines([columns(vary, simulated).into_iter().map(|(name, _)| name).collect()])
}

impl SweepReport {
    /// Every point as a row, under a header.
    pub(crate) fn csv(&self) -> String {
        csv_header(&self.vary, self.traffic.is_some()) + &sheet::lines(self.rows.iter().map(cells))
    }
}

pub fn csv_line(row: &SweepRow) -> String {
    sheet::lines([cells(row)])
}

pub fn json_line(row: &SweepRow) -> String {
    let line = serde_json::to_string(row).expect("reports have only text keys");
    format!("{}\n", visible_json(&line))
}

/// The cells of a row under [`columns`]; empty where there is no value.
pub fn cells(row: &SweepRow) -> Vec<String> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    [
        vec![row.sweep.clone(), row.point.to_string(), row.points.to_string()],
        row.vary.values().map(spell).collect(),
        vec![
            row.status.name().to_owned(),
            text(&row.reason),
            text(&row.notation),
            row.devices.map(|devices| devices.to_string()).unwrap_or_default(),
            number(row.mean_concurrency),
            text(&row.bottleneck),
        ],
        metric_cells(row.metrics.as_ref(), row.intervals.as_ref()),
        row.simulated.as_ref().map(simulated_cells).unwrap_or_default(),
    ]
    .concat()
}

fn simulated_cells(point: &SimulatedPoint) -> Vec<String> {
    let figures = SIMULATED_FIGURES.iter().map(|figure| number(figure.of(point)));
    let replicas = point.sampled_replicas.map(|replicas| replicas.to_string());
    figures.chain([replicas.unwrap_or_default(), point.reason.clone().unwrap_or_default()]).collect()
}

const SHOWN: [Metric; 5] =
    [Metric::Ttft, Metric::Tpot, Metric::OutputTokS, Metric::UsdPerMtok, Metric::Watts];

/// A line of at most `width` characters; files have all of it.
fn cut(line: &str, width: usize) -> String {
    match line.char_indices().nth(width.saturating_sub(1)) {
        Some((end, last)) if end + last.len_utf8() < line.len() => format!("{}…\n", &line[..end]),
        _ => format!("{line}\n"),
    }
}

pub const SHOWN_ROWS: usize = 40;

pub fn counted(rows: &[SweepRow]) -> Vec<(PointStatus, u64)> {
    let mut counts = BTreeMap::new();
    rows.iter().for_each(|row| *counts.entry(row.status).or_default() += 1);
    counts.into_iter().collect()
}

/// The first rows as a table in lines of at most `width` characters, with the number of points of each outcome.
pub fn table(head: &SweepReport, counts: &[(PointStatus, u64)], width: usize) -> String {
    let keys = head.vary.iter().map(|axis| axis.key.as_str());
    // Under traffic, its figures are shown in place of those of the formulas.
    let simulated = head.traffic.is_some();
    let shown = || SIMULATED_FIGURES.iter().filter(|figure| simulated && figure.is_shown);
    let formulas = || SHOWN.iter().filter(|_| !simulated);
    let metrics = formulas().map(|metric| metric.entry().heading).chain(shown().map(|figure| figure.label));
    let header: Vec<&str> = keys.chain(["status"]).chain(metrics).chain(["plan or reason"]).collect();
    let cells = |row: &SweepRow| -> Vec<String> {
        let figure = |metric: &Metric| row.figure(*metric).map(digits).unwrap_or_default();
        // The formats follow the pools of a plan.
        let pools = |plan: &String| plan.split(", weights ").next().unwrap_or_default().to_owned();
        let plan = row.metrics.as_ref().and(row.notation.as_ref()).map(pools);
        let plan = plan.or_else(|| row.reason.clone());
        let values = row.vary.values().map(spell);
        let under_traffic = |one: &SimulatedFigure| row.simulated_figure(one).map(digits).unwrap_or_default();
        let figures = formulas().map(figure).chain(shown().map(under_traffic));
        let values = values.chain([row.status.name().to_owned()]).chain(figures);
        values.chain([plan.unwrap_or_default()]).collect()
    };
    let rows = head.rows.iter().take(SHOWN_ROWS).map(cells);
    let all: u64 = counts.iter().map(|(_, count)| count).sum();
    let parts: Vec<String> = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(status, count)| format!("{} {}", grouped(*count), status.name()))
        .collect();
    let mut text: String = lines(&header, rows).lines().map(|line| cut(line, width)).collect();
    let left = all.saturating_sub(head.rows.len() as u64);
    if left > 0 {
        text.push_str(&format!("… {} more rows; all of them with --out sweep.csv\n", grouped(left)));
    }
    text.push_str(&format!("\n{} points: {}\n", grouped(all), parts.join(", ")));
    text
}
