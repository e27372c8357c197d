//! What the programmes add up is what `serving` says of the same stages, and what was published.

use mantile::cost::machine::Machine;
use mantile::plan::parallel::{ParallelPlan, Phase};
use mantile::quantity::num::Qty;
use mantile::quantity::read::Plain;
use mantile::search::placement::chain::{HostOverhead, Stage};
use mantile::search::placement::disaggregated::best_disaggregated;
use mantile::search::placement::price::{DeviceGroup, MemberPrices, PAGE, PlacementProblem, PlacementWork};
use mantile::search::placement::solve::{PlacementTime, solve};
use mantile::search::run::UNWATCHED;
use mantile::serving::instance::{Instance, StageKind};
use mantile::serving::iteration::decode_batch;
use mantile::serving::residency::{CachedSequences, stage_footprint};
use mantile::serving::step::step;
use mantile::serving::terms::{WorkloadInputs, WorkloadTerms};
use mantile::spec::offload::OffloadPolicy;
use mantile::spec::rig::{Rig, RigLink, RigMember, RigTopology};
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::kind::CatalogKind;
use mantile::store::resolved_scenario::ResolvedScenario;
use mantile::store::rig::ResolvedRig;

fn scenario(model: &str) -> Scenario {
    Scenario { model: Some(model.into()), ..Scenario::default() }
}

fn rigged(rig: &str, scenario: &Scenario, concurrency: u64) -> ResolvedRig {
    let catalog = Catalog::default();
    let rig = catalog.rig(rig).unwrap_or_else(|fault| panic!("{fault}"));
    ResolvedRig::resolve(&catalog, scenario, rig, concurrency).unwrap_or_else(|fault| panic!("{fault}"))
}

fn near(a: f64, b: f64, what: &str) {
    assert!((a - b).abs() <= 1e-7 * b.abs().max(1e-9), "{what}: {a} against {b}");
}

fn terms(problem: &PlacementProblem) -> WorkloadTerms<Qty<f64>> {
    WorkloadInputs::of(problem.lengths).read(&Plain)
}

/// Seconds and bytes of one stage, straight from the formulas.
fn alone(problem: &PlacementProblem, offer: &DeviceGroup, stage: &Stage) -> (f64, f64, f64) {
    let machine: Machine<Qty<f64>> = offer.machine.read(&Plain);
    let graph = &problem.graph;
    let all = vec![graph.layer_block.len() as u32];
    let mut instance = Instance::new(graph, offer.plan, all, &offer.machine.shapes);
    let mut layers = vec![0; graph.blocks.len()];
    graph.layer_block[stage.from..stage.to].iter().for_each(|&block| layers[block] += 1);
    let (first, last) = (stage.from == 0, stage.to == graph.layer_block.len());
    let kind = StageKind { layers, hosted: vec![], sharing: vec![], first, last, times: 1 };
    let terms = terms(problem);
    let each = Qty::from(problem.concurrency as f64);
    let load = CachedSequences::whole(each, terms.isl + terms.osl);
    let held = stage_footprint(&Plain, &instance, Phase::Decode, &kind, load, &machine);
    instance.kinds = [kind].into();
    let batch = decode_batch(&Plain, &instance, &terms, each);
    let time = step(&Plain, &instance, Phase::Decode, &batch, &machine, &mut ());
    (time.total.value(), held.total.value(), held.usable.value())
}

