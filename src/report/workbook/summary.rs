//! Tables of metrics and of memory, the block of formulas of each sheet, and the names that a user's formulas may use.

use rust_xlsxwriter::XlsxError;

use super::cells::{FIRST_ROW, FORMULA_COLUMN, FORMULA_VALUE};
use super::page::{CellNumber, SheetPage};
use super::{WorkbookContent, front};
use crate::quantity::ledger::Traced;
use crate::quantity::num::Qty;
use crate::quantity::unit::GIB;
use crate::spec::objective::{METRICS, MetricEntry, MetricFormat, MetricInput};

pub(super) type MetricCell<'l> = (&'static MetricEntry, Qty<Traced<'l>>);

pub(super) fn metrics<'l>(content: &WorkbookContent<'_, 'l>) -> Vec<MetricCell<'l>> {
    let known =
        |entry: &'static MetricEntry| Some((entry, content.trace.evaluation.metrics.get(entry.metric)?));
    METRICS.iter().filter_map(known).collect()
}

/// A metric in the unit of its column.
pub(super) fn in_column(
    content: &WorkbookContent,
    page: &SheetPage,
    (entry, number): MetricCell,
) -> CellNumber {
    let base = content.cells.traced(number.0, page.kind);
    let value = entry.in_column(base.value());
    let CellNumber::Formula(text, _) = base else { return CellNumber::Constant(value) };
    let text = match entry.format {
        MetricFormat::Tokens => format!("INT({text})"),
        MetricFormat::Time | MetricFormat::Number | MetricFormat::Count if entry.scale == 1.0 => text,
        MetricFormat::Time | MetricFormat::Number | MetricFormat::Count => {
            format!("{text}*{}", super::expression::constant(1.0 / entry.scale))
        }
    };
    CellNumber::Formula(text, value)
}

/// The name of a metric in base units: the symbol of its formula.
fn symbol(entry: &MetricEntry) -> &'static str {
    entry.formula.unwrap_or(entry.name)
}

fn table(
    page: &mut SheetPage,
    content: &WorkbookContent,
    shown: impl Fn(&MetricEntry) -> bool,
) -> Result<(), XlsxError> {
    page.head(FIRST_ROW - 1, 0, &["name", "value", "unit", "definition"])?;
    page.widths(0, &[28.0, 16.0, 12.0, 80.0])?;
    let all = metrics(content).into_iter().filter(|(entry, _)| shown(entry));
    for (row, (entry, number)) in (FIRST_ROW..).zip(all) {
        let id = number.0.id();
        let unit = id.map(|id| content.trace.entries[id as usize].unit.to_string()).unwrap_or_default();
        page.text(row, 0, symbol(entry))?;
        page.number(row, 1, &content.cells.traced(number.0, page.kind))?;
        page.text(row, 2, &unit)?;
        page.text(row, 3, entry.meaning)?;
    }
    page.sheet.set_freeze_panes(FIRST_ROW, 0)?;
    Ok(())
}

pub(super) fn serving(page: &mut SheetPage, content: &WorkbookContent) -> Result<(), XlsxError> {
    page.title("Serving metrics, in base units")?;
    table(page, content, |entry| entry.needs == MetricInput::Nothing)
}

pub(super) fn cost(page: &mut SheetPage, content: &WorkbookContent) -> Result<(), XlsxError> {
    page.title("Cost and power, in base units")?;
    table(page, content, |entry| entry.needs != MetricInput::Nothing)
}

pub(super) fn memory(page: &mut SheetPage, content: &WorkbookContent) -> Result<(), XlsxError> {
    page.title("Memory of the fullest device of the first decode pool")?;
    page.head(FIRST_ROW - 1, 0, &["name", "bytes", "GiB"])?;
    page.widths(0, &[28.0, 18.0, 14.0])?;
    let held = &content.trace.evaluation.memory;
    let parts = [
        ("weights", Some(held.weights)),
        ("KV cache and states", Some(held.kv)),
        ("states", held.state),
        ("activations", Some(held.activations)),
        ("buffers of the runtime", Some(held.buffers)),
        ("total", Some(held.total)),
        ("usable", Some(held.usable)),
        ("in host memory", content.trace.evaluation.spilled),
    ];
    let parts = parts.into_iter().filter_map(|(name, bytes)| Some((name, bytes?)));
    for (row, (name, bytes)) in (FIRST_ROW..).zip(parts) {
        page.text(row, 0, name)?;
        page.number(row, 1, &content.cells.traced(bytes.0, page.kind))?;
        let cell = rust_xlsxwriter::utility::row_col_to_cell(row, 1);
        page.number(row, 2, &CellNumber::Formula(format!("{cell}/{}", GIB), bytes.value() / GIB))?;
    }
    page.sheet.set_freeze_panes(FIRST_ROW, 0)?;
    Ok(())
}

/// Names and their cells: metrics in base units by the symbol of their formula, and in the unit of reports by their
/// column; the steps and the memory by their paths.
pub(super) fn names(content: &WorkbookContent) -> Vec<(String, String)> {
    let evaluation = &content.trace.evaluation;
    let of_table = metrics(content).into_iter().map(|(entry, number)| (symbol(entry), number));
    let paths = [
        ("concurrency", evaluation.metrics.in_flight),
        ("prefill", evaluation.prefill.total),
        ("decode", evaluation.decode.total),
        ("decode.memory", evaluation.memory.total),
        ("usable_memory", evaluation.memory.usable),
    ];
    let mut names: Vec<(String, String)> = Vec::new();
    for (name, number) in of_table.chain(paths) {
        if let Some(address) = number.0.id().and_then(|id| content.cells.address(id)) {
            names.push((name.to_owned(), address.target()));
        }
    }
    for (row, (entry, _)) in metrics(content).into_iter().enumerate() {
        if !names.iter().any(|(known, _)| known == entry.column) {
            names.push((entry.column.to_owned(), front::metric(row as u32).target()));
        }
    }
    names
}

const FORMULA_HEAD: [&str; 7] = ["path", "symbol", "formula", "value", "unit", "reason", "citation"];
const FORMULA_WIDTHS: [f64; 7] = [34.0, 24.0, 60.0, 16.0, 12.0, 60.0, 60.0];

/// Writes the block, if the sheet has numbers.
pub(super) fn formulas(page: &mut SheetPage, content: &WorkbookContent) -> Result<(), XlsxError> {
    let block = content.cells.block(page.kind);
    if block.is_empty() {
        return Ok(());
    }
    page.head(FIRST_ROW - 1, FORMULA_COLUMN, &FORMULA_HEAD)?;
    page.widths(FORMULA_COLUMN, &FORMULA_WIDTHS)?;
    for (row, &id) in (FIRST_ROW..).zip(block) {
        let entry = &content.trace.entries[id as usize];
        let of = entry.formula.map_or(["", "", ""], |formula| [formula.symbol, formula.why, formula.cite]);
        let text = content.trace.ledger.formula_text(id);
        let unit = entry.unit.to_string();
        let texts =
            [(0, &*entry.path), (1, of[0]), (2, &text), (FORMULA_VALUE + 1, &unit), (5, of[1]), (6, of[2])];
        for (at, text) in texts {
            page.text(row, FORMULA_COLUMN + at, text)?;
        }
        let number = CellNumber::Formula(content.cells.formula(id, page.kind), entry.value);
        page.number(row, FORMULA_COLUMN + FORMULA_VALUE, &number)?;
    }
    Ok(())
}
