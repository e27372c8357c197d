//! Shapes: one instance in one pair of formats, and the loads that it can bear.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::point::{Point, place, point};
use super::question::{Formats, Problem, Traffic};
use crate::cost::memory::Footprint;
use crate::plan::infeasible::Infeasible;
use crate::plan::parallel::{ParallelPlan, Phase};
use crate::plan::stages::balance;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::serving::evaluate::{Pool, aggregated, residency};
use crate::serving::instance::Instance;
use crate::serving::iteration::prefill;
use crate::serving::step::StepTime;
use crate::serving::terms::{InstanceLoad, OffloadTarget};
use crate::spec::objective::Metric;

/// One instance in one pair of formats. Small: what it is laid out as is made again when needed.
#[derive(Clone, Debug)]
pub struct InstanceConfig {
    /// Index of its formats.
    pub formats: usize,
    /// Its degrees.
    pub plan: ParallelPlan,
    /// Layers of each pipeline stage.
    pub stages: Vec<u32>,
    /// What is kept in host memory.
    pub offload: OffloadTarget,
    /// Largest number of requests of an attention rank that its memory holds.
    pub fits: u64,
    /// A prompt fits, so that it can prefill for others.
    pub prefills: bool,
}

/// More requests of one rank than any scheduler takes: the search does not look beyond.
pub const MOST_REQUESTS_PER_RANK: u64 = 65_536;

/// A shape laid out, ready to be evaluated at any load.
pub struct PreparedShape<'q> {
    question: &'q Problem,
    /// The shape.
    pub shape: &'q InstanceConfig,
    /// Laid out.
    pub instance: Arc<Instance>,
    /// A prompt on it.
    pub prompt: StepTime<Qty<f64>>,
}

impl<'q> PreparedShape<'q> {
    /// Lays a shape out.
    pub fn new(question: &'q Problem, shape: &'q InstanceConfig) -> PreparedShape<'q> {
        let stages = shape.stages.clone();
        let instance = Instance::new(&question.graph, shape.plan, stages, question.tiers());
        PreparedShape::of(question, shape, Arc::new(instance))
    }

    /// A shape whose instance is laid out already.
    pub fn of(
        question: &'q Problem,
        shape: &'q InstanceConfig,
        instance: Arc<Instance>,
    ) -> PreparedShape<'q> {
        let machine = question.formats[shape.formats].plain();
        let prompt = prefill(&Plain, &instance, machine, question.terms(), &mut ());
        PreparedShape { question, shape, instance, prompt }
    }

    /// As a pool of `replicas` with `concurrency` requests each.
    #[inline(always)]
    pub fn pool(&self, replicas: u64, concurrency: u64) -> Pool<'_, Qty<f64>> {
        let load = InstanceLoad { concurrency, offload: self.shape.offload };
        Pool { instance: &self.instance, replicas, prompt: self.prompt, load }
    }

    /// `replicas` of it with `concurrency` requests each, through the one door.
    #[inline(always)]
    pub fn at(&self, replicas: u64, concurrency: u64) -> Point {
        self.under(&self.question.traffic, replicas, concurrency)
    }

    /// The same where every slot is filled again at once.
    pub fn free(&self, replicas: u64, concurrency: u64) -> Point {
        self.under(&Traffic::Free, replicas, concurrency)
    }

    /// The same under other traffic.
    #[inline(always)]
    pub fn under(&self, traffic: &Traffic, replicas: u64, concurrency: u64) -> Point {
        let machine = self.question.formats[self.shape.formats].plain();
        let (pool, terms) = (self.pool(replicas, concurrency), self.question.terms());
        let demand = traffic.demand(&Plain);
        point(&aggregated(&Plain, &[pool], machine, terms, &demand, &mut ()).metrics)
    }

    /// Seconds that each request takes of an instance where every slot is filled again at once.
    #[inline(always)]
    pub fn filled(&self, concurrency: u64) -> f64 {
        self.free(1, concurrency)[place(Metric::E2e)]
    }

    /// Requests in flight when each attention rank has `requests`.
    #[inline(always)]
    pub fn concurrency(&self, requests: u64) -> u64 {
        requests * self.shape.plan.dp
    }
}

