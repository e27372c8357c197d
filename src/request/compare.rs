//! `compare`: answers side by side, saved ones, those of scenarios, or those of several systems.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RequestControl;
use super::saved_answer::question_of;
use super::sweep::point::{PointEvaluator, given_outcome, status};
use crate::report::comparison::{ComparedProblem, ComparedRow, ComparisonReport};
use crate::report::inputs::ReportInputs;
use crate::report::rendered::Answer;
use crate::report::result::{EstimateResult, OptimizeResult};
use crate::report::sweep::PointOutcome;
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;

/// Maximum number of answers: more do not fit next to each other, and are a sweep.
pub const MOST_COMPARED: usize = 8;

/// An answer, or the scenario that has one.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ComparedEntry {
    /// Its name in the report.
    pub name: String,
    /// A saved result of `optimize` or `estimate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// A scenario: estimated where it has a deployment, else optimized.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<Scenario>,
}

/// A request of `compare`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CompareRequest {
    /// Answers and scenarios.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<ComparedEntry>,
    /// Systems to answer `scenario` on, after the entries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hardware: Vec<String>,
    /// The scenario of those systems.
    pub scenario: Scenario,
}

/// Compares answers; the ratios are to the first.
///
/// # Errors
/// An entry is neither a result nor a scenario, a name is unknown, or there are too many. An answer that does not run
/// is a row with its reason.
pub fn compare(
    catalog: &Catalog,
    request: &CompareRequest,
    control: &RequestControl,
) -> Result<ComparisonReport, Error> {
    let systems = request.hardware.iter().map(|name| ComparedEntry {
        name: name.clone(),
        result: None,
        scenario: Some(Scenario { hardware: Some(name.clone()), ..request.scenario.clone() }),
    });
    let entries: Vec<ComparedEntry> = request.entries.iter().cloned().chain(systems).collect();
    if !(2..=MOST_COMPARED).contains(&entries.len()) {
        let found = format!("{}", entries.len());
        let expected = format!("2 to {MOST_COMPARED} answers");
        let fix = "name files, or --hardware 8xh100,8xh200; `mantile-opt sweep` takes more";
        return Err(Error::new("entries", found, expected, fix));
    }
    let evaluator = PointEvaluator::new(catalog);
    let named = entries.iter().filter_map(|entry| entry.scenario.as_ref().map(|scenario| (entry, scenario)));
    for (entry, scenario) in named {
        evaluator.check_names(scenario).map_err(|fault| fault.in_file(&entry.name))?;
    }
    let mut rows = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        (control.search.progress)(at, entries.len());
        rows.push(row(&evaluator, entry, control)?);
    }
    Ok(ComparisonReport::of(rows))
}

fn row(
    evaluator: &PointEvaluator,
    entry: &ComparedEntry,
    control: &RequestControl,
) -> Result<ComparedRow, Error> {
    match (&entry.result, &entry.scenario) {
        (Some(result), None) => saved(&entry.name, result).map_err(|fault| fault.in_file(&entry.name)),
        (None, Some(scenario)) => {
            let PointOutcome { status, reason, deployment } = evaluator.outcome(scenario, control);
            let problem = match evaluator.resolved(scenario) {
                Ok(problem) => problem,
                // A scenario that does not resolve is a row with its own names.
                Err(_) => ComparedProblem {
                    model: scenario.model.clone().unwrap_or_default(),
                    hardware: scenario.hardware.clone().unwrap_or_default(),
                    ..ComparedProblem::default()
                },
            };
            let problem = ComparedProblem { name: entry.name.clone(), ..problem };
            Ok(ComparedRow::new(problem, status, reason, deployment))
        }
        (Some(_), Some(_)) | (None, None) => {
            let fix = "give `result` or `scenario`";
            Err(Error::new("entries", "both or neither", "a result or a scenario", fix))
        }
    }
}

fn saved(name: &str, result: &Value) -> Result<ComparedRow, Error> {
    let of = |inputs: &ReportInputs| ComparedProblem {
        name: name.to_owned(),
        model: inputs.model.clone(),
        hardware: inputs.hardware.clone(),
        runtime: inputs.runtime.clone(),
        lengths: [inputs.isl, inputs.osl],
    };
    let question = question_of(result);
    if question == Some(OptimizeResult::QUESTION) {
        let found: OptimizeResult = from_json(&result.to_string(), "a result")?;
        let reason = found.nearest.map(|nearest| nearest.misses);
        return Ok(ComparedRow::new(of(&found.question), status(found.status), reason, found.best));
    }
    if question == Some(EstimateResult::QUESTION) {
        let found: EstimateResult = from_json(&result.to_string(), "an estimate")?;
        let PointOutcome { status, reason, deployment } = given_outcome(found.candidate);
        return Ok(ComparedRow::new(of(&found.question), status, reason, deployment));
    }
    let fix = "save one with `mantile-opt ... --format json --out answer.json`";
    Err(Error::new("result", "another file", "a JSON result of `optimize` or `estimate`", fix))
}
