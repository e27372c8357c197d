//! Shards add up to the whole, and nobody exchanges anything alone.

use mantile::graph::model::{Block, ModelGraph, OperatorNode};
use mantile::graph::operator::{Operator, Split};
use mantile::graph::tensor::TensorRole;
use mantile::plan::parallel::{LayerType, ParallelPlan, Phase};
use mantile::plan::shard::{Elements, ROLES, ShardedBlock, ShardedModel, Task, shard};
use mantile::quantity::num::Qty;
use mantile::quantity::read::Plain;
use mantile::serving::admission::residency;
use mantile::serving::instance::Instance;
use mantile::serving::residency::{CachedSequences, stage_footprint};
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::kind::CatalogKind;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::cases::{Case, each_case};

/// Elements of one layer of `block`, by role.
fn whole(block: &Block) -> Elements {
    let mut elements = [0; ROLES];
    for weight in block.graph.node_weights().flat_map(|node| &node.weights) {
        elements[weight.role as usize] += weight.elements();
    }
    elements
}

/// How many parts `plan` divides a role into at most: experts have biases too.
fn parts(role: usize, plan: &ParallelPlan) -> u64 {
    let experts = plan.ep * plan.moe_tp;
    match role {
        _ if role == TensorRole::Expert as usize => experts,
        _ if role == TensorRole::Bias as usize => {
            experts.max(plan.tp).max(plan.tp_of(LayerType::FeedForward))
        }
        _ if [TensorRole::Mlp as usize, TensorRole::SharedExpert as usize].contains(&role) => {
            plan.tp_of(LayerType::FeedForward)
        }
        _ if [TensorRole::Embedding as usize, TensorRole::LmHead as usize].contains(&role) => {
            plan.tp_of(LayerType::Vocabulary)
        }
        _ => plan.tp,
    }
}

fn blocks<'a>(
    graph: &'a ModelGraph,
    sharded: &'a ShardedModel,
) -> impl Iterator<Item = (&'a Block, &'a ShardedBlock)> {
    let ends = [(&graph.embedding, &sharded.embedding), (&graph.head, &sharded.head)];
    ends.into_iter().chain(graph.blocks.iter().zip(sharded.blocks.iter()))
}

/// Roles whose tensors in a block are divided without rest: matrices that `tp` or the experts' degrees divide.
fn exact(role: usize, block: &Block, graph: &ModelGraph, plan: &ParallelPlan) -> bool {
    let of_role = |node: &&OperatorNode| node.weights.iter().any(|weight| weight.role as usize == role);
    let whole =
        |node: &OperatorNode| matches!(node.operator, Operator::Linear { split: Split::Replicate, .. });
    if block.graph.node_weights().filter(of_role).any(whole) {
        return false;
    }
    let kv_heads = graph.blocks.iter().all(|block| match block.caches.as_slice() {
        [mantile::graph::cache::Cache::Heads { kv_heads, .. }] => kv_heads.value.is_multiple_of(plan.tp),
        _ => false,
    });
    (role == TensorRole::Expert as usize)
        || (role == TensorRole::Mlp as usize)
        || (role == TensorRole::Attention as usize && kv_heads)
}

fn add_up(case: &Case) -> Result<(), TestCaseError> {
    let graph = &case.problem.graph;
    for pool in &case.candidate.pools {
        let plan = pool.plan;
        for phase in [Phase::Prefill, Phase::Decode] {
            let sharded = shard(graph, plan, phase, case.problem.tiers());
            for (block, shards) in blocks(graph, &sharded) {
                for (role, whole) in whole(block).into_iter().enumerate() {
                    let parts = parts(role, &plan);
                    let held = shards.weights[role] * parts;
                    prop_assert!(
                        held >= whole,
                        "{}: {} of {} elements of role {}",
                        block.name,
                        held,
                        whole,
                        role
                    );
                    if exact(role, block, graph, &plan) {
                        prop_assert_eq!(held, whole, "{}, role {}", block.name, role);
                    }
                }
            }
        }
    }
    Ok(())
}

#[test]
fn what_devices_hold_adds_up_to_the_whole() {
    each_case(40, add_up);
}

fn stages(case: &Case) -> Result<(), TestCaseError> {
    let graph = &case.problem.graph;
    for instance in case.candidate.instances(&case.problem) {
        prop_assert_eq!(instance.kinds.iter().map(|kind| kind.times).sum::<u64>(), instance.plan.pp);
        prop_assert_eq!(instance.kinds.iter().filter(|kind| kind.first).count(), 1);
        prop_assert_eq!(instance.kinds.iter().filter(|kind| kind.last).count(), 1);
        for (number, block) in graph.blocks.iter().enumerate() {
            let layers: u64 = instance.kinds.iter().map(|kind| kind.times * kind.layers[number]).sum();
            prop_assert_eq!(layers, block.layers.len() as u64, "{}", block.name);
        }
    }
    Ok(())
}

