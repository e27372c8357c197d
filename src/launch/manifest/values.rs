//! Values of Helm charts: of the vLLM production stack, and of the model service of llm-d.

use serde_json::Value;

use super::container::{Container, Scope, environment, list, of_kubernetes};
use super::keys::{KeyOption, key, option, words_of};
use super::{ManifestReader, fault, plain, whole};
use crate::launch::settings_file::NamedFiles;
use crate::spec::error::Error;

/// Keys of `vllmConfig`, as `deployment-vllm-multi.yaml` and `ray-cluster.yaml` of the chart write them.
const VLLM_CONFIG: [KeyOption; 9] = [
    key("enableChunkedPrefill", "--enable-chunked-prefill"),
    key("maxModelLen", "--max-model-len"),
    key("dtype", "--dtype"),
    key("tensorParallelSize", "--tensor-parallel-size"),
    key("pipelineParallelSize", "--pipeline-parallel-size"),
    key("maxNumSeqs", "--max-num-seqs"),
    key("gpuMemoryUtilization", "--gpu-memory-utilization"),
    key("maxLoras", "--max-loras"),
    key("runner", "--runner"),
];

impl ManifestReader {
    /// Values of the vLLM production stack.
    pub(super) fn production_stack(&mut self, document: &Value) -> Result<NamedFiles, Error> {
        let path = "/servingEngineSpec/modelSpec";
        let specs = document.pointer(path).or(document.get("modelSpec"));
        let Some(Value::Array(specs)) = specs else {
            let fix = "state its models as a list, each with modelURL";
            return Err(fault("servingEngineSpec.modelSpec", "no list", "a list of models", fix));
        };
        let enabled = |spec: &&Value| spec.get("enabled") != Some(&Value::Bool(false));
        let specs: Vec<&Value> = specs.iter().filter(enabled).collect();
        let models: Vec<Option<&str>> =
            specs.iter().map(|spec| spec.get("modelURL").and_then(Value::as_str)).collect();
        let different = models.iter().any(|model| *model != models[0]);
        for (spec, model) in specs.iter().zip(&models).filter(|(_, model)| **model == models[0]) {
            let name = spec.get("name").map(plain).unwrap_or_default();
            let Some(model) = model else {
                let key = format!("servingEngineSpec.modelSpec, {name}: modelURL");
                return Err(fault(&key, "no model", "a model", "add modelURL, e.g. Qwen/Qwen3-8B"));
            };
            let place = format!("model {name}");
            let mut one = served(spec, model);
            if different {
                let others = models.iter().flatten().filter(|other| *other != model).count();
                one.notes.push(format!("of {} models {model} is read: {others} others are not", others + 1));
            }
            let ray = spec.pointer("/raySpec/enabled") == Some(&Value::Bool(true));
            let workers = whole(spec.get("replicaCount"));
            let role = spec.pointer("/lmcacheConfig/kvRole").and_then(Value::as_str);
            let scope = Scope {
                place,
                // With Ray they are hosts of one server, in addition to its head.
                replicas: if ray { None } else { workers },
                hosts: workers.filter(|_| ray).map(|workers| workers + 1),
                role: role.and_then(role_of).map(str::to_owned),
                ..Scope::default()
            };
            self.container(one, &scope);
        }
        Ok(NamedFiles::new())
    }

    /// Values of the model service of llm-d.
    pub(super) fn model_service(&mut self, document: &Value) -> Result<NamedFiles, Error> {
        let name = document.pointer("/modelArtifacts/name").map(plain).unwrap_or_default();
        let Some(uri) = document.pointer("/modelArtifacts/uri").and_then(Value::as_str) else {
            let fix = "add uri under modelArtifacts, e.g. hf://Qwen/Qwen3-8B";
            return Err(fault("modelArtifacts.uri", "no model", "the address of a model", fix));
        };
        let uri = rendered(uri, &name);
        let mount = document.pointer("/modelArtifacts/mountPath").map_or("/model-cache".to_owned(), plain);
        let model = model_of(&uri, &mount)?;
        let several = document.get("multinode") == Some(&Value::Bool(true));
        let mut written = NamedFiles::new();
        for role in ["prefill", "decode"] {
            let Some(pool) = document.get(role).filter(|pool| pool.is_object()) else { continue };
            if pool.get("create") == Some(&Value::Bool(false)) {
                continue;
            }
            let degrees = Parallelism::of(pool.get("parallelism"));
            let scope = Scope {
                place: role.to_owned(),
                replicas: Some(whole(pool.get("replicas")).unwrap_or(1)),
                hosts: several.then_some(degrees.workers),
                devices: Some(degrees.local * degrees.tensor),
                role: Some(role.to_owned()),
                environment: degrees.environment(),
            };
            let containers = pool.get("containers").and_then(Value::as_array);
            for one in containers.into_iter().flatten() {
                let mut container = of_kubernetes(one, &scope);
                container.arguments = container.arguments.iter().map(|word| rendered(word, &name)).collect();
                match one.get("modelCommand").and_then(Value::as_str) {
                    Some("vllmServe") => {
                        container.program = ["vllm", "serve"].map(str::to_owned).to_vec();
                        container.arguments = degrees.words(&model, false, &container.arguments);
                    }
                    Some("imageDefault") => {
                        container.program.clear();
                        container.arguments = degrees.words(&model, true, &container.arguments);
                    }
                    _ => {}
                }
                written.extend(self.container(container, &scope));
            }
        }
        Ok(written)
    }
}

