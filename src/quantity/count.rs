//! Integers of the model structure: heads, layers, widths. Each keeps the configuration key that it came from.

use std::fmt;

/// Source of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A key of the model's `config.json`.
    Config(&'static str),
    /// The default of the model class, for a missing key.
    ClassDefault(&'static str),
    /// Derived from other keys; the text shows how, e.g. `hidden_size / num_attention_heads`.
    Derived(&'static str),
    /// One device's share of `whole` over `parts` devices.
    Split {
        /// The undivided number.
        whole: u64,
        /// How many devices share it.
        parts: u64,
        /// The key of the undivided number.
        key: &'static str,
    },
    /// Set by the plan.
    Plan(&'static str),
    /// Set by the user's workload.
    Workload(&'static str),
}

/// Category of an integer's source.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Tag {
    /// A key of `config.json`.
    Config,
    /// Missing in the file; set by the model class.
    ClassDefault,
    /// Derived from other keys, or fixed by the architecture.
    Derived,
    /// Set by the user instead of the file.
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
    /// As one word.
    pub fn tag(&self) -> Tag {
        match self {
            Origin::Config(_) => Tag::Config,
            Origin::ClassDefault(_) => Tag::ClassDefault,
            Origin::Derived(_) | Origin::Split { .. } | Origin::Plan(_) | Origin::Workload(_) => Tag::Derived,
        }
    }

    /// Detail beyond the category: the derivation of a derived number, or its key.
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

/// An integer of the model structure, with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Count {
    pub value: u64,
    /// Its name in formulas, e.g. `hidden_size`.
    pub symbol: &'static str,
    pub origin: Origin,
}

impl Count {
    /// A number read from `key` of `config.json`; the key is its name.
    pub const fn config(key: &'static str, value: u64) -> Count {
        Count { value, symbol: key, origin: Origin::Config(key) }
    }

    /// A number that the file omits and the model class sets.
    pub const fn class_default(key: &'static str, value: u64) -> Count {
        Count { value, symbol: key, origin: Origin::ClassDefault(key) }
    }

    /// A number derived from others, as `how` shows.
    pub const fn derived(symbol: &'static str, value: u64, how: &'static str) -> Count {
        Count { value, symbol, origin: Origin::Derived(how) }
    }

    /// A number that the plan sets.
    pub const fn plan(symbol: &'static str, value: u64) -> Count {
        Count { value, symbol, origin: Origin::Plan(symbol) }
    }

    /// Share of one of `parts` devices: rounded up, since a head or a row is not divided further.
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
