//! Docker compose files: interpolation of variables in every text, and services.

use std::collections::BTreeMap;

use serde_json::Value;

use super::container::{Container, Scope, environment, list};
use super::{ManifestReader, plain, whole};
use crate::launch::settings_file::{NamedFiles, file_name};

/// Defaults in defaults: deeper ones stay as they are.
const DEEPEST: usize = 8;

impl ManifestReader {
    /// Reads the services of a compose file; the files that their scripts write.
    pub(super) fn compose(&mut self, document: &Value) -> NamedFiles {
        let mut variables = self.files.get(".env").map(|text| variables_of(text)).unwrap_or_default();
        variables.extend(self.variables.clone());
        let document = interpolated(document, &variables);
        let mut written = NamedFiles::new();
        let Some(Value::Object(services)) = document.get("services") else { return written };
        for (name, service) in services {
            let replicas = whole(service.pointer("/deploy/replicas")).or(whole(service.get("scale")));
            let scope = Scope { place: format!("service {name}"), replicas, ..Scope::default() };
            let one = self.service(service, &variables);
            written.extend(self.container(one, &scope));
        }
        written
    }

    fn service(&self, service: &Value, variables: &BTreeMap<String, String>) -> Container {
        let named = match service.get("env_file") {
            Some(Value::Array(items)) => {
                items.iter().map(|one| plain(one.get("path").unwrap_or(one))).collect()
            }
            Some(Value::String(path)) => vec![path.clone()],
            _ => vec![],
        };
        let mut all: Vec<(String, String)> = named
            .iter()
            .filter_map(|path| self.files.get(file_name(path)))
            .flat_map(|text| variables_of(text))
            .collect();
        all.extend(environment(service.get("environment")));
        // A name without a value has that of the caller.
        let passed = service.get("environment").and_then(Value::as_array).into_iter().flatten();
        let passed = passed.filter_map(Value::as_str).filter_map(|name| variables.get_key_value(name));
        all.extend(passed.map(|(name, value)| (name.clone(), value.clone())));
        Container {
            image: service.get("image").and_then(Value::as_str).map(str::to_owned),
            program: list(service.get("entrypoint")),
            arguments: list(service.get("command")),
            environment: all,
            devices: reserved(service),
            notes: vec![],
        }
    }
}

/// Devices that a service reserves.
fn reserved(service: &Value) -> Option<u64> {
    let devices = service.pointer("/deploy/resources/reservations/devices").or(service.get("gpus"));
    let first = devices.and_then(|devices| devices.get(0))?;
    let ids = first.get("device_ids").and_then(Value::as_array).map(|ids| ids.len() as u64);
    ids.or_else(|| whole(first.get("count")))
}

/// The lines of a file of variables.
fn variables_of(text: &str) -> BTreeMap<String, String> {
    let line = |line: &str| {
        let line = line.trim().strip_prefix("export ").unwrap_or(line.trim());
        let (name, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
        let value = value.trim();
        let quoted = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
        let value = quoted.unwrap_or_else(|| value.split(" #").next().unwrap_or(value).trim_end());
        Some((name.trim().to_owned(), value.to_owned()))
    };
    text.lines().filter_map(line).collect()
}

/// A value with the variables in its texts replaced.
fn interpolated(value: &Value, variables: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => Value::String(interpolate(text, variables, 0)),
        Value::Array(items) => items.iter().map(|item| interpolated(item, variables)).collect(),
        Value::Object(object) => {
            let pairs = object.iter().map(|(key, value)| (key.clone(), interpolated(value, variables)));
            Value::Object(pairs.collect())
        }
        other => other.clone(),
    }
}

/// A text with `$X`, `${X}`, `${X:-d}`, `${X-d}`, `${X:+y}`, `${X:?m}` and `$$` replaced. A variable that nothing sets
/// stays as `$X`, for people.
pub(super) fn interpolate(text: &str, variables: &BTreeMap<String, String>, depth: usize) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(escaped) = after.strip_prefix('$') {
            out.push('$');
            rest = escaped;
            continue;
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if let Some((inner, end)) = after.strip_prefix('{').and_then(braced).filter(|_| depth < DEEPEST) {
            out.push_str(&value_of(inner, variables, depth));
            rest = &after[end + 1..];
            continue;
        }
        let end = after.find(|c| !is_name(c)).unwrap_or(after.len());
        let (name, behind) = after.split_at(end);
        match variables.get(name) {
            Some(value) => out.push_str(value),
            None => out.extend(["$", name]),
        }
        rest = behind;
    }
    out + rest
}

/// The text up to the bracket that closes, and the place after it.
fn braced(text: &str) -> Option<(&str, usize)> {
    let mut depth = 0_usize;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '{' if before == '$' => depth += 1,
            '}' if depth == 0 => return Some((&text[..at], at + 1)),
            '}' => depth -= 1,
            _ => {}
        }
        before = c;
    }
    None
}

/// The value of what is in the brackets.
fn value_of(inner: &str, variables: &BTreeMap<String, String>, depth: usize) -> String {
    let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
    let (name, rest) = inner.split_at(end);
    let (colon, operator) = rest.strip_prefix(':').map_or((false, rest), |rest| (true, rest));
    let value = variables.get(name).filter(|value| !colon || !value.is_empty());
    let word = || interpolate(operator.get(1..).unwrap_or_default(), variables, depth + 1);
    match (value, operator.chars().next()) {
        (Some(_), Some('+')) => word(),
        (Some(value), _) => value.clone(),
        (None, Some('-')) => word(),
        (None, Some('+')) => String::new(),
        (None, _) if name.is_empty() => format!("${{{inner}}}"),
        (None, _) => format!("${name}"),
    }
}
