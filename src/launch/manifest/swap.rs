//! Configurations of llama-swap: a command for each model, with macros.

use std::collections::BTreeMap;

use serde_json::Value;

use super::container::{Container, Scope, environment};
use super::{ManifestReader, fault, plain, whole};
use crate::launch::settings_file::NamedFiles;
use crate::spec::error::Error;

/// Macros in macros.
const DEEPEST: usize = 8;

/// First port of a server, where the file states none.
const FIRST_PORT: u64 = 5800;

impl ManifestReader {
    /// Reads the first model of a configuration.
    pub(super) fn llama_swap(&mut self, document: &Value) -> Result<NamedFiles, Error> {
        let Some(Value::Object(models)) = document.get("models") else { return Ok(NamedFiles::new()) };
        let commands: Vec<(&String, &Value, &str)> = models
            .iter()
            .filter_map(|(name, model)| Some((name, model, model.get("cmd")?.as_str()?)))
            .collect();
        let Some((name, model, command)) = commands.first() else {
            let fix = "add cmd to a model";
            return Err(fault("models", "no cmd", "the command of a model", fix));
        };
        let mut macros: BTreeMap<String, String> = BTreeMap::new();
        for all in [document.get("macros"), model.get("macros")] {
            let object = all.and_then(Value::as_object).into_iter().flatten();
            macros.extend(object.map(|(name, value)| (name.clone(), plain(value))));
        }
        let port = whole(document.get("startPort")).unwrap_or(FIRST_PORT);
        macros.insert("PORT".to_owned(), port.to_string());
        macros.insert("MODEL_ID".to_owned(), (*name).clone());
        macros.extend(self.variables.iter().map(|(name, value)| (format!("env.{name}"), value.clone())));
        let text = with_macros(command, &macros);
        // Lines of remarks are no part of the command.
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
        let Some(words) = shlex::split(&lines.join(" ").replace(" \\ ", " ")) else {
            let key = format!("models.{name}.cmd");
            return Err(fault(&key, "a quote without its end", "a command", "close the quote"));
        };
        let mut notes = Vec::new();
        if commands.len() > 1 {
            notes.push(format!("of {} models {name} is read: they run one at a time", commands.len()));
        }
        let container = Container {
            program: words,
            environment: environment(model.get("env")),
            notes,
            ..Container::default()
        };
        Ok(self.container(container, &Scope { place: format!("model {name}"), ..Scope::default() }))
    }
}

/// A text with `${NAME}` replaced, also in what macros give.
fn with_macros(text: &str, macros: &BTreeMap<String, String>) -> String {
    let mut text = text.to_owned();
    for _ in 0..DEEPEST {
        let mut replaced = text.clone();
        for (name, value) in macros {
            let name = format!("${{{name}}}");
            // A macro that contains itself grows without end.
            if replaced.len() < 100_000 && replaced.contains(&name) {
                replaced = replaced.replace(&name, value.trim_end());
            }
        }
        if replaced == text {
            break;
        }
        text = replaced;
    }
    text
}
