//! Objects of Kubernetes, and the graphs of Dynamo among them.

use serde_json::Value;

use super::container::{Scope, devices, environment, of_kubernetes};
use super::{ManifestReader, whole};
use crate::launch::settings_file::NamedFiles;
use crate::launch::shell::Process;

/// Keys under which an object has containers.
const CONTAINERS: [&str; 2] = ["containers", "mainContainer"];

/// Label of llm-d with the role of a pod.
const ROLE_LABEL: &str = "llm-d.ai/role";

impl ManifestReader {
    /// Reads the containers of an object; the files that their scripts write.
    pub(super) fn kubernetes(&mut self, document: &Value) -> NamedFiles {
        let kind = document.get("kind").and_then(Value::as_str).unwrap_or("service");
        let name = document.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let scope = Scope {
            place: format!("{kind} {name}").trim().to_owned(),
            environment: environment(document.pointer("/spec/envs").or(document.pointer("/spec/env"))),
            ..Scope::default()
        };
        let (mut written, from) = (NamedFiles::new(), self.found.len());
        self.objects(document, &scope, &mut written);
        if kind == "StatefulSet" {
            self.found[from..].iter_mut().for_each(hosts_of_set);
        }
        written
    }

    /// Finds containers, and the counts of the objects around them.
    pub(super) fn objects(&mut self, value: &Value, scope: &Scope, written: &mut NamedFiles) {
        let Value::Object(object) = value else {
            if let Value::Array(items) = value {
                items.iter().for_each(|item| self.objects(item, scope, written));
            }
            return;
        };
        let scope = within(value, scope);
        for key in CONTAINERS {
            let containers = match object.get(key) {
                Some(Value::Array(items)) => items.iter().collect(),
                Some(one) => vec![one],
                None => vec![],
            };
            for one in containers.into_iter().filter(|one| one.is_object()) {
                let name = one.get("name").and_then(Value::as_str);
                let place = name.map_or(scope.place.clone(), |name| format!("{}, {name}", scope.place));
                written.extend(self.container(of_kubernetes(one, &scope), &Scope { place, ..scope.clone() }));
            }
        }
        if let Some(Value::Object(services)) = object.get("services") {
            for (name, service) in services {
                let named =
                    Scope { place: format!("service {name}"), role: role_of_name(name), ..scope.clone() };
                self.objects(service, &named, written);
            }
        }
        let inner = object.iter().filter(|(key, _)| {
            // Followers repeat the command of their leader.
            let repeated = *key == "workerTemplate" && object.contains_key("leaderTemplate");
            !repeated && *key != "services" && *key != "initContainers" && !CONTAINERS.contains(&key.as_str())
        });
        inner.for_each(|(_, value)| self.objects(value, &scope, written));
    }
}

/// Pods of a set whose rank is that of a host are the hosts of one server: the words state how many.
fn hosts_of_set(process: &mut Process) {
    let value = |flag: &str| {
        let at = process.words.iter().position(|word| word.split('=').next() == Some(flag))?;
        let inline = process.words[at].split_once('=').map(|(_, value)| value.to_owned());
        inline.or_else(|| process.words.get(at + 1).cloned())
    };
    let hosts: Option<u64> = value("--nnodes").and_then(|hosts| hosts.parse().ok());
    let ranked = value("--node-rank").is_some_and(|rank| rank.contains('$'));
    let (Some(hosts @ 2..), Some(pods)) = (hosts.filter(|_| ranked), process.replicas) else { return };
    if pods % hosts == 0 {
        process.hosts = Some(hosts);
        process.replicas = Some(pods / hosts);
    }
}

/// The scope of what is in an object.
fn within(value: &Value, scope: &Scope) -> Scope {
    let text = |path: &str| value.pointer(path).and_then(Value::as_str);
    let name = text("/name");
    let role = ["/subComponentType", "/type"].iter().filter_map(|path| text(path)).find(|role| is_role(role));
    let label = ["/metadata/labels", "/labels", "/spec/template/metadata/labels"]
        .iter()
        .filter_map(|path| value.pointer(path)?.get(ROLE_LABEL)?.as_str())
        .find(|role| is_role(role));
    // A component of Dynamo says more by its name than a container does.
    let component = value.get("podTemplate").is_some();
    let named = name.filter(|_| component).and_then(role_of_name);
    let group = whole(value.pointer("/leaderWorkerTemplate/size")).map(group_variables);
    let variables = environment(value.get("envs")).into_iter().chain(group.into_iter().flatten());
    Scope {
        place: name.map_or(scope.place.clone(), |name| format!("{}, {name}", scope.place)),
        replicas: whole(value.get("replicas")).or(scope.replicas),
        hosts: whole(value.pointer("/multinode/nodeCount")).or(whole(value.get("size"))).or(scope.hosts),
        devices: devices(value).or(scope.devices),
        role: role.or(label).map(str::to_owned).or(named).or(scope.role.clone()),
        environment: scope.environment.iter().cloned().chain(variables).collect(),
    }
}

/// Variables that a LeaderWorkerSet gives its pods, of which the first is read.
fn group_variables(size: u64) -> [(String, String); 2] {
    [("LWS_GROUP_SIZE", size), ("LWS_WORKER_INDEX", 0)]
        .map(|(name, value)| (name.to_owned(), value.to_string()))
}

fn is_role(role: &str) -> bool {
    ["prefill", "decode"].contains(&role)
}

/// The role in the name of a service, e.g. `VllmPrefillWorker`.
fn role_of_name(name: &str) -> Option<String> {
    let name = name.to_lowercase();
    ["prefill", "decode"].into_iter().find(|role| name.contains(role)).map(str::to_owned)
}
