//! Every question with a scenario reads its overrides, and answers as it does where the file has the value.

use mantile::request::{UNCONTROLLED, entry};
use mantile::store::catalog::Catalog;
use mantile::store::kind::CatalogKind;
use serde_json::{Value, json};

/// Questions: name, request, and where the overrides are written in it. Those with several devices name one.
fn questions() -> Vec<(&'static str, Value, &'static str)> {
    let on = |hardware: &str| json!({"model": "Llama-3.1-8B", "hardware": hardware});
    let with = |mut scenario: Value, key: &str, value: Value| {
        scenario[key] = value;
        scenario
    };
    let plan = json!({"plan": "1 x tp1 @16"});
    let rig = json!({
        "model": "Llama-3.1-8B", "device": ["rtx-4090", "h100-sxm"], "link": ["pcie4x16"], "objective": "latency"
    });
    vec![
        ("optimize", json!({"scenario": on("1xh100-sxm")}), "/scenario"),
        ("estimate", json!({"scenario": with(on("1xh100-sxm"), "deployment", plan.clone())}), "/scenario"),
        ("explain", json!({"scenario": with(on("1xh100-sxm"), "deployment", plan.clone())}), "/scenario"),
        ("audit", json!({"scenario": with(on("1xh100-sxm"), "deployment", plan.clone())}), "/scenario"),
        ("static", json!({"scenario": on("1xh100-sxm")}), "/scenario"),
        (
            "sweep",
            json!({"scenario": with(on("1xh100-sxm"), "deployment", plan), "vary": ["concurrency=4,8"]}),
            "/scenario",
        ),
        (
            "compare",
            json!({"hardware": ["1xh100-sxm", "1xl40s"], "scenario": {"model": "Llama-3.1-8B"}}),
            "/scenario",
        ),
        ("recommend", json!({"scenario": {"model": "Llama-3.1-8B"}, "only": ["h100-sxm-x1"]}), "/scenario"),
        ("recommend", json!({"scenario": {"hardware": "h100-sxm-x1"}, "target_tok_s": 100.0}), "/scenario"),
        ("fleet", json!({"model": "Llama-3.1-8B", "offers": ["1xh100-sxm", "1xl40s"]}), ""),
        ("place", json!({"scenario": rig}), "/scenario"),
    ]
}

/// The numbers of a report; a set value and its text differ from those of a file, what follows from it does not.
fn numbers(report: &Value) -> Vec<f64> {
    match report {
        Value::Number(number) => vec![number.as_f64().unwrap()],
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        Value::Object(object) => {
            let sources = ["overrides", "evidence", "known"];
            let kept = object.iter().filter(|(key, _)| !sources.contains(&key.as_str()));
            kept.flat_map(|(_, value)| numbers(value)).collect()
        }
        _ => vec![],
    }
}

#[test]
fn every_question_reads_its_overrides() {
    let catalog = Catalog::default();
    let device = catalog.entries(CatalogKind::Devices).remove("nvidia-h100-sxm").unwrap();
    let mut file: Value = serde_json::from_str(&device.text().unwrap()).unwrap();
    file["memory"]["bandwidth"]["value"] = json!("1.7 TB/s");
    let changed = Catalog::default().with_entry(CatalogKind::Devices, "nvidia-h100-sxm", &file.to_string());
    for (name, request, at) in questions() {
        let answer = |catalog: &Catalog, request: &Value| {
            let answer = (entry(name).unwrap().answer)(catalog, request, &UNCONTROLLED);
            numbers(&answer.unwrap_or_else(|fault| panic!("{name}: {fault}")))
        };
        let mut set = request.clone();
        set.pointer_mut(at).unwrap()["set"] = json!(["device[h100-sxm].memory.bandwidth=1.7 TB/s"]);
        let (plain, overridden) = (answer(&catalog, &request), answer(&catalog, &set));
        assert_ne!(plain, overridden, "{name} ignores the override");
        assert_eq!(overridden, answer(&changed, &request), "{name}");
    }
}

#[test]
fn an_override_of_one_of_many_names_it() {
    for (name, request, at) in questions() {
        if !["fleet", "place"].contains(&name) {
            continue;
        }
        let mut set = request.clone();
        set.pointer_mut(at).unwrap()["set"] = json!(["device.memory.bandwidth=1.7 TB/s"]);
        let fault = (entry(name).unwrap().answer)(&Catalog::default(), &set, &UNCONTROLLED).unwrap_err();
        assert!(fault.fix.contains("device[NAME].memory.bandwidth"), "{name}: {fault}");
    }
}
