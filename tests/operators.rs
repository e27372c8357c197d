//! What operators do adds up: shards to the whole, operators to phases, a timeline to the reported times.

use mantile::plan::parallel::Phase;
use mantile::report::answer::forbidden;
use mantile::report::breakdown::{Breakdown, Class, shown};
use mantile::report::detail::{DeploymentDetail, detail};
use mantile::report::parallel::parallel_graph;
use mantile::report::prefill_flops::prefill_flops;
use mantile::report::reporter::Reporter;
use mantile::report::timeline::{Lane, StepTimeline, timeline};
use mantile::report::trace::trace;
use mantile::request::build_candidate::candidate;
use mantile::search::problem::Problem;
use mantile::spec::scenario::Scenario;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::ask::{ask, on};
use crate::cases::{Case, each_case};

/// Rounding of sums.
const MARGIN: f64 = 1e-9;

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= MARGIN * expected.abs().max(f64::MIN_POSITIVE)
}

/// Operators add up to their phase; utilisations are shares.
fn adds_up(case: &Case) -> Result<(), TestCaseError> {
    let found = detail(&Reporter::new(&case.problem), &case.candidate, &[]);
    for phase in &found.phases {
        let name = phase.phase.name();
        let sum: f64 = phase.operators.iter().map(|line| line.time_ms).sum();
        prop_assert!(near(sum, phase.operators_ms), "{}: {} of {} ms", name, sum, phase.operators_ms);
        for (share, of) in [(phase.mfu, "MFU"), (phase.mbu, "MBU"), (phase.bubble_share, "bubble")] {
            prop_assert!((-MARGIN..=1.0 + MARGIN).contains(&share), "{}: {} of {}", name, of, share);
        }
        let sent: f64 = phase.operators.iter().map(|line| line.wire_bytes).sum();
        prop_assert!(phase.wire_bytes >= sent, "{}: {} of {} B sent", name, sent, phase.wire_bytes);
        prop_assert_eq!(phase.interconnect.len(), case.problem.cluster.tiers.len());
        let over: f64 = phase.interconnect.iter().map(|one| one.wire_bytes).sum();
        prop_assert!(
            near(over, phase.wire_bytes),
            "{}: {} of {} B over levels",
            name,
            over,
            phase.wire_bytes
        );
        for one in &phase.interconnect {
            prop_assert!((0.0..=1.0 + MARGIN).contains(&one.load_share), "{}: {:?}", name, one);
            prop_assert!(near(one.time_ms, one.load_share * phase.time_ms), "{}: {:?}", name, one);
            prop_assert!(one.time_ms > 0.0 || one.wire_bytes == 0.0, "{}: {:?}", name, one);
        }
        for line in &phase.operators {
            prop_assert!(
                (0.0..=1.0 + MARGIN).contains(&line.efficiency),
                "{} {}",
                line.module,
                line.efficiency
            );
            // A collective of nothing cached yet sends nothing.
            prop_assert!(line.class as usize == 2 || line.wire_bytes == 0.0, "{:?}", line);
        }
    }
    Ok(())
}

#[test]
fn operators_add_up_to_their_phase() {
    each_case(25, adds_up);
}

/// Shards times replicas are the devices of a stage; a dimension times its shards is at least the whole.
fn covers(case: &Case) -> Result<(), TestCaseError> {
    let breakdown = Breakdown::of(&case.problem, &case.candidate);
    let pools = shown(&case.candidate);
    for one in &breakdown.operators {
        let Some(shard) = &one.line.shard else { continue };
        let devices = pools[one.line.phase as usize].plan.stage_devices();
        prop_assert_eq!(shard.shards * shard.replicas, devices, "{:?}", one.line);
        prop_assert!(shard.replicas.is_multiple_of(shard.token_shards), "{:?}", one.line);
        for dim in &shard.shape {
            prop_assert!(dim.here <= dim.whole && dim.here * shard.shards >= dim.whole, "{:?}", one.line);
        }
        let volume = |of: fn(&mantile::report::shard::ShardDimension) -> u64| {
            // An operator may lack a dimension, such as gates.
            shard.shape.iter().filter(|dim| dim.whole > 0).map(|dim| of(dim) as f64).product::<f64>()
        };
        prop_assert_eq!(
            shard.is_whole(),
            volume(|dim| dim.here) == volume(|dim| dim.whole),
            "{:?}",
            one.line
        );
    }
    Ok(())
}

