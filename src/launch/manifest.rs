//! Commands in files that state a deployment: Kubernetes objects, graphs of Dynamo, docker compose files, values of Helm
//! charts, and files whose keys are options of a server.

mod compose;
mod container;
mod keys;
mod kserve;
mod kubernetes;
mod operators;
mod options;
mod program;
mod sky;
mod swap;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;

use serde_json::Value;

use super::settings_file::NamedFiles;
use super::shell::{Process, keep_one_model, starts_server};
use crate::spec::error::Error;
use crate::spec::text::yaml_place;

/// Keys without indentation that only manifests have: of Kubernetes, of docker compose, and of values of charts.
const FIRST_KEYS: [&str; 5] = ["apiVersion:", "kind:", "services:", "modelArtifacts:", "servingEngineSpec:"];

/// Keys of which a file of options, of Ray Serve, of llama-swap or of SkyPilot has one without indentation.
const OPTION_KEYS: [&str; 10] = [
    "run:",
    "model:",
    "model-path:",
    "model_path:",
    "model_tag:",
    "models:",
    "applications:",
    "llm_configs:",
    "model_loading_config:",
    "modelSpec:",
];

/// Whether the text is a manifest, or a program that starts an engine, and not a command.
pub fn is_manifest(text: &str) -> bool {
    let starts = |line: &str| FIRST_KEYS.iter().any(|key| line.starts_with(key));
    let object =
        text.trim_start().strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with(['"', '}']));
    text.lines().any(starts)
        || object
        || is_mapping(text)
        || options::is_modelfile(text)
        || program::is_program(text)
}

/// Whether every line without indentation is a key of YAML, and one is a key of a server.
fn is_mapping(text: &str) -> bool {
    let is_key = |line: &str| {
        let name = line.split_once(':').map(|(name, rest)| (name, rest.is_empty() || rest.starts_with(' ')));
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        name.is_some_and(|(name, ends)| ends && !name.is_empty() && name.trim_matches('"').chars().all(plain))
    };
    let mut known = false;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if line.starts_with(['#', ' ', '\t', '-', ']', '}']) || line.starts_with("...") {
            continue;
        }
        if !is_key(line.trim_end()) {
            return false;
        }
        known |= OPTION_KEYS.iter().any(|key| line.starts_with(key));
    }
    known
}

/// The processes of a manifest so far.
#[derive(Default)]
struct ManifestReader {
    /// Files that containers have: those given, and those of config maps.
    files: NamedFiles,
    /// Values that the user gives to variables.
    variables: BTreeMap<String, String>,
    found: Vec<Process>,
    /// Containers whose image is a variable that nothing sets, as places with their images.
    unknown_images: Vec<(String, String)>,
}

/// The processes of a manifest, and the files of its config maps. `files` are those next to it; `variables` are set for
/// its interpolation.
pub fn processes(
    text: &str,
    files: &NamedFiles,
    variables: &BTreeMap<String, String>,
) -> Result<(Vec<Process>, NamedFiles), Error> {
    let mut reader =
        ManifestReader { files: files.clone(), variables: variables.clone(), ..ManifestReader::default() };
    if program::is_program(text) {
        let own = reader.program(text)?;
        return Ok((reader.found, own));
    }
    if options::is_modelfile(text) && !is_mapping(text) {
        reader.found.push(options::modelfile(text));
        return Ok((reader.found, NamedFiles::new()));
    }
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| {
        let fix = "check its indentation, or pass the command itself";
        Error::new("command", yaml_place(&error), "a manifest in YAML", fix)
    })?;
    let mut own = NamedFiles::new();
    for document in &documents {
        if let Some(Value::Object(data)) = document.get("data") {
            let texts =
                data.iter().filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned())));
            own.extend(texts);
        }
    }
    reader.files.extend(own.clone());
    for document in &documents {
        own.extend(reader.document(document)?);
    }
    let serves = |process: &Process| starts_server(&process.words);
    if let Some((place, image)) = reader.unknown_images.first()
        && !reader.found.iter().any(serves)
    {
        let found = format!("{place}: the image {image}, which is not set");
        let fix = "set the variable in the file, in .env next to it, or write the image";
        return Err(Error::new("command", found, "the image of a known runtime", fix));
    }
    keep_one_model(&mut reader.found);
    with_roles_of_two(&mut reader.found);
    Ok((reader.found, own))
}

impl ManifestReader {
    /// Reads a document of any of the known formats; the files that its scripts write.
    fn document(&mut self, document: &Value) -> Result<NamedFiles, Error> {
        let has = |key: &str| document.get(key).is_some();
        let kind = document.get("kind").and_then(Value::as_str).unwrap_or_default();
        if has("apiVersion") || !kind.is_empty() {
            return match kind {
                "InferenceService" => self.inference_service(document),
                "LLMInferenceService" => self.llm_inference_service(document),
                "RayService" => self.ray_service(document),
                "Workspace" => self.kaito_workspace(document),
                "Model" if has("spec") => self.kubeai_model(document),
                _ => Ok(self.kubernetes(document)),
            };
        }
        if has("services") {
            return Ok(self.compose(document));
        }
        if has("modelArtifacts") {
            return self.model_service(document);
        }
        if has("servingEngineSpec") || has("modelSpec") {
            return self.production_stack(document);
        }
        if has("context_servers") && has("generation_servers") {
            return self.phases(document);
        }
        if document.get("run").is_some_and(Value::is_string) {
            return Ok(self.sky_task(document));
        }
        if has("applications") || has("llm_configs") || has("model_loading_config") {
            return self.ray_serve(document, "the file");
        }
        if document.get("models").is_some_and(Value::is_object) {
            return self.llama_swap(document);
        }
        self.options_alone(document)
    }
}

/// Roles hold where a deployment has both: a worker for decoding alone does all.
fn with_roles_of_two(found: &mut [Process]) {
    let has =
        |role: &str, found: &[Process]| found.iter().any(|process| process.role.as_deref() == Some(role));
    if !has("prefill", found) || !has("decode", found) {
        found.iter_mut().for_each(|process| process.role = None);
    }
}

/// A value as a word.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A whole number, or a text that is one.
fn whole(value: Option<&Value>) -> Option<u64> {
    value.and_then(|value| value.as_u64().or_else(|| value.as_str()?.trim().parse().ok()))
}

/// A fault of a key.
fn fault(key: &str, found: impl Into<String>, expected: &str, fix: &str) -> Error {
    Error::new("command", format!("{key}: {}", found.into()), expected, fix)
}
