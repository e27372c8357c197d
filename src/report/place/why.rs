//! Why there is no placement, and what would help, as it is told. Decides nothing.

use super::{Lack, Reason, Tried};
use crate::report::number::{count, gib};
use crate::report::table::grouped;
use crate::search::placement::Refusal;
use crate::search::placement::chain::{Chain, Stage};
use crate::search::placement::price::{PAGE, Prices, Question, Work};
use crate::search::placement::reasons::{Limit, conflict, holds, nearest};
use crate::search::placement::relax::{Lever, Relaxation, lean};

/// What a refusal says to people.
pub fn reason(question: &Question, refusal: &Refusal) -> Reason {
    let bytes = |pages: u64| pages as f64 * PAGE;
    let smaller = || "fewer bits a weight: --weight-format".to_owned();
    let shorter = || "a shorter context or fewer requests: --isl, --osl, --concurrency".to_owned();
    let more = || "a device more, or one with more memory".to_owned();
    let (code, text, short, fixes) = match refusal {
        Refusal::LayerTooLarge { layer, member, short } => (
            "layer_too_large",
            format!(
                "layer {layer} fits on no device: on {}, which has the most room, {} are missing",
                question.offers[*member].name,
                gib(bytes(*short))
            ),
            Some(bytes(*short)),
            vec![smaller(), shorter(), more()],
        ),
        Refusal::Memory { needed, available } => (
            "memory",
            format!(
                "layers, cache and ends take {}, all members have {} for them: {} are missing",
                gib(bytes(*needed)),
                gib(bytes(*available)),
                gib(bytes(needed - available))
            ),
            Some(bytes(needed - available)),
            vec![smaller(), shorter(), more()],
        ),
        Refusal::WholeLayers { held } => (
            "whole_layers",
            match held {
                Some(held) => format!(
                    "the memory of all members together would do, but in whole layers they hold {held} of {}",
                    question.graph.layer_block.len()
                ),
                None => "the memory of all members together would do, but not in whole layers".to_owned(),
            },
            None,
            vec![smaller(), shorter(), more()],
        ),
        Refusal::Disconnected { .. } => (
            "disconnected",
            "the members that could hold the model together are not joined by links".to_owned(),
            None,
            vec!["a link between them: --link and --topology, or `links` of the rig".to_owned()],
        ),
        Refusal::Stopped { .. } => (
            "stopped",
            "the search ended before any placement was found: there may be one".to_owned(),
            None,
            vec![
                "more time, where --time-limit ended it".to_owned(),
                "fewer unlike members, or more memory".to_owned(),
            ],
        ),
    };
    let mut reason = Reason {
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
    if !matches!(refusal, Refusal::Stopped { .. }) {
        conflicting(question, &mut reason);
    }
    reason
}

/// Fills in what conflicts, and what comes nearest.
fn conflicting(question: &Question, reason: &mut Reason) {
    let priced = |question: &Question| Prices::new(question).chain(Work::Token(question.concurrency)).chain;
    let chain = priced(question);
    // Where one way of sharing layers has a placement, another was asked about.
    if holds(&chain) {
        return;
    }
    let found = conflict(&chain, &priced(&lean(question)));
    let named = |limits: &[Limit]| limits.iter().map(|limit| name(question, &chain, *limit)).collect();
    reason.conflict = named(&found.limits);
    reason.innocent = named(&found.innocent);
    reason.several = found.several;
    let lacks = nearest(&chain).into_iter().flat_map(|miss| miss.stages.into_iter().zip(miss.lacks));
    let lack = |(stage, pages): (Stage, u64)| Lack {
        member: question.offers[stage.member].name.clone(),
        first_layer: stage.from,
        last_layer: stage.to - 1,
        short_bytes: pages as f64 * PAGE,
    };
    reason.nearest = lacks.map(lack).collect();
}

/// Members like `member`, by name.
fn like(question: &Question, kinds: &[usize], member: usize) -> String {
    let like: Vec<usize> = (0..kinds.len()).filter(|at| kinds[*at] == kinds[member]).collect();
    let name = &question.offers[member].name;
    if like.len() == 1 { name.clone() } else { format!("{name} and {} like it", like.len() - 1) }
}

fn name(question: &Question, chain: &Chain, limit: Limit) -> String {
    match limit {
        Limit::Links => "the links there are".to_owned(),
        Limit::Hosts => "host memory".to_owned(),
        Limit::Cache => {
            let tokens = grouped(question.lengths.isl + question.lengths.osl);
            format!("the cache of {} of {tokens} tokens", count(question.concurrency, "request"))
        }
        Limit::Weights => "the weights in their format".to_owned(),
        Limit::Memory(member) => format!("the memory of {}", like(question, &chain.kinds(), member)),
    }
}

/// The single changes as they are told, those of formats before them.
pub fn tried(question: &Question, formats: Vec<Tried>, relaxations: &[Relaxation]) -> Vec<Tried> {
    let chain = Prices::new(question).chain(Work::Token(question.concurrency)).chain;
    let kinds = chain.kinds();
    let of = |member: usize| kinds.iter().filter(|kind| **kind == kinds[member]).count() as u64;
    let one = |relaxation: &Relaxation| {
        let needed = relaxation.needed;
        match relaxation.lever {
            Lever::Devices(member) => Tried {
                change: format!("devices like {}, joined as it is", question.offers[member].name),
                stated: of(member).to_string(),
                needed: needed.map(|more| (of(member) + more).to_string()),
            },
            Lever::Memory(member) => {
                let usable = chain.members[member].usable as f64 * PAGE;
                Tried {
                    change: format!("usable memory of {}", like(question, &kinds, member)),
                    stated: gib(usable),
                    needed: needed.map(|more| gib(usable + more as f64)),
                }
            }
            Lever::Isl => Tried {
                change: "--isl".into(),
                stated: grouped(question.lengths.isl),
                needed: needed.map(grouped),
            },
            Lever::Concurrency => Tried {
                change: "--concurrency".into(),
                stated: grouped(question.concurrency),
                needed: needed.map(grouped),
            },
        }
    };
    formats.into_iter().chain(relaxations.iter().map(one)).collect()
}
