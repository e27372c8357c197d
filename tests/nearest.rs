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
    nearest(&Catalog::default(), &NearestRequest { scenario, most, any: false }, &UNCONTROLLED).unwrap()
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

/// Rows of every model and device are listed on request, those of the same model and device no farther than before.
#[test]
fn with_any_every_published_row_is_listed() {
    let scenario = Scenario {
        model: Some("Llama-3.1-8B".into()),
        hardware: Some("1xh100".into()),
        deployment: Some(Deployment { plan: Some("1 x tp1 @64".into()), ..Deployment::default() }),
        ..Scenario::default()
    };
    let own = found(scenario.clone(), 1000);
    let request = NearestRequest { scenario, most: 1000, any: true };
    let all = nearest(&Catalog::default(), &request, &UNCONTROLLED).unwrap();
    let devices: std::collections::BTreeSet<&str> =
        all.rows.iter().map(|row| row.hardware.as_str()).collect();
    assert!(all.rows.len() > 500 && devices.len() > 5, "{} rows, {devices:?}", all.rows.len());
    assert!(all.known > own.known && all.rows.is_sorted_by(|a, b| a.distance <= b.distance));
    let text = all.text();
    assert!(text.contains(" on nvidia-"), "{text}");
    for row in &own.rows {
        let same = all.rows.iter().find(|other| other.id == row.id).unwrap();
        assert_eq!(
            (same.distance, same.predicted_tpot_ms),
            (row.distance, row.predicted_tpot_ms),
            "{}",
            row.id
        );
    }
    let mut others = all.rows.iter().filter(|row| own.rows.iter().all(|known| known.id != row.id));
    assert!(others.all(|row| row.distance >= 1.0));
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
        let fault =
            nearest(&catalog, &NearestRequest { scenario, ..NearestRequest::default() }, &UNCONTROLLED)
                .unwrap_err();
        assert_eq!(fault.key, "hardware");
        assert!(
            fault.found.contains("rig") && fault.fix.contains(&format!("--hardware {rig}")),
            "{rig}: {fault}"
        );
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
