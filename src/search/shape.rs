//! Instance configurations: one plan in one format pair, and the loads that fit.

use crate::spec::offload::{Offload, OffloadPart};
use std::sync::Arc;

use super::error_margin::ErrorMargin;
use super::hosting;
use super::point::{Point, place, point};
use super::problem::{Formats, Problem, Traffic};
use crate::cost::memory::Footprint;
use crate::graph::model::{ModelGraph, OperatorNode};
use crate::graph::tensor::TensorRole;
use crate::plan::infeasible::Infeasible;
use crate::plan::parallel::{ParallelPlan, Phase};
use crate::plan::rules::RoleSet;
use crate::plan::stages::balance;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::serving::admission::{longest_at_start, prepared, residency, residency_of};
use crate::serving::disaggregated::prompt_context;
use crate::serving::evaluate::{Pool, aggregated};
use crate::serving::instance::Instance;
use crate::serving::iteration::{prefill, prefill_among};
use crate::serving::stage_memory::InstanceMemory;
use crate::serving::step::StepTime;
use crate::serving::terms::{InstanceLoad, WorkloadTerms};
use crate::spec::nearness::ErrorClass;
use crate::spec::objective::Metric;

/// A plan in one format pair. Its instance shares the work of one stage's devices with those of other cuts and formats.
#[derive(Clone, Debug)]
pub struct InstanceConfig {
    /// Index of its format pair.
    pub formats: usize,
    pub plan: ParallelPlan,
    /// Layers of each pipeline stage.
    pub stages: Vec<u32>,
    /// The prepared instance, before anything is offloaded.
    pub instance: Arc<Instance>,
    pub offload: Offload,
    /// Minimum requests per attention rank that are searched: fewer need nothing offloaded, or leave host memory for
    /// more replicas.
    pub from: u64,
    /// Maximum requests per attention rank that fit in memory.
    pub fits: u64,
    /// Maximum replicas on one node, where they share its memory or its processor.
    pub per_node: Option<u64>,
    /// The roles in which the runtime runs it.
    pub roles: RoleSet,
}

impl InstanceConfig {
    /// Whether a prompt fits, so that it can serve as a prefill worker.
    pub fn prefills(&self, problem: &Problem) -> bool {
        let machine = problem.formats[self.formats].plain();
        let prompt =
            || residency(&Plain, &self.instance, Phase::Prefill, machine, problem.terms(), self.plan.dp);
        self.roles.prefill && self.offload == Offload::Nothing && holds(&prompt())
    }
}

/// Upper limit of requests per rank in the search, above the maximum of any scheduler.
pub const MOST_REQUESTS_PER_RANK: u64 = 65_536;

/// A prepared configuration, ready to be evaluated at any load.
pub struct PreparedShape<'q> {
    pub problem: &'q Problem,
    pub shape: Arc<InstanceConfig>,
    pub instance: Arc<Instance>,
    /// Prefill time of one prompt.
    pub prompt: StepTime<Qty<f64>>,
    /// Its memory, in decode.
    memory: InstanceMemory<Qty<f64>>,
    /// Longest context whose prompts it holds as a prefill worker, where it may be one.
    pub prompt_context: Option<Qty<f64>>,
}

