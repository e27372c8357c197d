//! Where answers go: standard output or a file, whole.

use std::io::Write;
use std::path::PathBuf;

use anstream::adapter::strip_str;
use serde::Serialize;

use super::{Fault, Verdict};
use crate::store::file;

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Text for people.
    #[default]
    Table,
    /// For programs; `schema` describes it.
    Json,
    /// Rows for spreadsheets.
    Csv,
}

/// How and where an answer is written.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Output {
    /// How to write the answer
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "table|json|csv",
        hide_possible_values = true,
        help_heading = "Output"
    )]
    pub format: Format,
    /// Write the answer to a file instead of standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,
}

impl Output {
    /// Writes an answer that is found.
    ///
    /// # Errors
    /// The file or the pipe takes no more.
    pub fn found(&self, text: &str) -> Result<Verdict, Fault> {
        self.write(text)?;
        Ok(Verdict::Found)
    }

    /// Writes `text` where it belongs.
    ///
    /// # Errors
    /// The file or the pipe takes no more.
    pub fn write(&self, text: &str) -> Result<(), Fault> {
        match &self.out {
            Some(path) if path.as_os_str() != "-" => Ok(file::write(path, &strip_str(text).to_string())?),
            _ => {
                // Only tables are coloured; the rest need not be searched for colours.
                let mut out: Box<dyn Write> = match self.format {
                    Format::Table => Box::new(anstream::stdout().lock()),
                    Format::Json | Format::Csv => Box::new(std::io::stdout().lock()),
                };
                out.write_all(text.as_bytes())?;
                Ok(out.flush()?)
            }
        }
    }
}

/// Indented JSON with a line end.
pub fn json<T: Serialize>(value: &T) -> String {
    let text = serde_json::to_string_pretty(value).expect("what is reported has text keys alone");
    format!("{text}\n")
}

/// An answer as JSON, to be looked at.
pub fn value<T: Serialize>(answer: &T) -> serde_json::Value {
    serde_json::to_value(answer).expect("what is reported has text keys alone")
}

/// CSV of `rows` under `header`.
pub fn csv(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Result<String, Fault> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let wrong = |error: csv::Error| Fault::Output(std::io::Error::other(error));
    writer.write_record(header).map_err(wrong)?;
    for row in rows {
        writer.write_record(row).map_err(wrong)?;
    }
    let bytes =
        writer.into_inner().map_err(|error| Fault::Output(std::io::Error::other(error.to_string())))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
