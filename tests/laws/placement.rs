//! Laws of placements: one object per answer, more is never worse, and a rig is its devices by flags.

use std::process::Command;

use mantile::launch::layer_split::shares_of_layers;
use mantile::report::place::{PlacementResult, StageReport};
use mantile::report::text::screen;
use mantile::report::verify::CheckResult;
use mantile::request::place::solve::rig_problems;
use mantile::request::place::{PlaceRequest, aim, place};
use mantile::request::verify::{VerifyRequest, verify};
use mantile::request::{REQUESTS, UNCONTROLLED};
use mantile::search::placement::chain::Stage;
use mantile::search::placement::evaluate::PlacementEvaluator;
use mantile::spec::placing::{PlacementObjective, PlacementScenario};
use mantile::spec::rig::RigTopology;
use mantile::store::catalog::Catalog;
use mantile::store::kind::CatalogKind;
use serde_json::json;

use super::super::draw::{between, cases, name};

const MODELS: [&str; 4] = ["Llama-3.2-3B-Instruct", "Llama-3.1-8B", "gpt-oss-20b", "Llama-3.3-70B"];
const DEVICES: [&str; 11] = [
    "rtx-4090",
    "rtx-3090",
    "rtx-3060-12gb",
    "rtx-5090",
    "rx-7900-xtx",
    "m3-ultra",
    "m4-max",
    "dgx-spark",
    "ryzen-ai-max-395",
    "l40s",
    "h100-sxm",
];
const LINKS: [&str; 4] = ["ethernet-10g", "pcie4x16", "thunderbolt5", "ethernet-100g"];
const GOALS: [PlacementObjective; 4] = [
    PlacementObjective::Latency,
    PlacementObjective::Request,
    PlacementObjective::Throughput,
    PlacementObjective::MaxContext,
];

/// Numbers that are equal but for the rounding of times to whole ticks.
const CLOSE: f64 = 1e-6;

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= CLOSE * b.abs()
}

fn drawn(random: &mut fastrand::Rng) -> PlacementScenario {
    let devices = random.usize(1..4);
    PlacementScenario {
        model: name(random, &MODELS),
        device: (0..devices).map(|_| name(random, &DEVICES).unwrap()).collect(),
        link: if random.bool() { name(random, &LINKS).into_iter().collect() } else { vec![] },
        objective: random.choice(GOALS).unwrap(),
        isl: Some(between(random, 16.0, 8000.0) as u64),
        osl: Some(between(random, 2.0, 500.0) as u64),
        concurrency: Some(between(random, 1.0, 16.0) as u64),
        ..PlacementScenario::default()
    }
}

/// The answer; none where the question is refused.
fn answer(catalog: &Catalog, scenario: &PlacementScenario) -> Option<PlacementResult> {
    let answer = place(catalog, &PlaceRequest { scenario: scenario.clone() }, &UNCONTROLLED);
    answer.inspect_err(|fault| assert!(!fault.fix.is_empty(), "{scenario:?}: {fault}")).ok()
}

/// Tokens of context where they are the objective, else the time; smaller is better.
fn cost(answer: &PlacementResult) -> f64 {
    match (&answer.placement, answer.max_context) {
        (Some(_), Some(tokens)) => -(tokens as f64),
        (Some(placed), None) => placed.objective_ms,
        (None, _) => f64::INFINITY,
    }
}

