//! Bundles: every answer is made again from its own files alone, and every edit is found.

use mantile::request::UNCONTROLLED;
use mantile::request::bundle::{Bundle, bundle, read_bundle, verify_bundle};
use mantile::request::verify::{VerifyRequest, verify};
use mantile::store::catalog::Catalog;
use mantile::store::kind::CatalogKind;
use serde_json::{Value, json};

fn bundled(catalog: &Catalog, request: &str, question: Value) -> Bundle {
    bundle(catalog, request, &question, &UNCONTROLLED).unwrap_or_else(|fault| panic!("{request}: {fault}"))
}

fn holds(bundle: &Bundle) -> bool {
    verify_bundle(bundle, &UNCONTROLLED).unwrap().holds
}

fn small() -> Bundle {
    let plan = json!({"plan": "1 x tp1 @8"});
    let set = json!(["device.memory.bandwidth=3 TB/s"]);
    let scenario = json!({"model": "Qwen3-0.6B", "hardware": "1xh100", "deployment": plan, "set": set});
    bundled(&Catalog::default(), "estimate", json!({"scenario": scenario}))
}

#[test]
fn answers_of_every_kind_are_made_again_from_their_files() {
    let catalog = Catalog::default();
    for (request, question) in [
        ("optimize", json!({"scenario": {"model": "Llama-3.1-8B", "hardware": "2xl40s"}})),
        (
            "optimize",
            json!({"scenario": {"model": "Qwen3-30B-A3B", "hardware": "rtx-4090", "host_memory": "64GB"}}),
        ),
        ("estimate", json!({"scenario": {"model": "Qwen3-0.6B"}, "command": null})),
        ("place", json!({"scenario": {"model": "gpt-oss-120b", "hardware": "mac-five"}})),
        ("inspect", json!({"model": "DeepSeek-V3"})),
        ("catalog", json!({"kind": "devices", "name": "l40s"})),
        ("glossary", json!({})),
    ] {
        let bundle = bundled(&catalog, request, question);
        // A bundle survives its own text.
        let text = serde_json::to_string_pretty(&bundle).unwrap();
        let read = read_bundle(&serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(read, bundle);
        assert!(holds(&read), "{request}");
    }
}

#[test]
fn a_model_of_the_user_is_in_the_bundle() {
    let folder = tempfile::tempdir().unwrap();
    let file = Catalog::default().entries(CatalogKind::Models).remove("Qwen--Qwen3-0.6B").unwrap();
    let config: Value = serde_json::from_str(&file.text().unwrap()).unwrap();
    std::fs::write(folder.path().join("config.json"), config["config"].to_string()).unwrap();
    let model = folder.path().to_string_lossy().into_owned();
    let bundle = bundled(&Catalog::default(), "inspect", json!({"model": model}));
    drop(folder);
    assert!(holds(&bundle), "the folder is gone");
    assert!(bundle.files.iter().any(|file| file.folder == "path"));
}

#[test]
fn every_edit_is_found_and_named() {
    let good = small();
    assert!(holds(&good));
    let faults = |bundle: &Bundle| -> String {
        let verified = verify_bundle(bundle, &UNCONTROLLED).unwrap();
        verified.checks.into_iter().flat_map(|check| check.faults).collect::<Vec<_>>().join("; ")
    };
    for at in 0..good.files.len() {
        let mut edited = good.clone();
        edited.files[at].text.push(' ');
        assert!(faults(&edited).contains(&good.files[at].name), "{}", faults(&edited));
    }
    let mut edited = good.clone();
    edited.answer["metrics"]["tpot_ms"] = json!(1.0);
    let found = faults(&edited);
    assert!(found.contains("edited") && found.contains("metrics.tpot_ms"), "{found}");
    let mut short = good.clone();
    short.files.retain(|file| !file.folder.contains("devices"));
    assert!(!holds(&short));
    let mut other = good.clone();
    other.program = "0.0.1".into();
    other.answer["metrics"]["tpot_ms"] = json!(1.0);
    assert!(faults(&other).contains("0.0.1"));
    let later = json!({"bundle": 2, "files": []});
    assert_eq!(read_bundle(&later).unwrap_err().key, "bundle");
    let mut cut = serde_json::to_value(&good).unwrap();
    cut.as_object_mut().unwrap().remove("answer");
    assert!(read_bundle(&cut).is_err());
}

#[test]
fn a_bundle_says_which_files_are_different_here() {
    let catalog = Catalog::default();
    let text = catalog.entries(CatalogKind::Devices).remove("nvidia-h100-sxm").unwrap().text().unwrap();
    let changed =
        catalog.with_entry(CatalogKind::Devices, "nvidia-h100-sxm", &text.replace("3.35 TB/s", "3.3 TB/s"));
    let result = serde_json::to_value(small()).unwrap();
    let verified = verify(&changed, &VerifyRequest { result, sample: 1, seed: 1 }, &UNCONTROLLED).unwrap();
    assert!(verified.holds);
    assert!(verified.notes[0].contains("nvidia-h100-sxm"), "{:?}", verified.notes);
}
