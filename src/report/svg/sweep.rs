//! A sweep as lines over a number, as a heat map over two, or as bars.

use serde_json::Value;

use super::bars::{LabelledBar, bars};
use super::heat::HeatMap;
use super::lines::{LinePoint, PlotLine, lines};
use super::palette::SERIES;
use super::{SvgPanel, SvgPicture, side_by_side};
use crate::quantity::unit::parse;
use crate::report::number::{digits, format_metric, word};
use crate::report::simulated_point::{SIMULATED_FIGURES, SimulatedFigure};
use crate::report::sweep::{SweepReport, SweepRow, spell};
use crate::report::text::front::label;
use crate::spec::objective::Metric;

pub const MOST_POINTS: u64 = 20_000;
/// Maximum number of bars of a panel.
const MOST_BARS: usize = 60;
/// Least number of values of a key of a heat map.
const LEAST: usize = 3;
/// Metrics of the panels of lines and bars.
const PANELS: [Metric; 4] = [Metric::Ttft, Metric::Tpot, Metric::OutputTokS, Metric::UsdPerMtok];

/// A figure of rows that is drawn.
#[derive(Clone, Copy)]
enum DrawnFigure {
    /// Of the formulas.
    Formula(Metric),
    /// Of the simulation.
    Simulated(&'static SimulatedFigure),
}

impl DrawnFigure {
    fn of(self, row: &SweepRow) -> Option<f64> {
        match self {
            DrawnFigure::Formula(metric) => row.figure(metric),
            DrawnFigure::Simulated(figure) => row.simulated_figure(figure),
        }
    }

    fn ends(self, row: &SweepRow) -> Option<(f64, f64)> {
        match self {
            DrawnFigure::Formula(metric) => row.ends(metric),
            DrawnFigure::Simulated(_) => None,
        }
    }

    fn title(self) -> &'static str {
        match self {
            DrawnFigure::Formula(metric) => word(metric),
            DrawnFigure::Simulated(figure) => figure.label,
        }
    }

    fn label(self) -> String {
        match self {
            DrawnFigure::Formula(metric) => label(metric),
            DrawnFigure::Simulated(figure) => figure.label.to_owned(),
        }
    }

    fn words(self, value: f64) -> String {
        match self {
            DrawnFigure::Formula(metric) => format_metric(metric, value),
            DrawnFigure::Simulated(figure) => format!("{} {}", figure.label, digits(value)),
        }
    }

    /// Those of a picture: `metric`, or those of the simulation where there is one, or of the formulas.
    fn chosen(report: &SweepReport, metric: Option<Metric>, formulas: &[Metric]) -> Vec<DrawnFigure> {
        match (metric, &report.traffic) {
            (Some(metric), _) => vec![DrawnFigure::Formula(metric)],
            (None, None) => formulas.iter().copied().map(DrawnFigure::Formula).collect(),
            (None, Some(_)) => {
                let shown = SIMULATED_FIGURES.iter().filter(|figure| figure.is_shown);
                shown.map(DrawnFigure::Simulated).collect()
            }
        }
    }
}

/// The numbers of a key, where all its values are numbers of one unit.
fn numbers(values: &[Value]) -> Option<(Vec<f64>, String)> {
    if let Some(numbers) = values.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>() {
        return Some((numbers, String::new()));
    }
    let texts = values.iter().map(|value| parse(value.as_str()?).ok()).collect::<Option<Vec<_>>>()?;
    let unit = texts.first()?.1;
    let numbers = texts.iter().map(|(number, _)| *number).collect();
    texts.iter().all(|(_, other)| *other == unit).then(|| (numbers, format!(", {unit}")))
}

/// The picture of a sweep; `metric` chooses the only metric.
pub fn sweep_picture(report: &SweepReport, metric: Option<Metric>) -> SvgPicture {
    let counted: Vec<usize> = (0..report.vary.len())
        .filter(|at| report.vary[*at].values.len() > 1 && numbers(&report.vary[*at].values).is_some())
        .collect();
    let longest = counted.iter().copied().max_by_key(|at| report.vary[*at].values.len());
    let wide = |at: &&usize| report.vary[**at].values.len() >= LEAST;
    let others = report.vary.iter().filter(|axis| axis.values.len() > 1).count() - counted.len();
    let maps = others == 0 && counted.iter().filter(wide).count() == 2;
    let note = match (maps, longest) {
        (true, _) => "empty cells do not run",
        (false, Some(_)) if report.traffic.is_some() && metric.is_none() => {
            "simulated request by request; crosses: not simulated"
        }
        (false, Some(_)) => "bands: 80 % intervals; crosses: do not run",
        (false, None) => "the first ones are drawn",
    };
    let panels = match counted[..] {
        [up, across] if maps => {
            let figures = DrawnFigure::chosen(report, metric, &[Metric::OutputTokS, Metric::Tpot]);
            figures.into_iter().filter_map(|figure| map(report, [across, up], figure)).collect()
        }
        _ => {
            let panel = |figure: DrawnFigure| match longest {
                Some(across) => plotted(report, across, figure),
                None => barred(report, figure),
            };
            let figures = DrawnFigure::chosen(report, metric, &PANELS);
            let panels: Vec<SvgPanel> = figures.into_iter().filter_map(panel).collect();
            if panels.is_empty() { vec![] } else { vec![side_by_side(&panels, 2)] }
        }
    };
    let question = [&report.scenario.model, &report.scenario.hardware];
    let subject: Vec<&str> = question.into_iter().flatten().map(String::as_str).collect();
    let keys: Vec<&str> = report.vary.iter().map(|axis| axis.key.as_str()).collect();
    SvgPicture {
        title: format!("Sweep over {}", keys.join(", ")),
        subtitle: format!("{}: {} points; {note}", subject.join(" on "), report.rows.len()),
        panels,
    }
}