/// The numbers of the headline are those of the placement that is launched, priced again from its stages; what no
/// software starts says so.
#[test]
fn headline_certificate_and_launch_are_one_object() {
    let catalog = Catalog::default();
    let mut random = fastrand::Rng::with_seed(34);
    for _ in 0..cases(12) {
        let scenario = drawn(&mut random);
        let Some(answer) = answer(&catalog, &scenario) else { continue };
        let text = screen::place(&answer, "mantile-opt place", 200);
        let headline = text.lines().next().unwrap_or_default().to_owned();
        let Some(placed) = &answer.placement else {
            assert!(!headline.contains("optimal"), "{scenario:?}: {headline}");
            assert!(answer.launch.is_none(), "{scenario:?}");
            continue;
        };
        let proof = answer.certificate.as_ref().unwrap();
        assert!(near(proof.objective_ms, placed.objective_ms), "{scenario:?}");
        let launch = answer.launch.as_ref().unwrap();
        assert_eq!(headline.contains("theoretical"), answer.is_theoretical(), "{scenario:?}: {headline}");
        assert!(answer.is_theoretical() || !text.contains("Launch: no command"), "{scenario:?}: {text}");
        if let Some(better) = &answer.theoretical {
            assert!(!better.why.is_empty() && !answer.is_theoretical(), "{scenario:?}");
            assert!(better.placement.objective_ms <= placed.objective_ms * (1.0 + CLOSE), "{scenario:?}");
            assert!(text.contains("no software starts it"), "{scenario:?}: {text}");
        }
        let repriced = priced_again(&catalog, &scenario, &answer);
        assert!(near(1e3 * repriced, placed.objective_ms), "{scenario:?}: {repriced} s, {placed:?}");
        if let Some(worker) = launch.workers.first().filter(|_| placed.stages.len() > 1) {
            let split = words_after(&worker.command, "-ts");
            let layers: Vec<u64> = placed.stages.iter().map(|stage| stage.layers as u64).collect();
            let layers: Vec<String> = shares_of_layers(&layers).iter().map(f64::to_string).collect();
            assert!(split.is_none_or(|split| split == layers.join(",")), "{scenario:?}: {}", worker.command);
        }
    }
}

fn words_after<'t>(command: &'t str, flag: &str) -> Option<&'t str> {
    let mut words = command.split_whitespace();
    words.find(|word| *word == flag)?;
    words.next()
}

/// Seconds of the objective of the stages of an answer, on the devices of its question.
fn priced_again(catalog: &Catalog, scenario: &PlacementScenario, answer: &PlacementResult) -> f64 {
    let requested = PlacementScenario { isl: Some(answer.question.isl), ..scenario.clone() };
    let placed = answer.placement.as_ref().unwrap();
    let rigs = rig_problems(catalog, &requested).unwrap();
    let same = rigs.iter().filter(|rig| rig.runtimes.iter().map(|own| &own.id).eq(&answer.question.runtimes));
    let stage = |problem: &mantile::search::placement::price::PlacementProblem, stage: &StageReport| {
        let member = problem
            .members
            .iter()
            .position(|one| one.name == stage.member && one.devices == stage.devices)?;
        Some(Stage { member, from: stage.first_layer, to: stage.last_layer + 1 })
    };
    if placed.stages.iter().any(|stage| !stage.copies.is_empty()) {
        // Several devices with the same layers have their own test.
        return 1e-3 * placed.objective_ms;
    }
    for problem in same.flat_map(|rig| rig.problems.iter().chain(&rig.offloaded)) {
        let stages: Option<Vec<Stage>> = placed.stages.iter().map(|one| stage(problem, one)).collect();
        let Some(stages) = stages else { continue };
        if let Ok(seconds) = PlacementEvaluator::new(problem, aim(scenario.objective)).seconds(&stages, None)
        {
            return seconds;
        }
    }
    f64::NAN
}

