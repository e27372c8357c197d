//! Rows of an answer: cells as texts, the columns in which they differ, filtered and in an order.

use std::cmp::Ordering;

use crate::report::number::digits;
use crate::spec::error::Error;
use crate::spec::visible::visible;

/// Columns that are shown where rows differ in them, in this order.
const SHOWN: [&str; 22] = [
    "model",
    "build",
    "plan",
    "runtime",
    "weight_format",
    "kv_format",
    "devices",
    "concurrency",
    "copies",
    "tok_s_per_user",
    "output_tok_s",
    "ttft_ms",
    "tpot_ms",
    "most_users",
    "max_context_tokens",
    "usd_per_mtok",
    "usd_per_hour",
    "buy_usd",
    "watts",
    "tok_per_joule",
    "standing",
    "chosen",
];

/// The rows of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AnswerRows {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// The order of rows: a column, and whether the largest come first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowOrder {
    pub(super) column: String,
    pub(super) falling: bool,
}

impl AnswerRows {
    /// Reads rows with a header.
    ///
    /// # Errors
    /// They are no CSV.
    pub(super) fn of_csv(bytes: &[u8]) -> Result<AnswerRows, Error> {
        let mut reader = csv::Reader::from_reader(bytes);
        let fault = |fault: csv::Error| Error::new("csv", fault.to_string(), "rows", "report this");
        let columns = reader.headers().map_err(fault)?.iter().map(str::to_owned).collect();
        let rows = reader
            .records()
            .map(|row| Ok(row.map_err(fault)?.iter().map(|cell| visible(cell).into_owned()).collect()))
            .collect::<Result<_, Error>>()?;
        Ok(AnswerRows { columns, rows })
    }

    pub(super) fn place(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|name| name == column)
    }

    /// The columns in which rows differ, of a single row those that it has: of deployments the usual ones, else all.
    pub(super) fn shown(&self) -> Vec<usize> {
        let differs = |column: &usize| {
            let first = self.rows.first().map(|row| &row[*column]);
            let filled = first.is_some_and(|cell| !cell.is_empty());
            if self.rows.len() < 2 {
                filled
            } else {
                self.rows.iter().any(|row| Some(&row[*column]) != first)
            }
        };
        let usual: Vec<usize> = SHOWN.iter().filter_map(|name| self.place(name)).collect();
        let of = if usual.len() > 1 { usual } else { (0..self.columns.len()).collect() };
        of.into_iter().filter(differs).collect()
    }

    /// The rows with a text in a cell, in an order. Numbers are ordered as such; empty cells come last.
    pub(super) fn chosen(&self, filter: &str, order: Option<&RowOrder>) -> Vec<usize> {
        let sought = filter.to_lowercase();
        let has = |row: &usize| self.rows[*row].iter().any(|cell| cell.to_lowercase().contains(&sought));
        let mut chosen: Vec<usize> = (0..self.rows.len()).filter(has).collect();
        if let Some((column, falling)) =
            order.and_then(|order| Some((self.place(&order.column)?, order.falling)))
        {
            chosen.sort_by(|one, other| {
                let [one, other] = [one, other].map(|row| self.rows[*row][column].as_str());
                compared(one, other, falling)
            });
        }
        chosen
    }
}

/// The order of two cells: empty ones last, numbers before texts.
fn compared(one: &str, other: &str, falling: bool) -> Ordering {
    let number = |cell: &str| cell.parse::<f64>().ok();
    let between = match (number(one), number(other)) {
        (Some(one), Some(other)) => one.total_cmp(&other),
        _ => one.cmp(other),
    };
    let kind = |cell: &str| (cell.is_empty(), number(cell).is_none());
    kind(one).cmp(&kind(other)).then(if falling { between.reverse() } else { between })
}

/// A cell for people.
pub(super) fn cell(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => digits(number),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(cells: &[&str]) -> AnswerRows {
        let columns = vec!["model".to_owned(), "devices".to_owned()];
        AnswerRows {
            columns,
            rows: cells.iter().map(|cell| vec!["a".to_owned(), (*cell).to_owned()]).collect(),
        }
    }

    #[test]
    fn numbers_are_ordered_as_numbers_and_empty_cells_come_last() {
        let found = rows(&["10", "", "9", "x", "100"]);
        let order = |falling| RowOrder { column: "devices".to_owned(), falling };
        assert_eq!(found.chosen("", Some(&order(false))), [2, 0, 4, 3, 1]);
        assert_eq!(found.chosen("", Some(&order(true))), [4, 0, 2, 3, 1]);
        assert_eq!(found.chosen("0", None), [0, 4]);
        // A column in which all rows are equal tells none from another.
        assert_eq!((found.shown(), rows(&["7"]).shown()), (vec![1], vec![0, 1]));
    }

    proptest! {
        #[test]
        fn an_order_leaves_no_row_out(cells in prop::collection::vec("[0-9a-c.]{0,4}", 0..30), falling in any::<bool>()) {
            let found = rows(&cells.iter().map(String::as_str).collect::<Vec<_>>());
            let mut all = found.chosen("", Some(&RowOrder { column: "devices".to_owned(), falling }));
            all.sort_unstable();
            prop_assert_eq!(all, (0..cells.len()).collect::<Vec<_>>());
        }
    }
}