impl<'q> PreparedShape<'q> {
    pub fn of(problem: &'q Problem, shape: Arc<InstanceConfig>) -> PreparedShape<'q> {
        let instance = hosting::placed_shared(problem, Arc::clone(&shape.instance), shape.offload);
        let machine = problem.formats[shape.formats].plain();
        let memory = prepared(&Plain, &instance, Phase::Decode, machine, problem.terms());
        PreparedShape::with(problem, shape, instance, memory)
    }

    /// The configurations of a plan, cut and formats with an offloaded part, prepared. Streamed parts serve the loads
    /// beyond device memory: each configuration those that leave host memory for as many replicas on a node, no more.
    pub fn offloading(
        problem: &'q Problem,
        formats: usize,
        instance: &Arc<Instance>,
        offload: Offload,
    ) -> Result<Vec<PreparedShape<'q>>, Infeasible> {
        let (whole, memory) = shape_and_memory(problem, formats, instance, (offload, 1))?;
        let Some(memory) = memory else { return Ok(vec![PreparedShape::of(problem, Arc::new(whole))]) };
        let (machine, plan) = (problem.formats[formats].plain(), instance.plan);
        let held = |requests: u64| {
            let load = (problem.terms(), requests * plan.dp);
            residency_of(&Plain, &memory, (instance, Phase::Decode), machine, load)
        };
        let mut searched = largest(whole.fits, |requests| holds(&held(requests)));
        let mut all = Vec::new();
        for copies in (1..=(problem.cluster.devices_per_node / plan.devices()).max(1)).rev() {
            let kept = |requests| spill_fault(problem, &held(requests), (offload, copies), &plan).is_none();
            let fits = searched + largest(whole.fits - searched, |more| kept(searched + more));
            if fits > searched {
                let shape =
                    InstanceConfig { from: searched + 1, fits, per_node: Some(copies), ..whole.clone() };
                let (shape, instance) = (Arc::new(shape), Arc::clone(instance));
                all.push(PreparedShape::with(problem, shape, instance, memory.clone()));
                searched = fits;
            }
        }
        Ok(all)
    }

    /// The configuration of a plan, cut and formats, prepared, with nothing offloaded.
    pub fn fitting(
        problem: &'q Problem,
        formats: usize,
        instance: &Arc<Instance>,
    ) -> Result<PreparedShape<'q>, Infeasible> {
        PreparedShape::given(problem, formats, instance, (Offload::Nothing, 1))
    }

    /// The same with an offloaded part, at every load, where `copies` replicas share a node.
    pub fn given(
        problem: &'q Problem,
        formats: usize,
        instance: &Arc<Instance>,
        (offload, copies): (Offload, u64),
    ) -> Result<PreparedShape<'q>, Infeasible> {
        let (shape, memory) = shape_and_memory(problem, formats, instance, (offload, copies))?;
        let shape = Arc::new(shape);
        Ok(match memory {
            Some(memory) => PreparedShape::with(problem, shape, Arc::clone(instance), memory),
            None => PreparedShape::of(problem, shape),
        })
    }

    fn with(
        problem: &'q Problem,
        shape: Arc<InstanceConfig>,
        instance: Arc<Instance>,
        memory: InstanceMemory<Qty<f64>>,
    ) -> PreparedShape<'q> {
        let machine = problem.formats[shape.formats].plain();
        let prompt = prefill(&Plain, &instance, machine, problem.terms(), &mut ());
        let prompt_context = (problem.split && shape.roles.prefill && shape.offload == Offload::Nothing)
            .then(|| prompt_context(&Plain, &instance, machine, problem.terms()));
        PreparedShape { problem, shape, instance, prompt, memory, prompt_context }
    }

    /// Prefill time of a prompt, where a replica has fewer requests than attention ranks.
    fn prompt_among(&self, requests: u64) -> StepTime<Qty<f64>> {
        let machine = self.problem.formats[self.shape.formats].plain();
        prefill_among(&Plain, (&self.instance, requests), machine, self.problem.terms(), &mut ())
    }

    /// A pool of `replicas` with a concurrency of `concurrency` each.
    #[inline(always)]
    pub fn pool(&self, replicas: u64, concurrency: u64) -> Pool<'_, Qty<f64>> {
        let load = InstanceLoad { concurrency, offload: self.shape.offload };
        let instance: &Instance = &self.instance;
        let prompt =
            if concurrency < instance.plan.dp { self.prompt_among(concurrency) } else { self.prompt };
        let (memory, prompt_context) = (Some(&self.memory), self.prompt_context);
        Pool { instance, replicas, prompt, load, memory, prompt_context }
    }

    /// Metrics of `replicas` at a concurrency of `concurrency` each, by the common evaluation function.
    #[inline(always)]
    pub fn at(&self, replicas: u64, concurrency: u64) -> Point {
        self.under(&self.problem.traffic, replicas, concurrency)
    }

    /// The same with closed-loop traffic.
    pub fn free(&self, replicas: u64, concurrency: u64) -> Point {
        self.under(&Traffic::Free, replicas, concurrency)
    }

    /// The same under other traffic.
    #[inline(always)]
    pub fn under(&self, traffic: &Traffic, replicas: u64, concurrency: u64) -> Point {
        let machine = self.problem.formats[self.shape.formats].plain();
        let (pool, terms) = (self.pool(replicas, concurrency), self.problem.terms());
        let demand = traffic.demand(&Plain);
        point(&aggregated(&Plain, &[pool], machine, terms, &demand, &mut ()).metrics)
    }

    /// Seconds per request of an instance with closed-loop traffic.
    #[inline(always)]
    pub fn filled(&self, concurrency: u64) -> f64 {
        self.free(1, concurrency)[place(Metric::E2e)]
    }

    /// The prediction error that the SLOs allow for at a concurrency of each aggregated replica.
    #[inline(always)]
    pub fn margin(&self, concurrency: u64) -> ErrorMargin {
        let requests = concurrency.div_ceil(self.shape.plan.dp);
        self.problem.margin(
            self.shape.formats,
            self.problem.error_class(&self.shape.plan, self.shape.offload),
            requests,
        )
    }

    /// The first latency SLO that aggregated replicas with these metrics miss at a concurrency of each.
    #[inline(always)]
    pub fn missed(&self, point: &Point, concurrency: u64) -> Option<Infeasible> {
        self.problem.missed(point, self.margin(concurrency))
    }

    /// The TPOT SLO of its decode workers, in seconds.
    pub fn tpot_limit(&self) -> f64 {
        self.problem.tpot_limit(self.problem.margin(self.shape.formats, ErrorClass::Disaggregated, 0))
    }

    /// The lowest concurrency that is searched.
    pub fn lowest(&self) -> u64 {
        (self.shape.from - 1) * self.shape.plan.dp + 1
    }

    /// Concurrency with `requests` per attention rank.
    #[inline(always)]
    pub fn concurrency(&self, requests: u64) -> u64 {
        requests * self.shape.plan.dp
    }
}

