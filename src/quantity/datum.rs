//! An input number and its source.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::unit::Unit;

/// Grade of an input. Later grades are weaker. A result is as weak as its weakest input.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    Default,
)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// User input: the model's configuration, the plan, a flag.
    Stated,
    /// Read from the device or program itself.
    Read,
    /// The vendor's data sheet, or a list price.
    #[default]
    Datasheet,
    /// Measured.
    Measured,
    /// Fitted to measurements.
    Fitted,
    /// Taken from the nearest known value.
    Assumed,
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Source of an input.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    pub grade: Grade,
    /// The reference: an address, a key, a flag, a fit.
    pub text: Cow<'static, str>,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.grade, self.text)
    }
}

/// An input number. Every input has a source.
#[derive(Clone, Debug, PartialEq)]
pub struct Datum {
    /// Its name in formulas, e.g. `hbm_bandwidth`.
    pub symbol: Cow<'static, str>,
    /// In base units.
    pub value: f64,
    pub unit: Unit,
    pub source: Source,
}

impl Datum {
    /// A number that the user or the plan sets.
    pub fn stated(symbol: &'static str, value: f64, unit: Unit, text: impl Into<Cow<'static, str>>) -> Datum {
        Datum {
            symbol: symbol.into(),
            value,
            unit,
            source: Source { grade: Grade::Stated, text: text.into() },
        }
    }

    /// The same number under another name.
    pub fn named(&self, symbol: impl Into<Cow<'static, str>>) -> Datum {
        Datum { symbol: symbol.into(), ..self.clone() }
    }
}

/// Checks while compiling that the rows of a table, whose first cells are variants, are in the order of these: a row is
/// found by its variant.
#[macro_export]
#[doc(hidden)]
macro_rules! rows_by_variant {
    ($table:ident) => {
        const _: () = {
            let mut at = 0;
            while at < $table.len() {
                assert!($table[at].0 as usize == at);
                at += 1;
            }
        };
    };
}

/// Declares a struct of inputs, generic over their representation, with a `map` between representations.
#[macro_export]
macro_rules! figures {
    ($(#[$doc:meta])* $Name:ident { $($(#[$fdoc:meta])* $field:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $Name<T> { $($(#[$fdoc])* pub $field: T,)* }

        impl<T> $Name<T> {
            /// The same inputs in another representation.
            pub fn map<U>(&self, mut read: impl FnMut(&T) -> U) -> $Name<U> {
                $Name { $($field: read(&self.$field),)* }
            }
        }
    };
}
