//! A scenario as flags of the command line.

use serde_json::Value;

use super::placing::PlacementScenario;
use super::scenario::Scenario;
use super::writer::shell_word;

/// A value as a word of a command line.
fn spell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn flag(key: &str, text: &str) -> String {
    format!("--{} {}", key.replace('_', "-"), shell_word(text))
}

impl PlacementScenario {
    /// The command that poses this problem, without the program.
    pub fn flags(&self) -> String {
        let Ok(Value::Object(keys)) = serde_json::to_value(self) else { return String::new() };
        let flags = keys.iter().flat_map(|(key, value)| match value {
            Value::Array(values) => values.iter().map(|one| flag(key, &spell(one))).collect(),
            value => vec![flag(key, &spell(value))],
        });
        ["place".to_owned()].into_iter().chain(flags).collect::<Vec<_>>().join(" ")
    }
}

impl Scenario {
    /// The flags of the command line that pose this problem, without its deployment.
    pub fn flags(&self) -> String {
        let bare = Scenario { deployment: None, ..self.clone() };
        let Ok(Value::Object(keys)) = serde_json::to_value(bare) else { return String::new() };
        let flags = keys.iter().filter(|(_, value)| !value.is_null()).flat_map(|(key, value)| {
            let texts = match value {
                // Values may have commas.
                Value::Array(values) if key == "set" => values.iter().map(spell).collect(),
                Value::Array(values) => vec![values.iter().map(spell).collect::<Vec<_>>().join(",")],
                value => vec![spell(value)],
            };
            texts.into_iter().map(move |text| flag(key, &text))
        });
        flags.collect::<Vec<_>>().join(" ")
    }
}