/// The largest `n` in `1..=most` for which `holds`, if it holds for none beyond one it fails; 0 if none.
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

/// The smallest `n` in `low..=high` for which `holds`, if it holds for all beyond; `high` is not tried.
pub fn smallest(mut low: u64, mut high: u64, mut holds: impl FnMut(u64) -> bool) -> u64 {
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// The largest `n` in `1..=most` at which the nondecreasing `filled` is at most 1; 0 if none. Near-linear functions
/// take a few steps.
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
        // Secant step to 1; bisection where that gained little.
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

/// The smallest load in `1..=most` for which `holds`, for a pipeline of `stages`. Throughput increases among the
/// loads that fill all micro-batches equally, and between two such loads.
pub fn least(most: u64, stages: u64, mut holds: impl FnMut(u64) -> bool) -> Option<u64> {
    let full = most / stages;
    let too_few = largest(full, |group| !holds(group * stages)) * stages;
    let end = (too_few + stages).min(most);
    let beyond = largest(end - too_few, |more| !holds(too_few + more));
    (too_few + beyond < end).then_some(too_few + beyond + 1)
}

/// The pipeline cut where none is given: balanced by memory, counted in parameters, so that it is the same in every
/// format.
pub fn usual_cut(graph: &ModelGraph, pp: u64) -> Vec<u32> {
    let vocab = vocab_parameters(graph);
    let first = vocab + graph.tower_parameters();
    cut(graph, pp, |node| node.parameters(), (first, vocab))
}

/// The pipeline cuts that are searched: the usual one, and those balanced by what decode reads, in parameters and in the
/// bytes of these formats, and by prefill compute.
pub fn cuts(graph: &ModelGraph, formats: &Formats, pp: u64) -> Vec<Vec<u32>> {
    let machine = formats.plain();
    let bytes = |role: Option<TensorRole>, elements: u64| {
        let quantised = role.is_some_and(|role| machine.quantised[role as usize]);
        (elements as f64 * machine.chip.weight_bytes(quantised).value()).round() as u64
    };
    let vocab = vocab_parameters(graph);
    let head = bytes(Some(TensorRole::LmHead), vocab);
    let mut cuts = vec![usual_cut(graph, pp)];
    let others = [
        cut(graph, pp, OperatorNode::active_parameters, (0, vocab)),
        cut(graph, pp, |node| bytes(node.role(), node.active_parameters()), (0, head)),
        cut(graph, pp, OperatorNode::active_parameters, (0, 0)),
    ];
    for cut in others {
        if !cuts.contains(&cut) {
            cuts.push(cut);
        }
    }
    cuts
}

fn vocab_parameters(graph: &ModelGraph) -> u64 {
    graph.vocab.value * graph.hidden.value
}

/// Layers of each of `pp` stages, balanced by the weights of their operators; the outer stages weigh more by `ends`.
fn cut(graph: &ModelGraph, pp: u64, weigh: impl Fn(&OperatorNode) -> u64, ends: (u64, u64)) -> Vec<u32> {
    if pp == 1 {
        return vec![graph.layer_block.len() as u32];
    }
    let blocks: Vec<u64> =
        graph.blocks.iter().map(|block| block.graph.node_weights().map(&weigh).sum()).collect();
    let layers: Vec<u64> = graph.layer_block.iter().map(|&block| blocks[block]).collect();
    balance(&layers, ends.0, ends.1, pp as usize)
}

fn holds(footprint: &Footprint<Qty<f64>>) -> bool {
    footprint.total.value() <= footprint.usable.value()
}

pub fn largest_part(held: &Footprint<Qty<f64>>) -> &'static str {
    let parts = [
        ("weights", held.weights.value()),
        ("KV cache", held.kv.value()),
        ("activations", held.activations.value()),
        ("runtime buffers", held.buffers.value()),
    ];
    parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("weights", |(name, _)| name)
}

