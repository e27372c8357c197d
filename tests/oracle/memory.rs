//! Start-up accounting of vLLM on an H100: what it found free for the cache, against what we say.

use mantile::cost::memory::footprint;
use mantile::plan::parallel::{ParallelPlan, Phase};
use mantile::quantity::num::Qty;
use mantile::quantity::read::Plain;
use mantile::serving::admission::residency;
use mantile::serving::instance::Instance;
use mantile::spec::scenario::Scenario;
use serde::Deserialize;

use super::ask::{ask, on};
use super::row::shared;

const GIB: f64 = (1u64 << 30) as f64;

/// A start-up as logged.
#[derive(Debug, Deserialize)]
struct Logged {
    id: String,
    model: String,
    tp: Option<u64>,
    gpu_total_gib: Option<f64>,
    gpu_memory_utilization: Option<f64>,
    weights_gib: Option<f64>,
    activation_peak_gib: Option<f64>,
    non_torch_gib: Option<f64>,
    kv_cache_gib: f64,
}

/// The same two start-ups, so that something is tested without the shared table. Source: llm-d-planner
/// @e50305a, docs/empirical-vllm-memory-results.md.
fn known() -> Vec<Logged> {
    let logged = |id: &str, model: &str, tp, [weights, activations, other, kv]: [f64; 4]| Logged {
        id: id.into(),
        model: model.into(),
        tp: Some(tp),
        gpu_total_gib: Some(79.18),
        gpu_memory_utilization: Some(0.9),
        weights_gib: Some(weights),
        activation_peak_gib: Some(activations),
        non_torch_gib: Some(other),
        kv_cache_gib: kv,
    };
    vec![
        logged("Llama-3.1-8B", "Llama-3.1-8B-Instruct", 1, [14.99, 4.76, 0.13, 51.38]),
        logged("Qwen3-32B", "Qwen3-32B", 2, [30.59, 5.64, 0.54, 34.49]),
    ]
}

fn logged() -> Vec<Logged> {
    let Some(path) = shared("vllm_memory.csv") else { return known() };
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader.deserialize().map(|row| row.unwrap()).collect()
}

/// Our sum of parts leaves what the log says was left, given the parts.
#[test]
fn the_cache_takes_what_the_parts_leave() {
    let problem = ask(&on("Llama-3.1-8B", "1xh100-sxm")).unwrap();
    let known = problem.formats[0].plain();
    let mut compared = 0;
    for row in logged() {
        let parts = [row.gpu_total_gib, row.gpu_memory_utilization, row.weights_gib, row.activation_peak_gib];
        let [Some(total), Some(utilization), Some(weights), Some(activations)] = parts else { continue };
        let gib = |gib: f64| Qty(gib * GIB);
        let chip = mantile::cost::machine::Chip {
            capacity: gib(total),
            utilization: Qty(utilization),
            buffers: gib(row.non_torch_gib.unwrap_or(0.0)),
            ..known.chip
        };
        let machine = mantile::cost::machine::Machine { chip, ..known.clone() };
        let held = footprint(
            gib(weights),
            (Qty(0.0), None),
            None,
            (gib(activations), machine.chip.utilization),
            &machine,
        );
        let left = (held.usable.value() - held.total.value()) / GIB;
        // Every part is rounded to a hundredth.
        assert!(
            (left - row.kv_cache_gib).abs() <= 0.025,
            "{}: {left} GiB, logged {}",
            row.id,
            row.kv_cache_gib
        );
        compared += 1;
    }
    assert!(compared >= 2);
}

/// Models of the table that are shipped, with the format that the log is about.
const SHIPPED: [(&str, &str, &str); 5] = [
    ("gpt-oss-20b", "gpt-oss-20b", "mxfp4"),
    ("gpt-oss-120b", "gpt-oss-120b", "mxfp4"),
    ("Llama-3.3-70B-FP8-dynamic", "Llama-3.3-70B-Instruct", "fp8"),
    ("Llama-3.1-8B-Instruct", "Llama-3.1-8B", "bf16"),
    ("Qwen3-32B", "Qwen3-32B", "bf16"),
];

/// Part of the device's memory that the prediction may be off by, weights and peaks together.
const TOLERATED: f64 = 0.01;

/// The same for MXFP4 experts: the kernels pad their 2,880 columns, here to 7 % more, which no file states.
const TOLERATED_PADDED: f64 = 0.05;

/// Weights, activations and buffers by our own formulas leave about what the log says was left.
#[test]
fn the_cache_is_about_what_was_measured() {
    let mut compared = 0;
    for row in logged() {
        let shipped = SHIPPED.iter().find(|(logged, ..)| *logged == row.model);
        let (Some((_, model, format)), Some(tp), Some(utilization)) =
            (shipped, row.tp, row.gpu_memory_utilization)
        else {
            continue;
        };
        let scenario = Scenario {
            weight_format: Some((*format).into()),
            runtime: Some("vllm".into()),
            ..on(model, &format!("{tp}xh100-sxm"))
        };
        let problem = ask(&scenario).unwrap_or_else(|fault| panic!("{}: {fault}", row.id));
        let plan = ParallelPlan { tp, moe_tp: tp, ..ParallelPlan::SINGLE };
        let layers = problem.graph.layers.value as u32;
        let instance = Instance::new(&problem.graph, plan, vec![layers], problem.tiers());
        let mut machine = problem.formats[0].plain().clone();
        machine.chip.utilization = Qty(utilization);
        let held = residency(&Plain, &instance, Phase::Decode, &machine, problem.terms(), 1);
        let fixed = held.weights + held.activations + held.buffers;
        let left = (held.usable - fixed).value() / GIB;
        let off = (left - row.kv_cache_gib) / (machine.chip.capacity.value() / GIB);
        println!(
            "{} {} tp{tp}: {left:.2} GiB, measured {:.2} ({:+.1} %)",
            row.id,
            row.model,
            row.kv_cache_gib,
            off * 100.0
        );
        let tolerated = if *format == "mxfp4" { TOLERATED_PADDED } else { TOLERATED };
        assert!(off.abs() <= tolerated, "{}: {left} GiB, measured {}", row.id, row.kv_cache_gib);
        compared += 1;
    }
    assert!(compared >= 2);
}
