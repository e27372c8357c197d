//! The first sheet: the question, the plan, the metrics, and where the time goes.

use rust_xlsxwriter::utility::{row_col_to_cell, row_col_to_cell_absolute};
use rust_xlsxwriter::{Chart, ChartType, XlsxError};

use super::WorkbookContent;
use super::cells::FIRST_ROW;
use super::operators::{ALL_LAYERS, BOUND, class, rows};
use super::page::{CellAddress, CellNumber, SheetPage, WorkbookSheet};
use super::plan::{CHANGED, branches};
use super::summary::{in_column, metrics};
use crate::quantity::num::Num;
use crate::quantity::unit::GIB;
use crate::report::breakdown::{CLASSES, Class};
use crate::report::text::head;
use crate::spec::objective::MetricFormat;

/// Bytes of a GiB.
const METRICS_ROW: u32 = 12;

/// The cell of a metric, by its place among the known ones.
pub(super) fn metric(at: u32) -> CellAddress {
    CellAddress { sheet: WorkbookSheet::Front, row: METRICS_ROW + at, column: 1 }
}

pub(super) fn write(page: &mut SheetPage, content: &WorkbookContent) -> Result<(), XlsxError> {
    let (question, best) = (content.question, content.deployment);
    page.widths(0, &[30.0, 18.0, 26.0, 70.0])?;
    page.title(&format!("{} on {}", question.model, question.hardware))?;
    let formats = format!("{} weights, {} KV", best.weight_format, best.kv_format);
    let version = question.runtime_version.as_deref().unwrap_or_default();
    let runtime = format!("{} {version}", question.runtime);
    let program = concat!("mantile-opt ", env!("CARGO_PKG_VERSION"));
    let misses = if best.violations.is_empty() { "none".to_owned() } else { best.violations.join("; ") };
    let lines = [
        ("Question", head::problem(question)),
        ("Plan (search result)", head::plan(best)),
        ("Plan in one line", best.notation.clone()),
        ("Formats", formats),
        ("Runtime", runtime.trim().to_owned()),
        ("Violated limits", misses),
        ("Written by", program.to_owned()),
    ];
    for (row, (name, text)) in (2..).zip(&lines) {
        page.text(row, 0, name)?;
        page.text(row, 1, text)?;
    }
    let known = metrics(content);
    page.head(METRICS_ROW - 1, 0, &["metric", "value", "name and unit", "definition"])?;
    for (at, cell) in (0..).zip(&known) {
        let row = METRICS_ROW + at;
        page.text(row, 0, cell.0.word)?;
        let number = in_column(content, page, *cell);
        match cell.0.format {
            MetricFormat::Count | MetricFormat::Tokens => page.whole(row, 1, &number)?,
            MetricFormat::Time | MetricFormat::Number => page.number(row, 1, &number)?,
        }
        page.text(row, 2, cell.0.column)?;
        page.text(row, 3, cell.0.meaning)?;
    }
    let next = memory(page, content, METRICS_ROW + known.len() as u32)?;
    let next = bounds(page, content, next + 1)?;
    notes(page, content, next + 1)
}

/// Writes memory and concurrency; returns the next row.
fn memory(page: &mut SheetPage, content: &WorkbookContent, first: u32) -> Result<u32, XlsxError> {
    let evaluation = &content.trace.evaluation;
    let lines = [
        ("concurrent requests", evaluation.metrics.in_flight, 1.0, "requests"),
        ("memory of the fullest device", evaluation.memory.total, GIB, "GiB"),
        ("usable memory", evaluation.memory.usable, GIB, "GiB"),
    ];
    for (row, (name, number, scale, unit)) in (first..).zip(&lines) {
        page.text(row, 0, name)?;
        let base = content.cells.traced(number.0, page.kind);
        let value = base.value() / scale;
        let CellNumber::Formula(text, _) = base else { continue };
        page.number(row, 1, &CellNumber::Formula(format!("({text})/{scale}"), value))?;
        page.text(row, 2, unit)?;
    }
    Ok(first + lines.len() as u32)
}

/// Writes the time of both phases by bottleneck, and its chart; returns the next row.
fn bounds(page: &mut SheetPage, content: &WorkbookContent, first: u32) -> Result<u32, XlsxError> {
    page.head(first, 0, &["operators by bound", "prefill s", "decode s"])?;
    let sheets = [WorkbookSheet::Prefill, WorkbookSheet::Decode];
    for (row, one) in (first + 1..).zip(CLASSES) {
        page.text(row, 0, one.name())?;
        for (column, sheet) in (1..).zip(sheets) {
            page.number(row, column, &sum_of(content, sheet, one, row))?;
        }
    }
    let mut chart = Chart::new(ChartType::ColumnPercentStacked);
    chart.title().set_name("Time of a step by bound");
    let name = page.kind.name();
    for row in first + 1..=first + CLASSES.len() as u32 {
        let series = chart.add_series();
        series.set_name((name, row, 0)).set_categories((name, first, 1, first, 2));
        series.set_values((name, row, 1, row, 2));
    }
    page.sheet.insert_chart(METRICS_ROW - 1, 5, &chart)?;
    Ok(first + CLASSES.len() as u32 + 1)
}

/// Time of all operators of a sheet with this bottleneck, which the first column of `row` names.
fn sum_of(content: &WorkbookContent, sheet: WorkbookSheet, wanted: Class, row: u32) -> CellNumber {
    let all = || rows(content, sheet);
    let last = FIRST_ROW + (all().count() as u32).max(1) - 1;
    let range = |column| {
        let [first, last] = [FIRST_ROW, last].map(|row| row_col_to_cell_absolute(row, column));
        format!("{}!{first}:{last}", sheet.name())
    };
    let of = all().filter(|row| class(row) == wanted);
    let value: f64 = of.map(|row| row.layers.value() * row.cost.time.value()).sum();
    let text = format!("SUMIF({},{},{})", range(BOUND), row_col_to_cell(row, 0), range(ALL_LAYERS));
    // An empty sum is not a negative zero.
    CellNumber::Formula(text, value + 0.0)
}

/// Writes what a reader needs to know.
fn notes(page: &mut SheetPage, content: &WorkbookContent, first: u32) -> Result<(), XlsxError> {
    let (start, number) = branches(content);
    page.text(first, 0, "Branches changed")?;
    if number == 0 {
        page.whole(first, 1, &CellNumber::Constant(0.0))?;
    } else {
        let [from, to] = [start, start + number - 1].map(|row| row_col_to_cell_absolute(row, CHANGED));
        let text = format!("SUM({}!{from}:{to})", WorkbookSheet::Plan.name());
        page.whole(first, 1, &CellNumber::Formula(text, 0.0))?;
    }
    let notes = [
        "0: every number is that of the program for these inputs and this plan. Otherwise run the program again; sheet `plan` shows which branch changed.",
        "Yellow cells of sheet `inputs` are inputs. Grey cells, and sheet `plan`, are search results: no formula makes them.",
        "Sheets `prefill` and `decode`: one row per operator. To the right of each table: every formula with its reason and citation.",
        "A change of an input does not search again: the best plan may be another one.",
    ];
    page.text(first, 2, notes[0])?;
    for (row, note) in (first + 1..).zip(&notes[1..]) {
        page.text(row, 0, note)?;
    }
    Ok(())
}