#[test]
fn shards_times_replicas_are_all_devices() {
    each_case(25, covers);
}

/// All devices of a prefill do at least the FLOPs of the unsharded model for each of their prompts: one for each attention
/// rank, as far as there are requests. Layers that ranks share have no tokens of a rank without one.
fn nothing_is_lost(case: &Case) -> Result<(), TestCaseError> {
    let [pool, _] = shown(&case.candidate);
    let breakdown = Breakdown::of(&case.problem, &case.candidate);
    let each: f64 = breakdown.lines(Phase::Prefill).map(|line| line.flops).sum();
    let all = each * pool.plan.stage_devices() as f64;
    let prompts = pool.plan.dp.min(pool.concurrency);
    let whole = prefill_flops(&case.problem).flops * prompts as f64;
    prop_assert!(all >= whole * (1.0 - MARGIN), "{} of {} FLOP", all, whole);
    if pool.plan.devices() == 1 {
        prop_assert!(near(all, whole), "{} of {} FLOP", all, whole);
    }
    Ok(())
}

#[test]
fn all_devices_do_at_least_the_flops_of_the_whole_model() {
    each_case(25, nothing_is_lost);
}

/// Time of a stage in which something happens.
fn covered(step: &StepTimeline, stage: usize) -> f64 {
    let (mut sum, mut end) = (0.0, 0.0_f64);
    for event in step.events.iter().filter(|event| event.stage == stage) {
        let stop = event.start_us + event.duration_us;
        sum += (stop - event.start_us.max(end)).max(0.0);
        end = end.max(stop);
    }
    sum
}

/// Every stage of a timeline is busy or waits for exactly the reported time, and does what is reported.
fn lasts(case: &Case) -> Result<(), TestCaseError> {
    let found = timeline(&case.problem, &case.candidate);
    let reported = detail(&Reporter::new(&case.problem), &case.candidate, &[]);
    for (step, phase) in found.steps.iter().zip(&reported.phases) {
        prop_assert!(near(step.time_us, phase.time_ms * 1e3));
        for stage in 0..step.stages.len() {
            let covered = covered(step, stage);
            let name = step.phase.name();
            prop_assert!(
                near(covered, step.time_us),
                "{} {}: {} of {} us",
                name,
                stage,
                covered,
                step.time_us
            );
        }
        let flops: f64 = step.events.iter().map(|event| event.flops).sum();
        let sent: f64 = step.events.iter().map(|event| event.wire_bytes).sum();
        prop_assert!(near(flops, phase.flops), "{} of {} FLOP", flops, phase.flops);
        prop_assert!(near(sent, phase.wire_bytes), "{} of {} B", sent, phase.wire_bytes);
    }
    Ok(())
}

#[test]
fn a_timeline_lasts_as_long_as_reported() {
    each_case(25, lasts);
}

/// The case of a plan of llama.cpp on one RTX 4090.
fn at_home(model: &str, plan: &str) -> Case {
    let (runtime, weight_format) = (Some("llama.cpp".into()), Some("gguf-q4_k_m".into()));
    let problem = ask(&Scenario { runtime, weight_format, ..on(model, "rtx-4090") }).unwrap();
    let candidate = candidate(&problem, &plan.parse().unwrap()).unwrap();
    Case { problem, candidate }
}

