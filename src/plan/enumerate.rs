//! Enumerates every plan that model, system and runtime allow, and counts the reasons against the others.

use super::infeasible::{Infeasible, Refused, refuse};
use super::legal::{
    LegalLimits, caches, expert_parallel, fits_topology, has_experts, ranks_per_cache, supported,
    tensor_parallel,
};
use super::parallel::ParallelPlan;
use crate::graph::model::ModelGraph;
use crate::graph::operator::Operator;

/// The legal plans, and the counts of rejected ones.
#[derive(Clone, Debug, Default)]
pub struct Plans {
    /// Legal plans, smallest first.
    pub legal: Vec<ParallelPlan>,
    /// Rejections by reason, with the first one as an example.
    pub illegal: Refused,
}

/// The divisors of `n`, smallest first.
fn divisors(n: u64) -> impl Iterator<Item = u64> {
    let small: Vec<u64> = (1..=n.isqrt()).filter(|d| n.is_multiple_of(*d)).collect();
    let large: Vec<u64> = small.iter().rev().map(|d| n / d).filter(|d| d * d != n).collect();
    small.into_iter().chain(large)
}

/// Enumerates the plans of one instance.
///
/// Degrees are all integers, not only powers of two. Attention data parallelism is enumerated for models with experts
/// only. For a dense model it equals additional replicas.
pub fn enumerate(graph: &ModelGraph, limits: &LegalLimits) -> Plans {
    enumerate_until(graph, limits, &|| false).unwrap_or_default()
}

/// The same; `None` where `stop` ended it.
pub fn enumerate_until(graph: &ModelGraph, limits: &LegalLimits, stop: &dyn Fn() -> bool) -> Option<Plans> {
    let mut plans = Plans::default();
    let experts = has_experts(graph);
    let mut tps = Vec::new();
    for tp in 1..=limits.devices {
        let heads = graph.layer_nodes();
        let most = heads.filter_map(|node| head_count(&node.operator)).max().unwrap_or(1);
        if tp > most {
            break;
        }
        match tensor_parallel(graph, &ParallelPlan { tp, ..ParallelPlan::SINGLE }, limits) {
            Ok(()) => tps.push(tp),
            Err(reason) => refuse(&mut plans.illegal, &reason),
        }
    }
    for devices in 1..=limits.devices {
        if let Err(reason) = fits_topology(devices, limits) {
            refuse(&mut plans.illegal, &reason);
        }
    }
    for stage in 1..=limits.devices {
        let splits = if experts { expert_splits(graph, stage, limits, &mut plans) } else { vec![None] };
        if stop() {
            return None;
        }
        let divided = tps.iter().filter(|&&tp| !splits.is_empty() && stage % tp == 0);
        for (&tp, &split) in divided.flat_map(|tp| splits.iter().map(move |split| (tp, split))) {
            for dp in divisors(stage / tp).filter(|&dp| experts || dp == 1) {
                let (ep, moe_tp) = split.unwrap_or((1, tp));
                let plan = ParallelPlan { tp, dp, cp: stage / tp / dp, ep, moe_tp, ..ParallelPlan::SINGLE };
                plans.pipelines(graph, plan, limits);
            }
        }
    }
    plans.legal.sort_by_key(|plan| (plan.devices(), plan.tp, plan.pp, plan.dp, plan.ep, plan.dcp, plan.sp));
    Some(plans)
}

/// The legal degrees of expert parallelism and of tensor parallelism in experts, for the devices of a stage.
fn expert_splits(
    graph: &ModelGraph,
    stage: u64,
    limits: &LegalLimits,
    plans: &mut Plans,
) -> Vec<Option<(u64, u64)>> {
    let mut splits = Vec::new();
    for ep in divisors(stage) {
        match expert_parallel(graph, ep, stage / ep, limits) {
            Ok(()) => splits.push(Some((ep, stage / ep))),
            Err(reason) => refuse(&mut plans.illegal, &reason),
        }
    }
    splits
}

impl Plans {
    /// The legal plans with any number of the stage of `one`.
    fn pipelines(&mut self, graph: &ModelGraph, one: ParallelPlan, limits: &LegalLimits) {
        let most = limits.devices / one.stage_devices();
        if most > graph.layers.value {
            refuse(&mut self.illegal, &Infeasible::TooManyStages { layers: graph.layers.value, pp: most });
        }
        for pp in 1..=most.min(graph.layers.value) {
            let plan = ParallelPlan { pp, ..one };
            if fits_topology(plan.devices(), limits).is_err() {
                continue;
            }
            match supported(&plan, limits).and_then(|()| caches(graph, &plan)) {
                Ok(()) => self.legal.extend(variants(graph, plan, limits)),
                Err(reason) => refuse(&mut self.illegal, &reason),
            }
        }
    }
}

/// A legal plan and the legal ones with the same devices: with decode context and sequence parallelism.
fn variants<'a>(
    graph: &'a ModelGraph,
    plan: ParallelPlan,
    limits: &'a LegalLimits<'a>,
) -> impl Iterator<Item = ParallelPlan> {
    let ranks = if plan.cp == 1 { ranks_per_cache(graph, plan.tp) } else { 1 };
    divisors(ranks).flat_map(move |dcp| {
        let used = [false, true].into_iter().filter(move |&sp| plan.tp > 1 || !sp);
        let plans = used.map(move |sp| ParallelPlan { dcp, sp, ..plan });
        plans.filter(|plan| supported(plan, limits).is_ok())
    })
}

/// Heads that tensor parallelism divides; `None` for operators that do not limit it by heads.
fn head_count(operator: &Operator) -> Option<u64> {
    match operator {
        Operator::Attention(dims) => Some(dims.heads.value),
        Operator::LatentAttention(dims) => Some(dims.heads.value),
        Operator::Recurrence(dims) => Some(dims.heads.value),
        Operator::Input { .. }
        | Operator::Embedding { .. }
        | Operator::Norm { .. }
        | Operator::Linear { .. }
        | Operator::Rope { .. }
        | Operator::KvCache { .. }
        | Operator::Softmax(_)
        | Operator::CrossAttention(_)
        | Operator::CompressedAttention(_)
        | Operator::HyperConnection { .. }
        | Operator::Indexer { .. }
        | Operator::GroupedLinear { .. }
        | Operator::ShortConv { .. }
        | Operator::Activation { .. }
        | Operator::Router { .. }
        | Operator::Experts(_)
        | Operator::Add { .. }
        | Operator::Sampling { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisors_are_those_of_trial_division() {
        for n in 1..500 {
            let tried: Vec<u64> = (1..=n).filter(|d| n % d == 0).collect();
            assert_eq!(divisors(n).collect::<Vec<_>>(), tried, "{n}");
        }
    }
}
