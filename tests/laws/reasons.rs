//! Laws of reasons: they name what would have to change least, and no plan is its own rival.

use mantile::report::why::Why;
use mantile::request::UNCONTROLLED;
use mantile::request::optimize::{OptimizeRequest, optimize};
use mantile::search::family::StrategyFamily;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;

use super::super::draw::{between, cases, name};

const MODELS: [&str; 4] = ["Llama-3.3-70B", "Qwen3-32B", "Llama-3.1-8B", "Qwen3-30B-A3B"];
const HARDWARE: [&str; 5] = ["2xh100-sxm", "4xl40s", "2xh200-sxm", "4xa100-sxm-80gb", "2xmi300x"];
const OBJECTIVES: [&str; 3] = ["throughput", "latency", "perf-per-dollar"];

fn drawn(random: &mut fastrand::Rng) -> Scenario {
    Scenario {
        model: name(random, &MODELS),
        hardware: name(random, &HARDWARE),
        objective: name(random, &OBJECTIVES),
        isl: Some(between(random, 64.0, 8000.0) as u64),
        osl: Some(between(random, 16.0, 1000.0) as u64),
        ..Scenario::default()
    }
}

/// The plan of the best deployment, and why it is the best.
fn explained(catalog: &Catalog, scenario: &Scenario) -> Option<(String, Why)> {
    let request = OptimizeRequest { scenario: scenario.clone(), why: true, ..OptimizeRequest::default() };
    let answer = optimize(catalog, &request, &UNCONTROLLED).ok()?;
    Some((answer.best?.plan.label, answer.why?))
}

/// Bytes that one device would need, where that is the reason against a single device.
fn needed(why: &Why) -> Option<f64> {
    let single = why.strategies.iter().find(|one| one.family == StrategyFamily::Single)?;
    let (number, _) = single.none.as_deref()?.split_once(" GB needed")?;
    number.parse().ok()
}

/// The plan that wins most often instead of the best is another plan, or has other formats.
#[test]
fn no_plan_is_its_own_rival() {
    let catalog = Catalog::default();
    let mut random = fastrand::Rng::with_seed(39);
    let mut rivals = 0;
    for _ in 0..cases(8) {
        let scenario = drawn(&mut random);
        let Some((best, why)) = explained(&catalog, &scenario) else { continue };
        let Some(rival) = why.robustness.and_then(|found| found.rival) else { continue };
        assert_ne!(rival.plan, best, "{scenario:?}");
        rivals += 1;
    }
    assert!(rivals > 0);
}

/// The memory that a single device would need is that of the format that needs least among those of the question.
#[test]
fn a_shortage_is_that_of_the_smallest_format() {
    let catalog = Catalog::default();
    let mut random = fastrand::Rng::with_seed(40);
    let mut compared = 0;
    for _ in 0..cases(6) {
        let usual = Scenario {
            model: Some("Llama-3.3-70B".into()),
            hardware: name(&mut random, &["8xl40s", "8xrtx-6000-ada"]),
            objective: Some("latency".into()),
            ..drawn(&mut random)
        };
        let bf16 = Scenario { weight_format: Some("bf16".into()), ..usual.clone() };
        let [usual_need, bf16_need] =
            [&usual, &bf16].map(|scenario| explained(&catalog, scenario).and_then(|(_, why)| needed(&why)));
        let (Some(usual_need), Some(bf16_need)) = (usual_need, bf16_need) else { continue };
        assert!(usual_need < 0.6 * bf16_need, "{usual:?}: {usual_need} GB, in bf16 {bf16_need} GB");
        compared += 1;
    }
    assert!(compared > 0);
}
