//! The times of a placement in any reading, directly by the formulas: no ticks, and every input is known.

use petgraph::algo::astar;
use petgraph::graph::{DiGraph, NodeIndex};

use super::chain::Stage;
use super::price::{Hop, PlacementProblem, PreparedMember};
use crate::plan::parallel::Phase;
use crate::quantity::num::Qty;
use crate::quantity::read::Reading;
use crate::quantity::unit::SECOND;
use crate::serving::instance::StageKind;
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
}

/// The times of `stages` with `each` requests per micro-batch.
pub fn placement_times<R: Reading>(
    read: &R,
    problem: &PlacementProblem,
    stages: &[Stage],
    each: u64,
) -> PlacementTimes<Qty<R::N>> {
    let members = problem.members.iter().map(|offer| PreparedMember::read(read, problem, offer)).collect();
    let placed = PlacementReading { read, problem, members };
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
            for hop in self.route(stage.member, next.member) {
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
        let graph = &self.problem.graph;
        let mut layers = vec![0; graph.blocks.len()];
        graph.layer_block[stage.from..stage.to].iter().for_each(|&block| layers[block] += 1);
        let (first, last) = (stage.from == 0, stage.to == graph.layer_block.len());
        let kind = StageKind { layers, hosted: vec![], first, last, times: 1 };
        let whole = member.step_in(self.read, phase, kind, sequences).total;
        if first {
            return placed_stage(whole, Qty::literal(0.0 * SECOND));
        }
        let host = self.read.within(format_args!("host"), || {
            member.step_in(self.read, phase, member.no_layers(), sequences).total
        });
        placed_stage(whole, host)
    }

    /// The residual stream over a hop, driven by its sender, or by its receiver from a hub.
    fn send(&self, hop: &Hop, phase: Phase, sequences: u64) -> Qty<R::N> {
        let driver = if hop.from < self.members.len() { hop.from } else { hop.to };
        let member = &self.members[driver];
        let load = member.load_in(self.read, phase, sequences);
        member.handover(self.read, hop, phase, &load)
    }

    /// The hops of the fastest path.
    fn route(&self, from: usize, to: usize) -> Vec<&Hop> {
        let hops = &self.problem.hops;
        let mut graph: DiGraph<(), usize> = DiGraph::new();
        let nodes =
            hops.iter().map(|hop| hop.from.max(hop.to) + 1).max().unwrap_or(0).max(self.members.len());
        for _ in 0..nodes {
            graph.add_node(());
        }
        for (at, hop) in hops.iter().enumerate() {
            graph.add_edge(NodeIndex::new(hop.from), NodeIndex::new(hop.to), at);
        }
        let time = |at: usize| self.send(&hops[at], Phase::Decode, 1).value();
        let found = astar(
            &graph,
            NodeIndex::new(from),
            |node| node.index() == to,
            |edge| time(*edge.weight()),
            |_| 0.0,
        );
        let path = found.map_or_else(Vec::new, |(_, path)| path);
        let least = |pair: &[NodeIndex]| {
            let between = graph.edges_connecting(pair[0], pair[1]).map(|edge| *edge.weight());
            between.min_by(|a, b| time(*a).total_cmp(&time(*b))).map(|at| &hops[at])
        };
        path.windows(2).filter_map(least).collect()
    }
}
