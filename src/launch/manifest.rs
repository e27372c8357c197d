//! Commands in manifests: Kubernetes objects, graphs of Dynamo, docker compose files.

use std::collections::BTreeMap;

use serde_json::Value;

use super::settings_file::NamedFiles;
use super::shell::{Process, commands};
fn expand(t: &str, _: &BTreeMap<String,String>) -> String { t.to_owned() }
use crate::spec::error::Error;
use crate::spec::text::yaml_place;

/// Keys under which an object has containers.
const CONTAINERS: [&str; 2] = ["containers", "mainContainer"];

/// Keys without indentation that only manifests have: of Kubernetes, of docker compose, and of values of llm-d's chart.
const FIRST_KEYS: [&str; 4] = ["apiVersion:", "kind:", "services:", "modelArtifacts:"];

/// Whether the text is a manifest and not a command.
pub fn is_manifest(text: &str) -> bool {
    let starts = |line: &str| FIRST_KEYS.iter().any(|key| line.starts_with(key));
    text.lines().any(starts) || text.trim_start().starts_with('{')
}

/// The processes of a manifest, and the files of its config maps.
pub fn processes(text: &str) -> Result<(Vec<Process>, NamedFiles), Error> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| {
        let fix = "check its indentation, or pass the command itself";
        Error::new("command", yaml_place(&error), "a manifest in YAML", fix)
    })?;
    let (mut found, mut files) = (Vec::new(), NamedFiles::new());
    for document in &documents {
        if let Some(Value::Object(data)) = document.get("data") {
            let texts =
                data.iter().filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned())));
            files.extend(texts);
        }
        let kind = document.get("kind").and_then(Value::as_str).unwrap_or("service");
        let name = document.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let scope = Scope { place: format!("{kind} {name}").trim().to_owned(), replicas: None, hosts: None };
        objects(document, &scope, &mut found);
    }
    Ok((found, files))
}

/// The counts and names that the objects around a container give it.
#[derive(Clone)]
struct Scope {
    place: String,
    replicas: Option<u64>,
    hosts: Option<u64>,
}

/// Finds containers, and the counts of the objects around them.
fn objects(value: &Value, scope: &Scope, found: &mut Vec<Process>) {
    let Value::Object(object) = value else {
        if let Value::Array(items) = value {
            items.iter().for_each(|item| objects(item, scope, found));
        }
        return;
    };
    let count = |key: &str| object.get(key).and_then(Value::as_u64);
    let nodes = value.pointer("/multinode/nodeCount").and_then(Value::as_u64);
    let name = object.get("name").and_then(Value::as_str);
    let scope = Scope {
        place: name.map_or(scope.place.clone(), |name| format!("{}, {name}", scope.place)),
        replicas: count("replicas").or(scope.replicas),
        hosts: nodes.or(count("size")).or(scope.hosts),
    };
    for key in CONTAINERS {
        let containers = object.get(key).into_iter().flat_map(|one| match one {
            Value::Array(items) => items.iter().collect::<Vec<_>>(),
            other => vec![other],
        });
        found.extend(containers.flat_map(|one| container(one, &scope)));
    }
    if let Some(Value::Object(services)) = object.get("services") {
        for (name, service) in services {
            let within = Scope { place: format!("service {name}"), ..scope.clone() };
            found.extend(container(service, &within));
            objects(service, &within, found);
        }
    }
    let inner = object.iter().filter(|(key, _)| {
        // Followers repeat the command of their leader.
        let repeated = *key == "workerTemplate" && object.contains_key("leaderTemplate");
        !repeated && *key != "services" && !CONTAINERS.contains(&key.as_str())
    });
    inner.for_each(|(_, value)| objects(value, &scope, found));
}

/// The command of a container: its words, or the script that it gives to a shell.
fn container(value: &Value, scope: &Scope) -> Vec<Process> {
    let environment = environment(value);
    let known: BTreeMap<String, String> = environment.iter().cloned().collect();
    let known_word = |word: &String| {
        let references =
            known.iter().fold(word.clone(), |word, (name, value)| word.replace(&format!("$({name})"), value));
        expand(&references, &known)
    };
    let listed = ["entrypoint", "command", "args"].iter().filter_map(|key| value.get(*key));
    let words: Vec<String> = listed.flat_map(words).collect();
    if words.is_empty() {
        return vec![];
    }
    let devices = devices(value);
    let shell = words.iter().position(|word| word == "-c");
    let shells = ["sh", "bash", "/bin/sh", "/bin/bash"].contains(&words[0].as_str());
    let script = shell.filter(|_| shells).and_then(|at| words.get(at + 1));
    let mut found = match script {
        Some(script) => commands(script, &NamedFiles::new(), &BTreeMap::new()).0,
        None => vec![Process { words, ..Process::default() }],
    };
    for process in &mut found {
        process.words = process.words.iter().map(known_word).collect();
        process.place.clone_from(&scope.place);
        process.image = value.get("image").and_then(Value::as_str).map(str::to_owned);
        process.environment.extend(environment.clone());
        (process.replicas, process.hosts, process.devices) = (scope.replicas, scope.hosts, devices);
    }
    found
}

/// A command as a list, or as one text.
fn words(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => shlex::split(text).unwrap_or_default(),
        Value::Array(items) => items.iter().map(plain).collect(),
        _ => vec![],
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Environment variables, as a list of names and values, of texts, or as an object.
fn environment(value: &Value) -> Vec<(String, String)> {
    let listed = value
        .get("env")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|one| Some((one.get("name")?.as_str()?.to_owned(), plain(one.get("value")?))));
    let composed = match value.get("environment") {
        Some(Value::Object(object)) => {
            object.iter().map(|(name, value)| (name.clone(), plain(value))).collect()
        }
        Some(Value::Array(items)) => items
            .iter()
            .filter_map(|item| item.as_str()?.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        _ => vec![],
    };
    listed.chain(composed).collect()
}

/// Devices of a container: its limits in Kubernetes, or its reservations in compose.
fn devices(value: &Value) -> Option<u64> {
    let limits = value.pointer("/resources/limits").and_then(Value::as_object);
    let limit = limits.into_iter().flatten().find(|(name, _)| name.contains("gpu") || name.contains("tpu"));
    if let Some((_, count)) = limit {
        return plain(count).parse().ok();
    }
    let reserved = value.pointer("/deploy/resources/reservations/devices/0")?;
    let ids = reserved.get("device_ids").and_then(Value::as_array).map(|ids| ids.len() as u64);
    ids.or_else(|| plain(reserved.get("count")?).parse().ok())
}
