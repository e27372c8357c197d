//! `validate`: predictions held against measurements.

pub mod predict;
pub mod table;

use std::path::PathBuf;

use super::output::{Format, Output, csv, json};
use super::{Fault, Verdict};
use crate::report::scatter::scatter;
use crate::report::validation::{GROUP_HEADER, ROW_HEADER, group_rows, markdown, row_cells, text};
use crate::store::catalog::Catalog;
use crate::validate::summary::{Key, validation};

const EXAMPLES: &str = "\
Examples:
  mantile-opt validate serving.csv
  mantile-opt validate serving.csv --by hardware,runtime
  mantile-opt validate serving.csv --mode agg --plot accuracy.svg
  mantile-opt validate serving.csv --by mode,runtime,hardware --markdown
  mantile-opt validate serving.csv singlestream.csv --format json --rows rows.csv";

/// The flags of `validate`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Validate {
    /// Tables of measurements: one run a row, or one metric a row in the columns metric and value
    #[arg(required = true, value_name = "FILE.csv")]
    pub files: Vec<PathBuf>,
    /// What to group the rows by
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KEYS")]
    pub by: Vec<By>,
    /// Write each row with its prediction to a file
    #[arg(long, value_name = "FILE")]
    pub rows: Option<PathBuf>,
    /// Draw predicted against measured into an SVG file
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Take only rows of this mode: agg, disagg, single-stream …
    #[arg(long, value_name = "MODE")]
    pub mode: Option<String>,
    /// Write the errors as a Markdown table, as the README has them
    #[arg(long, conflicts_with = "format")]
    pub markdown: bool,
    /// Where the answer goes.
    #[command(flatten)]
    pub output: Output,
}

/// What rows can be grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// The model
    Model,
    /// The device
    Hardware,
    /// The serving runtime
    Runtime,
    /// Aggregated, disaggregated, or how a single stream was run
    Mode,
}

impl Validate {
    /// Predicts every row and says how far off it is.
    ///
    /// # Errors
    /// A table cannot be read, or the answer cannot be written.
    pub fn run(&self, catalog: &Catalog) -> Result<Verdict, Fault> {
        let mut measured = Vec::new();
        for path in &self.files {
            measured.extend(table::read(path)?);
        }
        if let Some(mode) = &self.mode {
            measured.retain(|row| row.mode == *mode);
        }
        let keys: Vec<Key> = self
            .by
            .iter()
            .map(|by| match by {
                By::Model => Key::Model,
                By::Hardware => Key::Hardware,
                By::Runtime => Key::Runtime,
                By::Mode => Key::Mode,
            })
            .collect();
        let held = predict::predict(catalog, measured);
        if let Some(path) = &self.rows {
            crate::store::file::write(path, &csv(&ROW_HEADER, held.iter().map(row_cells))?)?;
        }
        if let Some(path) = &self.plot {
            crate::store::file::write(path, &scatter(&held))?;
        }
        let found = validation(&held, &keys);
        self.output.found(&match self.output.format {
            Format::Table if self.markdown => markdown(&found),
            Format::Table => text(&found),
            Format::Json => json(&found),
            Format::Csv => csv(&GROUP_HEADER, group_rows(&found))?,
        })
    }
}
