//! Laws of the work, the links and the load that are priced.

use mantile::spec::degree::Degrees;
use mantile::spec::offload::Offload;
use std::collections::BTreeMap;
use std::sync::Arc;

use mantile::cost::batch::Batch;
use mantile::cost::collective::{cost as priced, cost_by_leg};
use mantile::cost::roofline::Cost;
use mantile::graph::operator::Operator;
use mantile::graph::tensor::TensorRole;
use mantile::plan::collective::{Collective, CollectiveOp, Tokens};
use mantile::plan::group::RankGroup;
use mantile::plan::legal::{LegalLimits, check};
use mantile::plan::parallel::{ParallelPlan, Phase};
use mantile::plan::shard::{ShardedBlock, Task, TaskStep};
use mantile::plan::sharding::TokenShare;
use mantile::quantity::count::Count;
use mantile::quantity::num::Qty;
use mantile::quantity::read::Plain;
use mantile::report::breakdown::Module;
use mantile::request::UNCONTROLLED;
use mantile::request::estimate::{EstimateRequest, estimate};
use mantile::request::static_batch::{StaticRequest, static_batch};
use mantile::search::problem::Problem;
use mantile::search::shape::shape;
use mantile::serving::admission::residency;
use mantile::serving::instance::Instance;
use mantile::serving::static_batch::static_step;
use mantile::serving::step::CostObserver;
use mantile::spec::cluster::{PeerToPeer, Topology};
use mantile::spec::deployment::Deployment;
use mantile::spec::percentile::Percentile;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use proptest::prelude::*;
use serde_json::Value;

use crate::ask::{ask, on};
use crate::cases::each;

mod phase_formats;
mod vector;

const MARGIN: f64 = 1e-9;
const TINY: &str = "TinyLlama-1.1B-Chat-v1.0";

fn near(found: f64, expected: f64, tolerance: f64) -> bool {
    (found - expected).abs() <= tolerance * expected.abs()
}

/// A collective over the first `size` devices, and its batch.
fn over(problem: &Problem, op: CollectiveOp, size: u64, tokens: f64) -> (Collective, Batch<Qty<f64>>) {
    let width = Count::config("hidden_size", 4096);
    let one = Qty(1.0);
    let batch = Batch::new((one, Qty(tokens), Qty(0.0)), (one, one, one));
    let tiers = problem.tiers();
    let group = RankGroup::place(size, 1, tiers).expect("several devices");
    (Collective::new(op, group, width, Tokens::Rank(TokenShare::Own), tiers), batch)
}

/// Time of a collective over the first `size` devices.
fn collective(problem: &Problem, op: CollectiveOp, size: u64, tokens: f64) -> f64 {
    let (of, batch) = over(problem, op, size, tokens);
    priced(&Plain, &of, &batch, problem.formats[0].plain()).time.value()
}

const OPS: [CollectiveOp; 5] = [
    CollectiveOp::AllReduce,
    CollectiveOp::AllGather,
    CollectiveOp::ReduceScatter,
    CollectiveOp::AllToAll,
    CollectiveOp::SendRecv,
];

/// An all-reduce over two nodes of 8 scatters and gathers inside each, 7/8 of the buffer either way, and sums eighths over
/// the network. Each leg is one hop, and all of them with the launch are the collective.
#[test]
fn each_leg_of_an_all_reduce_is_on_its_tier() {
    let problem = ask(&on(TINY, "16xh100")).expect("a system");
    let machine = problem.formats[0].plain();
    let (links, chip) = (&machine.links, &machine.chip);
    each(20, 3.0..6.0f64, |scale| {
        let tokens = 10f64.powf(scale).round();
        let (of, batch) = over(&problem, CollectiveOp::AllReduce, 16, tokens);
        let mut legs = vec![];
        let all = cost_by_leg(&Plain, &of, &batch, machine, |tier, leg| legs.push((tier, *leg)));
        let buffer = tokens * 4096.0 * chip.activation_bytes.value();
        prop_assert_eq!(legs.len(), 3);
        let mut time = chip.collective_latency.value();
        for ((tier, leg), (at, part)) in legs.iter().zip([(0, 0.875), (1, 0.125), (0, 0.875)]) {
            let rate = links[at].bandwidth.value() * chip.collective_bandwidth.value();
            prop_assert_eq!(*tier, at);
            prop_assert!(near(leg.wire.value(), part * buffer, MARGIN), "{:?}", leg);
            prop_assert!(near(leg.time.value(), links[at].latency.value() + part * buffer / rate, MARGIN));
            time += leg.time.value();
        }
        prop_assert!(near(all.time.value(), time, MARGIN), "{:?}", all);
        Ok(())
    });
}

