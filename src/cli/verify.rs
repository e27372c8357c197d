//! `verify`: checks a saved result against its own problem.

use std::path::PathBuf;

use serde_json::Value;

use super::deadline::with_progress;
use super::output::OutputArgs;
use super::{CliError, ExitStatus};
use crate::request::verify::{DEFAULT_SAMPLE, DEFAULT_SEED, VerifyRequest, verify};
use crate::spec::error::Error;
use crate::spec::limits::{SAMPLE, SEED, whole};
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;
use crate::store::file::{self, FileSizeLimit};

const AFTER: &str = "\
The file is the JSON result of `optimize`, `estimate`, `place`, `fleet` or `recommend` (--format json). It contains the problem, \
which is resolved again from the current catalogue. Every row is recomputed from the formulas and checked for \
consistency; the best is compared with its neighbours and with random deployments from a space much larger than the \
search space; the search runs again, and every field must be equal.

Examples:
  mantile-opt --model Qwen3-32B --hardware 4xl40s --format json --out answer.json
  mantile-opt verify answer.json
  mantile-opt verify answer.json --sample 20000 --seed 7 --format json
  mantile-opt fleet --format json --out fleet.json && mantile-opt verify fleet.json

Exit codes: 0 every check passes; 2 a check fails, or bad input.";

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Verify {
    /// The saved result
    #[arg(value_name = "RESULT.json")]
    pub file: PathBuf,
    /// Number of random deployments
    #[arg(long, value_name = "N", value_parser = whole(&SAMPLE), default_value_t = DEFAULT_SAMPLE)]
    pub sample: u64,
    /// Seed of the random deployments
    #[arg(long, value_name = "N", value_parser = whole(&SEED), default_value_t = DEFAULT_SEED)]
    pub seed: u64,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl Verify {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let request = self.request()?;
        let verified = with_progress(|control| verify(catalog, &request, control))
            .map_err(|fault| fault.in_file(file::shown(&self.file)))?;
        self.output.answer(&verified, false)?;
        Ok(if verified.holds { ExitStatus::Success } else { ExitStatus::CheckFailed })
    }

    pub fn request(&self) -> Result<VerifyRequest, Error> {
        let result: Value = from_json(&file::read_json(&self.file, FileSizeLimit::Answer)?, "a result")
            .map_err(|fault| fault.in_file(file::shown(&self.file)))?;
        Ok(VerifyRequest { result, sample: self.sample, seed: self.seed })
    }
}
