//! Saved answers and bundles as input: the scenario and the plan of one of their rows.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::REQUESTS;
use super::bundle::{is_bundle, read_bundle};
use super::fleet::route_scenario;
use super::recommend::explore::build_scenario;
use super::wording::ANSWER;
use crate::report::fleet::FleetResult;
use crate::report::place::PlacementResult;
use crate::report::recommend::report::RecommendReport;
use crate::report::recommend::{Build, Recommendation};
use crate::report::rendered::Answer;
use crate::report::result::{EstimateResult, OptimizeResult};
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::spec::text::from_json;

/// The question of a saved answer; none where the value is no answer.
///
/// An answer names its question. Those saved before it did are known by keys that only they have.
pub fn question_of(saved: &Value) -> Option<&'static str> {
    let named = saved.get(ANSWER).and_then(Value::as_str);
    if let Some(name) = named {
        return REQUESTS.iter().map(|entry| entry.name).find(|known| *known == name);
    }
    let of_key = BY_KEY.iter().find(|(keys, _)| keys.iter().all(|key| saved.get(key).is_some()));
    of_key.map(|(_, question)| *question)
}

/// Keys of which all are in the answers to one question.
const BY_KEY: [(&[&str], &str); 6] = [
    (&["front"], OptimizeResult::QUESTION),
    (&["placement"], PlacementResult::QUESTION),
    (&["routes"], FleetResult::QUESTION),
    (&["builds"], RecommendReport::QUESTION),
    (&["models"], RecommendReport::QUESTION),
    (&["notation", "question"], EstimateResult::QUESTION),
];

/// Whether the text is a saved answer or a bundle, not a deployment or a scenario.
pub fn is_saved_answer(text: &str) -> bool {
    serde_json::from_str(text).is_ok_and(|saved| is_answer(&saved))
}

fn is_answer(saved: &Value) -> bool {
    is_bundle(saved) || question_of(saved).is_some()
}

/// The scenario of a saved answer, a bundle or a deployment in JSON; fields of `scenario` and `deployment` take
/// precedence. `row` selects a row of the answer.
///
/// # Errors
/// The text is none of them, or the answer does not contain the row.
pub fn of_saved(
    text: &str,
    row: Option<&str>,
    scenario: &Scenario,
    deployment: &Deployment,
) -> Result<(Scenario, Deployment), Error> {
    let saved: Value = from_json(text, "a saved answer, a bundle or a deployment")?;
    if !is_answer(&saved) {
        let filed: Deployment = from_json(text, "a deployment")?;
        return Ok((scenario.clone(), deployment.clone().or(filed)));
    }
    let (filed, plan) = saved_row(&saved, row)?;
    let plan = deployment.plan.clone().unwrap_or(plan);
    Ok((scenario.clone().or(filed), Deployment { plan: Some(plan), ..deployment.clone() }))
}

/// The scenario of a row, without its deployment, and its plan in one line.
fn saved_row(saved: &Value, row: Option<&str>) -> Result<(Scenario, String), Error> {
    if is_bundle(saved) {
        let bundle = read_bundle(saved)?;
        let (filed, plan) = saved_row(&bundle.answer, row)?;
        let scenario = bundle.question.get("scenario").cloned().unwrap_or_default();
        let scenario =
            if scenario.is_object() { read(&scenario, "a scenario")? } else { Scenario::default() };
        return Ok((filed.or(scenario), plan));
    }
    let deployed = match question_of(saved) {
        Some(PlacementResult::QUESTION) => {
            let fix = "`mantile-opt explain --from` explains its times, `mantile-opt verify` estimates it again, \
                       `mantile-opt place --detail` lists its stages; or state a deployment of one of its devices";
            let found =
                "a placement of `place`: its layers are on unlike devices, and no deployment has them";
            return Err(Error::new("placement", found, "an answer with deployments", fix));
        }
        Some(FleetResult::QUESTION) => {
            let result: FleetResult = read(saved, "a fleet")?;
            let at = numbered(row, "routes", result.routes.len())?;
            route_scenario(&result, at)?
        }
        Some(RecommendReport::QUESTION) => match read(saved, "a recommendation")? {
            RecommendReport::Hardware(result) => build_scenario(&result.scenario, build(&result, row)?),
            RecommendReport::Models(result) => {
                let at = numbered(row, "models", result.models.len())?;
                build_scenario(&result.scenario, &result.models[at].build)
            }
        },
        _ => return plan_row(saved, row),
    };
    let plan = deployed.deployment.as_ref().and_then(|deployment| deployment.plan.clone());
    Ok((Scenario { deployment: None, ..deployed }, plan.unwrap_or_default()))
}

