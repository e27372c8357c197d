//! Services of KServe.

use serde_json::Value;

use super::container::{Container, Scope, devices, environment, list, of_kubernetes};
use super::keys::{KeyOption, hub_name, key, words_of};
use super::{ManifestReader, fault, plain, whole};
use crate::launch::settings_file::NamedFiles;
use crate::spec::error::Error;

/// Options of the server for models of Hugging Face that are not those of vLLM.
const OWN_OPTIONS: [&str; 14] = [
    "--model_id",
    "--model_name",
    "--model_dir",
    "--model_revision",
    "--tokenizer_revision",
    "--task",
    "--backend",
    "--http_port",
    "--grpc_port",
    "--workers",
    "--max_length",
    "--return_token_type_ids",
    "--return_probabilities",
    "--disable_log_requests",
];

/// Degrees of an LLMInferenceService, as its configurations give them to vLLM.
const PARALLELISM: [KeyOption; 5] = [
    key("tensor", "--tensor-parallel-size"),
    key("pipeline", "--pipeline-parallel-size"),
    key("data", "--data-parallel-size"),
    key("dataLocal", "--data-parallel-size-local"),
    key("expert", "--enable-expert-parallel"),
];

impl ManifestReader {
    /// An InferenceService, whose model is served by vLLM in the runtime for models of Hugging Face.
    pub(super) fn inference_service(&mut self, document: &Value) -> Result<NamedFiles, Error> {
        let Some(model) = document.pointer("/spec/predictor/model") else {
            return Ok(self.kubernetes(document));
        };
        let name = document.pointer("/metadata/name").map(plain).unwrap_or_default();
        let text = |path: &str| model.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let (format, runtime) = (text("/modelFormat/name"), text("/runtime"));
        let served = [format, runtime].iter().any(|one| one.contains("huggingface") || one.contains("vllm"));
        if !served {
            let found = format!("the model format {format}");
            let fix = "pass the command of the server, or an LLMInferenceService";
            let key = "spec.predictor.model.modelFormat.name";
            return Err(fault(key, found, "huggingface or vLLM", fix));
        }
        let arguments = list(model.get("args"));
        let (own, rest) = own_options(&arguments);
        let stated = own.iter().find(|(flag, _)| flag == "--model_id").map(|(_, value)| value.clone());
        let address = text("/storageUri");
        let named = stated.or((!address.is_empty()).then(|| hub_name(address)));
        let Some(named) = named else {
            let fix = "add --model_id=OWNER/NAME to its args, or storageUri: hf://OWNER/NAME";
            return Err(fault("spec.predictor.model", "no --model_id and no storageUri", "a model", fix));
        };
        let worker = document.pointer("/spec/predictor/workerSpec");
        let degrees = [
            key("tensorParallelSize", "--tensor-parallel-size"),
            key("pipelineParallelSize", "--pipeline-parallel-size"),
        ];
        let degrees = worker.map(|worker| words_of(worker, &degrees)).unwrap_or_default();
        let container = Container {
            image: model.get("image").and_then(Value::as_str).map(str::to_owned),
            program: ["vllm", "serve"].map(str::to_owned).to_vec(),
            arguments: [named].into_iter().chain(degrees).chain(rest).collect(),
            environment: environment(model.get("env")),
            devices: devices(model),
            notes: vec![],
        };
        let replicas = whole(document.pointer("/spec/predictor/minReplicas")).filter(|count| *count > 0);
        let scope = Scope {
            place: format!("InferenceService {name}").trim().to_owned(),
            replicas,
            ..Scope::default()
        };
        Ok(self.container(container, &scope))
    }

    /// An LLMInferenceService: its model, degrees and pods, and those for prefill.
    pub(super) fn llm_inference_service(&mut self, document: &Value) -> Result<NamedFiles, Error> {
        let name = document.pointer("/metadata/name").map(plain).unwrap_or_default();
        let Some(uri) = document.pointer("/spec/model/uri").and_then(Value::as_str) else {
            let fix = "add model.uri under spec, e.g. hf://Qwen/Qwen3-8B";
            return Err(fault("spec.model.uri", "no model", "the address of a model", fix));
        };
        let model = hub_name(uri);
        let place = format!("LLMInferenceService {name}").trim().to_owned();
        let Some(spec) = document.get("spec") else { return Ok(NamedFiles::new()) };
        let split = spec.get("prefill").filter(|prefill| prefill.is_object());
        let mut written = NamedFiles::new();
        if let Some(prefill) = split {
            let place = format!("{place}, prefill");
            written.extend(self.llm_pods(prefill, &model, place, Some("prefill")));
        }
        written.extend(self.llm_pods(spec, &model, place, split.map(|_| "decode")));
        Ok(written)
    }

    fn llm_pods(&mut self, pods: &Value, model: &str, place: String, role: Option<&str>) -> NamedFiles {
        let parallelism = pods.get("parallelism").cloned().unwrap_or_default();
        let (data, local) = (whole(parallelism.get("data")), whole(parallelism.get("dataLocal")));
        let scope = Scope {
            place,
            replicas: whole(pods.get("replicas")),
            hosts: data.zip(local.filter(|local| *local > 0)).map(|(data, local)| data.div_ceil(local)),
            role: role.map(str::to_owned),
            ..Scope::default()
        };
        let first = pods.pointer("/template/containers/0").cloned().unwrap_or_default();
        let mut container = of_kubernetes(&first, &scope);
        if container.program.is_empty() {
            // The configuration of KServe passes this variable on, then the arguments.
            let more = container.environment.iter().find(|(name, _)| name == "VLLM_ADDITIONAL_ARGS");
            let more = more.and_then(|(_, text)| shlex::split(text)).unwrap_or_default();
            let degrees = words_of(&parallelism, &PARALLELISM).into_iter();
            let degrees = degrees.filter(|word| word != "--no-enable-expert-parallel");
            let own = std::mem::take(&mut container.arguments);
            container.program = ["vllm", "serve"].map(str::to_owned).to_vec();
            container.arguments =
                [model.to_owned()].into_iter().chain(degrees).chain(more).chain(own).collect();
        }
        self.container(container, &scope)
    }
}

/// An option with its value.
type Stated = (String, String);

/// The options of the server itself with their values, and the words of the engine.
fn own_options(words: &[String]) -> (Vec<Stated>, Vec<String>) {
    let (mut own, mut rest) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < words.len() {
        let (flag, inline) = match words[at].split_once('=') {
            Some((flag, value)) => (flag, Some(value.to_owned())),
            None => (words[at].as_str(), None),
        };
        let spelled = flag.replace('-', "_").replacen("__", "--", 1);
        at += 1;
        if !OWN_OPTIONS.contains(&spelled.as_str()) {
            rest.push(words[at - 1].clone());
            continue;
        }
        let value = inline.or_else(|| {
            let next = words.get(at).filter(|next| !next.starts_with('-')).cloned();
            at += usize::from(next.is_some());
            next
        });
        own.push((spelled, value.unwrap_or_default()));
    }
    (own, rest)
}
