//! Laws of the work on the vector units: softmax and rotary positions.

use mantile::cost::roofline::Cost;
use mantile::graph::dimensions::{ScoredKeys, Scores};
use mantile::graph::mask::AttentionMask;
use mantile::graph::model::ModelGraph;
use mantile::graph::operator::Operator;
use mantile::plan::legal::{LegalLimits, check};
use mantile::plan::parallel::{ParallelPlan, Phase};
use mantile::plan::shard::{ShardedBlock, Task, TaskStep};
use mantile::quantity::num::Qty;
use mantile::quantity::read::Plain;
use mantile::search::problem::Problem;
use mantile::serving::instance::Instance;
use mantile::serving::static_batch::static_step;
use mantile::serving::step::CostObserver;
use mantile::spec::scenario::Scenario;
use proptest::prelude::*;

use super::{MARGIN, near};
use crate::ask::{ask, on};
use crate::cases::each;

/// Models with full, sliding, chunked, selected, latent, compressed and no attention, whole, partial and no rotation.
const MODELS: [&str; 12] = [
    "Llama-3.1-8B",
    "gemma-3-27b-it",
    "gemma-4-26B-A4B",
    "gpt-oss-20b",
    "Llama-4-Scout-17B-16E-Instruct",
    "DeepSeek-V2-Lite",
    "DeepSeek-V3.2",
    "SmolLM3-3B",
    "Phi-4-mini-instruct",
    "Qwen3-Coder-Next",
    "bloom-7b1",
    "granite-4.0-h-tiny",
];

/// What one device does in a step.
#[derive(Default)]
struct Vector {
    softmax: f64,
    rope: f64,
    softmax_bytes: f64,
}

impl CostObserver<f64> for Vector {
    fn on_operator(&mut self, _: Phase, block: &ShardedBlock, step: &TaskStep, cost: &Cost<Qty<f64>>) {
        let flops = cost.flops.value() * block.layers.value as f64;
        match &step.task {
            _ if block.encoder => {}
            Task::Compute { operator: Operator::Softmax(_), .. } => {
                self.softmax += flops;
                self.softmax_bytes += cost.bytes.value() + cost.wire.value();
            }
            Task::Compute { operator: Operator::Rope { .. }, .. } => self.rope += flops,
            Task::Compute { .. } | Task::Communicate(_) => {}
        }
    }

