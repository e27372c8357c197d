//! `validate`: compares predictions with measurements.

use std::path::PathBuf;

use super::output::OutputArgs;
use super::plot::PlotArgs;
use super::{CliError, ExitStatus};
use crate::report::left_out;
use crate::report::scatter::scatter;
use crate::report::validation::{markdown, rows_csv};
use crate::request::UNCONTROLLED;
#[cfg(feature = "runs")]
use crate::request::runs::lines_of;
use crate::request::validate::given::GivenRunFacts;
use crate::request::validate::table::MeasuredTable;
use crate::request::validate::{ValidateReport, ValidateRequest, scored, validate};
use crate::spec::error::Error;
use crate::store::catalog::Catalog;
use crate::store::file::{self, FileSizeLimit};
#[cfg(feature = "runs")]
use crate::store::runs::{RunStore, is_store};
use crate::validate::summary::GroupBy;

const EXAMPLES: &str = "\
Examples:
  mantile-opt validate serving.csv
  mantile-opt validate serving.csv --by hardware,runtime
  mantile-opt validate --left-out vllm
  mantile-opt validate serving.csv --kinds --format json
  mantile-opt validate vllm-bench.json --hardware 1xmi300x
  mantile-opt validate serving.csv --mode agg --plot accuracy.svg
  mantile-opt validate serving.csv --by mode,runtime,hardware --markdown
  mantile-opt validate serving.csv singlestream.csv --format json --rows rows.csv";

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Validate {
    /// Tables of measurements: one run per row, or one metric per row in the columns metric and value; runs of bench; or
    /// benchmark files of vLLM, SGLang, AIPerf, GenAI-Perf, GuideLLM, llm-d-benchmark, llama-bench, MLPerf, InferenceX, BLIS
    /// and LLMServingSim
    #[arg(required_unless_present = "left_out", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Read no table: report the held-out errors stored in a runtime's profile
    #[arg(long, value_name = "RUNTIME", conflicts_with_all = ["files", "by", "rows", "plot", "mode"])]
    pub left_out: Option<String>,
    /// Group the rows by these keys
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KEYS")]
    pub by: Vec<GroupBy>,
    /// Write each row with its prediction to a file
    #[arg(long, value_name = "FILE")]
    pub rows: Option<PathBuf>,
    #[command(flatten)]
    pub plot: PlotArgs,
    /// Report the kinds of deployments that the rows measured, in place of errors
    #[arg(long, conflicts_with_all = ["left_out", "by", "rows", "plot", "markdown"])]
    pub kinds: bool,
    /// Use only rows of this mode: agg, disagg, single-stream …
    #[arg(long, value_name = "MODE")]
    pub mode: Option<String>,
    /// Print the errors as a Markdown table, as in docs/accuracy.md
    #[arg(long, conflicts_with = "format")]
    pub markdown: bool,
    #[command(flatten)]
    pub given: GivenRunFacts,
    /// Runtime of the server, where the file does not state one
    #[arg(long, value_name = "NAME", help_heading = "Runs of bench and of benchmark files")]
    pub runtime: Option<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl Validate {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        self.plot.check()?;
        let request = self.request()?;
        if self.rows.is_some() || self.plot.plot.is_some() {
            let scored = scored(catalog, &request)?;
            if let Some(path) = &self.rows {
                file::write(path, &rows_csv(&scored.rows))?;
            }
            self.plot.write(|| scatter(&scored.rows))?;
            return self.write(&scored.report(&request.by));
        }
        self.write(&validate(catalog, &request, &UNCONTROLLED)?)
    }

    pub fn request(&self) -> Result<ValidateRequest, Error> {
        Ok(ValidateRequest {
            tables: tables(&self.files)?,
            given: GivenRunFacts { runtime: self.runtime.clone(), ..self.given.clone() },
            left_out: self.left_out.clone(),
            by: self.by.clone(),
            kinds: self.kinds,
            mode: self.mode.clone(),
        })
    }

    fn write(&self, report: &ValidateReport) -> Result<ExitStatus, CliError> {
        match (self.markdown, report) {
            (false, _) | (true, ValidateReport::Kinds(_)) => self.output.answer(report, false),
            (true, ValidateReport::Validation(found)) => self.output.write(&markdown(found)),
            (true, ValidateReport::LeftOut(found)) => self.output.write(&left_out::markdown(found)),
        }
    }
}

pub fn tables(files: &[PathBuf]) -> Result<Vec<MeasuredTable>, Error> {
    let table = |path: &PathBuf| {
        #[cfg(feature = "runs")]
        if is_store(path) {
            let csv = lines_of(&RunStore::existing(path)?.runs()?);
            return Ok(MeasuredTable { name: file::shown(path), csv });
        }
        let csv = file::read_most(path, FileSizeLimit::Table)?;
        Ok(MeasuredTable { name: file::shown(path), csv })
    };
    files.iter().map(table).collect()
}
