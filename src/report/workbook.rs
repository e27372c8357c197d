//! A deployment as a spreadsheet: every number is a live formula over cells, down to inputs that can be changed.
//!
//! The workbook is one more reading of the ledger. A named number has a row on the sheet of its phase or subject; a
//! number without a name is written out in the formula that uses it.

mod assumptions;
mod cells;
mod expression;
mod front;
mod inputs;
mod operators;
mod page;
mod plan;
mod summary;
mod trace;

use rust_xlsxwriter::{DocProperties, ExcelDateTime, Workbook, XlsxError};

use self::cells::WorkbookCells;
use self::page::{SHEETS, SheetPage, WorkbookSheet, WorkbookStyles};
use self::trace::WorkbookTrace;
use super::audit::{AuditSection, AuditedOverride, section};
use super::inputs::ReportInputs;
use super::reporter::Reporter;
use super::result::ReportedDeployment;
use crate::quantity::ledger::Ledger;
use crate::search::candidate::Candidate;
use crate::search::problem::Problem;

/// All that the sheets are written from.
struct WorkbookContent<'a, 'l> {
    question: &'a ReportInputs,
    deployment: &'a ReportedDeployment,
    trace: &'a WorkbookTrace<'l>,
    cells: &'a WorkbookCells<'a>,
    audit: &'a AuditSection,
}

/// The workbook of a candidate that no rule forbids, as the bytes of an `.xlsx` file. The same candidate gives the same
/// bytes.
pub fn workbook(
    problem: &Problem,
    question: &ReportInputs,
    candidate: &Candidate,
    overrides: Vec<AuditedOverride>,
) -> Result<Vec<u8>, XlsxError> {
    let ledger = Ledger::new();
    let trace = WorkbookTrace::of(&ledger, problem, candidate);
    let cells = WorkbookCells::of(&trace);
    let reporter = Reporter::new(problem);
    let deployment = reporter.deployment(candidate);
    let audit = AuditSection { overrides, ..section(&reporter, candidate) };
    let content =
        WorkbookContent { question, deployment: &deployment, trace: &trace, cells: &cells, audit: &audit };
    let styles = WorkbookStyles::new();
    let mut book = Workbook::new();
    // A fixed date: a workbook has no other contents than its numbers.
    book.set_properties(&DocProperties::new().set_creation_datetime(&ExcelDateTime::from_ymd(2000, 1, 1)?));
    for (kind, _) in SHEETS {
        let mut page = SheetPage::new(kind, &styles)?;
        match kind {
            WorkbookSheet::Front => front::write(&mut page, &content)?,
            WorkbookSheet::Inputs => inputs::write(&mut page, &content)?,
            WorkbookSheet::Prefill | WorkbookSheet::Decode | WorkbookSheet::Communication => {
                operators::write(&mut page, &content)?;
            }
            WorkbookSheet::Memory => summary::memory(&mut page, &content)?,
            WorkbookSheet::Serving => summary::serving(&mut page, &content)?,
            WorkbookSheet::Cost => summary::cost(&mut page, &content)?,
            WorkbookSheet::Plan => plan::write(&mut page, &content)?,
            WorkbookSheet::Assumptions => assumptions::write(&mut page, &content)?,
        }
        summary::formulas(&mut page, &content)?;
        book.push_worksheet(page.finish());
    }
    for (name, target) in summary::names(&content) {
        book.define_name(name, &target)?;
    }
    book.save_to_buffer()
}