    fn on_idle(&mut self, _: Phase, _: &'static str, _: u64, _: Qty<f64>) {}
}

fn work(problem: &Problem, plan: ParallelPlan, phase: Phase, requests: u64) -> Vector {
    let layers = vec![problem.graph.layer_block.len() as u32];
    let instance = Instance::new(&problem.graph, plan, layers, problem.tiers());
    let mut seen = Vector::default();
    let machine = problem.formats[0].plain();
    static_step(&Plain, (&instance, phase), requests, problem.terms(), machine, &mut seen);
    seen
}

/// Keys that the query at `position` of a sequence is scored with, one by one.
fn seen(mask: AttentionMask, position: u64) -> u64 {
    let sees = |key: &u64| match mask {
        AttentionMask::All | AttentionMask::Both => true,
        AttentionMask::Window(window) => key + window.value > position,
        AttentionMask::Chunk(chunk) => key / chunk.value == position / chunk.value,
        AttentionMask::Selected(most) => *key < most.value,
        AttentionMask::Tile(tile) => key / tile.value == position / tile.value,
    };
    (0..=position).filter(sees).count() as u64
}

/// Scores of all heads, and rotated elements, of the whole model for queries at these positions.
fn by_hand(graph: &ModelGraph, positions: std::ops::Range<u64>) -> (f64, f64) {
    let (mut scores, mut rotated) = (0, 0);
    for block in graph.layer_block.iter().map(|block| &graph.blocks[*block]) {
        for node in block.graph.node_weights() {
            match node.operator {
                Operator::Softmax(Scores { heads, keys: ScoredKeys::Masked(mask) }) => {
                    let keys: u64 = positions.clone().map(|position| seen(mask, position)).sum();
                    scores += heads.value * keys;
                }
                Operator::Softmax(_) => panic!("other keys: not among the models"),
                Operator::Rope { heads, rotary, .. } => {
                    rotated += heads.value * rotary.value * (positions.end - positions.start);
                }
                _ => {}
            }
        }
    }
    (scores as f64, rotated as f64)
}

/// Softmax takes five operations a score under the mask and moves nothing; RoPE three a rotated element. Of b prompts, both
/// take b times those of one, on all devices together.
#[test]
fn vector_work_is_that_of_the_scores_and_the_rotated_elements() {
    let lengths = (1u64..700, 1u64..60);
    each(24, (0..MODELS.len(), lengths, 0u32..3, 0u32..2, 1u64..9), |(at, (isl, osl), tp, dp, times)| {
        let scenario = Scenario { isl: Some(isl), osl: Some(osl), ..on(MODELS[at], "8xb200-sxm") };
        let problem = ask(&scenario).expect("it runs");
        let (tp, dp) = (1u64 << tp, 1u64 << dp);
        let plan = ParallelPlan { tp, dp, moe_tp: tp * dp, ..ParallelPlan::SINGLE };
        let limits = problem.legal_limits(&problem.formats[0]);
        let graph = &problem.graph;
        if check(graph, &plan, &LegalLimits { runtime: None, ..limits }).is_err() {
            return Ok(());
        }
        let requests = dp * times;
        let prompt = by_hand(graph, 0..isl);
        let found = work(&problem, plan, Phase::Prefill, requests);
        let (devices, requests) = ((tp * dp) as f64, requests as f64);
        prop_assert_eq!(found.softmax_bytes, 0.0);
        let softmax = 5.0 * prompt.0 * requests;
        prop_assert!(near(found.softmax * devices, softmax, MARGIN), "{}: {plan:?}", MODELS[at]);
        // Key heads beyond the tensor-parallel ranks are rotated by each of their copies.
        let rope = 3.0 * prompt.1 * requests;
        prop_assert!(found.rope * devices >= rope * (1.0 - MARGIN), "{}: {plan:?}", MODELS[at]);
        if tp == 1 {
            prop_assert!(near(found.rope * devices, rope, MARGIN), "{}: {plan:?}", MODELS[at]);
        }
        Ok(())
    });
}

/// Inside one kernel the slowest of matrix units, memory and vector units decides: slower vector units never make a step
/// faster, fast ones change nothing, and a device without a stated rate has none.
#[test]
fn vector_units_are_a_third_ceiling_of_attention() {
    let models = ["Llama-3.1-8B", "DeepSeek-V2-Lite", "gemma-3-27b-it", "gpt-oss-20b"];
    let time = |model: &str, isl: u64, phase, rate: Option<f64>| {
        let overrides = rate.map(|rate| vec![format!("device.peak.fp32={rate} TFLOP/s")]);
        let scenario = Scenario { isl: Some(isl), osl: Some(64), set: overrides, ..on(model, "1xh200-sxm") };
        let problem = ask(&scenario).expect("it runs");
        let layers = vec![problem.graph.layer_block.len() as u32];
        let instance = Instance::new(&problem.graph, ParallelPlan::SINGLE, layers, problem.tiers());
        let machine = problem.formats[0].plain();
        static_step(&Plain, (&instance, phase), 4, problem.terms(), machine, &mut ()).step.total.value()
    };
    each(12, (0..models.len(), 512u64..16_000, 0..2usize, 0.0..4.0f64), |(at, isl, phase, power)| {
        let phase = [Phase::Prefill, Phase::Decode][phase];
        let of = |rate| time(models[at], isl, phase, rate);
        let stated = of(None);
        prop_assert_eq!(of(Some(1e6)), stated, "67 TFLOP/s are not the ceiling");
        let (fast, slow) = (of(Some(67.0 / 10f64.powf(power))), of(Some(67.0 / 10f64.powf(power + 0.5))));
        prop_assert!(stated <= fast && fast <= slow, "{stated} {fast} {slow}");
        Ok(())
    });
    assert!(
        time(models[0], 16_000, Phase::Prefill, Some(0.1))
            > 2.0 * time(models[0], 16_000, Phase::Prefill, None)
    );
}

/// The graph says which layers rotate what, with which base.
#[test]
fn every_kind_of_layer_names_its_rotation() {
    let ropes = |model: &str| {
        let problem = ask(&on(model, "8xb200-sxm")).expect("it runs");
        let mut found: Vec<(usize, u64, u64)> = vec![];
        let mut plain = 0;
        for block in &problem.graph.blocks {
            let named = |name| block.graph.node_weights().find(|node| node.name == name);
            assert!(named("kv_cache").is_some() || named("attention").is_none(), "{model}");
            match named("q_rope").map(|node| node.operator.clone()) {
                Some(Operator::Rope { rotary, theta, .. }) => {
                    found.push((block.layers.len(), rotary.value, theta.value));
                }
                _ => plain += block.layers.len(),
            }
        }
        found.sort_unstable();
        (found, plain)
    };
    assert_eq!(ropes("Llama-3.1-8B"), (vec![(32, 128, 500_000)], 0));
    assert_eq!(ropes("gemma-3-27b-it"), (vec![(10, 128, 1_000_000), (52, 128, 10_000)], 0));
    assert_eq!(ropes("Phi-4-mini-instruct"), (vec![(32, 96, 10_000)], 0));
    assert_eq!(ropes("MiMo-V2-Flash").0.iter().map(|one| (one.1, one.2)).max(), Some((64, 5_000_000)));
    assert_eq!(ropes("SmolLM3-3B").1, 9, "every fourth layer has no positions");
    assert_eq!(ropes("bloom-7b1"), (vec![], 30));
    assert_eq!(ropes("Llama-4-Scout-17B-16E-Instruct").1, 12);
    assert!(ropes("DeepSeek-V3").0.iter().all(|one| (one.1, one.2) == (64, 10_000)));
}