/// A group in a full mesh has the links between its own members, however many devices there are beyond it.
#[test]
fn a_group_in_a_mesh_takes_as_long_in_a_small_system_as_in_a_full_one() {
    // Links that are wired once. Bridges are made for a number of cards, and use all links of each.
    let meshes = [
        ("mi300x", 8),
        ("mi325x", 8),
        ("mi350x", 8),
        ("mi355x", 8),
        ("gaudi2", 8),
        ("gaudi3", 8),
        ("mi250x", 16),
        ("v100-sxm2-32gb", 8),
        ("apple-m3-ultra", 4),
        ("apple-m4-max", 4),
    ];
    let draw = (0..meshes.len(), 0..OPS.len(), 2u64..16, 2u64..16, 0.0..5.0f64);
    each(60, draw, |(at, op, size, more, scale)| {
        let (device, full) = meshes[at];
        let (size, tokens) = (size.min(full), 10f64.powf(scale));
        let devices = (size + more).min(full);
        let on = |count: u64| ask(&on(TINY, &format!("{count}x{device}"))).expect("a system");
        let [small, large, whole] =
            [size, devices, full].map(|count| collective(&on(count), OPS[op], size, tokens));
        for other in [large, whole] {
            prop_assert!(
                near(small, other, MARGIN),
                "{:?} of {} {}: {small}, {other}",
                OPS[op],
                size,
                device
            );
        }
        Ok(())
    });
}

/// A KV cache goes from one device of a mesh to another over the one link that joins them, however many others each has.
#[test]
fn a_cache_crosses_a_mesh_over_one_link() {
    use mantile::cost::collective::pair_link;
    use mantile::serving::streamed::transfer;
    let meshes = [("mi300x", 7.0), ("mi325x", 7.0), ("mi355x", 7.0), ("gaudi3", 7.0)];
    each(40, (0..meshes.len(), 2u64..=8, 3.0..11.0f64), |(at, devices, size)| {
        let (device, links) = meshes[at];
        let bytes = Qty(10f64.powf(size));
        let time = |hardware: String| {
            let problem = ask(&on(TINY, &hardware)).expect("a system");
            let machine = problem.formats[0].plain();
            let whole = machine.links[0].bandwidth.value() * machine.chip.collective_bandwidth.value();
            let taken = transfer(bytes, &pair_link(&Plain, machine, 0), &machine.chip).value();
            (taken - machine.links[0].latency.value(), whole)
        };
        let (taken, _) = time(format!("{devices}x{device}"));
        let (full, whole) = time(format!("8x{device}"));
        prop_assert!(near(full, bytes.value() * links / whole, 1e-6), "{device}: {full}");
        prop_assert!(near(taken, full, 1e-6), "{devices} {device}: {taken}, {full} in a full system");
        // A switch gives a pair the whole rate of a device.
        let (taken, whole) = time(format!("{devices}xh100-sxm"));
        prop_assert!(near(taken, bytes.value() / whole, 1e-6), "{taken}");
        Ok(())
    });
}

