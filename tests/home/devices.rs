//! Every home device of the catalogue runs the models that its owners run, by default: no key but model and hardware.

use mantile::graph::operator::Operator;
use mantile::graph::tensor::TensorRole;
use mantile::quantity::read::Plain;
use mantile::search::candidate::Candidate;
use mantile::search::problem::Problem;
use mantile::search::run::{UNWATCHED, run};
use mantile::spec::device::Device;
use mantile::spec::host_part::HostedTensors;
use mantile::spec::offload::{Offload, OffloadPart};
use mantile::store::catalog::Catalog;
use mantile::store::kind::CatalogKind;

use super::super::ask::{ask, on};

const MODELS: [&str; 3] = ["Llama-3.1-8B", "gpt-oss-20b", "Qwen3-30B-A3B"];

/// Home devices whose memory is known and holds 12 GB or more.
fn devices() -> Vec<Device> {
    let catalog = Catalog::default();
    let ids = catalog.entries(CatalogKind::Devices).into_keys();
    let all = ids.map(|id| catalog.load::<Device>(&id).unwrap_or_else(|fault| panic!("{fault}")));
    let large = |device: &Device| device.memory.capacity.as_ref().is_some_and(|size| size.value >= 12e9);
    all.filter(|device| device.is_home() && large(device)).collect()
}

/// Bytes of all weights, bytes of the weights that a token reads, and the part of the routed experts that it reads.
fn bytes(problem: &Problem, formats: usize) -> (f64, f64, f64) {
    let machine = problem.formats[formats].plain();
    let nodes = problem.graph.blocks.iter().flat_map(|block| block.graph.node_weights());
    let part = nodes.filter_map(|node| match node.operator {
        Operator::Experts(dims) => Some(dims.top_k.value as f64 / dims.experts.value as f64),
        _ => None,
    });
    let part = part.fold(1.0, f64::min);
    let tensors = problem.graph.tensors();
    let tied = !tensors.iter().any(|tensor| tensor.role == TensorRole::LmHead);
    let (mut all, mut read) = (0.0, 0.0);
    for tensor in tensors.iter().filter(|tensor| !tensor.buffer) {
        let quantised = machine.quantised[tensor.role as usize];
        let size = tensor.elements() as f64 * machine.chip.weight_bytes(quantised).value();
        all += size;
        read += match tensor.role {
            TensorRole::Expert => size * part,
            TensorRole::Embedding if !tied => 0.0,
            _ => size,
        };
    }
    (all, read, part)
}

/// The least seconds that memory takes to deliver the weights of one token, wherever they lie.
fn least_seconds(problem: &Problem, found: &Candidate, device: &Device) -> f64 {
    let evaluation = found.evaluate(&Plain, problem, &mut ());
    let (_, read, part) = bytes(problem, found.formats);
    let device_rate = device.memory.bandwidth.as_ref().expect("a bandwidth").value;
    let host_rate = problem.cluster.processor.as_ref().map(|host| host.bandwidth.value);
    let link_rate = device.host_link.as_ref().map(|link| link.bandwidth.value);
    let there = evaluation.spilled.map_or(0.0, |spilled| spilled.value());
    let (there, rate) = match found.offload {
        Offload::Nothing => (0.0, None),
        Offload::Host(held) if held.tensors == HostedTensors::Experts => (there * part, host_rate),
        Offload::Host(_) => (there, host_rate),
        Offload::Streamed(OffloadPart::Experts) => (there * part, link_rate),
        Offload::Streamed(OffloadPart::Layers | OffloadPart::Kv) => (there, link_rate),
    };
    let there = there.min(read);
    (read - there) / device_rate + rate.map_or(0.0, |rate| there / rate)
}

/// Least part of the bandwidth that decode reaches. On the fastest cards the weights of a small mixture take less time
/// than the launches of its kernels.
fn floor(device: &Device) -> f64 {
    let rate = device.memory.bandwidth.as_ref().expect("a bandwidth").value;
    if rate > 1.3e12 { 0.14 } else { 0.2 }
}

#[test]
fn every_home_device_has_a_sensible_answer_by_default() {
    let mut faults = Vec::new();
    let devices = devices();
    assert!(devices.len() >= 40, "{}", devices.len());
    for device in &devices {
        for model in MODELS {
            let name = format!("{model} on {}", device.id);
            let problem = ask(&on(model, &device.id)).unwrap_or_else(|fault| panic!("{name}: {fault}"));
            let memory = device.memory.capacity.as_ref().expect("a capacity").value;
            let host = problem.cluster.host.as_ref().and_then(|host| host.memory.as_ref());
            let (all, ..) = bytes(&problem, 0);
            let Some(best) = run(&problem, &UNWATCHED).best else {
                // Below the size of the weights no runtime answers.
                if all < 0.9 * memory + host.map_or(0.0, |size| size.value) {
                    faults.push(format!("{name}: infeasible, {:.1} GB of weights", all / 1e9));
                }
                continue;
            };
            let least = least_seconds(&problem, &best.candidate, device);
            let tpot = best.candidate.evaluate(&Plain, &problem, &mut ()).metrics.tpot.value();
            let reached = least / tpot;
            let weights = &problem.formats[best.candidate.formats].weights;
            println!(
                "{name}: {weights}, {:?}, {:.1} tok/s, {reached:.2}",
                best.candidate.offload,
                1.0 / tpot
            );
            if !(floor(device)..=1.0).contains(&reached) {
                faults.push(format!("{name}: {:.1} tok/s, {reached:.3} of the bandwidth", 1.0 / tpot));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The large mixtures on one card of 24 GB, as their owners start them: only the size of the host memory is given.
#[test]
fn large_mixtures_run_on_one_card_by_default() {
    for (model, memory) in [("gpt-oss-120b", "64GB"), ("Qwen3-235B-A22B", "192GB"), ("DeepSeek-V3", "512GB")]
    {
        let scenario =
            mantile::spec::scenario::Scenario { host_memory: Some(memory.into()), ..on(model, "1xrtx-4090") };
        let problem = ask(&scenario).unwrap_or_else(|fault| panic!("{model}: {fault}"));
        let best = run(&problem, &UNWATCHED).best.unwrap_or_else(|| panic!("{model} with {memory}"));
        let tpot = best.candidate.evaluate(&Plain, &problem, &mut ()).metrics.tpot.value();
        println!("{model}: {:?}, {:.1} tok/s", best.candidate.offload, 1.0 / tpot);
        assert!(matches!(best.candidate.offload, Offload::Host(_)), "{model}");
        let device = &problem.cluster.device;
        let reached = least_seconds(&problem, &best.candidate, device) / tpot;
        assert!((0.2..=1.0).contains(&reached), "{model}: {:.1} tok/s, {reached:.3}", 1.0 / tpot);
    }
}
