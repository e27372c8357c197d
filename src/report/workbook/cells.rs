//! Which numbers have a cell, and where.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::page::{CellAddress, WorkbookSheet};
use super::trace::WorkbookTrace;
use crate::quantity::datum::{Datum, Grade};
use crate::quantity::ledger::{Id, LedgerEntry, Op};
use crate::quantity::unit::{BYTE, SECOND};

/// Where a number is written.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum CellKind {
    /// Nowhere: no shown number depends on it.
    Unused,
    /// In the formula that uses it.
    Inline,
    At(CellAddress),
}

pub(super) struct WorkbookCells<'a> {
    pub(super) entries: &'a [LedgerEntry],
    kinds: Vec<CellKind>,
    rows: BTreeMap<WorkbookSheet, Vec<Id>>,
}

/// First column of a block of formulas, to the right of a table.
pub(super) const FORMULA_COLUMN: u16 = 13;
/// Place of the value in a block of formulas.
pub(super) const FORMULA_VALUE: u16 = 3;
pub(super) const INPUT_COLUMN: u16 = 1;
/// First row below the title and the head of a table.
pub(super) const FIRST_ROW: u32 = 3;

/// Most operators in one formula: far below the 8,192 characters and 64 levels that a spreadsheet reads.
const FORMULA_OPERATORS: u32 = 40;

/// Scopes of each sheet, in order of precedence.
const SCOPES: [(WorkbookSheet, &[&str]); 6] = [
    (WorkbookSheet::Inputs, &["constants", "workload"]),
    (WorkbookSheet::Communication, &["handover", "kv_transfer"]),
    (WorkbookSheet::Memory, &["memory", "host_memory", "max_context"]),
    (
        WorkbookSheet::Cost,
        &[
            "usd_per_hour",
            "usd_per_day",
            "usd_per_month",
            "usd_per_mtok",
            "usd_per_mtok_total",
            "tok_per_usd",
            "watts",
            "facility_watts",
            "tok_per_joule",
        ],
    ),
    (WorkbookSheet::Prefill, &["prefill"]),
    (WorkbookSheet::Decode, &["decode"]),
];

/// The sheet of numbers of this scope.
fn sheet_of(path: &Rc<str>, collectives: &BTreeSet<Rc<str>>) -> WorkbookSheet {
    if collectives.contains(path) {
        return WorkbookSheet::Communication;
    }
    let has = |names: &[&str]| path.split('/').any(|scope| names.contains(&scope));
    SCOPES.iter().find(|(_, names)| has(names)).map_or(WorkbookSheet::Serving, |(sheet, _)| *sheet)
}

/// How often shown numbers use each entry, directly or not.
fn uses(entries: &[LedgerEntry], roots: &[Id]) -> Vec<u32> {
    let mut uses = vec![0u32; entries.len()];
    for root in roots {
        uses[*root as usize] += 1;
    }
    // An entry refers only to earlier ones.
    for at in (0..entries.len()).rev() {
        if uses[at] > 0 {
            for operand in entries[at].op.operands() {
                uses[operand as usize] += 1;
            }
        }
    }
    uses
}

/// Whether each entry has a cell of its own.
fn own_cells(entries: &[LedgerEntry], uses: &[u32]) -> Vec<bool> {
    let mut own = vec![false; entries.len()];
    let mut size = vec![0u32; entries.len()];
    for (at, entry) in entries.iter().enumerate() {
        if matches!(entry.op, Op::Literal) {
            continue;
        }
        let operands = entry.op.operands();
        let inline: u32 = operands.iter().map(|&id| size[id as usize]).sum();
        size[at] = 1 + inline;
        let named = entry.formula.is_some() || matches!(entry.op, Op::Input(_));
        own[at] = named || uses[at] > 1 || size[at] > FORMULA_OPERATORS;
        if own[at] {
            size[at] = 0;
        }
    }
    own
}

/// Whether two inputs are one size or bandwidth of a file. Fitted constants of one source may be equal by chance.
fn is_one_figure(one: &Datum, other: &Datum) -> bool {
    let sized = [BYTE, BYTE.per(SECOND)].contains(&one.unit) && one.value != 0.0;
    let read = matches!(one.source.grade, Grade::Stated | Grade::Read | Grade::Datasheet);
    sized && read && one.value == other.value && one.unit == other.unit && one.source == other.source
}

impl<'a> WorkbookCells<'a> {
    pub(super) fn of(trace: &'a WorkbookTrace) -> WorkbookCells<'a> {
        let entries = &trace.entries[..];
        let uses = uses(entries, &trace.roots());
        let own = own_cells(entries, &uses);
        let collectives = trace.collectives();
        let mut cells =
            WorkbookCells { entries, kinds: vec![CellKind::Unused; entries.len()], rows: BTreeMap::new() };
        let mut inputs = 0;
        for (at, entry) in entries.iter().enumerate().filter(|(at, _)| uses[*at] > 0) {
            cells.kinds[at] = match entry.op {
                Op::Input(_) => {
                    inputs += 1;
                    let row = FIRST_ROW + inputs - 1;
                    CellKind::At(CellAddress { sheet: WorkbookSheet::Inputs, row, column: INPUT_COLUMN })
                }
                _ if own[at] => cells.place(at as Id, sheet_of(&entry.path, &collectives)),
                _ => CellKind::Inline,
            };
        }
        cells
    }

    fn place(&mut self, id: Id, sheet: WorkbookSheet) -> CellKind {
        let rows = self.rows.entry(sheet).or_default();
        rows.push(id);
        let row = FIRST_ROW + rows.len() as u32 - 1;
        CellKind::At(CellAddress { sheet, row, column: FORMULA_COLUMN + FORMULA_VALUE })
    }

    pub(super) fn kind(&self, id: Id) -> CellKind {
        self.kinds[id as usize]
    }

    /// The cell of an entry, if it has one.
    pub(super) fn address(&self, id: Id) -> Option<CellAddress> {
        match self.kind(id) {
            CellKind::At(address) => Some(address),
            CellKind::Unused | CellKind::Inline => None,
        }
    }

    /// Numbers of the block of formulas of a sheet.
    pub(super) fn block(&self, sheet: WorkbookSheet) -> &[Id] {
        self.rows.get(&sheet).map_or(&[], Vec::as_slice)
    }

    /// The input that another one repeats under its own symbol, if it does: one figure of a file then sets both.
    pub(super) fn repeated(&self, id: Id) -> Option<Id> {
        let Op::Input(datum) = &self.entries[id as usize].op else { return None };
        let same = |other: &Id| {
            let Op::Input(other) = &self.entries[*other as usize].op else { return false };
            is_one_figure(datum, other)
        };
        self.inputs().take_while(|other| *other < id).find(same)
    }

    /// Every input, in the order of its cells.
    pub(super) fn inputs(&self) -> impl Iterator<Item = Id> {
        let used = self.kinds.iter().enumerate().filter(|(_, kind)| **kind != CellKind::Unused);
        used.map(|(at, _)| at as Id).filter(|id| matches!(self.entries[*id as usize].op, Op::Input(_)))
    }
}
