//! Written options as the runtime computes with them: admitted requests, chunks, ranks and memory are those of the plan.

use std::collections::BTreeMap;

use mantile::report::launch::{LaunchReport, LaunchWorker};
use mantile::spec::notation::{PlanText, PoolText};
use mantile::spec::role::Role;

use super::WINNERS;
use super::golden::launch;

/// The words of a command after its flags; a switch has none.
fn flags(worker: &LaunchWorker) -> BTreeMap<String, String> {
    let words = shlex::split(&worker.command).unwrap();
    let flags = words.iter().enumerate().filter(|(_, word)| word.starts_with("--"));
    let value = |at: usize| words.get(at + 1).filter(|next| !next.starts_with("--")).cloned();
    flags.map(|(at, flag)| (flag.clone(), value(at).unwrap_or_default())).collect()
}

fn number(flags: &BTreeMap<String, String>, flag: &str) -> Option<u64> {
    flags.get(flag).map(|value| value.parse().unwrap())
}

/// Every worker of a plan with its pool.
fn pools<'a>(launch: &'a LaunchReport, plan: &str) -> Vec<(&'a LaunchWorker, PoolText)> {
    let plan: PlanText = plan.parse().unwrap();
    assert_eq!(plan.pools.len(), launch.workers.len());
    launch.workers.iter().zip(plan.pools).collect()
}

/// Every worker of the winners and of stated plans that `runtime` starts.
fn workers(runtime: &str, stated: &[(&str, &str, &str)]) -> Vec<(LaunchWorker, PoolText)> {
    let winners =
        WINNERS.iter().filter(|winner| winner.launch().runtime == runtime && winner.launch().runs());
    let mut all = Vec::new();
    for winner in winners {
        let notation = &winner.result.best.as_ref().unwrap().notation;
        all.extend(pools(winner.launch(), notation).into_iter().map(|(worker, pool)| (worker.clone(), pool)));
    }
    for (model, hardware, plan) in stated {
        let launch = launch(model, hardware, runtime, plan);
        assert!(launch.runs(), "{plan}: {:?}", launch.unsupported);
        all.extend(pools(&launch, plan).into_iter().map(|(worker, pool)| (worker.clone(), pool)));
    }
    all
}

/// Degrees tp, pp, dp and cp of a pool.
fn degrees(pool: &PoolText) -> [u64; 4] {
    [pool.degrees.tp, pool.degrees.pp, pool.degrees.dp, pool.degrees.cp].map(|degree| degree.unwrap_or(1))
}

/// `requested_per_worker` of mem_cache/kv_cache_configurator.py, and the asserts of arg_groups/parallel_hook.py.
#[test]
fn sglang_admits_the_load_of_the_plan() {
    let stated = [
        ("DeepSeek-R1", "8xh200", "1 x dp8 ep8 @256"),
        ("Llama-3.3-70B", "8xh200", "1 x tp2 pp4 @30"),
        ("Llama-3.3-70B", "8xh200", "prefill 2 x tp2 @1, decode 1 x tp4 @48"),
    ];
    let mut decided = 0;
    for (worker, pool) in workers("sglang", &stated) {
        let (flags, [tp, pp, dp, cp]) = (flags(&worker), degrees(&pool));
        let world = number(&flags, "--tp-size").unwrap_or(1);
        assert_eq!(world, tp * dp * cp, "{}", worker.command);
        assert!(world.is_multiple_of(dp * cp) && number(&flags, "--ep-size").unwrap_or(1) <= world);
        let Some(most) = number(&flags, "--max-running-requests") else {
            assert_eq!(pool.role, Role::Prefill, "{}", worker.command);
            continue;
        };
        let Some(load) = pool.concurrency else { continue };
        let each = load.div_ceil(dp);
        assert_eq!((most / dp).max(1), each, "{}", worker.command);
        let in_a_step = number(&flags, "--pp-max-micro-batch-size").unwrap_or((each / pp).max(1));
        assert!(in_a_step * pp >= each, "{}", worker.command);
        decided += 1;
    }
    assert!(decided > 15, "{decided}");
}

/// A case of attention data parallelism: 32 requests and 8,192 tokens of each of 8 ranks.
#[test]
fn totals_of_sglang_are_those_of_all_ranks() {
    let launch = launch("DeepSeek-R1", "8xh200", "sglang", "1 x dp8 ep8 @256");
    let flags = flags(&launch.workers[0]);
    assert_eq!(number(&flags, "--max-running-requests"), Some(256));
    assert_eq!(number(&flags, "--chunked-prefill-size"), Some(65_536));
    let fraction: f64 = flags["--mem-fraction-static"].parse().unwrap();
    // H200, tp 8: MLA, chunks of 8,192 tokens of a rank, graphs of 256 requests.
    let rule = sglang_fraction(143_771.0, (8, 1, 8), 8192, 256, true);
    assert!((fraction - rule).abs() < 0.002, "{fraction} {rule}");
    let alone = self::launch("Llama-3.3-70B", "8xh200", "sglang", "1 x tp8 @600");
    let fraction: f64 = self::flags(&alone.workers[0])["--mem-fraction-static"].parse().unwrap();
    let rule = sglang_fraction(143_771.0, (8, 1, 1), 8192, 600, false);
    assert!((fraction - rule).abs() < 0.002, "{fraction} {rule}");
}

