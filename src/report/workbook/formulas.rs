//! The block of formulas of a sheet: a row for each named number.

use rust_xlsxwriter::XlsxError;

use super::WorkbookContent;
use super::cells::{FIRST_ROW, FORMULA_COLUMN, FORMULA_VALUE};
use super::page::{CellNumber, SheetPage};

const HEAD: [&str; 7] = ["path", "symbol", "formula", "value", "unit", "reason", "citation"];
const WIDTHS: [f64; 7] = [34.0, 24.0, 60.0, 16.0, 12.0, 60.0, 60.0];

/// Writes the block, if the sheet has numbers.
pub(super) fn write(page: &mut SheetPage, content: &WorkbookContent) -> Result<(), XlsxError> {
    let block = content.cells.block(page.kind);
    if block.is_empty() {
        return Ok(());
    }
    page.head(FIRST_ROW - 1, FORMULA_COLUMN, &HEAD)?;
    page.widths(FORMULA_COLUMN, &WIDTHS)?;
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
