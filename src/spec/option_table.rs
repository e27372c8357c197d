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
    /// Spellings that the parser reads as those of an option.
    #[serde(default)]
    pub spelling: Vec<Spelling>,
    /// The options.
    pub options: Vec<OptionRow>,
    /// Keys of its own YAML file.
    #[serde(default)]
    pub yaml: Vec<YamlRow>,
}

/// A spelling that a parser reads as that of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Spelling {
    /// `--abc` is `--abcdef` where no other option begins so.
    Prefix,
    /// `--a_b` is `--a-b`.
    Underscore,
    /// `--abc=VALUE` is `--abc VALUE`.
    Equals,
    /// `--a.key VALUE` is `--a '{"key": VALUE}'`.
    Dotted,
    /// Of an option that is given twice only the last value is read, as click does.
    Last,
}

/// The option that a flag spells.
#[derive(Clone, Debug, PartialEq)]
pub enum SpelledOption<'a> {
    /// An option, and whether the flag turns a switch off.
    Option(&'a OptionRow, bool),
    /// A key of an option with a JSON object, as a dotted path.
    Key(&'a OptionRow, String),
    /// The beginning of several options.
    Ambiguous(Vec<&'a str>),
    /// No option.
    Unknown,
}

/// One key of a YAML file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct YamlRow {
    /// Dotted path.
    pub key: String,
    /// Other names of the key.
    #[serde(default)]
    pub also: Vec<String>,
    /// Whether it is accepted with a warning.
    #[serde(default)]
    pub deprecated: bool,
    /// Its value.
    #[serde(flatten)]
    pub value: OptionValue,
}

/// One option.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OptionRow {
    /// Its spellings, the canonical one first.
    pub flags: Vec<String>,
    /// Spellings that turn a switch off.
    #[serde(default)]
    pub off: Vec<String>,
    /// Environment variable with the same effect.
    pub env: Option<String>,
    /// Whether it may occur several times.
    #[serde(default)]
    pub repeats: bool,
    /// Whether the parser refuses a command without it.
    #[serde(default)]
    pub required: bool,
    /// Whether it is accepted with a warning.
    #[serde(default)]
    pub deprecated: bool,
    /// Whether it is known and refused.
    #[serde(default)]
    pub removed: bool,
    /// Its value.
    #[serde(flatten)]
    pub value: OptionValue,
}

/// The value of an option or key.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct OptionValue {
    /// Its type.
    pub kind: OptionKind,
    /// Type of each element of a list.
    pub of: Option<String>,
    /// Number of values: a count, `?` or `*`; one if absent.
    pub count: Option<Value>,
    /// Whether suffixes such as `8k` are accepted.
    #[serde(default)]
    pub suffix: bool,
    /// Whether a JSON object is accepted, too.
    #[serde(default)]
    pub json: bool,
    /// The least number.
    pub min: Option<f64>,
    /// Every number is above this one.
    pub above: Option<f64>,
    /// The largest number.
    pub max: Option<f64>,
    /// Every number is below this one.
    pub below: Option<f64>,
    /// Every value that the parser accepts.
    pub choices: Option<Vec<Value>>,
    /// Values that the runtime knows; the parser accepts others.
    pub known: Option<Vec<Value>>,
    /// Keys of a JSON value.
    #[serde(default)]
    pub keys: Vec<String>,
    /// Value without the option; absent where extraction does not see it.
    pub default: Option<Value>,
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
    /// True or false, in YAML.
    Bool,
}

/// An option that argparse adds to every parser, and that serves nothing.
const HELP: &str = "--help";

impl OptionTable {
    /// The option that `flag` spells in full, and whether it turns a switch off.
    pub fn find(&self, flag: &str) -> Option<(&OptionRow, bool)> {
        let underscore = self.spelling.contains(&Spelling::Underscore);
        let dashed = flag
            .strip_prefix("--")
            .filter(|_| underscore)
            .map(|name| format!("--{}", name.replace('_', "-")));
        let is = |known: &String| known == flag || Some(known) == dashed.as_ref();
        let spelled = |row: &&OptionRow| row.flags.iter().any(is);
        if let Some(row) = self.options.iter().find(spelled) {
            return Some((row, false));
        }
        self.options.iter().find(|row| row.off.iter().any(is)).map(|row| (row, true))
    }

