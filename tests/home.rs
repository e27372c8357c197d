//! Tensors in host memory: laws, closed forms, and published runs on home machines.

use mantile::plan::parallel::{ParallelPlan, Phase};
use mantile::quantity::read::Plain;
use mantile::report::answer::report_deployment;
use mantile::report::breakdown::{Breakdown, Module};
use mantile::request::build_candidate::candidate;
use mantile::request::validate::predict::predict;
use mantile::request::validate::table::rows;
use mantile::search::candidate::Candidate;
use mantile::search::problem::Problem;
use mantile::search::run::{UNWATCHED, run};
use mantile::serving::instance::Instance;
use mantile::serving::iteration::prefill;
use mantile::spec::host_part::{HostPart, HostedTensors};
use mantile::spec::offload::Offload;
use mantile::spec::runtime::Runtime;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;

use super::ask::{CATALOG, ask, on};

mod devices;
mod placed;
mod published;

fn home(model: &str, hardware: &str, host: &str, memory: &str) -> Scenario {
    Scenario {
        runtime: Some("llama.cpp".into()),
        concurrency: Some(1),
        ttft: Some("none".into()),
        tpot: Some("none".into()),
        host: Some(host.into()),
        host_memory: Some(memory.into()),
        objective: Some("latency".into()),
        ..on(model, hardware)
    }
}

fn q4(model: &str, memory: &str) -> Scenario {
    let weight_format = Some("gguf-q4_k_m".into());
    Scenario { weight_format, ..home(model, "rtx-4090", "ryzen-9-7950x,ddr5-6000x2", memory) }
}

fn best(scenario: &Scenario) -> Option<(Problem, Candidate, f64)> {
    let problem = ask(scenario).unwrap_or_else(|fault| panic!("{fault}"));
    let best = run(&problem, &UNWATCHED).best?.candidate;
    let tpot = best.evaluate(&Plain, &problem, &mut ()).metrics.tpot.value();
    Some((problem, best, tpot))
}

#[test]
fn large_mixtures_run_on_one_card_with_enough_host_memory() {
    for (model, format, memory) in [
        ("gpt-oss-120b", "gguf-mxfp4_moe", "64GB"),
        ("Qwen3-235B-A22B", "gguf-q4_k_m", "192GB"),
        ("DeepSeek-V3", "gguf-q4_k_m", "512GB"),
    ] {
        let scenario = Scenario { weight_format: Some(format.into()), ..q4(model, memory) };
        let (_, found, tpot) = best(&scenario).unwrap_or_else(|| panic!("{model} with {memory}"));
        let hosted = matches!(found.offload, Offload::Host(HostPart { tensors: HostedTensors::Experts, .. }));
        assert!(hosted, "{model}: {:?}", found.offload);
        assert!((0.02..0.5).contains(&tpot), "{model}: {tpot} s per token");
        let less = Scenario { host_memory: Some("8GB".into()), ..scenario };
        assert!(best(&less).is_none(), "{model} with 8 GB");
    }
}

#[test]
fn more_host_memory_or_bandwidth_is_never_worse() {
    for memory in [["96GB", "128GB", "192GB"], ["192GB", "256GB", "512GB"]] {
        let tpots = memory.map(|memory| best(&q4("Qwen3-235B-A22B", memory)).map_or(f64::INFINITY, |b| b.2));
        assert!(tpots.windows(2).all(|pair| pair[1] <= pair[0]), "{memory:?}: {tpots:?}");
    }
    let rate = |host: &str| {
        let host = Some(format!("ryzen-9-7950x,{host}"));
        best(&Scenario { host, ..q4("Qwen3-235B-A22B", "192GB") }).expect("it fits").2
    };
    let tpots = ["ddr4-3200x2", "ddr5-4800x2", "ddr5-6400x2", "ddr5-4800x8", "ddr5-6400x12"].map(rate);
    assert!(tpots.windows(2).all(|pair| pair[1] < pair[0]), "{tpots:?}");
}

#[test]
fn a_plan_with_a_part_on_the_host_reads_back_and_prices_the_same() {
    for model in ["Qwen3-235B-A22B", "Llama-3.3-70B"] {
        let (problem, found, tpot) = best(&q4(model, "192GB")).expect("it fits");
        let report = report_deployment(&problem, &found);
        assert!(report.notation.contains(", host "), "{}", report.notation);
        let again = candidate(&problem, &report.notation.parse().expect("a plan")).expect("a candidate");
        assert_eq!(again, found);
        assert_eq!(again.evaluate(&Plain, &problem, &mut ()).metrics.tpot.value(), tpot);
    }
}

/// No layer on the host is the same instance as none.
#[test]
fn a_part_of_no_layers_costs_what_no_part_costs() {
    for tensors in HostedTensors::EACH {
        let problem = ask(&q4("Qwen3-30B-A3B", "64GB")).expect("a problem");
        let machine = problem.formats[0].plain();
        let layers = problem.graph.layers.value as u32;
        let plain = Instance::new(&problem.graph, ParallelPlan::SINGLE, vec![layers], problem.tiers());
        let hosted = plain.clone().hosting(&problem.graph, HostPart { tensors, layers: 0 });
        let time =
            |instance: &Instance| prefill(&Plain, instance, machine, problem.terms(), &mut ()).total.value();
        assert_eq!(time(&plain), time(&hosted));
        let held = |instance: &Instance| {
            use mantile::serving::admission::residency;
            residency(&Plain, instance, Phase::Decode, machine, problem.terms(), 1).total.value()
        };
        assert_eq!(held(&plain), held(&hosted));
    }
}

