//! Reads a saved placement as stages on the devices of a problem, checked against the formulas.

use serde_json::Value;

use super::super::{differences, figure, off, rows, value};
use crate::report::place::build::placement_report;
use crate::search::placement::chain::Stage;
use crate::search::placement::evaluate::{PlacementEvaluator, ReplicatedStages, StageCost};
use crate::search::placement::price::{DeviceGroup, PAGE};

/// Sums of layers and whole stages are the same formulas added up in another order, in whole picoseconds.
const ADDED_UP: f64 = 1e-6;

/// A saved placement as stages on the devices of one problem.
pub(super) struct SavedPlacement<'a, 'q> {
    pub(super) evaluator: &'a PlacementEvaluator<'q>,
    pub(super) stages: Vec<Stage>,
    /// Pages of its host that each member takes, where members share one.
    pub(super) host_shares: Option<Vec<u64>>,
    /// Stages shared by equal devices.
    pub(super) replicated: Option<ReplicatedStages>,
}

/// The further devices of each stage, if any stage has several.
///
/// # Errors
/// Copies that are not equal devices, and requests that do not spread evenly.
fn read_replicated(
    scales: &PlacementEvaluator,
    stages: &[Stage],
    placement: &Value,
) -> Result<Option<ReplicatedStages>, Vec<String>> {
    let problem = scales.question();
    let mut copies: Vec<Vec<usize>> = Vec::new();
    for (at, (told, stage)) in rows(placement, "stages").into_iter().zip(stages).enumerate() {
        let first = &problem.members[stage.member];
        let mut others = Vec::new();
        for name in rows(told, "copies").into_iter().filter_map(Value::as_str) {
            let like = |offer: &DeviceGroup| offer.name == name;
            let taken = |member: &usize| {
                stages.iter().any(|stage| stage.member == *member)
                    || copies.iter().flatten().chain(&others).any(|other| other == member)
            };
            let member = problem
                .members
                .iter()
                .position(like)
                .filter(|member| !taken(member) && scales.alike(stage.member, *member));
            let fault =
                || vec![format!("stage {at}: {name} is not a further device equal to {}", first.name)];
            others.push(member.ok_or_else(fault)?);
        }
        copies.push(others);
    }
    if copies.iter().all(Vec::is_empty) {
        return Ok(None);
    }
    let number = |key: &str| placement[key].as_u64().unwrap_or(0);
    let batches = (number("micro_batches"), number("requests_each"));
    let dealt = ReplicatedStages { copies, batches };
    let members: u64 = (0..stages.len()).map(|at| dealt.held_by(at)).sum();
    let even = (0..stages.len()).all(|at| batches.0.is_multiple_of(dealt.held_by(at)));
    if !even || batches.0 < members || batches.1 != problem.concurrency.div_ceil(batches.0) {
        return Err(vec![format!(
            "saved {} micro-batches of {} requests, {} requests must be spread evenly over {members} devices",
            batches.0, batches.1, problem.concurrency
        )]);
    }
    Ok(Some(dealt))
}

