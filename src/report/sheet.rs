//! CSV that is safe in spreadsheets: no cell is a formula or contains terminal control characters.

use std::borrow::Borrow;

use crate::spec::visible::visible;

/// First characters that make a spreadsheet compute a cell; some also accept the wide forms.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// A cell as it is written: visible, and a text that a spreadsheet would compute behind an apostrophe. Numbers stay
/// numbers, negative ones too.
pub fn cell(text: &str) -> String {
    let shown = visible(text);
    let computed = starts_formula(&shown);
    let number = || shown.parse::<f64>().is_ok_and(f64::is_finite);
    if computed && !number() { format!("'{shown}") } else { shown.into_owned() }
}

/// Whether a spreadsheet would compute the text, if it were typed.
pub fn starts_formula(text: &str) -> bool {
    let begun = text.trim_start();
    begun.starts_with(FORMULA) && begun.chars().nth(1).is_some()
}

/// A column of rows of one type: its name, and the function of its cell.
pub type CsvColumn<T> = (&'static str, fn(&T) -> String);

/// Rows under the names of their columns, a line each.
pub fn table<T>(columns: &[CsvColumn<T>], rows: impl IntoIterator<Item: Borrow<T>>) -> String {
    let cells = |row: &T| columns.iter().map(|(_, cell)| cell(row)).collect();
    csv(columns.iter().map(|(name, _)| *name), rows.into_iter().map(|row| cells(row.borrow())))
}

/// A value, or an empty cell where it is unknown.
pub fn known<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Rows under a header, a line each.
pub fn csv<'a>(
    header: impl IntoIterator<Item = &'a str>,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    lines(std::iter::once(header.into_iter().map(str::to_owned).collect()).chain(rows))
}

/// Rows without a header, a line each.
pub fn lines(rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    for row in rows {
        writer.write_record(row.iter().map(|text| cell(text))).expect("a vector takes every record");
    }
    let bytes = writer.into_inner().expect("a vector is flushed");
    String::from_utf8(bytes).expect("every cell is text")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::spec::visible::acts;

    /// Texts that begin as formulas do, more often than chance would have it.
    fn hostile() -> impl Strategy<Value = String> {
        prop_oneof![
            "[ \t\r\n]{0,2}[=+@\\-\u{ff1d}\u{ff0b}].{0,12}",
            any::<String>(),
            "-?[0-9]{1,4}(\\.[0-9]{1,3})?"
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_cell_is_computed_and_every_number_is_one(texts in prop::collection::vec(hostile(), 1..5)) {
            let written = csv(["a"], [texts.clone()]);
            let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(written.as_bytes());
            let row = reader.records().next().unwrap().unwrap();
            prop_assert_eq!(row.len(), texts.len());
            for (cell, text) in row.iter().zip(&texts) {
                prop_assert!(!cell.chars().any(acts), "{}", cell);
                let number = text.parse::<f64>().is_ok_and(f64::is_finite);
                if number {
                    prop_assert_eq!(cell, text);
                } else if cell.trim_start().chars().count() > 1 {
                    prop_assert!(!cell.trim_start().starts_with(FORMULA), "{}", cell);
                }
            }
        }
    }

    #[test]
    fn formulas_are_texts_and_negative_numbers_are_numbers() {
        for (text, shown) in [
            ("=1+1", "'=1+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "\\t=1"),
            ("-2.5e-3", "-2.5e-3"),
            ("-", "-"),
            ("-1 B", "'-1 B"),
            ("a=b", "a=b"),
            ("x\u{202e}y\n", "x\\u{202e}y\\n"),
        ] {
            assert_eq!(cell(text), shown);
        }
    }
}
