//! The parallelised graph of a deployment, as tables.

use crate::report::parallel::{CacheReport, CollectiveReport, ParallelGraph, ParallelPhase, ParallelStep};
use crate::report::shard::{Shard, ShardDimension};
use crate::report::table::{grouped, table};
use crate::spec::role::Role;
use crate::spec::visible::visible;

pub fn parallel(graph: &ParallelGraph) -> String {
    let mut text = format!("{} on {}\n", visible(&graph.model), visible(&graph.hardware));
    if !graph.violations.is_empty() {
        text.push_str("\nThe model cannot be divided like this:\n");
    }
    for reason in &graph.violations {
        text.push_str(&format!("- {}\n", visible(reason)));
    }
    for pool in &graph.pools {
        text.push_str(&format!("\n{} x {}, {}\n", pool.replicas, pool.label, role(pool.role)));
        for (number, stage) in pool.stages.iter().enumerate() {
            let ends = [(stage.embedding, ", embedding"), (stage.head, ", head")];
            let ends: String = ends.iter().filter(|(has, _)| *has).map(|(_, name)| *name).collect();
            let last = stage.first_layer + stage.layers.saturating_sub(1);
            let (first, devices) = (stage.first_layer, stage.devices);
            text.push_str(&format!("  stage {number}: layers {first} to {last}{ends}, {devices} devices\n"));
        }
        pool.phases.iter().for_each(|phase| text.push_str(&phase_text(phase)));
    }
    text
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Aggregated => "prefill and decode",
        Role::Prefill => "prefill",
        Role::Decode => "decode",
    }
}

fn phase_text(phase: &ParallelPhase) -> String {
    let mut text = String::new();
    for block in &phase.blocks {
        let (name, layers, weights) = (&block.name, block.layers, grouped(block.weights));
        let title = format!("{}, {name} x {layers}: {weights} weights on a device", phase.phase.name());
        text.push_str(&format!("\n{title}\n"));
        let steps = block.steps.iter().map(step_cells);
        let header = ["step", "kind", "whole -> on one device", "same", "weights"];
        text.push_str(&table(&header, steps.chain(block.caches.iter().map(cache_cells))));
    }
    if let Some(handover) = &phase.handover {
        text.push_str(&format!("\nto the next stage: {}\n", collective_text(handover)));
    }
    text
}

fn collective_text(exchange: &CollectiveReport) -> String {
    let CollectiveReport { operation, devices, elements_per_token, .. } = exchange;
    format!("{operation} over {devices} devices, {} elements per token", grouped(*elements_per_token))
}

fn step_cells(step: &ParallelStep) -> Vec<String> {
    let shard = step.shard.as_ref();
    let what = match (&step.collective, shard) {
        (Some(exchange), _) => collective_text(exchange),
        (None, shard) => shard.map(Shard::text).unwrap_or_default(),
    };
    let same = shard.map(|shard| shard.replicas.to_string()).unwrap_or_default();
    let weights = if step.weights > 0 { grouped(step.weights) } else { String::new() };
    vec![step.name.clone(), step.kind.clone(), what, same, weights]
}

fn cache_cells(cache: &CacheReport) -> Vec<String> {
    let one = |dim: &ShardDimension| {
        let ShardDimension { name, whole, here } = dim;
        if whole == here { format!("{name} {here}") } else { format!("{name} {whole} -> {here}") }
    };
    let mut parts: Vec<String> = cache.shape.iter().map(one).collect();
    if cache.token_shards > 1 {
        parts.push(format!("tokens / {}", cache.token_shards));
    }
    let shape = parts.join(", ");
    vec!["cache".to_string(), cache.kind.clone(), shape, cache.replicas.to_string(), String::new()]
}

pub const PARALLEL_COLUMNS: [&str; 9] =
    ["pool", "phase", "block", "layers", "step", "kind", "whole -> on one device", "same", "weights"];

/// Every step and cache as a row of a sheet.
pub fn parallel_rows(graph: &ParallelGraph) -> impl Iterator<Item = Vec<String>> {
    let phases = graph.pools.iter().flat_map(|pool| pool.phases.iter().map(move |phase| (pool, phase)));
    let blocks = phases.flat_map(|(pool, phase)| phase.blocks.iter().map(move |block| (pool, phase, block)));
    blocks.flat_map(|(pool, phase, block)| {
        let place =
            [&pool.label, phase.phase.name(), &block.name, &block.layers.to_string()].map(str::to_owned);
        let cells = block.steps.iter().map(step_cells).chain(block.caches.iter().map(cache_cells));
        cells.map(move |cells| place.iter().cloned().chain(cells).collect()).collect::<Vec<_>>()
    })
}
