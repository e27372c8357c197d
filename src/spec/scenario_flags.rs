//! A scenario as flags of the command line.

use super::scenario::Scenario;
use super::text::shell_word;

impl Scenario {
    /// The flags of the command line that pose this problem, without its deployment.
    pub fn flags(&self) -> String {
        let bare = Scenario { deployment: None, ..self.clone() };
        let Ok(serde_json::Value::Object(keys)) = serde_json::to_value(bare) else { return String::new() };
        let spell = |value: &serde_json::Value| match value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let flags = keys.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| {
            let text = match value {
                serde_json::Value::Array(values) => values.iter().map(spell).collect::<Vec<_>>().join(","),
                value => spell(value),
            };
            format!("--{} {}", key.replace('_', "-"), shell_word(&text))
        });
        flags.collect::<Vec<_>>().join(" ")
    }
}
