//! Tensors in host memory that the host's processor computes with: where a plan may have them, and how many layers.

use crate::spec::offload::{Offload, OffloadPart, OffloadPolicy};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::candidate::{Candidate, PoolPlan};
use super::layouts::each;
use super::outcome::Census;
use super::problem::Problem;
use super::shape::{InstanceConfig, MOST_REQUESTS_PER_RANK, filled_up, spilled};
use crate::cost::machine::Machine;
use crate::plan::infeasible::Infeasible;
use crate::plan::parallel::{ParallelPlan, Phase};
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::serving::admission::{admitted, residency};
use crate::serving::instance::Instance;
use crate::serving::residency::in_host_memory;
use crate::spec::host_part::{HostPart, HostedTensors};

/// Host memory that stays with the operating system and the runtime's own process, in bytes: an assumption, half of
/// what a desktop in use takes.
const RESERVED: f64 = 4.0 * (1u64 << 30) as f64;

/// `instance` with its part in host memory, where `offload` says so.
pub fn placed(problem: &Problem, instance: Instance, offload: Offload) -> Instance {
    match offload {
        Offload::Host(part) => instance.hosting(&problem.graph, part),
        Offload::Nothing | Offload::Streamed(_) => instance,
    }
}

/// The same where an instance without a part in host memory is shared.
pub fn placed_shared(problem: &Problem, instance: Arc<Instance>, offload: Offload) -> Arc<Instance> {
    match offload {
        Offload::Host(_) => Arc::new(placed(problem, (*instance).clone(), offload)),
        Offload::Nothing | Offload::Streamed(_) => instance,
    }
}

/// Replicas that fit: where they share a host, as many per node as its memory holds, and one where its processor
/// computes.
pub fn most_replicas(problem: &Problem, shape: &InstanceConfig) -> u64 {
    let most = problem.capacity().most(shape.plan.devices());
    shape.per_node.map_or(most, |copies| most.min(problem.cluster.nodes.saturating_mul(copies)))
}

/// Replicas on the fullest node, of `replicas` in all.
pub fn on_node(problem: &Problem, replicas: u64) -> u64 {
    replicas.div_ceil(problem.cluster.nodes.max(1))
}

/// Why a plan cannot have `part` in host memory.
pub fn refused(problem: &Problem, formats: usize, plan: &ParallelPlan, part: HostPart) -> Option<Infeasible> {
    let not = |why| Some(Infeasible::NotHosted { why });
    let Some(host) = problem.formats[formats].plain().host.as_deref() else {
        return not("the runtime does not compute on the host, or host memory and host link are not known");
    };
    if !host.computes.contains(&part.tensors) {
        return not("the runtime does not compute these tensors on the host");
    }
    if plan.tp * plan.dp * plan.cp * plan.ep > 1 || plan.devices() > problem.cluster.devices_per_node {
        return not("devices of one host divide a model by layers where the host computes a part of it");
    }
    if !problem.graph.stores.is_empty() {
        return not("layers that share weights are not divided between devices and host");
    }
    if problem.graph.draft.is_some() {
        return not("a draft is not combined with tensors on the host");
    }
    if part.tensors == HostedTensors::Experts && !crate::plan::legal::has_experts(&problem.graph) {
        return not("the model has no routed experts");
    }
    None
}

/// Every part of a plan's layers that the host can compute: the fewest layers first.
pub fn parts(problem: &Problem, formats: usize, instance: &Instance) -> Vec<Offload> {
    let longest = instance.stages.iter().copied().max().unwrap_or(0);
    let every = HostedTensors::EACH.into_iter();
    let parts = every.flat_map(|tensors| (1..=longest).map(move |layers| HostPart { tensors, layers }));
    let legal = parts.filter(|part| refused(problem, formats, &instance.plan, *part).is_none());
    legal.map(Offload::Host).collect()
}

/// Bytes of `memory` bytes of a host that tensors may take.
pub fn usable_host_memory(memory: f64) -> f64 {
    (memory - RESERVED).max(0.0)
}

/// The least memory of a host that has `held` bytes of tensors.
pub fn host_memory_for(held: f64) -> f64 {
    held + RESERVED
}

/// Host memory of a node that a part of the model may take, in bytes; 0 where it is unknown.
pub fn free_host_memory(problem: &Problem) -> f64 {
    usable_host_memory(problem.host_memory.unwrap_or(0.0))
}

