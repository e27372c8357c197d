//! The files of one deployment of every exporter, as they are written.

use mantile::report::launch::LaunchReport;
use mantile::request::UNCONTROLLED;
use mantile::request::estimate::{EstimateRequest, estimate};
use mantile::spec::deployment::Deployment;
use mantile::spec::scenario::Scenario;

use super::CATALOG;

pub fn launch(model: &str, hardware: &str, runtime: &str, plan: &str) -> LaunchReport {
    let deployment = Deployment { plan: Some(plan.to_owned()), ..Deployment::default() };
    let scenario = Scenario {
        runtime: Some(runtime.to_owned()),
        deployment: Some(deployment),
        ..Scenario::of(model, hardware)
    };
    estimate(&CATALOG, &EstimateRequest::of(scenario), &UNCONTROLLED).unwrap().launch.unwrap()
}

/// All files of a launch as one text, without predicted values, which change with every calibration.
fn text(launch: &LaunchReport) -> String {
    let predicted = |line: &&str| !["TTFT ", "TPOT ", "Output "].iter().any(|name| line.contains(name));
    let each = launch.files.iter().map(|file| {
        let lines: Vec<&str> = file.text.lines().filter(predicted).collect();
        format!("==> {} <==\n{}\n", file.path, lines.join("\n"))
    });
    let version = format!("mantile-opt {}", env!("CARGO_PKG_VERSION"));
    each.collect::<String>().replace(&version, "mantile-opt VERSION")
}

macro_rules! golden {
    ($($name:ident: $model:literal, $hardware:literal, $runtime:literal, $plan:literal;)*) => {
        $(#[test]
        fn $name() {
            insta::assert_snapshot!(text(&launch($model, $hardware, $runtime, $plan)));
        })*
    };
}

golden! {
    vllm_replicas: "Qwen3-32B", "4xh100", "vllm", "2 x tp2 @32";
    vllm_disaggregated: "Llama-3.3-70B", "8xh200", "vllm", "prefill 2 x tp2 @1, decode 1 x tp4 @48";
    vllm_over_hosts: "DeepSeek-V3", "2x8xh100", "vllm", "1 x dp16 ep16 @256";
    sglang_disaggregated: "Llama-3.3-70B", "8xh200", "sglang", "prefill 2 x tp2 @1, decode 1 x tp4 @48";
    trtllm_disaggregated: "Llama-3.3-70B", "8xh200", "trtllm", "prefill 1 x tp4 @1, decode 1 x tp4 @48";
    llama_cpp_experts_on_the_host: "Qwen3-30B-A3B", "1xrtx-4090", "llama.cpp", "1 x tp1 @1, weights q8_0, host experts 20";
    mlx_on_a_mac: "Llama-3.1-8B", "1xm3-ultra", "mlx", "1 x tp1 @4";
}