/// Why an instance at `concurrency` does not hold the longest request that its server takes, where it holds the load;
/// none where the load alone does not fit, or no length is stated.
pub fn longest_request(
    problem: &Problem,
    formats: usize,
    (instance, phase): (&Instance, Phase),
    concurrency: u64,
) -> Option<Infeasible> {
    let (machine, terms) = (problem.formats[formats].plain(), problem.terms());
    let fits = longest_at_start(&Plain, (instance, phase), machine, terms, concurrency)?;
    let bare = WorkloadTerms { longest: None, ..terms.clone() };
    let longest = problem.workload.longest?;
    let prepared = machine.max_sequences.map_or(1, |most| most.value() as u64);
    let slots = if longest.every_slot { concurrency.div_ceil(instance.plan.dp).max(prepared) } else { 1 };
    let (tokens, fits) = (longest.tokens, fits.value().max(0.0) as u64);
    let load = residency(&Plain, instance, phase, machine, &bare, concurrency);
    (holds(&load) && fits < tokens).then_some(Infeasible::LongestRequest { tokens, fits, slots })
}

/// The error of a footprint that does not fit.
pub fn short(held: &Footprint<Qty<f64>>) -> Infeasible {
    Infeasible::OutOfMemory {
        needed: held.total.value(),
        available: held.usable.value(),
        largest: largest_part(held),
    }
}

/// Why host memory does not take what exceeds the devices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpillFault {
    /// Host memory, or the link between host and devices, is unknown.
    UnknownHost,
    /// Only this many bytes of a device may lie in host memory.
    TooFewMovable(f64),
    /// The devices of a host exceed its memory.
    HostMemory {
        /// Bytes in host memory.
        needed: f64,
        /// Host memory of a node that they may take.
        usable: f64,
    },
}

/// Bytes of a node that its devices lack and may have in host memory, whatever its size.
///
/// # Errors
/// The host is unknown, or too little of the model may lie there.
pub fn spilled(
    problem: &Problem,
    held: &Footprint<Qty<f64>>,
    (offload, copies): (Offload, u64),
    plan: &ParallelPlan,
) -> Result<f64, SpillFault> {
    let over = held.total.value() - held.usable.value();
    let moves = |part| match part {
        // Layers that share weights would read them over the link at each run.
        _ if !problem.graph.stores.is_empty() => false,
        OffloadPart::Experts => crate::plan::legal::has_experts(&problem.graph),
        OffloadPart::Layers | OffloadPart::Kv => true,
    };
    let movable = match offload {
        Offload::Streamed(OffloadPart::Kv) => held.kv.value(),
        Offload::Streamed(part) if moves(part) => held.weights.value(),
        Offload::Nothing | Offload::Host(_) | Offload::Streamed(_) => 0.0,
    };
    if problem.host_memory.is_none() || problem.terms().host_link.is_none() {
        return Err(SpillFault::UnknownHost);
    }
    if over > movable {
        return Err(SpillFault::TooFewMovable(movable));
    }
    Ok(hosting::streamed_on_node(problem, plan, copies, over))
}

