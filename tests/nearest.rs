//! Published measurements next to a deployment.

use mantile::report::nearest::NearestReport;
use mantile::request::UNCONTROLLED;
use mantile::request::nearest::{NearestRequest, nearest};
use mantile::request::place::{PlaceRequest, place};
use mantile::request::saved_answer::of_saved;
use mantile::request::validate::table::rows;
use mantile::spec::deployment::Deployment;
use mantile::spec::placing::PlacementScenario;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::kind::{CatalogKind, measured_tables};

fn found(scenario: Scenario, most: u64) -> NearestReport {
    nearest(&Catalog::default(), &NearestRequest { scenario, most }, &UNCONTROLLED).unwrap()
}

#[test]
fn every_published_row_names_its_source() {
    let all: Vec<_> = measured_tables().flat_map(|table| rows(table).unwrap()).collect();
    assert!(all.len() > 1_000, "{}", all.len());
    assert!(all.iter().all(|row| !row.source.is_empty() && !row.id.is_empty()));
}

/// A published run, stated as a deployment, is nearest to itself.
#[test]
fn a_run_is_at_no_distance_from_itself() {
    let scenario = Scenario {
        model: Some("Llama-3.1-8B".into()),
        hardware: Some("1xh100".into()),
        runtime: Some("trtllm".into()),
        weight_format: Some("bf16".into()),
        isl: Some(2048),
        osl: Some(256),
        concurrency: Some(64),
        deployment: Some(Deployment { plan: Some("1 x tp1 @64".into()), ..Deployment::default() }),
        ..Scenario::default()
    };
    let report = found(scenario, 3);
    let first = &report.rows[0];
    assert!(first.distance < 0.02, "{} from {}", first.distance, first.id);
    assert_eq!((first.isl, first.osl, first.concurrency), (2048, 256, Some(64)));
    assert!(report.rows.is_sorted_by(|a, b| a.distance <= b.distance) && report.known >= 3);
}

#[test]
fn of_an_unmeasured_model_nothing_is_listed() {
    let report = found(
        Scenario { model: Some("Qwen3-0.6B".into()), hardware: Some("1xl40s".into()), ..Scenario::default() },
        5,
    );
    assert_eq!((report.known, report.rows.len()), (0, 0));
    assert!(report.text().contains("no published measurement"));
}

/// A rig of unlike devices and an answer of `place` are refused with what they are, not as names that nobody knows.
#[test]
fn rigs_and_placements_are_refused_with_their_reason() {
    let catalog = Catalog::default();
    for rig in catalog.entries(CatalogKind::Rigs).into_keys() {
        let scenario = Scenario {
            model: Some("Llama-3.1-8B".into()),
            hardware: Some(rig.clone()),
            ..Scenario::default()
        };
        let fault = nearest(&catalog, &NearestRequest { scenario, most: 5 }, &UNCONTROLLED).unwrap_err();
        assert_eq!(fault.key, "hardware");
        assert!(fault.found.contains("rig") && fault.fix.contains("place --hardware"), "{rig}: {fault}");
    }
    let requested = PlacementScenario {
        model: Some("Llama-3.1-8B".into()),
        device: vec!["rtx-4090".into(), "rtx-3090".into()],
        ..PlacementScenario::default()
    };
    let placed = place(&catalog, &PlaceRequest { scenario: requested }, &UNCONTROLLED).unwrap();
    let text = serde_json::to_string(&placed).unwrap();
    let fault = of_saved(&text, None, &Scenario::default(), &Deployment::default()).unwrap_err();
    assert!(fault.found.contains("unlike devices") && fault.fix.contains("explain --from"), "{fault}");
}
