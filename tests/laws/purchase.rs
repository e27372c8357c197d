//! Laws of recommendations, remedies and costs.

mod costs;
mod doors;
mod flags;
mod hosts;
mod remedies;

use fastrand::Rng;
use mantile::report::recommend::report::RecommendReport;
use mantile::report::recommend::{Build, Recommendation};
use mantile::request::UNCONTROLLED;
use mantile::request::optimize::{OptimizeRequest, optimize};
use mantile::request::recommend::{RecommendRequest, recommend};
use mantile::search::outcome::Status;
use mantile::spec::error::Error;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;

use crate::draw::{between, cases, name};

/// Models of the questions: dense, with experts, with a latent cache, quantized.
const MODELS: [&str; 5] =
    ["TinyLlama-1.1B-Chat-v1.0", "Llama-3.1-8B", "gpt-oss-20b", "gpt-oss-120b", "Qwen3-30B-A3B"];
/// Systems of the questions, some too small for some of the models without their hosts.
const SYSTEMS: [&str; 7] =
    ["1xrtx-4090", "2xrtx-4090", "1xl40s", "1xh100", "2xh100", "1xm3-ultra", "1xrtx-3060-12gb"];

/// Agreement of figures that are computed in another order.
fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// A random question for one system.
fn question(random: &mut Rng) -> RecommendRequest {
    let whole = |random: &mut Rng, low, high| between(random, low, high).round() as u64;
    let memory = random.bool().then(|| format!("{}GB", [16, 64, 256][random.usize(0..3)]));
    let scenario = Scenario {
        model: name(random, &MODELS),
        hardware: name(random, &SYSTEMS),
        host_memory: memory,
        isl: Some(whole(random, 64.0, 1500.0)),
        osl: Some(whole(random, 16.0, 400.0)),
        ttft: Some(if random.bool() { "none".into() } else { format!("{}ms", whole(random, 200.0, 9000.0)) }),
        ..Scenario::default()
    };
    RecommendRequest {
        target_tok_s: Some(between(random, 2.0, 120.0)),
        users: whole(random, 1.0, 40.0),
        scenario,
        ..RecommendRequest::default()
    }
}

fn hardware(request: &RecommendRequest) -> Result<Recommendation, Error> {
    match recommend(&Catalog::default(), request, &UNCONTROLLED)? {
        RecommendReport::Hardware(found) => Ok(*found),
        RecommendReport::Models(_) => panic!("models, for a question with a model"),
    }
}

/// The same question for `optimize`, with the runtime and format of a build if given; the fastest plan is the best.
fn optimum(request: &RecommendRequest, build: Option<&Build>) -> OptimizeRequest {
    let scenario = Scenario {
        objective: Some("latency".into()),
        concurrency: Some(request.users),
        tpot: request.target_tok_s.map(|target| format!("{} s", 1.0 / target)),
        e2e: Some("none".into()),
        runtime: build.map(|build| build.runtime.clone()),
        weight_format: build.map(|build| build.each.weight_format.clone()),
        ..request.scenario.clone()
    };
    OptimizeRequest { scenario, max_front_points: Some(0.into()), ..OptimizeRequest::default() }
}

/// What one system serves according to `optimize`, it serves according to `recommend`, and the other way round, with the
/// same latency.
#[test]
fn recommend_and_optimize_serve_the_same() {
    let mut random = Rng::with_seed(31);
    let (mut served, mut refused) = (0, 0);
    for case in 0..cases(24) {
        let request = question(&mut random);
        let shown = format!("case {case}: {request:?}");
        let found = hardware(&request);
        let best = optimize(&Catalog::default(), &optimum(&request, None), &UNCONTROLLED);
        let (Ok(found), Ok(best)) = (found, best) else { continue };
        let alone: Vec<&Build> = found.builds.iter().filter(|build| build.copies == 1).collect();
        if best.status == Status::Optimal {
            assert!(!alone.is_empty(), "{shown}: optimize serves it, recommend says {:?}", found.missed);
        }
        for build in &alone {
            let best = optimize(&Catalog::default(), &optimum(&request, Some(build)), &UNCONTROLLED);
            let best = best.unwrap_or_else(|fault| panic!("{shown}: {fault}"));
            let optimum = best
                .optimum()
                .cloned()
                .unwrap_or_else(|| panic!("{shown}: recommend serves it with {build:?}"));
            let e2e =
                |found: &mantile::report::result::ReportedDeployment| found.metrics.as_ref().unwrap().e2e_ms;
            assert!(
                near(e2e(&build.each), e2e(&optimum)),
                "{shown}: {} {} ms, {} {} ms",
                build.each.notation,
                e2e(&build.each),
                optimum.notation,
                e2e(&optimum)
            );
        }
        served += u64::from(!alone.is_empty());
        refused += u64::from(alone.is_empty());
    }
    assert!(served >= cases(24) / 4 && refused > 0, "{served} served, {refused} refused");
}