#[test]
fn pipeline_stages_hold_every_layer_once() {
    each_case(40, stages);
}

/// All devices together hold all weights at their size, one device alone exactly those, and the fullest
/// device no less than any other.
fn weighty(case: &Case) -> Result<(), TestCaseError> {
    let problem = &case.problem;
    let machine = problem.formats[case.candidate.formats].plain();
    let bytes = |elements: &Elements| -> f64 {
        let one = |(role, count): (usize, &u64)| {
            *count as f64 * machine.chip.weight_bytes(machine.quantised[role]).value()
        };
        elements.iter().enumerate().map(one).sum()
    };
    let model = |graph: &ModelGraph| {
        let layers = graph.blocks.iter().map(|block| bytes(&whole(block)) * block.layers.len() as f64);
        let parts = graph.towers.iter().flat_map(|tower| &tower.parts);
        let towers: f64 = parts.map(|part| bytes(&whole(&part.block)) * part.block.repeats() as f64).sum();
        layers.sum::<f64>() + towers + bytes(&whole(&graph.embedding)) + bytes(&whole(&graph.head))
    };
    let draft = problem.graph.draft.as_ref().map_or(0.0, |draft| model(&draft.graph));
    let all = model(&problem.graph) + draft;
    for (pool, instance) in case.candidate.pools.iter().zip(case.candidate.instances(problem)) {
        let held = residency(&Plain, &instance, Phase::Decode, machine, problem.terms(), pool.concurrency);
        let load = CachedSequences::whole(Qty(1.0), Qty(1.0));
        let stage = |kind| stage_footprint(&Plain, &instance, Phase::Decode, kind, load, machine);
        let stages: Vec<_> = instance.kinds.iter().map(|kind| (kind.times, stage(kind))).collect();
        let weights: f64 = stages.iter().map(|(times, stage)| *times as f64 * stage.weights.value()).sum();
        let held_by_all = weights * pool.plan.stage_devices() as f64;
        prop_assert!(held_by_all >= all * (1.0 - 1e-12), "{} of {}", held_by_all, all);
        if pool.plan.devices() == 1 {
            prop_assert!((held_by_all / all - 1.0).abs() < 1e-12, "{} of {}", held_by_all, all);
        }
        for (_, stage) in &stages {
            prop_assert!(held.total.value() >= stage.weights.value());
            prop_assert!(held.total.value() >= stage.total.value());
        }
    }
    Ok(())
}

#[test]
fn memory_is_never_below_the_weights() {
    each_case(40, weighty);
}

fn exchanges(model: &ShardedModel) -> usize {
    let ends = [&model.embedding, &model.head];
    let steps = ends.into_iter().chain(model.blocks.iter()).flat_map(|block| &block.steps);
    steps.filter(|step| matches!(step.task, Task::Communicate(_))).count()
        + usize::from(model.handover.is_some())
}

#[test]
fn one_device_exchanges_nothing() {
    for file in Catalog::default().entries(CatalogKind::Models).into_keys() {
        let problem = {
            // Some checkpoints are in several formats, and ask for one.
            let any = Some("any".to_owned());
            let scenario = Scenario { weight_format: any, ..super::ask::on(&file, "dgx-h200") };
            super::ask::ask(&scenario).unwrap()
        };
        let layers = problem.graph.layers.value as u32;
        let lay = |plan| Instance::new(&problem.graph, plan, vec![layers], problem.tiers());
        let alone = lay(ParallelPlan::SINGLE);
        assert_eq!(exchanges(&alone.prefill) + exchanges(&alone.decode), 0, "{file}");
        let two = lay(ParallelPlan { tp: 2, moe_tp: 2, ..ParallelPlan::SINGLE });
        assert!(exchanges(&two.prefill) > 0 && exchanges(&two.decode) > 0, "{file}");
    }
}

/// Every degree above one brings an exchange, in the phase that it divides.
fn divided(case: &Case) -> Result<(), TestCaseError> {
    for instance in case.candidate.instances(&case.problem) {
        let ParallelPlan { tp, pp, cp, ep, ffn_tp, vocab_tp, .. } = instance.plan;
        let together = exchanges(&instance.prefill) + exchanges(&instance.decode);
        let own = [ffn_tp, vocab_tp].iter().any(|degree| degree.is_some_and(|degree| degree > 1));
        prop_assert_eq!(
            together > 0,
            tp > 1 || pp > 1 || cp > 1 || ep > 1 || instance.plan.moe_tp > 1 || own
        );
    }
    Ok(())
}

#[test]
fn what_is_divided_is_exchanged() {
    each_case(40, divided);
}