/// The largest `n` in `1..=most` for which `holds`, given that it holds for none beyond one it fails; 0 if none.
pub fn largest(most: u64, mut holds: impl FnMut(u64) -> bool) -> u64 {
    if most == 0 || !holds(1) {
        return 0;
    }
    let (mut low, mut high) = (1, most);
    let mut step = 1;
    while low < most {
        let probe = (low + step).min(most);
        if !holds(probe) {
            high = probe - 1;
            break;
        }
        low = probe;
        step *= 2;
        if low == most {
            return most;
        }
    }
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if holds(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

/// The largest `n` in `1..=most` at which `filled`, which never falls, is at most 1; 0 if none. Figures that grow
/// evenly are met in a few steps.
pub fn filled_up(most: u64, mut filled: impl FnMut(u64) -> f64) -> u64 {
    if most == 0 {
        return 0;
    }
    let (mut low, mut at_low) = (1, filled(1));
    if at_low.partial_cmp(&1.0).is_none_or(|order| order.is_gt()) {
        return 0;
    }
    let (mut high, mut at_high) = (most, filled(most));
    if at_high <= 1.0 {
        return most;
    }
    let mut halve = false;
    while high - low > 1 {
        // Where the straight line between both meets 1; halved where that gained little.
        let share = (1.0 - at_low) / (at_high - at_low);
        let straight = low + (share * (high - low) as f64) as u64;
        let probe = if halve { low + (high - low) / 2 } else { straight.clamp(low + 1, high - 1) };
        let (before, at) = (high - low, filled(probe));
        if at <= 1.0 {
            (low, at_low) = (probe, at)
        } else {
            (high, at_high) = (probe, at)
        }
        halve = !halve && high - low > before / 2;
    }
    low
}

/// The least load in `1..=most` for which `holds`, of a pipeline of `stages`: throughput grows among the
/// loads that fill every micro-batch alike, and among those up to the next such load.
pub fn least(most: u64, stages: u64, mut holds: impl FnMut(u64) -> bool) -> Option<u64> {
    let full = most / stages;
    let too_few = largest(full, |group| !holds(group * stages)) * stages;
    let end = (too_few + stages).min(most);
    let beyond = largest(end - too_few, |more| !holds(too_few + more));
    (too_few + beyond < end).then_some(too_few + beyond + 1)
}

/// What refused shapes were refused for.
pub type Refused = BTreeMap<&'static str, (u64, String)>;

/// Adds a refusal to the count, keeping the first as an example.
pub fn refuse(refused: &mut Refused, reason: &Infeasible) {
    refused.entry(reason.kind()).or_insert_with(|| (0, reason.to_string())).0 += 1;
}

/// The cuts of a pipeline that are searched: even in what stages hold, in what decoding reads, and in
/// what prompts compute.
pub fn cuts(question: &Problem, plan: ParallelPlan) -> Vec<Vec<u32>> {
    let graph = &question.graph;
    let layers = graph.layer_block.len();
    if plan.pp == 1 {
        return vec![vec![layers as u32]];
    }
    let weigh = |active: bool| -> Vec<u64> {
        let blocks: Vec<u64> = graph
            .blocks
            .iter()
            .map(|block| {
                block
                    .graph
                    .node_weights()
                    .map(|node| if active { node.active_parameters() } else { node.parameters() })
                    .sum()
            })
            .collect();
        graph.layer_block.iter().map(|&block| blocks[block]).collect()
    };
    let vocab = graph.vocab.value * graph.hidden.value;
    let towers = graph.parameters().towers;
    let mut cuts: Vec<Vec<u32>> = Vec::new();
    for (active, first, last) in [(false, vocab + towers, vocab), (true, 0, vocab), (true, 0, 0)] {
        let cut = balance(&weigh(active), first, last, plan.pp as usize);
        if !cuts.contains(&cut) {
            cuts.push(cut);
        }
    }
    cuts
}

fn holds(footprint: &Footprint<Qty<f64>>) -> bool {
    footprint.total.value() <= footprint.usable.value()
}

/// The part that takes the most.
pub fn largest_part(held: &Footprint<Qty<f64>>) -> &'static str {
    let parts = [
        ("weights", held.weights.value()),
        ("KV cache", held.kv.value()),
        ("activations", held.activations.value()),
        ("runtime buffers", held.buffers.value()),
    ];
    parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("weights", |(name, _)| name)
}

/// The reason against a footprint that does not fit.
pub fn short(held: &Footprint<Qty<f64>>) -> Infeasible {
    Infeasible::OutOfMemory {
        needed: held.total.value(),
        available: held.usable.value(),
        largest: largest_part(held),
    }
}

/// Whether host memory can take what the devices of a node cannot hold, and there is enough to take.
fn spills(
    question: &Problem,
    held: &Footprint<Qty<f64>>,
    offload: OffloadTarget,
    plan: &ParallelPlan,
) -> bool {
    let over = held.total.value() - held.usable.value();
    let movable = match offload {
        OffloadTarget::Nothing => return false,
        OffloadTarget::Layers => held.weights.value(),
        OffloadTarget::Experts if crate::plan::legal::has_experts(&question.graph) => held.weights.value(),
        OffloadTarget::Experts => return false,
        OffloadTarget::Kv => held.kv.value(),
    };
    let sharing = plan.devices().min(question.cluster.devices_per_node) as f64;
    let room = question.host_memory.unwrap_or(0.0);
    question.terms().host_link.is_some() && over <= movable && over * sharing <= room
}

/// The shape of a plan, cut and formats, with the most requests that its memory holds.
///
/// # Errors
/// Not even one request fits.
pub fn shape(
    question: &Problem,
    formats: usize,
    instance: &Instance,
    offload: OffloadTarget,
) -> Result<InstanceConfig, Infeasible> {
    let plan = instance.plan;
    let machine = question.formats[formats].plain();
    let held = |phase, requests: u64| {
        residency(&Plain, instance, phase, machine, question.terms(), requests * plan.dp)
    };
    let fits = if offload == OffloadTarget::Nothing {
        filled_up(MOST_REQUESTS_PER_RANK, |requests| {
            let held = held(Phase::Decode, requests);
            let (total, usable) = (held.total.value(), held.usable.value());
            if usable > 0.0 { total / usable } else { f64::INFINITY }
        })
    } else {
        largest(MOST_REQUESTS_PER_RANK, |requests| {
            let held = held(Phase::Decode, requests);
            holds(&held) || spills(question, &held, offload, &plan)
        })
    };
    let prefills = offload == OffloadTarget::Nothing && holds(&held(Phase::Prefill, 1));
    if fits == 0 && !prefills {
        return Err(short(&held(Phase::Decode, 1)));
    }
    Ok(InstanceConfig { formats, plan, stages: instance.stages.clone(), offload, fits, prefills })
}

/// Formats that may be served by the same plans: those whose scales have the same blocks.
pub fn same_plans(a: &Formats, b: &Formats) -> bool {
    a.block == b.block && a.machine.quantised == b.machine.quantised
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_filled_up_is_the_largest_that_fits(
            most in 0u64..5000, (start, slope, curve) in (0.0..1.2, 0.0..0.01, 0.3..3.0), step in 1u64..50,
        ) {
            // Even, bent either way, and in steps as micro-batches fill.
            let filled = |n: u64| start + slope * ((n / step * step) as f64).powf(curve);
            prop_assert_eq!(filled_up(most, filled), largest(most, |n| filled(n) <= 1.0));
        }
    }
}
