//! Costs of each member for each layer, from the formulas of `serving` and `cost`, in whole ticks and pages.
//!
//! Independent of order and cuts, which the dynamic programs decide.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::chain::{Chain, Member, SegmentCost, SharedHost, Stage};
use super::path::paths;
use crate::cost::batch::Batch;
use crate::cost::machine::{Machine, PricedLink};
use crate::cost::memory::weights;
use crate::graph::model::ModelGraph;
use crate::graph::tensor::TensorRole;
use crate::plan::collective::{Collective, CollectiveOp, Tokens};
use crate::plan::group::{RankGroup, TierShape};
use crate::plan::parallel::{ParallelPlan, Phase};
use crate::plan::sharding::TokenShare;
use crate::plan::stages::sharing_layers;
use crate::quantity::datum::Datum;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::{Plain, Reading};
use crate::serving::instance::{Instance, StageKind};
use crate::serving::iteration::{decode_batch, prefill};
use crate::serving::residency::{CachedSequences, stage_footprint};
use crate::serving::step::{StepTime, batch, step};
use crate::serving::terms::{Lengths, WorkloadInputs, WorkloadTerms};
use crate::spec::cluster::Topology;

/// Bytes per page: memory shortfalls are reported in whole pages.
pub const PAGE: f64 = 65536.0;

/// Maximum ticks that are added exactly.
const MOST_TICKS: f64 = (1_u64 << 52) as f64;

/// Pages at which memory saturates, so that sums do not overflow.
pub(super) const MOST_PAGES: f64 = (1_u64 << 44) as f64;

/// A device, or identical devices that shard each layer, as one member of a placement.
#[derive(Clone, Debug)]
pub struct DeviceGroup {
    pub name: String,
    pub devices: u64,
    /// Place of its first device among those of the rig.
    pub first_device: usize,
    pub machine: Machine<Datum>,
    pub plan: ParallelPlan,
    /// Different prefixes, where its runtime stores each once for all their requests.
    pub shared_prefixes: Option<u64>,
    /// Bandwidth of the link of each device to host memory.
    pub host_link: Option<Datum>,
    /// Its host, where host memory may be used; members with the same number share it.
    pub host: Option<HostCapacity>,
    /// Storage below host memory, where it may be used.
    pub disk: Option<Disk>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostCapacity {
    pub number: usize,
    /// Total bytes for all members in it.
    pub bytes: f64,
}

/// The share of a device of the storage of a host.
#[derive(Clone, Debug)]
pub struct Disk {
    /// Read bandwidth.
    pub rate: Datum,
    pub bytes: f64,
}

/// One direction of a link between neighbours; a hub is a neighbour that holds no layers.
#[derive(Clone, Debug)]
pub struct Hop {
    /// Index of the member; hubs follow the members.
    pub from: usize,
    /// Index of the member; hubs follow the members.
    pub to: usize,
    pub link: PricedLink<Datum>,
}

#[derive(Clone, Debug)]
pub struct PlacementProblem {
    pub graph: Arc<ModelGraph>,
    pub members: Vec<DeviceGroup>,
    pub hops: Vec<Hop>,
    pub lengths: Lengths,
    pub concurrency: u64,
}

impl PlacementProblem {
    /// The layers of a stage, with the embedding on the first and the head on the last.
    pub(super) fn stage_kind(&self, stage: &Stage) -> StageKind {
        let mut layers = vec![0; self.graph.blocks.len()];
        self.graph.layer_block[stage.from..stage.to].iter().for_each(|&block| layers[block] += 1);
        let (first, last) = (stage.from == 0, stage.to == self.graph.layer_block.len());
        let sharing = sharing_layers(&self.graph, stage.from..stage.to);
        StageKind { layers, hosted: vec![], sharing, first, last, times: 1 }
    }

