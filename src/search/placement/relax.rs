//! Single changes that make an infeasible placement feasible, each found by solving again.
//!
//! Changes of members, lengths and concurrency; formats and other hardware require the catalogue.

use super::price::{Hop, MemberPrices, PAGE, PlacementProblem, PlacementWork};
use super::reasons::more_memory;
use super::solve::fits;
use crate::search::shape::largest;
use crate::serving::terms::Lengths;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lever {
    /// Additional devices identical to this member, with the same links.
    Devices(usize),
    /// Additional bytes for this member and each identical one.
    Memory(usize),
    /// Maximum prompt tokens.
    Isl,
    /// Maximum concurrency.
    Concurrency,
}

/// The smallest sufficient change of one parameter; `None` where it does not help alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeverRelaxation {
    pub lever: Lever,
    /// Additional devices or bytes, or maximum tokens or requests.
    pub needed: Option<u64>,
}

/// Maximum number of additional devices that are tried.
const MOST_DEVICES: u64 = 16;

/// `question` with `count` additional members identical to `member`, each with the same links, and linked to it by
/// its first link.
pub fn with_more(problem: &PlacementProblem, member: usize, count: u64) -> PlacementProblem {
    let mut wider = problem.clone();
    let old = problem.members.len();
    // Hubs are numbered after the members: their indices shift.
    let moved = |node: usize| if node < old { node } else { node + count as usize };
    wider.hops = problem.hops.iter().map(|hop| with_ends(hop, moved(hop.from), moved(hop.to))).collect();
    for at in old..old + count as usize {
        let mut offer = problem.members[member].clone();
        offer.name = format!("{} more {}", offer.name, at - old + 1);
        wider.members.push(offer);
        let own: Vec<Hop> =
            wider.hops.iter().filter(|hop| hop.from == member || hop.to == member).cloned().collect();
        let first = own.iter().find(|hop| hop.from == member && hop.to < old).cloned();
        let other = |node: usize| if node == member { at } else { node };
        wider.hops.extend(own.iter().map(|hop| with_ends(hop, other(hop.from), other(hop.to))));
        if let Some(hop) = first {
            wider.hops.extend([with_ends(&hop, member, at), with_ends(&hop, at, member)]);
        }
    }
    wider
}

fn with_ends(hop: &Hop, from: usize, to: usize) -> Hop {
    Hop { from, to, link: hop.link.clone() }
}

/// Every single change, for infeasible `questions`.
pub fn relaxations(questions: &[PlacementProblem]) -> Vec<LeverRelaxation> {
    let Some(first) = questions.first() else { return vec![] };
    let chain = MemberPrices::new(first).chain(PlacementWork::Token(first.concurrency)).chain;
    let kinds = chain.kinds();
    let faces: Vec<usize> = (0..kinds.len()).filter(|at| kinds[*at] == *at).collect();
    let any = |change: &dyn Fn(&PlacementProblem) -> PlacementProblem| {
        questions.iter().map(change).any(|q| fits(&q))
    };
    let devices = |&member: &usize| {
        let enough = |count: u64| fits(&with_more(first, member, count));
        let needed = enough(MOST_DEVICES).then(|| largest(MOST_DEVICES, |count| !enough(count)) + 1);
        LeverRelaxation { lever: Lever::Devices(member), needed }
    };
    let memory = |&member: &usize| {
        let needed = more_memory(&chain, member).map(|pages| pages.saturating_mul(PAGE as u64));
        LeverRelaxation { lever: Lever::Memory(member), needed }
    };
    let some = |most: u64| Some(most).filter(|most| *most > 0);
    let shorter = |isl: u64| {
        any(&|problem| {
            let lengths = Lengths { isl, prefix: problem.lengths.prefix.min(isl - 1), ..problem.lengths };
            PlacementProblem { lengths, ..problem.clone() }
        })
    };
    let isl = some(largest(first.lengths.isl.saturating_sub(1), shorter));
    let fewer = |concurrency: u64| any(&|problem| PlacementProblem { concurrency, ..problem.clone() });
    let requests = some(largest(first.concurrency.saturating_sub(1), fewer));
    let mut all: Vec<LeverRelaxation> = faces.iter().map(devices).collect();
    all.extend(faces.iter().map(memory));
    all.push(LeverRelaxation { lever: Lever::Isl, needed: isl });
    if first.concurrency > 1 {
        all.push(LeverRelaxation { lever: Lever::Concurrency, needed: requests });
    }
    all
}

/// The problem with almost no KV cache: the weights remain.
pub fn lean(problem: &PlacementProblem) -> PlacementProblem {
    PlacementProblem { lengths: Lengths { isl: 1, osl: 1, prefix: 0 }, concurrency: 1, ..problem.clone() }
}