/// Without peer-to-peer no collective is faster, and what was fitted on links of devices' own does not reach a bus.
#[test]
fn staging_through_the_host_is_never_faster_than_peer_to_peer() {
    let devices = [
        "l40s",
        "a100-pcie-80gb",
        "rtx-4090",
        "rtx-4070",
        "rtx-5090",
        "nvidia-rtx-pro-6000-blackwell-server",
    ];
    each(40, (0..devices.len(), 0..OPS.len(), 2u64..=8, 0.0..5.0f64), |(at, op, size, scale)| {
        let tokens = 10f64.powf(scale);
        let of = |p2p: Option<PeerToPeer>| {
            let problem = ask(&Scenario { p2p, ..on(TINY, &format!("{size}x{}", devices[at])) });
            problem.expect("a system on PCIe")
        };
        let time = |p2p| collective(&of(Some(p2p)), OPS[op], size, tokens);
        let [yes, no, switch] = [PeerToPeer::Yes, PeerToPeer::No, PeerToPeer::Switch].map(time);
        prop_assert!(yes <= no * (1.0 + MARGIN), "{size} {}: {yes} with, {no} without", devices[at]);
        prop_assert!(switch <= no * (1.0 + MARGIN));
        let system = of(None);
        prop_assert!(system.cluster.tiers.iter().any(|tier| tier.peer_to_peer.is_some()));
        let fabric = |text: &str| text.contains("link: fabric");
        for one in &system.formats[0].machine.calibration {
            prop_assert!(one.multipliers.iter().all(|datum| !fabric(&datum.symbol)), "{}", devices[at]);
        }
        Ok(())
    });
    for hardware in ["8xh100-sxm", "1xl40s"] {
        let stated = Scenario { p2p: Some(PeerToPeer::No), ..on(TINY, hardware) };
        assert_eq!(ask(&stated).expect_err("nothing meets over PCIe").key, "p2p", "{hardware}");
    }
    let bus = ask(&on(TINY, "8xl40s")).expect("a system").cluster;
    assert!(bus.tiers.iter().all(|tier| tier.topology == Topology::Pcie));
    assert_eq!(bus.tiers[0].peer_to_peer, Some(PeerToPeer::Yes), "the common case");
}

/// FLOPs of one device in a step: of attention, dense feed-forward layers and routed experts, and of everything.
#[derive(Default)]
struct Flops {
    attention: f64,
    dense: f64,
    experts: f64,
    all: f64,
}

impl CostObserver<f64> for Flops {
    fn on_operator(&mut self, _: Phase, block: &ShardedBlock, step: &TaskStep, cost: &Cost<Qty<f64>>) {
        let flops = cost.flops.value() * block.layers.value as f64;
        self.all += flops;
        match &step.task {
            Task::Compute { operator: Operator::Experts(_), .. } => self.experts += flops,
            Task::Compute { operator: Operator::Attention(_), .. } => self.attention += flops,
            Task::Compute { role: TensorRole::Mlp, .. } => self.dense += flops,
            Task::Compute { .. } | Task::Communicate(_) => {}
        }
    }

