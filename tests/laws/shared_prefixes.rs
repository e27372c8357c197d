//! Laws of prefixes that requests share, on the devices of a placement.

use mantile::report::place::PlacementReport;
use mantile::request::UNCONTROLLED;
use mantile::request::place::solve::rig_problems;
use mantile::request::place::{PlaceRequest, aim, place};
use mantile::request::verify::{VerifyRequest, verify};
use mantile::search::placement::chain::Stage;
use mantile::search::placement::evaluate::PlacementEvaluator;
use mantile::spec::placing::{PlacementObjective, PlacementScenario};
use mantile::store::catalog::Catalog;
use mantile::store::rig::ResolvedRig;

use super::super::draw::{between, cases, name};

const MODELS: [&str; 4] = ["Llama-3.2-3B-Instruct", "Llama-3.1-8B", "gpt-oss-20b", "Qwen3-30B-A3B"];
const DEVICES: [&str; 4] = ["l40s", "h100-sxm", "rtx-4090", "rtx-3090"];

fn drawn(random: &mut fastrand::Rng) -> PlacementScenario {
    let isl = between(random, 200.0, 8000.0) as u64;
    PlacementScenario {
        model: name(random, &MODELS),
        device: (0..random.usize(1..4)).map(|_| name(random, &DEVICES).unwrap()).collect(),
        runtime: name(random, &["vllm", "llama.cpp"]),
        objective: random.choice([PlacementObjective::Latency, PlacementObjective::Throughput]).unwrap(),
        isl: Some(isl),
        osl: Some(between(random, 2.0, 500.0) as u64),
        concurrency: Some(between(random, 1.0, 16.0) as u64),
        prefix: Some(random.u64(64..isl - 64)),
        prefix_groups: Some(random.u64(1..5)),
        ..PlacementScenario::default()
    }
}

/// Bytes of a stage that holds the caches of `held` requests.
fn bytes(rigged: &ResolvedRig, scenario: &PlacementScenario, stage: Stage, held: u64) -> f64 {
    let evaluator = PlacementEvaluator::new(&rigged.problems[0], aim(scenario.objective));
    evaluator.stage_cost(&stage, (1, held)).bytes
}

/// A device with the caches of n requests holds each prefix once and the rest of each request, on every stage, where the
/// runtime shares prefixes; elsewhere a prefix changes no memory. Decode steps do not depend on it, prefills do.
#[test]
fn a_prefix_is_stored_once_a_stage_and_computed_once() {
    let catalog = Catalog::default();
    let mut random = fastrand::Rng::with_seed(44);
    let (mut shared, mut own) = (0, 0);
    for _ in 0..cases(24) {
        let scenario = drawn(&mut random);
        let without = PlacementScenario { prefix: None, prefix_groups: None, ..scenario.clone() };
        let [Ok(with), Ok(without)] = [&scenario, &without].map(|scenario| rig_problems(&catalog, scenario))
        else {
            continue;
        };
        let (Some(with), Some(without)) = (with.first(), without.first()) else { continue };
        let Some(problem) = with.problems.first() else { continue };
        let (layers, groups) = (problem.graph.layer_block.len(), scenario.prefix_groups.unwrap());
        let member = random.usize(0..problem.members.len());
        let from = random.usize(0..layers);
        let stage = Stage { member, from, to: random.usize(from + 1..=layers) };
        let held = |n: u64| bytes(with, &scenario, stage, n);
        let unshared = |n: u64| bytes(without, &scenario, stage, n);
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs();
        let n = random.u64(groups + 1..64);
        if scenario.runtime.as_deref() == Some("llama.cpp") {
            assert!(near(held(n), unshared(n)), "{scenario:?}: {} and {}", held(n), unshared(n));
            own += 1;
            continue;
        }
        let whole = unshared(2) - unshared(1);
        let rest = held(groups + 1) - held(groups);
        let prefix = whole - rest;
        // A layer with a window moves on beyond the prefix.
        let windowed = scenario.model.as_deref() == Some("gpt-oss-20b") && stage.to - stage.from == 1;
        let stored = prefix > 0.0 || windowed && prefix == 0.0;
        assert!(stored && rest > 0.0, "{scenario:?}: {whole} {rest}");
        assert!(near(held(1), unshared(1)), "{scenario:?}");
        let law = held(1) + (groups - 1) as f64 * prefix + (n - 1) as f64 * rest;
        assert!(near(held(n), law), "{scenario:?}: {n} requests hold {} B, not {law}", held(n));
        assert!(near(unshared(n), held(1) + (n - 1) as f64 * whole), "{scenario:?}");
        shared += 1;
    }
    assert!(shared > 3 && own > 3, "{shared} {own}");
}

/// An answer with a prefix names it, passes `verify`, and is never worse than the one without it.
#[test]
fn a_prefix_never_makes_an_answer_worse() {
    let catalog = Catalog::default();
    let mut random = fastrand::Rng::with_seed(45);
    let mut compared = 0;
    for _ in 0..cases(8) {
        let scenario = PlacementScenario {
            objective: PlacementObjective::Request,
            concurrency: None,
            ..drawn(&mut random)
        };
        let without = PlacementScenario { prefix: None, prefix_groups: None, ..scenario.clone() };
        let answer = |scenario: &PlacementScenario| {
            place(&catalog, &PlaceRequest { scenario: scenario.clone() }, &UNCONTROLLED).ok()
        };
        let (Some(with), Some(without)) = (answer(&scenario), answer(&without)) else { continue };
        assert_eq!(Some(with.question.prefix), scenario.prefix);
        let request = VerifyRequest { result: serde_json::to_value(&with).unwrap(), sample: 20, seed: 1 };
        let verified = verify(&catalog, &request, &UNCONTROLLED).unwrap();
        assert!(verified.holds, "{scenario:?}: {:?}", verified.checks);
        let (Some(found), Some(unshared)) = (&with.placement, &without.placement) else { continue };
        // Where reading the weights bounds a prefill, fewer tokens take as long.
        let times = format!("{} and {} ms", found.objective_ms, unshared.objective_ms);
        assert!(found.objective_ms <= unshared.objective_ms * (1.0 + 1e-9), "{scenario:?}: {times}");
        let layers = |placed: &PlacementReport| {
            placed.stages.iter().map(|stage| (stage.member.clone(), stage.layers)).collect::<Vec<_>>()
        };
        // Another placement may decode faster and prefill slower.
        if layers(found) == layers(unshared) {
            assert!(found.prefill_ms <= unshared.prefill_ms, "{scenario:?}");
        }
        compared += 1;
    }
    assert!(compared > 2, "{compared}");
}