/// Each label holds over every build of the answer that is within the budgets.
#[test]
fn labels_hold_over_all_builds() {
    let mut random = Rng::with_seed(32);
    let lists: [&[&str]; 5] = [
        &["nvidia-rtx-4090", "nvidia-l40s"],
        &["nvidia-rtx-5090", "nvidia-rtx-3090", "nvidia-rtx-4090"],
        &["unified"],
        &["nvidia-rtx-5080", "nvidia-rtx-5090"],
        &["nvidia-l4", "nvidia-h100-sxm"],
    ];
    let mut several = 0;
    for case in 0..cases(8) {
        let only = lists[random.usize(0..lists.len())].iter().map(|word| (*word).to_owned()).collect();
        let request = question(&mut random);
        let budget = (random.u8(0..3) == 0).then(|| format!("{}usd", between(&mut random, 1e3, 1e5).round()));
        let scenario = Scenario { hardware: None, host_memory: None, ..request.scenario.clone() };
        let request = RecommendRequest { only, budget, scenario, ..request };
        let found = hardware(&request).unwrap_or_else(|fault| panic!("{fault}: {request:?}"));
        let compared: Vec<&Build> = found
            .builds
            .iter()
            .filter(|one| ["front", "dominated"].contains(&one.standing.as_str()))
            .collect();
        let cost = |build: &Build| build.money.usd_per_hour.unwrap_or(f64::INFINITY);
        let per_usd = |build: &Build| build.most_output_tok_s / cost(build);
        let least =
            |those: &mut dyn Iterator<Item = &&Build>| those.map(|build| cost(build)).reduce(f64::min);
        let shown = format!("case {case}: {request:?}");
        let minimum = found.minimum.as_ref().map(cost);
        assert_eq!(minimum, least(&mut compared.iter().filter(|one| one.keeps_quality)), "{shown}");
        let cheapest = found.cheapest.as_ref().map(cost);
        assert_eq!(cheapest.or(minimum), least(&mut compared.iter()), "{shown}");
        if let (Some(value), Some(minimum)) = (&found.value, minimum) {
            let near = compared.iter().filter(|one| one.keeps_quality && cost(one) <= 10.0 * minimum);
            let most = near.map(|build| per_usd(build)).fold(0.0, f64::max);
            assert!(near_enough(per_usd(value), most), "{shown}: {} {most}", per_usd(value));
        }
        // Quality of a format does not depend on the runtime.
        for (a, b) in compared.iter().flat_map(|a| compared.iter().map(move |b| (a, b))) {
            let same = a.system == b.system && a.each.weight_format == b.each.weight_format;
            assert!(!same || a.keeps_quality == b.keeps_quality, "{shown}");
        }
        several += usize::from(compared.len() > 2);
    }
    assert!(several > 0, "some answers compare builds");
}

fn near_enough(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// The same question from both sides: the models of a machine, and that machine for each model.
#[test]
fn models_for_a_machine_and_machines_for_a_model_agree() {
    let mut random = Rng::with_seed(33);
    for _ in 0..cases(1).div_ceil(60) {
        let requested = question(&mut random);
        let machine = Scenario { model: None, ..requested.scenario.clone() };
        let machine = RecommendRequest { scenario: machine, ..requested.clone() };
        let RecommendReport::Models(all) = recommend(&Catalog::default(), &machine, &UNCONTROLLED).unwrap()
        else {
            panic!("hardware, for a question without a model")
        };
        let rows = all.models.iter().map(|one| (one.build.model.clone(), Some(&one.build)));
        let missed = all.missed.iter().map(|one| (one.name.clone(), None));
        let rows: Vec<(String, Option<&Build>)> = rows.chain(missed).collect();
        for (model, build) in (0..8).filter_map(|_| random.choice(&rows)) {
            let scenario = Scenario { model: Some(model.clone()), ..requested.scenario.clone() };
            let Ok(found) = hardware(&RecommendRequest { scenario, ..requested.clone() }) else { continue };
            let shown = format!("{model}: {machine:?}");
            match build {
                Some(build) => {
                    let same = |other: &&Build| {
                        other.runtime == build.runtime && other.each.weight_format == build.each.weight_format
                    };
                    let other = found.builds.iter().find(same).or(found.builds.first());
                    let other = other.unwrap_or_else(|| panic!("{shown} is served"));
                    assert!(same(&other) == near(other.tok_s_per_user, build.tok_s_per_user), "{shown}");
                }
                None => assert!(found.builds.iter().all(|build| build.copies > 1), "{shown} is not served"),
            }
        }
    }
}
