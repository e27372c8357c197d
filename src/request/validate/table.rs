//! Tables of measurements.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::error::Error;
use crate::spec::limits::ROWS;
use crate::validate::measured::{MeasuredRow, Record};

/// A table of measurements in CSV.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasuredTable {
    /// Name in errors, such as that of its file.
    pub name: String,
    /// Header and rows.
    pub csv: String,
}

/// The rows of all tables.
///
/// # Errors
/// A row is not a measurement; the fault names table and row.
pub fn all_rows(tables: &[MeasuredTable]) -> Result<Vec<MeasuredRow>, Error> {
    let mut measured = Vec::new();
    for table in tables {
        measured.extend(rows(&table.csv).map_err(|fault| fault.in_file(&table.name))?);
    }
    Ok(measured)
}

/// The rows of a table.
///
/// # Errors
/// A row is not a measurement; the fault names the row.
pub fn rows(text: &str) -> Result<Vec<MeasuredRow>, Error> {
    let broken = |fault: csv::Error| {
        Error::new("", fault.to_string(), "comma-separated rows under a header", "correct that line")
    };
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().map_err(broken)?.clone();
    let mut measured: Vec<MeasuredRow> = Vec::new();
    for (number, record) in reader.records().enumerate() {
        let record = record.map_err(broken)?;
        ROWS.check_whole("rows", number as u64 + 1)?;
        let row = Record(header.iter().zip(record.iter()).collect());
        let one = row.measured().map_err(|fault| {
            let key = format!("row {}: {}", number + 2, fault.key);
            Error { key, ..fault }
        })?;
        let rest = match measured.last_mut() {
            Some(last) => last.join(one),
            None => Some(one),
        };
        measured.extend(rest);
    }
    if measured.is_empty() {
        let fix = "give a file with a header and at least one row";
        return Err(Error::new("", "no row", "measurements", fix));
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_faulty_cell_is_reported_with_its_row() {
        let fault = rows("model,hardware,runtime,isl\na,b,c,7\na,b,c,x\n").unwrap_err();
        assert_eq!((fault.key.as_str(), fault.found.as_str()), ("row 3: isl", "x"));
        assert_eq!(rows("model,hardware,runtime\n").unwrap_err().found, "no row");
        assert!(rows("model,hardware,runtime\na,b\n").unwrap_err().found.contains("fields"));
    }
}