/// The mixed-integer programs of memory rows and stage times, solved by branch and bound, have the optimum of the answer;
/// spoilt by a hundredth, the answer contradicts them.
#[test]
fn the_programs_of_an_answer_have_its_optimum() {
    let catalog = Catalog::default();
    let mut random = fastrand::Rng::with_seed(42);
    let (mut programs, mut decided, mut compared) = (0, 0, 0);
    for _ in 0..cases(8) {
        let scenario = drawn(&mut random);
        let Some(answer) = answer(&catalog, &scenario) else { continue };
        let check = |answer: &PlacementResult| {
            let request =
                VerifyRequest { result: serde_json::to_value(answer).unwrap(), sample: 20, seed: 1 };
            verify(&catalog, &request, &UNCONTROLLED).unwrap()
        };
        let found = check(&answer);
        assert!(found.holds, "{scenario:?}: {:#?}", found.checks);
        let Some(solved) = found.checks.iter().find(|check| check.what.starts_with("program: ")) else {
            continue;
        };
        programs += solved.what.split(' ').nth(2).and_then(|count| count.parse::<u64>().ok()).unwrap();
        decided += solved.of;
        // A busy machine may not solve them in their time.
        let complete = |check: &CheckResult| check.what.contains(&format!("of {} mixed", check.of));
        if answer.theoretical.is_some() || answer.placement.is_none() || !complete(solved) {
            continue;
        }
        for (factor, key) in [(1.01, "worse"), (0.99, "too good")] {
            let mut spoilt = answer.clone();
            spoilt.placement.as_mut().unwrap().objective_ms *= factor;
            // A bound below the optimum is no fault of the bound.
            spoilt.certificate.as_mut().unwrap().lower_bound_ms *= factor.max(1.0);
            let found = check(&spoilt);
            let program = found.checks.iter().find(|check| check.what.starts_with("program: ")).unwrap();
            assert!(
                key == "too good" || !complete(program) || !program.faults.is_empty(),
                "{key}: {scenario:?} {:?}",
                found.checks
            );
        }
        compared += 1;
    }
    assert!(compared > 1 && decided * 10 >= programs * 9, "{compared}: {decided} of {programs}");
}

/// The rows that no software starts are re-estimated as the others are: each number spoilt is found by a row's own check.
#[test]
fn theoretical_rows_are_estimated_again() {
    let catalog = Catalog::default();
    let mut random = fastrand::Rng::with_seed(43);
    let (mut better, mut halves) = (0, 0);
    for _ in 0..cases(10) {
        let mut scenario = drawn(&mut random);
        let objective = random.choice([PlacementObjective::Throughput, PlacementObjective::Request]).unwrap();
        scenario.objective = objective;
        scenario.device.push(name(&mut random, &DEVICES).unwrap());
        let Some(answer) = answer(&catalog, &scenario) else { continue };
        let value = serde_json::to_value(&answer).unwrap();
        let failed = |value: &serde_json::Value| {
            let request = VerifyRequest { result: value.clone(), sample: 20, seed: 1 };
            let found = verify(&catalog, &request, &UNCONTROLLED).unwrap();
            let failed = found.checks.into_iter().filter(|check| !check.faults.is_empty());
            failed.map(|check| check.what).collect::<Vec<_>>()
        };
        assert_eq!(failed(&value), Vec::<String>::new(), "{scenario:?}");
        let spoil = |pointer: &str| {
            let mut spoilt = value.clone();
            let number = spoilt.pointer_mut(pointer).unwrap();
            *number = (number.as_f64().unwrap() * 1.01 + 1.0).into();
            failed(&spoilt)
        };
        let found = |failed: &[String], by: &str| failed.iter().any(|what| what.starts_with(by));
        if answer.theoretical.is_some() {
            better += 1;
            let placement = "/theoretical/placement";
            for (key, by) in [
                ("stages/0/memory_bytes", "theoretical memory"),
                ("stages/0/decode_ms", "theoretical objective"),
                ("decode_tok_s", "theoretical objective"),
                ("token_ms", "theoretical objective"),
            ] {
                let failed = spoil(&format!("{placement}/{key}"));
                assert!(found(&failed, by), "{scenario:?}: {key}: {failed:?}");
            }
        }
        if answer.disaggregated.is_some() {
            halves += 1;
            for key in ["prefill_ms", "token_ms", "request_ms", "exposed_ms"] {
                let failed = spoil(&format!("/disaggregated/{key}"));
                assert!(found(&failed, "disaggregated"), "{scenario:?}: {key}: {failed:?}");
            }
        }
    }
    assert!(better + halves > 2, "{better} {halves}");
}