fn read<T: DeserializeOwned>(saved: &Value, name: &str) -> Result<T, Error> {
    from_json(&saved.to_string(), name)
}

fn no_row(picked: &str, expected: String) -> Error {
    Error::new("pick", format!("`{picked}`"), expected, "name a row that the answer contains")
}

/// The index of `list/N`, the first if absent.
fn numbered(row: Option<&str>, list: &str, rows: usize) -> Result<usize, Error> {
    let picked = row.map_or_else(|| format!("{list}/0"), str::to_owned);
    let at = picked.split_once('/').filter(|(name, _)| *name == list).and_then(|(_, at)| at.parse().ok());
    at.filter(|at| *at < rows).ok_or_else(|| {
        let expected = match rows {
            0 => format!("an answer with {list}, which this is not"),
            _ => format!("{list}/0 to {list}/{}", rows - 1),
        };
        no_row(&picked, expected)
    })
}

/// The build that `row` names, the first choice if absent.
fn build<'a>(result: &'a Recommendation, row: Option<&str>) -> Result<&'a Build, Error> {
    let found = match row {
        None => result.first(),
        Some("minimum") => result.minimum.as_ref(),
        Some("cheapest") => result.cheapest.as_ref(),
        Some("value") => result.value.as_ref(),
        Some(_) => Some(&result.builds[numbered(row, "builds", result.builds.len())?]),
    };
    found.ok_or_else(|| {
        let expected = "minimum, cheapest, value or builds/N, where the answer has it".to_owned();
        no_row(row.unwrap_or("minimum"), expected)
    })
}

/// A row of `optimize`, or the row that an answer of `estimate` is.
fn plan_row(saved: &Value, row: Option<&str>) -> Result<(Scenario, String), Error> {
    let row = row_of(saved, row)?;
    let plan = row.get("notation").and_then(Value::as_str).ok_or_else(|| {
        let fix = "save the result again with `mantile-opt ... --format json --out answer.json`";
        Error::new("notation", "no one-line plan", "the plan of that row", fix)
    })?;
    let filed = match saved.get("scenario") {
        Some(scenario) if scenario.is_object() => read(scenario, "scenario")?,
        _ => Scenario::default(),
    };
    Ok((Scenario { deployment: None, ..filed }, plan.to_owned()))
}

fn row_of<'a>(saved: &'a Value, row: Option<&str>) -> Result<&'a Value, Error> {
    let picked = row.unwrap_or("best");
    // A result of `estimate` is itself a row.
    let whole = (row.is_none() && saved.get("best").is_none()).then_some(saved);
    let found = whole.or_else(|| match picked.split_once('/') {
        Some((list, at)) => saved.get(list)?.get(at.parse::<usize>().ok()?),
        None => saved.get(picked).map(|row| row.get("candidate").unwrap_or(row)),
    });
    found.filter(|row| row.is_object()).ok_or_else(|| {
        let found = format!("`{picked}`, which the result does not contain");
        let fix = "set --pick to best, nearest, alternatives/0 … or front/0 …";
        Error::new("pick", found, "a row of the result", fix)
    })
}
