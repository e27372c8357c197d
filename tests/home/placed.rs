//! A placement computes on the host where `optimize` does, at the same price.

use mantile::quantity::read::Plain;
use mantile::request::build_candidate::candidate;
use mantile::search::placement::price::{MemberPrices, PlacementWork};
use mantile::search::placement::solve::{PlacementTime, SolvedPlacement, solve};
use mantile::search::run::UNWATCHED;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::rig::ResolvedRig;

use super::super::ask::{ask, on};

/// One RTX 4090 in a host of 256 GiB.
const RIG: &str = "rtx-4090-workstation";

fn scenario(model: &str, format: &str) -> Scenario {
    let (runtime, weight_format) = (Some("llama.cpp".into()), Some(format.into()));
    let (ttft, tpot) = (Some("none".into()), Some("none".into()));
    let host = Some("ryzen-9-7950x,ddr5-5600x2".into());
    Scenario { runtime, weight_format, ttft, tpot, host, concurrency: Some(1), ..on(model, "rtx-4090") }
}

fn placed(scenario: &Scenario) -> (ResolvedRig, SolvedPlacement) {
    let catalog = Catalog::default();
    let rig = catalog.rig(RIG).unwrap_or_else(|fault| panic!("{fault}"));
    let found = ResolvedRig::resolve(&catalog, scenario, rig, 1).unwrap_or_else(|fault| panic!("{fault}"));
    let solved = solve(&found.offloaded, PlacementTime::Step, &UNWATCHED).expect("it fits");
    (found, solved)
}

#[test]
fn experts_on_the_host_of_a_placement_cost_what_they_cost_in_a_plan() {
    for (model, format) in [("gpt-oss-120b", "gguf-mxfp4_moe"), ("Qwen3-235B-A22B", "gguf-q4_k_m")] {
        let same = scenario(model, format);
        let (found, solved) = placed(&same);
        let problem = &found.offloaded[solved.way];
        let chain = MemberPrices::new(problem).chain(PlacementWork::Token(1)).chain;
        let stage = &solved.stages[0];
        let layers = stage.to - chain.experts_out(stage).expect("experts on the host");
        let same = Scenario { host_memory: Some("256 GiB".into()), ..same };
        let problem = ask(&same).expect("a problem");
        let tpot = |layers: usize| {
            let plan = format!("1 x tp1 @1, host experts {layers}").parse().expect("a plan");
            let plan = candidate(&problem, &plan).expect("a candidate");
            plan.evaluate(&Plain, &problem, &mut ()).metrics.tpot.value()
        };
        // The last layer of the placement is there in part.
        let (less, more) = (tpot(layers - 1), tpot(layers));
        let each = more - less;
        assert!(each > 0.0, "{model}");
        let seconds = solved.seconds;
        assert!((less - each..=more + each).contains(&seconds), "{model}: {less} {seconds} {more}");
    }
}

#[test]
fn a_placement_is_faster_with_faster_host_memory() {
    let of = |host: &str| {
        let host = Some(format!("ryzen-9-7950x,{host}"));
        placed(&Scenario { host, ..scenario("gpt-oss-120b", "gguf-mxfp4_moe") }).1.seconds
    };
    let times = ["ddr4-3200x2", "ddr5-6000x2", "ddr5-6000x8"].map(of);
    assert!(times.windows(2).all(|pair| pair[1] < pair[0]), "{times:?}");
}
