//! The shipped catalogues: every file loads, fits its schema and refers to what exists; the user's come first.

use mantile::spec::offload::OffloadPolicy;
use std::fs;
use std::path::{Path, PathBuf};

use mantile::graph::inspect::Inspection;
use mantile::graph::model::ModelGraph;
use mantile::report::inspect::Inspected;
use mantile::request::reference::schema_of as schema;
use mantile::spec::cluster::{System, Tier};
use mantile::spec::device::Device;
use mantile::spec::error::Error;
use mantile::spec::format::NumberFormat;
use mantile::spec::link::Link;
use mantile::spec::model::file::ModelFile;
use mantile::spec::objective::{Objective, Workload};
use mantile::spec::runtime::Runtime;
use mantile::spec::scenario::Scenario;
use mantile::spec::text::each_key_once;
use mantile::store::catalog::{Catalog, read_entry};
use mantile::store::kind::{CatalogKind, Entry, KINDS, shipped_defaults};
use mantile::store::resolved_scenario::ResolvedScenario;
use serde_json::Value;

#[path = "store/device_names.rs"]
mod device_names;
#[path = "store/fetch.rs"]
mod fetch;
#[path = "store/foreign_hardware.rs"]
mod foreign_hardware;
#[path = "store/guarded.rs"]
mod guarded;
#[path = "store/model_names.rs"]
mod model_names;
#[path = "store/ranges.rs"]
mod ranges;
#[path = "store/spoilt.rs"]
mod spoilt;
#[path = "store/versions.rs"]
mod versions;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn ids_on_disk(folder: &Path) -> Vec<String> {
    let entries =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut ids: Vec<String> =
        entries.filter_map(|name| name.strip_suffix(".json").map(str::to_owned)).collect();
    ids.retain(|id| id != "defaults");
    ids.sort();
    ids
}

fn all<T: Entry>() -> Vec<T> {
    let shelf = Catalog::default().entries(T::KIND);
    shelf.values().map(|file| read_entry(file).unwrap_or_else(|fault| panic!("{fault}"))).collect()
}

#[test]
fn every_file_on_disk_is_built_in_and_loads() {
    for kind in KINDS {
        let shelf = Catalog::default().entries(kind);
        assert_eq!(
            shelf.keys().cloned().collect::<Vec<_>>(),
            ids_on_disk(&root().join(kind.folder())),
            "{kind:?}"
        );
        assert!(!shelf.is_empty(), "{kind:?}");
    }
    all::<Device>();
    all::<System>();
    all::<Link>();
    all::<NumberFormat>();
    all::<Runtime>();
    all::<Objective>();
    all::<Workload>();
    Catalog::default().defaults().unwrap();
    for file in all::<ModelFile>() {
        let graph =
            ModelGraph::build(&file.model_config().unwrap()).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(graph.parameters().unique, file.parameters, "{}", file.name);
    }
}

