//! `validate`: compares predictions with measurements.

mod layout;
pub mod predict;
pub mod table;

use std::path::PathBuf;

use super::output::{OutputArgs, OutputFormat, csv, json};
use super::{CliError, ExitStatus};
use crate::report::left_out;
use crate::report::scatter::scatter;
use crate::report::table::table as lines;
use crate::report::validation::{GROUP_HEADER, ROW_HEADER, group_rows, markdown, row_cells, text};
use crate::spec::error::Error;
use crate::spec::runtime::Runtime;
use crate::store::catalog::Catalog;
use crate::validate::summary::{GroupBy, validation};

const EXAMPLES: &str = "\
Examples:
  mantile-opt validate serving.csv
  mantile-opt validate serving.csv --by hardware,runtime
  mantile-opt validate --left-out vllm
  mantile-opt validate serving.csv --mode agg --plot accuracy.svg
  mantile-opt validate serving.csv --by mode,runtime,hardware --markdown
  mantile-opt validate serving.csv singlestream.csv --format json --rows rows.csv";

/// The flags of `validate`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Validate {
    /// Tables of measurements: one run per row, or one metric per row in the columns metric and value
    #[arg(required_unless_present = "left_out", value_name = "FILE.csv")]
    pub files: Vec<PathBuf>,
    /// Read no table: report the held-out errors stored in a runtime's profile
    #[arg(long, value_name = "RUNTIME", conflicts_with_all = ["files", "by", "rows", "plot", "mode"])]
    pub left_out: Option<String>,
    /// Group the rows by these keys
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KEYS")]
    pub by: Vec<GroupByArg>,
    /// Write each row with its prediction to a file
    #[arg(long, value_name = "FILE")]
    pub rows: Option<PathBuf>,
    /// Plot predicted against measured values (SVG)
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Use only rows of this mode: agg, disagg, single-stream …
    #[arg(long, value_name = "MODE")]
    pub mode: Option<String>,
    /// Print the errors as a Markdown table, as in docs/accuracy.md
    #[arg(long, conflicts_with = "format")]
    pub markdown: bool,
    /// The output flags.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Keys to group rows by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum GroupByArg {
    /// The model
    Model,
    /// The device
    Hardware,
    /// The serving runtime
    Runtime,
    /// Aggregated, disaggregated, or the mode of a single stream
    Mode,
    /// Nearness of the row to the calibration data
    Near,
}

impl Validate {
    /// Predicts every row and reports the errors.
    ///
    /// # Errors
    /// A table cannot be read, or the output cannot be written.
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        if let Some(name) = &self.left_out {
            return self.left_out(catalog, name);
        }
        let mut measured = Vec::new();
        for path in &self.files {
            measured.extend(table::read(path)?);
        }
        if let Some(mode) = &self.mode {
            measured.retain(|row| row.mode == *mode);
        }
        let keys: Vec<GroupBy> = self
            .by
            .iter()
            .map(|by| match by {
                GroupByArg::Model => GroupBy::Model,
                GroupByArg::Hardware => GroupBy::Hardware,
                GroupByArg::Runtime => GroupBy::Runtime,
                GroupByArg::Mode => GroupBy::Mode,
                GroupByArg::Near => GroupBy::Near,
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
            OutputFormat::Table if self.markdown => markdown(&found),
            OutputFormat::Table => text(&found),
            OutputFormat::Json => json(&found),
            OutputFormat::Csv => csv(&GROUP_HEADER, group_rows(&found))?,
        })
    }

    /// The held-out errors stored in a runtime's profile.
    fn left_out(&self, catalog: &Catalog, name: &str) -> Result<ExitStatus, CliError> {
        let runtime = catalog.load::<Runtime>(name)?;
        let told = runtime.serving_fit.map(|fit| fit.left_out).unwrap_or_default();
        if told.is_empty() {
            let found = format!("none in the profile of {}", runtime.id);
            let fix = "name a fitted runtime: `mantile-opt validate --left-out vllm`";
            return Err(Error::new("left_out", found, "held-out errors of a fit", fix).into());
        }
        self.output.found(&match self.output.format {
            OutputFormat::Table if self.markdown => left_out::markdown(&told),
            OutputFormat::Table => {
                lines(&left_out::HEADER, &told.iter().map(left_out::cells).collect::<Vec<_>>())
            }
            OutputFormat::Json => json(&told),
            OutputFormat::Csv => csv(&left_out::HEADER, told.iter().map(left_out::cells))?,
        })
    }
}
