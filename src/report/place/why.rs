//! The report of an infeasible placement problem: reason, conflict, possible changes.

use super::{InfeasibleReport, StageShortfall, TriedChange};
use crate::report::number::{count, gib};
use crate::report::table::grouped;
use crate::search::placement::PlacementInfeasible;
use crate::search::placement::chain::{Chain, Stage};
use crate::search::placement::price::{MemberPrices, PAGE, PlacementProblem, PlacementWork};
use crate::search::placement::reasons::{PlacementLimit, conflict, holds, nearest};
use crate::search::placement::relax::{Lever, LeverRelaxation, lean};

pub fn reason(problem: &PlacementProblem, refusal: &PlacementInfeasible) -> InfeasibleReport {
    let smaller = "fewer bits per weight: --weight-format";
    let shorter = "a shorter context or lower concurrency: --isl, --osl, --concurrency";
    let more = "one more device, or a device with more memory";
    let fixes = match refusal {
        PlacementInfeasible::LayerTooLarge { .. }
        | PlacementInfeasible::Memory { .. }
        | PlacementInfeasible::WholeLayers { .. } => vec![smaller, shorter, more],
        PlacementInfeasible::Disconnected { .. } => {
            vec!["a link between them: --link and --topology, or `links` of the rig"]
        }
        PlacementInfeasible::Stopped { .. } => {
            vec!["a longer time limit", "fewer kinds of devices, or more memory"]
        }
    };
    let (code, text, short_pages) = summary(problem, refusal);
    let mut reason = InfeasibleReport {
        code: code.into(),
        text,
        short_bytes: short_pages.map(|pages| pages as f64 * PAGE),
        conflict: vec![],
        innocent: vec![],
        several: false,
        nearest: vec![],
        tried: vec![],
        fixes: fixes.into_iter().map(str::to_owned).collect(),
    };
    if !matches!(refusal, PlacementInfeasible::Stopped { .. }) {
        conflicting(problem, &mut reason);
    }
    reason
}

/// Code, sentence and missing pages of an infeasibility.
fn summary(problem: &PlacementProblem, refusal: &PlacementInfeasible) -> (&'static str, String, Option<u64>) {
    let memory = |pages: u64| gib(pages as f64 * PAGE);
    match refusal {
        PlacementInfeasible::LayerTooLarge { layer, member, short } => {
            let (name, missing) = (&problem.members[*member].name, memory(*short));
            let text = format!(
                "layer {layer} fits on no device: {name}, which has the most free memory, is short by {missing}"
            );
            ("layer_too_large", text, Some(*short))
        }
        PlacementInfeasible::Memory { needed, available } => {
            let (all, missing) = (memory(*available), memory(needed - available));
            let needs = memory(*needed);
            let text = format!(
                "layers, KV cache, embedding and head need {needs}, all devices have {all}: short by {missing}"
            );
            ("memory", text, Some(needed - available))
        }
        PlacementInfeasible::WholeLayers { held: Some(held) } => {
            let layers = problem.graph.layer_block.len();
            let text = format!(
                "total memory of all devices suffices, but in whole layers they hold only {held} of {layers}"
            );
            ("whole_layers", text, None)
        }
        PlacementInfeasible::WholeLayers { held: None } => {
            ("whole_layers", "total memory of all devices suffices, but not in whole layers".to_owned(), None)
        }
        PlacementInfeasible::Disconnected { .. } => {
            let text = "the devices that could hold the model are not connected by links";
            ("disconnected", text.to_owned(), None)
        }
        PlacementInfeasible::Stopped { .. } => {
            ("stopped", "the search ended before a placement was found; one may exist".to_owned(), None)
        }
    }
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
        let (change, stated, needed) = match relaxation.lever {
            Lever::Devices(member) => {
                let name = &problem.members[member].name;
                let needed = needed.map(|more| (of(member) + more).to_string());
                (
                    format!("devices equal to {name}, connected in the same way"),
                    of(member).to_string(),
                    needed,
                )
            }
            Lever::Memory(member) => {
                let usable = chain.members[member].usable as f64 * PAGE;
                let needed = needed.map(|more| gib(usable + more as f64));
                (format!("usable memory of {}", like(problem, &kinds, member)), gib(usable), needed)
            }
            Lever::Isl => ("--isl".into(), grouped(problem.lengths.isl), needed.map(grouped)),
            Lever::Concurrency => ("--concurrency".into(), grouped(problem.concurrency), needed.map(grouped)),
        };
        TriedChange { change, stated, needed }
    };
    formats.into_iter().chain(relaxations.iter().map(one)).collect()
}
