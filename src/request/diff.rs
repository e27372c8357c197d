//! `diff`: two answers, bundles or scenarios compared, with the part of each metric's change that each input explains.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::bundle::{BundledFile, is_bundle, read_bundle};
use super::estimate::{EstimateRequest, estimate};
use super::optimize::{OptimizeRequest, optimize};
use super::saved_answer::question_of;
use super::wording::ANSWER;
use super::{RequestControl, value};
use crate::report::answer_diff::{AnswerDiff, DifferenceEffect, InputDifference, MetricDifference};
use crate::report::rendered::Answer;
use crate::report::result::{EstimateResult, OptimizeResult, ReportedDeployment};
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::objective::METRICS;
use crate::spec::scenario::Scenario;
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;

/// A request of `diff`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiffRequest {
    /// A saved answer of `optimize` or `estimate`, a bundle, or a scenario.
    pub a: Value,
    /// Another one.
    pub b: Value,
}

/// Most differences for which every mixture is evaluated: 2⁶ evaluations.
const MOST_MIXED: usize = 6;
/// Keys that decide together whether a plan runs.
const TOGETHER: [&str; 16] = [
    "model",
    "hardware",
    "host",
    "host_memory",
    "p2p",
    "network",
    "runtime",
    "runtime_version",
    "weight_format",
    "prefill_weight_format",
    "decode_weight_format",
    "kv_format",
    "draft",
    "draft_tokens",
    "offload",
    PLAN,
];
const PLAN: &str = "plan";

/// Compares two answers.
///
/// # Errors
/// One of them is no answer, bundle or scenario, or nothing meets its limits.
pub fn diff(catalog: &Catalog, request: &DiffRequest, control: &RequestControl) -> Result<AnswerDiff, Error> {
    let named = |side: &str, fault: Error| Error { key: format!("{side}.{}", fault.key), ..fault };
    let a = keys(&side(catalog, &request.a, control).map_err(|fault| named("a", fault))?);
    let b = keys(&side(catalog, &request.b, control).map_err(|fault| named("b", fault))?);
    let names = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
    let differing: Vec<String> = names.filter(|key| a.get(*key) != b.get(*key)).cloned().collect();
    let mixer = ScenarioMixer { catalog, control, a: &a, b: &b, searches: false };
    let single: Vec<Vec<String>> = differing.iter().map(|key| vec![key.clone()]).collect();
    let (structure, others): (Vec<String>, Vec<String>) =
        differing.iter().cloned().partition(|key| TOGETHER.contains(&key.as_str()));
    let unplanned: Vec<Vec<String>> = single.iter().filter(|keys| keys[0] != PLAN).cloned().collect();
    let mut grouped: Vec<Vec<String>> = others.into_iter().map(|key| vec![key]).collect();
    if !structure.is_empty() {
        grouped.insert(0, structure);
    }
    // Each input by itself; else with the best plan of every mixture; else those that run only together as one.
    let searching = ScenarioMixer { searches: true, ..mixer };
    let ways = [(&mixer, &single), (&searching, &unplanned), (&mixer, &grouped)];
    let found = ways.into_iter().find_map(|(mixer, players)| Some((mixer, players, mixer.all(players)?)));
    let (mixer, players, mixtures) = match &found {
        Some((mixer, players, mixtures)) => (*mixer, *players, Some(mixtures)),
        None => (&mixer, &single, None),
    };
    let inputs = players.iter().enumerate().map(|(at, keys)| mixer.difference(players, at, keys, mixtures));
    let inputs = inputs.collect();
    let plans = [&a, &b].map(|side| side.get(PLAN).map(text_of).unwrap_or_default());
    Ok(AnswerDiff {
        inputs,
        plans,
        searched: mixer.searches,
        metrics: mixer.metrics(),
        files: files(request)?,
    })
}

/// Questions whose answers have a deployment on equal devices.
const DEPLOYED: [&str; 2] = [OptimizeResult::QUESTION, EstimateResult::QUESTION];

/// The scenario of one side with its plan.
fn side(catalog: &Catalog, saved: &Value, control: &RequestControl) -> Result<Scenario, Error> {
    let (scenario, answer) = if is_bundle(saved) {
        let bundle = read_bundle(saved)?;
        let scenario = bundle.question.get("scenario").cloned().unwrap_or_default();
        (scenario, bundle.answer)
    } else if let Some(question) = question_of(saved).filter(|question| !DEPLOYED.contains(question)) {
        let found = format!("an answer of `{question}`");
        let expected = "an answer of `optimize` or `estimate`, a bundle or a scenario";
        let fix = "save one with `mantile-opt ... --json --out answer.json`";
        return Err(Error::new(ANSWER, found, expected, fix));
    } else if question_of(saved).is_some() {
        (saved.get("scenario").cloned().unwrap_or_default(), saved.clone())
    } else {
        (saved.clone(), Value::Null)
    };
    if !scenario.is_object() {
        let fix = "save one with `mantile-opt ... --json --out answer.json`, or as a bundle";
        return Err(Error::new("scenario", "no problem", "a saved answer, a bundle or a scenario", fix));
    }
    let scenario: Scenario = from_json(&scenario.to_string(), "a scenario")?;
    if scenario.deployment.as_ref().is_some_and(Deployment::is_stated) {
        return Ok(scenario);
    }
    let best = answer.pointer("/best/notation").and_then(Value::as_str).map(str::to_owned);
    let notation = match best {
        Some(best) => Some(best),
        None => {
            let found = optimize(catalog, &OptimizeRequest::best_of(scenario.clone()), control)?;
            found.best.map(|best| best.notation)
        }
    };
    let notation = notation.ok_or_else(|| {
        let fix = "compare answers that have a deployment";
        Error::new("best", "no deployment that meets the limits", "a deployment", fix)
    })?;
    let deployment = Deployment { plan: Some(notation), ..Deployment::default() };
    Ok(Scenario { deployment: Some(deployment), ..scenario })
}

