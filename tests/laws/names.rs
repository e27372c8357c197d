//! Laws of names: a table's model is read as a whole or refused, and nodes are joined by a stated network.

use mantile::report::inputs::ReportedTier;
use mantile::request::UNCONTROLLED;
use mantile::request::estimate::{EstimateRequest, estimate};
use mantile::request::validate::predict::predict;
use mantile::request::validate::table::rows;
use mantile::spec::deployment::Deployment;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::kind::measured_tables;
use mantile::validate::measured::MeasuredRow;
use serde_json::Value;

use super::super::draw::{cases, name};

/// The fault of a row's name, if it has one.
fn fault(catalog: &Catalog, row: &MeasuredRow, model: &str) -> Option<String> {
    let row = MeasuredRow { model: model.to_owned(), ..row.clone() };
    predict(catalog, vec![row])[0].predicted.as_ref().err().filter(|fault| fault.contains("model")).cloned()
}

/// Suffixes of a converted checkpoint's name.
fn converted() -> Vec<String> {
    let names: Value =
        serde_json::from_str(include_str!("../../src/request/validate/published_names.json")).unwrap();
    serde_json::from_value(names["converted"].clone()).unwrap()
}

/// The whole published name of every row is read, with words of its weight format too. With another word behind it, it is
/// refused; cut at a word boundary, it is read as another whole name, or refused with candidates.
#[test]
fn a_published_name_is_read_as_a_whole() {
    let catalog = Catalog::default();
    let mut first: Vec<MeasuredRow> = Vec::new();
    for row in measured_tables().flat_map(|table| rows(table).unwrap()) {
        if !first.iter().any(|known| known.model == row.model) {
            first.push(row);
        }
    }
    assert!(first.len() > 60, "{}", first.len());
    let known: Vec<&MeasuredRow> = first.iter().filter(|row| catalog.built(&row.model).is_ok()).collect();
    assert!(known.len() > 50, "{}", known.len());
    let mut random = fastrand::Rng::with_seed(26);
    for _ in 0..cases(6) {
        let row = *random.choice(&known).unwrap();
        // What else is wrong with a row has its own tests.
        if fault(&catalog, row, &row.model).is_some() {
            continue;
        }
        assert_eq!(fault(&catalog, row, &format!("{} Q4_K_M", row.model)), None, "{}", row.model);
        let word = random.choice(["Turbo", "70B", "v9 Q4_K_M", "Q4_K_M Ultra"]).unwrap();
        let longer = format!("{} {word}", row.model);
        let refused = fault(&catalog, row, &longer).unwrap_or_default();
        assert!(refused.contains(&row.model), "{longer}: {refused}");
    }
    let converted = converted();
    let mut cut = 0;
    for row in &known {
        for (at, _) in row.model.match_indices('-') {
            let start = &row.model[..at];
            let Err(refused) = catalog.built(start) else { continue };
            let refused = refused.to_string();
            // A publisher alone is no model at all.
            let known = [
                "did you mean",
                "ambiguous",
                "lists the known names",
                "checkpoint is quantized",
                "use one of those",
            ];
            assert!(known.iter().any(|words| refused.contains(words)), "{start}: {refused}");
            // The same model of another publisher is read by its name alone, where that is one model; a converted
            // checkpoint as its original.
            let bare = start.rsplit('/').next().unwrap_or(start).to_ascii_lowercase();
            let bare =
                converted.iter().find_map(|suffix| bare.strip_suffix(suffix.as_str())).unwrap_or(&bare);
            if catalog.built(bare).is_ok() {
                continue;
            }
            let row = MeasuredRow { model: start.to_owned(), ..(*row).clone() };
            assert!(predict(&catalog, vec![row])[0].predicted.is_err(), "{start}");
            cut += 1;
        }
    }
    assert!(cut > 10, "{cut}");
}

/// Nodes times devices are a whole question for every device: the network is the system's, or an assumed one that is
/// listed and gives the same answer when it is stated. A faster one is never slower.
#[test]
fn nodes_of_every_device_are_joined() {
    let catalog = Catalog::default();
    let mut random = fastrand::Rng::with_seed(25);
    let devices = ["l40s", "l4", "rtx-4090", "rtx-3090", "h100-sxm", "a100-pcie-80gb", "mi300x", "h100-nvl"];
    let mut assumed = 0;
    for _ in 0..cases(8) {
        let count = random.choice([1, 2, 4]).unwrap();
        let hardware = format!("2x{count}x{}", name(&mut random, &devices).unwrap());
        let plan = if count > 1 { format!("1 x tp{count} pp2 @4") } else { "1 x pp2 @4".to_owned() };
        let ask = |network: Option<&str>| {
            let scenario = Scenario {
                network: network.map(str::to_owned),
                deployment: Some(Deployment { plan: Some(plan.clone()), ..Deployment::default() }),
                ..Scenario::of("Qwen3-0.6B", &hardware)
            };
            let found = estimate(&catalog, &EstimateRequest::of(scenario), &UNCONTROLLED);
            found.unwrap_or_else(|fault| panic!("{hardware}: {fault}"))
        };
        let usual = ask(None);
        let Some(last): Option<&ReportedTier> = usual.question.interconnect.last() else {
            panic!("{hardware}: no network");
        };
        let Some(metrics) = &usual.candidate.metrics else { continue };
        let ms = |network: &str| ask(Some(network)).candidate.metrics.unwrap().tpot_ms;
        assert_eq!(ms(&last.link), metrics.tpot_ms, "{hardware}: {last:?}");
        let [slow, fast] = ["ethernet-1g", "ethernet-800g"].map(ms);
        assert!(fast <= slow, "{hardware}: {fast} ms with 800 Gb/s, {slow} ms with 1");
        assumed += u64::from(last.assumed_network);
    }
    assert!(assumed > 0, "{assumed}");
    for (hardware, network) in
        [("2xl40s", "ethernet-100g"), ("2x2xl40s", "pcie4x16"), ("2x2xl40s", "no-link")]
    {
        let scenario = Scenario { network: Some(network.into()), ..Scenario::of("Qwen3-0.6B", hardware) };
        let fault = estimate(&catalog, &EstimateRequest::of(scenario), &UNCONTROLLED).unwrap_err();
        assert_eq!(fault.key, "network", "{fault}");
    }
}
