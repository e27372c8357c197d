//! Tensors in host memory that the host's processor computes with: where a plan may have them, and how many layers.

use super::problem::Problem;
use super::shape::{InstanceConfig, MOST_REQUESTS_PER_RANK, filled_up};
use crate::cost::machine::Machine;
use crate::plan::infeasible::Infeasible;
use crate::plan::parallel::{ParallelPlan, Phase};
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::serving::admission::{admitted, residency};
use crate::serving::instance::Instance;
use crate::serving::residency::in_host_memory;
use crate::serving::terms::OffloadTarget;
use crate::spec::host_part::{HostPart, HostedTensors};
use crate::spec::offloaded::Offloaded;

/// Host memory that stays with the operating system and the runtime's own process, in bytes: an assumption, half of
/// what a desktop in use takes.
const RESERVED: f64 = 4.0 * (1u64 << 30) as f64;

/// `instance` with its part in host memory, where `offload` says so.
pub fn placed(problem: &Problem, instance: Instance, offload: OffloadTarget) -> Instance {
    match offload {
        OffloadTarget::Host(part) => instance.hosting(&problem.graph, part),
        OffloadTarget::Nothing | OffloadTarget::Layers | OffloadTarget::Experts | OffloadTarget::Kv => {
            instance
        }
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
    if problem.graph.draft.is_some() {
        return not("a draft is not combined with tensors on the host");
    }
    if part.tensors == HostedTensors::Experts && !crate::plan::legal::has_experts(&problem.graph) {
        return not("the model has no routed experts");
    }
    None
}

/// Every part of a plan's layers that the host can compute: the fewest layers first.
pub fn parts(problem: &Problem, formats: usize, instance: &Instance) -> Vec<OffloadTarget> {
    let longest = instance.stages.iter().copied().max().unwrap_or(0);
    let every = HostedTensors::EACH.into_iter();
    let parts = every.flat_map(|tensors| (1..=longest).map(move |layers| HostPart { tensors, layers }));
    let legal = parts.filter(|part| refused(problem, formats, &instance.plan, *part).is_none());
    legal.map(OffloadTarget::Host).collect()
}

/// Host memory of a node that a part of the model may take, in bytes; 0 where it is unknown.
pub fn host_room(problem: &Problem) -> f64 {
    (problem.host_memory.unwrap_or(0.0) - RESERVED).max(0.0)
}

/// The requests per rank of a hosted `instance` that fit in device and host memory; 0 if none.
pub fn fits(problem: &Problem, instance: &Instance, machine: &Machine<Qty<f64>>) -> u64 {
    let room = host_room(problem);
    if room <= 0.0 {
        return 0;
    }
    filled_up(MOST_REQUESTS_PER_RANK, |requests| {
        let load = (problem.terms(), requests * instance.plan.dp);
        let held = residency(&Plain, instance, Phase::Decode, machine, load.0, load.1);
        let tokens = admitted(&Plain, instance, Phase::Decode, machine, load);
        let there = in_host_memory(&Plain, instance, Phase::Decode, tokens, machine);
        let there = there.map_or(0.0, Qty::value) / room;
        let usable = held.usable.value();
        let here = if usable > 0.0 { held.total.value() / usable } else { f64::INFINITY };
        here.max(there)
    })
}

impl Problem {
    /// Offload targets of `instance` in a format pair. A runtime that computes on the host does not read weights over
    /// the link at every step. Reading them adds time to every step: where a latency SLO ends the loads of the devices
    /// alone (`late`), it cannot help.
    pub fn offloads(&self, formats: usize, instance: &Instance, late: bool) -> Vec<OffloadTarget> {
        let reads = !late && self.formats[formats].plain().host.is_none() && self.terms().host_link.is_some();
        let streamed =
            Offloaded::EACH.into_iter().filter(|part| reads && self.runtime.streams.contains(part));
        streamed.map(OffloadTarget::from).chain(parts(self, formats, instance)).collect()
    }
}
