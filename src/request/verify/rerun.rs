//! The problem of a saved result, resolved and searched again: the reference for the checks.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::UNCONTROLLED;
use super::super::fleet::build_problem::{build_problem, solved};
use super::super::optimize::{self, OptimizeRequest};
use super::super::place::aim;
use super::super::place::solve::answer_placement;
use super::super::recommend::requirements::check;
use super::super::recommend::rerun as recommended;
use crate::report::fleet::{FleetProblem, FleetResult};
use crate::report::place::PlacementResult as Placement;
use crate::report::recommend::Requirements;
use crate::report::result::OptimizeResult;
use crate::report::verify::{self as checks, Verified};
use crate::search::placement::solve::PlacementObjective;
use crate::search::problem::Problem;
use crate::search::run::UNWATCHED;
use crate::spec::error::Error;
use crate::spec::placing::PlacementScenario;
use crate::spec::scenario::Scenario;
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;
use crate::store::resolved_scenario::ResolvedScenario;
use crate::store::rig::ResolvedRig;

/// A problem solved again, with its result.
pub enum Rerun {
    /// Of `optimize`.
    Optimize(Box<(Problem, OptimizeResult)>),
    /// Of `place`.
    Place(Box<(Placement, ResolvedRig)>, PlacementObjective),
    /// Of `fleet`.
    Fleet(Box<(FleetProblem, FleetResult)>),
    /// Of `recommend`.
    Recommend(Box<recommended::RecommendRerun>),
}

impl Rerun {
    /// Solves the problem of `saved` again.
    ///
    /// # Errors
    /// It is not a result, or its problem no longer resolves.
    pub fn of(catalog: &Catalog, saved: &Value) -> Result<Rerun, Error> {
        Ok(match saved_by(saved)? {
            SavedCommand::Optimize => Rerun::Optimize(Box::new(optimized(catalog, saved)?)),
            SavedCommand::Place => {
                let placing: PlacementScenario = part(saved, "scenario")?;
                Rerun::Place(
                    Box::new(answer_placement(catalog, &placing, &UNWATCHED)?),
                    aim(placing.objective),
                )
            }
            SavedCommand::Fleet => {
                let resolved =
                    build_problem(catalog, part(saved, "asked")?, part(saved, "scenario")?, &UNCONTROLLED)?;
                let fresh = solved(&resolved);
                Rerun::Fleet(Box::new((resolved, fresh)))
            }
            SavedCommand::Recommend => {
                let (scenario, sought): (Scenario, Requirements) =
                    (part(saved, "scenario")?, part(saved, "sought")?);
                check(&sought)?;
                let of_machine = !saved["models"].is_null();
                let asked = recommended::RecommendRerun::rerun(catalog, (scenario, sought), of_machine)?;
                Rerun::Recommend(Box::new(asked))
            }
        })
    }

    /// Checks `saved`, a result of the same problem, with random deployments drawn by a seed.
    pub fn check(&self, catalog: &Catalog, saved: &Value, drawn: (u64, u64)) -> Verified {
        match self {
            Rerun::Optimize(asked) => checks::optimize::verify(&asked.0, saved, &asked.1, drawn),
            Rerun::Place(asked, aim) => {
                let (fresh, rigged) = &**asked;
                let questions = [rigged.problems.as_slice(), rigged.offloaded.as_slice()];
                checks::place::verify(&questions, *aim, (saved, fresh), drawn)
            }
            Rerun::Fleet(asked) => checks::fleet::verify(&asked.0, (saved, &asked.1), drawn),
            Rerun::Recommend(asked) => asked.check(catalog, saved, drawn),
        }
    }
}

/// The problem of `optimize`, and its result as reported. Optional parts are computed only if the saved result has
/// them.
fn optimized(catalog: &Catalog, saved: &Value) -> Result<(Problem, OptimizeResult), Error> {
    let scenario: Scenario = part(saved, "scenario")?;
    let problem = ResolvedScenario::resolve(catalog, &scenario)?.problem()?;
    let request = OptimizeRequest { scenario, why: saved["why"].is_object(), max_front_points: None };
    let fresh = optimize::optimize(catalog, &request, &UNCONTROLLED)?;
    let conflict = fresh.conflict.filter(|_| saved["conflict"].is_object());
    Ok((problem, OptimizeResult { conflict, ..fresh }))
}

/// The command that wrote a result.
#[derive(Clone, Copy)]
enum SavedCommand {
    Optimize,
    Place,
    Fleet,
    Recommend,
}

/// The key that only the results of one command have.
const KINDS: [(&str, SavedCommand); 4] = [
    ("front", SavedCommand::Optimize),
    ("placement", SavedCommand::Place),
    ("routes", SavedCommand::Fleet),
    ("sought", SavedCommand::Recommend),
];

/// The command that wrote `saved`.
///
/// # Errors
/// No known command, or the problem is missing.
fn saved_by(saved: &Value) -> Result<SavedCommand, Error> {
    let known = KINDS.iter().find(|(key, _)| saved.get(key).is_some()).map(|(_, kind)| *kind);
    known.filter(|_| saved["scenario"].is_object()).ok_or_else(|| {
        let fix = "save one with `mantile-opt ... --format json --out answer.json`";
        let expected = "a JSON result of `optimize`, `place`, `fleet` or `recommend`";
        Error::new("scenario", "no problem", expected, fix)
    })
}

/// A part of a saved result, parsed back into its type.
fn part<T: DeserializeOwned>(saved: &Value, key: &str) -> Result<T, Error> {
    let within = |fault: Error| {
        let key = if fault.key.is_empty() { key.to_string() } else { format!("{key}.{}", fault.key) };
        Error { key, ..fault }
    };
    from_json(&saved[key].to_string(), key).map_err(within)
}
