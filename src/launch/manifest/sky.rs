//! Tasks of SkyPilot: resources, variables and a script
//! (<https://docs.skypilot.co/en/latest/running-jobs/environment-variables.html>).

use serde_json::Value;

use super::container::{Container, Scope, environment};
use super::{ManifestReader, plain, whole};
use crate::launch::settings_file::NamedFiles;

impl ManifestReader {
    /// Reads the script of a task, with the variables that SkyPilot sets on the first node.
    pub(super) fn sky_task(&mut self, document: &Value) -> NamedFiles {
        let Some(run) = document.get("run").and_then(Value::as_str) else { return NamedFiles::new() };
        let devices = accelerators(document);
        let nodes = whole(document.get("num_nodes")).unwrap_or(1);
        let mut variables = environment(document.get("envs"));
        variables.extend(self.variables.iter().map(|(name, value)| (name.clone(), value.clone())));
        let set = [
            ("SKYPILOT_NUM_GPUS_PER_NODE", devices),
            ("SKYPILOT_NUM_NODES", Some(nodes)),
            ("SKYPILOT_NODE_RANK", Some(0)),
        ];
        variables
            .extend(set.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_string()))));
        let container = Container {
            program: ["bash", "-c", run].map(str::to_owned).to_vec(),
            environment: variables,
            devices,
            ..Container::default()
        };
        let service = ["/service/replicas", "/service/replica_policy/min_replicas"];
        let replicas =
            service.iter().find_map(|path| whole(document.pointer(path))).filter(|count| *count > 0);
        let name = document.get("name").map(plain).unwrap_or_default();
        let scope = Scope {
            place: format!("task {name}").trim().to_owned(),
            replicas,
            hosts: Some(nodes).filter(|nodes| *nodes > 1),
            ..Scope::default()
        };
        self.container(container, &scope)
    }
}

/// Devices of a node: `H200:8`, `{H200: 8}`, or the first of several choices.
fn accelerators(document: &Value) -> Option<u64> {
    let resources = document.get("resources")?;
    let choices = ["any_of", "ordered"].iter().find_map(|key| resources.get(key)?.get(0));
    let stated = resources.get("accelerators").or_else(|| choices?.get("accelerators"))?;
    let first = match stated {
        Value::Array(all) => all.first()?,
        other => other,
    };
    match first {
        Value::Object(counts) => counts.values().next().and_then(|count| whole(Some(count))).or(Some(1)),
        Value::String(name) => name.rsplit_once(':').map_or(Some(1), |(_, count)| count.trim().parse().ok()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn accelerators_are_counted() {
        for (resources, count) in [
            (json!({"accelerators": "H200:8"}), Some(8)),
            (json!({"accelerators": "L4"}), Some(1)),
            (json!({"accelerators": {"A100-80GB": 4, "H100": 2}}), Some(4)),
            (json!({"accelerators": ["H100:2", "A100:4"]}), Some(2)),
            (json!({"any_of": [{"accelerators": "H100:8"}, {"accelerators": "A100:8"}]}), Some(8)),
            (json!({"cpus": 4}), None),
        ] {
            assert_eq!(accelerators(&json!({ "resources": resources })), count);
        }
    }
}
