//! A resolved problem in a few lines: the inputs and their sources.

use crate::quantity::unit::{SECOND, humanize};
use crate::report::table::grouped;
use crate::spec::objective::Direction;
use crate::spec::precision::FormatOption;
use crate::spec::visible::visible;
use crate::store::resolved_scenario::ResolvedScenario;

/// The lines.
pub fn summary(problem: &ResolvedScenario) -> String {
    let ResolvedScenario { model, graph, cluster, runtime, workload, objective, .. } = problem;
    let formats = |choices: &[FormatOption]| {
        let each = choices.iter().map(|choice| format!("{} ({})", choice.format.id, choice.why));
        each.collect::<Vec<_>>().join(", ")
    };
    let limits =
        [("TTFT", objective.limits.ttft), ("TPOT", objective.limits.tpot), ("E2E", objective.limits.e2e)];
    let limits: Vec<String> = limits
        .iter()
        .filter_map(|(name, limit)| Some(format!("{name} ≤ {}", humanize((*limit)?, SECOND))))
        .collect();
    let limits = if limits.is_empty() { "no SLO".to_owned() } else { limits.join(", ") };
    let aims: Vec<String> = objective
        .optimize
        .iter()
        .map(|aim| {
            let way = match aim.direction {
                Direction::Minimize => "minimise",
                Direction::Maximize => "maximise",
            };
            format!("{way} {}", aim.metric.entry().name)
        })
        .collect();
    let tiers: Vec<String> = cluster
        .tiers
        .iter()
        .map(|tier| format!("{} over {} at {}", tier.devices, tier.link, tier.bandwidth))
        .collect();
    let joined = if tiers.is_empty() { "no interconnect".to_owned() } else { tiers.join(", ") };
    let load = match (workload.concurrency, workload.rate) {
        (Some(concurrency), _) => format!(", concurrency {concurrency}"),
        (None, Some(rate)) => format!(", {rate} requests/s"),
        (None, None) => String::new(),
    };
    let prefix =
        if workload.prefix > 0 { format!(", {} of them cached", workload.prefix) } else { String::new() };
    let images = graph.image_inputs.as_ref().map_or(String::new(), |seen| {
        format!(" and {} images of {} tokens", seen.images.value, grouped(seen.tokens.value))
    });
    let lines = [
        (
            "model",
            format!("{}, {} parameters; {}", model.name, grouped(graph.parameters().unique), model.source),
        ),
        ("hardware", format!("{}; {} devices, {joined}", cluster.name, cluster.devices())),
        ("runtime", runtime.name.clone()),
        ("weights", formats(&problem.weight_formats)),
        ("KV cache", formats(&problem.kv_formats)),
        (
            "traffic",
            format!("{}: ISL {}{prefix}{images}, OSL {}{load}", workload.id, workload.isl, workload.osl),
        ),
        ("SLOs", limits),
        ("objective", format!("{}: {}", objective.id, aims.join(", then "))),
    ];
    let prefill = problem.prefill_weights.as_ref().map(|one| ("prefill", formats(std::slice::from_ref(one))));
    lines.iter().chain(&prefill).map(|(name, text)| format!("{name:<10} {}\n", visible(text))).collect()
}