fn launch_of(plan: &str) -> LaunchReport {
    launch("DeepSeek-R1", "2x8xh200", "trtllm", plan)
}

/// handle_gpu_memory_settings of SGLang 0.5.23 on a device of 90 to 160 GiB, in MiB: `(tp, pp, dp)` as its options have
/// them.
fn sglang_fraction(gpu: f64, (tp, pp, dp): (u64, u64, u64), chunk: u64, running: u64, latent: bool) -> f64 {
    let most = if tp < 4 { 256 } else { 512 }.min(running) as f64;
    let mut reserved = 512.0 + chunk.max(2048) as f64 * 1.5 + (tp * pp) as f64 / 8.0 * 1024.0 + most * 2.0;
    if dp > 1 {
        reserved += most * dp as f64 * if most > 300.0 { 4.5 } else { 3.0 };
    }
    let sizes = [
        (4, 33, 4),
        (48, 257, 16),
        (288, 513, 32),
        (576, 1025, 64),
        (1280, 4097, 256),
        (4608, chunk + 1, 512),
    ];
    let sizes: usize = sizes.iter().map(|(from, below, by)| (*from..*below).step_by(*by).count()).sum();
    reserved += if latent { 1536.0 } else { sizes as f64 * 8.0 };
    ((gpu - reserved.max(10_240.0)) / gpu * 1e3).round() / 1e3
}

/// `max_batch_size * pp_size` of pyexecutor/_util.py.
#[test]
fn tensorrt_llm_has_a_batch_in_each_stage() {
    let stated = [("Llama-3.3-70B", "8xh200", "1 x tp2 pp4 @30")];
    let mut decided = 0;
    for (worker, pool) in workers("trtllm", &stated) {
        let (flags, [_, pp, dp, _]) = (flags(&worker), degrees(&pool));
        let (Some(most), Some(load)) = (number(&flags, "--max_batch_size"), pool.concurrency) else {
            continue;
        };
        let each = load.div_ceil(dp);
        assert!((each..each + pp).contains(&(most * pp)), "{}", worker.command);
        decided += 1;
    }
    assert!(decided > 8, "{decided}");
}

#[test]
fn tensorrt_llm_starts_a_rank_on_every_device_of_several_hosts() {
    let launch = launch_of("1 x dp16 ep16 @256");
    assert!(launch.runs(), "{:?}", launch.unsupported);
    let command = shlex::split(&launch.workers[0].command).unwrap().join(" ");
    let before =
        "srun --mpi=pmix --nodes=2 --ntasks=16 --ntasks-per-node=8 trtllm-llmapi-launch trtllm-serve";
    assert!(command.starts_with(before), "{command}");
    let script = &launch.file("server.sh").unwrap().text;
    assert!(
        script.contains("exec trtllm-llmapi-launch trtllm-serve") && script.contains("mpirun -n 16"),
        "{script}"
    );
    let job = &launch.file("slurm.sh").unwrap().text;
    assert!(
        job.contains("--ntasks-per-node=8") && job.contains("--nodelist=\"$HOST_0\",\"$HOST_1\""),
        "{job}"
    );
    assert!(launch.file("kubernetes.yaml").is_none());
}

#[test]
fn context_parallel_ranks_are_inside_those_of_a_stage() {
    let plan = "prefill 1 x tp2 cp4 ep8 @1, decode 1 x tp8 ep8 @8";
    let launch = launch("Qwen3-Coder-480B-A35B-Instruct", "2x8xh200", "sglang", plan);
    let flags = flags(&launch.workers[0]);
    assert_eq!((number(&flags, "--tp-size"), number(&flags, "--attn-cp-size")), (Some(8), Some(4)));
    assert!(flags.contains_key("--enable-prefill-cp"));
    assert_eq!(flags["--cp-strategy"], "zigzag");
}

#[test]
fn a_launch_sets_what_its_checkpoint_and_its_measurements_had_set() {
    let kimi = launch("Kimi-K2-Instruct", "2x8xh200", "vllm", "1 x dp16 ep16 @64");
    assert!(flags(&kimi.workers[0]).contains_key("--trust-remote-code"));
    let amd = launch("DeepSeek-R1", "8xmi355x", "sglang", "1 x tp8 @32");
    assert_eq!(amd.workers[0].environment["SGLANG_USE_AITER"], "1");
    let nvidia = launch("Qwen3-32B", "4xh100", "sglang", "1 x tp4 @32");
    assert!(nvidia.workers[0].environment.is_empty());
    assert!(!flags(&nvidia.workers[0]).contains_key("--trust-remote-code"));
}

/// Stages as the runtime makes them need no option; others have one.
#[test]
fn stages_of_the_runtime_need_no_option() {
    let even = launch("Llama-3.3-70B", "8xh200", "sglang", "1 x pp4[20,20,20,20] @8");
    assert!(even.runs() && even.workers[0].environment.is_empty(), "{even:?}");
    let other = launch("Llama-3.3-70B", "8xh200", "sglang", "1 x pp4[19,20,21,20] @8");
    assert_eq!(other.workers[0].environment["SGLANG_PP_LAYER_PARTITION"], "19,20,21,20");
}
