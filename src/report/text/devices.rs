//! The device count as a sum over pools, with idle devices.

use super::head::pools;
use super::page::{heading, paragraph};
use crate::report::constraint::{Constraint, Resource};
use crate::report::inputs::ReportInputs;
use crate::report::pool::PoolReport;
use crate::report::result::ReportedDeployment;
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
