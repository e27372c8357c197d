//! Integers of the structure: heads, layers, widths. They remember the key they came from.

use std::fmt;

/// Where an integer came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A key of the model's `config.json`.
    Config(&'static str),
    /// The default of the model class, for a key that the file leaves out.
    ClassDefault(&'static str),
    /// Worked out from other keys; the text says how, e.g. `hidden_size / num_attention_heads`.
    Derived(&'static str),
    /// What one device holds of `whole` when `parts` devices share it.
    Split {
        /// The undivided number.
        whole: u64,
        /// How many devices share it.
        parts: u64,
        /// The key of the undivided number.
        key: &'static str,
    },
    /// Chosen by the plan under study.
    Plan(&'static str),
    /// Stated by the user's workload.
    Workload(&'static str),
}

/// How much of an integer the file itself says.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Tag {
    /// A key of `config.json`.
    Config,
    /// Left out by the file; the model class sets it.
    ClassDefault,
    /// Worked out from others, or fixed by the architecture.
    Derived,
    /// Stated by the user in place of what the file says.
    Override,
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tag::Config => "config",
            Tag::ClassDefault => "class default",
            Tag::Derived => "derived",
            Tag::Override => "override",
        })
    }
}

impl Origin {
    /// In one word.
    pub fn tag(&self) -> Tag {
        match self {
            Origin::Config(_) => Tag::Config,
            Origin::ClassDefault(_) => Tag::ClassDefault,
            Origin::Derived(_) | Origin::Split { .. } | Origin::Plan(_) | Origin::Workload(_) => Tag::Derived,
        }
    }

    /// What the tag leaves open: how a derived number came about, or which key said it.
    pub fn how(&self) -> &'static str {
        match self {
            Origin::Config(text)
            | Origin::ClassDefault(text)
            | Origin::Derived(text)
            | Origin::Split { key: text, .. }
            | Origin::Plan(text)
            | Origin::Workload(text) => text,
        }
    }
}

/// A whole number of the structure, named in the field's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Count {
    /// The number.
    pub value: u64,
    /// Its name in formulas, e.g. `hidden_size`.
    pub symbol: &'static str,
    /// Where it came from.
    pub origin: Origin,
}

impl Count {
    /// A number read from `key` of `config.json`; the key is its name.
    pub const fn config(key: &'static str, value: u64) -> Count {
        Count { value, symbol: key, origin: Origin::Config(key) }
    }

    /// A number that the file leaves out and the model class sets.
    pub const fn class_default(key: &'static str, value: u64) -> Count {
        Count { value, symbol: key, origin: Origin::ClassDefault(key) }
    }

    /// A number worked out from others, as `how` says.
    pub const fn derived(symbol: &'static str, value: u64, how: &'static str) -> Count {
        Count { value, symbol, origin: Origin::Derived(how) }
    }

    /// A number that the plan sets.
    pub const fn plan(symbol: &'static str, value: u64) -> Count {
        Count { value, symbol, origin: Origin::Plan(symbol) }
    }

    /// What one of `parts` devices holds: rounded up, since a head or a row is split no further.
    pub const fn split(self, parts: u64) -> Count {
        if parts == 1 {
            return self;
        }
        let origin = Origin::Split { whole: self.value, parts, key: self.symbol };
        Count { value: self.value.div_ceil(parts), symbol: self.symbol, origin }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Config(key) => write!(f, "config.json: {key}"),
            Origin::ClassDefault(key) => write!(f, "class default of {key}"),
            Origin::Derived(how) => write!(f, "config.json: {how}"),
            Origin::Split { whole, parts, key } => write!(f, "{key} {whole} over {parts} devices"),
            Origin::Plan(what) => write!(f, "plan: {what}"),
            Origin::Workload(what) => write!(f, "workload: {what}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_rounds_up_and_remembers_the_whole() {
        let heads = Count::config("num_key_value_heads", 8);
        assert_eq!(heads.split(3).value, 3);
        assert_eq!(heads.split(16).value, 1);
        assert_eq!(heads.split(4).origin.to_string(), "num_key_value_heads 8 over 4 devices");
    }
}
