//! Conditions of a server's start: kernels of an attention on a generation of devices, and memory that a start-up profile
//! reserves.

use mantile::cost::memory::Footprint;
use mantile::plan::parallel::{ParallelPlan, Phase};
use mantile::quantity::num::Qty;
use mantile::quantity::read::Plain;
use mantile::search::shape::usual_cut;
use mantile::serving::instance::Instance;
use mantile::serving::residency::{CachedSequences, fullest};
use mantile::spec::scenario::Scenario;

use crate::ask::{ask, on};

/// The memory of one device with one sequence of `tokens` tokens.
fn held(question: &Scenario, tokens: f64) -> Footprint<Qty<f64>> {
    let problem = ask(question).unwrap_or_else(|error| panic!("{error}"));
    let (plan, machine) = (ParallelPlan::SINGLE, problem.formats[0].machine.read(&Plain));
    let instance = Instance::new(&problem.graph, plan, usual_cut(&problem.graph, 1), problem.tiers());
    let held = CachedSequences::whole(Qty::from(1.0), Qty::from(tokens));
    fullest(&Plain, &instance, Phase::Decode, held, &machine)
}

/// vLLM's profile verifies one draft token of each sequence: twice the rows of a server without a draft.
#[test]
fn logits_do_not_grow_with_draft_tokens() {
    let of = |tokens: Option<u64>| {
        let question = Scenario {
            runtime: Some("vllm".into()),
            draft: tokens.map(|_| "mtp".into()),
            draft_tokens: tokens,
            ..on("Qwen3.5-27B", "1xh200")
        };
        held(&question, 4096.0)
    };
    let [none, one, eight] = [None, Some(1), Some(8)].map(of);
    assert_eq!(one.activations.value(), eight.activations.value());
    assert_eq!(one.activations.value(), 2.0 * none.activations.value());
    assert!(eight.total.value() < eight.usable.value(), "{} GB", eight.total.value() / 1e9);
}

/// Rows are at most the tokens of a step.
#[test]
fn logits_are_of_the_tokens_of_a_step_at_most() {
    let of = |tokens: u64| {
        let question = Scenario {
            runtime: Some("vllm".into()),
            draft: Some("mtp".into()),
            max_num_seqs: Some(1024),
            max_num_batched_tokens: Some(tokens),
            ..on("Qwen3.5-27B", "1xh200")
        };
        held(&question, 4096.0).activations.value()
    };
    assert!(of(1024) < of(2048) && of(2048) == of(4096));
}

/// Whether `runtime` runs a model on some hardware in any role.
fn runs(model: &str, runtime: &str, hardware: &str, version: Option<&str>) -> bool {
    let question = Scenario {
        runtime: Some(runtime.into()),
        runtime_version: version.map(str::to_owned),
        ..on(model, hardware)
    };
    let problem = ask(&question).unwrap_or_else(|error| panic!("{model} on {hardware}: {error}"));
    problem.runtime.roles("bf16", &ParallelPlan::SINGLE).any()
}

#[test]
fn sparse_attention_needs_kernels_of_the_generation() {
    for (model, runtime, hardware, version, expected) in [
        ("DeepSeek-V3.2", "vllm", "8xrtx-pro-6000-server", None, false),
        ("DeepSeek-V3.2", "vllm", "8xrtx-pro-6000-server", Some("0.26"), false),
        ("DeepSeek-V3.2", "vllm", "8xrtx-pro-6000-server", Some("0.33"), true),
        ("DeepSeek-V3.2", "sglang", "8xrtx-pro-6000-server", None, false),
        ("DeepSeek-V3.2", "vllm", "8xa100-sxm-80gb", Some("0.33"), false),
        ("DeepSeek-V3.2", "vllm", "8xh200", None, true),
        ("DeepSeek-V3.2", "vllm", "8xb200", None, true),
        ("DeepSeek-V3", "vllm", "8xrtx-pro-6000-server", None, true),
        ("Qwen3-32B", "vllm", "8xrtx-pro-6000-server", None, true),
    ] {
        assert_eq!(
            runs(model, runtime, hardware, version),
            expected,
            "{model} {runtime} {hardware} {version:?}"
        );
    }
}

#[test]
fn an_fp8_cache_of_mla_needs_compute_capability_8_9() {
    let runs = |model: &str, hardware: &str| {
        let question = Scenario { runtime: Some("vllm".into()), ..on(model, hardware) };
        ask(&question).expect("it runs").runtime.roles("fp8", &ParallelPlan::SINGLE).any()
    };
    assert!(!runs("DeepSeek-V2-Lite", "1xrtx-3090"));
    assert!(runs("DeepSeek-V2-Lite", "1xrtx-4090"));
    assert!(runs("Qwen3-8B", "1xrtx-3090"), "G09: vLLM serves an e4m3 cache on Ampere");
}

/// vLLM's own count: 14.88 GiB for one request of 1,048,576 tokens with a draft, on each of four ranks
/// (<https://github.com/SemiAnalysisAI/InferenceX/pull/2540>).
#[test]
fn compressed_attention_takes_pages_of_one_pool() {
    let question = Scenario {
        runtime: Some("vllm".into()),
        kv_format: Some("fp8".into()),
        draft: Some("mtp".into()),
        max_num_batched_tokens: Some(8192),
        ..on("DeepSeek-V4-Pro", "4xmi355x")
    };
    let gib = held(&question, 1_048_576.0).kv.value() / (1u64 << 30) as f64;
    assert!((gib / 14.88 - 1.0).abs() < 0.03, "{gib} GiB");
    // A short request holds its windows and states in whole pages: 26 of them.
    let short = held(&question, 1024.0).kv.value();
    assert!(short > 26.0 * 1.4e6, "{short} B");
}