#[test]
fn a_timeline_with_a_part_on_the_host_lasts_as_long_as_reported() {
    let parts =
        [("Qwen3-30B-A3B", "1 x tp1 @1, host experts 20"), ("Llama-3.1-8B", "1 x tp1 @1, host layers 9")];
    for (model, plan) in parts {
        lasts(&at_home(model, plan)).unwrap_or_else(|fault| panic!("{plan}: {fault}"));
    }
}

/// One request is in one stage at a time; requests of all stages at once leave what uneven stages leave.
#[test]
fn one_request_leaves_all_other_stages_idle() {
    for stages in [2, 4] {
        let (_, found) = known(&llama(), &format!("1 x tp1 pp{stages} @1"));
        let decode = &found.phases[1];
        assert!(near(decode.bubble_share, 1.0 - 1.0 / stages as f64), "{}", decode.bubble_share);
        let (_, full) = known(&llama(), &format!("1 x tp1 pp{stages} @{}", 8 * stages));
        assert!(full.phases[1].bubble_share < 0.2, "{}", full.phases[1].bubble_share);
        let (_, alone) = known(&llama(), "1 x tp8 @1");
        assert_eq!(alone.phases.iter().map(|phase| phase.bubble_share).sum::<f64>(), 0.0);
    }
}

/// The problem and details of a plan.
fn known(scenario: &Scenario, plan: &str) -> (Problem, DeploymentDetail) {
    let problem = ask(scenario).unwrap();
    let candidate = candidate(&problem, &plan.parse().unwrap()).unwrap();
    assert_eq!(forbidden(&problem, &candidate).len(), 0);
    let found = detail(&Reporter::new(&problem), &candidate, &[]);
    (problem, found)
}

fn llama() -> Scenario {
    let (isl, osl) = (Some(2048), Some(512));
    Scenario { isl, osl, weight_format: Some("bf16".into()), ..on("Llama-3.3-70B", "8xh100-sxm") }
}

/// The lines of a table that an older tool printed for Llama-3.3-70B in bf16 at 2,048 prompt tokens.
#[test]
fn the_table_of_an_older_tool_is_found_again() {
    let (problem, found) = known(&llama(), "1 x tp8 @1");
    let graph = &problem.graph;
    let blocks = graph.blocks.iter().map(|block| (block, block.layers.len() as u64));
    let ends = [(&graph.embedding, 1), (&graph.head, 1)];
    let parameters: u64 = blocks
        .chain(ends)
        .flat_map(|(block, layers)| {
            block.graph.node_weights().flat_map(|node| &node.weights).map(move |w| layers * w.elements())
        })
        .sum();
    assert_eq!(parameters, 70_553_706_496);
    // 141.1 GB of weights. Each of 8 devices holds an eighth, and all norms.
    assert_eq!(parameters * 2, 141_107_412_992);
    let held = found.pools[0].memory.weights_bytes;
    assert!(held * 8.0 >= 141_107_412_992.0 && held * 8.0 < 141_107_412_992.0 * 1.001, "{held}");

    // Per layer, it counts 0.755914 TFLOP of attention (with projections) and 2.886218 TFLOP of the network.
    let products = 80.0 * (755_914_244_096.0 + 2_886_218_022_912.0);
    // It counts 5 FLOPs per element of each of 161 norms, all over the whole prompt: 291.38 TFLOP in all.
    let norm = 2048.0 * 8192.0;
    let printed = products + 5.0 * norm * 161.0;
    assert_eq!(printed, 291_384_087_019_520.0);
    // Here a norm is 4 FLOPs per element, and the last norm runs for the last token alone.
    let ours = found.prefill_flops_noncausal_without_head;
    assert_eq!(ours, products + 4.0 * norm * 160.0 + 4.0 * 8192.0);
    assert_eq!(format!("{:.2}", ours / 1e12), format!("{:.2}", printed / 1e12));

    // The number in use is lower: a query sees 1,024.5 keys on average instead of 2,048, in 80 layers of 64 heads.
    let masked = 80.0 * 4.0 * 64.0 * 128.0 * 2048.0 * (2048.0 - 1024.5);
    // It is higher by the LM head for the last token, its sampling, activations and residual sums.
    let head = 2.0 * 8192.0 * 128_256.0 + 2.0 * 128_256.0;
    let elementwise = 80.0 * 2048.0 * (6.0 * 28_672.0 + 2.0 * 8192.0);
    // Vector work: 5 operations a score under the mask, 3 a rotated element of 64 query and 8 key heads.
    let softmax = 80.0 * 5.0 * 64.0 * 2048.0 * 1024.5;
    let rope = 80.0 * 3.0 * (64.0 + 8.0) * 128.0 * 2048.0;
    let expected = ours - masked + head + elementwise + softmax + rope;
    assert!(near(found.prefill_flops, expected), "{} is not {expected}", found.prefill_flops);
}