fn faults(name: &str, value: &Value) -> Vec<String> {
    let schema = serde_json::to_value(schema(name).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    validator.iter_errors(value).map(|fault| format!("{}: {fault}", fault.instance_path())).collect()
}

#[test]
fn every_shipped_file_fits_the_schema_of_its_kind() {
    for kind in KINDS {
        for file in Catalog::default().entries(kind).values() {
            let text = file.text().unwrap();
            each_key_once(&text).unwrap_or_else(|fault| panic!("{}: {fault}", file.file));
            let value: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(faults(kind.singular(), &value), Vec::<String>::new(), "{}", file.file);
        }
    }
    each_key_once(shipped_defaults()).unwrap();
    assert_eq!(faults("defaults", &serde_json::from_str(shipped_defaults()).unwrap()), Vec::<String>::new());
}

#[test]
fn a_schema_refuses_what_the_reader_refuses() {
    for kind in KINDS {
        let file = Catalog::default().entries(kind).into_values().next().unwrap();
        let mut value: Value = serde_json::from_str(&file.text().unwrap()).unwrap();
        value["not_a_key"] = Value::from(1);
        assert!(!faults(kind.singular(), &value).is_empty(), "{kind:?}");
        assert!(!faults(kind.singular(), &Value::from(3)).is_empty(), "{kind:?}");
    }
    let mut device: Value =
        serde_json::from_str(&Catalog::default().find(CatalogKind::Devices, "h100").unwrap().text().unwrap())
            .unwrap();
    device["memory"]["bandwidth"].as_object_mut().unwrap().remove("source");
    assert!(!faults("device", &device).is_empty(), "a figure without a source");
}

#[test]
fn what_is_written_fits_its_schema() {
    let model = Catalog::default().model("gpt-oss-20b").unwrap();
    let inspected = Inspected {
        weight_format: model.config.weight_format().map(str::to_owned),
        published_total: None,
        inspection: Inspection::of(&ModelGraph::build(&model.config).unwrap()),
        name: model.name,
        source: model.source,
    };
    assert_eq!(faults("inspect", &serde_json::to_value(&inspected).unwrap()), Vec::<String>::new());
    let scenario = Scenario {
        model: Some("m".into()),
        rate: Some(0.5),
        ttft: Some("1 s".into()),
        pareto: Some(vec!["tpot".into()]),
        offload: Some(OffloadPolicy::Always),
        deployment: Some(
            serde_json::from_str(r#"{"prefill": {"tp": 2}, "decode": {"tp": 4, "sp": true}}"#).unwrap(),
        ),
        ..Scenario::default()
    };
    assert_eq!(faults("scenario", &serde_json::to_value(&scenario).unwrap()), Vec::<String>::new());
    assert!(!faults("scenario", &serde_json::json!({"pareto": ["nonsense"]})).is_empty());
}

#[test]
fn every_system_is_a_cluster_whose_tiers_hold_all_its_devices() {
    for system in all::<System>() {
        let device: Device = Catalog::default().load(&system.device).unwrap();
        let cluster = match (Catalog::default().hardware(&system.id), device.missing().first()) {
            (Ok(cluster), None) => cluster,
            (Err(fault), Some(missing)) => {
                assert_eq!(fault.key, *missing, "{fault}");
                continue;
            }
            (Err(fault), None) => panic!("{}: {fault}", system.id),
            (Ok(_), Some(missing)) => panic!("{}: {missing} is missing", system.id),
        };
        assert_eq!(cluster.id, system.id);
        let whole = cluster.tiers.last().map_or(1, |tier| tier.devices);
        assert_eq!(whole, cluster.devices(), "{}", system.id);
        let stated: Vec<u64> = system.tiers.iter().map(|tier| tier.devices).collect();
        let built: Vec<u64> = cluster.tiers.iter().map(|tier| tier.devices).collect();
        assert_eq!(stated, built, "{}: a tier was added or left out", system.id);
        for alias in &system.aliases {
            let other = Catalog::default().hardware(alias).unwrap_or_else(|fault| panic!("{alias}: {fault}"));
            assert_eq!(
                (other.nodes, other.devices_per_node),
                (cluster.nodes, cluster.devices_per_node),
                "{alias}"
            );
        }
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let catalog = Catalog::default();
    let has = |kind: CatalogKind, id: &str, from: &str| {
        assert!(catalog.entries(kind).contains_key(id), "{from} refers to {} `{id}`", kind.singular());
    };
    for device in all::<Device>() {
        if let Some(system) = &device.system {
            has(CatalogKind::Systems, system, &device.id);
            let host: System = catalog.load(system).unwrap();
            assert_eq!(host.device, device.id, "the host of {}", device.id);
        }
        device.scale_up.iter().for_each(|link| has(CatalogKind::Links, &link.link, &device.id));
        device.host_link.iter().for_each(|link| has(CatalogKind::Links, &link.link, &device.id));
    }
    for system in all::<System>() {
        has(CatalogKind::Devices, &system.device, &system.id);
        let tiers: Vec<&Tier> = system.tiers.iter().chain(&system.network).collect();
        tiers.iter().for_each(|tier| has(CatalogKind::Links, &tier.link, &system.id));
    }
    for runtime in all::<Runtime>() {
        for id in runtime.weight_formats.iter().chain(&runtime.kv_formats) {
            has(CatalogKind::Formats, id, &runtime.id);
            let format: NumberFormat = catalog.load(id).unwrap();
            assert!(format.runtimes.contains(&runtime.id), "{id} does not name {} back", runtime.id);
        }
    }
    for format in all::<NumberFormat>() {
        format.runtimes.iter().for_each(|id| has(CatalogKind::Runtimes, id, &format.id));
    }
    for model in all::<ModelFile>() {
        model
            .published
            .iter()
            .for_each(|published| has(CatalogKind::Formats, &published.weight_format, &model.name));
    }
    for objective in all::<Objective>() {
        has(CatalogKind::Workloads, &objective.workload, &objective.id);
    }
}

#[test]
fn every_name_means_one_thing() {
    for kind in KINDS {
        let mut seen: Vec<(String, String)> = Vec::new();
        for file in Catalog::default().entries(kind).values() {
            let value: Value = serde_json::from_str(&file.text().unwrap()).unwrap();
            let aliases = value["aliases"].as_array().cloned().unwrap_or_default();
            let aliases = aliases.iter().map(|alias| alias.as_str().unwrap().to_lowercase());
            for name in aliases.chain([file.id.to_lowercase()]) {
                if let Some((_, other)) = seen.iter().find(|(known, by)| *known == name && *by != file.id) {
                    panic!("`{name}` means {other} and {}", file.id);
                }
                seen.push((name, file.id.clone()));
            }
        }
    }
}

/// Of so many pairs of a model and a system one is looked at: no divisor of the systems' number, so that all meet.
const SAMPLE: usize = 7;

#[test]
fn models_meet_systems_with_a_problem_or_a_reason() {
    let catalog = Catalog::default();
    let (mut posed, mut refused) = (0, 0);
    let (models, systems) = (catalog.entries(CatalogKind::Models), catalog.entries(CatalogKind::Systems));
    assert!(!systems.len().is_multiple_of(SAMPLE));
    for (nth, model) in models.keys().enumerate() {
        for system in systems.keys().skip(nth % SAMPLE).step_by(SAMPLE) {
            let scenario = Scenario {
                model: Some(model.clone()),
                hardware: Some(system.clone()),
                ..Scenario::default()
            };
            let device = catalog.load::<Device>(&catalog.load::<System>(system).unwrap().device).unwrap();
            match ResolvedScenario::resolve(&catalog, &scenario) {
                Ok(problem) => {
                    posed += 1;
                    assert!(
                        !problem.weight_formats.is_empty() && !problem.kv_formats.is_empty(),
                        "{model} on {system}"
                    );
                }
                Err(fault) if !device.missing().is_empty() => assert_eq!(fault.key, device.missing()[0]),
                Err(fault) => {
                    refused += 1;
                    // Checkpoints of several formats name the key that says so.
                    let keys = ["weight-format", "quantization_config"];
                    assert!(keys.contains(&fault.key.as_str()), "{model} on {system}: {fault}");
                    assert!(fault.fix.contains("--weight-format"), "{model} on {system}: {fault}");
                }
            }
        }
    }
    assert!(posed > 3 * refused, "{posed} posed, {refused} refused");
}

#[test]
fn the_users_files_come_before_those_built_in() {
    let home = tempfile::tempdir().unwrap();
    let devices = home.path().join("hardware/devices");
    fs::create_dir_all(&devices).unwrap();
    let catalog = Catalog::at(Some(home.path().to_owned()));
    let text = Catalog::default().find(CatalogKind::Devices, "h100").unwrap().text().unwrap();
    fs::write(devices.join("nvidia-h100-sxm.json"), text.replace("3.35 TB/s", "1 TB/s")).unwrap();
    assert_eq!(catalog.hardware("8xh100").unwrap().device.bandwidth().unwrap().value, 1e12);
    assert!(catalog.entries(CatalogKind::Devices)["nvidia-h100-sxm"].user);
    assert!(!catalog.entries(CatalogKind::Devices)["nvidia-h200-sxm"].user);

    fs::write(devices.join("mine.json"), "{").unwrap();
    let fault = catalog.hardware("8xmine").unwrap_err();
    assert!(fault.file.ends_with("mine.json") && fault.found.contains("not JSON"), "{fault}");
    assert!(catalog.hardware("8xh200").is_ok(), "a broken file that nobody asks for breaks nothing");

    // A fault in the device of a system is in the device's file, at its key.
    fs::write(devices.join("nvidia-h100-sxm.json"), text.replacen("\"bandwidth\"", "\"bandwith\"", 1))
        .unwrap();
    let fault = catalog.hardware("dgx-h100").unwrap_err();
    let place = (fault.file.ends_with("nvidia-h100-sxm.json"), fault.key.as_str());
    assert_eq!(place, (true, "memory.bandwith"), "{fault}");

    fs::write(devices.join("mine.json"), text).unwrap();
    let fault = catalog.hardware("8xmine").unwrap_err();
    assert_eq!((fault.key.as_str(), fault.found.as_str()), ("id", "`nvidia-h100-sxm`"));
}

#[test]
fn a_system_file_may_hold_its_device_or_name_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box.json");
    let text = |kind, name| Catalog::default().find(kind, name).unwrap().text().unwrap();
    let mut system: Value = serde_json::from_str(&text(CatalogKind::Systems, "dgx-h100")).unwrap();
    let build = |system: &Value| {
        fs::write(&path, system.to_string()).unwrap();
        Catalog::default().hardware(path.to_str().unwrap())
    };
    system["device"] = "h200".into();
    assert_eq!(build(&system).unwrap().device.id, "nvidia-h200-sxm");
    system["device"] = serde_json::from_str(&text(CatalogKind::Devices, "mi300x")).unwrap();
    system["device"]["memory"]["capacity"]["value"] = "100 GB".into();
    let cluster = build(&system).unwrap();
    assert_eq!((cluster.device.id.as_str(), cluster.device.capacity().unwrap().value), ("amd-mi300x", 1e11));
    assert_eq!(faults("system", &system), Vec::<String>::new());

    let fault = |value: &Value| build(value).unwrap_err();
    let wrong = |change: fn(&mut Value)| {
        let mut system = system.clone();
        change(&mut system);
        fault(&system)
    };
    assert_eq!(
        wrong(|s| s["device"]["memory"]["capacity"]["value"] = "-1 GB".into()).key,
        "device.memory.capacity"
    );
    assert_eq!(
        wrong(|s| s["device"]["memory"]["bandwidth"]["value"] = "0 B/s".into()).key,
        "device.memory.bandwidth"
    );
    assert_eq!(wrong(|s| s["device"] = "h1000".into()).key, "device");
    assert_eq!(wrong(|s| s["nodes"] = 0.into()).key, "nodes");
    assert_eq!(wrong(|s| s["nodes"] = u64::MAX.into()).key, "nodes");
    assert_eq!(wrong(|s| s["nodes"] = (-1).into()).key, "nodes");
    assert_eq!(wrong(|s| s["tiers"][0]["bandwidth"]["value"] = "450 GB".into()).key, "tiers[0].bandwidth");
    assert!(wrong(|s| s["devices"] = 8.into()).fix.contains("devices_per_node"));
    assert!(fault(&Value::from(7)).expected.contains("object"));
}

#[test]
fn a_model_is_found_by_any_of_its_names() {
    let catalog = Catalog::default();
    let name = |text: &str| catalog.model(text).map(|model| model.name);
    let llama = "meta-llama/Llama-3.3-70B-Instruct";
    for text in [
        llama,
        "meta-llama--Llama-3.3-70B-Instruct",
        "Llama-3.3-70B-Instruct",
        "llama-3.3-70b",
        "meta-llama/Llama-3.1-70B",
        "META-LLAMA/LLAMA-3.1-70B",
        " Llama-3.1-70B ",
    ] {
        assert_eq!(name(text), Ok(llama.to_owned()), "{text}");
    }
    assert_eq!(name("Qwen3-8B"), Ok("Qwen/Qwen3-8B".to_owned()));
    assert_eq!(name("nvidia/DeepSeek-R1-NVFP4"), Ok("nvidia/DeepSeek-R1-NVFP4".to_owned()));
    let several: Error = name("gpt-oss").unwrap_err();
    assert!(several.found.contains("openai--gpt-oss-120b"), "{several}");
    let near = name("Qwen3-9B").unwrap_err();
    assert!(near.fix.contains("Qwen3-8B"), "{near}");
    for text in ["", " ", "/", "hf:", "..", "\u{0}", "a/b/c/d"] {
        assert!(name(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_model_is_read_from_a_file_or_a_folder_with_its_quantisation_next_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("my-model");
    fs::create_dir(&mine).unwrap();
    let shipped: ModelFile = Catalog::default().load("Qwen--Qwen3-8B").unwrap();
    fs::write(mine.join("config.json"), serde_json::to_string(&shipped.config).unwrap()).unwrap();
    let read = |path: &Path| Catalog::default().model(path.to_str().unwrap());
    let model = read(&mine).unwrap();
    assert_eq!((model.name.as_str(), model.config.weight_format()), ("my-model", Some("bf16")));
    assert_eq!(read(&mine.join("config.json")).unwrap().name, "my-model");
    let quant = r#"{"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}"#;
    fs::write(mine.join("hf_quant_config.json"), quant).unwrap();
    assert_eq!(read(&mine).unwrap().config.weight_format(), Some("fp8"));
    let scenario = Scenario { model: Some(mine.to_str().unwrap().into()), ..Scenario::default() };
    let problem = ResolvedScenario::resolve(&Catalog::default(), &scenario).unwrap();
    let ids: Vec<&str> = problem.kv_formats.iter().map(|choice| choice.format.id.as_str()).collect();
    assert_eq!(ids, ["bf16", "fp8"], "the checkpoint brings scales for an fp8 cache");

    let file = folder.path().join("shipped.json");
    fs::write(&file, serde_json::to_string(&shipped).unwrap()).unwrap();
    assert_eq!(read(&file).unwrap().published.len(), shipped.published.len());
    assert!(read(&folder.path().join("none")).unwrap_err().found.contains("no such file"));
    assert!(read(folder.path()).unwrap_err().file.ends_with("config.json"));
}