    fn on_idle(&mut self, _: Phase, _: &'static str, _: u64, _: Qty<f64>) {}
}

fn flops(problem: &Problem, plan: ParallelPlan, phase: Phase, requests: u64) -> Flops {
    let layers = vec![problem.graph.layer_block.len() as u32];
    let instance = Instance::new(&problem.graph, plan, layers, problem.tiers());
    let mut seen = Flops::default();
    let machine = problem.formats[0].plain();
    static_step(&Plain, (&instance, phase), requests, problem.terms(), machine, &mut seen);
    seen
}

/// All devices together do the work of the tokens that are there: of b prompts b times that of one. A rank without a
/// request has a dummy of one token.
#[test]
fn all_devices_do_the_work_of_the_tokens_that_are_there() {
    let models = ["Qwen3-30B-A3B", "gpt-oss-120b", "Mixtral-8x7B-v0.1", "DeepSeek-V2-Lite", "GLM-4.5-Air"];
    let problems: Vec<Problem> = models
        .iter()
        .map(|model| {
            ask(&Scenario { isl: Some(512), osl: Some(64), ..on(model, "8xb200-sxm") }).expect("it runs")
        })
        .collect();
    let draw = (0..models.len(), 0..2usize, 0u32..4, 0u32..4, 1u64..40);
    each(60, draw, |(at, phase, dp, ep, requests)| {
        let (problem, phase) = (&problems[at], [Phase::Prefill, Phase::Decode][phase]);
        let dp = 1u64 << dp;
        let ep = 1u64 << ep;
        let plan = ParallelPlan { tp: 8 / dp, dp, ep, moe_tp: 8 / ep, ..ParallelPlan::SINGLE };
        let one = flops(problem, ParallelPlan::SINGLE, phase, 1);
        let found = flops(problem, plan, phase, requests);
        let new = if phase == Phase::Prefill { 512.0 } else { 1.0 };
        let idle = dp.saturating_sub(requests) as f64 / new;
        let expected = one.experts * (requests as f64 + idle);
        prop_assert!(near(found.experts * 8.0, expected, MARGIN), "{} {plan:?} x{requests}", models[at]);
        if dp == 8 && requests.is_multiple_of(dp) {
            let expected = one.all * requests as f64;
            prop_assert!(near(found.all * 8.0, expected, MARGIN), "{} {plan:?} x{requests}", models[at]);
        }
        Ok(())
    });
}

/// The same question where the runtime stores every request's prefix.
fn unshared(problem: &Problem) -> Problem {
    let mut problem = problem.clone();
    problem.workload.shared_prefixes = None;
    problem.with_lengths(problem.workload.lengths)
}

/// A common prefix is stored once on each attention rank: n requests hold the prefix and n times their own tokens, and
/// never fewer of them fit.
#[test]
fn a_shared_prefix_is_stored_once() {
    let models = [
        "Qwen3-32B",
        "Llama-3.3-70B",
        "gpt-oss-120b",
        "DeepSeek-V2-Lite",
        "gemma-3-27b-it",
        "granite-4.0-h-small",
    ];
    let runtimes = ["vllm", "sglang", "trtllm"];
    let lengths = (0u64..8000, 1u64..4000, 1u64..2000);
    let draw = (0..models.len(), 0..runtimes.len(), 0u32..4, lengths, 1u64..8, 8u64..200);
    each(40, draw, |(at, runtime, tp, (prefix, own, osl), groups, requests)| {
        let scenario = Scenario {
            isl: Some(prefix + own),
            osl: Some(osl),
            prefix: Some(prefix),
            prefix_groups: Some(groups),
            runtime: Some(runtimes[runtime].into()),
            ..on(models[at], "8xh200-sxm")
        };
        let Ok(problem) = ask(&scenario) else { return Ok(()) };
        let plan = ParallelPlan { tp: 1 << tp, moe_tp: 1 << tp, ..ParallelPlan::SINGLE };
        let layers = vec![problem.graph.layer_block.len() as u32];
        let instance = Instance::new(&problem.graph, plan, layers, problem.tiers());
        let alone = unshared(&problem);
        let kv = |problem: &Problem, requests| {
            let machine = problem.formats[0].plain();
            residency(&Plain, &instance, Phase::Prefill, machine, problem.terms(), requests).kv.value()
        };
        let [one, many, more] = [1, requests, requests + 1].map(|requests| kv(&problem, requests));
        let own = more - many;
        let expected = groups as f64 * (one - own) + requests as f64 * own;
        prop_assert!(near(many, expected, 1e-6), "{many}: {one} for one, {own} for one more");
        prop_assert!(near(one, kv(&alone, 1), MARGIN), "one request holds all of its tokens");
        prop_assert!(many <= kv(&alone, requests) * (1.0 + MARGIN));
        let instance = Arc::new(instance);
        let fits = |problem: &Problem| {
            shape(problem, 0, &instance, (Offload::Nothing, 1)).map_or(0, |shape| shape.fits)
        };
        prop_assert!(fits(&problem) >= fits(&alone));
        Ok(())
    });
}

/// The prefix of the whole-attention model of the published table: twice as many requests as without sharing.
#[test]
fn sharing_most_of_the_prompt_doubles_the_capacity() {
    let scenario = |runtime: &str| Scenario {
        isl: Some(7200),
        osl: Some(1000),
        prefix: Some(6000),
        runtime: Some(runtime.into()),
        ..on("Qwen3-32B", "2xh100-sxm")
    };
    let problem = ask(&scenario("vllm")).expect("it runs");
    let plan = ParallelPlan { tp: 2, moe_tp: 2, ..ParallelPlan::SINGLE };
    let layers = vec![problem.graph.layer_block.len() as u32];
    let instance = Arc::new(Instance::new(&problem.graph, plan, layers, problem.tiers()));
    let fits =
        |problem: &Problem| shape(problem, 0, &instance, (Offload::Nothing, 1)).expect("it fits").fits as f64;
    let (shared, own) = (fits(&problem), fits(&unshared(&problem)));
    assert!(shared > 2.0 * own, "{shared} with a shared prefix, {own} without");
}

/// What an estimate says of a plan.
fn estimated(scenario: &Scenario) -> Result<BTreeMap<String, f64>, String> {
    let found = estimate(&Catalog::default(), &EstimateRequest::of(scenario.clone()), &UNCONTROLLED);
    let found = found.map_err(|fault| fault.to_string())?;
    let found = serde_json::to_value(&found.candidate).map_err(|fault| fault.to_string())?;
    let Some(Value::Object(metrics)) = found.get("metrics") else { return Err("no metrics".into()) };
    let mut numbers: BTreeMap<String, f64> =
        metrics.iter().filter_map(|(key, value)| Some((key.clone(), value.as_f64()?))).collect();
    numbers.insert("concurrency".into(), found["concurrency"].as_f64().unwrap_or(f64::NAN));
    Ok(numbers)
}

fn planned(model: &str, hardware: &str, rate: f64, plan: &str) -> Scenario {
    let deployment = Some(Deployment { plan: Some(plan.into()), ..Deployment::default() });
    Scenario {
        rate: Some(rate),
        ttft: Some("none".into()),
        tpot: Some("none".into()),
        deployment,
        ..on(model, hardware)
    }
}

/// Under a request rate, what is in flight follows from the rate, not from the limit of the plan, and a percentile moves
/// latencies alone.
#[test]
fn load_follows_from_the_rate_and_means_do_not_depend_on_percentiles() {
    let plans = [
        ("Llama-3.3-70B", "8xh100-sxm", "1 x tp4", 4.0),
        ("Llama-3.1-8B", "8xh100-sxm", "2 x tp1", 20.0),
        ("Qwen3-32B", "8xh200-sxm", "1 x tp2 pp2", 5.0),
        ("Qwen3-30B-A3B", "8xh100-sxm", "1 x dp4 ep4", 20.0),
        ("Llama-3.1-8B", "8xh100-sxm", "prefill 1 x tp1 @1, decode 2 x tp1", 8.0),
    ];
    each(20, (0..plans.len(), 0.02..0.9f64, 1u64..5), |(at, part, more)| {
        let (model, hardware, plan, most) = plans[at];
        let rate = most * part;
        let open = estimated(&planned(model, hardware, rate, plan));
        let Ok(open) = open else { return Ok(()) };
        // Little's law: a limit of at least what is in flight changes nothing.
        let limit = (open["concurrency"].ceil() as u64 + 8) * 4 * more;
        let capped = estimated(&planned(model, hardware, rate, &format!("{plan} @{limit}")));
        prop_assert_eq!(Ok(&open), capped.as_ref(), "{} @{}", plan, limit);
        let means = ["watts", "tok_per_joule", "output_tok_s", "usd_per_hour", "usd_per_mtok", "concurrency"];
        for percentile in [Percentile::P50, Percentile::P95, Percentile::P99] {
            let question = Scenario { percentile: Some(percentile), ..planned(model, hardware, rate, plan) };
            let found = estimated(&question).map_err(TestCaseError::fail)?;
            for mean in means {
                prop_assert_eq!(found.get(mean), open.get(mean), "{} of {} at {}", mean, plan, rate);
            }
        }
        let median = Scenario { percentile: Some(Percentile::P50), ..planned(model, hardware, rate, plan) };
        let median = estimated(&median).map_err(TestCaseError::fail)?;
        let little = rate * median["e2e_ms"] / 1e3;
        prop_assert!(
            near(median["concurrency"], little, 0.15),
            "{} in flight, {little}",
            median["concurrency"]
        );
        Ok(())
    });
}

/// A layer type may be wider than all ranks of attention: groups of devices then repeat attention for the same tokens, and
/// every layer type does its work once in each of its groups.
#[test]
fn layer_types_may_be_wider_than_attention() {
    let problem = ask(&Scenario { isl: Some(512), osl: Some(64), ..on("Llama-3.1-8B", "8xb200-sxm") });
    let problem = problem.expect("it runs");
    let limits = problem.legal_limits(&problem.formats[0]);
    let limits = LegalLimits { runtime: None, ..limits };
    let power = |most: u32| (0..=most).prop_map(|bit| 1u64 << bit);
    each(60, (power(3), power(2), power(3), power(3), 0..2usize, 1u64..6), |drawn| {
        let (tp, dp, ffn, vocab, phase, times) = drawn;
        let own = |degree: u64| Some(degree).filter(|degree| *degree != tp);
        let plan = ParallelPlan {
            tp,
            dp,
            moe_tp: tp,
            ffn_tp: own(ffn),
            vocab_tp: own(vocab),
            ..ParallelPlan::SINGLE
        };
        let devices = (tp * dp).max(ffn).max(vocab);
        prop_assert_eq!(plan.devices(), devices);
        let legal = check(&problem.graph, &plan, &limits);
        prop_assert_eq!(legal.is_ok(), devices <= 8, "{:?}: {:?}", plan, legal);
        if legal.is_err() {
            return Ok(());
        }
        let (phase, requests) = ([Phase::Prefill, Phase::Decode][phase], dp * times);
        let of = |plan, requests| {
            let seen = flops(&problem, plan, phase, requests);
            [seen.attention, seen.dense]
        };
        let (one, found) = (of(ParallelPlan::SINGLE, 1), of(plan, requests));
        let copies = (devices / (tp * dp)) as f64;
        // What is narrower than its part of a stage is computed in several groups.
        let repeats = [copies, (copies * tp as f64 / ffn.max(tp) as f64).max(1.0)];
        for ((found, one), repeats) in found.iter().zip(one).zip(repeats) {
            let expected = one * requests as f64 * repeats;
            prop_assert!(near(found * devices as f64, expected, MARGIN), "{plan:?}: {found} of {expected}");
        }
        Ok(())
    });
}

/// The published example of a composer: attention on 4 chips, feed-forward on 8, norm and embedding on one.
#[test]
fn the_composer_example_takes_the_chips_of_its_widest_layer_type() {
    let both = Degrees { tp: Some(4), ffn_tp: Some(8), vocab_tp: Some(1), ..Degrees::default() };
    let deployment = Some(Deployment { both, ..Deployment::default() });
    let scenario = Scenario { deployment, ..on("Llama-3.1-8B", "8xh100") };
    let request = StaticRequest { scenario, batch: Some(8), ..StaticRequest::default() };
    let found = static_batch(&Catalog::default(), &request, &UNCONTROLLED).expect("a legal plan");
    for phase in &found.phases {
        assert_eq!(phase.devices, 8);
        assert!(phase.devices_why.starts_with("8, the most of attention 4, feed-forward 8, vocabulary 1"));
        let least = |module| {
            phase.layer_types.iter().find(|one| one.layer_type == module).map(|one| one.least_devices)
        };
        let types = [Module::Attention, Module::FeedForward, Module::Residual, Module::Vocabulary].map(least);
        assert_eq!(types, [Some(4), Some(8), Some(1), Some(1)]);
    }
}
