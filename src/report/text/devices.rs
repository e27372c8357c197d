//! The device count as a sum over pools, the memory of each device, and the constraints that bind.

use super::head::pools;
use super::page::{BAD, bullet, heading, paragraph, styled};
use crate::report::constraint::{Constraint, Resource};
use crate::report::detail::PoolMemory;
use crate::report::inputs::ReportInputs;
use crate::report::number::{bar, gib, gib_number, percent};
use crate::report::pool::{PoolReport, divided_role};
use crate::report::result::{MemoryReport, ReportedDeployment};
use crate::spec::degree::Degree;
use crate::spec::role::Role;

/// Devices of one replica: `(tp4 x pp2 = 8)`; expert parallelism has its own line.
fn instance(pool: &PoolReport) -> String {
    let degrees = [("tp", pool.plan.tp), ("pp", pool.plan.pp), ("dp", pool.plan.dp), ("cp", pool.plan.cp)];
    let used: Vec<String> =
        degrees.iter().filter(|(_, n)| *n > 1).map(|(name, n)| format!("{name}{n}")).collect();
    let used = if used.is_empty() { "tp1".to_string() } else { used.join(" x ") };
    format!("({used} = {})", pool.plan.tp * pool.plan.pp * pool.plan.dp * pool.plan.cp)
}

/// `8 = prefill 2 x (pp2 = 2) + decode 1 x (tp4 = 4) + 0 idle`, and expert and stage layouts.
pub fn devices(best: &ReportedDeployment, inputs: &ReportInputs, constraints: &[Constraint]) -> String {
    let pools = pools(best);
    let disaggregated = pools[0].role == Role::Prefill;
    let worker = |pool: &&PoolReport| {
        let role = match pool.role {
            Role::Aggregated if !disaggregated => String::new(),
            role => format!("{} ", role.name()),
        };
        format!("{role}{} x {}", pool.replicas, instance(pool))
    };
    let sum: Vec<String> = pools.iter().map(worker).collect();
    let sum = format!("{} = {} + {} idle", inputs.devices, sum.join(" + "), best.idle_devices);
    let mut text = heading("Devices", "") + &paragraph(&sum);
    if best.idle_devices > 0
        && let Some(why) = constraints.iter().find(|constraint| constraint.resource == Resource::Devices)
    {
        text.push_str(&paragraph(&format!("idle: {}", why.why)));
    }
    for pool in pools.iter() {
        let [ep, inside] = [Degree::Ep, Degree::MoeTp].map(|degree| (degree, pool.plan.degree(degree)));
        if ep.1 == 1 && inside.1 == pool.plan.tp {
            continue;
        }
        let [ep, inside] = [ep, inside].map(|(degree, number)| format!("{}{number}", degree.key()));
        let ranks = pool.plan.expert_ranks();
        let experts =
            format!("experts of {}: {ep} x {inside} on the same {ranks} devices of a stage", pool.label);
        text.push_str(&paragraph(&experts));
    }
    for pool in pools.iter().filter(|pool| pool.stages.len() > 1) {
        let stages: Vec<String> = pool.stages.iter().map(u32::to_string).collect();
        text.push_str(&paragraph(&format!("layers per PP stage of {}: {}", pool.label, stages.join(" + "))));
    }
    text
}

fn render_constraint(constraint: &Constraint) -> String {
    match (constraint.resource, constraint.used) {
        // These descriptions already include the share.
        (Resource::Step | Resource::Devices, _) | (_, None) => constraint.why.clone(),
        (_, Some(used)) => format!("{} ({})", constraint.why, percent(used)),
    }
}

pub fn binding(constraints: &[Constraint]) -> String {
    let (binds, slack): (Vec<_>, Vec<_>) = constraints.iter().partition(|constraint| constraint.binds);
    let mut text = heading("Bottlenecks", "");
    text.extend(binds.into_iter().map(|constraint| bullet(&render_constraint(constraint))));
    let slack: Vec<String> = slack.into_iter().map(render_constraint).collect();
    if !slack.is_empty() {
        text.push_str(&paragraph(&format!("Slack: {}", slack.join("; "))));
    }
    text
}

/// Width of a bar, in characters.
const CELLS: usize = 30;

/// The memory of a device, part by part.
pub(super) fn rows(memory: &MemoryReport) -> String {
    let over = memory.total_bytes - memory.usable_bytes;
    let parts = [
        ("weights", memory.weights_bytes),
        ("KV cache", memory.kv_cache_bytes),
        ("activations", memory.activations_bytes),
        ("buffers", memory.buffers_bytes),
        ("free", (-over).max(0.0)),
    ];
    let mut text = String::new();
    for (name, bytes) in parts {
        let share = bytes / memory.capacity_bytes;
        let (number, bar) = (gib_number(bytes), bar(share, CELLS));
        text.push_str(&format!("  {name:<12} {number:>9} GiB  {bar}  {:>5}\n", percent(share)));
    }
    let (number, usable) = (gib_number(memory.total_bytes), gib(memory.usable_bytes));
    let (seen, share) = (gib(memory.capacity_bytes), memory.utilization);
    let of = format!("of {usable} ({seen} x memory utilization {share})");
    text.push_str(&format!("  {:<12} {number:>9} GiB  {of}\n", "total"));
    if let Some(found) = &memory.interval {
        let between = format!("{} to {}", gib(found.p10), gib(found.p90));
        text.push_str(&format!("  {:<12} {:>9}      p10–p90 {between}\n", "", ""));
    }
    if memory.host_bytes > 0.0 {
        let number = gib_number(memory.host_bytes);
        text.push_str(&format!("  {:<12} {number:>9} GiB  in host memory, computed there\n", "host"));
    }
    if memory.offloaded_bytes > 0.0 {
        let number = gib_number(memory.offloaded_bytes);
        text.push_str(&format!("  {:<12} {number:>9} GiB  of the above in host memory\n", "offloaded"));
    } else if over > 0.0 {
        text.push_str(&format!("  {}\n", styled(BAD, &format!("SHORT BY {}", gib(over)))));
    }
    text
}

pub fn memory(pools: &[PoolMemory]) -> String {
    let mut text = String::new();
    for pool in pools {
        let role = divided_role(pool.role, ", ", "");
        text.push_str(&heading(
            &format!("Memory per device{role} ({})", pool.label),
            "% of the memory that software sees",
        ));
        text.push_str(&rows(&pool.memory));
    }
    text
}