/// The keys of a scenario, its deployment as the plan.
fn keys(scenario: &Scenario) -> Map<String, Value> {
    let Value::Object(mut keys) = value(scenario) else { return Map::new() };
    if let Some(mut plan) = keys.remove("deployment") {
        let only = plan.as_object_mut().filter(|plan| plan.len() == 1).and_then(|plan| plan.remove(PLAN));
        keys.insert(PLAN.to_owned(), only.unwrap_or(plan));
    }
    keys
}

fn scenario(mut keys: Map<String, Value>) -> Result<Scenario, Error> {
    if let Some(plan) = keys.remove(PLAN) {
        let plan = if plan.is_string() { serde_json::json!({PLAN: plan}) } else { plan };
        keys.insert("deployment".to_owned(), plan);
    }
    from_json(&Value::Object(keys).to_string(), "a scenario")
}

/// A value without quotes.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn files(request: &DiffRequest) -> Result<Vec<String>, Error> {
    if !is_bundle(&request.a) || !is_bundle(&request.b) {
        return Ok(vec![]);
    }
    let (a, b) = (read_bundle(&request.a)?, read_bundle(&request.b)?);
    let other = |file: &&BundledFile| {
        let same = b.files.iter().find(|one| (&one.folder, &one.name) == (&file.folder, &file.name));
        same.is_some_and(|one| one.sha256 != file.sha256)
    };
    Ok(a.files.iter().filter(other).map(|file| format!("{}/{}", file.folder, file.name)).collect())
}

/// Evaluates mixtures of two scenarios.
#[derive(Clone, Copy)]
struct ScenarioMixer<'a> {
    catalog: &'a Catalog,
    control: &'a RequestControl<'a>,
    a: &'a Map<String, Value>,
    b: &'a Map<String, Value>,
    /// Whether every mixture has its own best plan.
    searches: bool,
}

/// The metrics of a mixture, in the order of the table.
type Mixture = Vec<Option<f64>>;

impl ScenarioMixer<'_> {
    /// The metrics with these keys of B and all others of A; `None` where this does not run.
    fn mixture<'k>(&self, of_b: impl Iterator<Item = &'k String>) -> Option<Mixture> {
        let mut keys = self.a.clone();
        for key in of_b {
            match self.b.get(key) {
                Some(value) => keys.insert(key.clone(), value.clone()),
                None => keys.remove(key),
            };
        }
        let found: ReportedDeployment = if self.searches {
            keys.remove(PLAN);
            let request = OptimizeRequest::best_of(scenario(keys).ok()?);
            optimize(self.catalog, &request, self.control).ok()?.best?
        } else {
            estimate(self.catalog, &EstimateRequest::of(scenario(keys).ok()?), self.control).ok()?.candidate
        };
        found.metrics.is_some().then(|| METRICS.iter().map(|entry| found.figure(entry.metric)).collect())
    }

    /// Every mixture, by the set of players of B; `None` where one does not run, or where there are too many.
    fn all(&self, players: &[Vec<String>]) -> Option<Vec<Mixture>> {
        if players.len() > MOST_MIXED {
            return None;
        }
        let chosen = |set: usize| (0..players.len()).filter(move |at| set >> at & 1 == 1);
        (0..1usize << players.len())
            .map(|set| self.mixture(chosen(set).flat_map(|at| &players[at])))
            .collect()
    }

    fn metrics(&self) -> Vec<MetricDifference> {
        let a = self.mixture([].into_iter());
        let b = self.mixture(self.b.keys().chain(self.a.keys()));
        let each = METRICS.iter().enumerate().map(|(at, entry)| MetricDifference {
            column: entry.column.to_owned(),
            a: a.as_ref().and_then(|a| a[at]),
            b: b.as_ref().and_then(|b| b[at]),
        });
        each.collect()
    }

    fn difference(
        &self,
        players: &[Vec<String>],
        at: usize,
        keys: &[String],
        mixtures: Option<&Vec<Mixture>>,
    ) -> InputDifference {
        let text = |side: &Map<String, Value>, key: &String| side.get(key).map(text_of).unwrap_or_default();
        let base = self.mixture([].into_iter());
        let alone = self.mixture(keys.iter());
        let effects = METRICS.iter().enumerate().filter_map(|(metric, entry)| {
            let before = base.as_ref()?[metric]?;
            let alone = alone.as_ref().and_then(|alone| alone[metric]).map(|after| after - before);
            let part = mixtures.and_then(|mixtures| shapley(players.len(), at, |set| mixtures[set][metric]));
            Some(DifferenceEffect { column: entry.column.to_owned(), alone, part })
        });
        InputDifference {
            names: keys.to_vec(),
            a: keys.iter().map(|key| text(self.a, key)).collect(),
            b: keys.iter().map(|key| text(self.b, key)).collect(),
            effects: effects.collect(),
        }
    }
}

/// The Shapley value of player `at` of `players`: the mean change that it makes over all orders of the players.
fn shapley(players: usize, at: usize, value_of: impl Fn(usize) -> Option<f64>) -> Option<f64> {
    let factorial = |n: usize| (1..=n).map(|k| k as f64).product::<f64>();
    let without = (0..1usize << players).filter(|set| set >> at & 1 == 0);
    without
        .map(|set| {
            let before = set.count_ones() as usize;
            let weight = factorial(before) * factorial(players - before - 1) / factorial(players);
            Some(weight * (value_of(set | 1 << at)? - value_of(set)?))
        })
        .sum()
}
