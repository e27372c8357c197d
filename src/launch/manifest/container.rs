//! A container: its command, environment and devices.

use serde_json::Value;

use super::{ManifestReader, plain, whole};
use crate::launch::images::with_entry_point;
use crate::launch::settings_file::NamedFiles;
use crate::launch::shell::{container_commands, starts_server};

/// The counts, names and variables that the objects around a container give it.
#[derive(Clone, Default)]
pub(super) struct Scope {
    pub(super) place: String,
    pub(super) replicas: Option<u64>,
    pub(super) hosts: Option<u64>,
    pub(super) devices: Option<u64>,
    pub(super) role: Option<String>,
    pub(super) environment: Vec<(String, String)>,
}

/// A container as its format states it.
#[derive(Default)]
pub(super) struct Container {
    pub(super) image: Option<String>,
    /// The program, where the format replaces that of the image.
    pub(super) program: Vec<String>,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
    pub(super) devices: Option<u64>,
    pub(super) notes: Vec<String>,
}

impl ManifestReader {
    /// Reads the command of a container; the files that its scripts write.
    pub(super) fn container(&mut self, one: Container, scope: &Scope) -> NamedFiles {
        let mut environment = scope.environment.clone();
        environment.extend(one.environment);
        let mut notes = one.notes;
        let mut words: Vec<String> = one.program.iter().chain(&one.arguments).cloned().collect();
        if one.program.is_empty() {
            let image = one.image.as_deref();
            if image.is_some_and(|image| image.contains('$')) && !starts_server(&words) {
                self.unknown_images.push((scope.place.clone(), image.unwrap_or_default().to_owned()));
            }
            let (with, note) = with_entry_point(image, words);
            words = with;
            notes.extend(note);
        }
        if words.is_empty() {
            return NamedFiles::new();
        }
        let (mut found, written) = container_commands(&words, &self.files, &environment);
        for process in &mut found {
            process.place.clone_from(&scope.place);
            if process.image.is_none() {
                process.image.clone_from(&one.image);
            }
            process.replicas = scope.replicas;
            process.hosts = scope.hosts;
            process.devices = process.devices.or(one.devices).or(scope.devices);
            process.role.clone_from(&scope.role);
            if starts_server(&process.words) {
                process.notes.extend(notes.iter().cloned());
            }
        }
        self.found.extend(found);
        written
    }
}

/// A container of Kubernetes. `$(NAME)` in its words is a variable of its environment.
pub(super) fn of_kubernetes(value: &Value, scope: &Scope) -> Container {
    let environment = environment(value.get("env"));
    let known: Vec<(String, String)> = scope.environment.iter().chain(&environment).cloned().collect();
    let words = |key: &str| {
        let words = list(value.get(key)).into_iter();
        words.map(|word| referenced(&word, &known)).collect::<Vec<String>>()
    };
    Container {
        image: value.get("image").and_then(Value::as_str).map(str::to_owned),
        program: words("command"),
        arguments: words("args"),
        devices: devices(value),
        environment,
        notes: vec![],
    }
}

fn referenced(word: &str, known: &[(String, String)]) -> String {
    known.iter().fold(word.to_owned(), |word, (name, value)| word.replace(&format!("$({name})"), value))
}

/// A list of words, or one text of several.
pub(super) fn list(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(text)) => shlex::split(text).unwrap_or_default(),
        Some(Value::Array(items)) => items.iter().map(plain).collect(),
        _ => vec![],
    }
}

/// Environment variables as a list of names and values, or as an object. A value from elsewhere is left out.
pub(super) fn environment(value: Option<&Value>) -> Vec<(String, String)> {
    match value {
        Some(Value::Array(items)) => items
            .iter()
            .filter_map(|one| match one.as_str() {
                Some(text) => text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())),
                None => Some((one.get("name")?.as_str()?.to_owned(), plain(one.get("value")?))),
            })
            .collect(),
        Some(Value::Object(object)) => object
            .iter()
            .filter(|(_, value)| !value.is_null() && !value.is_object())
            .map(|(name, value)| (name.clone(), plain(value)))
            .collect(),
        _ => vec![],
    }
}

/// Words of which one is in the name of a resource that counts accelerators.
const ACCELERATORS: [&str; 6] = ["gpu", "tpu", "gaudi", "neuron", "npu", "accelerator"];

/// Devices of a container or component: its limits, or its requests.
pub(super) fn devices(value: &Value) -> Option<u64> {
    let of = |kind: &str| {
        let resources = value.pointer(&format!("/resources/{kind}")).and_then(Value::as_object)?;
        let counts = |name: &str| ACCELERATORS.iter().any(|one| name.to_lowercase().contains(one));
        let (_, count) = resources.iter().find(|(name, _)| counts(name))?;
        whole(Some(count))
    };
    of("limits").or_else(|| of("requests"))
}
