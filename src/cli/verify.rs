//! `verify`: a saved answer, checked again from its own question.

use std::path::PathBuf;

use serde_json::Value;

use super::output::{Format, Output, csv, json};
use super::{Fault, Verdict, ask};
use crate::report::answer::answer;
use crate::report::text::verify::table;
use crate::report::verify::{Verified, verify};
use crate::search::run::{UNWATCHED, run};
use crate::spec::error::Error;
use crate::spec::scenario::{Scenario, whole};
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;
use crate::store::file;
use crate::store::problem::Problem;

const AFTER: &str = "\
The file is what `optimize --format json` wrote: it holds the question, which is resolved again from the catalogue as \
it is now. Every row is evaluated again, the winner is held against a sample of deployments drawn at random from all \
that are legal, whatever rule pruned them, and the search is done again.

Examples:
  mantile-opt --model Qwen3-32B --hardware 4xl40s --format json --out answer.json
  mantile-opt verify answer.json
  mantile-opt verify answer.json --sample 20000 --seed 7 --format json

Exit codes: 0 everything holds, 2 something does not, or bad input.";

/// The flags of `verify`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER)]
pub struct Verify {
    /// The saved answer
    #[arg(value_name = "RESULT.json")]
    pub file: PathBuf,
    /// Deployments drawn at random
    #[arg(long, value_name = "N", value_parser = whole, default_value = "2000")]
    pub sample: u64,
    /// Seed that they are drawn by
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Where the checks go.
    #[command(flatten)]
    pub output: Output,
}

impl Verify {
    /// Reads the answer and checks it.
    ///
    /// # Errors
    /// The file is no answer, or its question does not resolve any more.
    pub fn run(&self, catalog: &Catalog) -> Result<Verdict, Fault> {
        let verified = self.verified(catalog)?;
        let text = match self.output.format {
            Format::Table => table(&verified),
            Format::Json => json(&verified),
            Format::Csv => csv(
                &["check", "of", "holds", "faults"],
                verified.checks.iter().map(|check| {
                    let holds = check.faults.is_empty().to_string();
                    vec![check.what.clone(), check.of.to_string(), holds, check.faults.join("; ")]
                }),
            )?,
        };
        self.output.write(&text)?;
        Ok(if verified.holds { Verdict::Found } else { Verdict::Faulty })
    }

    fn verified(&self, catalog: &Catalog) -> Result<Verified, Error> {
        let name = self.file.display().to_string();
        let saved: Value =
            from_json(&file::read(&self.file)?, "an answer").map_err(|fault| fault.in_file(&name))?;
        let stated = saved.get("scenario").filter(|stated| stated.is_object()).ok_or_else(|| {
            let fix = "save one with `mantile-opt ... --format json --out answer.json`";
            Error::new("scenario", "no question", "the answer of `optimize` as JSON", fix).in_file(&name)
        })?;
        let scenario: Scenario =
            from_json(&stated.to_string(), "a scenario").map_err(|fault| fault.in_file(&name))?;
        let problem = Problem::resolve(catalog, &scenario)?;
        let question = problem.question()?;
        let outcome = run(&question, &UNWATCHED);
        let lower = ask::lower_format(&problem, &outcome)?;
        let fresh = answer(&question, ask::asked(&problem, &question), &outcome, lower, 1);
        Ok(verify(&question, &saved, &fresh, (self.sample, self.seed)))
    }
}
