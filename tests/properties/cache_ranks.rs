//! Decode context parallelism: the tp ranks that would repeat a part of the KV cache divide its tokens instead.

use mantile::graph::operator::Operator;
use mantile::plan::collective::CollectiveOp;
use mantile::plan::legal::{check, ranks_per_cache};
use mantile::plan::parallel::{ParallelPlan, Phase};
use mantile::plan::shard::{ShardedModel, Task, shard};
use mantile::quantity::read::Plain;
use mantile::search::problem::Problem;
use mantile::serving::instance::Instance;
use mantile::serving::residency::cache_per_sequence;

use crate::ask::{ask, on};

const TOKENS: u64 = 1 << 15;

fn problem(model: &str) -> Problem {
    ask(&mantile::spec::scenario::Scenario { runtime: Some("vllm".into()), ..on(model, "8xh200") }).unwrap()
}

/// Attention heads on a device, and the elements that collectives of each name carry per token.
fn attention(model: &ShardedModel) -> (u64, Vec<(&'static str, CollectiveOp, u64)>) {
    let steps = || model.blocks.iter().flat_map(|block| &block.steps);
    let heads = steps().find_map(|step| match &step.task {
        Task::Compute { operator: Operator::Attention(dims), .. } => Some(dims.heads.value),
        Task::Compute { operator: Operator::LatentAttention(dims), .. } => Some(dims.heads.value),
        _ => None,
    });
    let sent = steps().filter_map(|step| match &step.task {
        Task::Communicate(one) => Some((step.name, one.op, one.width.value)),
        Task::Compute { .. } => None,
    });
    (heads.unwrap(), sent.filter(|(name, ..)| ["gather_queries", "merge_parts"].contains(name)).collect())
}

#[test]
fn decode_context_parallelism_divides_what_ranks_have_in_common() {
    // Model, tp, ranks with the same KV heads, heads, width of a query, width of a head's result.
    for (model, tp, ranks, heads, query, result) in [
        ("DeepSeek-V2-Lite", 4, 4, 16, 512 + 64, 512),
        ("DeepSeek-V3", 8, 8, 128, 512 + 64, 512),
        ("Qwen3-30B-A3B", 8, 2, 32, 128, 128),
        ("Qwen3-30B-A3B", 4, 1, 32, 128, 128),
        ("Llama-3.3-70B", 8, 1, 64, 128, 128),
    ] {
        let problem = problem(model);
        let graph = &problem.graph;
        assert_eq!(ranks_per_cache(graph, tp), ranks, "{model} at tp {tp}");
        let limits = problem.legal_limits(&problem.formats[0]);
        let tiers = mantile::plan::group::tiers(&problem.cluster);
        let plain = ParallelPlan { tp, moe_tp: tp, ..ParallelPlan::SINGLE };
        let bytes = |plan: ParallelPlan| {
            let instance = Instance::new(graph, plan, vec![graph.layers.value as u32], &tiers);
            let machine = problem.formats[0].plain();
            cache_per_sequence(&Plain, &instance, Phase::Decode, (TOKENS as f64).into(), machine).value()
        };
        for dcp in 1..=tp {
            let divided = ParallelPlan { dcp, ..plain };
            let legal = check(graph, &divided, &limits).is_ok();
            assert_eq!(legal, ranks % dcp == 0, "{model} at tp {tp} dcp {dcp}");
            if !legal {
                continue;
            }
            let ratio = bytes(plain) / bytes(divided);
            assert!((ratio - dcp as f64).abs() < 1e-9, "{model}: a cache {ratio} times smaller, dcp {dcp}");
            let decode = shard(graph, divided, Phase::Decode, &tiers);
            let (here, sent) = attention(&decode);
            assert_eq!(here, heads / (tp / dcp), "{model}: every rank has the heads of its dcp ranks");
            let group = heads * dcp / tp;
            let exchange = [
                ("gather_queries", CollectiveOp::AllGather, group * query),
                ("merge_parts", CollectiveOp::ReduceScatter, group * (result + 4)),
            ];
            assert!(
                if dcp == 1 { sent.is_empty() } else { sent.starts_with(&exchange) },
                "{model}: {sent:?}"
            );
            let prefill = attention(&shard(graph, divided, Phase::Prefill, &tiers));
            assert_eq!(prefill, (heads / tp, vec![]), "{model}: prefill attends to a rank's own heads");
        }
    }
}