/// Matrices of Llama-3.3-70B at TP 8 have the shapes of Megatron-LM's sharding.
#[test]
fn shards_are_those_of_tensor_parallelism() {
    let (_, found) = known(&llama(), "1 x tp8 @1");
    let text = |module: &str| {
        let line = found.phases[0].operators.iter().find(|line| line.module == module).unwrap();
        let shard = line.shard.as_ref().unwrap();
        (shard.text(), shard.replicas)
    };
    assert_eq!(text("up_proj"), ("8192x28672 -> 8192x3584".to_string(), 1));
    assert_eq!(text("down_proj"), ("28672x8192 -> 3584x8192".to_string(), 1));
    assert_eq!(text("attention"), ("heads 64 -> 8, kv_heads 8 -> 1".to_string(), 1));
    assert_eq!(text("input_norm").1, 8);
}

/// A ring or switch sends what the algorithms say: an all-reduce over 8 devices at most twice its buffer, and at least
/// once.
#[test]
fn an_all_reduce_sends_once_or_twice_its_buffer() {
    let (_, found) = known(&llama(), "1 x tp8 @1");
    let buffer = 2048.0 * 8192.0 * 2.0;
    for line in found.phases[0].operators.iter().filter(|line| line.module == "all_reduce") {
        let each = line.wire_bytes / line.layers as f64;
        assert!((buffer..=2.0 * buffer).contains(&each), "{each} B of a buffer of {buffer} B");
    }
}

/// In one node, all collectives are on its links: they take what communication takes, less the launches.
#[test]
fn one_node_carries_all_of_a_tensor_parallel_step() {
    let (problem, found) = known(&llama(), "1 x tp8 @1");
    let launch_ms = problem.formats[0].plain().chip.collective_latency.value() * 1e3;
    for phase in &found.phases {
        let [node] = &phase.interconnect[..] else { panic!("{:?}", phase.interconnect) };
        let sends = phase.operators.iter().filter(|line| line.class == Class::Communication);
        let launches = sends.map(|line| line.layers).sum::<u64>() as f64;
        let expected = phase.communication_ms - launches * launch_ms;
        assert!((node.time_ms - expected).abs() < 1e-6 * phase.communication_ms, "{node:?}, {expected} ms");
        assert!(near(node.wire_bytes, phase.wire_bytes), "{node:?}");
    }
}

/// Over two nodes of tensor-parallel stages, the network carries the residual stream once, an eighth from each device.
#[test]
fn the_network_carries_what_a_stage_hands_over() {
    let (problem, found) = known(&Scenario { hardware: Some("16xh100".into()), ..llama() }, "1 x tp8 pp2 @1");
    let machine = problem.formats[0].plain();
    let link = &machine.links[1];
    for (phase, tokens) in found.phases.iter().zip([2048.0, 1.0]) {
        let [node, network] = &phase.interconnect[..] else { panic!("{:?}", phase.interconnect) };
        let bytes = tokens * 8192.0 / 8.0 * 2.0;
        let rate = link.bandwidth.value() * machine.chip.collective_bandwidth.value();
        assert!(near(network.wire_bytes, bytes), "{network:?}");
        assert!(near(network.time_ms, (link.latency.value() + bytes / rate) * 1e3), "{network:?}");
        assert!(node.wire_bytes > 100.0 * bytes, "{node:?}");
    }
}

