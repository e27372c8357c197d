//! One sheet, its styles and its cells. Texts are never formulas.

use rust_xlsxwriter::utility::row_col_to_cell_absolute;
use rust_xlsxwriter::{Color, Format, Formula, Worksheet, XlsxError};

use crate::report::sheet::starts_formula;
use crate::spec::visible::visible;

/// The sheets, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum WorkbookSheet {
    /// Question, plan, metrics, chart.
    Front,
    Inputs,
    Prefill,
    Decode,
    Memory,
    Communication,
    Serving,
    Cost,
    /// Choices, which no formula makes.
    Plan,
    /// Inputs that are neither from a data sheet nor from the model's configuration.
    Assumptions,
}

/// Every sheet with its name, in the order of the variants.
pub(super) const SHEETS: [(WorkbookSheet, &str); 10] = [
    (WorkbookSheet::Front, "front"),
    (WorkbookSheet::Inputs, "inputs"),
    (WorkbookSheet::Prefill, "prefill"),
    (WorkbookSheet::Decode, "decode"),
    (WorkbookSheet::Memory, "memory"),
    (WorkbookSheet::Communication, "communication"),
    (WorkbookSheet::Serving, "serving"),
    (WorkbookSheet::Cost, "cost"),
    (WorkbookSheet::Plan, "plan"),
    (WorkbookSheet::Assumptions, "assumptions"),
];

crate::rows_by_variant!(SHEETS);

impl WorkbookSheet {
    pub(super) fn name(self) -> &'static str {
        SHEETS[self as usize].1
    }
}

/// A cell of a sheet; rows and columns count from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CellAddress {
    pub(super) sheet: WorkbookSheet,
    pub(super) row: u32,
    pub(super) column: u16,
}

impl CellAddress {
    /// The reference in a formula on sheet `from`.
    pub(super) fn reference(self, from: WorkbookSheet) -> String {
        let cell = row_col_to_cell_absolute(self.row, self.column);
        if self.sheet == from { cell } else { format!("{}!{cell}", self.sheet.name()) }
    }

    /// The reference of a defined name.
    pub(super) fn target(self) -> String {
        format!("={}!{}", self.sheet.name(), row_col_to_cell_absolute(self.row, self.column))
    }
}

pub(super) struct WorkbookStyles {
    pub(super) title: Format,
    pub(super) head: Format,
    pub(super) text: Format,
    pub(super) number: Format,
    /// A number of the first sheet.
    pub(super) figure: Format,
    /// A whole number of the first sheet.
    pub(super) whole: Format,
    /// A cell that the user may change.
    pub(super) input: Format,
    /// An input that no formula follows.
    pub(super) fixed: Format,
}

impl WorkbookStyles {
    pub(super) fn new() -> WorkbookStyles {
        let number = Format::new();
        WorkbookStyles {
            title: Format::new().set_bold().set_font_size(14),
            head: Format::new().set_bold().set_indent(1).set_background_color(Color::RGB(0x00DD_E6F0)),
            text: Format::new().set_indent(1),
            whole: number.clone().set_num_format("#,##0"),
            input: number
                .clone()
                .set_font_color(Color::RGB(0x0000_3CB4))
                .set_background_color(Color::RGB(0x00FF_F8CC)),
            fixed: number.clone().set_background_color(Color::RGB(0x00E6_E6E6)),
            figure: number.clone().set_num_format("#,##0.0###"),
            number,
        }
    }
}

/// A number of a cell: a constant, or a formula with its value.
pub(super) enum CellNumber {
    Constant(f64),
    /// A formula without its equals sign, and its value.
    Formula(String, f64),
}

impl CellNumber {
    pub(super) fn value(&self) -> f64 {
        match self {
            CellNumber::Constant(value) | CellNumber::Formula(_, value) => *value,
        }
    }
}

pub(super) struct SheetPage<'a> {
    pub(super) kind: WorkbookSheet,
    pub(super) styles: &'a WorkbookStyles,
    pub(super) sheet: Worksheet,
}

