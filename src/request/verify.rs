//! `verify`: checks a saved result against its own problem.
//!
//! The result is read back into its report type, its problem is solved again, and the saved deployments are evaluated
//! again by the functions that made them. One comparison names every field that differs.

mod compare;
pub mod estimate;
pub mod fleet;
mod laws;
pub mod optimize;
pub mod place;
pub mod recommend;
mod row;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RequestControl;
use super::bundle::{changed_files, is_bundle, read_bundle, verify_bundle};
use super::saved_answer::question_of;
use crate::report::fleet::FleetResult;
use crate::report::place::PlacementResult;
use crate::report::recommend::report::RecommendReport;
use crate::report::rendered::Answer;
use crate::report::result::{EstimateResult, OptimizeResult};
use crate::report::verify::{CheckResult, Verified};
use crate::spec::error::Error;
use crate::spec::limits::{SAMPLE, SEED};
use crate::store::catalog::Catalog;
use compare::{differences, faults, off, read};

pub const DEFAULT_SAMPLE: u64 = 2000;
pub const DEFAULT_SEED: u64 = 1;

/// A request of `verify`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifyRequest {
    /// The saved result of `optimize`, `estimate`, `place`, `fleet` or `recommend`, or a bundle.
    pub result: Value,
    /// Number of random deployments.
    #[serde(default = "sample")]
    pub sample: u64,
    /// Seed of the random deployments.
    #[serde(default = "seed")]
    pub seed: u64,
}

fn sample() -> u64 {
    DEFAULT_SAMPLE
}

fn seed() -> u64 {
    DEFAULT_SEED
}

#[derive(Clone, Copy, Debug)]
pub struct RandomSample {
    pub count: u64,
    pub seed: u64,
}

/// The problem of a saved result, solved again: the reference for the checks.
pub trait Rerun {
    /// Checks `saved`, a result of the same problem.
    ///
    /// # Errors
    /// It is not a result of the same command; the error names the field.
    fn check(&self, saved: &Value, sample: RandomSample) -> Result<Verified, Error>;
}

/// Solves the problem of `saved` again.
///
/// # Errors
/// It is not a result, or its problem no longer resolves.
pub fn rerun<'a>(catalog: &'a Catalog, saved: &Value) -> Result<Box<dyn Rerun + 'a>, Error> {
    Ok(match question_of(saved) {
        Some(OptimizeResult::QUESTION) => Box::new(optimize::OptimizeRerun::solve(catalog, &read(saved)?)?),
        Some(PlacementResult::QUESTION) => Box::new(place::PlaceRerun::solve(catalog, &read(saved)?)?),
        Some(FleetResult::QUESTION) => Box::new(fleet::FleetRerun::solve(catalog, read(saved)?)?),
        Some(RecommendReport::QUESTION) => {
            Box::new(recommend::RecommendRerun::solve(catalog, recommend::report(saved)?)?)
        }
        Some(EstimateResult::QUESTION) => Box::new(estimate::EstimateRerun::solve(catalog, &read(saved)?)?),
        _ => return Err(no_problem()),
    })
}

/// Not a result, or one without its problem.
fn no_problem() -> Error {
    let fix = "save one with `mantile-opt ... --format json --out answer.json`";
    let expected = "a JSON result of `optimize`, `estimate`, `place`, `fleet` or `recommend`";
    Error::new("scenario", "no problem", expected, fix)
}

/// Solves the problem of the result again and checks every row.
pub fn verify(
    catalog: &Catalog,
    request: &VerifyRequest,
    control: &RequestControl,
) -> Result<Verified, Error> {
    if is_bundle(&request.result) {
        let bundle = read_bundle(&request.result)?;
        let notes = match &changed_files(catalog, &bundle)[..] {
            [] => vec![],
            changed => vec![format!("this catalogue has other texts of {}", changed.join(", "))],
        };
        return Ok(Verified { notes, ..verify_bundle(&bundle, control)? });
    }
    SAMPLE.check_whole("sample", request.sample)?;
    SEED.check_whole("seed", request.seed)?;
    let sample = RandomSample { count: request.sample, seed: request.seed };
    rerun(catalog, &request.result)?.check(&request.result, sample)
}

/// The check that the saved problem is the one that was solved again.
fn question(faults: Vec<String>) -> CheckResult {
    CheckResult::new("question: resolves to the same inputs, with defaults", 1, faults)
}

/// The check of a complete search.
const SEARCH: &str = "search: a new search gives the same result in every field";

fn search(saved: &impl Serialize, fresh: &impl Serialize) -> CheckResult {
    CheckResult::new(SEARCH, 1, faults(differences("", saved, fresh)))
}