/// A placement is as sure as the least sure of its devices, and unlike ones were never measured together.
#[test]
fn figures_are_inside_their_intervals_and_unlike_devices_have_no_runs() {
    let catalog = Catalog::default();
    let mut random = fastrand::Rng::with_seed(41);
    let (cases, mut tried, mut measured, mut unlike) = (cases(24), 0, 0, 0);
    while tried < cases || unlike == 0 {
        let scenario = drawn(&mut random);
        let Some(found) = answer(&catalog, &scenario) else { continue };
        let Some(placed) = &found.placement else {
            assert!(found.intervals.is_none() && found.evidence.is_none(), "{scenario:?}");
            continue;
        };
        tried += 1;
        let (known, evidence) = (found.intervals.as_ref().unwrap(), found.evidence.unwrap());
        let figures = [
            (placed.token_ms, known.token_ms),
            (placed.prefill_ms, known.prefill_ms),
            (placed.request_ms, known.request_ms),
            (placed.decode_tok_s, known.decode_tok_s),
        ];
        for (value, ends) in figures {
            assert!(
                ends.p10 <= value * (1.0 + CLOSE) && value <= ends.p90 * (1.0 + CLOSE),
                "{scenario:?}: {value}"
            );
            assert!(ends.p10 < ends.p90, "{scenario:?}");
        }
        let devices = |stage: &StageReport| stage.member.split(' ').next().unwrap().to_owned();
        let mut kinds: Vec<String> = placed.stages.iter().map(devices).collect();
        kinds.dedup();
        if kinds.len() > 1 {
            unlike += 1;
            assert_eq!(evidence.rows, 0, "{scenario:?}: {kinds:?}");
        }
        measured += u32::from(evidence.rows > 0);
    }
    assert!(measured > 0 && unlike > 0, "{measured} measured, {unlike} over unlike devices");
}

/// One more device, in any place, never worsens the optimum: neither what is started nor what is theoretical.
#[test]
fn one_more_device_is_never_worse() {
    let catalog = Catalog::default();
    let mut random = fastrand::Rng::with_seed(35);
    for _ in 0..cases(8) {
        let scenario = drawn(&mut random);
        let mut more = scenario.clone();
        more.device.insert(random.usize(0..=more.device.len()), name(&mut random, &DEVICES).unwrap());
        let (Some(less), Some(more_found)) = (answer(&catalog, &scenario), answer(&catalog, &more)) else {
            continue;
        };
        let (less_cost, more_cost) = (cost(&less), cost(&more_found));
        // A format that all devices have may be a lower one, or a higher one: only equal questions are compared.
        if less.question.weight_format == more_found.question.weight_format || more_cost.is_infinite() {
            let worse = more_cost > less_cost + CLOSE * less_cost.abs();
            assert!(!worse, "{scenario:?} {less_cost}, with {:?} {more_cost}", more.device);
        }
    }
}