/// The stages of `placement` on the devices of a problem.
pub(super) fn read<'a, 'q>(
    scales: &'a PlacementEvaluator<'q>,
    placement: &Value,
) -> Result<SavedPlacement<'a, 'q>, Vec<String>> {
    let problem = scales.question();
    let layers = problem.graph.layer_block.len();
    let (mut stages, mut faults): (Vec<Stage>, Vec<String>) = (Vec::new(), Vec::new());
    let told = rows(placement, "stages");
    let mut parts = vec![0; problem.members.len()];
    for (at, stage) in told.iter().enumerate() {
        let (name, devices) = (stage["member"].as_str().unwrap_or_default(), stage["devices"].as_u64());
        let known = |offer: &DeviceGroup| offer.name == name && Some(offer.devices) == devices;
        let Some(member) = problem.members.iter().position(known) else {
            let devices = devices.map_or_else(|| "no number".to_owned(), |devices| devices.to_string());
            return Err(vec![format!("stage {at}: {name} of {devices} devices is unknown")]);
        };
        if let Some(key) =
            ["first_layer", "last_layer", "layers"].into_iter().find(|key| !stage[*key].is_u64())
        {
            return Err(vec![format!("stage {at}: saved {key} {}, expected an integer", stage[key])]);
        }
        let number = |key: &str| stage[key].as_u64().map_or(usize::MAX, |number| number as usize);
        let (from, last, held) = (number("first_layer"), number("last_layer"), number("layers"));
        let expected = stages.last().map_or(0, |before: &Stage| before.to);
        if from != expected || last < from || last >= layers {
            faults.push(format!(
                "stage {at}: saved layers {from} to {last}, must begin with {expected} and end below {layers}"
            ));
            return Err(faults);
        }
        let to = last + 1;
        if held != to - from {
            faults.push(format!("stage {at}: saved {held} layers, {from} to {last} are {}", to - from));
        }
        for (key, expected) in [("embedding", from == 0), ("head", to == layers)] {
            if stage[key].as_bool() != Some(expected) {
                faults.push(format!("stage {at}: saved {key} {}, recomputed {expected}", stage[key]));
            }
        }
        if stages.iter().any(|other: &Stage| other.member == member) {
            faults.push(format!("stage {at}: {name} already holds another stage"));
        }
        let pages = |key: &str| PlacementEvaluator::pages(figure(stage, key));
        parts[member] = pages("offloaded_bytes").saturating_sub(pages("disk_bytes"));
        stages.push(Stage { member, from, to });
    }
    let end = stages.last().map_or(0, |stage| stage.to);
    if end != layers {
        faults.push(format!("stages end with layer {end}, the model has {layers}"));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let shared = !scales.priced(stages.len()).chain.hosts.is_empty();
    let dealt = read_replicated(scales, &stages, placement)?;
    Ok(SavedPlacement { evaluator: scales, stages, host_shares: shared.then_some(parts), replicated: dealt })
}

impl SavedPlacement<'_, '_> {
    fn stage_costs(&self) -> Vec<StageCost> {
        let load = |at: usize| match &self.replicated {
            Some(dealt) => (dealt.batches.1, dealt.batches.0 / dealt.held_by(at) * dealt.batches.1),
            None => (self.evaluator.batches(self.stages.len()).1, self.evaluator.question().concurrency),
        };
        self.stages.iter().enumerate().map(|(at, stage)| self.evaluator.stage_cost(stage, load(at))).collect()
    }

    /// Checks the memory of each stage and shared host against the formulas.
    pub(super) fn memory(&self, placement: &Value) -> Vec<String> {
        let mut faults = Vec::new();
        for ((at, stage), whole) in rows(placement, "stages").into_iter().enumerate().zip(self.stage_costs())
        {
            let layers = (self.stages[at].to - self.stages[at].from) as f64;
            let (held, out) = (figure(stage, "memory_bytes"), figure(stage, "offloaded_bytes"));
            // Each part is rounded to whole pages.
            let pages = PAGE * (layers + 4.0);
            if !(whole.bytes..=whole.bytes + pages).contains(&held) {
                faults.push(format!("stage {at}: saved {held} B, recomputed {} B", whole.bytes));
            }
            if whole.bytes > whole.usable + out {
                let room = whole.usable + out;
                faults.push(format!("stage {at}: {} B needed, {room} B available", whole.bytes));
            }
        }
        let problem = self.evaluator.question();
        for host in &self.evaluator.priced(self.stages.len()).chain.hosts {
            let part = |member: &usize| self.host_shares.as_ref().map_or(0, |parts| parts[*member]);
            let taken: u64 = host.members.iter().map(|(member, devices)| devices * part(member)).sum();
            if taken > host.pages {
                let who = &problem.members[host.members[0].0].name;
                let (taken, there) = (taken as f64 * PAGE, host.pages as f64 * PAGE);
                faults.push(format!("the host of {who}: {taken} B used, {there} B available"));
            }
        }
        faults
    }

    /// Checks the times of each stage without offloading against the formulas.
    pub(super) fn times(&self, placement: &Value) -> Vec<String> {
        let each = rows(placement, "stages").into_iter().enumerate().zip(self.stage_costs());
        let held = each.filter(|((_, stage), _)| figure(stage, "offloaded_bytes") == 0.0);
        held.filter_map(|((at, stage), whole)| {
            let told = figure(stage, "decode_ms") - figure(stage, "send_ms");
            off(&format!("stage {at}: ms of a decode step"), told, 1e3 * whole.decode, ADDED_UP)
        })
        .collect()
    }

    /// Re-evaluates the whole placement and compares every field.
    pub(super) fn again(&self, placement: &Value) -> Vec<String> {
        let told = match self.evaluator.to_solved(
            &self.stages,
            self.host_shares.clone(),
            self.replicated.as_ref(),
        ) {
            Ok(solved) => placement_report(self.evaluator.question(), &solved),
            Err(short) => {
                let name = &self.evaluator.question().members[short.member].name;
                let lack = short.pages as f64 * PAGE;
                return vec![if short.pages == 0 {
                    format!("{name} cannot hold its stage, or sends to a device without a link")
                } else {
                    format!("{name} cannot hold its stage: short by {lack} B")
                }];
            }
        };
        let mut faults = Vec::new();
        differences("placement", placement, &value(&told), &mut faults);
        faults
    }
}
