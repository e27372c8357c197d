//! A saved placement as stages on the devices of one problem.

use super::super::off;
use crate::quantity::tolerance::QUANTIZED;
use crate::report::place::{PlacementReport, StageReport};
use crate::search::placement::chain::Stage;
use crate::search::placement::evaluate::{PlacementEvaluator, ReplicatedStages, StageCost};
use crate::search::placement::price::{DeviceGroup, PAGE};
use crate::search::placement::solve::SolvedPlacement;

/// A saved placement as stages on the devices of one problem.
pub(super) struct SavedStages<'a, 'q> {
    pub(super) evaluator: &'a PlacementEvaluator<'q>,
    pub(super) stages: Vec<Stage>,
    /// Pages of its host that each member takes, where members share one.
    host_shares: Option<Vec<u64>>,
    /// Stages shared by equal devices.
    replicated: Option<ReplicatedStages>,
}

/// A saved stage as a stage that begins with layer `from`.
fn stage(evaluator: &PlacementEvaluator, before: &[Stage], saved: &StageReport) -> Result<Stage, String> {
    let problem = evaluator.question();
    let (name, layers) = (&saved.member, problem.graph.layer_block.len());
    let known = |group: &DeviceGroup| group.name == *name && group.devices == saved.devices;
    let unknown = || format!("{name} of {} devices is unknown", saved.devices);
    let member = problem.members.iter().position(known).ok_or_else(unknown)?;
    if before.iter().any(|other| other.member == member) {
        return Err(format!("{name} already holds another stage"));
    }
    let from = before.last().map_or(0, |last| last.to);
    let (first, last) = (saved.first_layer, saved.last_layer);
    if first != from || last < from || last >= layers {
        return Err(format!("saved layers {first} to {last}, must begin with {from} and end below {layers}"));
    }
    let to = last + 1;
    if saved.layers != to - from {
        return Err(format!("saved {} layers, {from} to {last} are {}", saved.layers, to - from));
    }
    Ok(Stage { member, from, to })
}

/// The further devices of each stage.
fn copies(
    evaluator: &PlacementEvaluator,
    stages: &[Stage],
    saved: &[StageReport],
) -> Result<Vec<Vec<usize>>, String> {
    let members = &evaluator.question().members;
    let mut taken: Vec<usize> = stages.iter().map(|stage| stage.member).collect();
    let mut copies = Vec::new();
    for (at, (saved, stage)) in saved.iter().zip(stages).enumerate() {
        let mut others = Vec::new();
        for name in &saved.copies {
            let is_copy = |member: &usize| {
                members[*member].name == *name
                    && !taken.contains(member)
                    && evaluator.alike(stage.member, *member)
            };
            let member = (0..members.len()).find(is_copy).ok_or_else(|| {
                let first = &members[stage.member].name;
                format!("stage {at}: {name} is not a further device equal to {first}")
            })?;
            taken.push(member);
            others.push(member);
        }
        copies.push(others);
    }
    Ok(copies)
}

/// Stages shared by equal devices: their requests are spread evenly.
fn replicated(
    concurrency: u64,
    copies: Vec<Vec<usize>>,
    placement: &PlacementReport,
) -> Result<ReplicatedStages, String> {
    let (batches, each) = (placement.micro_batches, placement.requests_each);
    let replicated = ReplicatedStages { copies, batches: (batches, each) };
    let counts: Vec<u64> = (0..replicated.copies.len()).map(|at| replicated.held_by(at)).collect();
    let members: u64 = counts.iter().sum();
    let even = counts.iter().all(|count| batches.is_multiple_of(*count));
    if even && batches >= members && each == concurrency.div_ceil(batches) {
        return Ok(replicated);
    }
    Err(format!(
        "saved {batches} micro-batches of {each} requests, {concurrency} requests must be spread evenly over \
         {members} devices"
    ))
}