    /// The option that the parser takes a word for, and the value inside the word.
    pub fn spelled<'a>(&'a self, word: &'a str) -> (SpelledOption<'a>, Option<&'a str>) {
        if let Some((row, off)) = self.find(word) {
            return (SpelledOption::Option(row, off), None);
        }
        let (flag, value) = match word.split_once('=').filter(|_| self.spelling.contains(&Spelling::Equals)) {
            Some((flag, value)) => (flag, Some(value)),
            None => (word, None),
        };
        if let Some((row, off)) = self.find(flag) {
            return (SpelledOption::Option(row, off), value);
        }
        let dotted = flag.split_once('.').filter(|_| self.spelling.contains(&Spelling::Dotted));
        if let Some((outer, path)) = dotted
            && let Some((row, false)) = self.find(outer)
            && row.value.takes_object()
        {
            return (SpelledOption::Key(row, path.to_owned()), value);
        }
        if !self.spelling.contains(&Spelling::Prefix) {
            return (SpelledOption::Unknown, value);
        }
        self.begun(flag, value, word)
    }

    /// The option that begins with `flag`, or whose one letter begins the word, as Python's argparse reads them.
    fn begun<'a>(
        &'a self,
        flag: &'a str,
        value: Option<&'a str>,
        word: &'a str,
    ) -> (SpelledOption<'a>, Option<&'a str>) {
        let long = flag.starts_with("--");
        if !long && let Some((row, false)) = word.get(..2).and_then(|letter| self.find(letter)) {
            return (SpelledOption::Option(row, false), word.get(2..));
        }
        let dashed = match self.spelling.contains(&Spelling::Underscore) && long {
            true => flag.replace('_', "-"),
            false => flag.to_owned(),
        };
        let least = if long { 3 } else { 2 };
        let flags = self.flags().chain([HELP]);
        let begins: Vec<&str> =
            flags.filter(|known| dashed.len() >= least && known.starts_with(&dashed)).collect();
        let spelled = match begins[..] {
            [] => SpelledOption::Unknown,
            [only] => {
                self.find(only).map_or(SpelledOption::Unknown, |(row, off)| SpelledOption::Option(row, off))
            }
            _ => SpelledOption::Ambiguous(begins),
        };
        (spelled, value)
    }

    /// Every spelling of every option.
    pub fn flags(&self) -> impl Iterator<Item = &str> {
        self.options.iter().flat_map(|row| row.flags.iter().chain(&row.off)).map(String::as_str)
    }
}

impl OptionValue {
    /// Whether the value may be a JSON object.
    pub fn takes_object(&self) -> bool {
        self.kind == OptionKind::Json || self.json
    }

    /// The expected value instead of `value`, if its type, limits or choices do not allow it.
    pub fn fault(&self, value: &str) -> Option<String> {
        if self.known.iter().flatten().any(|one| text(one) == value) {
            return None;
        }
        if let Some(choices) = &self.choices {
            let choices: Vec<String> = choices.iter().map(text).collect();
            let known = choices.iter().any(|choice| choice == value);
            return (!known).then(|| format!("one of {}", choices.join(", ")));
        }
        let number = match self.kind {
            OptionKind::Int => whole(value, self.suffix),
            OptionKind::Float => value.parse::<f64>().ok(),
            OptionKind::Json => {
                let valid = serde_json::from_str::<Value>(value).is_ok();
                return (!valid).then(|| "JSON".to_owned());
            }
            OptionKind::Bool => {
                let valid = ["true", "false"].contains(&value);
                return (!valid).then(|| "true or false".to_owned());
            }
            OptionKind::Str | OptionKind::List | OptionKind::Switch => return None,
        };
        let Some(number) = number else {
            let noun = if self.kind == OptionKind::Int { "a whole number" } else { "a number" };
            return Some(noun.to_owned());
        };
        let limits = [
            (self.min, number >= self.min.unwrap_or(number), "at least"),
            (self.above, self.above.is_none_or(|limit| number > limit), "above"),
            (self.max, number <= self.max.unwrap_or(number), "at most"),
            (self.below, self.below.is_none_or(|limit| number < limit), "below"),
        ];
        let missed = limits.into_iter().find(|(limit, holds, _)| limit.is_some() && !holds);
        missed.and_then(|(limit, _, words)| limit.map(|limit| format!("{words} {limit}")))
    }
}

/// A whole number, in the suffixes that runtimes accept: `8k` is 8,000, `8K` is 8,192.
pub fn whole(value: &str, suffix: bool) -> Option<f64> {
    let scale = match value.chars().last().filter(|_| suffix) {
        Some('k') => 1e3,
        Some('m') => 1e6,
        Some('g') => 1e9,
        Some('K') => 1024.0,
        Some('M') => 1024.0 * 1024.0,
        Some('G') => 1024.0 * 1024.0 * 1024.0,
        _ => return value.parse::<i64>().ok().map(|whole| whole as f64),
    };
    let number: f64 = value[..value.len() - 1].parse().ok()?;
    let scaled = number * scale;
    (scaled.fract() == 0.0 && scaled.abs() <= 2f64.powi(53)).then_some(scaled)
}

/// A JSON value as the word of a command.
pub fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
