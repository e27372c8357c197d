//! `diff`: two answers, bundles or scenarios compared.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::deadline::with_progress;
use super::output::OutputArgs;
use super::{CliError, ExitStatus};
use crate::request::diff::{DiffRequest, diff};
use crate::spec::error::Error;
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;
use crate::store::file::{self, FileSizeLimit};

const AFTER: &str = "\
Each file is a saved answer of `optimize` or `estimate` (--json --out), a bundle (--bundle), or a scenario (--save). The inputs that \
differ are listed with the part of each metric's change that each explains: the mean over all orders in which the \
differences could be made (Shapley value), so that the parts add up. Keys that only run as one count as one. \
`catalog diff` compares files of the catalogue, `inspect --diff` models.

Examples:
  mantile-opt --hardware 8xh100 --json --out a.json && mantile-opt --hardware 8xh200 --json --out b.json
  mantile-opt diff a.json b.json
  mantile-opt diff monday.bundle.json friday.bundle.json --format csv";

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct DiffArgs {
    /// An answer, a bundle or a scenario
    #[arg(value_name = "A.json")]
    pub a: PathBuf,
    /// Another one
    #[arg(value_name = "B.json")]
    pub b: PathBuf,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl DiffArgs {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let request = self.request()?;
        let report = with_progress(|control| diff(catalog, &request, control))?;
        self.output.answer(&report, false)
    }

    pub fn request(&self) -> Result<DiffRequest, Error> {
        let read = |path: &Path| -> Result<Value, Error> {
            let text = file::read_json(path, FileSizeLimit::Answer)?;
            from_json(&text, "an answer").map_err(|fault| fault.in_file(file::shown(path)))
        };
        Ok(DiffRequest { a: read(&self.a)?, b: read(&self.b)? })
    }
}
