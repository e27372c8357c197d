//! The audit as a sheet: assumptions by their effect, overrides, and what the model leaves out.

use rust_xlsxwriter::XlsxError;

use super::WorkbookContent;
use super::cells::FIRST_ROW;
use super::page::{CellNumber, SheetPage};
use crate::report::audit::{AuditedInput, ORDERING};

/// Columns before those of the metrics.
const COLUMNS: [&str; 5] = ["symbol", "value", "grade", "source", "enters"];

/// Writes the sheet. Effects are results of a second evaluation, so no formulas.
pub(super) fn write(page: &mut SheetPage, content: &WorkbookContent) -> Result<(), XlsxError> {
    let audit = content.audit;
    page.title("Assumptions: inputs that are neither from a data sheet nor from the model's configuration")?;
    page.text(
        1,
        0,
        &format!(
            "Effects: relative change of a metric where the input is 10 % larger, at the same plan; computed by the \
             program, not by formulas. Weakest source: {}.",
            audit.grade
        ),
    )?;
    let metrics = ORDERING.map(|metric| metric.entry().name);
    page.head(FIRST_ROW - 1, 0, &COLUMNS)?;
    page.head(FIRST_ROW - 1, COLUMNS.len() as u16, &metrics)?;
    page.widths(0, &[36.0, 18.0, 11.0, 90.0, 24.0, 12.0, 12.0, 14.0, 14.0])?;
    let mut row = FIRST_ROW;
    for input in &audit.assumptions {
        write_input(page, row, input)?;
        row += 1;
    }
    row = table(
        page,
        row + 1,
        ("override", "effect"),
        audit.overrides.iter().map(|one| {
            let effects = one.effects.iter().map(|effect| {
                let without = effect.without.map_or("does not run".to_owned(), |value| value.to_string());
                format!("{} {without} -> {}", effect.column, effect.with)
            });
            (one.set.as_str(), effects.collect::<Vec<_>>().join(", "))
        }),
    )?;
    table(
        page,
        row,
        ("left out of the model", "reason"),
        audit.left_out.iter().map(|one| (one.part.as_str(), one.why.clone())),
    )?;
    page.sheet.set_freeze_panes(FIRST_ROW, 0)?;
    Ok(())
}

fn write_input(page: &mut SheetPage, row: u32, input: &AuditedInput) -> Result<(), XlsxError> {
    let grade = input.grade.to_string();
    let texts = [&*input.symbol, &input.value, &grade, &input.source, &input.enters];
    for (at, text) in (0u16..).zip(texts) {
        page.text(row, at, text)?;
    }
    for (at, metric) in (COLUMNS.len() as u16..).zip(ORDERING) {
        let change = input.on(metric).map_or(0.0, |effect| effect.at_10_percent_more);
        page.number(row, at, &CellNumber::Constant(change))?;
    }
    Ok(())
}

/// Writes a table of names and reasons below the others; an empty one is left out. The first free row after it.
fn table<'a>(
    page: &mut SheetPage,
    row: u32,
    (name, reason): (&str, &str),
    lines: impl Iterator<Item = (&'a str, String)>,
) -> Result<u32, XlsxError> {
    let mut next = row + 1;
    for (one, why) in lines {
        page.text(next, 0, one)?;
        page.text(next, REASON, &why)?;
        next += 1;
    }
    if next == row + 1 {
        return Ok(row);
    }
    page.head(row, 0, &[name])?;
    page.head(row, REASON, &[reason])?;
    Ok(next + 1)
}

const REASON: u16 = 3;
