//! The question of a saved answer, resolved and searched again: what the answer is checked against.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cli::ask;
use crate::cli::fleet::pose::{answered, pose};
use crate::cli::place::aim;
use crate::cli::place::found::found;
use crate::cli::recommend::again as recommended;
use crate::cli::recommend::sought::check;
use crate::cli::remedy::Unanswered;
use crate::report::answer::answer;
use crate::report::fleet::{FleetAnswer, Posed};
use crate::report::place::Answer as Placement;
use crate::report::recommend::Sought;
use crate::report::result::Answer;
use crate::report::verify::{Verified, fleet, optimize, place};
use crate::search::outcome::Status;
use crate::search::placement::solve::Aim;
use crate::search::question::Question;
use crate::search::run::{UNWATCHED, run};
use crate::spec::error::Error;
use crate::spec::placing::Placing;
use crate::spec::scenario::Scenario;
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;
use crate::store::problem::Problem;
use crate::store::rig::Rigged;

/// A question asked again, and what it comes to.
pub enum Again {
    /// Of `optimize`.
    Optimize(Box<(Question, Answer)>),
    /// Of `place`.
    Place(Box<(Placement, Rigged)>, Aim),
    /// Of `fleet`.
    Fleet(Box<(Posed, FleetAnswer)>),
    /// Of `recommend`.
    Recommend(Box<recommended::Asked>),
}

impl Again {
    /// Asks the question of `saved` again.
    ///
    /// # Errors
    /// It is no answer, or its question does not resolve any more.
    pub fn of(catalog: &Catalog, saved: &Value) -> Result<Again, Error> {
        Ok(match saved_by(saved)? {
            Kind::Optimize => Again::Optimize(Box::new(optimized(catalog, saved)?)),
            Kind::Place => {
                let placing: Placing = part(saved, "scenario")?;
                Again::Place(Box::new(found(catalog, &placing, &UNWATCHED)?), aim(placing.objective))
            }
            Kind::Fleet => {
                let posed = pose(catalog, part(saved, "asked")?, part(saved, "scenario")?)?;
                let fresh = answered(&posed);
                Again::Fleet(Box::new((posed, fresh)))
            }
            Kind::Recommend => {
                let (scenario, sought): (Scenario, Sought) =
                    (part(saved, "scenario")?, part(saved, "sought")?);
                check(&sought)?;
                let of_machine = !saved["models"].is_null();
                let asked = recommended::Asked::again(catalog, (scenario, sought), of_machine)?;
                Again::Recommend(Box::new(asked))
            }
        })
    }

    /// Checks `saved`, an answer to the same question, with so many deployments drawn by a seed.
    pub fn check(&self, catalog: &Catalog, saved: &Value, drawn: (u64, u64)) -> Verified {
        match self {
            Again::Optimize(asked) => optimize::verify(&asked.0, saved, &asked.1, drawn),
            Again::Place(asked, aim) => {
                let (fresh, rigged) = &**asked;
                let questions = [rigged.questions.as_slice(), rigged.offloaded.as_slice()];
                place::verify(&questions, *aim, (saved, fresh), drawn)
            }
            Again::Fleet(asked) => fleet::verify(&asked.0, (saved, &asked.1), drawn),
            Again::Recommend(asked) => asked.check(catalog, saved, drawn),
        }
    }
}

/// The question of `optimize`, and its answer as that tells it.
fn optimized(catalog: &Catalog, saved: &Value) -> Result<(Question, Answer), Error> {
    let scenario: Scenario = part(saved, "scenario")?;
    let problem = Problem::resolve(catalog, &scenario)?;
    let question = problem.question()?;
    let outcome = run(&question, &UNWATCHED);
    let lower = ask::lower_format(&problem, &outcome)?;
    let told = answer(&question, ask::asked(&problem, &question), &outcome, lower, usize::MAX);
    // What is told only where it was asked for.
    let why = outcome.best.as_ref().filter(|_| saved["why"].is_object());
    let why = why.and_then(|best| ask::why(&question, best));
    let unanswered = outcome.status == Status::Infeasible && saved["conflict"].is_object();
    let conflict = unanswered.then(|| {
        let (scenario, problem, question) = (&scenario, &problem, &question);
        Unanswered { catalog, scenario, problem, question, control: &UNWATCHED }.conflict()
    });
    let fresh = Answer { scenario: Some(scenario), why, conflict, ..told };
    Ok((question, fresh))
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
