//! Overrides and audits, on random problems: an override that repeats the file's value changes nothing, better devices
//! are never worse, and the audit's effects are those of the overrides.

#[path = "overrides/requests.rs"]
mod requests;

use mantile::report::audit::AuditReport;
use mantile::report::result::ReportedDeployment;
use mantile::request::UNCONTROLLED;
use mantile::request::audit::{AuditRequest, audit};
use mantile::request::estimate::{EstimateRequest, estimate};
use mantile::request::optimize::{OptimizeRequest, optimize};
use mantile::request::verify::{VerifyRequest, verify};
use mantile::spec::deployment::Deployment;
use mantile::spec::objective::Metric;
use mantile::spec::overrides::Override;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use proptest::prelude::*;

const CASES: [(&str, &str, &str); 5] = [
    ("Llama-3.1-8B", "1xh100", "1 x tp1 @32"),
    ("Llama-3.3-70B", "8xh200", "prefill 2 x tp2 @1, decode 1 x tp4 @48"),
    ("DeepSeek-V3", "8xh200", "1 x tp8 @64"),
    ("Qwen3-30B-A3B", "4xl40s", "2 x tp2 @16"),
    ("gpt-oss-20b", "1xrtx-4090", "1 x tp1 @4"),
];

fn scenario((model, hardware, plan): (&str, &str, &str), set: &[&str]) -> Scenario {
    let deployment = Deployment { plan: Some(plan.to_owned()), ..Deployment::default() };
    let set: Vec<String> = set.iter().map(|one| (*one).to_owned()).collect();
    Scenario {
        deployment: Some(deployment),
        set: (!set.is_empty()).then_some(set),
        ..Scenario::of(model, hardware)
    }
}

fn priced(scenario: &Scenario) -> ReportedDeployment {
    let request = EstimateRequest::of(scenario.clone());
    estimate(&Catalog::default(), &request, &UNCONTROLLED).unwrap_or_else(|fault| panic!("{fault}")).candidate
}

fn audited(scenario: &Scenario) -> AuditReport {
    let request = AuditRequest { scenario: scenario.clone() };
    audit(&Catalog::default(), &request, &UNCONTROLLED).unwrap_or_else(|fault| panic!("{fault}"))
}

/// The bandwidth of the device of a case, in bytes per second, with all its digits.
fn bandwidth((_, hardware, _): (&str, &str, &str)) -> f64 {
    Catalog::default().hardware(hardware).unwrap().device.memory.bandwidth.unwrap().value
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_faster_memory_is_never_slower_and_the_same_value_changes_nothing(at in 0..CASES.len(), factor in 1.0f64..4.0) {
        let case = CASES[at];
        let plain = priced(&scenario(case, &[]));
        let same = format!("device.memory.bandwidth={} B/s", bandwidth(case));
        let again = priced(&scenario(case, &[&same]));
        prop_assert_eq!(format!("{:?}", plain.metrics), format!("{:?}", again.metrics));
        let more = format!("device.memory.bandwidth={} B/s", factor * bandwidth(case));
        let faster = priced(&scenario(case, &[&more]));
        let tpot = |one: &ReportedDeployment| one.figure(Metric::Tpot).unwrap();
        prop_assert!(tpot(&faster) <= tpot(&plain) * (1.0 + 1e-12));
    }

    #[test]
    fn the_effect_of_an_input_is_that_of_its_override(at in 0..CASES.len()) {
        let case = CASES[at];
        let report = audited(&scenario(case, &[]));
        let input = report.known.iter().find(|input| input.symbol == "memory_bandwidth").unwrap();
        let set = format!("device.memory.bandwidth={} B/s", 1.1 * bandwidth(case));
        let (plain, faster) = (priced(&scenario(case, &[])), priced(&scenario(case, &[&set])));
        for metric in [Metric::Ttft, Metric::Tpot] {
            let change = faster.figure(metric).unwrap() / plain.figure(metric).unwrap() - 1.0;
            let effect = input.on(metric).map_or(0.0, |effect| effect.at_10_percent_more);
            prop_assert!((change - effect).abs() < 1e-9, "{:?}: {} is not {}", metric, change, effect);
        }
    }
}

#[test]
fn an_audit_has_every_override_with_and_without() {
    let set = ["model.num_hidden_layers=40", "device.memory.bandwidth=2 TB/s", "system.tiers.0.latency=9 us"];
    let one = scenario(CASES[1], &set);
    let report = audited(&one);
    assert_eq!(report.section.overrides.len(), set.len());
    for (found, given) in report.section.overrides.iter().zip(set) {
        assert_eq!(found.set, given);
        let tpot = found.effects.iter().find(|effect| effect.column == "tpot_ms").unwrap();
        assert!(tpot.without.is_some_and(|without| without != tpot.with), "{found:?}");
    }
    assert!(
        report.section.assumptions.iter().all(|input| !input.source.is_empty() && !input.enters.is_empty())
    );
    let text = mantile::report::text::audit::markdown(&report);
    let csv = mantile::report::audit::csv(&report);
    for input in report.section.assumptions.iter().chain(&report.known) {
        assert!(text.contains(&input.value) && csv.contains(&input.value), "{}", input.symbol);
    }
    assert!(!csv.contains("NaN") && !csv.contains("inf"));
}

#[test]
fn a_saved_answer_with_overrides_verifies() {
    let scenario = Scenario {
        set: Some(vec!["device.memory.bandwidth=2 TB/s".into(), "model.num_hidden_layers=16".into()]),
        ..Scenario::of("Llama-3.1-8B", "1xh100")
    };
    let catalog = Catalog::default();
    let request = OptimizeRequest { scenario: scenario.clone(), ..OptimizeRequest::default() };
    let saved = optimize(&catalog, &request, &UNCONTROLLED).unwrap();
    assert_eq!(saved.scenario.as_ref().unwrap().set, scenario.set);
    let result = serde_json::to_value(&saved).unwrap();
    let verified = verify(&catalog, &VerifyRequest { result, sample: 20, seed: 1 }, &UNCONTROLLED).unwrap();
    assert!(verified.checks.iter().all(|check| check.faults.is_empty()), "{verified:?}");
}

#[test]
fn wrong_overrides_are_refused_with_the_reason() {
    for (set, words) in [
        ("device.memory.bandwidth=3 W", "B/s"),
        ("device.memory.bandwith=3 TB/s", "bandwidth"),
        ("device.memory.bandwidth=-3 TB/s", "TB/s"),
        ("system.tiers.9.latency=3 us", "0"),
        ("model.num_hiden_layers=3", "num_hiden_layers"),
        ("model.num_hidden_layers=none", "num_hidden_layers"),
        ("runtime.nothing=3", "nothing"),
        ("network.latency=3 us", "model"),
    ] {
        let one = scenario(CASES[1], &[set]);
        let fault = estimate(&Catalog::default(), &EstimateRequest::of(one), &UNCONTROLLED).unwrap_err();
        assert!(fault.to_string().contains(words), "{set}: {fault}");
    }
    let both = Scenario { set: Some(vec!["a=1,2".into()]), ..Scenario::default() };
    assert_eq!(both.flags(), "--set 'a=1,2'");
    assert!("model.rope_scaling={\"factor\": 2}".parse::<Override>().unwrap().json().is_object());
}