/// A number with all its digits.
pub(super) fn digits(value: f64) -> String {
    let plain = value == 0.0 || (1e-5..1e15).contains(&value.abs());
    if plain { format!("{value}") } else { format!("{value:E}") }
}

const CELL_CHARS: usize = 32_000;

impl<'a> SheetPage<'a> {
    pub(super) fn new(kind: WorkbookSheet, styles: &'a WorkbookStyles) -> Result<SheetPage<'a>, XlsxError> {
        let mut sheet = Worksheet::new();
        sheet.set_name(kind.name())?;
        sheet.set_landscape().set_print_fit_to_pages(1, 0);
        Ok(SheetPage { kind, styles, sheet })
    }

    pub(super) fn finish(self) -> Worksheet {
        self.sheet
    }

    pub(super) fn text(&mut self, row: u32, column: u16, text: &str) -> Result<(), XlsxError> {
        self.styled(row, column, text, &self.styles.text.clone())
    }

    pub(super) fn title(&mut self, text: &str) -> Result<(), XlsxError> {
        self.styled(0, 0, text, &self.styles.title.clone())
    }

    pub(super) fn head(&mut self, row: u32, column: u16, names: &[&str]) -> Result<(), XlsxError> {
        for (at, name) in (column..).zip(names) {
            self.styled(row, at, name, &self.styles.head.clone())?;
        }
        Ok(())
    }

    /// Sets the widths of columns, from `column` on.
    pub(super) fn widths(&mut self, column: u16, widths: &[f64]) -> Result<(), XlsxError> {
        for (at, width) in (column..).zip(widths) {
            self.sheet.set_column_width(at, *width)?;
        }
        Ok(())
    }

    fn styled(&mut self, row: u32, column: u16, text: &str, style: &Format) -> Result<(), XlsxError> {
        let shown: String = visible(text).chars().take(CELL_CHARS).collect();
        // A text that is edited stays one.
        let style = if starts_formula(&shown) { style.clone().set_quote_prefix() } else { style.clone() };
        self.sheet.write_string_with_format(row, column, shown, &style)?;
        Ok(())
    }

    pub(super) fn input(&mut self, row: u32, column: u16, value: f64, live: bool) -> Result<(), XlsxError> {
        let style = if live { &self.styles.input } else { &self.styles.fixed };
        self.sheet.write_number_with_format(row, column, value, style)?;
        Ok(())
    }

    pub(super) fn number(&mut self, row: u32, column: u16, number: &CellNumber) -> Result<(), XlsxError> {
        let front = self.kind == WorkbookSheet::Front;
        let style = if front { &self.styles.figure } else { &self.styles.number };
        self.shown(row, column, number, style)
    }

    /// Writes a number that is whole whatever the inputs are.
    pub(super) fn whole(&mut self, row: u32, column: u16, number: &CellNumber) -> Result<(), XlsxError> {
        self.shown(row, column, number, &self.styles.whole)
    }

    fn shown(&mut self, row: u32, column: u16, number: &CellNumber, style: &Format) -> Result<(), XlsxError> {
        match number {
            CellNumber::Constant(value) => {
                self.sheet.write_number_with_format(row, column, *value, style)?;
            }
            CellNumber::Formula(text, value) => {
                let shown = if value.is_finite() { digits(*value) } else { "#NUM!".to_owned() };
                let formula = Formula::new(format!("={text}")).set_result(shown);
                self.sheet.write_formula_with_format(row, column, formula, style)?;
            }
        }
        Ok(())
    }

    /// Writes a formula whose result is a text.
    pub(super) fn choice(
        &mut self,
        row: u32,
        column: u16,
        text: &str,
        result: &str,
    ) -> Result<(), XlsxError> {
        let formula = Formula::new(format!("={text}")).set_result(result);
        self.sheet.write_formula_with_format(row, column, formula, &self.styles.text)?;
        Ok(())
    }
}
