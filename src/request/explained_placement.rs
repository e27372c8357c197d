//! `explain` of a placement: its times, traced through the stages and links of a saved answer of `place`.

use serde_json::Value;

use super::bundle::{is_bundle, read_bundle};
use super::place::solve::rig_problems;
use super::saved_answer::question_of;
use crate::quantity::num::Qty;
use crate::quantity::read::Reading;
use crate::report::place::{PlacementReport, PlacementResult};
use crate::report::rendered::Answer;
use crate::search::placement::chain::Stage;
use crate::search::placement::price::{DeviceGroup, PlacementProblem};
use crate::search::placement::traced::{PlacementTimes, placement_times};
use crate::spec::error::Error;
use crate::spec::placing::{PlacementObjective, PlacementScenario};
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;

/// The answer of `place` that a text is, alone or in a bundle; none if it is something else.
pub fn saved_placement(text: &str) -> Result<Option<Value>, Error> {
    let Ok(saved) = serde_json::from_str::<Value>(text) else { return Ok(None) };
    let answer = if is_bundle(&saved) { read_bundle(&saved)?.answer } else { saved };
    Ok((question_of(&answer) == Some(PlacementResult::QUESTION)).then_some(answer))
}

fn fault(found: impl Into<String>, expected: &str, fix: &str) -> Error {
    Error::new("placement", found.into(), expected, fix)
}

/// A placement whose times can be traced.
pub(super) struct ExplainedPlacement {
    problem: PlacementProblem,
    stages: Vec<Stage>,
    requests_each: u64,
    /// The placement in words.
    pub(super) words: String,
}

impl ExplainedPlacement {
    pub(super) fn times<R: Reading>(&self, read: &R) -> PlacementTimes<Qty<R::N>> {
        placement_times(read, &self.problem, &self.stages, self.requests_each)
    }
}

/// The placement of a saved answer, or the reason why there is none.
///
/// # Errors
/// The answer is not one of `place`, its problem no longer resolves, or part of the placement is in host memory.
pub(super) fn explained_placement(
    catalog: &Catalog,
    saved: &Value,
) -> Result<Result<ExplainedPlacement, String>, Error> {
    let saved: PlacementResult = from_json(&saved.to_string(), "a placement")?;
    let Some(placed) = &saved.placement else {
        let reason = "no feasible placement, so no number to explain; `place` reports the reasons";
        return Ok(Err(reason.to_owned()));
    };
    if let Some(stage) = placed.stages.iter().find(|stage| stage.offloaded_bytes > 0.0) {
        let fix = "explain a placement that fits in device memory";
        let found = format!("{}, part of which is in host memory", stage.member);
        let expected = "stages in device memory: pages elsewhere have a price, not a formula";
        return Err(fault(found, expected, fix));
    }
    let again = "save the answer again with `mantile-opt place ... --format json --out answer.json`";
    let scenario = saved.scenario.clone().ok_or_else(|| fault("no scenario", "the problem", again))?;
    // The longest context and the largest model are in the resolved problem.
    let scenario = PlacementScenario {
        model: Some(saved.question.model.clone()),
        isl: Some(saved.question.isl),
        osl: Some(saved.question.osl),
        prefix: Some(saved.question.prefix),
        concurrency: Some(saved.question.concurrency),
        objective: PlacementObjective::Latency,
        ..scenario
    };
    let rigs = rig_problems(catalog, &scenario)?.into_iter();
    let same = rigs.filter(|rigged| rigged.runtimes.iter().map(|own| &own.id).eq(&saved.question.runtimes));
    let found = same.flat_map(|rigged| rigged.problems).find_map(|problem| {
        let stages = stages(&problem, placed)?;
        Some((problem, stages))
    });
    let (problem, stages) =
        found.ok_or_else(|| fault("stages of other devices", "those of the rig", again))?;
    let held: Vec<String> = placed
        .stages
        .iter()
        .map(|stage| format!("{} layers {}-{}", stage.member, stage.first_layer, stage.last_layer))
        .collect();
    let words = format!("{} on {}: {}", saved.question.model, saved.question.rig, held.join(", "));
    Ok(Ok(ExplainedPlacement { problem, stages, requests_each: placed.requests_each, words }))
}

/// The stages of a saved placement in a problem; none where its members are others.
fn stages(problem: &PlacementProblem, placed: &PlacementReport) -> Option<Vec<Stage>> {
    let each = placed.stages.iter().map(|stage| {
        let same = |member: &DeviceGroup| member.name == stage.member && member.devices == stage.devices;
        let member = problem.members.iter().position(same)?;
        Some(Stage { member, from: stage.first_layer, to: stage.last_layer + 1 })
    });
    each.collect()
}
