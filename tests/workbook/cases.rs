//! Deployments of every kind.

use mantile::spec::image::ImageSize;
use mantile::spec::percentile::{Confidence, OddsLevel, Percentile};
use mantile::spec::scenario::Scenario;

use crate::ask::on;

/// A question with a plan.
pub struct WorkbookCase {
    pub scenario: Scenario,
    pub plan: &'static str,
}

/// Dense, mixture of experts, latent attention, state space, disaggregated, offloaded, computed on the host, several
/// kinds of devices.
pub fn cases() -> Vec<WorkbookCase> {
    let plain = [
        ("Llama-3.1-8B", "1xh100", "1 x tp1 @64"),
        ("Llama-3.3-70B-Instruct", "8xh100", "1 x tp8 @48"),
        ("Qwen3-32B", "4xl40s", "1 x tp2 pp2 @33"),
        ("Qwen3-32B", "4xl40s", "1 x tp2 @20 + 1 x pp2[33,31] @25"),
        ("Llama-3.1-8B", "4xh100", "prefill 2 x tp1 @1, decode 1 x tp2 @24"),
        ("Qwen3-30B-A3B", "1xh100", "1 x tp1 @17"),
        ("Qwen3-235B-A22B", "8xh200", "1 x dp8 ep8 @256"),
        ("DeepSeek-V3", "8xh200", "1 x tp8 @64"),
        ("DeepSeek-V3.2", "2x8xh200", "1 x dp16 ep16 @512"),
        ("Nemotron-H-8B-Base-8K", "1xh100", "1 x tp1 @32"),
        ("AI21-Jamba-Large-1.5", "8xh200", "1 x tp8 @16"),
        ("gemma-3-27b-it", "2xmi300x", "1 x tp2 @40"),
        ("gpt-oss-120b", "1xmi300x", "1 x tp1 @40"),
        ("Qwen3-Coder-Next", "4xa100", "1 x tp4 @8"),
    ];
    let mut cases: Vec<WorkbookCase> =
        plain.map(|(model, hardware, plan)| WorkbookCase { scenario: on(model, hardware), plan }).into();
    let of_llama_cpp = |model| Scenario {
        runtime: Some("llama.cpp".into()),
        weight_format: Some("gguf-q4_k_m".into()),
        ..on(model, "rtx-4090")
    };
    cases.push(WorkbookCase { scenario: of_llama_cpp("Qwen3-30B-A3B"), plan: "1 x tp1 @1, host experts 20" });
    cases.push(WorkbookCase { scenario: of_llama_cpp("Llama-3.1-8B"), plan: "1 x tp1 @1, host layers 9" });
    let hosted = Scenario { host_memory: Some("64GB".into()), ..on("Llama-3.1-8B", "1xl4") };
    let unruled = Scenario { theoretical: Some(true), ..hosted.clone() };
    cases.push(WorkbookCase { scenario: hosted, plan: "1 x tp1 @40, offload layers" });
    cases.push(WorkbookCase { scenario: unruled, plan: "1 x tp1 @40, offload kv" });
    let busy = Scenario {
        rate: Some(3.0),
        percentile: Some(Percentile::P90),
        risk: Some(Confidence::Odds(OddsLevel::P90)),
        amortization_months: Some(36.0),
        ..on("Llama-3.1-8B", "8xh100")
    };
    cases.push(WorkbookCase { scenario: busy, plan: "2 x tp2 @32" });
    let seeing = Scenario {
        images: Some(2),
        image_size: Some(ImageSize { width: 640, height: 480 }),
        ..on("Qwen2.5-VL-7B-Instruct", "1xh100")
    };
    cases.push(WorkbookCase { scenario: seeing, plan: "1 x tp1 @16" });
    cases
}