fn words(row: &SweepRow, drawn: DrawnFigure) -> String {
    let values: Vec<String> = row.vary.iter().map(|(key, value)| format!("{key} {}", spell(value))).collect();
    let figure = drawn.of(row).map(|value| drawn.words(value));
    let plan = row.metrics.as_ref().and(row.notation.clone());
    let unsimulated = row.simulated.as_ref().and_then(|point| point.reason.clone());
    let reason = row.reason.clone().or(unsimulated);
    let parts = [Some(values.join(", ")), figure, plan, reason];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// The values of a row of all keys but `across`.
fn others(report: &SweepReport, row: &SweepRow, across: usize) -> String {
    let rest = report.vary.iter().enumerate().filter(|(at, axis)| *at != across && axis.values.len() > 1);
    let pairs = rest
        .map(|(_, axis)| format!("{} {}", axis.key, row.vary.get(&axis.key).map(spell).unwrap_or_default()));
    pairs.collect::<Vec<_>>().join(", ")
}

fn plotted(report: &SweepReport, across: usize, figure: DrawnFigure) -> Option<SvgPanel> {
    let axis = &report.vary[across];
    let (numbers, unit_of_key) = numbers(&axis.values)?;
    let mut found: Vec<PlotLine> = Vec::new();
    for row in &report.rows {
        let at = axis.values.iter().position(|value| row.vary.get(&axis.key) == Some(value))?;
        let point = LinePoint {
            x: numbers[at],
            y: figure.of(row),
            ends: figure.ends(row),
            title: words(row, figure),
        };
        let name = others(report, row, across);
        match found.iter().position(|line| line.name == name) {
            Some(line) => found[line].points.push(point),
            // Further lines would repeat a form and colour.
            None if found.len() < SERIES.len() => found.push(PlotLine { name, points: vec![point] }),
            None => {}
        }
    }
    found.iter_mut().for_each(|line| line.points.sort_by(|a, b| a.x.total_cmp(&b.x)));
    let across = format!("{}{unit_of_key}", axis.key);
    lines(figure.title(), [&across, &figure.label()], &found)
}

fn map(report: &SweepReport, [across, up]: [usize; 2], figure: DrawnFigure) -> Option<SvgPanel> {
    let [columns, rows] = [across, up].map(|at| &report.vary[at]);
    let names = |at: usize| report.vary[at].values.iter().map(spell).collect::<Vec<_>>();
    let mut cells = vec![vec![(None, String::new()); columns.values.len()]; rows.values.len()];
    for row in &report.rows {
        let at = |axis: &crate::spec::vary::VariedKey| {
            axis.values.iter().position(|value| row.vary.get(&axis.key) == Some(value))
        };
        let (Some(column), Some(line)) = (at(columns), at(rows)) else { continue };
        cells[line][column] = (figure.of(row), words(row, figure));
    }
    let map = HeatMap {
        title: figure.label(),
        across: (columns.key.clone(), names(across)),
        up: (rows.key.clone(), names(up)),
        cells,
    };
    map.panel()
}

fn barred(report: &SweepReport, figure: DrawnFigure) -> Option<SvgPanel> {
    let all: Vec<LabelledBar> = report
        .rows
        .iter()
        .take(MOST_BARS)
        .map(|row| {
            let value = figure.of(row);
            LabelledBar {
                label: row.vary.values().map(spell).collect::<Vec<_>>().join(", "),
                parts: value.map(|value| (0, value, words(row, figure))).into_iter().collect(),
                note: value.map_or_else(|| row.status.name().to_owned(), digits),
            }
        })
        .collect();
    all.iter().any(|bar| !bar.parts.is_empty()).then(|| bars(&figure.label(), &[], &all))
}
