//! The command-line options of a runtime in one version, extracted from its own parser.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// The options of one program.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OptionTable {
    /// The runtime and its version: the file name without `.json`.
    pub id: String,
    /// Id of the runtime.
    pub runtime: String,
    /// Its version.
    pub version: String,
    /// Words of the program, e.g. `vllm serve`.
    pub program: Vec<String>,
    /// Source.
    pub source: String,
    /// Arguments without a flag, in order.
    #[serde(default)]
    pub positional: Vec<String>,
    /// Spellings that the parser reads as another, in words.
    #[serde(default)]
    pub spelling: Vec<String>,
    /// The options.
    pub options: Vec<OptionRow>,
}

/// One option.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OptionRow {
    /// Its spellings, the canonical one first.
    pub flags: Vec<String>,
    /// Spellings that turn a switch off.
    #[serde(default)]
    pub off: Vec<String>,
    /// Type of its value.
    pub kind: OptionKind,
    /// Type of each element of a list.
    pub of: Option<String>,
    /// Number of values: a count, `+` or `*`; one if absent.
    pub count: Option<Value>,
    /// Every value that the parser accepts.
    pub choices: Option<Vec<Value>>,
    /// Values that the runtime knows; the parser accepts others.
    pub known: Option<Vec<Value>>,
    /// Value without the option; absent where extraction does not see it.
    pub default: Option<Value>,
    /// Environment variable with the same effect.
    pub env: Option<String>,
    /// Whether suffixes such as `8k` are accepted.
    #[serde(default)]
    pub suffix: bool,
    /// Whether the parser refuses a command without it.
    #[serde(default)]
    pub required: bool,
    /// Whether it is on its way out.
    #[serde(default)]
    pub deprecated: bool,
    /// Whether it may occur several times.
    #[serde(default)]
    pub repeats: bool,
    /// Keys of a JSON value.
    #[serde(default)]
    pub keys: Vec<String>,
}

/// Type of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OptionKind {
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// Text.
    Str,
    /// JSON text.
    Json,
    /// Several values.
    List,
    /// No value.
    Switch,
}

impl OptionTable {
    /// The option that `flag` spells, and whether it turns a switch off.
    pub fn find(&self, flag: &str) -> Option<(&OptionRow, bool)> {
        let dashed = flag.strip_prefix("--").map(|name| format!("--{}", name.replace('_', "-")));
        let is = |known: &String| known == flag || Some(known) == dashed.as_ref();
        let spelled = |row: &&OptionRow| row.flags.iter().any(is);
        if let Some(row) = self.options.iter().find(spelled) {
            return Some((row, false));
        }
        self.options.iter().find(|row| row.off.iter().any(is)).map(|row| (row, true))
    }

    /// Every spelling of every option.
    pub fn flags(&self) -> impl Iterator<Item = &str> {
        self.options.iter().flat_map(|row| row.flags.iter().chain(&row.off)).map(String::as_str)
    }
}

impl OptionRow {
    /// The fault of `value`, if its type or choices do not allow it.
    pub fn fault(&self, value: &str) -> Option<String> {
        let known = self.known.iter().flatten().any(|one| text(one) == value);
        let number = match self.kind {
            OptionKind::Int => whole(value, self.suffix),
            OptionKind::Float => value.parse::<f64>().is_ok(),
            OptionKind::Json => serde_json::from_str::<Value>(value).is_ok(),
            OptionKind::Str | OptionKind::List | OptionKind::Switch => true,
        };
        if !number && !known {
            let expected = match self.kind {
                OptionKind::Int => "a whole number",
                OptionKind::Json => "JSON",
                _ => "a number",
            };
            return Some(expected.to_owned());
        }
        let choices = self.choices.as_ref()?;
        if choices.iter().any(|choice| text(choice) == value) {
            return None;
        }
        let choices: Vec<String> = choices.iter().map(text).collect();
        Some(format!("one of {}", choices.join(", ")))
    }
}

/// Whether `value` is a whole number, with a suffix where it may have one (`8k`, `1.5K`).
fn whole(value: &str, suffix: bool) -> bool {
    let digits = if suffix { value.trim_end_matches(['k', 'K', 'm', 'M', 'g', 'G']) } else { value };
    digits.parse::<i64>().is_ok() || (digits.len() < value.len() && digits.parse::<f64>().is_ok())
}

/// A JSON value as the word of a command.
pub fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
