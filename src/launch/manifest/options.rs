//! Files whose keys are options of a server: `vllm serve --config FILE`, Ray Serve, and the Modelfile of Ollama.

use serde_json::Value;

use super::container::{Container, Scope, environment};
use super::keys::{every_option, hub_name};
use super::{ManifestReader, fault, whole};
use crate::launch::settings_file::NamedFiles;
use crate::launch::shell::Process;
use crate::spec::error::Error;

/// Keys that name the model in a file of options, with the command that takes such a file.
const MODEL_KEYS: [(&str, &[&str]); 4] = [
    ("model", &["vllm", "serve"]),
    ("model_tag", &["vllm", "serve"]),
    ("model-path", &["python3", "-m", "sglang.launch_server", "--model-path"]),
    ("model_path", &["python3", "-m", "sglang.launch_server", "--model-path"]),
];

impl ManifestReader {
    /// A file of options alone.
    pub(super) fn options_alone(&mut self, document: &Value) -> Result<NamedFiles, Error> {
        let Value::Object(keys) = document else { return Ok(NamedFiles::new()) };
        let named =
            MODEL_KEYS.iter().find_map(|(key, program)| Some((key, program, keys.get(*key)?.as_str()?)));
        let Some((key, program, model)) = named else { return Ok(NamedFiles::new()) };
        let words = program.iter().map(|word| (*word).to_owned());
        let container = Container {
            program: words.chain([hub_name(model)]).collect(),
            arguments: every_option(keys, &[key]),
            ..Container::default()
        };
        Ok(self.container(container, &Scope { place: format!("options of {model}"), ..Scope::default() }))
    }

    /// The file of `trtllm-serve disaggregated` that has the options of its workers.
    pub(super) fn phases(&mut self, document: &Value) -> Result<NamedFiles, Error> {
        let Some(model) = document.get("model").and_then(Value::as_str) else {
            let fix = "pass the commands of the workers, or add model";
            return Err(fault("model", "no model", "the model of the workers", fix));
        };
        let mut files = NamedFiles::new();
        for (key, role) in [("context_servers", "prefill"), ("generation_servers", "decode")] {
            let Some(Value::Object(servers)) = document.get(key) else { continue };
            let own = servers
                .iter()
                .filter(|(key, _)| !["num_instances", "urls", "router"].contains(&key.as_str()));
            let options: serde_json::Map<String, Value> =
                own.map(|(key, value)| (key.clone(), value.clone())).collect();
            let file = format!("{key}.yaml");
            files.insert(file.clone(), Value::Object(options).to_string());
            let container = Container {
                program: ["trtllm-serve", model, "--config", &file].map(str::to_owned).to_vec(),
                ..Container::default()
            };
            let replicas = whole(servers.get("num_instances"));
            let scope =
                Scope { place: key.to_owned(), replicas, role: Some(role.to_owned()), ..Scope::default() };
            files.extend(self.container(container, &scope));
        }
        Ok(files)
    }

    /// A RayService, whose configuration of Serve is a text.
    pub(super) fn ray_service(&mut self, document: &Value) -> Result<NamedFiles, Error> {
        let text = document.pointer("/spec/serveConfigV2").and_then(Value::as_str);
        let parsed = text.and_then(|text| serde_saphyr::from_str::<Value>(text).ok());
        match parsed {
            Some(config) if config.get("applications").is_some() => {
                self.ray_serve(&config, "spec.serveConfigV2")
            }
            _ => Ok(self.kubernetes(document)),
        }
    }

    /// Configurations of Ray Serve for language models.
    pub(super) fn ray_serve(&mut self, document: &Value, file: &str) -> Result<NamedFiles, Error> {
        let applications = document.get("applications").and_then(Value::as_array);
        let arguments: Vec<&Value> = match applications {
            Some(all) => all.iter().filter_map(|one| one.get("args")).collect(),
            None => vec![document],
        };
        let mut configs: Vec<(Option<&str>, &Value)> = Vec::new();
        for one in arguments {
            match one.get("llm_configs") {
                Some(Value::Array(all)) => configs.extend(all.iter().map(|config| (None, config))),
                _ if one.get("model_loading_config").is_some() => configs.push((None, one)),
                _ if one.get("llm_config").is_some() => {
                    configs.extend(one.get("llm_config").map(|one| (None, one)))
                }
                _ => {}
            }
            for (key, role) in [("prefill_config", "prefill"), ("decode_config", "decode")] {
                configs.extend(one.get(key).map(|config| (Some(role), config)));
            }
        }
        if configs.is_empty() {
            let fix = "state llm_configs under args of an application";
            return Err(fault(file, "no llm_configs", "configurations of models", fix));
        }
        let count = configs.iter().filter(|(role, _)| role.is_none()).count();
        let mut written = NamedFiles::new();
        let mut single = false;
        for (role, config) in configs {
            if role.is_none() && std::mem::replace(&mut single, true) {
                continue;
            }
            let several = (role.is_none() && count > 1).then_some(count);
            written.extend(self.ray_model(role, config, several)?);
        }
        Ok(written)
    }