impl<'a, 'q> SavedStages<'a, 'q> {
    /// The stages of `placement` on the devices of a problem.
    pub(super) fn read(
        evaluator: &'a PlacementEvaluator<'q>,
        placement: &PlacementReport,
    ) -> Result<SavedStages<'a, 'q>, Vec<String>> {
        let problem = evaluator.question();
        let mut stages: Vec<Stage> = Vec::new();
        let mut parts = vec![0; problem.members.len()];
        for (at, saved) in placement.stages.iter().enumerate() {
            let stage = stage(evaluator, &stages, saved).map_err(|why| vec![format!("stage {at}: {why}")])?;
            let pages = PlacementEvaluator::pages;
            parts[stage.member] = pages(saved.offloaded_bytes).saturating_sub(pages(saved.disk_bytes));
            stages.push(stage);
        }
        let (end, layers) = (stages.last().map_or(0, |stage| stage.to), problem.graph.layer_block.len());
        if end != layers {
            return Err(vec![format!("stages end with layer {end}, the model has {layers}")]);
        }
        let shared = !evaluator.priced(stages.len()).chain.hosts.is_empty();
        let copies = copies(evaluator, &stages, &placement.stages).map_err(|why| vec![why])?;
        let replicated = if copies.iter().all(Vec::is_empty) {
            None
        } else {
            Some(replicated(problem.concurrency, copies, placement).map_err(|why| vec![why])?)
        };
        Ok(SavedStages { evaluator, stages, host_shares: shared.then_some(parts), replicated })
    }

    /// The placement in the form of a solver result.
    pub(super) fn solved(&self) -> Result<SolvedPlacement, String> {
        let parts = self.host_shares.clone();
        self.evaluator.to_solved(&self.stages, parts, self.replicated.as_ref()).map_err(|short| {
            let name = &self.evaluator.question().members[short.member].name;
            match short.pages {
                0 => format!("{name} cannot hold its stage, or sends to a device without a link"),
                pages => format!("{name} cannot hold its stage: short by {} B", pages as f64 * PAGE),
            }
        })
    }

    /// Each saved stage with its cost by the formulas.
    fn costs<'s>(
        &self,
        placement: &'s PlacementReport,
    ) -> impl Iterator<Item = (usize, &'s StageReport, StageCost)> {
        let load = |at: usize| match &self.replicated {
            Some(shared) => (shared.batches.1, shared.batches.0 / shared.held_by(at) * shared.batches.1),
            None => (self.evaluator.batches(self.stages.len()).1, self.evaluator.question().concurrency),
        };
        let cost = move |(at, saved)| (at, saved, self.evaluator.stage_cost(&self.stages[at], load(at)));
        placement.stages.iter().enumerate().map(cost)
    }

    /// Checks the memory of each stage and shared host against the formulas.
    pub(super) fn memory(&self, placement: &PlacementReport) -> Vec<String> {
        let mut faults = Vec::new();
        for (at, stage, whole) in self.costs(placement) {
            let (saved, capacity) = (stage.memory_bytes, whole.usable + stage.offloaded_bytes);
            // Each part is rounded to whole pages.
            let pages = PAGE * ((self.stages[at].to - self.stages[at].from) as f64 + 4.0);
            if !(whole.bytes..=whole.bytes + pages).contains(&saved) {
                faults.push(format!("stage {at}: saved {saved} B, recomputed {} B", whole.bytes));
            }
            if whole.bytes > capacity {
                faults.push(format!("stage {at}: {} B needed, {capacity} B available", whole.bytes));
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
    pub(super) fn times(&self, placement: &PlacementReport) -> Vec<String> {
        let inside = self.costs(placement).filter(|(_, stage, _)| stage.offloaded_bytes == 0.0);
        let off = |(at, stage, whole): (usize, &StageReport, StageCost)| {
            let saved = stage.decode_ms - stage.send_ms;
            off(&format!("stage {at}: ms of a decode step"), saved, 1e3 * whole.decode, QUANTIZED)
        };
        inside.filter_map(off).collect()
    }
}
