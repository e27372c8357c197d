//! Results of the search, which no formula makes: the plan, and the ways that formulas took.

use rust_xlsxwriter::XlsxError;

use super::WorkbookContent;
use super::page::{CellNumber, SheetPage};
use crate::report::text::head::pools;
use crate::spec::degree::Degree;

const POOLS: [&str; 13] = [
    "role",
    "degrees",
    "TP",
    "PP",
    "DP",
    "CP",
    "DCP",
    "EP",
    "expert TP",
    "stages",
    "replicas",
    "devices",
    "concurrency of each",
];
const BRANCHES: [&str; 6] =
    ["branch at", "left", "right", "left, now", "right, now", "changed (1: run the program again)"];

/// First row of the table of branches, and the number of its rows.
pub(super) fn branches(content: &WorkbookContent) -> (u32, u32) {
    (7 + pools(content.deployment).len() as u32, content.trace.comparisons.len() as u32)
}

pub(super) const CHANGED: u16 = 5;

pub(super) fn write(page: &mut SheetPage, content: &WorkbookContent) -> Result<(), XlsxError> {
    page.title("Search results: choices, not formulas")?;
    page.text(
        1,
        0,
        "Formulas hold for this plan. Another input may make another plan better: run the program again to search.",
    )?;
    page.head(3, 0, &POOLS)?;
    page.widths(0, &[34.0, 34.0, 34.0, 16.0, 16.0, 16.0])?;
    let found = pools(content.deployment);
    for (row, pool) in (4..).zip(&found) {
        page.text(row, 0, pool.role.name())?;
        page.text(row, 1, &pool.label)?;
        let degrees = Degree::stated().take_while(|degree| *degree != Degree::FfnTp);
        let degrees = (2..).zip(degrees.map(|degree| pool.plan.degree(degree)));
        let counts = [(10, pool.replicas), (11, pool.devices), (12, pool.concurrency_per_replica)];
        for (column, count) in degrees.chain(counts) {
            page.number(row, column, &CellNumber::Constant(count as f64))?;
        }
        let stages: Vec<String> = pool.stages.iter().map(u32::to_string).collect();
        page.text(row, 9, &stages.join(","))?;
    }
    let (first, _) = branches(content);
    page.head(first - 1, 0, &BRANCHES)?;
    for (row, one) in (first..).zip(&content.trace.comparisons) {
        branch(page, content, row, one)?;
    }
    Ok(())
}

/// Writes a comparison that decided which way a formula took.
fn branch(
    page: &mut SheetPage,
    content: &WorkbookContent,
    row: u32,
    one: &crate::quantity::ledger::BranchComparison,
) -> Result<(), XlsxError> {
    let path = if one.path.is_empty() { "deployment" } else { &*one.path };
    page.text(row, 0, path)?;
    let mut sides = Vec::new();
    for (at, id) in [(0, one.left), (1, one.right)] {
        page.text(row, 1 + at, &content.trace.ledger.formula_text(id))?;
        let text = content.cells.text(id, page.kind);
        page.number(
            row,
            3 + at,
            &CellNumber::Formula(text.clone(), content.trace.entries[id as usize].value),
        )?;
        sides.push(text);
    }
    let [holds, broken] = if one.exceeds { [0, 1] } else { [1, 0] };
    let text = format!("IF({}>{},{holds},{broken})", sides[0], sides[1]);
    page.number(row, CHANGED, &CellNumber::Formula(text, 0.0))
}