    fn ray_model(
        &mut self,
        role: Option<&str>,
        config: &Value,
        several: Option<usize>,
    ) -> Result<NamedFiles, Error> {
        let text = |path: &str| config.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let id = text("/model_loading_config/model_id");
        let model = text("/model_loading_config/model_source").or(id.clone());
        let Some(model) = model else {
            let found = match config.as_str() {
                Some(path) => format!("the file {path}"),
                None => "no model_loading_config".to_owned(),
            };
            let fix = "write model_loading_config with model_id and model_source here";
            return Err(fault("llm_configs", found, "a model", fix));
        };
        let empty = serde_json::Map::new();
        let options = config.get("engine_kwargs").and_then(Value::as_object).unwrap_or(&empty);
        let stated = |path: &str| whole(config.pointer(path));
        let replicas = stated("/deployment_config/num_replicas")
            .or(stated("/deployment_config/autoscaling_config/initial_replicas"))
            .or(stated("/deployment_config/autoscaling_config/min_replicas"))
            .filter(|count| *count > 0);
        let note = several.map(|count| format!("of {count} models {model} is read: the others are not"));
        let container = Container {
            program: ["vllm", "serve"].map(str::to_owned).to_vec(),
            arguments: [hub_name(&model)].into_iter().chain(every_option(options, &["model"])).collect(),
            environment: environment(config.pointer("/runtime_env/env_vars")),
            notes: note.into_iter().collect(),
            ..Container::default()
        };
        let place = format!("llm_configs, {}", id.unwrap_or(model));
        let scope = Scope { place, replicas, role: role.map(str::to_owned), ..Scope::default() };
        Ok(self.container(container, &scope))
    }
}

/// Instructions of a Modelfile.
const INSTRUCTIONS: [&str; 9] =
    ["FROM", "PARAMETER", "TEMPLATE", "SYSTEM", "ADAPTER", "LICENSE", "MESSAGE", "REQUIRES", "CAPABILITY"];

/// Instructions that only the file of a container image has.
const OF_IMAGES: [&str; 8] = ["RUN", "CMD", "ENTRYPOINT", "COPY", "ENV", "WORKDIR", "EXPOSE", "ARG"];

/// Parameters of a Modelfile that are options of the server.
const PARAMETERS: [(&str, &str); 4] =
    [("num_ctx", "-c"), ("num_gpu", "-ngl"), ("num_batch", "-b"), ("num_thread", "-t")];

fn instruction(line: &str) -> Option<(String, &str)> {
    let (name, rest) = line.trim().split_once(char::is_whitespace)?;
    Some((name.to_uppercase(), rest.trim()))
}

/// Whether the text is a Modelfile of Ollama: its first instruction is one of its own, and it has `FROM`.
pub(super) fn is_modelfile(text: &str) -> bool {
    let lines = || text.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    let first = lines().next().and_then(instruction);
    let known = first.is_some_and(|(name, _)| INSTRUCTIONS.contains(&name.as_str()));
    let has = |names: &[&str]| {
        // In capitals: a text of a prompt may begin with any word.
        lines().any(|line| line.split_whitespace().next().is_some_and(|word| names.contains(&word)))
    };
    known && lines().filter_map(instruction).any(|(name, _)| name == "FROM") && !has(&OF_IMAGES)
}

/// The server of a Modelfile: Ollama serves with the kernels of llama.cpp.
pub(super) fn modelfile(text: &str) -> Process {
    let mut words = vec!["llama-server".to_owned()];
    let mut place = "Modelfile".to_owned();
    for (name, rest) in text.lines().filter_map(instruction) {
        match name.as_str() {
            "FROM" => {
                let hub = ["hf.co/", "huggingface.co/"].into_iter().find_map(|host| rest.strip_prefix(host));
                let (flag, model) = hub.map_or(("-m", rest), |name| ("-hf", name));
                place = format!("Modelfile of {rest}");
                words.extend([flag.to_owned(), model.to_owned()]);
            }
            "PARAMETER" => {
                let (key, value) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                if let Some((_, flag)) = PARAMETERS.iter().find(|(known, _)| *known == key) {
                    words.extend([(*flag).to_owned(), value.trim().to_owned()]);
                }
            }
            _ => {}
        }
    }
    let note = "Ollama serves it: read as llama-server".to_owned();
    Process { place, words, notes: vec![note], ..Process::default() }
}
