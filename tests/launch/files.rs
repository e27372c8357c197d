//! The files themselves: reproducible, whole, valid.

use std::collections::BTreeMap;

use std::fs;
use std::path::Path;
use std::process::Command;

use mantile::launch::settings_file::NamedFiles;
use mantile::launch::shell::commands;
use serde_json::{Map, Value, json};

use super::{WINNERS, Winner};

fn runs() -> impl Iterator<Item = &'static Winner> {
    WINNERS.iter().filter(|winner| winner.launch().runs())
}

fn schema(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemas").join(name);
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Faults of a document by the schema of its kind.
fn faults(definitions: &Map<String, Value>, kinds: &Map<String, Value>, document: &Value) -> Vec<String> {
    let text = |key: &str| document[key].as_str().unwrap_or_default();
    let kind = match (document.get("modelArtifacts"), document.get("context_servers")) {
        (Some(_), _) => "llm-d model service".to_owned(),
        (_, Some(_)) => "trtllm disaggregated".to_owned(),
        _ => format!("{} {}", text("apiVersion"), text("kind")),
    };
    let Some(at) = kinds.get(&kind) else { return vec![format!("no schema for {kind}")] };
    let validator = jsonschema::validator_for(&json!({"$ref": at, "$defs": definitions})).unwrap();
    validator
        .iter_errors(document)
        .map(|fault| format!("{kind} {}: {fault}", fault.instance_path()))
        .collect()
}

#[test]
fn manifests_pass_their_schemas() {
    let (kubernetes, custom) = (schema("kubernetes.json"), schema("custom.json"));
    let both = |key: &str| {
        let mut all = kubernetes[key].as_object().unwrap().clone();
        all.extend(custom[key].as_object().unwrap().clone());
        all
    };
    let (definitions, kinds) = (both("$defs"), both("kinds"));
    let compose = jsonschema::validator_for(&schema("compose.json")).unwrap();
    let mut checked = 0;
    for winner in runs() {
        for name in [
            "kubernetes.yaml",
            "dynamo.yaml",
            "inference-pool.yaml",
            "autoscaling.yaml",
            "llm-d-values.yaml",
            "disaggregated.yaml",
        ] {
            let Some(file) = winner.launch().file(name) else { continue };
            let documents: Vec<Value> = serde_saphyr::from_multiple(&file.text)
                .unwrap_or_else(|fault| panic!("{}: {name}: {fault}\n{}", winner.name(), file.text));
            for document in documents {
                let faults = faults(&definitions, &kinds, &document);
                assert!(faults.is_empty(), "{}: {name}: {faults:?}\n{}", winner.name(), file.text);
                checked += 1;
            }
        }
        if let Some(file) = winner.launch().file("compose.yaml") {
            let document: Value = serde_saphyr::from_str(&file.text)
                .unwrap_or_else(|fault| panic!("{}: {fault}\n{}", winner.name(), file.text));
            let faults: Vec<String> = compose.iter_errors(&document).map(|fault| fault.to_string()).collect();
            assert!(faults.is_empty(), "{}: {faults:?}\n{}", winner.name(), file.text);
            checked += 1;
        }
    }
    assert!(checked > 150, "{checked}");
}

/// The program between those that start a rank on every device and the runtime's own.
const OF_RANKS: &str = "trtllm-llmapi-launch ";

/// A command after the words that start it on every device of several hosts.
fn of_one_rank(command: &str) -> &str {
    command.find(OF_RANKS).map_or(command, |at| &command[at..])
}

/// A shell reads every script, each script runs its command, and nothing is broken inside a quoted word.
#[test]
fn scripts_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    for winner in runs() {
        for worker in &winner.launch().workers {
            let script = &winner.launch().file(&format!("{}.sh", worker.name)).unwrap().text;
            // The reader passes over what starts a rank.
            let command = of_one_rank(&worker.command).trim_start_matches("trtllm-llmapi-launch ");
            let program = command.split(' ').find(|word| !word.contains('=')).unwrap();
            let found = commands(script, &NamedFiles::new(), &BTreeMap::new()).0;
            let last = found.last().unwrap();
            assert_eq!(last.words[0], program, "{script}");
            let plain = shlex::split(command).unwrap();
            let flags = plain.iter().filter(|word| word.starts_with("--"));
            for flag in flags {
                assert!(last.words.contains(flag), "{flag} in {script}");
            }
            assert!(script.contains(&winner.result.best.as_ref().unwrap().notation), "the plan: {script}");
            assert!(script.contains(&winner.launch().runtime_version), "the version: {script}");
        }
        if cfg!(unix) {
            let scripts = winner.launch().files.iter().filter(|file| file.path.ends_with(".sh"));
            for file in scripts {
                let path = folder.path().join("script.sh");
                fs::write(&path, &file.text).unwrap();
                let checked = Command::new("bash").arg("-n").arg(&path).output().unwrap();
                let words = String::from_utf8_lossy(&checked.stderr).into_owned();
                assert!(checked.status.success(), "{}: {words}\n{}", file.path, file.text);
            }
        }
    }
}

/// What the parsers of the runtimes and the validators of manifests read: see `.ci/launch`.
#[test]
fn files_for_the_runtimes_own_parsers() {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target");
    let files = target.join("launch-files");
    let _ = fs::remove_dir_all(&files);
    let mut lines = String::new();
    for (number, winner) in runs().enumerate() {
        for worker in &winner.launch().workers {
            let set = [
                ("MODEL", "model.gguf"),
                ("HOST_RANK", "0"),
                ("FIRST_DP_RANK", "0"),
                ("TRANSFER_PORT", "5600"),
            ];
            let own = of_one_rank(&worker.command).trim_start_matches(OF_RANKS).to_owned();
            let set = set
                .iter()
                .fold(own, |command, (name, value)| command.replace(&format!("\"${{{name}}}\""), value));
            let command = set
                .replace("\"${FIRST_HOST}:20000\"", "10.0.0.1:20000")
                .replace("\"${FIRST_HOST}\"", "10.0.0.1");
            let start =
                command.split(' ').take_while(|word| word.contains('=') && !word.starts_with('-')).count();
            let command = command.split(' ').skip(start).collect::<Vec<_>>().join(" ");
            lines.push_str(&format!("{}\t{command}\n", winner.launch().runtime));
        }
        let folder = files.join(number.to_string());
        fs::create_dir_all(&folder).unwrap();
        for file in winner.launch().files.iter().filter(|file| file.path.ends_with(".yaml")) {
            fs::write(folder.join(&file.path), &file.text).unwrap();
        }
    }
    fs::write(target.join("launch-commands.txt"), lines).unwrap();
    let home = runs()
        .find(|winner| winner.launch().runtime == "llama.cpp" && winner.launch().workers[0].devices == 1);
    let run = target.join("launch-llama");
    fs::create_dir_all(&run).unwrap();
    fs::write(run.join("run.sh"), &home.unwrap().launch().file("server.sh").unwrap().text).unwrap();
}

#[test]
fn files_are_the_same_every_time() {
    let winner = runs().next().unwrap();
    let request = mantile::request::optimize::OptimizeRequest {
        scenario: winner.scenario.clone(),
        max_front_points: Some(0.into()),
        ..mantile::request::optimize::OptimizeRequest::default()
    };
    let again =
        mantile::request::optimize::optimize(&super::CATALOG, &request, &mantile::request::UNCONTROLLED);
    assert_eq!(again.unwrap().launch.as_ref(), Some(winner.launch()));
}
