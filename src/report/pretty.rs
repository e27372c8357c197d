//! Reports as JSON for people and programs.

use serde::Serialize;

use crate::spec::visible::visible_json;

/// Indented JSON with a line end.
pub fn pretty<T: Serialize>(value: &T) -> String {
    let text = serde_json::to_string_pretty(value).expect("reports have only text keys");
    format!("{}\n", visible_json(&text))
}
