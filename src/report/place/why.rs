//! The report of an infeasible placement problem: reason, conflict, possible changes.

use super::{InfeasibleReport, StageShortfall, TriedChange};
use crate::report::number::{count, gib};
use crate::report::table::grouped;
use crate::search::placement::PlacementInfeasible;
use crate::search::placement::chain::{Chain, Stage};
use crate::search::placement::price::{MemberPrices, PAGE, PlacementProblem, PlacementWork};
use crate::search::placement::reasons::{PlacementLimit, conflict, holds, nearest};
use crate::search::placement::relax::{Lever, LeverRelaxation, lean};

/// The report of an infeasibility.
pub fn reason(problem: &PlacementProblem, refusal: &PlacementInfeasible) -> InfeasibleReport {
    let bytes = |pages: u64| pages as f64 * PAGE;
    let smaller = || "fewer bits per weight: --weight-format".to_owned();
    let shorter = || "a shorter context or lower concurrency: --isl, --osl, --concurrency".to_owned();
    let more = || "one more device, or a device with more memory".to_owned();
    let (code, text, short, fixes) = match refusal {
        PlacementInfeasible::LayerTooLarge { layer, member, short } => (
            "layer_too_large",
            format!(
                "layer {layer} fits on no device: {}, which has the most free memory, is short by {}",
                problem.members[*member].name,
                gib(bytes(*short))
            ),
            Some(bytes(*short)),
            vec![smaller(), shorter(), more()],
        ),
        PlacementInfeasible::Memory { needed, available } => (
            "memory",
            format!(
                "layers, KV cache, embedding and head need {}, all devices have {}: short by {}",
                gib(bytes(*needed)),
                gib(bytes(*available)),
                gib(bytes(needed - available))
            ),
            Some(bytes(needed - available)),
            vec![smaller(), shorter(), more()],
        ),
        PlacementInfeasible::WholeLayers { held } => (
            "whole_layers",
            match held {
                Some(held) => format!(
                    "total memory of all devices suffices, but in whole layers they hold only {held} of {}",
                    problem.graph.layer_block.len()
                ),
                None => "total memory of all devices suffices, but not in whole layers".to_owned(),
            },
            None,
            vec![smaller(), shorter(), more()],
        ),
        PlacementInfeasible::Disconnected { .. } => (
            "disconnected",
            "the devices that could hold the model are not connected by links".to_owned(),
            None,
            vec!["a link between them: --link and --topology, or `links` of the rig".to_owned()],
        ),
        PlacementInfeasible::Stopped { .. } => (
            "stopped",
            "the search ended before a placement was found; one may exist".to_owned(),
            None,
            vec!["a longer --time-limit".to_owned(), "fewer kinds of devices, or more memory".to_owned()],
        ),
    };
    let mut reason = InfeasibleReport {
        code: code.into(),
        text,
        short_bytes: short,
        conflict: vec![],
        innocent: vec![],
        several: false,
        nearest: vec![],
        tried: vec![],
        fixes,
    };
    if !matches!(refusal, PlacementInfeasible::Stopped { .. }) {
        conflicting(problem, &mut reason);
    }
    reason
}

/// Fills in the conflict and the nearest placement.
fn conflicting(problem: &PlacementProblem, reason: &mut InfeasibleReport) {
    let priced = |problem: &PlacementProblem| {
        MemberPrices::new(problem).chain(PlacementWork::Token(problem.concurrency)).chain
    };
    let chain = priced(problem);
    // Feasible with tensor parallelism or without it: no conflict to report.
    if holds(&chain) {
        return;
    }
    let found = conflict(&chain, &priced(&lean(problem)));
    let named =
        |limits: &[PlacementLimit]| limits.iter().map(|limit| name(problem, &chain, *limit)).collect();
    reason.conflict = named(&found.limits);
    reason.innocent = named(&found.innocent);
    reason.several = found.several;
    let lacks = nearest(&chain).into_iter().flat_map(|miss| miss.stages.into_iter().zip(miss.lacks));
    let lack = |(stage, pages): (Stage, u64)| StageShortfall {
        member: problem.members[stage.member].name.clone(),
        first_layer: stage.from,
        last_layer: stage.to - 1,
        short_bytes: pages as f64 * PAGE,
    };
    reason.nearest = lacks.map(lack).collect();
}

/// Devices equal to `member`, by name.
fn like(problem: &PlacementProblem, kinds: &[usize], member: usize) -> String {
    let like: Vec<usize> = (0..kinds.len()).filter(|at| kinds[*at] == kinds[member]).collect();
    let name = &problem.members[member].name;
    if like.len() == 1 { name.clone() } else { format!("{name} and {} equal devices", like.len() - 1) }
}

fn name(problem: &PlacementProblem, chain: &Chain, limit: PlacementLimit) -> String {
    match limit {
        PlacementLimit::Links => "the available links".to_owned(),
        PlacementLimit::Hosts => "host memory".to_owned(),
        PlacementLimit::Cache => {
            let tokens = grouped(problem.lengths.isl + problem.lengths.osl);
            format!("the KV cache of {} of {tokens} tokens", count(problem.concurrency, "request"))
        }
        PlacementLimit::Weights => "the weights in the given format".to_owned(),
        PlacementLimit::Memory(member) => format!("the memory of {}", like(problem, &chain.kinds(), member)),
    }
}

/// The report of single changes, format changes first.
pub fn tried(
    problem: &PlacementProblem,
    formats: Vec<TriedChange>,
    relaxations: &[LeverRelaxation],
) -> Vec<TriedChange> {
    let chain = MemberPrices::new(problem).chain(PlacementWork::Token(problem.concurrency)).chain;
    let kinds = chain.kinds();
    let of = |member: usize| kinds.iter().filter(|kind| **kind == kinds[member]).count() as u64;
    let one = |relaxation: &LeverRelaxation| {
        let needed = relaxation.needed;
        match relaxation.lever {
            Lever::Devices(member) => TriedChange {
                change: format!(
                    "devices equal to {}, connected in the same way",
                    problem.members[member].name
                ),
                stated: of(member).to_string(),
                needed: needed.map(|more| (of(member) + more).to_string()),
            },
            Lever::Memory(member) => {
                let usable = chain.members[member].usable as f64 * PAGE;
                TriedChange {
                    change: format!("usable memory of {}", like(problem, &kinds, member)),
                    stated: gib(usable),
                    needed: needed.map(|more| gib(usable + more as f64)),
                }
            }
            Lever::Isl => TriedChange {
                change: "--isl".into(),
                stated: grouped(problem.lengths.isl),
                needed: needed.map(grouped),
            },
            Lever::Concurrency => TriedChange {
                change: "--concurrency".into(),
                stated: grouped(problem.concurrency),
                needed: needed.map(grouped),
            },
        }
    };
    formats.into_iter().chain(relaxations.iter().map(one)).collect()
}