/// Why offloading does not make the model fit; none where it does.
pub fn spill_fault(
    problem: &Problem,
    held: &Footprint<Qty<f64>>,
    (offload, copies): (Offload, u64),
    plan: &ParallelPlan,
) -> Option<SpillFault> {
    let usable = hosting::free_host_memory(problem);
    match spilled(problem, held, (offload, copies), plan) {
        Err(fault) => Some(fault),
        Ok(needed) => (needed > usable).then_some(SpillFault::HostMemory { needed, usable }),
    }
}

/// The configuration of a plan, cut and formats, with the maximum requests that fit in memory, where `copies` replicas
/// share a node.
pub fn shape(
    problem: &Problem,
    formats: usize,
    instance: &Arc<Instance>,
    (offload, copies): (Offload, u64),
) -> Result<InstanceConfig, Infeasible> {
    shape_and_memory(problem, formats, instance, (offload, copies)).map(|(shape, _)| shape)
}

/// The same with its memory in decode, if no part of it is in host memory.
fn shape_and_memory(
    problem: &Problem,
    formats: usize,
    instance: &Arc<Instance>,
    (offload, copies): (Offload, u64),
) -> Result<(InstanceConfig, Option<InstanceMemory<Qty<f64>>>), Infeasible> {
    let plan = instance.plan;
    let machine = problem.formats[formats].plain();
    let mut roles = problem.runtime.roles(&problem.formats[formats].kv, &plan);
    roles.aggregated &= problem.formats[formats].prefill_weights.is_none();
    let roles = problem.space.roles(roles, &plan, offload)?;
    let most = problem.most_sequences.unwrap_or(u64::MAX);
    let with = |fits: u64| {
        let (stages, instance) = (instance.stages.clone(), Arc::clone(instance));
        let per_node = (offload != Offload::Nothing).then_some(copies);
        InstanceConfig { formats, plan, stages, instance, offload, from: 1, fits, per_node, roles }
    };
    if let Offload::Host(part) = offload {
        let hosted = (**instance).clone().hosting(&problem.graph, part);
        let fits = hosting::fits(problem, &hosted, machine).min(most);
        let held = || residency(&Plain, &hosted, Phase::Decode, machine, problem.terms(), plan.dp);
        let longest = || longest_request(problem, formats, (&hosted, Phase::Decode), plan.dp);
        return match fits {
            0 => Err(longest().unwrap_or_else(|| {
                let held = held();
                let why = "host memory does not hold the part of one request and the weights that it takes";
                if holds(&held) { Infeasible::NotHosted { why } } else { short(&held) }
            })),
            _ => Ok((with(fits), None)),
        };
    }
    let memory = prepared(&Plain, instance, Phase::Decode, machine, problem.terms());
    let held = |requests: u64| {
        let load = (problem.terms(), requests * plan.dp);
        residency_of(&Plain, &memory, (instance, Phase::Decode), machine, load)
    };
    let fits = if offload == Offload::Nothing {
        filled_up(MOST_REQUESTS_PER_RANK, |requests| {
            let held = held(requests);
            let (total, usable) = (held.total.value(), held.usable.value());
            if usable > 0.0 { total / usable } else { f64::INFINITY }
        })
    } else {
        largest(MOST_REQUESTS_PER_RANK, |requests| {
            let held = held(requests);
            holds(&held) || spill_fault(problem, &held, (offload, copies), &plan).is_none()
        })
    };
    let shape = with(fits.min(most));
    if shape.fits == 0 && !shape.prefills(problem) {
        let longest = longest_request(problem, formats, (instance, Phase::Decode), plan.dp);
        return Err(longest.unwrap_or_else(|| short(&held(1))));
    }
    Ok((shape, Some(memory)))
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
            // Linear, convex or concave, and in steps as micro-batches fill.
            let filled = |n: u64| start + slope * libm::pow((n / step * step) as f64, curve);
            prop_assert_eq!(filled_up(most, filled), largest(most, |n| filled(n) <= 1.0));
        }
    }
}