    /// The member whose runtime drives a hop: the sender, or the receiver from a hub. Between hubs, any does.
    pub(super) fn driver(&self, hop: &Hop) -> usize {
        [hop.from, hop.to].into_iter().find(|node| *node < self.members.len()).unwrap_or(0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementWork {
    /// A decode step of a number of sequences.
    Token(u64),
    /// Prefill of one prompt; its members hold only its KV cache.
    Prompt,
    /// A complete request: prefill and decode.
    Request,
}

impl PlacementWork {
    /// Number of prefills and of decode steps in it, and sequences per decode step.
    pub(super) fn times(self, lengths: Lengths) -> (f64, f64, u64) {
        match self {
            PlacementWork::Token(sequences) => (0.0, 1.0, sequences),
            PlacementWork::Prompt => (1.0, 0.0, 1),
            PlacementWork::Request => (1.0, lengths.osl as f64 - 1.0, 1),
        }
    }
}

#[derive(Clone)]
pub(super) struct PreparedMember<N = f64> {
    pub(super) instance: Instance,
    pub(super) machine: Machine<Qty<N>>,
    pub(super) terms: WorkloadTerms<Qty<N>>,
}

pub struct MemberPrices<'a> {
    pub(super) problem: &'a PlacementProblem,
    pub(super) prepared: Vec<PreparedMember>,
}

#[derive(Clone, Debug)]
pub struct PricedChain {
    pub chain: Chain,
    /// Seconds per tick.
    pub tick: f64,
}

impl PricedChain {
    pub fn seconds(&self, ticks: u64) -> f64 {
        ticks as f64 * self.tick
    }
}

fn pages(bytes: f64) -> u64 {
    (bytes / PAGE).ceil().clamp(0.0, MOST_PAGES) as u64
}

impl<N: Num> PreparedMember<N> {
    pub(super) fn read<R: Reading<N = N>>(
        read: &R,
        problem: &PlacementProblem,
        offer: &DeviceGroup,
    ) -> PreparedMember<N> {
        let shapes = &offer.machine.shapes;
        let layers = problem.graph.layer_block.len() as u32;
        let stated = WorkloadInputs {
            host_link: offer.host_link.clone(),
            shared_prefixes: offer.shared_prefixes,
            ..WorkloadInputs::of(problem.lengths)
        };
        PreparedMember {
            instance: Instance::new(&problem.graph, offer.plan, vec![layers], shapes),
            machine: offer.machine.read(read),
            terms: stated.read(read),
        }
    }

    pub(super) fn no_layers(&self) -> StageKind {
        let blocks = self.instance.decode.blocks.len();
        let (layers, hosted, sharing) = (vec![0; blocks], vec![], vec![]);
        StageKind { layers, hosted, sharing, first: false, last: false, times: 1 }
    }

    pub(super) fn load<R: Reading<N = N>>(&self, read: &R, phase: Phase, sequences: u64) -> Batch<Qty<N>> {
        match phase {
            Phase::Decode => decode_batch(read, &self.instance, &self.terms, Qty::from(sequences as f64)),
            Phase::Prefill => {
                let new = self.terms.isl - self.terms.prefix;
                batch(read, &self.instance, phase, Qty::from(1.0), new, self.terms.prefix)
            }
        }
    }

    pub(super) fn step<R: Reading<N = N>>(
        &self,
        read: &R,
        phase: Phase,
        kind: StageKind,
        sequences: u64,
    ) -> StepTime<Qty<N>> {
        let instance = Instance { kinds: [kind].into(), ..self.instance.clone() };
        match phase {
            Phase::Prefill => prefill(read, &instance, &self.machine, &self.terms, &mut ()),
            Phase::Decode => {
                let load = self.load(read, phase, sequences);
                step(read, &instance, phase, &load, &self.machine, &mut ())
            }
        }
    }

    /// Time of the residual stream over a hop that this member drives.
    pub(super) fn handover<R: Reading<N = N>>(
        &self,
        read: &R,
        hop: &Hop,
        phase: Phase,
        load: &Batch<Qty<N>>,
    ) -> Qty<N> {
        let pair = [TierShape { devices: 2, topology: Topology::Switch, in_switch_reduction: false }];
        let group = RankGroup { size: 2, inner: 2, inner_tier: 0, outer_tier: 0 };
        let width = self.instance.sharded(phase).hidden;
        let send =
            Collective::new(CollectiveOp::SendRecv, group, width, Tokens::Rank(TokenShare::Own), &pair);
        let link = hop.link.map(|datum| read.datum(datum));
        let over = Machine { links: vec![link], shapes: pair.to_vec(), ..self.machine.clone() };
        crate::cost::collective::cost(read, &send, load, &over).time
    }
}

impl PreparedMember {
    /// Seconds of a stage over a number of prefills and decode steps.
    pub(super) fn time(&self, prompts: f64, steps: f64, sequences: u64, kind: StageKind) -> f64 {
        let mut sum = 0.0;
        if prompts > 0.0 {
            sum += prompts * self.seconds(Phase::Prefill, kind.clone(), 1);
        }
        if steps > 0.0 {
            sum += steps * self.seconds(Phase::Decode, kind, sequences);
        }
        sum
    }

    /// Seconds of the whole model on this member.
    fn all(&self, prompts: f64, steps: f64, sequences: u64) -> f64 {
        self.time(prompts, steps, sequences, self.instance.kinds[0].clone())
    }

    /// Seconds of a stage in `phase`, host overhead included.
    pub fn seconds(&self, phase: Phase, kind: StageKind, sequences: u64) -> f64 {
        self.step(&Plain, phase, kind, sequences).total.value()
    }

    /// Bytes of a stage with `sequences` in flight.
    pub fn bytes(&self, phase: Phase, kind: &StageKind, sequences: u64) -> (f64, f64) {
        let tokens = match phase {
            Phase::Prefill => self.terms.isl,
            Phase::Decode => self.terms.isl + self.terms.osl,
        };
        let load = CachedSequences::whole(Qty::from(sequences as f64), tokens).sharing(self.terms.shared);
        let held = stage_footprint(&Plain, &self.instance, phase, kind, load, &self.machine);
        (held.total.value(), held.usable.value())
    }

    /// Bytes of the experts of a layer of `block`.
    pub(super) fn experts(&self, block: usize) -> f64 {
        let elements = self.instance.decode.blocks[block].weights[TensorRole::Expert as usize] as f64;
        let quantised = self.machine.quantised[TensorRole::Expert as usize];
        let (yes, no) = if quantised { (elements, 0.0) } else { (0.0, elements) };
        weights(Qty::from(yes), Qty::from(no), &self.machine.chip).value()
    }
}

impl<'a> MemberPrices<'a> {
    pub fn new(problem: &'a PlacementProblem) -> MemberPrices<'a> {
        let stands =
            problem.members.iter().map(|offer| PreparedMember::read(&Plain, problem, offer)).collect();
        MemberPrices { problem, prepared: stands }
    }

    /// Members and links priced for `work`.
    pub fn chain(&self, work: PlacementWork) -> PricedChain {
        self.chain_holding(work, self.problem.concurrency)
    }

    /// The same for members that each hold the KV caches of `held` requests.
    pub fn chain_holding(&self, work: PlacementWork, held: u64) -> PricedChain {
        let (prompts, steps, sequences) = work.times(self.problem.lengths);
        let links = self.links(prompts, steps, sequences);
        let longest: f64 = self.prepared.iter().map(|stand| stand.all(prompts, steps, sequences)).sum();
        let farthest = links.iter().map(|(_, _, seconds)| seconds).sum::<f64>();
        // A picosecond is finer than any formula is accurate; times of days need longer ticks.
        let all = longest + farthest;
        let tick = [1e-12, 1e-6].into_iter().find(|tick| all < MOST_TICKS * tick).unwrap_or(all / MOST_TICKS);
        let ticks = |seconds: f64| (seconds / tick).round().min(MOST_TICKS) as u64;
        let hops: Vec<_> = links.iter().map(|&(from, to, time)| (from, to, ticks(time))).collect();
        let members: Vec<Member> =
            (0..self.prepared.len()).map(|at| self.member(at, (work, held), &ticks)).collect();
        let nodes = hops.iter().map(|hop| hop.0.max(hop.1) + 1).max().unwrap_or(0).max(members.len());
        let mut links = paths(nodes, &hops);
        links.truncate(members.len());
        links.iter_mut().for_each(|row| row.truncate(members.len()));
        let layers = self.problem.graph.layer_block.len();
        PricedChain { chain: Chain { layers, members, links, hosts: self.hosts() }, tick }
    }

    fn member(&self, at: usize, (work, held): (PlacementWork, u64), ticks: &dyn Fn(f64) -> u64) -> Member {
        let (stand, graph) = (&self.prepared[at], &self.problem.graph);
        let (prompts, steps, sequences) = work.times(self.problem.lengths);
        let (phase, held) = match work {
            PlacementWork::Prompt => (Phase::Prefill, 1),
            PlacementWork::Token(_) | PlacementWork::Request => (Phase::Decode, held),
        };
        let none = stand.no_layers();
        let host = stand.time(prompts, steps, sequences, none.clone());
        let (base, usable) = stand.bytes(phase, &none, held);
        let part = |kind: StageKind| SegmentCost {
            ticks: ticks(stand.time(prompts, steps, sequences, kind.clone()) - host),
            pages: pages(stand.bytes(phase, &kind, held).0 - base),
        };
        let block = |block: usize| {
            let mut kind = none.clone();
            kind.layers[block] = 1;
            part(kind)
        };
        let blocks: Vec<SegmentCost> = (0..graph.blocks.len()).map(block).collect();
        let experts: Vec<u64> = (0..graph.blocks.len()).map(|block| pages(stand.experts(block))).collect();
        let first = part(StageKind { first: true, ..none.clone() });
        let last = part(StageKind { last: true, ..none.clone() });
        let both = part(StageKind { first: true, last: true, ..none.clone() });
        let with_embedding = both.pages.saturating_sub(first.pages).min(last.pages);
        let of = |layer: &usize| blocks[*layer];
        let (spill, disk) = self.overflow(at, work, held, ticks);
        Member {
            layers: graph.layer_block.iter().map(of).collect(),
            experts: graph.layer_block.iter().map(|&block| experts[block].min(blocks[block].pages)).collect(),
            first,
            last: SegmentCost { pages: with_embedding, ..last },
            copy: last.pages - with_embedding,
            host: ticks(host),
            base: pages(base),
            usable: (usable / PAGE).floor().min(MOST_PAGES) as u64,
            spill,
            disk,
        }
    }

    /// Hosts with several members.
    fn hosts(&self) -> Vec<SharedHost> {
        let mut hosts: BTreeMap<usize, SharedHost> = BTreeMap::new();
        for (at, offer) in self.problem.members.iter().enumerate() {
            let Some(host) = offer.host else { continue };
            let empty = || SharedHost { members: vec![], pages: (host.bytes / PAGE).min(MOST_PAGES) as u64 };
            hosts.entry(host.number).or_insert_with(empty).members.push((at, offer.devices));
        }
        hosts.into_values().filter(|host| host.members.len() > 1).collect()
    }

    /// Seconds of each hop for the activations between stages.
    fn links(&self, prompts: f64, steps: f64, sequences: u64) -> Vec<(usize, usize, f64)> {
        let phases = [(prompts, Phase::Prefill), (steps, Phase::Decode)];
        let one = |hop: &Hop| {
            let at = self.problem.driver(hop);
            let used = phases.iter().filter(|(times, _)| *times > 0.0);
            let seconds = used.map(|&(times, phase)| {
                let load = self.prepared[at].load(&Plain, phase, sequences);
                times * self.prepared[at].handover(&Plain, hop, phase, &load).value()
            });
            (hop.from, hop.to, seconds.sum())
        };
        self.problem.hops.iter().map(one).collect()
    }
}
