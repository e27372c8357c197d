//! `verify`: a saved answer, checked again from its own question.

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::fleet::pose::{answered, pose};
use super::output::{Format, Output, csv, json};
use super::place::aim;
use super::place::found::found;
use super::recommend::again;
use super::{Fault, Verdict, ask};
use crate::report::answer::answer;
use crate::report::recommend::Sought;
use crate::report::text::verify::table;
use crate::report::verify::{Verified, fleet, place, verify};
use crate::search::run::{UNWATCHED, run};
use crate::spec::error::Error;
use crate::spec::placing::Placing;
use crate::spec::scenario::{Scenario, whole};
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;
use crate::store::file::{self, Most};
use crate::store::problem::Problem;

const AFTER: &str = "\
The file is what `optimize`, `place`, `fleet` or `recommend` wrote with --format json: it holds the question, which is \
resolved again from the catalogue as it is now. Every row is evaluated again straight from the formulas, the best is \
held against a sample of what was passed over, drawn at random whatever rule pruned it, and the search is done again.

Examples:
  mantile-opt --model Qwen3-32B --hardware 4xl40s --format json --out answer.json
  mantile-opt verify answer.json
  mantile-opt verify answer.json --sample 20000 --seed 7 --format json
  mantile-opt fleet --format json --out fleet.json && mantile-opt verify fleet.json

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
        let name = file::shown(&self.file);
        let saved: Value = from_json(&file::read_most(&self.file, Most::Answer)?, "an answer")
            .map_err(|fault| fault.in_file(&name))?;
        let checked = saved_by(&saved).and_then(|kind| match kind {
            Kind::Optimize => self.optimized(catalog, &saved),
            Kind::Place => self.placed(catalog, &saved),
            Kind::Fleet => self.mixed(catalog, &saved),
            Kind::Recommend => self.recommended(catalog, &saved),
        });
        checked.map_err(|fault| fault.in_file(&name))
    }

    fn drawn(&self) -> (u64, u64) {
        (self.sample, self.seed)
    }

    fn optimized(&self, catalog: &Catalog, saved: &Value) -> Result<Verified, Error> {
        let problem = Problem::resolve(catalog, &part::<Scenario>(saved, "scenario")?)?;
        let question = problem.question()?;
        let outcome = run(&question, &UNWATCHED);
        let lower = ask::lower_format(&problem, &outcome)?;
        let fresh = answer(&question, ask::asked(&problem, &question), &outcome, lower, 1);
        Ok(verify(&question, saved, &fresh, self.drawn()))
    }

    fn placed(&self, catalog: &Catalog, saved: &Value) -> Result<Verified, Error> {
        let placing: Placing = part(saved, "scenario")?;
        let (fresh, rigged) = found(catalog, &placing, &UNWATCHED)?;
        let questions = [rigged.questions.as_slice(), rigged.offloaded.as_slice()];
        Ok(place::verify(&questions, aim(placing.objective), (saved, &fresh), self.drawn()))
    }

    fn mixed(&self, catalog: &Catalog, saved: &Value) -> Result<Verified, Error> {
        let posed = pose(catalog, part(saved, "asked")?, part(saved, "scenario")?)?;
        Ok(fleet::verify(&posed, (saved, &answered(&posed)), self.drawn()))
    }

    fn recommended(&self, catalog: &Catalog, saved: &Value) -> Result<Verified, Error> {
        let (scenario, sought): (Scenario, Sought) = (part(saved, "scenario")?, part(saved, "sought")?);
        again::verified(catalog, saved, (&scenario, sought), self.drawn())
    }
}

/// Who wrote an answer.
#[derive(Clone, Copy)]
enum Kind {
    Optimize,
    Place,
    Fleet,
    Recommend,
}

/// What only the answer of one command has.
const KINDS: [(&str, Kind); 4] = [
    ("front", Kind::Optimize),
    ("placement", Kind::Place),
    ("routes", Kind::Fleet),
    ("sought", Kind::Recommend),
];

/// Who wrote `saved`.
///
/// # Errors
/// Nobody did, or it does not hold its question.
fn saved_by(saved: &Value) -> Result<Kind, Error> {
    let known = KINDS.iter().find(|(key, _)| saved.get(key).is_some()).map(|(_, kind)| *kind);
    known.filter(|_| saved["scenario"].is_object()).ok_or_else(|| {
        let fix = "save one with `mantile-opt ... --format json --out answer.json`";
        let expected = "the answer of `optimize`, `place`, `fleet` or `recommend` as JSON";
        Error::new("scenario", "no question", expected, fix)
    })
}

/// A part of a saved answer as what it was.
fn part<T: DeserializeOwned>(saved: &Value, key: &str) -> Result<T, Error> {
    let within = |fault: Error| {
        let key = if fault.key.is_empty() { key.to_string() } else { format!("{key}.{}", fault.key) };
        Error { key, ..fault }
    };
    from_json(&saved[key].to_string(), key).map_err(within)
}
