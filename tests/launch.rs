//! Launch files: every command is read by the runtime's own option table and gives its plan back; every file passes its
//! schema; nothing is read silently.

pub mod back;
mod corpus;
mod devices;
mod files;
mod golden;
mod placed;
mod published;
mod random;
mod runtime_rules;
mod scale;
mod settings;

use std::sync::LazyLock;

use mantile::launch::back::KnownLaunch;
use mantile::report::launch::{LaunchReport, UnreadWord};
use mantile::report::result::OptimizeResult;
use mantile::request::UNCONTROLLED;
use mantile::request::optimize::{OptimizeRequest, optimize};
use mantile::spec::option_effect::WordEffect;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use rayon::prelude::*;

static CATALOG: LazyLock<Catalog> = LazyLock::new(Catalog::default);

/// Whether a word of a command stops the server, or leaves its price open.
fn decides(word: &UnreadWord) -> bool {
    matches!(word.effect, WordEffect::Refused | WordEffect::NotUnderstood)
}

fn launches() -> Vec<KnownLaunch> {
    CATALOG.launches().unwrap()
}

/// A launched winner.
struct Winner {
    scenario: Scenario,
    result: OptimizeResult,
}

impl Winner {
    fn launch(&self) -> &LaunchReport {
        self.result.launch.as_ref().unwrap()
    }

    fn name(&self) -> String {
        format!("{}: {}", self.scenario.flags(), self.result.best.as_ref().unwrap().notation)
    }
}

/// Model, hardware, and the runtimes that are tried.
const CASES: [(&str, &str, &[&str]); 14] = [
    ("Llama-3.1-8B", "1xh100", &["vllm", "sglang", "trtllm", "llama.cpp"]),
    ("Llama-3.3-70B", "4xh100", &["vllm", "sglang", "trtllm", "llama.cpp"]),
    ("Llama-3.3-70B", "2x4xh100", &["vllm", "sglang", "trtllm"]),
    ("DeepSeek-V3", "8xh200", &["vllm", "sglang", "trtllm"]),
    ("DeepSeek-V3", "2x8xh100", &["vllm", "sglang"]),
    ("Qwen3-30B-A3B", "4xh100", &["vllm", "sglang", "trtllm"]),
    ("gpt-oss-120b", "2xh100", &["vllm", "sglang"]),
    ("Qwen3-32B", "2xrtx-4090", &["vllm", "llama.cpp"]),
    ("Llama-3.1-8B", "2xmi300x", &["vllm", "sglang"]),
    ("Llama-3.1-8B", "1xm3-ultra", &["mlx", "llama.cpp"]),
    ("Qwen3-30B-A3B", "1xrtx-4090", &["llama.cpp"]),
    ("Llama-3.3-70B", "1xrtx-4090", &["llama.cpp"]),
    ("gemma-3-12b-it", "1xl40s", &["vllm"]),
    ("Qwen3-8B-FP8", "1xh100", &["vllm"]),
];

/// The winners of every case, for several objectives, with their launches.
static WINNERS: LazyLock<Vec<Winner>> = LazyLock::new(|| {
    let mut scenarios = Vec::new();
    for (model, hardware, runtimes) in CASES {
        for runtime in runtimes {
            for objective in ["throughput", "latency", "interactive"] {
                scenarios.push(Scenario {
                    runtime: Some((*runtime).to_owned()),
                    objective: Some(objective.to_owned()),
                    ..Scenario::of(model, hardware)
                });
            }
            let home = *runtime == "llama.cpp";
            scenarios.push(Scenario {
                runtime: Some((*runtime).to_owned()),
                host_memory: home.then(|| "64GB".to_owned()),
                kv_format: (*runtime == "vllm").then(|| "fp8".to_owned()),
                concurrency: Some(if home { 1 } else { 64 }),
                ..Scenario::of(model, hardware)
            });
        }
    }
    let answer = |scenario: &Scenario| {
        let request = OptimizeRequest {
            scenario: scenario.clone(),
            max_front_points: Some(0.into()),
            ..OptimizeRequest::default()
        };
        let result = optimize(&CATALOG, &request, &UNCONTROLLED).ok()?;
        result.best.as_ref()?;
        Some(Winner { scenario: scenario.clone(), result })
    };
    scenarios.par_iter().filter_map(answer).collect()
});
