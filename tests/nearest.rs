//! Published measurements next to a deployment.

use mantile::report::nearest::NearestReport;
use mantile::request::UNCONTROLLED;
use mantile::request::nearest::{NearestRequest, nearest};
use mantile::request::validate::table::rows;
use mantile::spec::deployment::Deployment;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::kind::measured_tables;

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
