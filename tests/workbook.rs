//! The workbook, recalculated by another engine: every cell is the ledger's number, and a changed input gives what the
//! program gives for it.

#[path = "workbook/cases.rs"]
mod cases;
#[path = "workbook/changed.rs"]
mod changed;
#[path = "workbook/doors.rs"]
mod doors;
#[path = "workbook/office.rs"]
mod office;
#[path = "workbook/random.rs"]
mod random;
#[path = "workbook/sheets.rs"]
mod sheets;

use std::collections::BTreeMap;

use ironcalc::base::Model;
use ironcalc::base::cell::CellValue;
use ironcalc::import::load_from_xlsx_bytes;
use mantile::request::workbook::workbook;
use mantile::store::catalog::Catalog;

use cases::{WorkbookCase, cases};

/// A cell: sheet, row and column, from one as the engine counts rows and columns.
type Place = (u32, i32, i32);

/// A workbook in the engine.
struct Book {
    model: Model<'static>,
}

impl Book {
    fn read(bytes: &[u8]) -> Book {
        let loaded = load_from_xlsx_bytes(bytes, "book", "en", "UTC").unwrap();
        Book { model: Model::from_workbook(loaded, "en").unwrap() }
    }

    fn of(case: &WorkbookCase, catalog: &Catalog) -> Book {
        let bytes = workbook(catalog, &case.scenario, case.plan);
        Book::read(&bytes.unwrap_or_else(|fault| panic!("{}: {fault}", case.plan)))
    }

    fn sheets(&self) -> Vec<String> {
        self.model.get_worksheets_properties().into_iter().map(|sheet| sheet.name).collect()
    }

    fn sheet(&self, name: &str) -> u32 {
        self.sheets().iter().position(|known| known == name).unwrap() as u32
    }

    fn value(&self, (sheet, row, column): Place) -> CellValue {
        self.model.get_cell_value_by_index(sheet, row, column).unwrap()
    }

    fn text(&self, place: Place) -> String {
        match self.value(place) {
            CellValue::String(text) => text,
            _ => String::new(),
        }
    }

    fn number(&self, place: Place) -> f64 {
        match self.value(place) {
            CellValue::Number(number) => number,
            other => panic!("{place:?} is {other:?}"),
        }
    }

    fn cells(&self) -> Vec<Place> {
        self.model.get_all_cells().iter().map(|cell| (cell.index, cell.row, cell.column)).collect()
    }

    fn is_formula(&self, (sheet, row, column): Place) -> bool {
        let sheet = self.model.workbook.worksheet(sheet).unwrap();
        sheet.cell(row, column).is_some_and(|cell| cell.get_formula().is_some())
    }

    fn formulas(&self) -> BTreeMap<Place, String> {
        let formula = |place: Place| {
            let text = self.model.get_cell_formula(place.0, place.1, place.2).unwrap()?;
            Some((place, text))
        };
        self.cells().into_iter().filter_map(formula).collect()
    }

    /// Rows of the inputs, by symbol and use.
    fn inputs(&self) -> Vec<(Place, String, String)> {
        let sheet = self.sheet("inputs");
        let row = |place: &Place| place.0 == sheet && place.1 > 3 && place.2 == 2;
        let found = self.cells().into_iter().filter(row).map(|place| {
            let text = |column| self.text((place.0, place.1, column));
            (place, text(1), text(7))
        });
        found.collect()
    }

    /// The cell of a defined name.
    fn named(&self, name: &str) -> Option<f64> {
        let names = self.model.get_defined_name_list();
        let (_, _, target) = names.iter().find(|(known, ..)| known == name)?;
        let place = self.model.parse_reference(&target.trim_start_matches('=').replace('$', ""))?;
        Some(self.number((place.sheet, place.row, place.column)))
    }

    /// Metrics by name, in base units.
    fn metrics(&self) -> BTreeMap<&'static str, f64> {
        let named = |name: &'static str| Some((name, self.named(name)?));
        METRICS.iter().filter_map(|name| named(name)).collect()
    }

    /// Sets a cell, and recalculates nothing.
    fn set(&mut self, (sheet, row, column): Place, value: f64) {
        self.model.update_cell_with_number(sheet, row, column, value).unwrap();
    }

    fn change(&mut self, place: Place, value: f64) {
        self.set(place, value);
        self.model.evaluate();
    }

    /// Recalculates; the cells whose value is another one now.
    fn recalculated(&mut self) -> Vec<String> {
        let computed: Vec<Place> = self.cells().into_iter().filter(|place| self.is_formula(*place)).collect();
        let recorded: Vec<CellValue> = computed.iter().map(|place| self.value(*place)).collect();
        self.model.evaluate();
        let differs = |(place, recorded): (&Place, CellValue)| {
            let now = self.value(*place);
            let formula =
                || self.model.get_cell_formula(place.0, place.1, place.2).unwrap().unwrap_or_default();
            let text = || format!("{place:?} {}: {recorded:?}, recalculated {now:?}", formula());
            (!alike(&recorded, &now)).then(text)
        };
        let mut faults: Vec<String> = computed.iter().zip(recorded).filter_map(differs).collect();
        faults.extend((computed.len() < 150).then(|| format!("only {} formulas", computed.len())));
        faults.extend((self.branches_changed() > 0.0).then(|| "a branch changed".to_owned()));
        faults
    }

    /// Branches that were decided otherwise.
    fn branches_changed(&self) -> f64 {
        let sheet = self.sheet("plan");
        let heads: Vec<Place> = self.cells().into_iter().filter(|place| place.0 == sheet).collect();
        let Some(head) = heads.iter().find(|place| self.text(**place).starts_with("changed")) else {
            return 0.0;
        };
        let below = heads.iter().filter(|place| place.2 == head.2 && place.1 > head.1);
        below.map(|place| self.number(*place)).sum()
    }
}

/// Names of metrics in base units.
const METRICS: [&str; 12] = [
    "ttft",
    "tpot",
    "e2e",
    "output_tok_s",
    "requests_per_s",
    "usd_per_second",
    "usd_per_token",
    "watts",
    "max_context",
    "concurrency",
    "decode.memory",
    "prefill",
];

/// Relative difference that rounding explains.
const ROUNDING: f64 = 1e-9;

fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= ROUNDING * a.abs().max(b.abs())
}

fn alike(a: &CellValue, b: &CellValue) -> bool {
    match (a, b) {
        (CellValue::Number(a), CellValue::Number(b)) => same(*a, *b),
        (a, b) => a == b,
    }
}

/// Every formula of every case, recalculated, has the value that the ledger recorded.
#[test]
fn every_cell_recalculates_to_the_number_of_the_ledger() {
    let catalog = Catalog::default();
    for case in cases() {
        let mut book = Book::of(&case, &catalog);
        let faults = book.recalculated();
        assert!(faults.is_empty(), "{}: {faults:#?}", case.plan);
    }
}