/// Caches are on all devices of an attention rank; every layer is in one stage and one block.
fn is_placed_out(case: &Case) -> Result<(), TestCaseError> {
    let graph = parallel_graph(&case.problem, &case.candidate, String::new());
    let all = case.problem.graph.layer_block.len() as u64;
    for pool in &graph.pools {
        prop_assert_eq!(pool.stages.iter().map(|stage| stage.layers).sum::<u64>(), all);
        for block in pool.phases.iter().flat_map(|phase| &phase.blocks) {
            let shards = block.steps.iter().filter_map(|step| step.shard.as_ref());
            for shard in shards {
                prop_assert_eq!(shard.shards * shard.replicas, pool.plan.stage_devices(), "{:?}", shard);
            }
            for cache in &block.caches {
                let cp = if cache.token_shards > 1 { pool.plan.cp } else { 1 };
                let devices = cache.shards * cache.replicas * cache.token_shards;
                prop_assert_eq!(devices, pool.plan.tp * cp, "{}: {:?}", block.name, cache);
            }
        }
    }
    Ok(())
}

#[test]
fn a_parallelised_graph_covers_all_devices() {
    each_case(25, is_placed_out);
}

/// Key/value heads are replicated beyond their number.
#[test]
fn eight_kv_heads_on_sixteen_devices_are_there_twice() {
    let problem = ask(&on("Llama-3.3-70B", "2x8xh100-sxm")).unwrap();
    let candidate = candidate(&problem, &"1 x tp16 @1".parse().unwrap()).unwrap();
    let graph = parallel_graph(&problem, &candidate, "Llama-3.3-70B".into());
    let layers = graph.pools[0].phases[1].blocks.iter().find(|block| block.layers == 80).unwrap();
    let cache = &layers.caches[0];
    assert_eq!((cache.shards, cache.replicas, cache.shape[0].whole, cache.shape[0].here), (8, 2, 8, 1));
    let k_proj = layers.steps.iter().find(|step| step.name == "k_proj").and_then(|step| step.shard.as_ref());
    assert_eq!(k_proj.map(|shard| (shard.shards, shard.replicas)), Some((8, 2)));
}

/// A trace has a process per device and complete events inside the two steps.
#[test]
fn a_trace_has_every_event_of_the_timeline() {
    let problem = ask(&llama()).unwrap();
    for plan in ["1 x tp4 pp2 @16", "prefill 1 x tp4 @1, decode 1 x tp4 @16"] {
        let candidate = candidate(&problem, &plan.parse().unwrap()).unwrap();
        let found = timeline(&problem, &candidate);
        let written = trace(&found);
        let events = written["traceEvents"].as_array().unwrap();
        let complete: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
        assert_eq!(complete.len(), found.steps.iter().map(|step| step.events.len()).sum::<usize>());
        let end = found.steps.iter().map(|step| step.time_us).sum::<f64>();
        let mut devices: Vec<u64> = Vec::new();
        for event in &complete {
            let (start, time) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
            assert!(start >= 0.0 && time > 0.0 && start + time <= end * (1.0 + MARGIN), "{event}");
            assert!(event["tid"].as_u64().unwrap() < Lane::ALL.len() as u64);
            devices.push(event["pid"].as_u64().unwrap());
        }
        devices.sort_unstable();
        devices.dedup();
        let named = events.iter().filter(|event| event["name"] == "process_name");
        assert_eq!(named.map(|event| event["pid"].as_u64().unwrap()).collect::<Vec<_>>(), devices);
        assert_eq!(devices, [0, 1], "{plan}");
    }
}
