//! Every input with its source, and whether formulas follow it.

use rust_xlsxwriter::XlsxError;

use super::WorkbookContent;
use super::cells::{FIRST_ROW, INPUT_COLUMN};
use super::page::{CellNumber, SheetPage};
use crate::quantity::count::Origin;
use crate::quantity::datum::Datum;
use crate::quantity::ledger::{Id, Op};
use crate::quantity::unit::humanize;

/// The effect of changing an input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InputUse {
    /// Every number follows, as if the program had read it so.
    Live,
    /// It repeats a figure above under another symbol, and follows it.
    Copy,
    /// One choice of the question sets it and another number.
    Joint,
    /// Formulas follow, but sizes that the program derives from it do not.
    Structure,
    /// A choice of the search or of the plan.
    SearchResult,
}

impl InputUse {
    fn text(self) -> &'static str {
        match self {
            InputUse::Live => "live: every number follows",
            InputUse::Copy => "copy: follows the same figure above",
            InputUse::Joint => "joint: one choice sets it and its neighbour; run the program again",
            InputUse::Structure => {
                "model structure: sizes derived from it do not follow; run the program again"
            }
            InputUse::SearchResult => "search result: a choice of the plan, not a formula",
        }
    }
}

/// Inputs that the percentile of the question sets, both at once.
const JOINT: [&str; 2] = ["percentile", "deviations"];

fn use_of(content: &WorkbookContent, id: Id, datum: &Datum) -> InputUse {
    match content.trace.origins.get(&id) {
        None if JOINT.contains(&&*datum.symbol) => InputUse::Joint,
        None if content.cells.repeated(id).is_some() => InputUse::Copy,
        None | Some(Origin::Workload(_)) => InputUse::Live,
        Some(Origin::Config(_) | Origin::ClassDefault(_) | Origin::Derived(_)) => InputUse::Structure,
        Some(Origin::Plan(_) | Origin::Split { .. }) => InputUse::SearchResult,
    }
}

fn datum(content: &WorkbookContent, id: Id) -> Option<std::rc::Rc<Datum>> {
    match &content.trace.entries[id as usize].op {
        Op::Input(datum) => Some(datum.clone()),
        _ => None,
    }
}

/// Writes the inputs. Formulas refer to their cells.
pub(super) fn write(page: &mut SheetPage, content: &WorkbookContent) -> Result<(), XlsxError> {
    page.title("Inputs: change a yellow value, and every number follows")?;
    page.text(
        1,
        0,
        "Values are in base units: FLOP, B, s, token, USD, J. Grey values are choices of the plan.",
    )?;
    let head = ["symbol", "value", "unit", "in words", "grade", "source", "use"];
    page.head(FIRST_ROW - 1, 0, &head)?;
    page.widths(0, &[36.0, 18.0, 12.0, 18.0, 11.0, 60.0, 40.0])?;
    for (row, id) in (FIRST_ROW..).zip(content.cells.inputs()) {
        let Some(datum) = datum(content, id) else { continue };
        let found = use_of(content, id, &datum);
        match content.cells.repeated(id).filter(|_| found == InputUse::Copy) {
            Some(first) => {
                let number = CellNumber::Formula(content.cells.text(first, page.kind), datum.value);
                page.number(row, INPUT_COLUMN, &number)?;
            }
            None => page.input(row, INPUT_COLUMN, datum.value, found == InputUse::Live)?,
        }
        let (unit, words) = (datum.unit.to_string(), humanize(datum.value, datum.unit));
        let grade = datum.source.grade.to_string();
        let texts = [&datum.symbol, "", &unit, &words, &grade, &datum.source.text, found.text()];
        for (at, text) in (0u16..).zip(texts).filter(|(at, _)| *at != INPUT_COLUMN) {
            page.text(row, at, text)?;
        }
    }
    page.sheet.set_freeze_panes(FIRST_ROW, 0)?;
    Ok(())
}
