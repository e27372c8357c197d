//! `compare`: answers side by side.

use std::path::{Path, PathBuf};

use super::deadline::with_deadline;
use super::output::OutputArgs;
use super::plot::PlotArgs;
use super::problem::ProblemArgs;
use super::{CliError, ExitStatus};
use crate::report::svg::compare::comparison_picture;
use crate::request::compare::{CompareRequest, ComparedEntry, compare};
use crate::request::saved_answer::is_saved_answer;
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;
use crate::store::file::{self, FileSizeLimit};

const AFTER: &str = "\
A file is a JSON result of `optimize` or `estimate` (--format json), or a scenario, which is answered now: estimated \
where it has a deployment, else optimized. Ratios are to the first row. `sweep` compares more than eight.

Examples:
  mantile-opt compare --model Llama-3.3-70B --hardware 8xh100,8xh200,8xmi300x
  mantile-opt compare --model Qwen3-32B --tp 4 --concurrency 64 --hardware 4xl40s,4xh100
  mantile-opt compare yesterday.json today.json --format csv
  mantile-opt compare answer.json scenario.json --hardware 8xb200";

/// The flags of `compare`; `--hardware` takes several systems.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Compare {
    /// Saved results or scenarios
    #[arg(value_name = "FILE.json")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub problem: ProblemArgs,
    #[command(flatten)]
    pub deployment: Deployment,
    #[command(flatten)]
    pub plot: PlotArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl Compare {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        self.plot.check()?;
        let request = self.request()?;
        let report = with_deadline(None, |control| compare(catalog, &request, control))?;
        self.plot.write(|| comparison_picture(&report))?;
        self.output.answer(&report, false)?;
        let runs = report.rows.iter().any(|row| row.metrics.is_some());
        Ok(ExitStatus::of(runs))
    }

    /// The request of the flags and files; `--hardware` is a list.
    pub fn request(&self) -> Result<CompareRequest, Error> {
        let entries = self.files.iter().map(|path| entry(path)).collect::<Result<Vec<_>, Error>>()?;
        let scenario = self.problem.scenario(&self.deployment)?;
        let listed = self.problem.scenario.hardware.as_deref().unwrap_or_default();
        let hardware = listed.split(',').map(str::trim).filter(|name| !name.is_empty());
        let hardware: Vec<String> = hardware.map(str::to_owned).collect();
        Ok(CompareRequest { entries, hardware, scenario: Scenario { hardware: None, ..scenario } })
    }
}

fn entry(path: &Path) -> Result<ComparedEntry, Error> {
    let name = file::shown(path);
    let text = file::read_json(path, FileSizeLimit::Answer)?;
    let read = || {
        Ok(match is_saved_answer(&text) {
            true => (Some(from_json(&text, "a saved result")?), None),
            false => (None, Some(from_json(&text, "a scenario")?)),
        })
    };
    let (result, scenario) = read().map_err(|fault: Error| fault.in_file(&name))?;
    Ok(ComparedEntry { name, result, scenario })
}