/// Every shipped rig with every kind of model: dense, experts, dense layers before experts, windows, states.
#[test]
fn stages_are_worth_what_the_formulas_say_of_them() {
    let catalog = Catalog::default();
    let models = [
        ("Llama-3.1-8B", None),
        ("gpt-oss-20b", None),
        ("DeepSeek-V2-Lite", None),
        ("gemma-3-12b-it", None),
        ("Qwen3-Coder-Next", Some("mlx-4bit")),
    ];
    let mut checked = 0;
    for (rig, (model, format)) in catalog
        .entries(CatalogKind::Rigs)
        .into_keys()
        .flat_map(|rig| models.map(|model| (rig.clone(), model)))
    {
        let requested = Scenario { weight_format: format.map(str::to_owned), ..scenario(model) };
        let found = catalog.rig(&rig).and_then(|rig| ResolvedRig::resolve(&catalog, &requested, rig, 3));
        let Ok(found) = found else { continue };
        let Ok(solved) = solve(&found.problems, PlacementTime::Step, &UNWATCHED) else { continue };
        let problem = &found.problems[solved.way];
        let priced = MemberPrices::new(problem).chain(PlacementWork::Token(3));
        let each = priced.chain.stages(&solved.stages, HostOverhead::Each).unwrap();
        for (at, stage) in solved.stages.iter().enumerate() {
            let (seconds, bytes, usable) = alone(problem, &problem.members[stage.member], stage);
            let onward = solved
                .stages
                .get(at + 1)
                .map_or(0, |next| priced.chain.links[stage.member][next.member].unwrap());
            near(priced.seconds(each[at] - onward), seconds, &format!("{model} on {rig}, stage {at}"));
            assert!(bytes <= usable, "{model} on {rig}, stage {at}: {bytes} of {usable}");
            let pages = priced.chain.members[stage.member].pages(priced.chain.layers, stage.from, stage.to).0;
            let over = pages as f64 * PAGE - bytes;
            let slack = (stage.to - stage.from + 4) as f64 * PAGE;
            assert!((-1.0..=slack).contains(&over), "{model} on {rig}: pages are bytes rounded up: {over}");
            checked += 1;
        }
    }
    assert!(checked > 40, "{checked} stages");
}

/// Two like devices are the pipeline that `estimate --pp 2` prices.
#[test]
fn like_devices_are_a_pipeline() {
    let catalog = Catalog::default();
    let requested = Scenario {
        hardware: Some("2xrtx-4090".into()),
        runtime: Some("vllm".into()),
        ..scenario("Llama-3.1-8B")
    };
    let resolved = ResolvedScenario::resolve(&catalog, &requested).unwrap();
    let tier = &resolved.cluster.tiers[0];
    let rig = Rig {
        members: vec![RigMember {
            name: None,
            device: "nvidia-rtx-4090".into(),
            count: 2,
            joined: None,
            runtime: None,
            host: None,
        }],
        topology: Some(RigTopology::Chain),
        links: vec![RigLink {
            link: tier.link.clone(),
            between: None,
            bandwidth: Some(tier.bandwidth.clone()),
            latency: Some(tier.latency.clone()),
        }],
        ..Rig::default()
    };
    let rigged = ResolvedRig::resolve(&catalog, &Scenario { hardware: None, ..requested }, rig, 4).unwrap();
    let problem = &rigged.problems[0];
    let posed = resolved.problem().unwrap();
    let machine = posed.formats[0].plain();
    let plan = ParallelPlan { pp: 2, ..ParallelPlan::SINGLE };
    for cut in [5, 16, 30] {
        let stages = [Stage { member: 0, from: 0, to: cut }, Stage { member: 1, from: cut, to: 32 }];
        let instance = Instance::new(&resolved.graph, plan, vec![cut as u32, 32 - cut as u32], posed.tiers());
        let batch = decode_batch(&Plain, &instance, &terms(problem), Qty::from(4.0));
        let time = step(&Plain, &instance, Phase::Decode, &batch, machine, &mut ());
        let priced = MemberPrices::new(problem).chain(PlacementWork::Token(4));
        near(priced.seconds(priced.chain.sum(&stages).unwrap()), time.total.value(), "a token");
        near(priced.seconds(priced.chain.slowest(&stages).unwrap()), time.slowest.value(), "a stage");
    }
}

