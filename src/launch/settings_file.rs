//! Settings files that a command names, such as `--config server.yaml`: keys that are options of the runtime, or of its
//! own YAML.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::spec::option_table::{OptionTable, YamlRow};

/// Files by name, without their folders.
pub type NamedFiles = BTreeMap<String, String>;

pub fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// The entries of a settings file as dotted paths; `None` if it is no YAML object. An object whose inner keys the
/// runtime does not list is one value.
pub fn entries(text: &str, table: &OptionTable) -> Option<Vec<(String, Value)>> {
    let Value::Object(object) = serde_saphyr::from_str(text).ok()? else { return None };
    let mut found = Vec::new();
    for (key, value) in object {
        flatten(key, value, table, &mut found);
    }
    Some(found)
}

fn flatten(path: String, value: Value, table: &OptionTable, found: &mut Vec<(String, Value)>) {
    let inside = format!("{path}.");
    match value {
        Value::Object(object) if table.yaml.iter().any(|row| row.key.starts_with(&inside)) => {
            object
                .into_iter()
                .for_each(|(key, value)| flatten(format!("{inside}{key}"), value, table, found));
        }
        value => found.push((path, value)),
    }
}

impl OptionTable {
    /// The row of a key of the runtime's own YAML file.
    pub fn find_key(&self, key: &str) -> Option<&YamlRow> {
        self.yaml.iter().find(|row| row.key == key || row.also.iter().any(|other| other == key))
    }
}