/// Experts on the host take their activated bytes over the bandwidth, or their operations over the peak.
#[test]
fn decode_of_experts_on_the_host_is_its_closed_form() {
    let problem = ask(&q4("Qwen3-30B-A3B", "64GB")).expect("a problem");
    let plan =
        candidate(&problem, &"1 x tp1 @1, host experts 17".parse().expect("a plan")).expect("a candidate");
    let lines: Vec<_> = Breakdown::of(&problem, &plan).operators.into_iter().map(|one| one.line).collect();
    let found = lines.iter().find(|line| {
        line.phase == Phase::Decode
            && line.part_of == Module::Experts
            && line.layers == 17
            && line.time_ms > 0.1
    });
    let found = found.expect("a line of the experts on the host").time_ms;
    // 8 of 128 experts of three matrices of 2048 x 768, at 4.8944 bits.
    let elements = 8.0 * 3.0 * 2048.0 * 768.0;
    let machine = problem.formats[0].plain();
    let chip = &machine.host.as_ref().expect("a host").processor.chip;
    let activations = 8.0 * (2.0 * 2048.0 + 3.0 * 768.0) * 2.0;
    let bytes = elements * 4.8944 / 8.0 + activations;
    let moving: f64 = bytes / (96e9 * chip.moe_memory.value());
    // Arithmetic, at its share of the stated peak, and loads take turns.
    let profile = CATALOG.load::<Runtime>("llama.cpp").expect("a runtime").host.expect("it computes there");
    let share = profile.decode.expect("a share").value;
    let computing = 2.0 * elements / (share * 2.918e12);
    let expected = 17.0 * 1e3 * (moving + computing);
    assert!((found / expected - 1.0).abs() < 1e-9, "{found} ms, expected {expected} ms");
}

#[test]
fn what_cannot_lie_on_the_host_is_refused_with_the_reason() {
    let broken = |scenario: &Scenario, plan: &str| {
        let problem = ask(scenario).expect("a problem");
        let found = candidate(&problem, &plan.parse().expect("a plan")).expect("a candidate");
        report_deployment(&problem, &found).violations.join("; ")
    };
    let dense = broken(&q4("Llama-3.1-8B", "64GB"), "1 x tp1 @1, host experts 3");
    assert!(dense.contains("no routed experts"), "{dense}");
    let two = Scenario { hardware: Some("2xrtx-4090".into()), ..q4("Qwen3-30B-A3B", "64GB") };
    let shared = broken(&two, "1 x tp2 @1, host experts 3");
    assert!(shared.contains("by layers"), "{shared}");
    let twice = broken(&two, "2 x tp1 @1, host experts 3");
    assert!(twice.contains("one replica per node"), "{twice}");
    let vllm = Scenario { runtime: Some("vllm".into()), weight_format: None, ..q4("Qwen3-30B-A3B", "64GB") };
    assert!(broken(&vllm, "1 x tp1 @1, host experts 3").contains("does not compute on the host"));
}

/// One request in flight waits for no other: its first token takes its prompt and nothing else, in `estimate` as in
/// `validate`.
#[test]
fn one_request_is_charged_no_queue() {
    for (model, hardware, runtime, format) in [
        ("Llama-3.1-8B", "m3-ultra", "mlx", "mlx-4bit"),
        ("Llama-3.1-8B", "m3-ultra", "llama.cpp", "gguf-q4_k_m"),
        ("Llama-3.1-8B", "rtx-4090", "llama.cpp", "gguf-q4_k_m"),
        ("gpt-oss-20b", "h100-sxm", "vllm", "mxfp4"),
    ] {
        let row =
            format!("{model},{hardware},1,{runtime},{format},4096,256,1,single-stream,prefill_tok_s,1000");
        let header = "model,hardware,devices,runtime,weight_format,isl,osl,concurrency,mode,metric,value";
        let rows = rows(&format!("{header}\n{row}\n")).expect("a row");
        let [validated] = &predict(&Catalog::default(), rows)[..] else { panic!("one row") };
        let validated =
            validated.predicted.as_ref().unwrap_or_else(|why| panic!("{row}: {why}")).ttft_ms / 1e3;
        let scenario = Scenario {
            runtime: Some(runtime.into()),
            weight_format: Some(format.into()),
            isl: Some(4096),
            osl: Some(256),
            concurrency: Some(1),
            ..on(model, hardware)
        };
        let problem = ask(&scenario).expect("a problem");
        let plan = candidate(&problem, &"1 x tp1 @1".parse().expect("a plan")).expect("a candidate");
        let found = plan.evaluate(&Plain, &problem, &mut ());
        let overhead = problem.formats[0].plain().chip.request_overhead.value();
        let estimated = found.metrics.ttft.value();
        let expected = found.prefill.total.value() + overhead;
        assert!((estimated / expected - 1.0).abs() < 1e-12, "{runtime} on {hardware}");
        // A run of one request reports the prompt alone.
        assert!((validated / (estimated - overhead) - 1.0).abs() < 1e-12, "{runtime} on {hardware}");
    }
}