/// Bytes of the fullest node in host memory, where each device of `copies` replicas has `over` bytes of its tensors there.
pub fn streamed_on_node(problem: &Problem, plan: &ParallelPlan, copies: u64, over: f64) -> f64 {
    over * (plan.devices() * copies).min(problem.cluster.devices_per_node) as f64
}

/// Bytes of the fullest node in host memory, where `spilled` bytes are: of each device those that are streamed, of the one
/// replica of a node those that its processor computes with.
pub fn held_on_node(problem: &Problem, candidate: &Candidate, spilled: f64) -> f64 {
    let streamed =
        |pool: &PoolPlan| streamed_on_node(problem, &pool.plan, on_node(problem, pool.replicas), spilled);
    match candidate.offload {
        Offload::Host(_) => spilled,
        _ => candidate.pools.iter().map(streamed).fold(0.0, f64::max),
    }
}

/// The least host memory of a node, in bytes, with which the devices hold the model and one request in some format;
/// none where no part in host memory makes it fit, or nothing is known of the hosts.
pub fn least_host_memory(problem: &Problem) -> Option<f64> {
    least_host_memories(problem).into_values().reduce(f64::min)
}

/// The same in each format pair that it makes fit, by its index.
pub fn least_host_memories(problem: &Problem) -> BTreeMap<usize, f64> {
    let mut least = BTreeMap::new();
    if problem.offload == OffloadPolicy::Never || problem.context_fits().is_err() {
        return least;
    }
    let all = each(problem, &mut Census::default(), |formats, instance: Arc<Instance>| {
        let held = |target| held_in_host(problem, formats, &instance, target);
        let held = problem.offloads(formats, &instance, false).into_iter().filter_map(held).reduce(f64::min);
        held.map(|held| (formats, host_memory_for(held)))
    });
    for (formats, bytes) in all.into_iter().flatten() {
        let known = least.entry(formats).or_insert(bytes);
        *known = known.min(bytes);
    }
    least
}

/// Bytes of a node in host memory with one request per rank, where the devices hold the rest.
fn held_in_host(problem: &Problem, formats: usize, instance: &Instance, target: Offload) -> Option<f64> {
    let machine = problem.formats[formats].plain();
    let (terms, plan) = (problem.terms(), instance.plan);
    let placed = placed(problem, instance.clone(), target);
    let held = residency(&Plain, &placed, Phase::Decode, machine, terms, plan.dp);
    if matches!(target, Offload::Host(_)) {
        let tokens = admitted(&Plain, &placed, Phase::Decode, machine, (terms, plan.dp));
        let there = in_host_memory(&Plain, &placed, Phase::Decode, tokens, machine).map_or(0.0, Qty::value);
        return (held.total.value() <= held.usable.value()).then_some(there);
    }
    match spilled(problem, &held, (target, 1), &plan) {
        Ok(needed) => Some(needed.max(0.0)),
        Err(_) => None,
    }
}

/// The requests per rank of a hosted `instance` that fit in device and host memory; 0 if none.
pub fn fits(problem: &Problem, instance: &Instance, machine: &Machine<Qty<f64>>) -> u64 {
    let free = free_host_memory(problem);
    if free <= 0.0 {
        return 0;
    }
    filled_up(MOST_REQUESTS_PER_RANK, |requests| {
        let load = (problem.terms(), requests * instance.plan.dp);
        let held = residency(&Plain, instance, Phase::Decode, machine, load.0, load.1);
        let tokens = admitted(&Plain, instance, Phase::Decode, machine, load);
        let there = in_host_memory(&Plain, instance, Phase::Decode, tokens, machine);
        let there = there.map_or(0.0, Qty::value) / free;
        let usable = held.usable.value();
        let here = if usable > 0.0 { held.total.value() / usable } else { f64::INFINITY };
        here.max(there)
    })
}

impl Problem {
    /// Offload targets of `instance` in a format pair. A runtime that computes on the host does not read weights over
    /// the link at every step. Reading them adds time to every step: where a latency SLO ends the loads of the devices
    /// alone (`late`), it cannot help.
    pub fn offloads(&self, formats: usize, instance: &Instance, late: bool) -> Vec<Offload> {
        let reads = !late && self.formats[formats].plain().host.is_none() && self.terms().host_link.is_some();
        let streamed =
            OffloadPart::EACH.into_iter().filter(|part| reads && self.runtime.streams.contains(part));
        streamed.map(Offload::Streamed).chain(parts(self, formats, instance)).collect()
    }
}
