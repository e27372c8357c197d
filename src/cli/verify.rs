//! `verify`: checks a saved result against its own problem.

pub mod rerun;

use std::path::PathBuf;

use serde_json::Value;

use super::output::{OutputArgs, OutputFormat, csv, json};
use super::{CliError, ExitStatus};
use crate::report::text::verify::table;
use crate::report::verify::Verified;
use crate::spec::error::Error;
use crate::spec::limits::{SAMPLE, SEED, whole};
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;
use crate::store::file::{self, FileSizeLimit};
use rerun::Rerun;

const AFTER: &str = "\
The file is the JSON result of `optimize`, `place`, `fleet` or `recommend` (--format json). It contains the problem, \
which is resolved again from the current catalogue. Every row is recomputed from the formulas and checked for \
consistency; the best is compared with its neighbours and with random deployments from a space much larger than the \
search space; the search runs again, and every field must be equal.

Examples:
  mantile-opt --model Qwen3-32B --hardware 4xl40s --format json --out answer.json
  mantile-opt verify answer.json
  mantile-opt verify answer.json --sample 20000 --seed 7 --format json
  mantile-opt fleet --format json --out fleet.json && mantile-opt verify fleet.json

Exit codes: 0 every check passes; 2 a check fails, or bad input.";

/// The flags of `verify`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER)]
pub struct Verify {
    /// The saved result
    #[arg(value_name = "RESULT.json")]
    pub file: PathBuf,
    /// Number of random deployments
    #[arg(long, value_name = "N", value_parser = whole(&SAMPLE), default_value = "2000")]
    pub sample: u64,
    /// Seed of the random deployments
    #[arg(long, value_name = "N", value_parser = whole(&SEED), default_value = "1")]
    pub seed: u64,
    /// The output flags.
    #[command(flatten)]
    pub output: OutputArgs,
}

impl Verify {
    /// Reads the result and checks it.
    ///
    /// # Errors
    /// The file is not a result, or its problem no longer resolves.
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let verified = self.verified(catalog)?;
        let text = match self.output.format {
            OutputFormat::Table => table(&verified),
            OutputFormat::Json => json(&verified),
            OutputFormat::Csv => csv(
                &["check", "of", "holds", "faults"],
                verified.checks.iter().map(|check| {
                    let holds = check.faults.is_empty().to_string();
                    vec![check.what.clone(), check.of.to_string(), holds, check.faults.join("; ")]
                }),
            )?,
        };
        self.output.write(&text)?;
        Ok(if verified.holds { ExitStatus::Found } else { ExitStatus::Faulty })
    }

    fn verified(&self, catalog: &Catalog) -> Result<Verified, Error> {
        let name = file::shown(&self.file);
        let saved: Value = from_json(&file::read_most(&self.file, FileSizeLimit::Answer)?, "a result")
            .map_err(|fault| fault.in_file(&name))?;
        let again = Rerun::of(catalog, &saved).map_err(|fault| fault.in_file(&name))?;
        Ok(again.check(catalog, &saved, (self.sample, self.seed)))
    }
}
