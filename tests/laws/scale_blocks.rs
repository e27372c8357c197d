//! Blocks of weights that share a scale: a server starts only where no shard of a quantised matrix ends inside one. By
//! brute force over every model, format, degree and shard boundary.

use mantile::graph::model::{ModelGraph, OperatorNode};
use mantile::graph::operator::{Operator, Split};
use mantile::plan::infeasible::Infeasible;
use mantile::plan::legal::{LegalLimits, check};
use mantile::plan::parallel::ParallelPlan;
use mantile::search::problem::Problem;
use mantile::spec::scenario::Scenario;
use mantile::store::kind::CatalogKind;

use crate::ask::{CATALOG, ask, on};

/// Formats, and the outputs and inputs of a block.
const FORMATS: [(&str, u64, u64); 3] = [("fp8-block", 128, 128), ("int4-gptq", 1, 128), ("nvfp4", 1, 16)];
/// The runtime that checks every side of every matrix in these formats.
const STRICT: &str = "sglang";
const DEGREES: [u64; 6] = [1, 2, 3, 4, 8, 16];

/// Whether a boundary between two of `parts` shards is inside a block.
fn is_cut(whole: u64, parts: u64, block: u64) -> bool {
    (1..parts).any(|boundary| !(boundary * (whole / parts)).is_multiple_of(block))
}

/// The same for a matrix that checkpoints leave in their own dtype where it is narrower than a block.
fn is_wide_and_cut(whole: u64, parts: u64, block: u64) -> bool {
    whole >= block && is_cut(whole, parts, block)
}

/// Whether `plan` cuts a block of a matrix of the node.
fn cuts(
    node: &OperatorNode,
    kv_heads: Option<u64>,
    plan: &ParallelPlan,
    (outputs, inputs): (u64, u64),
) -> bool {
    let kv = kv_heads.map_or(plan.tp, |heads| heads.min(plan.tp));
    match &node.operator {
        Operator::Linear { input, split: Split::Row, .. } => is_wide_and_cut(input.value, plan.tp, inputs),
        Operator::Linear { output, split: Split::Column | Split::Heads, .. } => {
            is_wide_and_cut(output.value, plan.tp, outputs)
        }
        Operator::Linear { output, split: Split::KvHeads, .. } => is_wide_and_cut(output.value, kv, outputs),
        Operator::LatentAttention(dims) => {
            let head = dims.qk_nope_head_dim.value + dims.v_head_dim.value;
            is_wide_and_cut(dims.heads.value * head, plan.tp, outputs)
        }
        Operator::Experts(dims) => {
            let whole = dims.intermediate.value;
            !(whole / plan.moe_tp).is_multiple_of(outputs) || is_cut(whole, plan.moe_tp, inputs)
        }
        _ => false,
    }
}

fn cuts_any(
    graph: &ModelGraph,
    quantised: &dyn Fn(&OperatorNode) -> bool,
    plan: &ParallelPlan,
    block: (u64, u64),
) -> bool {
    graph.blocks.iter().any(|layer| {
        let nodes: Vec<&OperatorNode> = layer.order.iter().map(|node| &layer.graph[*node]).collect();
        let kv_heads = nodes.iter().find_map(|node| match &node.operator {
            Operator::Attention(dims) => Some(dims.kv_heads.value),
            _ => None,
        });
        nodes.iter().any(|node| quantised(node) && cuts(node, kv_heads, plan, block))
    })
}

fn plans() -> impl Iterator<Item = ParallelPlan> {
    DEGREES.into_iter().flat_map(|tp| {
        let splits = DEGREES.into_iter().filter(move |ep| tp % ep == 0);
        splits.map(move |ep| ParallelPlan { tp, ep, moe_tp: tp / ep, ..ParallelPlan::SINGLE })
    })
}

fn in_format(model: &str, runtime: &str, format: &str) -> Option<Problem> {
    let question = Scenario {
        runtime: Some(runtime.into()),
        weight_format: Some(format.into()),
        ..on(model, "8xb200-sxm")
    };
    ask(&question).ok()
}

#[test]
fn a_plan_is_refused_just_where_a_shard_ends_inside_a_block() {
    let (mut refused, mut taken) = (0, 0);
    for model in CATALOG.entries(CatalogKind::Models).keys() {
        for (format, outputs, inputs) in FORMATS {
            let Some(problem) = in_format(model, STRICT, format) else { continue };
            let formats = &problem.formats[0];
            let block = formats.block.map_or((outputs, inputs), |block| (block.outputs, block.inputs));
            let limits = problem.legal_limits(formats);
            let limits = LegalLimits { devices: 1 << 20, domain: 1 << 20, block: 1 << 20, ..limits };
            let quantised = |node: &OperatorNode| {
                node.role().is_some_and(|role| formats.machine.quantised[role as usize])
            };
            for plan in plans() {
                let expected = cuts_any(&problem.graph, &quantised, &plan, block);
                match check(&problem.graph, &plan, &limits) {
                    Ok(()) => {
                        assert!(!expected, "{model} in {format}: {plan:?} cuts a block and is legal");
                        taken += 1;
                    }
                    Err(Infeasible::BlockCut { .. }) => {
                        assert!(expected, "{model} in {format}: {plan:?} cuts no block and is refused");
                        refused += 1;
                    }
                    Err(_) => {}
                }
            }
        }
    }
    assert!(refused > 50 && taken > 500, "{refused} refused, {taken} taken");
}

/// The report of vLLM: 1536 / 8 = 192 columns of an expert, in blocks of 128. From 0.33 on, blocks are divided.
#[test]
fn qwen3_235b_in_fp8_starts_on_tp_4_or_with_whole_experts() {
    let starts = |version: Option<&str>, plan: ParallelPlan| {
        let question = Scenario {
            runtime: Some("vllm".into()),
            runtime_version: version.map(str::to_owned),
            weight_format: Some("fp8-block".into()),
            ..on("Qwen3-235B-A22B", "8xh100-sxm")
        };
        let problem = ask(&question).expect("it is in the catalogue");
        check(&problem.graph, &plan, &problem.legal_limits(&problem.formats[0]))
    };
    let tp = |tp: u64, ep: u64| ParallelPlan { tp, ep, moe_tp: tp / ep, ..ParallelPlan::SINGLE };
    assert_eq!(starts(None, tp(4, 1)), Ok(()));
    assert_eq!(starts(None, tp(8, 8)), Ok(()));
    assert_eq!(starts(Some("0.33"), tp(8, 1)), Ok(()));
    for version in [None, Some("0.26")] {
        let reason = starts(version, tp(8, 1)).expect_err("192 mod 128 is 64");
        assert!(matches!(reason, Infeasible::BlockCut { shard: 192, block: 128, .. }), "{reason}");
        assert!(reason.to_string().contains("0.33"), "{reason}");
    }
}