/// EXO Labs, October 2025, <https://blog.exolabs.net/nvidia-dgx-spark/>: Llama-3.1-8B FP16, a prompt of 8,192
/// tokens and 32 of output; the Spark prefills and streams its cache over 10 GbE to the Mac, which answers:
/// 2.8 times as fast as the Mac alone, prefill about 4 times the Mac's, generation about 3 times the Spark's.
#[test]
fn a_spark_that_prefills_for_a_mac_gains_what_was_published() {
    let bf16 = Some("bf16".to_owned());
    let requested =
        Scenario { isl: Some(8192), osl: Some(32), weight_format: bf16, ..scenario("Llama-3.1-8B") };
    let rigged = rigged("exo-spark-mac", &requested, 1);
    let problem = &rigged.problems[0];
    let (spark, mac) = (0, 1);
    assert_eq!(problem.members[spark].name, "spark");
    let prices = MemberPrices::new(problem);
    let whole = |work, member| {
        let priced = prices.chain(work);
        let layers = priced.chain.layers;
        priced.seconds(priced.chain.sum(&[Stage { member, from: 0, to: layers }]).unwrap())
    };
    let split = best_disaggregated(&prices).unwrap();
    assert_eq!((split.prefill_stages[0].member, split.decode_stages[0].member), (spark, mac));
    let within = |ours: f64, published: f64, what: &str| {
        assert!((ours / published - 1.0).abs() <= 0.15, "{what}: {ours} against {published}");
    };
    within(whole(PlacementWork::Request, mac) / split.request, 2.8, "over the Mac alone");
    within(whole(PlacementWork::Prompt, mac) / whole(PlacementWork::Prompt, spark), 4.0, "prefill");
    within(whole(PlacementWork::Token(1), spark) / whole(PlacementWork::Token(1), mac), 3.0, "generation");
    // All of the cache but the last layer's hides behind the prompt.
    assert!(split.arrival - split.prefill < 0.05 * split.prefill);
    near(split.request, split.bound, "with one member on each side the bound is met");
}

/// Every pair of disjoint sets, tried one by one, has no better split than the one found.
#[test]
fn no_split_by_hand_is_better() {
    let requested = Scenario { isl: Some(4096), osl: Some(64), ..scenario("gpt-oss-20b") };
    let rigged = rigged("mac-five", &requested, 1);
    let problem = &rigged.problems[0];
    let prices = MemberPrices::new(problem);
    let split = best_disaggregated(&prices).unwrap();
    let (prompt, token) = (prices.chain(PlacementWork::Prompt), prices.chain(PlacementWork::Token(1)));
    let alone = |priced: &mantile::search::placement::price::PricedChain, member| {
        let layers = priced.chain.layers;
        Some(priced.seconds(priced.chain.sum(&[Stage { member, from: 0, to: layers }]).ok()?))
    };
    let mut tried = 0;
    for a in 0..problem.members.len() {
        for b in (0..problem.members.len()).filter(|b| *b != a) {
            if let (Some(prefill), Some(token)) = (alone(&prompt, a), alone(&token, b)) {
                let least = prefill + 63.0 * token;
                assert!(split.bound <= least + split.arrival, "{a} {b}");
                tried += 1;
            }
        }
    }
    assert!(tried >= 12, "{tried}");
    assert!(split.bound <= split.request * (1.0 + 1e-12));
    assert!(split.arrival >= split.prefill);
}

/// What lies in host memory is read at every step: more of it takes longer, and experts less than the rest.
#[test]
fn host_memory_is_used_where_nothing_fits_without() {
    let requested =
        Scenario { weight_format: Some("q4_k_m".into()), isl: Some(8192), ..scenario("Llama-3.3-70B") };
    let found = rigged("rtx-4090-3090", &requested, 4);
    assert!(
        solve(&found.problems, PlacementTime::Step, &UNWATCHED).is_err(),
        "four requests of that length do not fit"
    );
    let solved = solve(&found.offloaded, PlacementTime::Step, &UNWATCHED).unwrap();
    let problem = &found.offloaded[solved.way];
    let chain = MemberPrices::new(problem).chain(PlacementWork::Token(4)).chain;
    let over = |stage: &Stage| {
        let member = &chain.members[stage.member];
        member.pages(chain.layers, stage.from, stage.to).0.saturating_sub(member.usable)
    };
    assert!(solved.stages.iter().map(over).sum::<u64>() > 0);
    let never = Scenario { offload: Some(OffloadPolicy::Never), ..requested };
    assert!(rigged("rtx-4090-3090", &never, 4).offloaded.is_empty());
}