/// The command of a model of the production stack.
fn served(spec: &Value, model: &str) -> Container {
    let mut arguments = vec![model.to_owned()];
    if spec.get("enableLoRA") == Some(&Value::Bool(true)) {
        arguments.push("--enable-lora".to_owned());
    }
    if let Some(config) = spec.get("vllmConfig").filter(|config| config.is_object()) {
        arguments.extend(words_of(config, &VLLM_CONFIG));
        // The chart turns it off where the key is absent.
        let cached = config.get("enablePrefixCaching") == Some(&Value::Bool(true));
        arguments.extend(option("--enable-prefix-caching", Some(&Value::Bool(cached))));
        arguments.extend(list(config.get("extraArgs")));
    }
    let connected = spec.pointer("/lmcacheConfig/enabled") == Some(&Value::Bool(true));
    if connected {
        let role = spec.pointer("/lmcacheConfig/kvRole").map_or("kv_both".to_owned(), plain);
        let connector = serde_json::json!({"kv_connector": "LMCacheConnectorV1", "kv_role": role});
        arguments.extend(["--kv-transfer-config".to_owned(), connector.to_string()]);
    }
    let image = spec.get("repository").map(|repository| match spec.get("tag") {
        Some(tag) => format!("{}:{}", plain(repository), plain(tag)),
        None => plain(repository),
    });
    Container {
        image,
        program: ["vllm", "serve"].map(str::to_owned).to_vec(),
        arguments,
        environment: environment(spec.get("env")),
        devices: whole(spec.get("requestGPU")),
        notes: vec![],
    }
}

fn role_of(role: &str) -> Option<&'static str> {
    match role {
        "kv_producer" => Some("prefill"),
        "kv_consumer" => Some("decode"),
        _ => None,
    }
}

/// A text of the values in which the chart puts the name of the model.
fn rendered(text: &str, name: &str) -> String {
    let mut out = text.to_owned();
    for spaced in ["{{ .Values.modelArtifacts.name }}", "{{.Values.modelArtifacts.name}}"] {
        out = out.replace(&format!("\"{spaced}\""), name).replace(spaced, name);
    }
    out
}

/// The model of an address, as the chart's `argsByProtocol` gives it to the server.
fn model_of(uri: &str, mount: &str) -> Result<String, Error> {
    let (protocol, rest) = uri.split_once("://").unwrap_or(("", uri));
    let parts: Vec<&str> = rest.split('/').collect();
    match (protocol, &parts[..]) {
        ("hf", _) => Ok(rest.to_owned()),
        ("pvc+hf", [.., owner, name]) => Ok(format!("{owner}/{name}")),
        ("pvc", [_, path @ ..]) if !path.is_empty() => Ok(format!("{mount}/{}", path.join("/"))),
        _ => {
            let fix = "write e.g. hf://Qwen/Qwen3-8B";
            Err(fault("modelArtifacts.uri", uri, "an address with hf://, pvc:// or pvc+hf://", fix))
        }
    }
}

/// Degrees of a pool of llm-d, with the defaults of its chart.
struct Parallelism {
    tensor: u64,
    data: u64,
    /// Data-parallel ranks of a worker.
    local: u64,
    workers: u64,
}

impl Parallelism {
    fn of(value: Option<&Value>) -> Parallelism {
        let count = |name: &str| value.and_then(|value| whole(value.get(name))).filter(|count| *count > 0);
        let (data, local, workers) = (count("data"), count("dataLocal"), count("workers"));
        Parallelism {
            tensor: count("tensor").unwrap_or(1),
            data: data.or(local.map(|local| local * workers.unwrap_or(1))).unwrap_or(1),
            local: local.or(data.map(|data| data / workers.unwrap_or(1))).unwrap_or(1).max(1),
            workers: workers.or(data.zip(local).map(|(data, local)| data / local)).unwrap_or(1).max(1),
        }
    }

    fn environment(&self) -> Vec<(String, String)> {
        let all = [("DP_SIZE", self.data), ("TP_SIZE", self.tensor), ("DP_SIZE_LOCAL", self.local)];
        all.map(|(name, value)| (name.to_owned(), value.to_string())).to_vec()
    }

    /// The arguments of vLLM before those of the container.
    fn words(&self, model: &str, flag: bool, own: &[String]) -> Vec<String> {
        let mut words: Vec<String> = flag.then(|| "--model".to_owned()).into_iter().collect();
        words.push(model.to_owned());
        let degrees = [
            ("--tensor-parallel-size", self.tensor),
            ("--data-parallel-size", self.data),
            ("--data-parallel-size-local", self.local),
        ];
        for (flag, degree) in degrees.into_iter().filter(|(_, degree)| *degree > 1) {
            words.extend([flag.to_owned(), degree.to_string()]);
        }
        words.extend(own.iter().cloned());
        words
    }
}
