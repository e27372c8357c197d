//! Objects of operators that start a server themselves: KubeAI's `Model` and Kaito's `Workspace`.

use serde_json::Value;

use super::container::{Container, Scope, environment, list};
use super::keys::{every_option, hub_name};
use super::{ManifestReader, fault, plain, whole};
use crate::launch::settings_file::NamedFiles;
use crate::spec::error::Error;

/// GPUs of the virtual machines that Kaito's files name, by the beginning of the size's name
/// (<https://learn.microsoft.com/en-us/azure/virtual-machines/sizes/overview>, GPU accelerated).
const AZURE_GPUS: [(&str, u64); 16] = [
    ("Standard_NC24ads_A100", 1),
    ("Standard_NC48ads_A100", 2),
    ("Standard_NC96ads_A100", 4),
    ("Standard_NC40ads_H100", 1),
    ("Standard_NC80adis_H100", 2),
    ("Standard_ND96", 8),
    ("Standard_NC4as_T4", 1),
    ("Standard_NC8as_T4", 1),
    ("Standard_NC16as_T4", 1),
    ("Standard_NC64as_T4", 4),
    ("Standard_NC6s_v3", 1),
    ("Standard_NC12s_v3", 2),
    ("Standard_NC24s_v3", 4),
    ("Standard_NV36ads_A10", 1),
    ("Standard_NV72ads_A10", 2),
    ("Standard_ND128", 4),
];

impl ManifestReader {
    /// A `Model` of KubeAI: the address of its weights, an engine and its arguments.
    pub(super) fn kubeai_model(&mut self, document: &Value) -> Result<NamedFiles, Error> {
        let text = |path: &str| document.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let (url, engine) = (text("/spec/url"), text("/spec/engine"));
        if engine != "VLLM" {
            let fix = "pass the command of the server";
            return Err(fault("spec.engine", format!("the engine {engine}"), "VLLM", fix));
        }
        let address = url.split_once('?').map_or(url, |(address, _)| address);
        // `nvidia-gpu-h100:2`: two of that profile's device.
        let devices =
            text("/spec/resourceProfile").rsplit_once(':').and_then(|(_, count)| count.parse().ok());
        let replicas = whole(document.pointer("/spec/minReplicas")).filter(|count| *count > 0);
        let container = Container {
            program: ["vllm", "serve", &hub_name(address)].map(str::to_owned).to_vec(),
            arguments: list(document.pointer("/spec/args")),
            environment: environment(document.pointer("/spec/env")),
            devices,
            ..Container::default()
        };
        let place = format!("Model {}", text("/metadata/name"));
        Ok(self.container(container, &Scope { place, replicas, ..Scope::default() }))
    }

    /// A `Workspace` of Kaito with a preset: the controller sets the ranks of a node and the stages over nodes
    /// (<https://kaito-project.github.io/kaito/docs/inference>), a config map the rest.
    pub(super) fn kaito_workspace(&mut self, document: &Value) -> Result<NamedFiles, Error> {
        let text = |path: &str| document.pointer(path).and_then(Value::as_str);
        let Some(preset) = text("/inference/preset/name") else { return Ok(self.kubernetes(document)) };
        // Keys of the config map have the name of a file.
        let config = self.files.get("inference_config.yaml").filter(|_| text("/inference/config").is_some());
        let config: Option<Value> = config.and_then(|text| serde_saphyr::from_str(text).ok());
        let stated = config.as_ref().and_then(|config| config.get("vllm")).and_then(Value::as_object);
        let nodes = whole(document.pointer("/resource/count")).unwrap_or(1);
        let size = text("/resource/instanceType").unwrap_or_default();
        let gpus = AZURE_GPUS.iter().find(|(begin, _)| size.starts_with(begin)).map(|(_, gpus)| *gpus);
        let mut arguments = Vec::new();
        for (flag, degree) in [("--tensor-parallel-size", gpus), ("--pipeline-parallel-size", Some(nodes))] {
            let degree = degree.filter(|degree| *degree > 1);
            arguments.extend(degree.into_iter().flat_map(|degree| [flag.to_owned(), degree.to_string()]));
        }
        arguments.extend(stated.map(|keys| every_option(keys, &[])).unwrap_or_default());
        let container = Container {
            program: ["vllm", "serve", preset].map(str::to_owned).to_vec(),
            arguments,
            devices: gpus,
            ..Container::default()
        };
        let name = document.pointer("/metadata/name").map(plain).unwrap_or_default();
        let hosts = Some(nodes).filter(|nodes| *nodes > 1);
        Ok(self
            .container(container, &Scope { place: format!("Workspace {name}"), hosts, ..Scope::default() }))
    }
}