/// One more link between two devices of a rig, or a faster one, never worsens the optimum.
#[test]
fn one_more_link_or_a_faster_one_is_never_worse() {
    const RATES: [&str; 4] = ["1 GB/s", "4 GB/s", "12.5 GB/s", "50 GB/s"];
    let mut random = fastrand::Rng::with_seed(41);
    let mut compared = 0;
    for _ in 0..cases(12) {
        let count = random.usize(2..4);
        let members: Vec<_> = (0..count)
            .map(|at| json!({ "name": format!("m{at}"), "device": name(&mut random, &DEVICES) }))
            .collect();
        // A chain of links, and one more between random ends.
        let link = |from: usize, to: usize, rate: usize| {
            json!({ "link": "ethernet-10g", "between": [format!("m{from}"), format!("m{to}")], "bandwidth": {
                "value": RATES[rate], "source": "drawn" } })
        };
        let mut links: Vec<_> = (1..count).map(|at| link(at - 1, at, random.usize(0..3))).collect();
        let before = links.clone();
        if random.bool() {
            let from = random.usize(0..count - 1);
            links.push(link(from, random.usize(from + 1..count), random.usize(0..4)));
        } else {
            let at = random.usize(0..links.len());
            links[at]["bandwidth"]["value"] = json!(RATES[3]);
        }
        let scenario = PlacementScenario {
            hardware: Some("drawn".into()),
            device: vec![],
            link: vec![],
            ..drawn(&mut random)
        };
        let [less, more] = [&before, &links].map(|links| {
            let rig = json!({ "id": "drawn", "name": "drawn", "members": members, "links": links });
            let catalog = Catalog::default().with_entry(CatalogKind::Rigs, "drawn", &rig.to_string());
            place(&catalog, &PlaceRequest { scenario: scenario.clone() }, &UNCONTROLLED)
        });
        let (Ok(less), Ok(more)) = (&less, &more) else {
            assert_eq!(less.is_ok(), more.is_ok(), "{scenario:?}: {less:?} {more:?}");
            continue;
        };
        let (less, more) = (cost(less), cost(more));
        assert!(more.is_infinite() == less.is_infinite() || less.is_infinite(), "{members:?} {links:?}");
        let worse = more > less + CLOSE * less.abs();
        assert!(
            less.is_infinite() || !worse,
            "{scenario:?} {members:?}: {less} with {before:?}, {more} with {links:?}"
        );
        compared += u64::from(less.is_finite());
    }
    assert!(compared > 4, "{compared}");
}

/// The order in which devices are named changes nothing.
#[test]
fn the_order_of_the_devices_changes_nothing() {
    let catalog = Catalog::default();
    let mut random = fastrand::Rng::with_seed(36);
    for _ in 0..cases(8) {
        let scenario = drawn(&mut random);
        let reversed =
            PlacementScenario { device: scenario.device.iter().rev().cloned().collect(), ..scenario.clone() };
        let [one, other] = [&scenario, &reversed].map(|requested| answer(&catalog, requested));
        assert_eq!(one.is_some(), other.is_some(), "{scenario:?}");
        let (Some(one), Some(other)) = (one, other) else { continue };
        assert_eq!(one.question.weight_format, other.question.weight_format, "{scenario:?}");
        let (a, b) = (cost(&one), cost(&other));
        assert!(a == b || near(a, b), "{scenario:?}: {a} and {b}");
    }
}

/// A rig's file and the same devices by flags are the same question.
#[test]
fn a_rig_is_its_devices_by_flags() {
    let mut random = fastrand::Rng::with_seed(37);
    for _ in 0..cases(8) {
        let scenario = drawn(&mut random);
        let members: Vec<_> = scenario.device.iter().map(|device| json!({ "device": device })).collect();
        let links: Vec<_> = scenario.link.iter().map(|link| json!({ "link": link })).collect();
        let mut rig = json!({ "id": "drawn", "name": "drawn", "members": members, "links": links });
        if !scenario.link.is_empty() {
            rig["topology"] = json!("mesh");
        }
        let catalog = Catalog::default().with_entry(CatalogKind::Rigs, "drawn", &rig.to_string());
        let named = PlacementScenario {
            hardware: Some("drawn".into()),
            device: vec![],
            link: vec![],
            ..scenario.clone()
        };
        let text = |scenario: &PlacementScenario| {
            let answer = answer(&catalog, scenario)?;
            let question = &answer.question;
            Some(json!([answer.placement, answer.certificate, question.weight_format, question.runtimes]))
        };
        assert_eq!(text(&named), text(&scenario), "{scenario:?}");
    }
}

