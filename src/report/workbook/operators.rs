//! The table of a phase: a row for each operator of a layer. Collectives have a table of their own as well.

use rust_xlsxwriter::XlsxError;
use rust_xlsxwriter::utility::row_col_to_cell;

use super::WorkbookContent;
use super::cells::FIRST_ROW;
use super::page::{CellNumber, SheetPage, WorkbookSheet};
use super::trace::{OperatorRow, RowKind};
use crate::plan::parallel::Phase;
use crate::quantity::num::Num;
use crate::report::breakdown::Class;

/// Head of the table. Times and bytes are of one layer on one device.
const HEAD: [&str; 12] = [
    "operator",
    "layers",
    "FLOPs",
    "bytes",
    "wire B",
    "compute s",
    "memory s",
    "time s",
    "bound",
    "SOL s",
    "all layers s",
    "SOL / time",
];
/// Columns of the table that others refer to.
const LAYERS: u16 = 1;
const COMPUTE: u16 = 5;
const MEMORY: u16 = 6;
const TIME: u16 = 7;
pub(super) const BOUND: u16 = 8;
const SOL: u16 = 9;
pub(super) const ALL_LAYERS: u16 = 10;

pub(super) fn rows<'a, 'l>(
    content: &WorkbookContent<'a, 'l>,
    sheet: WorkbookSheet,
) -> impl Iterator<Item = &'a OperatorRow<'l>> {
    content.trace.operators.iter().filter(move |row| match sheet {
        WorkbookSheet::Prefill => row.phase == Phase::Prefill,
        WorkbookSheet::Decode => row.phase == Phase::Decode,
        _ => row.kind == RowKind::Collective,
    })
}

pub(super) fn class(row: &OperatorRow) -> Class {
    match row.kind {
        RowKind::Collective => Class::Communication,
        RowKind::Wait => Class::Overhead,
        RowKind::Kernel if row.cost.compute_time.value() > row.cost.memory_time.value() => Class::Compute,
        RowKind::Kernel => Class::Memory,
    }
}

pub(super) fn write(page: &mut SheetPage, content: &WorkbookContent) -> Result<(), XlsxError> {
    page.title(match page.kind {
        WorkbookSheet::Prefill => "Prefill: one prompt of each attention rank",
        WorkbookSheet::Decode => "Decode: one step",
        _ => "Communication: collectives of both phases, and transfers",
    })?;
    page.text(1, 0, "Each row is one operator of one layer on one device; formulas are to the right.")?;
    page.head(FIRST_ROW - 1, 0, &HEAD)?;
    page.widths(0, &[44.0, 9.0, 13.0, 13.0, 13.0, 13.0, 13.0, 13.0, 15.0, 13.0, 13.0, 11.0])?;
    for (at, row) in (FIRST_ROW..).zip(rows(content, page.kind)) {
        line(page, content, at, row)?;
    }
    page.sheet.set_freeze_panes(FIRST_ROW, 1)?;
    Ok(())
}

fn line(
    page: &mut SheetPage,
    content: &WorkbookContent,
    at: u32,
    row: &OperatorRow,
) -> Result<(), XlsxError> {
    let cost = &row.cost;
    page.text(at, 0, &row.path)?;
    let kernel = row.kind == RowKind::Kernel;
    let numbers = [
        (LAYERS, true, row.layers),
        (2, kernel, cost.flops.0),
        (3, kernel, cost.bytes.0),
        (4, row.kind == RowKind::Collective, cost.wire.0),
        (COMPUTE, kernel, cost.compute_time.0),
        (MEMORY, kernel, cost.memory_time.0),
        (TIME, true, cost.time.0),
        (SOL, row.kind != RowKind::Wait, cost.roofline_time.0),
    ];
    for (column, _, number) in numbers.into_iter().filter(|(_, shown, _)| *shown) {
        page.number(at, column, &content.cells.traced(number, page.kind))?;
    }
    let cell = |column| row_col_to_cell(at, column);
    let bound = class(row).name();
    if kernel {
        let [slow, fast] = [Class::Compute, Class::Memory].map(Class::name);
        let text = format!("IF({}>{},\"{slow}\",\"{fast}\")", cell(COMPUTE), cell(MEMORY));
        page.choice(at, BOUND, &text, bound)?;
    } else {
        page.text(at, BOUND, bound)?;
    }
    let (time, layers, sol) = (cost.time.value(), row.layers.value(), cost.roofline_time.value());
    let all = CellNumber::Formula(format!("{}*{}", cell(LAYERS), cell(TIME)), layers * time);
    page.number(at, ALL_LAYERS, &all)?;
    if row.kind != RowKind::Wait {
        let share = if time > 0.0 { sol / time } else { 0.0 };
        let text = format!("IF({0}>0,{1}/{0},0)", cell(TIME), cell(SOL));
        page.number(at, ALL_LAYERS + 1, &CellNumber::Formula(text, share))?;
    }
    Ok(())
}
