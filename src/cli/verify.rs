//! `verify`: a saved answer, checked again from its own question.

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
The file is what `optimize`, `place`, `fleet` or `recommend` wrote with --format json: it holds the question, which is \
resolved again from the catalogue as it is now. Every row is evaluated again straight from the formulas and checked for \
the laws that its numbers keep; the best is compared with deployments drawn at random from far more than the search \
looks at and from what is near it; the search is done again, and every field must be the same.

Examples:
  mantile-opt --model Qwen3-32B --hardware 4xl40s --format json --out answer.json
  mantile-opt verify answer.json
  mantile-opt verify answer.json --sample 20000 --seed 7 --format json
  mantile-opt fleet --format json --out fleet.json && mantile-opt verify fleet.json

Exit codes: 0 every check holds; 2 one does not, or bad input.";

/// The flags of `verify`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER)]
pub struct Verify {
    /// The saved answer
    #[arg(value_name = "RESULT.json")]
    pub file: PathBuf,
    /// Deployments drawn at random
    #[arg(long, value_name = "N", value_parser = whole(&SAMPLE), default_value = "2000")]
    pub sample: u64,
    /// Seed that they are drawn by
    #[arg(long, value_name = "N", value_parser = whole(&SEED), default_value = "1")]
    pub seed: u64,
    /// Where the checks go.
    #[command(flatten)]
    pub output: OutputArgs,
}

impl Verify {
    /// Reads the answer and checks it.
    ///
    /// # Errors
    /// The file is no answer, or its question does not resolve any more.
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
        let saved: Value = from_json(&file::read_most(&self.file, FileSizeLimit::Answer)?, "an answer")
            .map_err(|fault| fault.in_file(&name))?;
        let again = Rerun::of(catalog, &saved).map_err(|fault| fault.in_file(&name))?;
        Ok(again.check(catalog, &saved, (self.sample, self.seed)))
    }
}