/// What is assumed of links is listed, and the same question with it stated has the same answer.
#[test]
fn an_assumed_link_is_listed_and_gives_the_same_answer_when_stated() {
    let catalog = Catalog::default();
    let mut random = fastrand::Rng::with_seed(38);
    for _ in 0..cases(8) {
        let scenario = PlacementScenario { link: vec![], ..drawn(&mut random) };
        let Some(answered) = answer(&catalog, &scenario) else { continue };
        let defaults = &answered.question.defaults;
        if scenario.device.len() < 2 {
            assert!(!defaults.iter().any(|flag| flag.starts_with("--link")), "{defaults:?}");
            continue;
        }
        let link = defaults.iter().find_map(|flag| flag.strip_prefix("--link "));
        let Some(link) = link else {
            assert!(defaults.iter().any(|flag| flag.contains(" between ")), "{scenario:?}: {defaults:?}");
            continue;
        };
        let stated = PlacementScenario {
            link: vec![link.to_owned()],
            topology: Some(RigTopology::Mesh),
            ..scenario.clone()
        };
        let again = answer(&catalog, &stated).unwrap();
        assert!(cost(&again) == cost(&answered), "{scenario:?}: {} and {}", cost(&again), cost(&answered));
    }
}

fn program(arguments: &str) -> serde_json::Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
    let command = command.args(arguments.split(' ')).env("MANTILE_HOME", env!("CARGO_TARGET_TMPDIR"));
    serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
}

/// Two machines without a stated link use the one that both have; a rig of the catalogue answers as its devices do.
#[test]
fn machines_that_were_not_connected_are() {
    let requested =
        "place --model Llama-3.3-70B --objective request --device m3-ultra --device dgx-spark --json";
    let assumed = program(requested);
    let stated = program(&format!("{requested} --link ethernet-10g"));
    assert_eq!(assumed["placement"], stated["placement"]);
    let defaults = assumed["question"]["defaults"].to_string();
    assert!(defaults.contains("link ethernet-10g"), "{defaults}");

    let requested = "place --model Llama-3.1-8B --objective request --isl 8192 --osl 32 --json";
    let rig = program(&format!("{requested} --hardware spark-mac-studio"));
    let flags = program(&format!("{requested} --device dgx-spark --device m3-ultra --link ethernet-10g"));
    assert_eq!(rig["question"]["weight_format"], flags["question"]["weight_format"]);
    assert_eq!(rig["certificate"], flags["certificate"]);
    assert!(rig["launch"]["unsupported"].as_array().unwrap().is_empty(), "{}", rig["launch"]);
}

/// Words that the field does not use, which were keys.
const PRIVATE: [&str; 7] = ["apart", "told", "asked", "beside", "duty", "room", "paces"];

fn keys(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            found.push(key.clone());
            keys(value, found);
        }),
        serde_json::Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

/// Keys of answers are words of the field, and an answer with the keys of the previous version is still verified.
#[test]
fn keys_are_the_fields_words_and_old_ones_are_read() {
    for entry in REQUESTS {
        let mut found = Vec::new();
        keys(&serde_json::to_value((entry.report)()).unwrap(), &mut found);
        let private: Vec<&String> = found.iter().filter(|key| PRIVATE.contains(&key.as_str())).collect();
        assert!(private.is_empty(), "{}: {private:?}", entry.name);
    }
    let catalog = Catalog::default();
    let scenario = PlacementScenario {
        model: Some("Llama-3.1-8B".into()),
        hardware: Some("exo-spark-mac".into()),
        objective: PlacementObjective::Request,
        isl: Some(8192),
        osl: Some(32),
        ..PlacementScenario::default()
    };
    let mut result = serde_json::to_value(answer(&catalog, &scenario).unwrap()).unwrap();
    let best = result.as_object_mut().unwrap().remove("disaggregated").unwrap();
    assert!(best.is_object());
    result["apart"] = best;
    let request = VerifyRequest { result, sample: 50, seed: 1 };
    let checks = verify(&catalog, &request, &UNCONTROLLED).unwrap();
    assert!(checks.holds, "{checks:?}");
}
