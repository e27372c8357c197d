//! The times of a placement in any reading, directly by the formulas: no ticks, and every input is known.

use petgraph::algo::astar;
use petgraph::graph::{DiGraph, NodeIndex};

use super::chain::Stage;
use super::price::{Hop, MemberPrices, PlacementProblem, PreparedMember};
use crate::plan::parallel::Phase;
use crate::quantity::num::Qty;
use crate::quantity::read::{Plain, Reading};
use crate::quantity::unit::SECOND;
use crate::serving::placed::{placed_stage, placed_step, request_alone};

/// Times of a placement whose stages lie in device memory.
#[derive(Clone, Copy, Debug)]
pub struct PlacementTimes<T> {
    /// A decode step through all stages.
    pub token: T,
    /// A prefill of one prompt.
    pub prefill: T,
    /// A request alone, end to end.
    pub request: T,
}

/// The members and links of a problem in a reading.
struct PlacementReading<'a, R: Reading> {
    read: &'a R,
    problem: &'a PlacementProblem,
    members: Vec<PreparedMember<R::N>>,
    /// The same members in numbers, by which routes are found.
    prices: MemberPrices<'a>,
}

/// The times of `stages` with `each` requests per micro-batch.
pub fn placement_times<R: Reading>(
    read: &R,
    problem: &PlacementProblem,
    stages: &[Stage],
    each: u64,
) -> PlacementTimes<Qty<R::N>> {
    let members = problem.members.iter().map(|offer| PreparedMember::read(read, problem, offer)).collect();
    let placed = PlacementReading { read, problem, members, prices: MemberPrices::new(problem) };
    let prefill = read.within(format_args!("prefill"), || placed.through(stages, Phase::Prefill, 1));
    let token = read.within(format_args!("decode"), || placed.through(stages, Phase::Decode, each));
    let alone = if each == 1 {
        token
    } else {
        read.within(format_args!("alone"), || placed.through(stages, Phase::Decode, 1))
    };
    let tokens = placed.members.first().map_or(Qty::from(1.0), |member| member.terms.osl);
    let request = request_alone(prefill, alone, tokens);
    PlacementTimes { token: token.result(), prefill: prefill.result(), request: request.result() }
}

impl<R: Reading> PlacementReading<'_, R> {
    /// A step through all stages, with the transfers between them.
    fn through(&self, stages: &[Stage], phase: Phase, sequences: u64) -> Qty<R::N> {
        let mut parts = Vec::new();
        for (at, stage) in stages.iter().enumerate() {
            let name = &self.problem.members[stage.member].name;
            let time = self.read.within(format_args!("{name}"), || self.stage(stage, phase, sequences));
            parts.push(time);
            let Some(next) = stages.get(at + 1) else { continue };
            for at in route(&self.prices, stage.member, next.member) {
                let hop = &self.problem.hops[at];
                parts.push(
                    self.read.within(format_args!("{name} to next"), || self.send(hop, phase, sequences)),
                );
            }
        }
        placed_step(parts)
    }

    /// A stage; the host prepares a step once, on the first one.
    fn stage(&self, stage: &Stage, phase: Phase, sequences: u64) -> Qty<R::N> {
        let member = &self.members[stage.member];
        let kind = self.problem.stage_kind(stage);
        let first = kind.first;
        let whole = member.step(self.read, phase, kind, sequences).total;
        if first {
            return placed_stage(whole, Qty::literal(0.0 * SECOND));
        }
        let host = self.read.within(format_args!("host"), || {
            member.step(self.read, phase, member.no_layers(), sequences).total
        });
        placed_stage(whole, host)
    }

    /// The residual stream over a hop.
    fn send(&self, hop: &Hop, phase: Phase, sequences: u64) -> Qty<R::N> {
        let member = &self.members[self.problem.driver(hop)];
        let load = member.load(self.read, phase, sequences);
        member.handover(self.read, hop, phase, &load)
    }
}

/// The hops of the fastest path of a token. Its search leaves no trace in a reading.
fn route(prices: &MemberPrices, from: usize, to: usize) -> Vec<usize> {
    let (problem, hops) = (prices.problem, &prices.problem.hops);
    let seconds = |at: usize| {
        let member = &prices.prepared[problem.driver(&hops[at])];
        member.handover(&Plain, &hops[at], Phase::Decode, &member.load(&Plain, Phase::Decode, 1)).value()
    };
    let mut graph: DiGraph<(), usize> = DiGraph::new();
    let ends = hops.iter().map(|hop| hop.from.max(hop.to) + 1);
    for _ in 0..ends.max().unwrap_or(0).max(problem.members.len()) {
        graph.add_node(());
    }
    for (at, hop) in hops.iter().enumerate() {
        graph.add_edge(NodeIndex::new(hop.from), NodeIndex::new(hop.to), at);
    }
    let last = |node: NodeIndex| node.index() == to;
    let found = astar(&graph, NodeIndex::new(from), last, |edge| seconds(*edge.weight()), |_| 0.0);
    let path = found.map_or_else(Vec::new, |(_, path)| path);
    let least = |pair: &[NodeIndex]| {
        let between = graph.edges_connecting(pair[0], pair[1]).map(|edge| *edge.weight());
        between.min_by(|a, b| seconds(*a).total_cmp(&seconds(*b)))
    };
    path.windows(2).filter_map(least).collect()
}
